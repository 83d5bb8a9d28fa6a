"""VARIANT columns of Apache Hudi 1.x: values of any shape, each as the two byte strings of Parquet's Variant encoding.

Avro says it with the logical type `variant` of a record of `metadata` and `value`, and base files have a group of two required
binaries. In Arrow, inside of hoodie, a variant is a struct of these with long offsets, which no other column of a table has.
Who reads a table sees JSON (`shown_schema`). (Hudi: HoodieSchema.Variant)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

VARIANT_NAME = "variant"
"""The logical type."""
METADATA, VALUE, TYPED_VALUE = "metadata", "value", "typed_value"
VARIANT = pa.struct([pa.field(METADATA, pa.large_binary()), pa.field(VALUE, pa.large_binary())])
"""The type of a variant inside of hoodie."""
STORED_VARIANT = pa.struct([pa.field(METADATA, pa.binary(), False), pa.field(VALUE, pa.binary(), False)])
"""As a Parquet file has it."""
EXTENSION = b"arrow.parquet.variant"
"""What Arrow data call the encoding."""
_PARTS = {METADATA, VALUE}
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())


def is_variant(kind: pa.DataType) -> bool:
    return kind == VARIANT


def is_record_of_variant(avro: Mapping[str, Any]) -> bool:
    """Whether an Avro type with the logical type is what it says."""
    fields = avro.get("fields")
    return isinstance(fields, list) and {each.get("name") for each in fields if isinstance(each, Mapping)} >= _PARTS


def is_raw(kind: Any) -> bool:
    """Whether values of the type are variants in their encoding, as files and Spark have them."""
    if not pa.types.is_struct(kind):
        return False
    kinds = {field.name: field.type for field in kind}
    shredded = kinds.pop(TYPED_VALUE, None) is not None
    return (
        {METADATA} <= kinds.keys()
        and all(each in _BYTES for each in kinds.values())
        and (kinds.keys() == _PARTS or (shredded and kinds.keys() == {METADATA}))
    )


def has_shredded(kind: Any) -> bool:
    """Whether parts of variants stand in columns of their own, at any depth of a file's column."""
    if is_raw(kind):
        return any(kind.field(i).name == TYPED_VALUE for i in range(kind.num_fields))
    return any(has_shredded(kind.field(i).type) for i in range(kind.num_fields))


def _is_one(kind: pa.DataType) -> bool:
    return is_variant(kind) or isinstance(kind, pa.JsonType)


def has_variant(kind: Any) -> bool:
    """Whether the type is a variant, or has one in it; as a table holds it, or as it is shown."""
    return _is_one(kind) or any(has_variant(kind.field(i).type) for i in range(kind.num_fields))


def replaced(kind: Any, other: pa.DataType) -> Any:
    """The type with another one in place of variants, at any depth; the very same where it has none."""
    if _is_one(kind):
        return other
    if not has_variant(kind):
        return kind
    if pa.types.is_struct(kind):
        return pa.struct([_replaced(kind.field(i), other) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        make_map: Any = pa.map_  # the stubs do not know that fields may stand for keys and values
        return make_map(kind.key_field, _replaced(kind.item_field, other))
    return pa.list_(_replaced(kind.value_field, other))


def _replaced(field: Any, other: pa.DataType) -> Any:
    return field.with_type(replaced(field.type, other))


def schema_with(schema: pa.Schema, other: pa.DataType) -> pa.Schema:
    """The columns with another type in place of variants; the very same where there are none."""
    if not any(has_variant(field.type) for field in schema):
        return schema
    return pa.schema([_replaced(field, other) for field in schema])


def shown_schema(schema: pa.Schema) -> pa.Schema:
    """The columns as who reads a table gets them: variants as JSON."""
    return schema_with(schema, pa.json_())


def avro_of_variant(name: str, namespace: str) -> dict[str, Any]:
    """The Avro type of a column, as Apache Hudi makes it."""
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [
            {"name": METADATA, "type": "bytes", "doc": "Variant metadata component"},
            {"name": VALUE, "type": "bytes", "doc": "Variant value component"},
        ],
        "logicalType": VARIANT_NAME,
    }
