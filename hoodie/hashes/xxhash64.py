"""xxHash64 of a few bytes, as Apache Hudi names things after a table's path. For short texts: it is plain Python."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
HUDI_SEED = 0xFFFFFFFFDABADABA
"""Its 32-bit seed, with the sign that Java extends."""


def xxhash64(text: str, seed: int = HUDI_SEED) -> int:
    data = text.encode()
    at, length = 0, len(data)
    if length >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed & _MASK, (seed - _P1) & _MASK]
        while at + 32 <= length:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], _word(data, at + 8 * lane, 8))
            at += 32
        mixed = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            mixed = ((mixed ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        mixed = (seed + _P5) & _MASK
    mixed = (mixed + length) & _MASK
    while at + 8 <= length:
        mixed = (_rotated(mixed ^ _round(0, _word(data, at, 8)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= length:
        mixed = (_rotated(mixed ^ (_word(data, at, 4) * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        mixed = _rotated(mixed ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    mixed = (mixed ^ mixed >> 33) * _P2 & _MASK
    mixed = (mixed ^ mixed >> 29) * _P3 & _MASK
    return mixed ^ mixed >> 32


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _rotated(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK
