"""Columns, bounds and partition values as Iceberg's metadata has them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

import pyarrow as pa

from hoodie.errors import SchemaError
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.statistics import ValueRange

_FIRST_META_ID = 2_000_000_000
"""Beyond those of columns, and below those that Iceberg reserves."""
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


class ColumnIds:
    """Numbers of columns by their names, at any depth: those that a table has given, and new ones."""

    def __init__(self, last: int, ids: Mapping[str, int]) -> None:
        self.last = last
        self._ids = ids

    def of(self, path: str) -> int:
        if path in self._ids:
            return self._ids[path]
        self.last += 1
        return self.last


def fields_of(schema: pa.Schema, ids: ColumnIds) -> list[dict[str, Any]]:
    """The columns as JSON values.

    Raises:
        SchemaError: Iceberg has no such type.
    """
    return [_field(each, ids, "") for each in schema]


def _field(field: Any, ids: ColumnIds, above: str) -> dict[str, Any]:
    path = f"{above}{field.name}"
    try:
        return {"id": ids.of(path), "name": field.name, "required": False, "type": _type(field.type, ids, f"{path}.")}
    except SchemaError as exc:
        raise SchemaError(f"column {field.name!r}: {exc}") from None


def _type(kind: Any, ids: ColumnIds, above: str) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind]
    types = pa.types
    if types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if types.is_timestamp(kind) and kind.unit in _MICROSECONDS:
        return "timestamp" if kind.tz is None else "timestamptz"
    if types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    if types.is_struct(kind):
        return {"type": "struct", "fields": [_field(kind.field(at), ids, above) for at in range(kind.num_fields)]}
    if types.is_list(kind) or types.is_large_list(kind):
        number = ids.of(f"{above}element")
        element = _type(kind.value_type, ids, f"{above}element.")
        return {"type": "list", "element-id": number, "element": element, "element-required": False}
    if types.is_map(kind):
        key, value = ids.of(f"{above}key"), ids.of(f"{above}value")
        return {
            "type": "map",
            **{"key-id": key, "key": _type(kind.key_type, ids, f"{above}key.")},
            **{"value-id": value, "value": _type(kind.item_type, ids, f"{above}value."), "value-required": False},
        }
    raise SchemaError(f"Iceberg has no type for {kind}")


def ids_of(fields: list[dict[str, Any]], above: str = "") -> dict[str, int]:
    """Path of names -> number, of columns that `fields_of` gave."""
    result: dict[str, int] = {}
    for name, number, kind in _parts({"type": "struct", "fields": fields}):
        result[f"{above}{name}"] = number
        if isinstance(kind, dict):
            below = kind["fields"] if kind["type"] == "struct" else _as_fields(kind)
            result |= ids_of(below, f"{above}{name}.")
    return result


def _as_fields(kind: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "id": number, "type": part} for name, number, part in _parts(kind)]


def _parts(kind: dict[str, Any]) -> Iterator[tuple[str, int, Any]]:
    match kind["type"]:
        case "struct":
            yield from ((each["name"], each["id"], each["type"]) for each in kind["fields"])
        case "list":
            yield "element", kind["element-id"], kind["element"]
        case "map":
            yield "key", kind["key-id"], kind["key"]
            yield "value", kind["value-id"], kind["value"]


def name_mapping(fields: list[dict[str, Any]], before: str = "[]", stored: Iterable[pa.Schema] = ()) -> str:
    """What readers find columns of files by, which have no numbers.

    Columns and fields that only files have are in it, too: PyIceberg refuses files with a column that it does not find.
    `before`: the mapping until now, which has those that were dropped. `stored`: the columns of files.
    """
    entries = _mapped(fields)
    _add(entries, json.loads(before))
    meta = [{"field-id": _FIRST_META_ID + at, "names": [name]} for at, name in enumerate(META_COLUMNS)]
    _add(entries, meta)
    for schema in stored:
        _add(entries, _of_file(schema))
    numbers = count(1 + max(_FIRST_META_ID + len(META_COLUMNS), *_numbers(entries)))
    return json.dumps([_numbered(each, numbers) for each in entries], ensure_ascii=False)


def _add(entries: list[dict[str, Any]], others: Iterable[dict[str, Any]]) -> None:
    """Add those whose names are missing, at any depth."""
    there = {name: each for each in entries for name in each["names"]}
    for other in others:
        entry = there.get(other["names"][0])
        if entry is None:
            entries.append(other)
        elif "fields" in entry:
            _add(entry["fields"], other.get("fields", ()))


def _of_file(fields: Iterable[pa.Field[Any]]) -> list[dict[str, Any]]:
    """Entries without numbers."""
    return [{"names": [each.name], **_parts_of_file(each.type)} for each in fields]


def _parts_of_file(kind: Any) -> dict[str, Any]:
    if pa.types.is_struct(kind):
        return {"fields": _of_file(kind)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"fields": [{"names": ["element"], **_parts_of_file(kind.value_type)}]}
    if pa.types.is_map(kind):
        parts = {"key": kind.key_type, "value": kind.item_type}
        return {"fields": [{"names": [name], **_parts_of_file(part)} for name, part in parts.items()]}
    return {}


def _numbers(entries: Iterable[dict[str, Any]]) -> Iterator[int]:
    for each in entries:
        yield each.get("field-id", 0)
        yield from _numbers(each.get("fields", ()))


def _numbered(entry: dict[str, Any], numbers: Iterator[int]) -> dict[str, Any]:
    result = {"field-id": entry["field-id"] if "field-id" in entry else next(numbers), "names": entry["names"]}
    parts = [_numbered(each, numbers) for each in entry.get("fields", ())]
    return {**result, "fields": parts} if parts else result


def _mapped(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    result = []
    for each in fields:
        entry: dict[str, Any] = {"field-id": each["id"], "names": [each["name"]]}
        kind = each["type"]
        if isinstance(kind, dict):
            entry["fields"] = _mapped(kind["fields"] if kind["type"] == "struct" else _as_fields(kind))
        result.append(entry)
    return result


def bounds(limits: ValueRange, kind: Any) -> tuple[bytes, bytes] | None:
    """Of a file, as bytes; None: nothing is said of floats, where NaN is in no bounds, and of types with bytes of their own."""
    low, high = limits.low, limits.high
    if low is None or high is None:
        return None
    types = pa.types
    if types.is_string(kind):
        return low.encode(), high.encode()
    if types.is_timestamp(kind):
        times = _MICROSECONDS.get(kind.unit)
        return None if times is None else (struct.pack("<q", low * times), struct.pack("<q", high * times))
    if types.is_date32(kind) or types.is_int32(kind):
        return struct.pack("<i", low), struct.pack("<i", high)
    return (struct.pack("<q", low), struct.pack("<q", high)) if types.is_int64(kind) else None


def avro_of(kind: Any) -> Any:
    """The type of a partition column's values in Avro.

    Raises:
        SchemaError: values of such a column are not written.
    """
    types = pa.types
    if types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": kind.tz is not None}
    if types.is_date32(kind):
        return {"type": "int", "logicalType": "date"}
    plain = {
        "int": "int",
        "long": "long",
        "string": "string",
        "boolean": "boolean",
        "float": "float",
        "double": "double",
    }
    name = _PLAIN.get(kind, "")
    if name not in plain:
        raise SchemaError(f"partition values of type {kind} are not published in Iceberg")
    return plain[name]
