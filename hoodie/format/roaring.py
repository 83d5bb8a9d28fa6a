"""Sets of row numbers as log blocks state them: a roaring bitmap of 64 bits in its portable form, as Base64.

Layout (little-endian): number of maps i64 = 1 | high half of the numbers i32 = 0 | a roaring bitmap of 32 bits: cookie i32 = 12346,
number of containers i32, of each its key u16 and its count less one u16, of each its offset u32, the containers. A container has
the numbers that share their upper 16 bits, which are its key: the lower ones in ascending order as u16, or, where there are more
than 4,096, a bit for each of them.
"""

from __future__ import annotations

import base64

import numpy as np

_COOKIE = 12346
_MOST_IN_ARRAY = 4096
_CONTAINER = 1 << 16


def encode_positions(positions: np.ndarray) -> str:
    """The text of these row numbers, which ascend strictly and fit into 32 bits."""
    keys, starts, counts = np.unique(positions >> 16, return_index=True, return_counts=True)
    low = (positions & (_CONTAINER - 1)).astype("<u2")
    containers = [_container(low[start : start + count]) for start, count in zip(starts, counts, strict=True)]
    sizes = np.array([len(each) for each in containers], dtype=np.int64)
    heads = np.stack([keys, counts - 1], axis=1).astype("<u2").tobytes()
    first = 8 + len(heads) + 4 * len(containers)
    offsets = (first + np.cumsum(sizes) - sizes).astype("<u4").tobytes()
    numbers = np.array([1, 0], dtype="<i8").tobytes()[:12] + np.array([_COOKIE, len(containers)], dtype="<i4").tobytes()
    return base64.b64encode(b"".join((numbers, heads, offsets, *containers))).decode()


def _container(low: np.ndarray) -> bytes:
    if len(low) <= _MOST_IN_ARRAY:
        return low.tobytes()
    bits = np.zeros(_CONTAINER, dtype=np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()
