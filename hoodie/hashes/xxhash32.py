"""xxHash32 of texts, over a whole Arrow column at once: Apache Hudi hashes record keys with it for consistent buckets.

Source: the xxHash specification (XXH32). Witness: tests/hashes/test_xxhash32.py, integration/test_consistent_buckets_with_hudi.py.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

_P1, _P2, _P3 = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77), np.uint32(0xC2B2AE3D)
_P4, _P5 = np.uint32(0x27D4EB2F), np.uint32(0x165667B1)
_STRIPE = 16
"""Bytes that the four lanes take at once."""


def xxhash32(texts: pa.Array, seed: int = 0) -> np.ndarray:
    """uint32 for each text: the hash of its UTF-8 bytes; null counts as the empty text."""
    starts, lengths, data = _bytes_of(texts)
    # The longest come first, so that those which still have bytes are always the first ones: no mask, no copy.
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    words = _Words(data)
    with np.errstate(over="ignore"):
        hashed = _stripes(words, starts, lengths, np.uint32(seed)) + lengths.astype(np.uint32)
        at, remaining = starts + lengths // _STRIPE * _STRIPE, lengths % _STRIPE
        for step in range(_STRIPE // 4 - 1):
            rows = np.flatnonzero(remaining >= 4 * (step + 1))
            word = words.at(at[rows] + 4 * step)
            hashed[rows] = _rotated(hashed[rows] + word * _P3, 17) * _P4
        at, remaining = at + remaining // 4 * 4, remaining % 4
        for step in range(3):
            rows = np.flatnonzero(remaining > step)
            byte = words.data[at[rows] + step].astype(np.uint32)
            hashed[rows] = _rotated(hashed[rows] + byte * _P5, 11) * _P1
        hashed = (hashed ^ (hashed >> np.uint32(15))) * _P2
        hashed = (hashed ^ (hashed >> np.uint32(13))) * _P3
        hashed ^= hashed >> np.uint32(16)
    result: np.ndarray = np.empty(len(hashed), dtype=np.uint32)
    result[order] = hashed
    return result


class _Words:
    """Little-endian words of a buffer, at any byte."""

    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self._words: np.ndarray = np.ndarray((len(data) - 3,), dtype="<u4", buffer=cast(Any, data), strides=(1,))

    def at(self, places: np.ndarray) -> np.ndarray:
        result: np.ndarray = self._words[places]
        return result


def _stripes(words: _Words, starts: np.ndarray, lengths: np.ndarray, seed: np.uint32) -> np.ndarray:
    """What the hash begins with; `lengths` descend."""
    hashed = np.full(len(starts), seed + _P5, dtype=np.uint32)
    counts = lengths // _STRIPE
    long = int(np.count_nonzero(counts))
    if not long:
        return hashed
    lanes = [np.full(long, value, dtype=np.uint32) for value in (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)]
    for stripe in range(int(counts[0])):
        there = int(np.searchsorted(-counts[:long], -stripe))  # those that have more stripes than this number
        for number, lane in enumerate(lanes):
            word = words.at(starts[:there] + (_STRIPE * stripe + 4 * number))
            lane[:there] = _rotated(lane[:there] + word * _P2, 13) * _P1
    mixed = [_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)]
    hashed[:long] = mixed[0] + mixed[1] + mixed[2] + mixed[3]
    return hashed


def _rotated(values: np.ndarray, by: int) -> np.ndarray:
    result: np.ndarray = (values << np.uint32(by)) | (values >> np.uint32(32 - by))
    return result


def _bytes_of(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each text begins, its bytes, and the buffer of all of them with a word more behind it."""
    texts = texts.cast(pa.large_string()).fill_null("")
    _, offset_buffer, data_buffer = texts.buffers()
    if not len(texts) or data_buffer is None:
        return np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64), np.zeros(4, np.uint8)
    offsets = np.frombuffer(cast(Any, offset_buffer), dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + 4, dtype=np.uint8)
    data[: last - first] = np.frombuffer(cast(Any, data_buffer), dtype=np.uint8)[first:last]
    return offsets[:-1] - first, np.diff(offsets), data
