"""Slices whose logs are in row copies, as Parquet files of which all rows are final but those that a deletion vector names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.filegroup.ordering import ordering_of, whole
from hoodie.filegroup.row_copies import RowCopy, read_copied_columns, read_row_copy
from hoodie.model.files import BaseFile
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import ReadContext
from hoodie.read.log_merge import LoggedSlice, LogRows, Values, require_stored, resolve
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import Cache, Kind, file_key


class ScanFile(NamedTuple):
    """A Parquet file of which all rows are final but those in `dead`."""

    path: str
    size_bytes: int
    instant: str
    """Of the commit that wrote it: its columns are those of the table then."""
    rows: int = 0
    """How many there are, where some are dead."""
    dead: np.ndarray | None = None
    """Row numbers that do not count, ascending; None: all count."""
    copy_of: tuple[str, ...] = ()
    """Of a row copy: the logs whose rows it has."""


def say_what_counts(files: Sequence[ScanFile]) -> str:
    """How many of the files are row copies, and how many rows in them do not count."""
    copies = sum(1 for file in files if file.copy_of)
    dead = sum(len(file.dead) for file in files if file.dead is not None)
    return f"{copies:,} row copies; {dead:,} rows left out"


@dataclass(frozen=True)
class CopiedRows(LogRows):
    """The rows of a row copy as what logs say."""

    copy: RowCopy

    @property
    def kinds(self) -> np.ndarray:
        return self.copy.kinds

    @property
    def positions(self) -> np.ndarray:
        return self.copy.positions

    def values(self, storage: Storage, context: ReadContext, *, keys: bool, ordering: bool) -> Values | None:
        names = [*([RECORD_KEY] if keys else []), *(context.rule.ordering_columns if ordering else ())]
        schema = pa.schema([context.schema.field(n) for n in dict.fromkeys(names) if n in context.schema.names])
        rows = read_copied_columns(storage, self.copy, schema=schema)
        if rows is None:
            return None
        return Values(
            whole(rows.column(RECORD_KEY)) if keys else None, ordering_of(rows, context.rule) if ordering else None
        )


def find_deletion_vectors(
    storage: Storage, cache: Cache, context: ReadContext, slices: Sequence[LoggedSlice]
) -> list[ScanFile] | None:
    """The files of these slices, whose logs are in `CopiedRows`, each once; None where a copy turns out to be damaged.

    Raises:
        CorruptFileError: a base file cannot be read.
    """
    sources = list(dict.fromkeys(part.source for each in slices for part in each.parts))
    resolution = resolve(storage, cache, context, slices, sources)
    if resolution is None:
        return None
    files = base_files(storage, cache, context, slices, resolution.dead)
    for source, numbers in zip(sources, resolution.rows_of_source, strict=True):
        if len(numbers) and isinstance(source, CopiedRows):
            files.append(_file_of(source.copy, numbers))
    return files


def base_files(
    storage: Storage, cache: Cache, context: ReadContext, slices: Sequence[LoggedSlice], dead: Sequence[np.ndarray]
) -> list[ScanFile]:
    """The base files of slices, whose rows of these numbers do not count."""

    def file_of(base: BaseFile, rows: np.ndarray) -> ScanFile:
        count = require_stored(storage, cache, context, base, rows) if len(rows) else 0
        return ScanFile(base.path, base.size_bytes, base.instant, count, rows if len(rows) else None)

    pairs = [(each.base, rows) for each, rows in zip(slices, dead, strict=True) if each.base and each.base_counts]
    return [*storage.each(lambda pair: file_of(*pair), pairs)]


def _file_of(copy: RowCopy, numbers: np.ndarray) -> ScanFile:
    is_dead = np.ones(copy.rows, dtype=bool)
    is_dead[numbers] = False
    dead = np.flatnonzero(is_dead)
    logs = tuple(share.log for share in copy.shares)
    return ScanFile(copy.path, copy.size_bytes, copy.instant, copy.rows, dead if len(dead) else None, logs)


# -- What was found out about row copies and deletion vectors, kept for the queries that come next.
#
# Files of a table never change, so what one query learned from them holds for each later one that sees the same files; only what
# there is must be looked up again.

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
    types = tuple(str(field.type) for field in context.schema if field.name in context.rule.ordering_columns)
    key = (storage.identity, context.rule, types, tuple(slices))
    result = cache.find(DELETION_VECTORS, key)
    if result is None:
        files = find_deletion_vectors(storage, cache, context, slices)
        if files is None:
            return None
        result = tuple(files)
        cache.put(DELETION_VECTORS, key, result, sum(file.dead.nbytes for file in result if file.dead is not None))
    return result
