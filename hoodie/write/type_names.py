"""Names of types, as texts: Arrow's, and what SQL, Spark, Avro, pandas and Python call the same."""

from __future__ import annotations

import difflib
import re
from datetime import date, datetime
from typing import Any

import pyarrow as pa

_LOCAL, _UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
_NAMES: dict[str, pa.DataType] = {
    **dict.fromkeys(("byte", "tinyint", "short", "smallint"), pa.int32()),
    **dict.fromkeys(("int", "integer", "long", "bigint"), pa.int64()),
    "real": pa.float32(),
    "double precision": pa.float64(),
    **dict.fromkeys(("text", "varchar", "char", "character varying"), pa.string()),
    "boolean": pa.bool_(),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), pa.binary()),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "datetime", "timestamp_ntz", "timestamp without time zone"), _LOCAL),
    **dict.fromkeys(("timestamptz", "timestamp_ltz", "timestamp with time zone"), _UTC),
    "timestamp with local time zone": _UTC,
    "variant": pa.json_(),
}
_CLASSES: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    bool: pa.bool_(),
    date: pa.date32(),
    datetime: _LOCAL,
}
_DECIMAL = re.compile(r"(?:decimal(?:128)?|numeric|dec)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_TEXT = re.compile(r"(?:var)?char\(\s*\d+\s*\)")
_ZONED = re.compile(
    r"timestamp\[(s|ms|us|ns), *(?:tz=)?([^\]]+)\]|datetime64\[(s|ms|us|ns)(?:, *([^\]]+))?\]", re.IGNORECASE
)
_PARTS = re.compile(r"(array|list|map|struct)<(.*)>", re.IGNORECASE | re.DOTALL)
_LABEL = re.compile(r"^\s*(?:item|element|key|value)\s*:")
"""Arrow writes list<item: int64>."""
_FIELD = re.compile(r"\s*`?([^:`]+?)`?\s*:(.*)", re.DOTALL)


def type_named(name: Any) -> pa.DataType | None:
    """The type of a name, or of a class of Python's; None for what is none."""
    if not isinstance(name, str):
        return _CLASSES.get(name) if isinstance(name, type) else None
    name = name.strip()
    nested = _PARTS.fullmatch(name)
    if nested is not None:
        return _nested(nested[1].lower(), _split(nested[2]))
    zoned = _ZONED.fullmatch(name)
    if zoned is not None:
        unit: Any = (zoned[1] or zoned[3]).lower()
        return pa.timestamp(unit, zoned[2] or zoned[4])
    name = re.sub(r"\s+", " ", name.lower())
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2] or 0))
    if _TEXT.fullmatch(name):
        return pa.string()
    return _NAMES.get(name) or _of_arrow(name)


def near_name(name: Any) -> str | None:
    """A name that might be meant."""
    if str(name).lower().startswith(("decimal", "numeric")):
        return "decimal(10, 2)"
    names = [*_NAMES, "string", "int32", "int64", "float32", "float64", "double", "bool", "binary", "date32"]
    return next(iter(difflib.get_close_matches(str(name).lower(), names, n=1)), None)


def _of_arrow(name: str) -> pa.DataType | None:
    alias: Any = pa.type_for_alias  # its stubs know texts that are written out only
    try:
        result: pa.DataType = alias(name)
    except ValueError:
        return None
    return result


def _nested(name: str, parts: list[str]) -> pa.DataType | None:
    if name == "struct":
        fields = [(match[1], type_named(match[2])) for part in parts if (match := _FIELD.fullmatch(part))]
        columns = [pa.field(field, kind) for field, kind in fields if kind is not None]
        return pa.struct(columns) if len(columns) == len(parts) else None
    kinds = [kind for part in parts if (kind := type_named(_LABEL.sub("", part)))]
    if len(kinds) != len(parts) or len(kinds) != (2 if name == "map" else 1):
        return None
    return pa.map_(*kinds) if name == "map" else pa.list_(*kinds)


def _split(text: str) -> list[str]:
    """What stands between the commas that are within no brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
