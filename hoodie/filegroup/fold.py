"""Merging field by field: where fields of several records of a key make one row.

Nothing is copied until the end: for each key and each column that can give way, `fold` remembers the row whose value
counts. Its work is the sum of all entries, in as many rounds of numpy as the most frequent key has entries.

Rules: Apache Hudi's partial update modes (version 9: IGNORE_DEFAULTS, FILL_UNAVAILABLE), its payload classes of the same
meaning (up to version 8), and data blocks that hold some columns only (from version 8 on, IS_PARTIAL).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.merge import fills_by_event_time, key_codes, without_value
from hoodie.filegroup.ordering import Column, bools, ranks_of
from hoodie.filegroup.picks import column_at
from hoodie.filegroup.unavailable import is_unavailable
from hoodie.model.enums import Fill, MergeMode
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.plans import MergeRule

Usable = Mapping[str, np.ndarray]
"""Column -> bool for each row: its value counts. Columns whose values all count are left out."""


@dataclass(frozen=True)
class Entries:
    """Rows and deletes in the order in which they were written."""

    keys: Column
    ordering: pa.Array | None
    is_delete: np.ndarray
    wins: np.ndarray
    """Counts whatever it meets."""
    yields: np.ndarray
    """A delete that whatever comes after it replaces."""
    block_deletes: np.ndarray | None
    """Stands in a delete block (None: none does)."""
    row_of: np.ndarray
    """Row of the data, -1 for deletes without one."""


@dataclass(frozen=True)
class FoldResult:
    """One entry a key, ascending: `entries` says whether it is a delete, `ordering` which entry's ordering value it has.

    `sources`: column -> the data's row whose value counts, one for each key (meaningless where it is a delete). All other
    columns have theirs from `rows`; meta columns from `meta_rows`.
    """

    entries: np.ndarray
    ordering: np.ndarray
    rows: np.ndarray
    meta_rows: np.ndarray
    sources: Mapping[str, np.ndarray]


def usable_values(rows: pa.Table | pa.RecordBatch, rule: MergeRule) -> Usable:
    """Which values of the rows count, by the rule's `fill`; meta columns always do."""
    if rule.fill is None:
        return {}
    result = {}
    for field in rows.schema:
        if field.name in META_COLUMNS:
            continue
        column = rows.column(field.name)
        if rule.fill is Fill.NULLS:
            if column.null_count:
                result[field.name] = bools(pc.is_valid(column))
        elif (found := is_unavailable(column, rule.unavailable)) is not None:
            marked = bools(found)
            if marked.any():
                result[field.name] = ~marked
    return result


def fold(entries: Entries, usable: Usable, rule: MergeRule) -> FoldResult:
    """Merge the entries of each key, in their order, into one."""
    codes, distinct = key_codes(entries.keys)
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=distinct)
    starts = np.cumsum(sizes) - sizes
    newest = order[starts]
    valued = newest.copy()
    rows = entries.row_of[newest]
    meta = rows.copy()
    sources = {name: rows.copy() for name in usable}
    by_event_time = rule.mode is MergeMode.EVENT_TIME_ORDERING and entries.ordering is not None
    ranks = ranks_of(entries.ordering) if by_event_time and entries.ordering is not None else None
    late_meta = fills_by_event_time(rule)
    keeps_value = without_value(entries.ordering) if late_meta and entries.ordering is not None else None
    several = np.flatnonzero(sizes > 1)
    for turn in range(1, int(sizes.max(initial=1))):
        several = several[sizes[several] > turn]
        new, old = order[starts[several] + turn], newest[several]
        takes = _newer_counts(entries, ranks, new, old, valued[several])
        both = ~entries.is_delete[new] & ~entries.is_delete[old]
        row = entries.row_of[new]
        for name, counts in usable.items():
            before = sources[name][several]
            other = np.where(takes, counts[np.maximum(row, 0)], ~counts[np.maximum(before, 0)])
            sources[name][several] = np.where(np.where(both, other, takes), row, before)
        rows[several] = np.where(takes, row, rows[several])
        meta[several] = np.where(takes | (both & late_meta), row, meta[several])
        moves = takes if keeps_value is None else takes & ~(both & keeps_value[new])
        valued[several] = np.where(moves, new, valued[several])
        newest[several] = np.where(takes, new, old)
    ascending = np.argsort(newest)
    return FoldResult(
        newest[ascending],
        valued[ascending],
        rows[ascending],
        meta[ascending],
        {name: source[ascending] for name, source in sources.items()},
    )


def _newer_counts(
    entries: Entries, ranks: np.ndarray | None, new: np.ndarray, old: np.ndarray, valued: np.ndarray
) -> np.ndarray:
    """Bool for each pair: the newer entry is the one that counts."""
    if ranks is None:
        return np.ones(len(new), dtype=bool)
    takes: np.ndarray = entries.wins[new] | entries.yields[old] | (ranks[new] >= ranks[valued])
    if entries.block_deletes is not None:
        takes = takes & ~(entries.block_deletes[new] & entries.yields[old])
    return takes


def folded_rows(data: pa.Table, folded: FoldResult, which: np.ndarray) -> pa.Table:
    """The rows of `data` that the chosen keys' (indices into `folded`) fields come from."""
    columns = []
    for name in data.column_names:
        source = folded.meta_rows if name in META_COLUMNS else folded.sources.get(name, folded.rows)
        columns.append(column_at(data.column(name), source[which]))
    return pa.Table.from_arrays(columns, schema=data.schema)


def combined_rows(
    older: pa.Table,
    newer: pa.Table,
    newer_counts: np.ndarray,
    rule: MergeRule,
    *,
    usable_newer: Usable | None = None,
) -> pa.Table:
    """Pairs of rows, one column at a time: fields of the row that counts, and where they give way, of the other one.

    Args:
        newer_counts: bool for each pair.
        usable_newer: what counts of the newer rows; by the rule's `fill` when not given.
    """
    in_newer = usable_values(newer, rule) if usable_newer is None else usable_newer
    in_older = usable_values(older, rule)
    count = len(newer_counts)
    here = np.arange(count)
    every = np.ones(count, dtype=bool)
    late_meta = fills_by_event_time(rule)
    columns = []
    for name in newer.column_names:
        from_newer = newer_counts
        if name in META_COLUMNS:
            from_newer = every if late_meta else newer_counts
        elif name in in_newer or name in in_older:
            from_newer = np.where(newer_counts, in_newer.get(name, every), ~in_older.get(name, every))
        both = pa.chunked_array([*older.column(name).chunks, *newer.column(name).chunks], newer.schema.field(name).type)
        columns.append(column_at(both, np.where(from_newer, here + count, here)))
    return pa.Table.from_arrays(columns, schema=newer.schema)
