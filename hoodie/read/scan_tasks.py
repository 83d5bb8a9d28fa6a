"""Slices whose logs stand in row copies, read by this process: files of final rows, streamed without their dead rows.

No log is decoded and no keys are compared: base files and copies are read once, side by side, and what newer rows replaced is left
out by its row number (`scan_files.py` finds these numbers). All other slices are merged row by row (`filegroup/slice_reader.py`).

A copy decides nothing here either. Where it turns out to be gone or damaged while it is read, its rows come from the logs that it is
a copy of: they stand there in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.filegroup.log_blocks import counted_logs
from hoodie.filegroup.log_scan import read_log_rows
from hoodie.filegroup.row_copies import can_be_copied
from hoodie.filegroup.run import run_read
from hoodie.filegroup.slice_reader import (
    filter_errors,
    keep_rows,
    merge_columns,
    needed_columns,
    read_base_file,
    read_sought_rows,
)
from hoodie.model.files import LogFile
from hoodie.model.instant import InstantRange
from hoodie.model.plans import ChangeTask, ReadContext, ReadTask
from hoodie.read.deletion_vectors import ScanFile
from hoodie.read.scan_files import plan_row_copies
from hoodie.storage.base import Storage
from hoodie.view.context import TableContext

_TOO_WIDE = 4
"""Copies are not used where they have more than so many times the rows that the query may want: logs of other partitions stand in
them too."""


@dataclass(frozen=True)
class FileTask:
    """Read the rows of one file that count."""

    file: ScanFile
    columns: tuple[str, ...]
    span: InstantRange | None
    copy_of: tuple[tuple[int, LogFile], ...] = ()
    """Of a row copy: where in it the rows of each of these logs begin."""


Task = ReadTask | ChangeTask | FileTask


def with_scan_files(
    table: TableContext, context: ReadContext, tasks: Sequence[ReadTask | ChangeTask]
) -> tuple[Task, ...]:
    """The tasks, with those of slices whose logs are in copies replaced by the files of their final rows: copies stand last.

    Raises:
        CorruptFileError: a base file cannot be read.
    """
    logged = [task for task in tasks if isinstance(task, ReadTask) and task.slice.logs]
    entries = _entries(logged, context)
    if (
        not logged
        or entries > table.tuning.merged_entries
        or not can_be_copied(context.rule)
        or context.history is not None
        or context.unstored is not None
        or any(task.slice.base is not None and task.slice.base.source for task in logged)
    ):
        return tuple(tasks)
    plan_of_copies = plan_row_copies(table.storage, table.cache, context, logged)
    others = {id(task) for task in plan_of_copies.others}
    covered = [task for task in logged if id(task) not in others]
    copies = {copied.copy.path: copied.copy.rows for copied in plan_of_copies.logs.values()}
    files = {file.path: file for file in plan_of_copies.files}
    if sum(copies[path] for path in files if path in copies) > _TOO_WIDE * _entries(covered, context):
        return tuple(tasks)
    columns, span = (logged[0].columns, logged[0].span) if logged else ((), None)
    copy_of: dict[str, list[tuple[int, LogFile]]] = {}
    for log in (log for task in covered for log in task.slice.logs):
        copied = plan_of_copies.logs.get(log.path)
        if copied is not None:
            copy_of.setdefault(copied.copy.path, []).append((copied.share.start, log))
    planned: list[Task] = []
    replaced = {id(task) for task in covered}
    for task in tasks:
        base = task.slice.base
        if id(task) not in replaced:
            planned.append(task)
        elif base is not None and base.path in files:
            planned.append(FileTask(files[base.path], columns, span))
    planned += [
        FileTask(file, columns, span, tuple(sorted(copy_of.get(path, ()))))
        for path, file in files.items()
        if path in copies
    ]
    return tuple(planned)


def _entries(tasks: Iterable[ReadTask], context: ReadContext) -> int:
    logs = (log for task in tasks for log in counted_logs(task.slice.logs, context.visible).logs)
    return sum(count for log in logs for _, count in log.committed_entries)


def run_task(storage: Storage, context: ReadContext, task: Task) -> Iterator[pa.RecordBatch]:
    """`run_read`, also of the final rows of one file."""
    if not isinstance(task, FileTask):
        yield from run_read(storage, context, task)
        return
    schema = needed_columns(context, task.columns, task.span)
    for rows in _living(storage, context, task, schema):
        with filter_errors(context):
            accepted = keep_rows(rows, context.filter, task.span)
        if accepted.num_rows:
            yield accepted if len(schema) == len(task.columns) else accepted.select(task.columns)


def _living(storage: Storage, context: ReadContext, task: FileTask, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    at, key_filter = 0, None if context.filter is None else context.filter.key_filter
    try:
        if key_filter is not None and not task.copy_of:
            for numbers, batch in read_sought_rows(storage, task.file, schema, key_filter):
                yield _alive(task.file.dead, batch, numbers)
            return
        for batch in read_base_file(storage, task.file, schema):
            yield _without(task.file.dead, batch, at)
            at += batch.num_rows
    except CorruptFileError:
        if not task.copy_of:
            raise
        yield from _from_logs(storage, context, task, schema, at)


def _from_logs(
    storage: Storage, context: ReadContext, task: FileTask, schema: pa.Schema, at: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a copy from row `at` on, without the copy."""
    columns = merge_columns(schema, context.rule, context.schema)
    for first, log in task.copy_of:
        rows = read_log_rows(storage, log, columns, rule=context.rule, visible=context.visible).select(schema.names)
        passed = min(max(0, at - first), rows.num_rows)
        for batch in rows.slice(passed).combine_chunks().to_batches():
            yield _without(task.file.dead, batch, first + passed)
            passed += batch.num_rows


def _alive(dead: np.ndarray | None, batch: pa.RecordBatch, numbers: np.ndarray) -> pa.RecordBatch:
    """The batch, whose rows have these numbers, without its dead rows."""
    if dead is None:
        return batch
    alive = ~np.isin(numbers, dead, assume_unique=True)
    return batch if alive.all() else batch.filter(pa.array(alive))


def _without(dead: np.ndarray | None, batch: pa.RecordBatch, at: int) -> pa.RecordBatch:
    """The batch without its dead rows; its first row has the number `at`."""
    if dead is None:
        return batch
    start, stop = np.searchsorted(dead, (at, at + batch.num_rows))
    if start == stop:
        return batch
    alive = np.ones(batch.num_rows, dtype=bool)
    alive[dead[start:stop] - at] = False
    return batch.filter(pa.array(alive))
