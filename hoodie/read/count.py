"""How many rows whole files have, without a look at a row: a commit of ours states it, else the footer.

A file counts as a whole where it is all of its slice, and the query has neither a filter nor a range. All other rows are read to be
counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.model.files import BaseFile
from hoodie.model.instant import InstantTime
from hoodie.model.plans import ChangeTask, ReadPlan, ReadTask
from hoodie.storage.base import Storage
from hoodie.txn.heartbeat import WRITER
from hoodie.view.context import TableContext

_THREADS = 16


class CountResult(NamedTuple):
    rows: int
    rest: Sequence[ReadTask | ChangeTask]
    """What is to be read for the others."""


def count_files(context: TableContext, plan: ReadPlan) -> CountResult:
    """The rows of files that count as a whole."""
    if plan.context.filter is not None:
        return CountResult(0, plan.tasks)
    rest: list[ReadTask | ChangeTask] = []
    unknown: dict[str, tuple[ReadTask, BaseFile]] = {}
    counts: dict[InstantTime, Mapping[str, int]] = {}
    rows = 0
    for task in plan.tasks:
        base = task.slice.base if isinstance(task, ReadTask) and task.span is None and task.whole is None else None
        if base is None or task.slice.logs or not isinstance(task, ReadTask):
            rest.append(task)
            continue
        if base.instant not in counts:
            counts[base.instant] = _stated_by(context, base.instant)
        count = counts[base.instant].get(f"{base.path}:{base.size_bytes}")
        if count is None:
            unknown[base.path] = task, base
        else:
            rows += count
    look = partial(_rows_of_footer, context.storage)
    footers = LocalEngine(_THREADS).run(look, [base for _, base in unknown.values()], label="footers")
    for (task, _), count_of_file in zip(unknown.values(), footers, strict=True):
        if count_of_file is None:
            rest.append(task)
        else:
            rows += count_of_file
    return CountResult(rows, rest)


def _stated_by(context: TableContext, instant: InstantTime) -> Mapping[str, int]:
    """Path and size of each base file of a commit -> its rows; what other writers count is not known."""
    timeline = context.active.last_loaded()
    commit = None if timeline is None else timeline.commit_at.get(instant)
    if commit is None:
        return {}
    metadata = context.active.read_commit(commit)
    if WRITER not in metadata.extra:
        return {}
    return {
        f"{stat.path}:{stat.file_size_bytes}": stat.num_writes for stat in metadata.stats() if stat.log_version is None
    }


def _rows_of_footer(storage: Storage, base: BaseFile) -> int | None:
    """None where the footer does not agree with itself: whoever reads the file says what is wrong with it."""
    try:
        with open_base_file(storage, base) as (_, metadata):
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            values = [
                group.column(at).num_values >= group.num_rows for group in groups for at in range(group.num_columns)
            ]
            count: int = metadata.num_rows
            return count if all(values) and sum(group.num_rows for group in groups) == count else None
    except (CorruptFileError, pa.ArrowException):
        return None
