"""What was found out about row copies and deletion vectors, kept for the queries that come next.

Files of a table never change, so what one query learned from them holds for each later one that sees the same files; only what
there is must be looked up again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoodie.filegroup.row_copies import RowCopy, read_row_copy
from hoodie.model.plans import ReadContext
from hoodie.read.deletion_vectors import ScanFile, find_deletion_vectors
from hoodie.read.log_merge import LoggedSlice
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import Cache, Kind, file_key

ROW_COPY: Kind[RowCopy] = Kind("row copy")
DELETION_VECTORS: Kind[tuple[ScanFile, ...]] = Kind("deletion vectors")


def known_row_copy(storage: Storage, cache: Cache, info: FileInfo) -> RowCopy | None:
    """`read_row_copy`; the same object as before where the file was not replaced."""
    key = file_key(storage, info)
    copy = cache.find(ROW_COPY, key)
    if copy is None:
        copy = read_row_copy(storage, info.path, info.size_bytes)
        if copy is not None:
            cache.put(ROW_COPY, key, copy, copy.kinds.nbytes + copy.positions.nbytes)
    return copy


def known_deletion_vectors(
    storage: Storage, cache: Cache, context: ReadContext, slices: Sequence[LoggedSlice]
) -> Sequence[ScanFile] | None:
    """`find_deletion_vectors`, asked once for the same slices and the same copies.

    Raises:
        CorruptFileError: a base file cannot be read.
    """
    types = tuple(str(field.type) for field in context.schema if field.name in context.rule.ordering_fields)
    key = (storage.identity, context.rule, types, tuple(slices))
    found = cache.find(DELETION_VECTORS, key)
    if found is None:
        files = find_deletion_vectors(storage, cache, context, slices)
        if files is None:
            return None
        found = tuple(files)
        cache.put(DELETION_VECTORS, key, found, sum(file.dead.nbytes for file in found if file.dead is not None))
    return found
