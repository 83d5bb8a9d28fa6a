"""UPDATE: columns of the rows that a condition finds get new values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie.dml.changes import Changes, require_whole_columns
from hoodie.dml.duck import assigned, connection, quoted
from hoodie.errors import OptionError
from hoodie.format.variant_values import variants_of_values
from hoodie.format.variants import is_variant

if TYPE_CHECKING:
    import duckdb

ROWS = "hoodie_rows"


def run_update(
    changes: Changes,
    batches: Iterable[pa.RecordBatch],
    values: Mapping[str, Any],
    *,
    uri: str,
    memory_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """What becomes of the rows.

    Args:
        batches: the rows that the condition found, with all columns.
        values: column -> a text, which is an expression of SQL over the row (`t.fare` is `fare`), or a value.

    Raises:
        OptionError: an expression cannot be understood, or has no value for one row alone.
    """
    with ExitStack() as stack:
        texts = {name: text for name, text in values.items() if isinstance(text, str)}
        con = stack.enter_context(connection(uri, memory_bytes=memory_bytes)) if texts else None
        query = None
        for batch in batches:
            old = pa.Table.from_batches([batch])
            new = old
            if con is not None:
                con.register(ROWS, old)
                query = query or _query(con, texts, changes.columns)
                values_of_rows = pa.RecordBatchReader.from_stream(con.sql(query)).read_all()
                for at, name in enumerate(texts):
                    new = _with(new, name, values_of_rows.column(at))
            for name, value in values.items():
                if name not in texts:
                    new = _with(new, name, _constant(value, changes.columns.field(name), old.num_rows, uri))
            yield from changes.updated(old, new)
    yield from changes.rest()


def check_columns(names: Iterable[str], schema: pa.Schema, table: str) -> None:
    """Raises KeyFieldError for a column that the table does not have."""
    if not (columns := list(names)):
        raise OptionError(f'update of table {table!r} changes no column: give set={{"column": "expression"}}')
    require_whole_columns(columns, schema, what="updated", table=table, says="the update")


def _query(con: duckdb.DuckDBPyConnection, texts: Mapping[str, str], schema: pa.Schema) -> str:
    con.execute(f"CREATE TEMP TABLE hoodie_check AS SELECT * FROM {ROWS} LIMIT 0")
    sets = {name: assigned(text, schema.field(name)) for name, text in texts.items()}
    # Binds the expressions as SQL does: no aggregates or windows, which would go over a batch.
    con.execute("EXPLAIN UPDATE hoodie_check AS t SET " + ", ".join(f"{quoted(n)} = {e}" for n, e in sets.items()))
    return f"SELECT {', '.join(sets.values())} FROM {ROWS} AS t"


def _with(rows: pa.Table, name: str, column: pa.ChunkedArray | pa.Array) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, name, column)


def _constant(value: Any, field: pa.Field, rows: int, uri: str) -> pa.Array:
    try:
        if is_variant(field.type):
            variant: pa.Array = variants_of_values([value]).take(pa.repeat(0, rows))
            return variant
        constant: pa.Array = pa.repeat(pa.scalar(value, field.type), rows)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        raise OptionError(f"column {field.name!r} of table {uri} is {field.type}, and {value!r} is not: {exc}") from exc
    return constant
