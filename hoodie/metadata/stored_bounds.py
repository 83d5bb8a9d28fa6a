"""Bounds of columns as records of a metadata table store them: in a wrapper, and, from index version V2 on, with their type.

V1, of tables before version 9: dates in a wrapper of their own, decimals with 15 digits after the point, timestamps as whole numbers
of microseconds; other types have no bounds. V2: the plain number or the bytes of a value, and beside them which type that is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

pc: Any = pyarrow.compute
_timestamp: Any = pa.timestamp
_SCALE, _PRECISION = 15, 30
_DECIMAL_TYPE = 10
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_PHYSICAL: Mapping[str, pa.DataType] = {
    **{"BOOLEAN": pa.bool_(), "INT32": pa.int32(), "INT64": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64()},
    "BYTE_ARRAY": pa.binary(),
}
_PLAIN = frozenset({"NONE", "UNKNOWN"})


class BoundStorage(NamedTuple):
    """How bounds of one type are stored."""

    wrapper: str
    type_number: int | None = None
    """The place of the type in Apache Hudi's list; None in V1."""
    scale: int = 0
    precision: int = 0
    """Of decimals."""

    def wrapped(self, value: Any) -> tuple[str, dict[str, Any]] | None:
        """A bound for a record; None where there is none."""
        if value is None:
            return None
        if self.type_number == _DECIMAL_TYPE:
            value = _unscaled_bytes(value, self.scale)
        return f"org.apache.hudi.avro.model.{self.wrapper}", {"value": value}

    @property
    def type_info(self) -> dict[str, Any] | None:
        """What the record says of the type."""
        if self.type_number is None:
            return None
        more = f"{self.precision},{self.scale}" if self.type_number == _DECIMAL_TYPE else None
        return {"typeOrdinal": self.type_number, "additionalInfo": more}


class Range(NamedTuple):
    """What is known of a column in a file, or in a partition. Bounds are numbers, texts, bytes, or decimals."""

    stored: BoundStorage
    low: Any
    high: Any
    nulls: int
    values: int
    """Nulls among them."""
    size_bytes: int = 0
    raw_bytes: int = 0
    """Uncompressed. Both are 0 where that is not known."""


Ranges = dict[str, Range]
"""By the name of the column."""

_NULL = BoundStorage("", 1)
"""Of a column of which nothing is known in V2."""


def stored_as(kind: pa.DataType, *, typed: bool) -> BoundStorage | None:
    """How bounds of a type are stored, by V2 where `typed`; None where they are not."""
    types = pa.types
    if types.is_decimal(kind):
        if typed:
            return BoundStorage("BytesWrapper", _DECIMAL_TYPE, kind.scale, kind.precision)
        fits = kind.scale <= _SCALE and kind.precision + _SCALE - kind.scale <= _PRECISION
        return BoundStorage("DecimalWrapper") if fits else None
    if types.is_timestamp(kind):
        if not typed:
            return BoundStorage("LongWrapper") if kind.unit == "us" else None
        first = 15 if kind.tz is not None else 18
        return BoundStorage("LongWrapper", first + ("ms", "us", "ns").index(kind.unit)) if kind.unit != "s" else None
    for has_type, plain, number, wrapper in _TYPES:
        if has_type(kind):
            return BoundStorage(wrapper, number) if typed else BoundStorage(plain) if plain else None
    return None


_TYPES: Any = (
    (pa.types.is_boolean, "BooleanWrapper", 2, "BooleanWrapper"),
    (lambda kind: kind in (pa.int8(), pa.int16(), pa.int32()), "IntWrapper", 3, "IntWrapper"),
    (pa.types.is_int64, "LongWrapper", 4, "LongWrapper"),
    (pa.types.is_float32, "FloatWrapper", 5, "FloatWrapper"),
    (pa.types.is_float64, "DoubleWrapper", 6, "DoubleWrapper"),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), "StringWrapper", 7, "StringWrapper"),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), None, 8, "BytesWrapper"),
    (pa.types.is_fixed_size_binary, None, 9, "BytesWrapper"),
    (pa.types.is_date32, "DateWrapper", 12, "IntWrapper"),
    (lambda kind: kind == pa.time32("ms"), None, 13, "IntWrapper"),
    (lambda kind: kind == pa.time64("us"), None, 14, "LongWrapper"),
)
"""Whether it is the type; the wrapper in V1; the number of the type and the wrapper in V2."""


def ranges_of_footer(footer: pq.FileMetaData, columns: Iterable[str], *, typed: bool) -> dict[str, Range | None]:
    """Of each of these columns that the file has and whose type has bounds; None where the footer does not say them."""
    names, ranges = frozenset(columns), {}
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        if column.path not in names or column.max_repetition_level:
            continue
        stored = stored_as(kind, typed=typed) if (kind := _kind_of(column)) is not None else None
        if stored is not None:
            ranges[column.path] = _in_chunks([group.column(number) for group in groups], column, stored)
    return ranges


def ranges_of_rows(rows: pa.Table, *, typed: bool) -> Ranges:
    """Of each column whose type has bounds. NaN is greater than all other numbers."""
    result = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        values: Any = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        stored = stored_as(values.type, typed=typed)
        if stored is not None:
            result[name] = Range(stored, *least_and_greatest(values), values.null_count, len(values))
    return result


def least_and_greatest(values: Any) -> tuple[Any, Any]:
    """Of an Arrow array, as `Range` has them; None where it has nothing but nulls."""
    kind, nan = values.type, None
    if pa.types.is_floating(kind):
        is_nan = pc.is_nan(values).fill_null(False)
        if pc.any(is_nan).as_py():
            nan, values = float("nan"), values.filter(pc.invert(is_nan))
    bounds = pc.min_max(values)
    low, high = (plain_value(bounds[name]) for name in ("min", "max"))
    return nan if low is None else low, nan if nan is not None else high


def plain_value(scalar: Any) -> Any:
    """An Arrow scalar as a number, a text, bytes, or a decimal; None where it is null."""
    kind = scalar.type
    if pa.types.is_date32(kind) or kind == pa.time32("ms"):
        return scalar.cast(pa.int32()).as_py()
    return (scalar.cast(pa.int64()) if pa.types.is_timestamp(kind) or pa.types.is_time64(kind) else scalar).as_py()


def _kind_of(column: Any) -> pa.DataType | None:
    """The type of a column of a Parquet file; None for one that has no bounds in any version."""
    logical, physical = column.logical_type.type, column.physical_type
    more = json.loads(column.logical_type.to_json())
    if logical == "STRING":
        return pa.string()
    if logical == "DATE":
        return pa.date32()
    if logical == "DECIMAL":
        return pa.decimal128(column.precision, column.scale) if column.precision <= 38 else None
    if logical == "TIMESTAMP":
        result: pa.DataType = _timestamp(_UNITS[more["timeUnit"]], "UTC" if more["isAdjustedToUTC"] else None)
        return result
    if logical == "TIME":
        return {"milliseconds": pa.time32("ms"), "microseconds": pa.time64("us")}.get(more["timeUnit"])
    if logical == "INT":
        return _PHYSICAL[physical] if more["isSigned"] else None
    if logical not in _PLAIN:
        return None
    return pa.binary(column.length) if physical == "FIXED_LEN_BYTE_ARRAY" else _PHYSICAL.get(physical)


def _in_chunks(chunks: Iterable[Any], column: Any, stored: BoundStorage) -> Range | None:
    lows, highs, nulls, values, size, raw_size = [], [], 0, 0, 0, 0
    for chunk in chunks:
        stats = chunk.statistics
        if stats is None or not stats.has_null_count:
            return None
        nulls, values = nulls + stats.null_count, values + chunk.num_values
        size, raw_size = size + chunk.total_compressed_size, raw_size + chunk.total_uncompressed_size
        if stats.has_min_max:
            low, high = (_value(raw, column, stored) for raw in (stats.min_raw, stats.max_raw))
            if low is None or high is None:
                return None
            lows.append(low)
            highs.append(high)
        elif stats.null_count != chunk.num_values:
            return None
    return Range(stored, min(lows, default=None), max(highs, default=None), nulls, values, size, raw_size)


def _value(raw: Any, column: Any, stored: BoundStorage) -> Any:
    """A bound as Parquet stores it; None where it is none of its type."""
    if stored.wrapper == "StringWrapper":
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None
    if stored.type_number == _DECIMAL_TYPE or stored.wrapper == "DecimalWrapper":
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        return Decimal(f"{unscaled}E{-column.scale}")
    return raw


def _unscaled_bytes(value: Decimal, scale: int) -> bytes:
    """As Java's `BigInteger` gives them."""
    sign, digits, exponent = value.as_tuple()
    unscaled: int = int("".join(map(str, digits))) * 10 ** (int(exponent) + scale) * (-1 if sign else 1)
    bits = (~unscaled if unscaled < 0 else unscaled).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


def record_of(name: str, column: str, bounds: Range, *, kind: int, tight: bool = False) -> dict[str, Any]:
    """The fields of the record of a file's column, or, by its path, of a partition's."""
    low, high = (bounds.stored.wrapped(value) for value in (bounds.low, bounds.high))
    return _record(name, column, kind, low, high, bounds[3:], bounds.stored.type_info, tight=tight)


def removed_record(name: str, column: str, *, kind: int, typed: bool, tight: bool = False) -> dict[str, Any]:
    """The fields of one that says that the file, or the partition, is gone."""
    info = _NULL.type_info if typed else None
    return _record(name, column, kind, None, None, (-1, -1, -1, -1), info, is_deleted=True, tight=tight)


def _record(
    name: str,
    column: str,
    kind: int,
    low: Any,
    high: Any,
    counts: tuple[int, int, int, int],
    info: Any,
    *,
    is_deleted: bool = False,
    tight: bool,
) -> dict[str, Any]:
    nulls, values, size_bytes, raw_bytes = counts
    stats = {
        "fileName": name,
        "columnName": column,
        "minValue": low,
        "maxValue": high,
        "nullCount": nulls,
        "valueCount": values,
        "totalSize": size_bytes,
        "totalUncompressedSize": raw_bytes,
        "isDeleted": is_deleted,
        "isTightBound": tight,
        "valueType": info,
    }
    return {"type": kind, "ColumnStatsMetadata": stats}
