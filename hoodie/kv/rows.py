"""Sorted rows of a store, as Arrow has them: what data files hold and merges make. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.kv.binary import KEYS, VALUES, Binary

_AT_ONCE = 1 << 16


class SortedRows(NamedTuple):
    """Keys in ascending order, each once."""

    keys: Binary
    values: Binary
    """Null: the key is deleted, whatever older files say."""

    @property
    def size_bytes(self) -> int:
        return bytes_of(self.keys) + bytes_of(self.values)

    def slice(self, start: int, stop: int | None = None) -> SortedRows:
        length = (len(self.keys) if stop is None else stop) - start
        return SortedRows(self.keys.slice(start, length), self.values.slice(start, length))


NOTHING = SortedRows(pa.nulls(0, KEYS), pa.nulls(0, VALUES))


def bytes_of(array: pa.Array) -> int:
    """Of its entries alone, without offsets."""
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None:
        return 0
    offsets = np.frombuffer(memoryview(buffer), np.int64 if pa.types.is_large_binary(array.type) else np.int32)
    return int(offsets[array.offset + len(array)] - offsets[array.offset])


def sorted_rows(rows: Mapping[bytes, bytes | None]) -> Iterator[SortedRows]:
    """A mapping in ascending order of its keys, in parts."""
    keys = sorted(rows)
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        yield SortedRows(pa.array(some, KEYS), pa.array(map(rows.__getitem__, some), VALUES, size=len(some)))


def merged(parts: Sequence[SortedRows], *, drop_deletes: bool) -> SortedRows:
    """One from several that overlap, oldest first: of equal keys the newest stays."""
    parts = [part for part in parts if len(part.keys)]
    if not parts:
        return NOTHING
    if len(parts) == 1:
        keys, values = parts[0]
    else:
        all_keys, all_values = (pa.concat_arrays(list(each)) for each in zip(*parts, strict=True))
        order = pc.array_sort_indices(all_keys)  # stable: of equal keys the newest comes last
        ordered = all_keys.take(order)
        is_last = np.ones(len(ordered), bool)
        is_last[:-1] = pc.not_equal(ordered[:-1], ordered[1:]).to_numpy(zero_copy_only=False)
        if is_last.all():
            keys, values = ordered, all_values.take(order)
        else:
            keys, values = ordered.filter(pa.array(is_last)), all_values.take(order.filter(pa.array(is_last)))
    if drop_deletes and values.null_count:
        is_live = values.is_valid()
        keys, values = keys.filter(is_live), values.filter(is_live)
    return SortedRows(keys, values)


def position(keys: Binary, key: bytes) -> int:
    """How many keys are smaller, by bisection."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() < key:
            low = middle + 1
        else:
            high = middle
    return low


def between(rows: SortedRows, start: bytes | None, stop: bytes | None) -> SortedRows:
    """Those from `start` on and before `stop`."""
    low = 0 if start is None else position(rows.keys, start)
    high = len(rows.keys) if stop is None else position(rows.keys, stop)
    return rows.slice(low, max(low, high))
