"""Upserts that would bring values of deleted rows back.

On merge-on-read tables the log records of a key are merged first, and the result meets the stored row. Say that a delete stands
in a log and an upsert of its key comes behind it. The logs then hold only the upsert, and the stored row, which was deleted, wins
against it by a greater ordering value, or gives it values for nulls. Every reader merges so, and Apache Hudi is one. A base file
that was made of the slice holds nothing of the deleted row: so such an upsert makes one, in place of a log.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.deletes import flag_columns
from hoodie.filegroup.fold import usable_values
from hoodie.filegroup.log_blocks import live_blocks
from hoodie.filegroup.log_scan import CollectedEntries, read_log_records
from hoodie.filegroup.merge import beats_stored, positions_in, unconditional
from hoodie.filegroup.ordering import at_least, bools, ordering_of, whole
from hoodie.filegroup.partial import stored_rows
from hoodie.model.enums import BlockKind, MergeMode
from hoodie.model.files import FileSlice, LogFile
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import DELETED, MergeRule, WriteContext
from hoodie.storage.base import Storage


def can_revive(rule: MergeRule) -> bool:
    """Whether a stored row may win against a later record, or give it values."""
    return rule.merger is None and (rule.mode is MergeMode.EVENT_TIME_ORDERING or rule.fill is not None)


def revives(
    storage: Storage, context: WriteContext, file_slice: FileSlice, logs: Sequence[LogFile], rows: pa.Table
) -> bool:
    """Whether one of these rows, as a log record of the slice, brings something of a deleted row back.

    Args:
        logs: those of the slice in which deletes may stand. Only where they name a key of the rows is more read.
    """
    if not _names_deleted(storage, context, logs, rows):
        return False
    rule = context.rule
    dead, loses = _against_deletes(storage, context, file_slice, rows)
    rows = rows.filter(pa.array(dead & ~loses))
    stored = stored_rows(
        storage, context, file_slice._replace(logs=()), whole(rows.column(RECORD_KEY)), _ordering_fields(context)
    )
    at = positions_in(rows.column(RECORD_KEY), whole(stored.column(RECORD_KEY)))
    rows, stored = rows.filter(pa.array(at >= 0)), stored.take(pa.array(at[at >= 0]))
    if usable_values(rows, rule):
        return True  # a stored value takes the place of one that does not count
    mine, theirs = ordering_of(rows, rule), ordering_of(stored, rule)
    return mine is not None and theirs is not None and not beats_stored(mine, None, theirs, rule).all()


def without_lost(storage: Storage, context: WriteContext, file_slice: FileSlice, rows: pa.Table) -> pa.Table:
    """The rows but for those that are older than a delete in the logs of the slice: where the logs are merged without them, the
    delete is forgotten.
    """
    if not file_slice.logs or not _obeys_ordering(context.rule):
        return rows
    _, loses = _against_deletes(storage, context, file_slice, rows)
    return rows.filter(pa.array(~loses)) if loses.any() else rows


def still_stored(storage: Storage, context: WriteContext, file_slice: FileSlice, rows: pa.Table) -> pa.Table:
    """The rows but for those whose keys the logs delete: an index that knows base files only has found them."""
    # Records of a data block may be deletes, too, where a column says so.
    marked = any(field.name in context.full_schema.names for field in flag_columns(context.full_schema, context.rule))
    if not file_slice.logs or not (marked or _names_deleted(storage, context, file_slice.logs, rows)):
        return rows
    dead, _ = _against_deletes(storage, context, file_slice, rows)
    return rows.filter(pa.array(~dead)) if dead.any() else rows


def _names_deleted(storage: Storage, context: WriteContext, logs: Sequence[LogFile], rows: pa.Table) -> bool:
    """Whether a block of deletes names the key of one of the rows."""
    is_deleted = pc.is_in(rows.column(RECORD_KEY), value_set=_deleted_keys(storage, context, logs))
    return bool(pc.any(is_deleted).as_py())


def _deleted_keys(storage: Storage, context: WriteContext, logs: Sequence[LogFile]) -> pa.Array:
    entries = CollectedEntries(pa.schema([context.full_schema.field(RECORD_KEY)]), context.rule)
    for block, path in live_blocks(storage, tuple(logs), context.visible).blocks:
        if block.kind is BlockKind.DELETE:
            entries.add_deletes(block, path)
    return pa.concat_arrays([pa.array([], pa.string()), *entries.keys])


def _against_deletes(
    storage: Storage, context: WriteContext, file_slice: FileSlice, rows: pa.Table
) -> tuple[np.ndarray, np.ndarray]:
    """Bool for each row: the logs end with a delete of its key; and whether the row loses against that."""
    rule, full = context.rule, context.full_schema
    schema = pa.schema([full.field(RECORD_KEY), *(full.field(name) for name in _ordering_fields(context))])
    logs = read_log_records(
        storage,
        file_slice,
        schema,
        rule=rule,
        visible=context.visible,
        history=context.history,
        unstored=context.unstored,
    )
    at = positions_in(rows.column(RECORD_KEY), logs.keys)
    dead, loses = at >= logs.live, np.zeros(len(at), dtype=bool)
    mine, wins = ordering_of(rows, rule), np.zeros(len(at), dtype=bool)
    if DELETED in rows.column_names:
        wins = unconditional(bools(rows.column(DELETED)), mine, rule)
    if _obeys_ordering(rule) and mine is not None and logs.ordering is not None:
        deletes = at[dead]
        counts = at_least(mine.filter(pa.array(dead)), logs.ordering.take(pa.array(deletes)))
        loses[dead] = ~(counts | logs.commit_time_deletes[deletes] | wins[dead])
    return dead, loses


def _obeys_ordering(rule: MergeRule) -> bool:
    """Whether a delete with an ordering value counts only by that."""
    return rule.mode is MergeMode.EVENT_TIME_ORDERING and not rule.payload


def _ordering_fields(context: WriteContext) -> list[str]:
    return [name for name in context.rule.ordering_columns if name in context.full_schema.names]
