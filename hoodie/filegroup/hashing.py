"""A stable hash of record keys, so that all rows of a new key meet in one task whatever chunk they come from."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa

_BASE = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def key_hash(keys: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """uint64 for each key: a polynomial over its bytes, mixed; the same in every process and version of this release.

    Never stored: only the tasks of one write have to agree on it.
    """
    array = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    count = len(array)
    if not count:
        return np.empty(0, dtype=np.uint64)
    array = array.cast(pa.large_string())
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(cast(Any, offset_buffer), dtype=np.int64)[array.offset : array.offset + count + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    data = (
        np.frombuffer(cast(Any, data_buffer), dtype=np.uint8)[first:last]
        if last > first
        else np.empty(0, dtype=np.uint8)
    )
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    powers = np.ones(max(longest, 1), dtype=np.uint64)
    with np.errstate(over="ignore"):
        powers[1:] = np.uint64(_BASE & _MASK)
        powers = np.multiply.accumulate(powers)
        place = np.arange(len(data)) - np.repeat(offsets[:-1] - first, lengths)
        terms = (data.astype(np.uint64) + np.uint64(1)) * powers[place]
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.add.accumulate(terms)])
        hashed: np.ndarray = sums[offsets[1:] - first] - sums[offsets[:-1] - first]
        hashed ^= hashed >> np.uint64(33)
        hashed *= np.uint64(0xFF51AFD7ED558CCD)
        hashed ^= hashed >> np.uint64(33)
    return hashed
