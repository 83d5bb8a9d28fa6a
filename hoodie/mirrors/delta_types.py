"""Columns and their bounds as Delta's metadata has them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from hoodie.errors import SchemaError
from hoodie.model.statistics import ValueRange

_LONGEST_BOUND = 100
"""Of texts, in characters: a longer one says nothing more."""
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def schema_string(schema: pa.Schema) -> str:
    """The columns as JSON.

    Raises:
        SchemaError: Delta has no such type.
    """
    return json.dumps({"type": "struct", "fields": [_field(each) for each in schema]}, ensure_ascii=False)


def has_local_times(schema: pa.Schema) -> bool:
    """Whether there are timestamps without a zone, of which not every reader of Delta knows."""
    return any(pa.types.is_timestamp(kind) and kind.tz is None for field in schema for kind in _kinds(field.type))


def _kinds(kind: Any) -> Iterator[Any]:
    yield kind
    for at in range(kind.num_fields if pa.types.is_nested(kind) else 0):
        yield from _kinds(kind.field(at).type)


def _field(field: Any) -> dict[str, Any]:
    try:
        return {"name": field.name, "type": _type(field.type), "nullable": True, "metadata": {}}
    except SchemaError as exc:
        raise SchemaError(f"column {field.name!r}: {exc}") from None


def _type(kind: Any) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind]
    types = pa.types
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind) and kind.unit != "ns":
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if types.is_fixed_size_binary(kind):
        return "binary"
    if types.is_struct(kind):
        return {"type": "struct", "fields": [_field(kind.field(at)) for at in range(kind.num_fields)]}
    if types.is_list(kind) or types.is_large_list(kind):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    if types.is_map(kind):
        key, item = _type(kind.key_type), _type(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": item, "valueContainsNull": True}
    raise SchemaError(f"Delta Lake has no type for {kind}")


def stats_string(rows: int, ranges: Mapping[str, ValueRange], schema: pa.Schema) -> str:
    """What is known of the columns of a file, by which readers leave it out.

    Nothing is said of floats, where NaN is in no bounds, and of types whose text readers may take for another value.
    """
    low, high, nulls = {}, {}, {}
    for name, limits in ranges.items():
        kind = schema.field(name).type
        bounds = _bounds(limits, kind) if _is_bounded(kind) else None
        if bounds is not None:
            low[name], high[name] = bounds
            nulls[name] = limits.nulls
    return json.dumps({"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": nulls}, ensure_ascii=False)


def _is_bounded(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_date32(kind) or types.is_timestamp(kind))


def _bounds(limits: ValueRange, kind: Any) -> tuple[Any, Any] | None:
    low, high = limits.low, limits.high
    if low is None or high is None:
        return None
    try:
        if pa.types.is_date32(kind):
            return tuple(str(date(1970, 1, 1) + timedelta(days)) for days in (low, high))  # type: ignore[return-value]
        if pa.types.is_timestamp(kind):  # of milliseconds; readers of Spark's take bounds for cut off
            unit = {"s": 1, "ms": 1_000, "us": 1_000_000}[kind.unit]
            zone = "Z" if kind.tz is not None else ""
            return _moment(low * 1_000 // unit, zone), _moment(-(-high * 1_000 // unit), zone)
    except (OverflowError, KeyError):
        return None
    if isinstance(low, str) and max(len(low), len(high)) > _LONGEST_BOUND:
        return None
    return low, high


def _moment(milliseconds: int, zone: str) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone


def partition_values(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Values of partition columns as texts."""
    return {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> str | None:
    if not value.is_valid or value.as_py() == "":  # Delta takes an empty text for null
        return None
    if pa.types.is_boolean(value.type):
        return str(value.as_py()).lower()
    if pa.types.is_timestamp(value.type):
        moment = value.cast(pa.timestamp("us", value.type.tz)).as_py()
        return f"{moment.replace(tzinfo=None).isoformat(' ', 'microseconds')}"
    return str(value.as_py())
