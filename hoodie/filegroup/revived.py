"""Upserts that bring values of deleted rows back.

On merge-on-read tables the log records of a key are merged first, and the result meets the stored row. Say that a delete stands
in a log and an upsert of its key comes behind it. The logs then hold only the upsert, and the stored row, which was deleted, wins
against it by a greater ordering value, or gives it values for nulls. Every reader merges so, and Apache Hudi is one: writers can
only say it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.log_scan import read_log_records
from hoodie.filegroup.merge import positions_in
from hoodie.filegroup.ordering import at_least, ordering_of, whole
from hoodie.filegroup.partial import stored_rows
from hoodie.model.enums import Fill, MergeMode
from hoodie.model.files import FileSlice
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import MergeRule, WriteContext
from hoodie.storage.base import Storage


def can_revive(rule: MergeRule) -> bool:
    """Whether a stored row may win against a later record, or give it values."""
    return rule.merger is None and (rule.mode is MergeMode.EVENT_TIME_ORDERING or rule.fill is not None)


def revives(storage: Storage, context: WriteContext, file_slice: FileSlice, rows: pa.Table) -> bool:
    """Whether one of these rows, as a log record of the slice, brings something of a deleted row back."""
    if file_slice.base is None or not rows.num_rows:
        return False
    rule, full = context.rule, context.full_schema
    fields = [full.field(name) for name in rule.ordering_fields if name in full.names]
    schema = pa.schema([full.field(RECORD_KEY), *fields])
    logs = read_log_records(storage, file_slice, schema, rule=rule, visible=context.visible, unstored=context.unstored)
    keys = whole(rows.column(RECORD_KEY))
    dead = pc.is_in(keys, value_set=logs.keys.slice(logs.live))
    if not pc.any(dead).as_py():
        return False
    rows = rows.filter(dead)
    keys = whole(rows.column(RECORD_KEY))
    ordering = ordering_of(rows, rule)
    if not rule.payload and ordering is not None and logs.ordering is not None:
        # A delete that obeys its ordering value, and wins by it, stays.
        at = positions_in(keys, logs.keys)
        counts = logs.commit_time_deletes[at] | at_least(ordering, logs.ordering.take(pa.array(at)))
        rows, keys = rows.filter(pa.array(counts)), keys.filter(pa.array(counts))
    stored = stored_rows(storage, context, file_slice._replace(logs=()), keys, [field.name for field in fields])
    if not stored.num_rows:
        return False
    filled = rule.fill is not Fill.NULLS or any(rows.column(field.name).null_count for field in context.schema)
    if rule.fill is not None and filled:
        return True
    if rule.mode is not MergeMode.EVENT_TIME_ORDERING:
        return False
    at = positions_in(keys, whole(stored.column(RECORD_KEY)))
    met = rows.filter(pa.array(at >= 0))
    mine, theirs = ordering_of(met, rule), ordering_of(stored.take(pa.array(at[at >= 0])), rule)
    return mine is not None and theirs is not None and not at_least(mine, theirs).all()
