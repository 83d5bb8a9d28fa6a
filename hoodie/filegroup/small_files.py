"""Small files of one write, made together: what it takes Arrow to begin with a few rows it takes once for a hundred files.

Each file is as `run_write` makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.engine.base import Engine
from hoodie.filegroup.chunks import matched_rows
from hoodie.filegroup.equal_texts import may_be_equal
from hoodie.filegroup.footer_keys import footer_chains
from hoodie.filegroup.log_writer import encode_contents
from hoodie.filegroup.new_base_file import avro_of, base_file_name, file_result, new_attempt
from hoodie.filegroup.ordering import bools, whole
from hoodie.filegroup.picks import rows_at
from hoodie.filegroup.positions import by_place
from hoodie.filegroup.row_copies import copied_rows
from hoodie.filegroup.run import (
    LogRows,
    as_one,
    deletes_of,
    run_write,
    split,
    stamped,
    stated_time,
    takes_places,
    task_rows,
    write_append,
    write_create,
)
from hoodie.filegroup.small_base_files import write_small_base_files
from hoodie.filegroup.small_rewrites import can_rewrite_together, is_small_rewrite, write_small_rewrites
from hoodie.filegroup.staging import stage_all
from hoodie.filegroup.unused_memory import release_maps
from hoodie.format.column_stats import ranges_of_parts
from hoodie.hashes.of_keys import in_groups, key_hash
from hoodie.model.enums import RowCopies
from hoodie.model.files import FileGroupId
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import DELETED, AppendTask, CreateTask, MergeTask, WriteContext, WriteResult, WriteTask
from hoodie.storage.base import Storage

_SMALL_BYTES = 64 * 1024
_MOST_TASKS = 100
_MOST_ROWS = 8192


def parcels(tasks: Sequence[WriteTask]) -> list[list[WriteTask]]:
    """The tasks in their order, in parcels of small ones of one kind; all others are alone."""
    result: list[list[WriteTask]] = []
    rows = 0
    for task in tasks:
        count = sum(m.count for m in task.updates) + (task.inserts.rows if task.inserts is not None else 0)
        is_small = is_small_rewrite(task) if isinstance(task, MergeTask) else task.size_bytes <= _SMALL_BYTES
        joins = is_small and rows and _kind(result[-1][-1]) == _kind(task) and len(result[-1]) < _MOST_TASKS
        if joins and rows + count <= _MOST_ROWS:
            result[-1].append(task)
            rows += count
        else:
            result.append([task])
            rows = count if is_small else 0
    return result


def _kind(task: WriteTask) -> tuple[type[WriteTask], bool]:
    return type(task), isinstance(task, MergeTask) and task.concat


def run_tasks(
    engine: Engine, storage: Storage, context: WriteContext, tasks: Sequence[WriteTask], *, label: str, at_once: int = 1
) -> list[WriteResult | None]:
    """What the tasks give, in their order. Where each waits for a far storage, or is sent to another process, they stay apart."""
    if not engine.shares_memory or storage.can.at_once > 1:
        return engine.run(partial(run_write, storage, context), tasks, label=label, at_once=at_once)
    results = engine.run(partial(run_writes, storage, context), parcels(tasks), label=label)
    return [result for each in results for result in each]


def run_writes(storage: Storage, context: WriteContext, tasks: Sequence[WriteTask]) -> list[WriteResult | None]:
    """`run_write` of each."""
    results = None
    if (
        len(tasks) > 1
        and context.rule.merger is None
        and context.set_columns is None
        and not (context.sort_by_key or context.only_stored)
        and not (isinstance(tasks[0], MergeTask) and not can_rewrite_together(context))
    ):
        try:
            results = _written(storage, context, tasks)
        finally:
            release_maps()
    return [run_write(storage, context, task) for task in tasks] if results is None else results


def _written(storage: Storage, context: WriteContext, tasks: Sequence[WriteTask]) -> list[WriteResult | None] | None:
    """The results of the tasks; None where each file is to be written by itself: rows of one may share a key, or most are large."""
    tables, task_of = _rows_of(storage, context, tasks)
    if not len(task_of):
        return [None] * len(tasks)
    rows = as_one(tables, context).combine_chunks()
    if (task_of[1:] < task_of[:-1]).any():
        order = np.argsort(task_of, kind="stable")
        rows, task_of = rows_at(rows, order), task_of[order]
    if may_be_equal(rows, context, [task.partition_path for task in tasks]):
        return None
    if context.combine:
        deletes_of(rows, context, batch=True)  # raises where deletes cannot be ordered
        if len(np.unique(in_groups(key_hash(rows.column(RECORD_KEY)), task_of))) < rows.num_rows:
            return None
    rewrites = [task for task in tasks if isinstance(task, MergeTask)]
    if rewrites:
        return write_small_rewrites(storage, context, rewrites, rows, task_of)
    flags = bools(rows.column(DELETED)) if DELETED in rows.column_names else np.zeros(len(rows), dtype=bool)
    live, deleted = split(rows)
    of_live = task_of[~flags]
    live, deleted = by_place(live, context, of_live), by_place(deleted, context, task_of[flags])
    counts = np.bincount(of_live, minlength=len(tasks))
    starts = np.concatenate([[0], np.cumsum(counts)])
    delete_starts = np.concatenate([[0], np.cumsum(np.bincount(task_of[flags], minlength=len(tasks)))])
    places = pa.array(of_live)
    numbers = np.arange(len(of_live)) - starts[of_live]
    prefixes = pa.array([f"{context.instant}_{task.number}" for task in tasks], pa.string()).take(places)
    is_log = isinstance(tasks[0], AppendTask)
    attempt = new_attempt()
    names = [
        task.file_id if is_log else base_file_name(context, attempt, number=task.number, file_id=task.file_id)
        for task in tasks
    ]
    new = stamped(live, context, prefixes, numbers, pa.array(names, pa.string()).take(places))
    if not is_log:
        creates = [task for task in tasks if isinstance(task, CreateTask)]
        stores_keys = context.unstored is None or not context.unstored.keys
        chains = footer_chains(whole(new.column(RECORD_KEY)), context.files) if stores_keys else None

        def result_of(n: int, staged: str, count: int, **more: Any) -> WriteResult:
            group = FileGroupId(creates[n].partition_path, creates[n].file_id)
            return file_result(group, staged, "CREATE", None, num_writes=count, num_inserts=count, **more)

        parts_of = new, starts.tolist(), chains
        results = write_small_base_files(storage, context, names, *parts_of, result_of, commit_time=context.instant)
        for n, task in enumerate(creates):
            if results[n] is None and counts[n]:
                part = new.slice(starts[n], counts[n])
                own = chains if chains is None else chains[:, starts[n] : starts[n + 1]]
                results[n] = write_create(storage, context, new_attempt(), task, [part], own)
        return results
    if context.unstored is not None:
        new = context.unstored.stored(new)
    parts, lives = _cut(new, starts), _cut(live, starts)
    contents: Sequence[bytes | None] = encode_contents(context, avro_of(context), new, counts.tolist()) or ()
    ranges = ranges_of_parts(new, starts.tolist(), commit_time=stated_time(context))
    copies: Sequence[pa.Table | None] = [None] * len(tasks)
    if context.row_copies is not RowCopies.NONE and not deleted.num_rows:
        copies = _cut(copied_rows(new, live, deleted, context.rule), starts)
    deletes = _cut(deleted, delete_starts)
    files: list[tuple[str, bytes | memoryview]] = []
    results = [
        write_append(
            storage,
            context,
            attempt,
            task,
            LogRows(part, lives[n], deletes[n], contents[n] if contents else None, ranges[n], copies[n]),
            files,
        )
        if counts[n] or deletes[n].num_rows
        else None
        for n, (task, part) in enumerate(zip(tasks, parts, strict=True))
        if isinstance(task, AppendTask)
    ]
    stage_all(storage, files, folder=context.staging)
    return results


def _rows_of(storage: Storage, context: WriteContext, tasks: Sequence[WriteTask]) -> tuple[list[pa.Table], np.ndarray]:
    """The rows of the tasks in any order of these, those of one in arrival order; and for each the number of its task."""
    numbers = np.arange(len(tasks))
    is_log = isinstance(tasks[0], AppendTask)
    if all(task.inserts is None and (not isinstance(task, AppendTask) or task.of == 1) for task in tasks):
        found = [(matches, n) for n, task in enumerate(tasks) for matches in task.updates]
        found.sort(key=lambda each: each[0].number)
        pieces = [piece for task in tasks for piece in task.pieces]
        updates = [matches for matches, _ in found]
        task_of = np.repeat(np.array([n for _, n in found], dtype=np.int64), [matches.count for matches in updates])
        return matched_rows(storage, pieces, updates, places=is_log and takes_places(context)), task_of
    tables = [[table for each in task_rows(storage, context, task) for table in each] for task in tasks]
    counts = [sum(table.num_rows for table in each) for each in tables]
    return [table for each in tables for table in each], np.repeat(numbers, counts)


def _cut(rows: pa.Table, bounds: np.ndarray) -> list[pa.Table]:
    return [rows.slice(start, end - start) for start, end in pairwise(bounds.tolist())]
