"""A stable hash of record keys, so that all rows of a new key meet in one task whatever chunk they come from."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_LAST_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_WORD = 8
_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], dtype="<u8")
"""By how many bytes of a word belong to the key: a mask of them."""
_BLOCK = 16 * 1024
"""Keys whose hashes, and a word of each, stay in the processor's cache."""


def key_hash(keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """uint64 for each key: its length and its bytes in words of eight, multiplied and mixed one after the other.

    Base files store its upper half (`map_hash`), so it is the same for ever.
    """
    array = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    count = len(array)
    if not count:
        return np.empty(0, dtype=np.uint64)
    array = array.cast(pa.large_string())
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(cast(Any, offset_buffer), dtype=np.int64)[array.offset : array.offset + count + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.zeros(last - first + _WORD, dtype=np.uint8)  # the last key's last word ends behind it
    if last > first:
        data[:-_WORD] = np.frombuffer(cast(Any, data_buffer), dtype=np.uint8)[first:last]
    begins, lengths = offsets[:-1] - first, np.diff(offsets)
    hashed: np.ndarray = lengths.astype(np.uint64)
    with np.errstate(over="ignore"):
        for start in range(0, count, _BLOCK):
            rows = slice(start, start + _BLOCK)
            _add_words(hashed[rows], data, begins[rows], lengths[rows])
        hashed *= _LAST_FACTOR
        hashed ^= hashed >> np.uint64(33)
    return hashed


def in_groups(hashes: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The hashes of the same keys in groups, by numbers: a key has another one in each."""
    result: np.ndarray = hashes ^ (groups.astype(np.uint64) * _FACTOR)
    return result


def map_hash(keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """uint32 for each key, as the key maps of base files have it (`format/key_map.py`)."""
    hashed: np.ndarray = (key_hash(keys) >> np.uint64(32)).astype(np.uint32)
    return hashed


def _add_words(hashes: np.ndarray, data: np.ndarray, begins: np.ndarray, lengths: np.ndarray) -> None:
    """Mix the bytes of each key into its hash, in place."""
    longest = int(lengths.max())
    if longest and int(lengths.min()) == longest:  # such as UUIDs: their words stand at equal distances
        for at in range(0, longest, _WORD):
            words = np.ndarray(len(hashes), "<u8", cast(Any, data), int(begins[0]) + at, (longest,))
            _add_word(hashes, words if longest - at >= _WORD else words & _FIRST_BYTES[longest - at])
        return
    # The word that begins at each byte.
    word_at = np.ndarray(len(data) - _WORD + 1, "<u8", cast(Any, data), strides=(1,))
    for at in range(0, longest, _WORD):
        rows = np.flatnonzero(lengths > at)
        some = hashes[rows]
        _add_word(some, word_at[begins[rows] + at] & _FIRST_BYTES[np.minimum(lengths[rows] - at, _WORD)])
        hashes[rows] = some


def _add_word(hashes: np.ndarray, words: np.ndarray) -> None:
    hashes ^= words
    hashes *= _FACTOR
    hashes ^= hashes >> np.uint64(32)
