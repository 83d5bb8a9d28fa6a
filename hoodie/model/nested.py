"""Nested fields of columns: their paths, and their nullability: all of them may be null, whatever a writer stated.

A field of a struct has no value where the struct itself is null, so that engines which take "not null" for a promise about
every row cannot hold a null struct. Parquet files of Spark have all fields nullable for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa


def nullable_within(schema: pa.Schema) -> pa.Schema:
    """The columns with everything inside them nullable; whether a column itself is, stays."""
    fields = [field.with_type(nullable_parts(field.type)) for field in schema]
    return schema if all(new.type is old.type for new, old in zip(fields, schema, strict=True)) else pa.schema(fields)


def nullable_columns(schema: pa.Schema) -> pa.Schema:
    """The columns, all nullable."""
    return pa.schema([field.with_nullable(True) for field in schema])


def nullable_parts(kind: pa.DataType) -> pa.DataType:
    """The type with nullable fields, elements and values at every depth; the very same where it has none."""
    if pa.types.is_struct(kind):
        return pa.struct([_nullable(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_field))
    if pa.types.is_map(kind):
        make_map: Any = pa.map_  # the stubs do not know that fields may stand for keys and values
        result: pa.DataType = make_map(kind.key_field, _nullable(kind.item_field))
        return result
    return kind


def with_fields(kind: pa.DataType, more: pa.DataType) -> pa.DataType:
    """The type with the fields of another one that it lacks, at every depth, behind its own. Names of any case are one field."""
    types = pa.types
    if types.is_struct(kind) and types.is_struct(more):
        own, given = ([each.field(i) for i in range(each.num_fields)] for each in (kind, more))
        by_name = {field.name.lower(): field for field in given}
        fields = []
        for field in own:
            other = by_name.pop(field.name.lower(), field)
            fields.append(field.with_type(with_fields(field.type, other.type)))
        return pa.struct([*fields, *(_nullable(field) for field in by_name.values())])
    if types.is_list(kind) and types.is_list(more):
        return pa.list_(kind.value_field.with_type(with_fields(kind.value_type, more.value_type)))
    if types.is_map(kind) and types.is_map(more):
        make_map: Any = pa.map_
        items = kind.item_field.with_type(with_fields(kind.item_type, more.item_type))
        result: pa.DataType = make_map(kind.key_field, items)
        return result
    return kind


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_type(nullable_parts(field.type)).with_nullable(True)


def field_at(schema: pa.Schema, path: str) -> pa.Field | None:
    """The column, or the part of one, at a path such as `address.zip`, called by the path; None where there is none."""
    top, *inner = path.split(".")
    field = schema.field(top) if top in schema.names else None
    for name in inner:
        at = field.type.get_field_index(name) if field is not None and pa.types.is_struct(field.type) else -1
        field = None if field is None or at < 0 else field.type.field(at)
    return None if field is None else field.with_name(path)


def column_paths(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """The names of columns and of what is inside of them, such as `address.zip` and `tags.element`."""
    for field in fields:
        path, kind = f"{above}{field.name}", field.type
        yield path
        if pa.types.is_struct(kind):
            yield from column_paths((kind.field(i) for i in range(kind.num_fields)), f"{path}.")
        elif pa.types.is_list(kind):
            yield from column_paths([kind.value_field.with_name("element")], f"{path}.")
        elif pa.types.is_map(kind):
            yield from column_paths([kind.item_field.with_name("value")], f"{path}.")
