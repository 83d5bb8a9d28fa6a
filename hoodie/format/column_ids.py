"""Arrow schemas as columns with ids, and back: which column of a schema is which of those before.

Numbers are given away as Apache Hudi does (`InternalSchemaConverter`): to all fields of a record first, then to what is inside them.
Kinds of values are spelled as its `SerDeHelper` parses them: it writes `timestamp-millis`, which it cannot read again, so that
`timestamp_millis` is written here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from hoodie.errors import SchemaError, UnsupportedTableError
from hoodie.format.avro_schema import decimal_size, parse_schema, schema_text
from hoodie.format.variants import METADATA, VALUE, VARIANT, is_variant
from hoodie.model.columns import ARRAY, MAP, RECORD, Column, ColumnSet, all_ids
from hoodie.model.meta_fields import META_COLUMNS

_KINDS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "time_millis": pa.time32("ms"),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_millis": pa.timestamp("ms", "UTC"),
    "local_timestamp_micros": pa.timestamp("us"),
    "local_timestamp_millis": pa.timestamp("ms"),
    "uuid": pa.string(),
}
_NAMES = {kind: name for name, kind in reversed(_KINDS.items())}
_DECIMAL = re.compile(r"decimal(?:_bytes|_fixed)?\((\d+),\s*(\d+)\)(?:\[\d+\])?")
_FIXED = re.compile(r"fixed\[(\d+)\]")


def first_columns(schema: pa.Schema, *, meta_columns: bool, docs: Mapping[str, str]) -> ColumnSet:
    """The columns of a table without a history; `docs`: what is said of columns, by their names."""
    meta = [pa.field(name, pa.string()) for name in META_COLUMNS] if meta_columns else []
    columns_with_ids = numbered([*meta, *schema], count())
    columns = tuple(replace(column, doc=docs.get(column.name)) for column in columns_with_ids)
    return ColumnSet(0, columns, max(all_ids(columns), default=-1))


def numbered(fields: Sequence[pa.Field], ids: Iterator[int]) -> tuple[Column, ...]:
    """The fields as new columns.

    Raises:
        SchemaError: a table cannot have such a column.
    """
    numbers = [next(ids) for _ in fields]
    return tuple(
        Column(number, field.name, _numbered_parts(field.type, ids), kind_of(field.type), field.nullable)
        for number, field in zip(numbers, fields, strict=True)
    )


_PARTS_OF_VARIANT = tuple(
    Column(number, name, (), "binary", False, f"Variant {name} component")
    for number, name in ((-2, METADATA), (-1, VALUE))
)
"""By the negative ids Apache Hudi tells them from columns, and so does this."""


def _numbered_parts(kind: pa.DataType, ids: Iterator[int]) -> tuple[Column, ...]:
    return _PARTS_OF_VARIANT if is_variant(kind) else numbered(_parts(kind), ids)


def evolved(before: ColumnSet, schema: pa.Schema, version: int) -> ColumnSet:
    """The columns after a write with this schema, which has no meta columns; the very same where nothing has changed.

    A column stays the one that had its name before; a new name is a new column.
    """
    meta = tuple(column for column in before.columns if column.name in META_COLUMNS)
    columns = (*meta, *_aligned(before.columns, list(schema), count(before.max_id + 1)))
    return before if columns == before.columns else ColumnSet(version, columns, max([before.max_id, *all_ids(columns)]))


def with_docs(schema_json: str, columns: Sequence[Column]) -> str:
    """The Avro schema of a commit with what is said of its columns, those inside of others left out."""
    docs = {column.name: column.doc for column in columns if column.doc and column.name not in META_COLUMNS}
    if not docs:
        return schema_json
    avro = dict(parse_schema(schema_json))
    fields = [{**each, "doc": docs[each["name"]]} if each["name"] in docs else each for each in avro["fields"]]
    return schema_text({**avro, "fields": fields})


def _aligned(before: Sequence[Column], fields: Sequence[pa.Field], ids: Iterator[int]) -> tuple[Column, ...]:
    there = {column.name: column for column in before}
    return tuple(
        numbered([field], ids)[0] if field.name not in there else _follow(there[field.name], field, ids)
        for field in fields
    )


def _follow(before: Column, field: pa.Field, ids: Iterator[int]) -> Column:
    kind = kind_of(field.type)
    if kind != before.kind and {kind, before.kind} & {RECORD, ARRAY, MAP}:
        return numbered([field], ids)[0]
    parts: tuple[Column, ...] = ()
    if is_variant(field.type):
        return before if type_of(before) == field.type else numbered([field], ids)[0]
    if kind == RECORD:
        parts = _aligned(before.parts, _parts(field.type), ids)
    elif kind in (ARRAY, MAP):
        parts = (*before.parts[:-1], _follow(before.parts[-1], _parts(field.type)[-1], ids))
    elif type_of(before) == field.type:
        kind = before.kind
    return replace(before, parts=parts, kind=kind, optional=before.optional or field.nullable)


def kind_of(kind: pa.DataType) -> str:
    """A type in Apache Hudi's words.

    Raises:
        SchemaError: a table cannot have it.
    """
    if pa.types.is_struct(kind):
        return RECORD
    if pa.types.is_list(kind):
        return ARRAY
    if pa.types.is_map(kind):
        return MAP
    if pa.types.is_decimal(kind):
        return f"decimal_fixed({kind.precision}, {kind.scale})[{decimal_size(kind.precision)}]"
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    if kind not in _NAMES:
        raise SchemaError(f"a table whose columns have a history cannot have a column of type {kind}")
    return _NAMES[kind]


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The columns but the meta columns as a schema.

    Raises:
        UnsupportedTableError: one has a type that this release does not know.
    """
    return pa.schema(
        [pa.field(each.name, type_of(each), each.optional) for each in columns if each.name not in META_COLUMNS]
    )


def type_of(column: Column) -> pa.DataType:
    """Its Arrow type; raises as `schema_of`."""
    if column.kind == RECORD and any(part.id < 0 for part in column.parts):
        return VARIANT
    parts = [pa.field(part.name, type_of(part), part.optional) for part in column.parts]
    if column.kind == RECORD:
        return pa.struct(parts)
    if column.kind == ARRAY:
        return pa.list_(parts[0])
    if column.kind == MAP:
        make_map: Any = pa.map_  # the stubs do not know that a field may stand for the values
        return make_map(parts[0].type, parts[1])  # type: ignore[no-any-return]
    kind = column.kind.lower()
    decimal, fixed = _DECIMAL.fullmatch(kind), _FIXED.fullmatch(kind)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if fixed is not None:
        return pa.binary(int(fixed[1]))
    result = _KINDS.get(kind.replace("-", "_"))
    if result is None:
        raise UnsupportedTableError(
            f"column {column.name!r} has type {column.kind!r}, which this release does not know"
        )
    return result


def _parts(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_list(kind):
        return [kind.value_field.with_name("element")]
    if pa.types.is_map(kind):
        return [pa.field("key", kind.key_type, False), kind.item_field.with_name("value")]
    return []
