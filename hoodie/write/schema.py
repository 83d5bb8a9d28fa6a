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


def reconcile(
    table: pa.Schema | None, batch: pa.Schema, *, table_name: str, keys_only: bool = False, partial: bool = False
) -> pa.Schema:
    """The schema that the table has after this batch: the table's columns first, new ones behind.

    Args:
        batch: as `storable` gives it.
        keys_only: nothing but keys is taken from the batch (deletes); missing columns do not matter and no column is added.
        partial: missing columns keep what is stored, so they do not matter either.

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
    misfits = _Misfits()
    fields = misfits.fields(list(table), list(batch), "", add=not keys_only, needs_all=not (partial or keys_only))
    if misfits.lines:
        raise SchemaError(_misfit(table_name, misfits.lines))
    return pa.schema(fields)


class _Misfits:
    """Brings two schemas together, columns and parts of nested columns alike, and keeps a line for all that does not fit."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def fields(
        self, table: list[pa.Field], batch: list[pa.Field], path: str, *, add: bool, needs_all: bool
    ) -> list[pa.Field]:
        """The table's fields in types that hold both, then the batch's own."""
        given = {field.name: field for field in batch}
        found: list[pa.Field] = []
        for old in table:
            new = given.pop(old.name, None)
            name = f"{path}{old.name}"
            if new is None:
                if needs_all and not old.nullable:
                    self.lines.append(f"MISSING   {name}  table {old.type} not null, not in the batch")
                found.append(old)
            else:
                found.append(old.with_type(self._type(old.type, new.type, name)))
        if add:
            by_case = {field.name.lower(): field.name for field in table}
            for new in given.values():
                self._check_new(new, f"{path}{new.name}", by_case.get(new.name.lower()))
                found.append(new)
        return found

    def _check_new(self, new: pa.Field, name: str, other: str | None) -> None:
        if other is not None:
            self.lines.append(f"CASE      {name}  the table has it as {other!r}: write it so")
        elif pa.types.is_null(new.type):
            self.lines.append(f"NEW       {name}  without a type (nothing but null): cast it, or leave it out")
        elif not new.nullable:
            self.lines.append(f"NEW       {name}  {new.type} not null: a new column must be nullable")

    def _type(self, old: pa.DataType, new: pa.DataType, name: str) -> pa.DataType:
        """The type that holds both."""
        types = pa.types
        if types.is_struct(old) and types.is_struct(new):
            mine, theirs = ([kind.field(i) for i in range(kind.num_fields)] for kind in (old, new))
            return pa.struct(self.fields(mine, theirs, f"{name}.", add=True, needs_all=True))
        if types.is_list(old) and types.is_list(new):
            kind = self._type(old.value_type, new.value_type, f"{name}.element")
            return pa.list_(pa.field(old.value_field.name, kind, True))
        if types.is_map(old) and types.is_map(new) and old.key_type == new.key_type:
            return pa.map_(old.key_type, self._type(old.item_type, new.item_type, f"{name}.value"))
        wider = _common(old, new)
        if wider is None:
            self.lines.append(f"MISMATCH  {name}  table {old}, batch {new}")
        return wider or old


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
    return None


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
