"""Rows as plain values that compare equal exactly when the data does: the encoding of the golden `expected.json` files.

One encoding for what hoodie reads, what Apache Hudi reads and what hudi-rs reads, so that a test compares lists.
"""

import base64
import json
import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
ORDER = ("_hoodie_partition_path", "_hoodie_record_key")


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of `table`, encoded, sorted by partition path and record key where it has them, then by content.

    JSON null, booleans, numbers and strings stay; `{"$decimal": "1.20"}`, `{"$timestamp": "...Z"}` (UTC, microseconds,
    no Z without a zone), `{"$date": ...}`, `{"$binary": base64}`, `{"$map": [[key, value], ...]}`; lists are lists and
    structs objects. NaN and the infinities are `{"$float": ...}`: NaN must equal NaN here.
    """
    columns = [[encode(value, field.type) for value in table[i].to_pylist()] for i, field in enumerate(table.schema)]
    return sorted_rows(dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True))


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Encoded rows in the order of `rows_of`."""
    return sorted(rows, key=lambda row: (*(row.get(name) or "" for name in ORDER), json.dumps(row, sort_keys=True)))


def without(rows: Iterable[Row], *names: str) -> list[Row]:
    """The rows less some columns: those that a comparison is not about, such as a seqno of another writer."""
    return sorted_rows({key: value for key, value in row.items() if key not in names} for row in rows)


def encode(value: Any, kind: pa.DataType) -> Any:
    """One value of a column of type `kind` in the encoding of `rows_of`; nested values by their own types."""
    types = pa.types
    if value is None:
        return None
    if types.is_dictionary(kind):
        return encode(value, kind.value_type)
    if types.is_floating(kind):
        return value if math.isfinite(value) else {"$float": str(value)}
    if types.is_boolean(kind) or types.is_integer(kind) or isinstance(value, str):
        return value
    if types.is_decimal(kind):
        return {"$decimal": format(value, "f")}
    if types.is_timestamp(kind):
        return {"$timestamp": _timestamp(value)}
    if types.is_date(kind):
        assert isinstance(value, date)
        return {"$date": value.isoformat()}
    if isinstance(value, bytes):
        return {"$binary": base64.b64encode(value).decode("ascii")}
    if types.is_map(kind):
        return {"$map": [[encode(k, kind.key_type), encode(v, kind.item_type)] for k, v in value]}
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return [encode(item, kind.value_type) for item in value]
    if types.is_struct(kind):
        return {field.name: encode(value[field.name], field.type) for field in kind}
    raise TypeError(f"no encoding for a value of type {kind}")


def _timestamp(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
