"""Spark's schemas, as Spark writes them in JSON, as Arrow schemas: without Spark."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from hoodie.errors import SchemaError

_PLAIN: dict[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_TEXT = re.compile(r"(?:var)?char\(\d+\)")


def arrow_from_spark(text: str) -> pa.Schema:
    """The columns of what `StructType.json()` gives.

    Raises:
        SchemaError: a column has a type that no table has.
    """
    return pa.schema([_field(field, field["name"]) for field in json.loads(text)["fields"]])


def _field(field: Any, path: str) -> pa.Field:
    return pa.field(field["name"], _type(field["type"], path), field["nullable"])


def _type(kind: Any, path: str) -> pa.DataType:
    if isinstance(kind, str):
        decimal = _DECIMAL.fullmatch(kind)
        if decimal is not None:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        if kind in _PLAIN or _TEXT.fullmatch(kind):
            return _PLAIN.get(kind, pa.string())
    elif kind["type"] == "struct":
        return pa.struct([_field(field, f"{path}.{field['name']}") for field in kind["fields"]])
    elif kind["type"] == "array":
        return pa.list_(pa.field("element", _type(kind["elementType"], f"{path}.element"), kind["containsNull"]))
    elif kind["type"] == "map":
        return pa.map_(_type(kind["keyType"], f"{path}.key"), _type(kind["valueType"], f"{path}.value"))
    raise SchemaError(f"column {path!r} has Spark's type {json.dumps(kind)}, which a table cannot store: cast it first")
