"""Bring batches of an older schema to the one that is asked for: missing columns become null, narrower types widen."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

from hoodie.errors import SchemaError

Tabular = TypeVar("Tabular", pa.Table, pa.RecordBatch)


def conform(data: Tabular, schema: pa.Schema, *, path: str) -> Tabular:
    """The data with exactly the schema's columns, in its order and types.

    Raises:
        SchemaError: a column cannot be read as the type that the table gives it now.
    """
    if data.schema.equals(schema):
        return data
    positions = {name: i for i, name in enumerate(data.schema.names)}
    columns = []
    for field in schema:
        at = positions.get(field.name)
        if at is None:
            columns.append(pa.nulls(data.num_rows, field.type))
            continue
        column = data.column(at)
        if column.type != field.type:
            try:
                column = column.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
                raise SchemaError(
                    f"column {field.name!r} of {path} is {column.type}, which cannot be read as the table's "
                    f"{field.type}: {exc}"
                ) from exc
        columns.append(column)
    # Nullability is a promise of the table, not of every file; files written before a column came have nulls in it.
    return type(data).from_arrays(columns, schema=schema)
