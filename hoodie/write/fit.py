"""The values of a batch in the table's types, each as it is: one that would become another is an error that shows it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaError
from hoodie.filegroup.conform import as_type, decoded
from hoodie.options.keys import INTEGERS_TO_FLOATING

Array = Any


class _UnfitError(Exception):
    """A value that the wanted type does not have; `what` shows it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def fit(rows: pa.Table, schema: pa.Schema, *, table: str) -> pa.Table:
    """The rows with exactly the schema's columns; those that the batch lacks are null.

    Raises:
        SchemaError: a value does not fit the table's type.
    """
    if rows.schema.equals(schema):
        return rows
    positions = {name: at for at, name in enumerate(rows.schema.names)}
    columns = []
    for field in schema:
        at = positions.get(field.name)
        if at is None:
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = rows.column(at)
        try:
            columns.append(column if column.type == field.type else as_type(column, field.type, _exact))
        except _UnfitError as exc:
            raise SchemaError(_told(field, column.type, exc.what, table)) from exc
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
            raise SchemaError(
                f"column {field.name!r} of the batch for table {table!r} is {column.type}, which cannot be stored as the "
                f"table's {field.type}: {exc}"
            ) from exc
    return pa.Table.from_arrays(columns, schema=schema)


def _told(field: pa.Field, given: pa.DataType, what: str, table: str) -> str:
    return (
        f"column {field.name!r} of table {table!r} is {field.type}, and the batch ({given}) holds {what}, which "
        f"{_why(field.type, what)}; nothing was written\n"
        "  fix: round or cast the column. Where integers are to become floating point numbers for good (not in keys): "
        f"{INTEGERS_TO_FLOATING.name}=true"
    )


def _why(kind: pa.DataType, what: str) -> str:
    if not pa.types.is_integer(kind):
        return "that type cannot hold exactly"
    return "that type is too small for" if float(what).is_integer() else "is not a whole number"


def _exact(column: Array, kind: pa.DataType) -> Array:
    """The values in another type, when it has all of them."""
    types = pa.types
    if types.is_dictionary(column.type):
        column = decoded(column)
        if column.type == kind:
            return column
    old = column.type
    narrows = types.is_float64(old) and types.is_float32(kind)
    if (not narrows and not (_is_number(old) and _is_number(kind))) or (
        types.is_float32(old) and types.is_float64(kind)
    ):
        return as_type(column, kind)
    if not narrows:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid as exc:
            raise _UnfitError(_first_unfit(column, kind, str(exc))) from exc
    made = column.cast(kind)
    # Keys are texts: 0.1 is the same text in either width.
    if pc.any(_differ(as_type(made, old), column)).as_py():
        raise _UnfitError(_first_unfit(column, kind, "a value of more digits"))
    return made


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _first_unfit(column: Array, kind: pa.DataType, otherwise: str) -> str:
    made = column.cast(kind, safe=False)
    back = as_type(made, column.type) if pa.types.is_floating(kind) else made.cast(column.type, safe=False)
    at = pc.index(_differ(back, column), True).as_py()
    return otherwise if at < 0 else str(column[at].as_py())


def _differ(made: Array, given: Array) -> Array:
    """Which values are not the same; nulls are."""
    differ = pc.not_equal(made, given)
    if pa.types.is_floating(given.type) and pa.types.is_floating(made.type):
        differ = pc.and_(differ, pc.invert(pc.and_(pc.is_nan(made), pc.is_nan(given))))
    return pc.fill_null(differ, False)
