"""Columns as BigQuery has them: as text of GoogleSQL, and as fields of its client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hoodie.errors import SchemaError

_LARGEST_NUMERIC = (29, 9)
"""Digits before and after the point that NUMERIC has."""


def changes_of(old: Sequence[Any], new: Sequence[Any]) -> tuple[str, ...]:
    before, after = ({each.name: _shape(each) for each in fields} for fields in (old, new))
    return (
        *(f"{name} added" for name in after if name not in before),
        *(f"{name} changed" for name in after if name in before and before[name] != after[name]),
        *(f"{name} dropped" for name in before if name not in after),
    )


def _shape(field: Any) -> Any:
    """What counts of a field, by the names of types that BigQuery answers with."""
    old = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
    kind = old.get(field.field_type, field.field_type)
    return kind, field.mode == "REPEATED", tuple((each.name, _shape(each)) for each in field.fields)


def fields_of(columns: Sequence[pa.Field[Any]]) -> list[Any]:
    return [_field(each.name, each.type, each.name) for each in columns]


def _field(name: str, kind: Any, column: str, mode: str = "NULLABLE") -> Any:
    from google.cloud.bigquery import SchemaField  # noqa: PLC0415 - an optional extra

    if _is_list(kind):
        inner = _field(name, kind.value_type, column)
        return SchemaField(name, inner.field_type, "REPEATED", fields=inner.fields)
    if pa.types.is_struct(kind):
        return SchemaField(name, "STRUCT", mode, fields=[_field(each.name, each.type, column) for each in kind])
    if pa.types.is_map(kind):
        pair = [
            _field("key", kind.key_type, column, "REQUIRED"),
            _field("value", kind.item_type, column),
        ]
        return SchemaField(name, "STRUCT", mode, fields=[SchemaField("key_value", "STRUCT", "REPEATED", fields=pair)])
    return SchemaField(name, _scalar(kind, column), mode)


def type_text(kind: Any, column: str) -> str:
    """The type in GoogleSQL."""
    if _is_list(kind):
        if _is_list(kind.value_type):
            raise SchemaError(f"column {column!r} cannot be registered in BigQuery, which has no lists of lists")
        return f"ARRAY<{type_text(kind.value_type, column)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'`{each.name}` {type_text(each.type, column)}' for each in kind)}>"
    if pa.types.is_map(kind):
        key, value = (type_text(each, column) for each in (kind.key_type, kind.item_type))
        return f"STRUCT<`key_value` ARRAY<STRUCT<`key` {key} NOT NULL, `value` {value}>>>"
    return _scalar(kind, column)


def _is_list(kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _scalar(kind: Any, column: str) -> str:
    types = pa.types
    for is_it, name in (
        (types.is_integer, "INT64"),
        (types.is_floating, "FLOAT64"),
        (types.is_boolean, "BOOL"),
        (types.is_string, "STRING"),
        (types.is_large_string, "STRING"),
        (types.is_binary, "BYTES"),
        (types.is_large_binary, "BYTES"),
        (types.is_fixed_size_binary, "BYTES"),
        (types.is_date, "DATE"),
        (types.is_time, "TIME"),
    ):
        if is_it(kind):
            return name
    if types.is_timestamp(kind):
        return "DATETIME" if kind.tz is None else "TIMESTAMP"
    if types.is_decimal(kind):
        before, after = _LARGEST_NUMERIC
        fits = kind.scale <= after and kind.precision - kind.scale <= before
        return "NUMERIC" if fits else "BIGNUMERIC"
    raise SchemaError(f"column {column!r} of type {kind} cannot be registered in BigQuery, which has no such type")
