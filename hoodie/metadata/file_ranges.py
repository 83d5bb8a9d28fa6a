"""Bounds of the columns of data files, by their footers and, where these do not say them, by their rows.

In versions 8 and 9 each file has them, logs among them: Apache Hudi makes the bounds of a partition of those of its files, without a
word of a file that has none, and leaves a partition out by them. In version 6 there are none of partitions. So logs are not read, and
a file of which the footer does not bound a column that it has gets none at all: readers of Apache Hudi 0.15 take a column without a
record for one of nothing but nulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.errors import UnsupportedTableError
from hoodie.filegroup.log_scan import read_log_rows
from hoodie.filegroup.slice_reader import merge_columns, open_base_file
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.metadata.keys import COLUMN_STATS
from hoodie.metadata.partition import Scope, TableFiles
from hoodie.metadata.stored_bounds import Ranges, ranges_of_footer, ranges_of_rows
from hoodie.model.enums import MergeMode
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.instant import BOOTSTRAP_INSTANTS, VisibleInstants
from hoodie.model.late import once
from hoodie.model.meta_fields import with_meta_fields
from hoodie.model.names import parse_base_file, parse_log_file
from hoodie.model.plans import MergeRule
from hoodie.view.context import TableContext

_AS_THEY_STAND = MergeRule(MergeMode.COMMIT_TIME_ORDERING)


@dataclass(frozen=True)
class FileRanges:
    """Of some columns of a table's files. `schema`: the table's columns."""

    scope: Scope
    columns: Sequence[str]
    schema: pa.Schema
    typed: bool
    """Stored by index version V2."""
    has_more: bool = False
    """Columns that the index's definition does not have yet."""

    def of(self, files: TableFiles) -> Mapping[tuple[str, str], Ranges]:
        """Partition path and name -> column -> its bounds; a file without bounds is left out. Files that the scope has
        seen are not read again.

        Raises:
            CorruptFileError, FileNotFoundError: a file is damaged or gone. UnsupportedTableError: one cannot be read.
        """
        cache, kind = self.scope.cache, (COLUMN_STATS, self.typed, *self.columns)
        names = [(path, name, size_bytes) for path, sizes in files.items() for name, size_bytes in sizes.items()]
        fresh = [(path, name, size_bytes) for path, name, size_bytes in names if (kind, path, name) not in cache]
        read = self.scope.context.storage.each(lambda each: self._of_file(*each), fresh)
        cache.update(((kind, path, name), each) for (path, name, _), each in zip(fresh, read, strict=True))
        ranges_of = {(path, name): cache[kind, path, name] for path, name, _ in names}
        return {file: each for file, each in ranges_of.items() if each}

    @once
    def _visible(self) -> VisibleInstants:
        return self.scope.context.active.load().visible()

    @property
    def reads_rows(self) -> bool:
        return self.scope.context.config.layout.by_completion

    def _of_file(self, path: str, name: str, size_bytes: int) -> Ranges | None:
        base = parse_base_file(name)
        if base is not None and name.endswith(".parquet"):
            return self._of_base(BaseFile(path, base.file_id, base.instant, name, size_bytes))
        log = whole_log(path, name, size_bytes) if self.reads_rows else None
        return None if log is None else self._of_log(log)

    def _of_base(self, base: BaseFile) -> Ranges | None:
        if base.instant == BOOTSTRAP_INSTANTS[0]:
            raise UnsupportedTableError(
                f"{base.path} is of a bootstrap and has no columns: Apache Hudi has no bounds of it, either"
            )
        with open_base_file(self.scope.context.storage, base) as (file, footer):
            all_ranges = ranges_of_footer(footer, self.columns, typed=self.typed)
            footer_ranges = {name: each for name, each in all_ranges.items() if each is not None}
            unknown = [name for name in all_ranges if name not in footer_ranges]
            if not unknown:
                return footer_ranges
            if not self.reads_rows:
                return None
            if any("." in name for name in unknown):
                raise UnsupportedTableError(
                    f"{base.path} does not say the bounds of {unknown[0]}, which lies in another column"
                )
            return footer_ranges | ranges_of_rows(file.read(unknown), typed=self.typed)

    def _of_log(self, log: LogFile) -> Ranges:
        rows = log_rows(self.scope.context, self.schema, self._visible, log, self.columns)
        return ranges_of_rows(rows, typed=self.typed) if rows.num_rows else {}


def log_rows(
    context: TableContext, schema: pa.Schema, visible: VisibleInstants, log: LogFile, columns: Sequence[str]
) -> pa.Table:
    """Of the rows that a log has those of these columns that the table has, whether its instant is completed or not. `schema`: the
    table's columns.
    """
    full, mine = with_meta_fields(schema), {log.base_instant}
    part = pa.schema([field for field in full if field.name in columns])
    rows = read_log_rows(
        context.storage,
        log,
        merge_columns(part, _AS_THEY_STAND, full),
        rule=_AS_THEY_STAND,
        visible=replace(visible, completed=visible.completed | mine, pending=visible.pending - mine),
        unstored=unstored_of(context.config, schema),
    )
    return rows.select(part.names)


def whole_log(path: str, name: str, size_bytes: int) -> LogFile | None:
    """A log by its name, of versions 8 and 9, all of which counts; None where it is none, or has no rows."""
    log = parse_log_file(name)
    if log is None or log.suffix:
        return None
    entries = ((log.base_instant, 0),)
    # What a log compaction wrote counts without the files that it stands for.
    return LogFile(path, log.file_id, log.base_instant, log.version, name, size_bytes, size_bytes, entries, ("",))
