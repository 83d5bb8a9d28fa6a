"""Row copies: the rows that a commit appended to log files, a second time as Parquet files that an engine reads natively.

A log has to be decoded and merged before a query can look at it. A copy has the same rows, whole and in the table's columns, and for
each of them the row number in the base file of the row that it replaces; so a reader only has to leave out the rows, of base
files and of copies, that newer ones replaced (`read/scan_files.py`). Copies decide nothing: a reader to whom one is missing, damaged
or of another log than it sees takes the log. Other readers and writers never meet them; deleting the folder costs speed only.

`.hoodie/.hoodie_py/rows/<instant>_<number>.parquet` holds the rows of several logs of one commit, one after the other. Columns: those
of a base file, all nullable; `*kind` int8: 0 a row, 1 a row whose own columns say that it is a delete, 2 a key of the delete block
(partition path and ordering fields beside it, the rest null); `*position` int32: the row number in the base file, -1 where it is not
known. The footer key `hoodie.python.row_copy` holds `{"version": 1, "columns": [names], "logs": [[path, bytes, records and deletes,
first row, row after the last, name of the base file that positions refer to], …]}`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.filegroup.base_writer import close_parquet, dictionary_columns, has_dictionary
from hoodie.filegroup.conform import conform
from hoodie.filegroup.deletes import delete_flags
from hoodie.filegroup.ordering import whole
from hoodie.filegroup.staging import open_staged, sink_over
from hoodie.format.parquet_file import open_parquet, parquet_writer
from hoodie.format.parquet_footer import floating_leaves
from hoodie.model.enums import MergeMode, RowCopies
from hoodie.model.instant import InstantTime
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.names import ROW_COPIES, format_row_copy, join, name_of, parse_row_copy
from hoodie.model.payloads import WriteStat
from hoodie.model.plans import PLACE, MergeRule, StagedFile, WriteContext, WriteResult
from hoodie.storage.base import Storage

KIND, POSITION = "*kind", "*position"
ROW, FLAGGED, DELETED_KEY = 0, 1, 2
UNKNOWN = -1
_FOOTER_KEY = "hoodie.python.row_copy"
_VERSION = 1
_CODEC = "zstd"


class LogShare(NamedTuple):
    """Where in a copy the rows of one log file are."""

    log: str
    """Path of the log file."""
    log_bytes: int
    entries: int
    """Records and deletes in it."""
    start: int
    stop: int
    base: str
    """Name of the base file that positions refer to; empty: there was none."""


@dataclass(frozen=True, eq=False)
class RowCopy:
    """A copy as it was found; the columns of the table stay in the file. Equal to itself only."""

    path: str
    size_bytes: int
    instant: InstantTime
    shares: tuple[LogShare, ...]
    kinds: np.ndarray
    positions: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.kinds)


def can_be_copied(rule: MergeRule) -> bool:
    """Whether each merged row is one of the stored ones, so that copies can stand for logs."""
    plain = rule.mode in (MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING)
    return plain and rule.merger is None and rule.fill is None and not rule.positions


# -- writing -----------------------------------------------------------------------------------------------------------


def copied_rows(stamped: pa.Table, live: pa.Table, deleted: pa.Table, rule: MergeRule) -> pa.Table:
    """What a copy has of one log file: the stamped rows of `live`, and the keys of `deleted`; both as prepared."""
    key_columns = {RECORD_KEY, PARTITION_PATH, *rule.ordering_columns} & {*deleted.column_names}

    def with_deleted(field: pa.Field[Any]) -> pa.ChunkedArray[Any]:
        there = field.name in key_columns
        deleted_values = (
            whole(deleted.column(field.name)).cast(field.type) if there else pa.nulls(deleted.num_rows, field.type)
        )
        return pa.chunked_array([*stamped.column(field.name).chunks, deleted_values], field.type)

    names = [pa.field(field.name, field.type) for field in stamped.schema]
    columns = [with_deleted(field) for field in stamped.schema] if deleted.num_rows else stamped.columns
    kinds = np.concatenate(
        [delete_flags(stamped, rule).astype(np.int8), np.full(deleted.num_rows, DELETED_KEY, np.int8)]
    )
    names += [pa.field(KIND, pa.int8()), pa.field(POSITION, pa.int32())]
    columns += [pa.chunked_array([pa.array(kinds)]), pa.chunked_array([*_places(live), *_places(deleted)], pa.int32())]
    return pa.Table.from_arrays(columns, schema=pa.schema(names))


def _places(rows: pa.Table) -> list[pa.Array]:
    if PLACE in rows.column_names:
        return rows.column(PLACE).chunks
    return [pa.array(np.full(rows.num_rows, UNKNOWN, np.int32))]


def share_of(stat: WriteStat, start: int, rows: int) -> LogShare:
    """The share of the log file that the stat describes."""
    entries = stat.num_writes + stat.num_deletes
    return LogShare(stat.path, stat.file_size_bytes, entries, start, start + rows, stat.base_file or "")


def write_row_copy(
    storage: Storage,
    context: WriteContext,
    number: int,
    parts: Sequence[tuple[WriteStat, pa.Table]],
    *,
    attempt: int = 0,
) -> StagedFile:
    """Write a copy of these logs into the staging folder."""
    shares, start = [], 0
    for stat, rows in parts:
        shares.append(share_of(stat, start, rows.num_rows))
        start += rows.num_rows
    table = pa.concat_tables([rows for _, rows in parts])
    final = join(ROW_COPIES, format_row_copy(context.instant, number))
    staged = join(context.staging, f"rows-{number}-{attempt}.parquet")
    index = json.dumps({"version": _VERSION, "columns": table.column_names, "logs": shares}, separators=(",", ":"))
    # Positions of one log hardly ever stand twice, and they ascend only where the batch does.
    dictionaries = [name for name in dictionary_columns(table) if name != POSITION]
    footers: list[pq.FileMetaData] = []
    with open_staged(storage, staged, folder=context.staging) as file:
        sink = sink_over(file)
        writer = parquet_writer(
            sink,
            table.schema,
            compression=_CODEC,
            store_schema=False,
            use_dictionary=dictionaries,
            write_page_checksum=True,
            metadata_collector=footers,
        )
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
        nan, zero = floating_leaves(table)
        edits = bool(nan) or has_dictionary(table.schema, zero, dictionaries)
        entries = {_FOOTER_KEY: index}
        close_parquet(writer, sink, footers, nan=[(0, leaf) for leaf in nan], edits=edits, entries=entries)
        sink.close()
    return StagedFile(staged, final, "")


def staged_copies(
    storage: Storage, context: WriteContext, results: Sequence[WriteResult], *, number: int = 0
) -> list[StagedFile]:
    """The copies of a commit: those that its tasks wrote, and one, of this number, of all the rows that they handed over.

    Tasks that write copies themselves count from 1.
    """
    written = [result.copy for result in results if result.copy is not None]
    pairs = [(result.stat, result.rows) for result in results if result.rows is not None]
    if pairs:
        written.append(write_row_copy(storage, context, number, pairs))
    return written


def how_to_copy(rule: MergeRule, *, copies: bool, size_bytes: int, in_process: bool) -> RowCopies:
    """Small batches of one process make one file: opening a file costs a reader as much as a few thousand rows."""
    if not copies or not can_be_copied(rule):
        return RowCopies.NONE
    return RowCopies.HELD if in_process and size_bytes <= HELD_BYTES else RowCopies.STAGED


HELD_BYTES = 128 * 1024 * 1024
"""Arrow bytes of a batch up to which rows are kept in memory between its tasks and its copy."""


# -- reading and removing ----------------------------------------------------------------------------------------------


def read_row_copy(storage: Storage, path: str, size_bytes: int) -> RowCopy | None:
    """A copy with all that a reader needs to know before it reads rows; None where it is none, or damaged."""
    instant = parse_row_copy(name_of(path))
    if instant is None:
        return None
    try:
        with storage.open_input(path) as source:
            file = open_parquet(source, path=path)
            shares = _shares((file.metadata.metadata or {}).get(_FOOTER_KEY.encode()), file)
            columns = file.read([KIND, POSITION])
        kinds, positions = whole(columns.column(KIND)), whole(columns.column(POSITION))
    except (CorruptFileError, pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None
    right = kinds.type == pa.int8() and positions.type == pa.int32()
    if shares is None or not right or kinds.null_count or positions.null_count or len(kinds) != file.metadata.num_rows:
        return None
    return RowCopy(path, size_bytes, instant, shares, kinds.to_numpy(), positions.to_numpy())


def read_copied_columns(storage: Storage, copy: RowCopy, *, schema: pa.Schema) -> pa.Table | None:
    """These columns of the table, of all rows of the copy; None where it is damaged."""
    try:
        with storage.open_input(copy.path) as source:
            file = open_parquet(source, path=copy.path)
            table = file.read([name for name in schema.names if name in file.schema_arrow.names])
    except (CorruptFileError, pa.ArrowException, OSError, ValueError):
        return None
    return conform(table, schema, path=copy.path) if table.num_rows == copy.rows else None


def _shares(text: bytes | None, file: pq.ParquetFile) -> tuple[LogShare, ...] | None:
    """What the footer key says, where it agrees with the rest of the footer: that has no checksum."""
    note = json.loads(text) if text else {}
    if not isinstance(note, dict) or note.get("version") != _VERSION or not isinstance(note.get("logs"), list):
        return None
    if note.get("columns") != file.schema_arrow.names:  # a column under another name would be missing, and null
        return None
    shares, end = [], 0
    for log, log_bytes, entries, start, stop, base in note["logs"]:
        if int(start) != end or int(stop) - int(start) != int(entries):
            return None
        end = int(stop)
        shares.append(LogShare(str(log), int(log_bytes), int(entries), int(start), end, str(base)))
    return tuple(shares) if end == file.metadata.num_rows else None


def row_copies_of(storage: Storage) -> dict[InstantTime, list[str]]:
    """The copies that there are: instant -> paths."""
    result: dict[InstantTime, list[str]] = {}
    for info in storage.list(ROW_COPIES):
        instant = parse_row_copy(info.name)
        if instant is not None:
            result.setdefault(instant, []).append(info.path)
    return result


def drop_row_copies(storage: Storage, *, of: Container[str] = (), before: str | None = None) -> None:
    """Remove the copies of some instants, or of all instants before another one."""
    for instant, paths in row_copies_of(storage).items():
        if instant in of or (before is not None and instant < before):
            for path in paths:
                storage.delete(path)
