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
    given = newer.select(names)
    try:
        found = merger.merge(older.select(names), given)
    except HoodieError:
        raise
    except Exception as exc:
        raise SchemaError(
            f"merger {merger.name!r} failed with {type(exc).__name__}: {exc}; nothing was written"
        ) from exc
    if not isinstance(found, pa.Table):
        raise SchemaError(f"merger {merger.name!r} returned a {type(found).__name__}, not a pyarrow.Table")
    if found.num_rows != newer.num_rows:
        raise SchemaError(
            f"merger {merger.name!r} returned {found.num_rows} rows for {newer.num_rows} pairs; it must return one row for each"
        )
    if found.column_names != names or found.schema.types != given.schema.types:
        wrong = next(
            (
                f"{a.name}: {a.type} where {b.name}: {b.type} was expected"
                for a, b in zip(found.schema, given.schema, strict=False)
                if a != b
            ),
            f"{found.num_columns} columns where {len(names)} were expected",
        )
        raise SchemaError(f"merger {merger.name!r} returned other columns than it got: {wrong}")
    columns = [found.column(name) if name in names else newer.column(name) for name in newer.column_names]
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
    held = rows.take(pa.array(order[starts]))
    gone = deleted[order[starts]]
    several = np.flatnonzero(sizes > 1)
    for turn in range(1, int(sizes.max())):
        several = several[sizes[several] > turn]
        new = order[starts[several] + turn]
        pair = ~deleted[new] & ~gone[several]
        merged = run_merger(merger, held.take(pa.array(several[pair])), rows.take(pa.array(new[pair])))
        at = np.arange(distinct)
        at[several[~pair]] = distinct + np.arange((~pair).sum())
        at[several[pair]] = distinct + (~pair).sum() + np.arange(pair.sum())
        held = pa.concat_tables([held, rows.take(pa.array(new[~pair])), merged]).take(pa.array(at))
        gone[several] = deleted[new]
    return held
