"""Slices with logs as files of rows, and the row numbers in them that do not count: for engines that read Parquet themselves.

The last word on a key stands in one place: a row of the base file, or of a row copy (`filegroup/row_copies.py`) of a log.
What was replaced or deleted is left out by its row number, so every other row is final: filters may be pushed to the files and
columns pruned, as no row has to meet another one. Which row numbers these are is found out here, from a few narrow columns
(`deletion_vectors.py`).

Logs without copies of exactly what the snapshot sees, such as those of other writers, are decoded: here if they are small,
and merged as row copies are (`log_merge.py`), else by `slice_reader`, row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.filegroup.log_blocks import changes_nothing, counted_logs
from hoodie.filegroup.log_scan import LogRecords, read_log_records
from hoodie.filegroup.row_copies import DELETED_KEY, ROW, UNKNOWN, LogShare, RowCopy, can_be_copied
from hoodie.filegroup.slice_reader import merge_columns
from hoodie.model.files import LogFile
from hoodie.model.instant import VisibleInstants
from hoodie.model.names import ROW_COPIES, parse_row_copy
from hoodie.model.plans import ReadContext, ReadTask
from hoodie.read.deletion_vectors import CopiedRows, ScanFile, base_files, known_deletion_vectors, known_row_copy
from hoodie.read.log_merge import LoggedSlice, LogRows, Part, Values, resolve
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import Cache


@dataclass(frozen=True)
class ScanFiles:
    files: tuple[ScanFile, ...]
    rows: pa.Table | None
    """Final rows that stand in none of the files."""
    rest: tuple[ReadTask, ...]
    """What has to be merged row by row."""


def plan_scan_files(
    storage: Storage, cache: Cache, context: ReadContext, tasks: Sequence[ReadTask], schema: pa.Schema
) -> ScanFiles:
    """Files of these slices, with their deletion vectors; `schema` are the columns that decoded rows have.

    Raises:
        CorruptFileError, UnsupportedTableError: of files that have to be looked into for it.
    """
    bases = [task.slice.base for task in tasks if not task.slice.logs and task.slice.base is not None]
    files = [ScanFile(base.path, base.size_bytes, base.instant) for base in bases]
    logged = [task for task in tasks if task.slice.logs]
    if not logged or not can_be_copied(context.rule) or context.history is not None:
        return ScanFiles(tuple(files), None, tuple(logged))
    copied = plan_row_copies(storage, cache, context, logged)
    files += copied.files
    small, rest = split_by_size([task for task in copied.others if _mergeable(task)], context.visible)
    rest += [task for task in copied.others if not _mergeable(task)]
    if not small:
        return ScanFiles(tuple(files), None, tuple(rest))
    decoded = decode_slices(storage, cache, context, small, schema)
    rows = decoded.rows if decoded.rows.num_rows else None
    return ScanFiles((*files, *decoded.files), rows, (*rest, *decoded.others))


class CopiedLog(NamedTuple):
    """The rows of one log file in a copy."""

    copy: RowCopy
    share: LogShare


class RowCopyPlan(NamedTuple):
    files: Sequence[ScanFile]
    """Base files and copies of the slices whose logs are all in copies."""
    logs: Mapping[str, CopiedLog]
    """Path of a log file -> its rows in a copy."""
    others: Sequence[ReadTask]
    """The slices that have other logs."""


def plan_row_copies(storage: Storage, cache: Cache, context: ReadContext, tasks: Sequence[ReadTask]) -> RowCopyPlan:
    """What row copies say of these slices, which have logs; of a rule with `can_be_copied` only.

    Raises:
        CorruptFileError: a base file cannot be read.
    """
    logs = _copied_logs(storage, cache, tasks, context.visible)
    covered = [_covered(storage, task, logs, context.visible) for task in tasks]
    files = known_deletion_vectors(storage, cache, context, [copied for copied in covered if copied is not None])
    if files is None:
        return RowCopyPlan((), logs, tasks)
    return RowCopyPlan(files, logs, [task for task, copied in zip(tasks, covered, strict=True) if copied is None])


def _copied_logs(
    storage: Storage, cache: Cache, tasks: Iterable[ReadTask], visible: VisibleInstants
) -> dict[str, CopiedLog]:
    """Path of a log file -> its rows in a copy."""
    counted = (log for task in tasks for log in counted_logs(task.slice.logs, visible).logs)
    times = {time for log in counted for time, _ in log.committed_entries}
    infos = [info for info in storage.list(ROW_COPIES) if parse_row_copy(info.name) in times]

    def read(info: FileInfo) -> dict[str, CopiedLog]:
        copy = known_row_copy(storage, cache, info)
        return {} if copy is None else {share.log: CopiedLog(copy, share) for share in copy.shares}

    result: dict[str, CopiedLog] = {}
    for logs in LocalEngine().run(read, infos, label="row copies", at_once=storage.can.at_once):
        result.update(logs)
    return result


def _covered(
    storage: Storage, task: ReadTask, logs: Mapping[str, CopiedLog], visible: VisibleInstants
) -> LoggedSlice | None:
    """None where a log has to be decoded to know what counts."""
    if not _mergeable(task):
        return None
    counted = counted_logs(task.slice.logs, visible)
    if any(log.stands_for is not None and _is_seen(log, visible) for log in counted.logs[1 if counted.by else 0 :]):
        return None  # what a log compaction wrote does not come first, and stands for rows of others
    used, others = [], []
    for log in counted.logs:
        copied = logs.get(log.path)
        if copied is None or not _is_of(copied, log):
            others.append(log)
        elif visible.sees(copied.copy.instant):
            used.append(copied)
    instants = frozenset(copied.copy.instant for copied in used)
    if not all(changes_nothing(storage, log, visible, instants) for log in others):
        return None
    parts = [Part(CopiedRows(copy), share.start, share.stop, share.base) for copy, share in used]
    # Stored rows of other commits take no part in a pull, and are not among its rows.
    return LoggedSlice(task.slice.base, tuple(parts), base_counts=task.span is None)


def _is_seen(log: LogFile, visible: VisibleInstants) -> bool:
    return any(visible.sees(instant) for instant, _ in log.committed_entries)


def _mergeable(task: ReadTask) -> bool:
    """Not so for a pull whose base file may have rows of the range, because only those take part in its merge."""
    base, span = task.slice.base, task.span
    if base is None or span is None:
        return True
    return span.only is None and span.begin is not None and base.instant <= span.begin


def _is_of(copied: CopiedLog, log: LogFile) -> bool:
    """Whether the copy has just what the snapshot sees of the log file: one commit wrote all of it, and that is the copy's."""
    copy, share = copied
    return log.size_bytes == log.committed_bytes == share.log_bytes and log.committed_entries == (
        (copy.instant, share.entries),
    )


MAX_LOG_BYTES = 32 * 1024 * 1024
"""Of all slices of a query together; the logs of the others are decoded where their rows are read."""


@dataclass(frozen=True, eq=False)
class DecodedRows(LogRows):
    """The records of a slice's logs, one of each key, as what logs say."""

    records: LogRecords

    @cached_property
    def kinds(self) -> np.ndarray:
        deletes = len(self.records.keys) - self.records.live
        return np.repeat(np.array([ROW, DELETED_KEY], np.int8), [self.records.live, deletes])

    @cached_property
    def positions(self) -> np.ndarray:
        return np.full(len(self.records.keys), UNKNOWN, np.int32)

    def values(self, storage: Storage, context: ReadContext, *, keys: bool, ordering: bool) -> Values:
        return Values(self.records.keys if keys else None, self.records.ordering if ordering else None)


class DecodedSlice(NamedTuple):
    files: Sequence[ScanFile]
    rows: pa.Table
    """What logs add: final, as those of the files are."""
    others: Sequence[ReadTask]
    """Slices whose log records hold some columns only."""


def split_by_size(tasks: Sequence[ReadTask], visible: VisibleInstants) -> tuple[list[ReadTask], list[ReadTask]]:
    """(slices whose logs are small in sum, the others)"""
    small: list[ReadTask] = []
    large: list[ReadTask] = []
    room = MAX_LOG_BYTES
    sizes = {id(task): _log_bytes(task, visible) for task in tasks}
    for task in sorted(tasks, key=lambda task: sizes[id(task)]):
        room -= sizes[id(task)]
        (small if room >= 0 else large).append(task)
    return small, large


def _log_bytes(task: ReadTask, visible: VisibleInstants) -> int:
    return sum(log.size_bytes for log in counted_logs(task.slice.logs, visible).logs)


def decode_slices(
    storage: Storage, cache: Cache, context: ReadContext, tasks: Sequence[ReadTask], schema: pa.Schema
) -> DecodedSlice:
    """The base files of the slices, and their log rows with the columns of `schema`.

    Raises:
        CorruptFileError, UnsupportedTableError: as `slice_reader` does.
    """
    columns = merge_columns(schema, context.rule, context.schema)
    logs = LocalEngine().run(
        partial(_decode, storage, context, columns), tasks, label="decode logs", at_once=storage.can.at_once
    )
    whole = [(task, DecodedRows(records)) for task, records in zip(tasks, logs, strict=True) if records.present is None]
    others = [task for task, records in zip(tasks, logs, strict=True) if records.present is not None]
    sources = [rows for _, rows in whole]
    slices = [_slice_of(task, rows) for task, rows in whole]
    resolution = resolve(storage, cache, context, slices, sources)
    row_numbers = [] if resolution is None else resolution.rows_of_source
    tables = [
        rows.records.data.take(pa.array(numbers)).select(schema.names)
        for rows, numbers in zip(sources, row_numbers, strict=True)
    ]
    files = [] if resolution is None else base_files(storage, cache, context, slices, resolution.dead)
    return DecodedSlice(files, pa.concat_tables(tables) if tables else schema.empty_table(), others)


def _decode(storage: Storage, context: ReadContext, schema: pa.Schema, task: ReadTask) -> LogRecords:
    return read_log_records(storage, task.slice, schema, rule=context.rule, visible=context.visible)


def _slice_of(task: ReadTask, rows: DecodedRows) -> LoggedSlice:
    # A pull: stored rows of other commits take no part.
    base = task.slice.base if task.span is None else None
    return LoggedSlice(base, (Part(rows, 0, len(rows.kinds), ""),), base_counts=base is not None)
