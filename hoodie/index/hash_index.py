"""Keys sorted by hash: which of many are among many others, by one pass over two sorted rows of numbers.

A key's number is the upper bits of its hash with its row in the lower ones, so that one sort of plain integers, which numpy does
by vector instructions, gives the order and the rows. Beside Arrow's hash tables: to sort 400,000 keys takes as long as to look
10,000 up among them there, and to look 100,000 up among the sorted ones a seventh of it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.hashes.of_keys import in_groups, key_hash

_MANY_OF_A_HASH = 16
"""Beyond so many pairs a key, keys were made to have one hash, or a file has the same key again and again."""


class HashIndex:
    """The rows of some keys, by their hashes. Of the keys themselves it keeps nothing.

    `groups`: as `HashedKeys` has them.
    """

    def __init__(self, keys: pa.Array, groups: np.ndarray | None = None) -> None:
        rows = np.arange(len(keys), dtype=np.uint64)
        self._rows = np.uint64((1 << max(0, len(keys) - 1).bit_length()) - 1)
        self._numbers = _hashes(keys, groups)
        self._numbers &= ~self._rows
        self._numbers |= rows
        self._numbers.sort()

    def pairs(self, keys: HashedKeys) -> tuple[np.ndarray, np.ndarray] | None:
        """Numbers of keys, and rows that may have them as their hashes are alike; for each key its rows ascend.

        None: there are far too many.
        """
        hashes, order = keys.by_hash()
        # Several keys may share a row's hash, and several rows that of a key: each goes with each.
        pairs = _equal(hashes & ~self._rows, self._numbers & ~self._rows)
        if pairs is None:
            return None
        of_sought, of_rows = pairs
        return order[of_sought], (self._numbers[of_rows] & self._rows).astype(np.int32)


class HashedKeys:
    """Keys that are looked up in several files, hashed and sorted once. Thread-safe.

    `groups`: the number of each key's group; equal keys of two groups are not alike.
    """

    def __init__(self, keys: pa.Array, groups: np.ndarray | None = None) -> None:
        self.keys = keys
        self._groups = groups
        self._by_hash: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def by_hash(self) -> tuple[np.ndarray, np.ndarray]:
        """The hashes in their order, and the number of each one's key."""
        if self._by_hash is None:
            hashes = _hashes(self.keys, self._groups)
            order = np.argsort(hashes)
            self._by_hash = hashes[order], order
        return self._by_hash


def _hashes(keys: pa.Array, groups: np.ndarray | None) -> np.ndarray:
    hashes = key_hash(keys)
    return hashes if groups is None else in_groups(hashes, groups)


def confirmed(keys: pa.Array, numbers: np.ndarray, stored: pa.Array, rows: np.ndarray) -> np.ndarray:
    """For each pair whether the key is really that of the row, and not only its hash."""
    same = pc.equal(keys.take(pa.array(numbers)), stored.take(pa.array(rows)))
    return np.asarray(pc.fill_null(same, False).to_numpy(zero_copy_only=False))


def _equal(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Places of equal values in two sorted arrays, each with each; those of one value ascend on either side."""
    if len(left) > len(right):
        pairs = _equal(right, left)
        return None if pairs is None else (pairs[1], pairs[0])
    if not len(left):
        return left.astype(np.int64), left.astype(np.int64)
    first = np.searchsorted(right, left)
    hits = np.flatnonzero(right[np.minimum(first, len(right) - 1)] == left)
    first = first[hits]
    counts = np.searchsorted(right, left[hits], side="right") - first
    total = int(counts.sum())
    if total == len(hits):
        return hits, first
    if total > _MANY_OF_A_HASH * len(left):
        return None
    nth = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(hits, counts), np.repeat(first, counts) + nth
