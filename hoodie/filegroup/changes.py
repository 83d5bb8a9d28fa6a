"""What one commit changed in one file group: inserts, updates and deletes with the row before and after.

The slice before the commit is compared with the slice after it. A stored row is the same row as long as it keeps its key,
commit time and sequence number, through any rewriting of files. A row of the older slice alone is a delete, a row of the
newer slice alone is an insert, and both of one key are an update. Where the commit added logs only, nothing but the keys in
its own blocks is compared. A row that lost against the stored one changed nothing and is not in the feed. (Apache Hudi's
change queries give the same events: integration/test_changes_with_hudi.py.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.log_scan import read_log_records
from hoodie.filegroup.merge import positions_in
from hoodie.filegroup.picks import in_few_batches, rows_at
from hoodie.filegroup.slice_reader import filter_errors, read_slice
from hoodie.format.json_text import json_text
from hoodie.model.enums import ChangeFormat, ChangePart
from hoodie.model.files import FileSlice
from hoodie.model.instant import VisibleInstants
from hoodie.model.meta_fields import COMMIT_SEQNO, COMMIT_TIME, META_COLUMNS, RECORD_KEY
from hoodie.model.plans import ChangeTask, ReadContext, RowFilter
from hoodie.storage.base import Storage

OP, INSTANT, TS_MS, BEFORE, AFTER = "op", "instant", "ts_ms", "before", "after"
INSERT, UPDATE, DELETE = "i", "u", "d"

_IDENTITY = (RECORD_KEY, COMMIT_TIME, COMMIT_SEQNO)
_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 256 * 1024 * 1024
_NONE = -1

Ints = np.ndarray


def change_schema(images: pa.Schema, kind: ChangeFormat) -> pa.Schema:
    """Columns of the answer: op (i, u, d), the commit's instant, and the row before and after."""
    row = pa.string() if kind is ChangeFormat.CDC else pa.struct(_nullable(images))
    time = TS_MS if kind is ChangeFormat.CDC else INSTANT
    return pa.schema([(OP, pa.string()), (time, pa.string()), (BEFORE, row), (AFTER, row)])


def _nullable(images: pa.Schema) -> list[pa.Field]:
    """Fields of before and after: those of a row that is not there are null."""
    return [field.with_nullable(True) for field in images]


def read_changes(storage: Storage, context: ReadContext, task: ChangeTask) -> Iterator[pa.RecordBatch]:
    """The changes of a task, batch by batch."""
    extra = context.filter.columns if context.filter else ()
    needed = dict.fromkeys([*_IDENTITY, *task.images, *extra])
    schema = pa.schema([context.schema.field(name) for name in needed])
    if task.before is None or task.after is None:
        visible = task.seen_before if task.after is None else task.seen_after
        for batch in _rows(storage, context, task.slice, schema, visible):
            rows, none = pa.Table.from_batches([batch]), schema.empty_table()
            every, nothing = np.arange(batch.num_rows), np.full(batch.num_rows, _NONE)
            if task.after is None:
                yield from _feed_rows(rows, none, every, nothing, context, task)
            else:
                yield from _feed_rows(none, rows, nothing, every, context, task)
        return
    if task.before.base == task.after.base:
        old_rows, new_rows = _compare_by_logs(storage, context, task, task.before, task.after, schema)
    else:
        old_rows, new_rows = _compare_whole(storage, context, task, task.before, task.after, schema)
    left, right = _paired(old_rows, new_rows)
    if task.part is not ChangePart.WHOLE:
        in_part = (right < 0) == (task.part is ChangePart.DELETES)
        left, right = left[in_part], right[in_part]
    if task.part is ChangePart.DELETES:
        new_rows = schema.empty_table()
    yield from _feed_rows(old_rows, new_rows, left, right, context, task)


def _rows(
    storage: Storage, context: ReadContext, file_slice: FileSlice, schema: pa.Schema, visible: VisibleInstants
) -> Iterator[pa.RecordBatch]:
    return read_slice(storage, replace(context, visible=visible), file_slice, schema)


def _compare_by_logs(
    storage: Storage, context: ReadContext, task: ChangeTask, before: FileSlice, after: FileSlice, schema: pa.Schema
) -> tuple[pa.Table, pa.Table]:
    """(old rows, new rows) of a commit that added logs: only keys in its blocks can have changed."""
    own = replace(task.seen_after, only=frozenset({task.instant}))
    # All columns: that shows whether its blocks lack some.
    records = read_log_records(storage, after, context.schema, rule=context.rule, visible=own, history=context.history)
    told_by = _telling(context, partial=records.present is not None)
    needed = _with(schema, told_by)
    old_rows, new_rows = (
        _collected((b.filter(pc.is_in(b.column(RECORD_KEY), value_set=records.keys)) for b in batches), needed)
        for batches in (
            _rows(storage, context, before, needed, task.seen_before),
            _rows(storage, context, after, needed, task.seen_after),
        )
    )
    old_ids, new_ids = _ids(old_rows, told_by), _ids(new_rows, told_by)
    return (
        old_rows.filter(pc.invert(pc.is_in(old_ids, value_set=new_ids))),
        new_rows.filter(pc.invert(pc.is_in(new_ids, value_set=old_ids))),
    )


def _compare_whole(
    storage: Storage, context: ReadContext, task: ChangeTask, before: FileSlice, after: FileSlice, schema: pa.Schema
) -> tuple[pa.Table, pa.Table]:
    """(old rows, new rows) of a commit that rewrote the base file: first which rows they are, then those rows alone."""
    told_by = _telling(context)
    old, new = (
        pa.concat_arrays([pa.array([], pa.string()), *(_ids(b, told_by) for b in batches)])
        for batches in (
            _rows(storage, context, before, told_by, task.seen_before),
            _rows(storage, context, after, told_by, task.seen_after),
        )
    )
    at = positions_in(old, new)
    is_fresh = np.ones(len(new), dtype=bool)
    is_fresh[at[at >= 0]] = False
    columns = told_by if task.part is ChangePart.DELETES else schema
    return (
        _chosen(_rows(storage, context, before, schema, task.seen_before), at < 0, schema),
        _chosen(_rows(storage, context, after, columns, task.seen_after), is_fresh, columns),
    )


def _telling(context: ReadContext, *, partial: bool = False) -> pa.Schema:
    """The columns that tell a version of a row from all others.

    Where rows are merged field by field, a row may take fields of a later one that lost against it, and keep its times: then
    its values tell, too.
    """
    names: Sequence[str] = _IDENTITY
    if partial or context.rule.fill is not None or context.rule.merger is not None:
        names = [*_IDENTITY, *(name for name in context.schema.names if name not in META_COLUMNS)]
    return pa.schema([context.schema.field(name) for name in names])


def _with(schema: pa.Schema, more: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, *(field for field in more if field.name not in schema.names)])


def _chosen(batches: Iterator[pa.RecordBatch], chosen: np.ndarray, schema: pa.Schema) -> pa.Table:
    """The rows at which `chosen` is true; nothing is read where it never is."""

    def filtered_batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in batches:
            yield batch.filter(pa.array(chosen[start : start + batch.num_rows]))
            start += batch.num_rows

    return _collected(filtered_batches(), schema) if chosen.any() else schema.empty_table()


def _collected(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches((batch for batch in batches if batch.num_rows), schema=schema)
    return pa.Table.from_batches(in_few_batches(table), schema=schema)


def _ids(rows: pa.Table | pa.RecordBatch, told_by: pa.Schema) -> pa.Array:
    """A text for each row that is equal where these columns are; its parts cannot run into each other."""
    values = [field for field in told_by if field.name not in _IDENTITY]
    parts = [pc.fill_null(rows.column(name), "") for name in (COMMIT_TIME, COMMIT_SEQNO)]
    if values:
        table = pa.table(rows.select([field.name for field in values])).combine_chunks()
        parts.append(json_text(table.to_struct_array().combine_chunks()))
    texts = pc.binary_join_element_wise(*parts, pc.fill_null(rows.column(RECORD_KEY), ""), " ")
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _paired(old_rows: pa.Table, new_rows: pa.Table) -> tuple[Ints, Ints]:
    """Row numbers of old and new rows, side by side where they have one key; -1 where there is no other.

    Of a key that is stored several times the first old row goes with the first new one, and so on.
    """
    keys = pa.concat_arrays(
        [*old_rows.column(RECORD_KEY).chunks, *new_rows.column(RECORD_KEY).chunks] or [pa.array([], "string")]
    )
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    old, new = codes[: old_rows.num_rows], codes[old_rows.num_rows :]
    old_ids, new_ids = (_occurrences(side) * (len(codes) + 1) + side for side in (old, new))
    _, left, right = np.intersect1d(old_ids, new_ids, assume_unique=True, return_indices=True)
    partner = np.full(len(old), _NONE)
    partner[left] = right
    inserted = np.setdiff1d(np.arange(len(new)), right, assume_unique=True)
    return (
        np.concatenate([np.arange(len(old)), np.full(len(inserted), _NONE)]),
        np.concatenate([partner, inserted]),
    )


def _occurrences(codes: Ints) -> Ints:
    """How many equal codes stand before each."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(codes) else np.empty(0, dtype=np.int64)
    lengths = np.diff(np.append(starts, len(codes)))
    result = np.empty(len(codes), dtype=np.int64)
    result[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return result


def _feed_rows(
    old_rows: pa.Table, new_rows: pa.Table, left: Ints, right: Ints, context: ReadContext, task: ChangeTask
) -> Iterator[pa.RecordBatch]:
    """The answer's rows for pairs of row numbers, of those pairs that the filter accepts on either side."""
    if context.filter is not None:
        with filter_errors(context):
            accepted = _accepted(old_rows, context.filter)[left] | _accepted(new_rows, context.filter)[right]
        left, right = left[accepted], right[accepted]
    images = pa.schema([context.schema.field(name) for name in task.images])
    schema = change_schema(images, task.format)
    output = pa.schema([schema.field(name) for name in task.columns])
    ops = np.where(left < 0, INSERT, np.where(right < 0, DELETE, UPDATE))
    bytes_a_row = max(table.nbytes / max(1, table.num_rows) for table in (old_rows, new_rows))
    step = min(_BATCH_ROWS, max(1, int(_BATCH_BYTES / max(1, bytes_a_row))))
    for start in range(0, len(left), step):
        span = slice(start, start + step)
        columns: dict[str, Any] = {
            OP: pa.array(ops[span], pa.string()),
            schema.names[1]: pa.repeat(pa.scalar(task.instant), len(ops[span])),
            BEFORE: _image(old_rows, left[span], images, task.format) if BEFORE in task.columns else None,
            AFTER: _image(new_rows, right[span], images, task.format) if AFTER in task.columns else None,
        }
        yield pa.RecordBatch.from_arrays([columns[name] for name in task.columns], schema=output)


def _accepted(rows: pa.Table, row_filter: RowFilter) -> np.ndarray:
    """Bool for each row, and false at the end: for -1."""
    number = pa.array(np.arange(rows.num_rows))
    numbered = rows.select(list(row_filter.columns)).append_column("*row", number)
    result = np.zeros(rows.num_rows + 1, dtype=bool)
    result[numbered.filter(row_filter.expression).column("*row").to_numpy()] = True
    return result


def _image(rows: pa.Table, numbers: Ints, images: pa.Schema, kind: ChangeFormat) -> pa.Array:
    missing = pa.array(numbers < 0)
    chosen = rows_at(rows.select(images.names), numbers)
    columns = [column.combine_chunks() for column in chosen.columns]
    array: pa.Array
    if columns:
        array = pa.StructArray.from_arrays(columns, fields=_nullable(images), mask=missing)
    else:  # without columns its length is not known to `from_arrays`
        there = pa.array(numbers >= 0).buffers()[1]
        array = pa.Array.from_buffers(pa.struct([]), len(numbers), [there], children=[])
    return pc.if_else(missing, pa.scalar(None, pa.string()), json_text(array)) if kind is ChangeFormat.CDC else array
