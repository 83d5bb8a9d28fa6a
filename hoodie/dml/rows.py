"""UPDATE and DELETE as statements: DuckDB chooses the rows, also by a subquery, and computes their new values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from hoodie.dml.changes import Changes
from hoodie.dml.duck import assigned, connection, quoted, register
from hoodie.read.dataset import TableDataset
from hoodie.read.pushdown import NewScan

TARGET = "hoodie_target"


class RowChange(NamedTuple):
    """What a statement says."""

    alias: str
    values: Mapping[str, str] | None
    """Column -> expression; None deletes the rows."""
    where: str | None
    before: str
    """WITH and its queries, or nothing."""


def run_rows(
    changes: Changes,
    change: RowChange,
    scan: NewScan,
    tables: Mapping[str, Any],
    *,
    keys: list[str],
    uri: str,
    memory_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """The rows that it changes.

    Args:
        tables: name -> Arrow data or a Dataset, for subqueries.
        keys: key and partition columns.

    Raises:
        OptionError: an expression cannot be understood.
    """
    failed: list[Exception] = []
    with connection(uri, memory_bytes=memory_bytes, failed=failed) as con:
        register(con, {**tables, TARGET: TableDataset(scan)}, failed)
        for batch in pa.RecordBatchReader.from_stream(con.sql(_query(changes.columns, change, keys))):
            rows = pa.Table.from_batches([batch])
            if change.values is None:
                yield from changes.deleted(rows.rename_columns(keys))
            else:
                old = rows.select(range(len(keys))).rename_columns(keys)
                yield from changes.updated(
                    old, rows.select(range(len(keys), rows.num_columns)).rename_columns(changes.columns.names)
                )
        yield from changes.rest()


def _query(schema: pa.Schema, change: RowChange, keys: Sequence[str]) -> str:
    row, values = quoted(change.alias), change.values
    columns = [f"{row}.{quoted(name)} AS {quoted(f'*old {name}')}" for name in keys]
    if values is not None:
        columns += [
            f"{assigned(values[f.name], f) if f.name in values else f'{row}.{quoted(f.name)}'} AS {quoted(f'*{f.name}')}"
            for f in schema
        ]
    where = f" WHERE {change.where}" if change.where is not None else ""
    return f"{change.before} SELECT {', '.join(columns)} FROM {TARGET} AS {row}{where}"
