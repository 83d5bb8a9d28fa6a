"""The second stage of a merge: newer records meet the stored rows of their keys, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie.filegroup.fold import Usable, combined_rows, usable_values
from hoodie.filegroup.merge import beats_stored, positions_in
from hoodie.filegroup.merger import run_merger
from hoodie.filegroup.ordering import ordering_of
from hoodie.filegroup.picks import rows_at
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import MergeRule


@dataclass(frozen=True)
class Newer:
    """One record or delete of each key, newer than what is stored."""

    keys: pa.Array
    rows: pa.Table
    """Row i is that of key i; what stands at a delete does not matter, nor whether anything does."""
    ordering: pa.Array | None
    is_delete: np.ndarray
    commit_time_deletes: np.ndarray | None
    """Bool for each key: a delete that wins whatever the ordering values say."""
    present: Usable | None = None
    """Column -> bool for each row: it has a value of its own; where not, the stored row's stays."""


@dataclass(frozen=True)
class MergedBatch:
    unchanged: pa.RecordBatch
    """Stored rows that stay as they are."""
    merged: pa.Table
    """Rows that take the place of the others."""
    first_matches: np.ndarray
    """Numbers of the newer records whose keys the batch is the first to hold."""
    older: np.ndarray
    """Numbers of the rows of the batch that the merged ones take the place of, in their order."""
    deleted_rows: np.ndarray
    """Numbers of the rows of the batch that are deleted. All that are in neither are `unchanged`, in their order."""


def merge_with_stored(
    batch: pa.RecordBatch, newer: Newer, rule: MergeRule, is_stored: np.ndarray, keys: pa.Array | None = None
) -> MergedBatch:
    """Merge the records with the stored rows of a batch; `batch` and `newer.rows` have the same columns.

    A key that an insert has stored twice in a file meets its newer record once, in the first of its rows; the others stay
    as they are (observed of Apache Hudi 1.2.0, integration/test_operations_with_hudi.py).

    Args:
        is_stored: bool for each key: batches before this one held it.
        keys: by which the rows of the batch are told; None: their record keys.
    """
    at = positions_in(batch.column(RECORD_KEY) if keys is None else keys, newer.keys)
    rows = np.flatnonzero(at >= 0)
    entries = at[rows]
    if len(rows):
        first = np.empty(len(is_stored), dtype=np.int64)
        first[entries[::-1]] = rows[::-1]  # of repeated indices numpy keeps the last assignment
        once = ~is_stored[entries] & (first[entries] == rows)
        rows, entries = rows[once], entries[once]
    if not len(rows):
        return MergedBatch(batch, newer.rows.slice(0, 0), entries, rows, rows)
    stored = ordering_of(batch, rule)
    if newer.ordering is None or stored is None:
        wins = np.ones(len(rows), dtype=bool)
    else:
        always = None if newer.commit_time_deletes is None else newer.commit_time_deletes[entries]
        wins = beats_stored(newer.ordering.take(pa.array(entries)), always, stored.take(pa.array(rows)), rule)
    dead = newer.is_delete[entries]
    if rule.merger is None and rule.fill is None and newer.present is None:
        replaced, live = wins, wins & ~dead
        merged = rows_at(newer.rows, entries[live])
    else:
        replaced, live = wins | ~dead, ~dead
        older = pa.Table.from_batches([batch.take(pa.array(rows[live]))])
        older = older if older.schema.equals(newer.rows.schema) else older.cast(newer.rows.schema)
        merged = merged_rows(older, newer, entries[live], wins[live], rule)
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[rows[replaced]] = False
    return MergedBatch(batch.filter(pa.array(keep)), merged, entries, rows[live], rows[replaced & dead])


def merged_rows(older: pa.Table, newer: Newer, entries: np.ndarray, wins: np.ndarray, rule: MergeRule) -> pa.Table:
    """The chosen records, with fields of the stored rows where the rule takes those."""
    rows = rows_at(newer.rows, entries)
    usable = dict(usable_values(rows, rule))
    for name, there in (newer.present or {}).items():
        usable[name] = there[entries] & usable.get(name, np.ones(len(entries), dtype=bool))
    if rule.merger is not None:
        filled = combined_rows(older, rows, wins, rule, usable_newer=usable) if usable else rows
        return run_merger(rule.merger, older, filled)
    return combined_rows(older, rows, wins, rule, usable_newer=usable)
