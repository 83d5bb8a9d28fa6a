"""How a batch's schema meets the table's: what widens, what is added, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie.errors import SchemaError
from hoodie.model.meta_fields import without_meta_fields

_INTEGERS = (pa.int32(), pa.int64())
_WIDER = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
}
"""Promotions that readers of every engine make without losing the column (Avro's, as Hudi uses them)."""


def storable(schema: pa.Schema) -> pa.Schema:
    """The batch's columns in the types that a table stores: what Spark and Avro have no word for is mapped to what they have.

    Raises:
        SchemaError: a column has a type that cannot be stored, or a name stands twice.
    """
    seen: dict[str, str] = {}
    refused = []
    fields: list[pa.Field] = []
    for field in without_meta_fields(schema):
        other = seen.get(field.name.lower())
        if other == field.name:
            raise SchemaError(f"column {field.name!r} stands twice in the data; rename one of them")
        if other is not None:
            raise SchemaError(
                f"columns {other!r} and {field.name!r} of the data differ in case only, which Spark cannot tell apart; rename one"
            )
        seen[field.name.lower()] = field.name
        # A column of nulls only has no type of its own: it takes the table's, where the table has the column.
        kind = field.type if pa.types.is_null(field.type) else _storable_type(field.type)
        if kind is None:
            refused.append(f"{field.name} {field.type}")
        else:
            fields.append(pa.field(field.name, kind, field.nullable))
    if refused:
        raise SchemaError(f"these columns have types that a table cannot store: {', '.join(refused)}; cast them first")
    return pa.schema(fields)


def reconcile(table: pa.Schema | None, batch: pa.Schema, *, table_name: str, partial: bool = False) -> pa.Schema:
    """The schema that the table has after this batch: the table's columns first, new ones behind.

    Args:
        batch: as `storable` gives it.
        partial: the batch carries keys only (deletes); missing columns do not matter and no column is added.

    Raises:
        SchemaError: one error with a line for each column that does not fit.
    """
    if table is None:
        untyped = [field.name for field in batch if pa.types.is_null(field.type)]
        if untyped:
            raise SchemaError(
                f"columns without a type (nothing but null) cannot start a table: {', '.join(untyped)}; cast them"
            )
        return batch
    given = {field.name: field for field in batch}
    fields: list[pa.Field] = []
    lines: list[str] = []
    for old in table:
        new = given.pop(old.name, None)
        if new is None:
            if not partial and not old.nullable:
                lines.append(f"MISSING   {old.name}  table {old.type} not null, not in the batch")
            fields.append(old)
            continue
        kind = _common(old.type, new.type)
        if kind is None:
            lines.append(f"MISMATCH  {old.name}  table {old.type}, batch {new.type}")
            kind = old.type
        fields.append(pa.field(old.name, kind, old.nullable))
    if not partial:
        by_case = {field.name.lower(): field.name for field in table}
        for new in given.values():
            if new.name.lower() in by_case:
                lines.append(f"CASE      {new.name}  the table has it as {by_case[new.name.lower()]!r}: write it so")
            elif pa.types.is_null(new.type):
                lines.append(f"NEW       {new.name}  without a type (nothing but null): cast it, or leave it out")
            elif not new.nullable:
                lines.append(f"NEW       {new.name}  {new.type} not null: a new column must be nullable")
            fields.append(new)
    if lines:
        raise SchemaError(_misfit(table_name, lines))
    return pa.schema(fields)


def _misfit(table_name: str, lines: Sequence[str]) -> str:
    shown = list(lines[:5])
    if len(lines) > len(shown):
        shown.append(f"... and {len(lines) - len(shown)} more")
    return "\n".join(
        [
            f"the batch does not fit table {table_name!r}:",
            *(f"  {line}" for line in shown),
            "  fix: cast the columns to the table's types (numbers may widen), or leave them out where the table allows null",
        ]
    )


def _common(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """The type that holds both; None when that would not be a numeric widening."""
    if old == new:
        return old
    if new in _WIDER.get(old, ()):
        return new
    if old in _WIDER.get(new, ()):
        return old
    if pa.types.is_decimal(old) and pa.types.is_decimal(new) and old.scale == new.scale:
        return old if old.precision >= new.precision else new
    if pa.types.is_null(new):
        return old
    if pa.types.is_struct(old) and pa.types.is_struct(new) and _same_names(old, new):
        kinds = [_common(old.field(i).type, new.field(i).type) for i in range(old.num_fields)]
        if all(kind is not None for kind in kinds):
            return pa.struct([old.field(i).with_type(kind) for i, kind in enumerate(kinds)])
    if pa.types.is_list(old) and pa.types.is_list(new):
        kind = _common(old.value_type, new.value_type)
        return None if kind is None else pa.list_(pa.field(old.value_field.name, kind, True))
    if pa.types.is_map(old) and pa.types.is_map(new) and old.key_type == new.key_type:
        kind = _common(old.item_type, new.item_type)
        return None if kind is None else pa.map_(old.key_type, kind)
    return None


def _same_names(old: pa.StructType, new: pa.StructType) -> bool:
    return [old.field(i).name for i in range(old.num_fields)] == [new.field(i).name for i in range(new.num_fields)]


def _storable_type(kind: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if types.is_dictionary(kind):
        return _storable_type(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return pa.string()
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or str(kind) == "binary_view"
    ):
        return pa.binary()
    if types.is_boolean(kind) or kind in (*_INTEGERS, pa.float32(), pa.float64(), pa.date32()):
        return kind
    if types.is_int8(kind) or types.is_int16(kind) or types.is_uint8(kind) or types.is_uint16(kind):
        return pa.int32()
    if types.is_uint32(kind):
        return pa.int64()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_date64(kind):
        return pa.date32()
    if types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz is not None else None)
    if types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 and kind.scale >= 0 else None
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        value = _storable_type(kind.value_type)
        return None if value is None else pa.list_(pa.field("element", value, True))
    if types.is_struct(kind):
        members = [kind.field(i) for i in range(kind.num_fields)]
        kinds = [_storable_type(member.type) for member in members]
        if not members or any(inner is None for inner in kinds):
            return None
        return pa.struct([pa.field(m.name, inner, m.nullable) for m, inner in zip(members, kinds, strict=True)])
    if types.is_map(kind):
        value = _storable_type(kind.item_type)
        return (
            pa.map_(pa.string(), value) if value is not None and _storable_type(kind.key_type) == pa.string() else None
        )
    return None
