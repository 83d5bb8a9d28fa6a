"""The murmur hash of HBase's bloom filters: MurmurHash2 whose last one to three bytes are signed."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.format.avro_wire import data_of, offsets_in

_Hashes = npt.NDArray[np.uint32]
_M = np.uint32(0x5BD1E995)
_MASK = 0xFFFFFFFF


def murmur_of_rows(rows: pa.Array[Any]) -> tuple[_Hashes, _Hashes]:
    """Two hashes of each of the `large_binary` rows: with the seed 0, and with the first hash as the seed."""
    count = len(rows)
    offsets = offsets_in(rows)
    sizes = np.diff(offsets)
    longest = int(sizes.max()) if count else 0
    if not longest:
        first = _finished(np.zeros(count, np.uint32))
        return first, _finished(first.copy())
    data = np.frombuffer(data_of(rows), np.uint8)
    # Rows of about one length are hashed together, so that one long row does not widen the matrix of all.
    order = np.argsort(sizes, kind="stable")
    bounds = np.flatnonzero(np.diff(sizes[order] >> 2)) + 1
    first, second = np.empty(count, np.uint32), np.empty(count, np.uint32)
    for group in np.split(order, bounds):
        for start in range(0, len(group), 1 << 14):
            part = group[start : start + (1 << 14)]
            words, tails = _read(data, offsets[part], sizes[part])
            once = _hashed(np.zeros(len(part), np.uint32), sizes[part], words, tails)
            first[part] = once
            second[part] = _hashed(once.copy(), sizes[part], words, tails)
    return first, second


def _read(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> tuple[list[_Hashes], _Hashes]:
    """The mixed whole words of rows that have the same number of them, and what their last bytes add."""
    count = int(sizes[0]) >> 2
    words = []
    if count:
        grouped = np.ndarray(len(data) - 3, np.dtype("<u4"), data.data, strides=(1,))
        for number in range(count):
            word = grouped[starts + 4 * number].astype(np.uint32) * _M
            words.append((word ^ word >> np.uint32(24)) * _M)
    tails = np.zeros(len(starts), np.int32)
    signed = data.view(np.int8)
    rest = starts + 4 * count
    for number in (0, 1, 2):
        has = (sizes & 3) > number
        tails[has] ^= signed[rest[has] + number].astype(np.int32) << (8 * number)
    return words, tails.view(np.uint32)


def _hashed(seed: _Hashes, sizes: npt.NDArray[np.int64], words: list[_Hashes], tails: _Hashes) -> _Hashes:
    value = seed ^ sizes.astype(np.uint32)
    for word in words:
        value *= _M
        value ^= word
    has_tail = (sizes & 3) > 0
    return _finished(np.where(has_tail, (value ^ tails) * _M, value))


def _finished(value: _Hashes) -> _Hashes:
    value = value ^ value >> np.uint32(13)
    value *= _M
    return value ^ value >> np.uint32(15)


@lru_cache(maxsize=64)
def murmur_of_row(row: bytes) -> tuple[int, int]:
    """The same two of one row, for which this is faster than numpy.

    Who asks several files asks them for one row after the other, so the last ones are kept.
    """
    words = []
    for number in struct.unpack_from(f"<{len(row) >> 2}I", row):
        word = number * 0x5BD1E995 & _MASK
        words.append((word ^ word >> 24) * 0x5BD1E995 & _MASK)
    tail = 0
    for number, byte in enumerate(row[len(row) & ~3 :]):
        tail ^= (byte - (byte >> 7 << 8)) << (8 * number) & _MASK
    first = _of_words(0, len(row), words, tail)
    return first, _of_words(first, len(row), words, tail)


def _of_words(seed: int, size: int, words: Sequence[int], tail: int) -> int:
    value = (seed ^ size) & _MASK
    for word in words:
        value = value * 0x5BD1E995 & _MASK ^ word
    if size & 3:
        value = (value ^ tail) * 0x5BD1E995 & _MASK
    value = (value ^ value >> 13) * 0x5BD1E995 & _MASK
    return value ^ value >> 15
