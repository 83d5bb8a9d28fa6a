"""What was found out about row copies and dead rows, kept for the queries that come next.

Files of a table never change, so what one query learned from them holds for each later one that sees the same files; only what
there is must be looked up again. Kept within a bound, and only of storage where a name means one file for good: a copy is known by its
path, size and modification time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Generic, TypeVar

from hoodie.filegroup.row_copies import RowCopy, read_row_copy
from hoodie.model.plans import ReadContext
from hoodie.read.deletion_vectors import Copied, ScanFile, find_deletion_vectors
from hoodie.storage.base import FileInfo, Storage

CAPACITY_BYTES = 64 * 1024 * 1024
"""Of the positions in copies, and again of the row numbers of dead rows."""
_BESIDE_BYTES = 1024
"""What an entry takes besides its arrays."""

V = TypeVar("V")


class Known(Generic[V]):
    """The values that were asked for last, within `capacity_bytes`; thread-safe."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: V, size_bytes: int) -> None:
        size_bytes += _BESIDE_BYTES
        if size_bytes > self._capacity:
            return
        with self._lock:
            self._bytes += size_bytes - self._values.pop(key, (value, 0))[1]
            self._values[key] = (value, size_bytes)
            while self._bytes > self._capacity:
                self._bytes -= self._values.popitem(last=False)[1][1]


_copies: Known[RowCopy] = Known(CAPACITY_BYTES)
_dead: Known[tuple[ScanFile, ...]] = Known(CAPACITY_BYTES)


def known_row_copy(storage: Storage, info: FileInfo) -> RowCopy | None:
    """`read_row_copy`; the same object as before where the file was not replaced."""
    if storage.local_path("") is None:  # storages in memory may have the same uri one after the other
        return read_row_copy(storage, info.path, info.size_bytes)
    key = (storage.uri, info.path, info.size_bytes, info.mtime_s)
    copy = _copies.get(key)
    if copy is None:
        copy = read_row_copy(storage, info.path, info.size_bytes)
        if copy is not None:
            _copies.put(key, copy, copy.kinds.nbytes + copy.positions.nbytes)
    return copy


def known_deletion_vectors(
    storage: Storage, context: ReadContext, copied: Sequence[Copied]
) -> Sequence[ScanFile] | None:
    """`find_deletion_vectors`, asked once for the same slices and the same copies.

    Raises:
        CorruptFileError: a base file cannot be read.
    """
    if storage.local_path("") is None:
        return find_deletion_vectors(storage, context, copied)
    types = tuple(str(field.type) for field in context.schema if field.name in context.rule.ordering_fields)
    key = (storage.uri, context.rule, types, tuple(copied))
    found = _dead.get(key)
    if found is None:
        files = find_deletion_vectors(storage, context, copied)
        if files is None:
            return None
        found = tuple(files)
        _dead.put(key, found, sum(file.dead.nbytes for file in found if file.dead is not None))
    return found
