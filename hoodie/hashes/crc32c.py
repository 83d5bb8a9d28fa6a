"""CRC32C (Castagnoli) of many equal pieces of bytes at once, in numpy.

A CRC is the remainder of a division of polynomials over GF(2), which is linear. So a row of words is *folded*: its left
half, moved on by as many bytes as the right half has, is added (xor) to the right half, until one word is left. Moving a
word on is two look-ups of 16 bits each in a table of that distance. 64 KB take about a tenth of a millisecond, where the
byte-by-byte loop would take ten.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

_Words = npt.NDArray[np.uint32]
_POLYNOMIAL = 0x82F63B78
"""Reversed: the lowest bit of a word stands for the highest power."""
_ONES = np.uint32(0xFFFFFFFF)
_SHORT = 8
"""Pieces of fewer bytes are not worth a table."""


def crc32c_of_rows(rows: npt.NDArray[np.uint8]) -> _Words:
    """The checksum of each row of a matrix; all rows have the same length, from 4 bytes on."""
    count, size = rows.shape
    width = 1 << max(0, (size - 1).bit_length() - 2)  # words
    if size == 4 * width and rows.flags.c_contiguous:
        words = rows.view("<u4").copy()
    else:
        # Zeros in front change nothing, for the division begins with the first one bit.
        padded = np.zeros((count, 4 * width), np.uint8)
        padded[:, 4 * width - size :] = rows
        words = padded.view("<u4")
    starts = words.view(np.uint8)[:, 4 * width - size : 4 * width - size + 4]
    np.bitwise_xor(starts, np.uint8(0xFF), out=starts)
    while width > 1:
        width //= 2
        low, high = _tables(4 * width)
        halves = np.ascontiguousarray(words[:, :width]).view("<u2")
        words = words[:, width:] ^ low[halves[:, 0::2]]
        words ^= high[halves[:, 1::2]]
    low, high = _tables(4)
    last: _Words = words[:, 0]
    result: _Words = (low[last & np.uint32(0xFFFF)] ^ high[last >> np.uint32(16)]) ^ _ONES
    return result


def crc32c(data: bytes | memoryview) -> int:
    """The checksum of one piece of any length."""
    if len(data) >= _SHORT:
        return int(crc32c_of_rows(np.frombuffer(data, np.uint8).reshape(1, -1))[0])
    value = 0xFFFFFFFF
    for byte in data:
        value = _moved_by_byte(value ^ byte)
    return value ^ 0xFFFFFFFF


def _moved_by_byte(word: int) -> int:
    for _ in range(8):
        word = word >> 1 ^ (_POLYNOMIAL if word & 1 else 0)
    return word


@cache
def _moves(size: int) -> _Words:
    """What each bit of a word becomes when `size` zero bytes follow, a power of two; the lowest bit first."""
    if size == 1:
        return np.array([_moved_by_byte(1 << bit) for bit in range(32)], np.uint32)
    half = _moves(size // 2)
    low, high = _spread(half[:16]), _spread(half[16:])
    result: _Words = low[half & np.uint32(0xFFFF)] ^ high[half >> np.uint32(16)]
    return result


@cache
def _tables(size: int) -> tuple[_Words, _Words]:
    """What each lower and each upper half of a word becomes when `size` zero bytes follow."""
    moves = _moves(size)
    return _spread(moves[:16]), _spread(moves[16:])


def _spread(bits: _Words) -> _Words:
    """The sum of the chosen ones of 16 words, for each choice."""
    table = np.zeros(1, np.uint32)
    for bit in bits:
        table = np.concatenate([table, table ^ bit])
    return table
