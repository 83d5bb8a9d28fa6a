"""Partial updates: rows that set some of the table's columns get the others from the rows that are stored under their keys.

Mostly whole rows are written, to logs as to base files: the rows are completed from the slice as the task's snapshot shows it,
and then take the way of all rows. Where their base file is rewritten anyway, they are completed when they meet its rows. The
transaction sees to it that the slice is still that one when they are published.

From table version 8 on, logs may have blocks with some columns only, which readers complete. They are written on request, and only
where Apache Hudi 1.2.0 reads them right: by event time, with the ordering fields, and never beside blocks of another kind or of
other columns (docs/MERGING.md).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaError
from hoodie.filegroup.log_blocks import live_blocks
from hoodie.filegroup.log_scan import is_partial, user_columns
from hoodie.filegroup.merge import positions_in
from hoodie.filegroup.picks import column_at
from hoodie.filegroup.slice_reader import read_slice
from hoodie.model.enums import MergeMode
from hoodie.model.files import FileSlice
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import DELETED, WriteContext
from hoodie.model.sought import SoughtKeys
from hoodie.storage.base import Storage


def completed_rows(storage: Storage, context: WriteContext, file_slice: FileSlice | None, rows: pa.Table) -> pa.Table:
    """The rows with the stored values of the columns that the batch does not set; as they are where the key is not stored.

    An absent ordering column is completed too: such a row ties with the stored one, so it wins.

    Raises:
        SchemaError: a row with a new key lacks a column that must not be null.
    """
    absent = kept_columns(context)
    if not absent or not rows.num_rows:
        return rows
    if file_slice is not None:
        stored = stored_rows(storage, context, file_slice, rows.column(RECORD_KEY).combine_chunks(), absent)
        at = positions_in(rows.column(RECORD_KEY), stored.column(RECORD_KEY).combine_chunks())
        rows = filled(rows, stored, at, absent)
    require_whole(rows, context)
    return rows


def kept_columns(context: WriteContext) -> list[str]:
    """Columns that the batch does not set in rows whose key is stored."""
    return [
        name for name in context.schema.names if context.set_columns is not None and name not in context.set_columns
    ]


def filled(rows: pa.Table, stored: pa.Table, at: np.ndarray, columns: Iterable[str]) -> pa.Table:
    """The rows with these columns of the stored rows of the numbers `at`; as they are where that is negative."""
    source = np.where(at < 0, np.arange(len(at)), len(at) + at)
    for name in columns:
        field = rows.schema.field(name)
        both = pa.chunked_array([*rows.column(name).chunks, *stored.column(name).chunks], field.type)
        rows = rows.set_column(rows.column_names.index(name), field, column_at(both, source))
    return rows


def met_in_rewrite(context: WriteContext) -> bool:
    """Whether rows may be completed when they meet the stored ones: their columns do not say which of two records counts, or all
    that say it are set.
    """
    rule, columns = context.rule, kept_columns(context)
    apart = not set(rule.ordering_columns) & set(columns) or set(rule.ordering_columns) <= set(columns)
    return rule.fill is None and rule.merger is None and apart


def block_columns(
    storage: Storage, context: WriteContext, file_slice: FileSlice, rows: pa.Table
) -> tuple[str, ...] | None:
    """The columns of the rows' block, where it has some of them only; None: the rows have to be completed."""
    rule, set_columns = context.rule, context.set_columns
    if not context.some_columns or set_columns is None or file_slice.base is None or context.history is not None:
        return None
    absent = [field for field in context.schema if field.name not in set_columns]
    by_event_time = rule.mode is MergeMode.EVENT_TIME_ORDERING and set(rule.ordering_columns) <= {*set_columns}
    plain = rule.fill is None and rule.merger is None and not rule.payload
    if not (absent and by_event_time and plain and all(field.nullable for field in absent)):
        return None
    if any(rows.column(field.name).null_count < rows.num_rows for field in absent):
        return None  # new rows have values there
    if DELETED in rows.column_names and pc.any(rows.column(DELETED)).as_py():
        return None
    columns = tuple(name for name in context.schema.names if name in set_columns)
    for block, path in live_blocks(storage, file_slice.logs, context.visible, at_once=False).blocks:
        if not is_partial(block) or user_columns(block, path) != columns:
            return None
    return columns


def stored_rows(
    storage: Storage, context: WriteContext, file_slice: FileSlice, keys: pa.Array, columns: Iterable[str]
) -> pa.Table:
    """Record key and columns of the rows of a slice that have one of the keys."""
    full = context.full_schema
    schema = pa.schema([full.field(RECORD_KEY), *(full.field(name) for name in columns)])
    reading = context.reading()
    sought = SoughtKeys(pc.unique(keys).sort()) if context.unstored is None else None
    batches = [
        batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=keys))
        for batch in read_slice(storage, reading, file_slice, schema, key_filter=sought)
    ]
    return pa.Table.from_batches(batches, schema=schema)


def require_whole(rows: pa.Table, context: WriteContext) -> None:
    """Raises SchemaError: columns that the batch does not set are null where they must not be."""
    live = rows.filter(pc.invert(rows.column(DELETED))) if DELETED in rows.column_names else rows
    for name in kept_columns(context):
        missing = live.column(name).null_count
        if missing and not context.schema.field(name).nullable:
            raise SchemaError(
                f"column {name!r} of table {context.table_name!r} is not nullable and not in the batch, which has {missing} rows "
                "with new keys (a partial upsert takes absent columns from the stored rows)\n"
                "  fix: add the column, or leave rows with new keys out"
            )
