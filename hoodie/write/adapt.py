"""The remaining work of a write after others were completed first: which of its tasks are unchanged. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

import numpy as np

from hoodie.model.files import FileSlice
from hoodie.model.plans import AppendTask, CreateTask, Inserts, Matches, MergeTask, WriteTask
from hoodie.write.plan import WritePlan


def adapted(before: WritePlan, now: WritePlan, *, numbers_used: int, logs_stand_alone: bool) -> WritePlan:
    """The new plan, with the tasks of the old one wherever they write the same rows to the same place.

    Args:
        numbers_used: task numbers below this one have been given away; a task that is new gets another one.
        logs_stand_alone: a log has in it what came with the batch, and nothing of what is stored. Then it may stay although its
            slice has got other logs, as long as its version is above theirs.
    """
    old_tasks = {_contents(task, logs_stand_alone): task for task in before.tasks}
    tasks: list[WriteTask] = []
    for task in now.tasks:
        same = old_tasks.get(_contents(task, logs_stand_alone))
        if same is not None and _stays_above(same, task):
            tasks.append(same)
        else:
            tasks.append(replace(task, number=numbers_used))
            numbers_used += 1
    return replace(now, tasks=tuple(tasks))


def _contents(task: WriteTask, logs_stand_alone: bool) -> Hashable:
    """What a task reads and writes, by value; not the name of a new file group, which is left to chance."""
    rows = (_rows(task.updates), None if task.inserts is None else _share(task.inserts))
    match task:
        case CreateTask():
            return "create", task.partition_path, rows
        case MergeTask():
            return "merge", task.slice.group, _files(task.slice, logs=True), task.concat, rows
        case AppendTask():
            files = _files(task.slice, logs=not logs_stand_alone)
            return "append", task.slice.group, files, task.deletes, task.share, task.of, rows


def _files(file_slice: FileSlice, *, logs: bool) -> Hashable:
    """The files of a slice; of its logs those that are committed."""
    base = file_slice.base.name if file_slice.base else None
    committed = [log.name for log in file_slice.logs if log.committed_bytes is not None] if logs else ()
    return file_slice.base_instant, base, tuple(committed)


def _share(inserts: Inserts) -> Hashable:
    pieces = tuple((piece.number, piece.span) for piece in inserts.pieces)
    return pieces, _rows(inserts.matches), inserts.low, inserts.high, inserts.of


def _rows(matches: Iterable[Matches]) -> Hashable:
    """The rows of the batch, whichever file they were found in; those whose numbers are staged go by the name of that file."""
    by_chunk: dict[int, list[np.ndarray]] = {}
    staged = []
    for each in matches:
        if each.count and each.rows is not None:
            by_chunk.setdefault(each.number, []).append(each.rows)
        elif each.count:
            staged.append((each.number, each.path, each.start, each.count))
    in_memory = ((number, np.sort(np.concatenate(rows)).tobytes()) for number, rows in sorted(by_chunk.items()))
    return tuple(in_memory), tuple(sorted(staged))


def _stays_above(task: WriteTask, now: WriteTask) -> bool:
    """Whether a log stands behind those that others have committed to its slice meanwhile."""
    if not isinstance(task, AppendTask) or not isinstance(now, AppendTask):
        return True
    return all(log.version < task.log_version for log in now.slice.logs if log.committed_bytes is not None)
