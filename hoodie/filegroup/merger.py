"""Merging by a function of the user's own: (older, newer) -> merged, over Arrow, rows aligned by key."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie.errors import HoodieError, OptionError, SchemaError
from hoodie.filegroup.merge import key_codes
from hoodie.model.meta_fields import META_COLUMNS, RECORD_KEY
from hoodie.model.plans import DELETED, Merger
from hoodie.options.mergers import not_registered


def run_merger(merger: Merger, older: pa.Table, newer: pa.Table) -> pa.Table:
    """The merged rows. The function sees the table's own columns; all others are those of the newer rows.

    Raises:
        SchemaError: it gives something else than as many rows of the same columns.
        OptionError: no function of that name is registered in this process.
    """
    if merger.merge is None:
        raise OptionError(not_registered(merger.name))
    if not newer.num_rows:
        return newer
    names = [name for name in newer.column_names if name not in META_COLUMNS and name != DELETED]
    new_rows = newer.select(names)
    try:
        result = merger.merge(older.select(names), new_rows)
    except HoodieError:
        raise
    except Exception as exc:
        raise SchemaError(
            f"merger {merger.name!r} failed with {type(exc).__name__}: {exc}; nothing was written"
        ) from exc
    if not isinstance(result, pa.Table):
        raise SchemaError(f"merger {merger.name!r} returned a {type(result).__name__}, not a pyarrow.Table")
    if result.num_rows != newer.num_rows:
        raise SchemaError(
            f"merger {merger.name!r} returned {result.num_rows} rows for {newer.num_rows} pairs; it must return one row for each"
        )
    if result.column_names != names or result.schema.types != new_rows.schema.types:
        wrong = next(
            (
                f"{a.name}: {a.type} where {b.name}: {b.type} was expected"
                for a, b in zip(result.schema, new_rows.schema, strict=False)
                if a != b
            ),
            f"{result.num_columns} columns where {len(names)} were expected",
        )
        raise SchemaError(f"merger {merger.name!r} returned other columns than it got: {wrong}")
    columns = [result.column(name) if name in names else newer.column(name) for name in newer.column_names]
    return pa.Table.from_arrays(columns, schema=newer.schema)


def reduce_by_merger(rows: pa.Table, merger: Merger) -> pa.Table:
    """Prepared rows with several of a key merged into one, in their order; a delete forgets what came before it."""
    codes, distinct = key_codes(rows.column(RECORD_KEY))
    if distinct == rows.num_rows:
        return rows
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=distinct)
    starts = np.cumsum(sizes) - sizes
    deleted = np.zeros(rows.num_rows, dtype=bool)
    if DELETED in rows.column_names:
        deleted = rows.column(DELETED).combine_chunks().to_numpy(zero_copy_only=False)
    newest = rows.take(pa.array(order[starts]))
    ends_deleted = deleted[order[starts]]
    several = np.flatnonzero(sizes > 1)
    for turn in range(1, int(sizes.max())):
        several = several[sizes[several] > turn]
        new = order[starts[several] + turn]
        pair = ~deleted[new] & ~ends_deleted[several]
        merged = run_merger(merger, newest.take(pa.array(several[pair])), rows.take(pa.array(new[pair])))
        at = np.arange(distinct)
        at[several[~pair]] = distinct + np.arange((~pair).sum())
        at[several[pair]] = distinct + (~pair).sum() + np.arange(pair.sum())
        newest = pa.concat_tables([newest, rows.take(pa.array(new[~pair])), merged]).take(pa.array(at))
        ends_deleted[several] = deleted[new]
    return newest
