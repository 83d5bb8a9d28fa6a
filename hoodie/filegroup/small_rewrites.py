"""Small base files that get rows of a batch, a hundred at a time: the stored rows of all of them meet the new ones in one merge.

Each file is as `run_write` makes it, but that its bloom filter is always built by its keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.filegroup.footer_keys import footer_chains
from hoodie.filegroup.new_base_file import base_file_name, file_result, new_attempt
from hoodie.filegroup.ordering import whole
from hoodie.filegroup.picks import rows_at
from hoodie.filegroup.run import deletes_of, run_write, stamped
from hoodie.filegroup.slice_reader import read_slice
from hoodie.filegroup.small_base_files import can_make_together, most_rows, write_small_base_files
from hoodie.filegroup.stored_merge import Newer, merge_with_stored
from hoodie.model.files import FileGroupId
from hoodie.model.meta_fields import FILE_NAME, RECORD_KEY
from hoodie.model.plans import MergeTask, WriteContext, WriteResult
from hoodie.storage.base import Storage

pc: Any = pyarrow.compute
_SMALL_BYTES = 128 * 1024
"""Of a task, which counts a file three times: that of a hundred rows of 20 columns has 24 KB."""
_MOST_BYTES = 1024 * 1024
"""Of a file's rows in memory: a small one may hold a large text many times."""
_LARGE_AT_FIRST = 3
_LARGE_OF = 8
"""Of so many files one may have more rows, which are read in vain."""


def is_small_rewrite(task: MergeTask) -> bool:
    """Whether it may be done with others, as far as its file says."""
    base = task.slice.base
    return base is not None and not base.source and not task.slice.logs and task.size_bytes <= _SMALL_BYTES


def can_rewrite_together(context: WriteContext) -> bool:
    """Whether nobody asks what a file changed, and its rows are stored as they are."""
    return context.change_logs is None and context.unstored is None and can_make_together(context)


def write_small_rewrites(
    storage: Storage, context: WriteContext, tasks: Sequence[MergeTask], rows: pa.Table, task_of: np.ndarray
) -> list[WriteResult | None] | None:
    """The results of the tasks, None where there are no rows for it; or None where most files have more rows than a few.

    `rows`: as prepared, those of a task one after the other. `task_of`: the number of its task for each.
    """
    attempt, numbers = new_attempt(), np.arange(len(tasks))
    names = [base_file_name(context, attempt, number=task.number, file_id=task.file_id) for task in tasks]
    counts = np.bincount(task_of, minlength=len(tasks))
    prefixes = pa.array([f"{context.instant}_{task.number}" for task in tasks], pa.string()).take(pa.array(task_of))
    at = np.arange(len(task_of)) - (np.cumsum(counts) - counts)[task_of]
    file_names = pa.array(names, pa.string())
    new = stamped(rows, context, prefixes, at, file_names.take(pa.array(task_of)))
    found = _stored(storage, context, tasks, file_names)
    if found is None:
        return None
    stored, stored_task, is_small = found
    ordering, is_delete, always = deletes_of(rows, context)
    newer = Newer(_by_task(new.column(RECORD_KEY), task_of), new, ordering, is_delete, always)
    kept, is_stored = np.ones(stored.num_rows, dtype=bool), np.zeros(len(task_of), dtype=bool)
    parts, task_of_parts = [pa.Table.from_batches([stored])], [stored_task]
    updates = deletes = np.zeros(len(tasks), dtype=np.int64)
    if not tasks[0].concat:
        keys = _by_task(stored.column(RECORD_KEY), stored_task)
        merge = merge_with_stored(stored, newer, context.rule, is_stored, keys)
        is_stored[merge.first_matches] = True
        kept[merge.older] = kept[merge.deleted_rows] = False
        updates = np.bincount(stored_task[merge.older], minlength=len(tasks))
        deletes = np.bincount(stored_task[merge.deleted_rows], minlength=len(tasks))
        parts = [pa.Table.from_batches([merge.unchanged]), merge.merged]
        task_of_parts = [stored_task[kept], stored_task[merge.older]]
    fresh = ~is_stored & ~is_delete
    whole_rows = pa.concat_tables([*parts, new.filter(pa.array(fresh))])
    file_of = np.concatenate([*task_of_parts, task_of[fresh]])
    whole_rows = rows_at(whole_rows, np.argsort(file_of, kind="stable")).combine_chunks()
    starts = np.searchsorted(np.sort(file_of), [*numbers, len(tasks)])
    inserts = np.bincount(task_of[fresh], minlength=len(tasks))

    def result_of(n: int, staged: str, count: int, **more: Any) -> WriteResult:
        task = tasks[n]
        group = FileGroupId(task.partition_path, task.file_id)
        return file_result(
            group,
            staged,
            "MERGE",
            task.slice,
            num_writes=count,
            num_inserts=int(inserts[n]),
            num_updates=int(updates[n]),
            num_deletes=int(deletes[n]),
            **more,
        )

    chains = footer_chains(whole(whole_rows.column(RECORD_KEY)), context.files)
    wanted, parts_of = is_small & (counts > 0), (whole_rows, starts.tolist(), chains)
    results = write_small_base_files(storage, context, names, *parts_of, result_of, wanted=wanted, commit_time=None)
    by_itself = partial(run_write, storage, context)
    return [
        by_itself(task) if result is None and counts[n] else result
        for n, (task, result) in enumerate(zip(tasks, results, strict=True))
    ]


def _by_task(keys: pa.ChunkedArray | pa.Array, task_of: np.ndarray) -> pa.Array:
    """Texts that are equal where key and task are."""
    return whole(pc.binary_join_element_wise(pa.array(task_of).cast(pa.string()), keys, "/"))


def _stored(
    storage: Storage, context: WriteContext, tasks: Sequence[MergeTask], file_names: pa.Array
) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray] | None:
    """The stored rows of the tasks, with the names of the files that come, and the number of its task for each; for each task,
    whether its rows are few. Those of others are not there, and of many others nothing is.
    """
    full = context.full_schema
    at = full.get_field_index(FILE_NAME)
    schema, reading, most = full.remove(at), context.reading(), most_rows(context)
    tables, is_small = [], np.ones(len(tasks), dtype=bool)
    for n, task in enumerate(tasks):
        batches, count, size_bytes = [], 0, 0
        for batch in read_slice(storage, reading, task.slice, schema):
            count, size_bytes = count + batch.num_rows, size_bytes + batch.nbytes
            batches.append(batch)
            if count > most or size_bytes > _MOST_BYTES:
                batches, is_small[n] = [], False
                break
        if np.count_nonzero(~is_small) > _LARGE_AT_FIRST + n // _LARGE_OF:
            return None
        tables.append(pa.Table.from_batches(batches, schema=schema))
    task_of = np.repeat(np.arange(len(tasks)), [table.num_rows for table in tables])
    columns = [whole(column) for column in pa.concat_tables(tables).columns]
    columns.insert(at, file_names.take(pa.array(task_of)))
    return pa.RecordBatch.from_arrays(columns, schema=full), task_of, is_small
