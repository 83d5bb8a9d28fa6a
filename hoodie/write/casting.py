"""The values of a batch in the table's types, unchanged: a value that would change raises an error that shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaError
from hoodie.filegroup.conform import as_type, decoded, null_mask, offsets_of
from hoodie.options.option import option_name
from hoodie.options.write import WriteOptions
from hoodie.write.schema import storable_type

Array = Any


class UnfitError(Exception):
    """A value that the wanted type does not have; `what` shows it."""

    def __init__(self, what: str, kind: pa.DataType) -> None:
        super().__init__(what)
        self.what = what
        self.kind = kind


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
            columns.append(exactly(column, field.type))
        except UnfitError as exc:
            raise SchemaError(_explanation(field, column.type, exc, table)) from exc
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
            raise SchemaError(
                f"column {field.name!r} of the batch for table {table!r} is {column.type}, which cannot be stored as the "
                f"table's {field.type}: {exc}"
            ) from exc
    return pa.Table.from_arrays(columns, schema=schema)


def exactly(column: Array, kind: pa.DataType) -> Array:
    """The column in another type that has all of its values.

    Raises:
        UnfitError: it does not have one of them. pyarrow.ArrowInvalid: so Arrow found.
    """
    return column if column.type == kind else as_type(column, kind, _exact)


def _explanation(field: pa.Field, kind: pa.DataType, unfit: UnfitError, table: str) -> str:
    fix = "round or cast the column"
    if pa.types.is_integer(unfit.kind):
        switch = option_name(WriteOptions, "integers_to_floating")
        fix += f". Where integers are to become floating point numbers for good (not in keys): {switch}=true"
    return (
        f"column {field.name!r} of table {table!r} is {field.type}, and the batch ({kind}) holds {unfit.what}, which "
        f"{_why(unfit.kind, unfit.what)}; nothing was written\n  fix: {fix}"
    )


def _why(kind: pa.DataType, what: str) -> str:
    if pa.types.is_decimal(kind):
        return "has more digits than that type"
    if not pa.types.is_integer(kind):
        return "that type cannot hold exactly"
    return "that type is too small for" if float(what).is_integer() else "is not a whole number"


def _exact(column: Array, kind: pa.DataType) -> Array:
    """The values in another type; raises where that does not hold all of them."""
    types = pa.types
    if types.is_dictionary(column.type):
        column = decoded(column)
        if column.type == kind:
            return column
    old = column.type
    if types.is_map(kind) and not types.is_null(old):
        return as_type(_as_maps(column, kind), kind, _exact)
    if types.is_decimal(kind) and not types.is_null(old):
        return _exact_decimal(column, kind)
    narrows = types.is_float64(old) and types.is_float32(kind)
    if (not narrows and not (_is_number(old) and _is_number(kind))) or (
        types.is_float32(old) and types.is_float64(kind)
    ):
        return as_type(column, kind)
    if not narrows:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid as exc:
            raise UnfitError(_first_unfit(column, kind, str(exc)), kind) from exc
    result = column.cast(kind)
    # Keys are texts: 0.1 is the same text in either width.
    if pc.any(_differ(as_type(result, old), column)).as_py():
        raise UnfitError(_first_unfit(column, kind, "a value of more digits"), kind)
    return result


def _exact_decimal(column: Array, kind: pa.DataType) -> Array:
    """Whole numbers, or decimals of any scale, in the digits that a column has."""
    try:
        return as_type(column, kind)
    except pa.ArrowInvalid as exc:
        unfit = (value for value in column if not _holds(kind, value))
        raise UnfitError(str(next(unfit, exc)), kind) from exc


def _holds(kind: pa.DataType, value: Any) -> bool:
    try:
        as_type(pa.array([value.as_py()], value.type), kind)
    except pa.ArrowInvalid:
        return False
    return True


def _as_maps(column: Array, kind: pa.MapType) -> Array:
    """Maps of what frames without maps have in place of them, as `schema._map_items` knows it."""
    types = pa.types
    if types.is_map(column.type):
        return column
    column = as_type(column, storable_type(column.type, ""))
    if types.is_struct(column.type):
        return _structs_as_maps(column, kind.item_type)
    entries = column.flatten()
    if entries.null_count:
        raise pa.ArrowInvalid("an entry is null, and has no key")
    if types.is_null(entries.type):
        parts = [pa.array([], kind.key_type), pa.array([], kind.item_type)]
    elif types.is_struct(entries.type):
        arrays = dict(zip((entries.type.field(i).name for i in range(2)), entries.flatten(), strict=True))
        parts = [arrays["key"], arrays["value"]]
    else:
        if pc.any(pc.not_equal(pc.list_value_length(entries), 2)).as_py():
            raise pa.ArrowInvalid("an entry is not a pair of key and value")
        values = entries.flatten()
        parts = [values.take(pa.array(np.arange(first, len(values), 2))) for first in (0, 1)]
    keys, items = parts
    return pa.MapArray.from_arrays(offsets_of(column), keys, items, mask=null_mask(column))


def _structs_as_maps(column: Array, item: pa.DataType) -> Array:
    """An entry for each field. A null may be a value, or stand for a key that a row does not have: nobody can tell."""
    rows = column.drop_null()
    names = [rows.type.field(i).name for i in range(rows.type.num_fields)]
    parts = [as_type(part, item, _exact) for part in rows.flatten()]
    unclear = next((name for name, part in zip(names, parts, strict=True) if part.null_count), None)
    if unclear is not None:
        raise pa.ArrowInvalid(
            f"the structs have null in {unclear!r}, which may be a value of the map, or a key that is not there; give maps, or "
            "lists of pairs"
        )
    by_row = np.arange(len(names) * len(rows)).reshape(len(names), len(rows)).T.ravel()
    items = pa.concat_arrays([pa.array([], item), *parts]).take(pa.array(by_row))
    keys = pa.array(names * len(rows), pa.string())
    lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), len(names), 0)
    offsets: Array = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.MapArray.from_arrays(offsets, keys, items, mask=null_mask(column))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _first_unfit(column: Array, kind: pa.DataType, otherwise: str) -> str:
    result = column.cast(kind, safe=False)
    back = as_type(result, column.type) if pa.types.is_floating(kind) else result.cast(column.type, safe=False)
    at = pc.index(_differ(back, column), True).as_py()
    return otherwise if at < 0 else str(column[at].as_py())


def _differ(one: Array, other: Array) -> Array:
    """Which values differ; nulls equal every value."""
    differ = pc.not_equal(one, other)
    if pa.types.is_floating(other.type) and pa.types.is_floating(one.type):
        differ = pc.and_(differ, pc.invert(pc.and_(pc.is_nan(one), pc.is_nan(other))))
    return pc.fill_null(differ, False)
