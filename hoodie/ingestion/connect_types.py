"""Types that Kafka Connect's schema gives to values of JSON: decimals and bytes are Base64 there, dates and timestamps numbers.

A table that has such a column as Debezium writes it, from before or by its own schema, keeps it so. Times of day stay numbers,
since no table has a type for them, and MySQL's reach beyond a day.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.ingestion.formats import fitting

TYPES = "_hoodie_connect_types"
"""A column of events: what `described` says of the schema of each."""
_BYTES, _EXACT, _DECIMAL, _ZONED, _DAYS = "bytes", "exact", "decimal:", "zoned", "days"
_PER_MS: Mapping[str, int] = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium."
_KINDS: Mapping[str, str] = {
    f"{_CONNECT}Date": _DAYS,
    f"{_CONNECT}Timestamp": "ms",
    f"{_DEBEZIUM}time.Date": _DAYS,
    f"{_DEBEZIUM}time.Timestamp": "ms",
    f"{_DEBEZIUM}time.MicroTimestamp": "us",
    f"{_DEBEZIUM}time.NanoTimestamp": "ns",
    f"{_DEBEZIUM}time.ZonedTimestamp": _ZONED,
    f"{_DEBEZIUM}data.VariableScaleDecimal": _EXACT,
}
_DIGITS, _DECIMAL_BYTES = 38, 16
_BASE64 = r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\z"
_SIX_BITS = np.zeros(256, np.uint32)
_SIX_BITS[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)] = range(64)
_LAST_INT64 = 2**63 - 1
_MOMENT = pa.timestamp("us")
_MOMENT_IN_UTC = pa.timestamp("us", "UTC")
_COMMON_MOMENT = r"\A\d{4}-\d\d-\d\dT[0-9:]+(\.\d{1,6})?(Z|[+-]\d\d:\d\d)\z"
_NO_ROUNDING = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_WRONG = "a value is not of the type that the schema in its event says"


def described(schema: Any) -> str:
    """What to know of the schema of an event, as JSON: column -> how it becomes a value. Empty: nothing is to be done."""
    images = {each.get("field"): each for each in _fields(schema)}
    columns = _fields(images.get("after")) or _fields(images.get("before"))
    kinds = {str(each.get("field")): kind for each in columns if (kind := _kind(each)) is not None}
    return json.dumps(kinds, sort_keys=True, separators=(",", ":")) if kinds else ""


def _fields(schema: Any) -> list[Mapping[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [each for each in fields if isinstance(each, dict)] if isinstance(fields, list) else []


def _kind(field: Mapping[str, Any]) -> str | None:
    name = field.get("name")
    if name != f"{_CONNECT}Decimal":
        return _KINDS.get(str(name), _BYTES if field.get("type") == "bytes" else None)
    parameters: Any = field.get("parameters")
    try:
        scale, digits = (int(parameters.get(each, _DIGITS)) for each in ("scale", "connect.decimal.precision"))
    except (AttributeError, TypeError, ValueError):
        return None
    return f"{_DECIMAL}{scale}" if 0 <= scale <= digits <= _DIGITS else None  # others are no decimals of a table


def with_natural_types(rows: pa.Table, stored: pa.Schema | None) -> tuple[pa.Table, list[tuple[Any, str]]]:
    """The rows without the column of their types, by which their values are read; and which rows cannot be, with a sentence."""
    if TYPES not in rows.schema.names or not rows.num_rows:
        return rows, []
    descriptions = rows.column(TYPES)
    rows = rows.drop_columns([TYPES])
    of_stored = {} if stored is None else {each.name: each.type for each in stored}
    natural: dict[str, pa.DataType] = {}
    parts: list[tuple[np.ndarray, pa.Table, Any]] = []
    for text in pc.unique(descriptions):  # one, unless the schema of the log changed meanwhile
        same = pc.equal(descriptions, text) if text.is_valid else pc.is_null(descriptions)
        places = np.flatnonzero(pc.fill_null(same, False).to_numpy())
        some = rows if len(places) == rows.num_rows else rows.take(places)
        kinds = json.loads(text.as_py()) if text.is_valid else {}
        parts.append((places, *_converted(some, kinds, of_stored, natural)))
    if len(parts) == 1:
        return parts[0][1], [(parts[0][2], _WRONG)]
    order = np.argsort(np.concatenate([places for places, _, _ in parts]))
    wrong = np.concatenate([np.asarray(each) for _, _, each in parts])[order]
    together = pa.concat_tables([_with_nulls_of(part, natural) for _, part, _ in parts])
    return together.take(order), [(pa.array(wrong), _WRONG)]


def _converted(
    rows: pa.Table,
    kinds: Mapping[str, str],
    stored: Mapping[str, pa.DataType],
    natural: dict[str, pa.DataType],
) -> tuple[pa.Table, pa.Array]:
    """The rows, and which of them have a value that is lost. `natural`: the types of columns that had values in rows before."""
    wrong = pa.array(np.zeros(rows.num_rows, bool))
    for number, field in enumerate(rows.schema):
        before = rows.column(number)
        kind, known = kinds.get(field.name), natural.get(field.name, stored.get(field.name))
        is_read = kind is not None and _is_as_written(kind, field.type) and _can_be(kind, known)
        column = _as_kind(before, kind) if is_read and kind is not None else before
        has_values = before.null_count < rows.num_rows
        its_type = natural.setdefault(field.name, column.type) if has_values else column.type
        if column.type != its_type:  # what is as it is written would be another value as that type
            fits = fitting(pa.table({"": column}), {"": its_type}) if is_read else False
            column = pc.cast(pc.if_else(fits, column, pa.scalar(None, column.type)), its_type)
        if column is not before:
            rows = rows.set_column(number, field.name, column)
            lost = pc.and_(pc.is_valid(before), pc.is_null(column))
            wrong = pc.or_(wrong, lost.combine_chunks())
    return rows, wrong


def _with_nulls_of(rows: pa.Table, types: dict[str, Any]) -> pa.Table:
    """Columns without a value get the types that other rows have."""
    for number, field in enumerate(rows.schema):
        if types.setdefault(field.name, field.type) != field.type:
            rows = rows.set_column(number, field.name, pa.nulls(rows.num_rows, types[field.name]))
    return rows


def _as_kind(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    its_type, convert = _conversion(kind)
    return pa.chunked_array([convert(each) for each in column.chunks], its_type)


def _is_as_written(kind: str, found: pa.DataType) -> bool:
    """Values of JSON are what the schema means: not so if Connect has been told to write decimals as numbers."""
    if kind == _EXACT:
        return pa.types.is_struct(found) and min(found.get_field_index(each) for each in ("scale", "value")) >= 0
    is_number = kind == _DAYS or kind in _PER_MS
    return pa.types.is_integer(found) if is_number else pa.types.is_string(found)


def _can_be(kind: str, stored: pa.DataType | None) -> bool:
    """A stored column that has values as they are written keeps to it: it would be a mix."""
    if stored is None:
        return True
    if kind == _EXACT:
        return not pa.types.is_nested(stored)
    if kind == _BYTES:
        return pa.types.is_binary(stored) or pa.types.is_fixed_size_binary(stored)
    if kind.startswith(_DECIMAL):
        return pa.types.is_decimal(stored) or pa.types.is_floating(stored)
    return pa.types.is_temporal(stored)


def _conversion(kind: str) -> tuple[Any, Callable[[Any], Any]]:
    """The type, and what makes an array of it: with null for what is none of the type."""
    if kind.startswith(_DECIMAL):
        scale = int(kind.removeprefix(_DECIMAL))
        return pa.decimal128(_DIGITS, scale), partial(_decimals, scale=scale)
    if kind in _PER_MS:
        return _MOMENT, partial(_moments, per_ms=_PER_MS[kind])
    return _CONVERSIONS[kind]


def _bytes(texts: pa.StringArray) -> Any:
    """Of Base64. Each text is a multiple of four letters, so all of them are read as one."""
    good = pc.fill_null(pc.match_substring_regex(texts, _BASE64), False)
    texts = pc.if_else(good, texts, "")
    letters, offsets = _parts(texts)
    four = _SIX_BITS[letters].reshape(-1, 4)
    word = four[:, 0] << 18 | four[:, 1] << 12 | four[:, 2] << 6 | four[:, 3]
    three = np.stack([word >> 16, word >> 8, word], axis=1).astype(np.uint8).ravel()
    fill = pc.count_substring(texts, "=").to_numpy()
    ends = offsets[1:] // 4 * 3
    kept = np.ones(len(three), bool)
    kept[ends[fill >= 1] - 1] = False
    kept[ends[fill == 2] - 2] = False
    lengths = np.diff(offsets) // 4 * 3 - fill
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return _where(good, _array(pa.binary(), len(texts), starts, three[kept]))


def _decimals(texts: pa.StringArray, *, scale: int) -> Any:
    """Java's bytes of whole numbers, the highest first, as Arrow has them: all sixteen, the lowest first."""
    found = _bytes(texts)
    length = pc.fill_null(pc.binary_length(found), 0)
    good = pc.and_(pc.greater(length, 0), pc.less_equal(length, _DECIMAL_BYTES))
    digits, offsets = _parts(pc.if_else(good, found, b""))
    row = np.repeat(np.arange(len(texts)), np.diff(offsets))
    numbers = np.zeros((len(texts), _DECIMAL_BYTES), np.uint8)
    firsts = offsets[:-1][np.diff(offsets) > 0]
    numbers[row[firsts[digits[firsts] >= 128]]] = 255  # the sign
    numbers[row, offsets[1:][row] - 1 - np.arange(len(digits))] = digits
    kind = pa.decimal128(_DIGITS, scale)
    result = _array(kind, len(texts), numbers)
    least, most = (pa.scalar(Decimal((sign, (9,) * _DIGITS, -scale)), kind) for sign in (1, 0))
    fits = pc.and_(pc.less_equal(result, most), pc.greater_equal(result, least))
    return _where(pc.and_(good, fits), result)


def _exact(numbers: pa.StructArray) -> Any:
    """Numbers that each have a scale, as texts: no decimal of a table holds them all."""
    scales = pc.struct_field(numbers, "scale").to_pylist()
    values = _bytes(pc.struct_field(numbers, "value").cast(pa.string())).to_pylist()
    return pa.array([_number(*each) for each in zip(scales, values)], pa.string())


def _number(scale: int | None, value: bytes | None) -> str | None:
    if scale is None or not value:
        return None
    return format(_NO_ROUNDING.scaleb(Decimal(int.from_bytes(value, signed=True)), -scale), "f")


def _days(numbers: pa.Array) -> Any:
    last = 2**31 - 1
    good = pc.and_(pc.less_equal(numbers, last), pc.greater_equal(numbers, -last - 1))
    return _where(good, numbers).cast(pa.int32()).cast(pa.date32())


def _moments(numbers: pa.Array, *, per_ms: int) -> Any:
    """In whole microseconds, as tables have them."""
    numbers = numbers.cast(pa.int64())
    if per_ms < _PER_MS["us"]:
        good = pc.less_equal(pc.abs(numbers), _LAST_INT64 // 1000)
        numbers = pc.multiply(_where(good, numbers), 1000)
    elif per_ms > _PER_MS["us"]:
        whole = pc.divide(numbers, 1000)
        numbers = _where(pc.equal(pc.multiply(whole, 1000), numbers), whole)
    return numbers.cast(_MOMENT)


def _moments_in_utc(texts: pa.StringArray) -> Any:
    is_common = pc.fill_null(pc.match_substring_regex(texts, _COMMON_MOMENT), False)
    try:
        found = _where(is_common, texts).cast(_MOMENT_IN_UTC)
    except pa.ArrowInvalid:  # no day of a calendar
        is_common, found = False, pa.nulls(len(texts), _MOMENT_IN_UTC)
    others = pc.unique(_where(pc.invert(is_common), texts)).drop_null()
    if not len(others):
        return found
    known = pa.array([_microseconds(each) for each in others.to_pylist()], pa.int64()).cast(_MOMENT_IN_UTC)
    return pc.coalesce(found, known.take(pc.index_in(texts, value_set=others)))


def _microseconds(text: str) -> int | None:
    """Also of years that have no four digits, and of infinity, for which Debezium writes such a year or the word."""
    text = _INFINITE.get(text, text)
    try:
        return int(np.datetime64(text[:-1], "us").astype(np.int64)) if text.endswith("Z") else _with_offset(text)
    except ValueError:
        return None


def _with_offset(text: str) -> int | None:
    try:
        return int(pc.cast(pa.scalar(text), _MOMENT_IN_UTC).value)
    except pa.ArrowInvalid:
        return None


def _where(good: Any, values: pa.Array) -> Any:
    return pc.if_else(good, values, pa.scalar(None, values.type))


def _array(kind: pa.DataType, length: int, *buffers: Any) -> Any:
    """Without nulls."""
    return pa.Array.from_buffers(kind, length, [None, *map(pa.py_buffer, buffers)])


def _parts(array: Any) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all values, and where each begins and ends."""
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets or bytes(4), np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    content = np.frombuffer(data or b"", np.uint8)
    return content[places[0] : places[-1]], places - places[0]


_INFINITE: Mapping[str, str] = {"infinity": "+294247-01-10T04:00:25.2Z", "-infinity": "-290308-12-21T19:59:27.6Z"}
_CONVERSIONS: Mapping[str, tuple[pa.DataType, Callable[[Any], Any]]] = {
    _BYTES: (pa.binary(), _bytes),
    _EXACT: (pa.string(), _exact),
    _DAYS: (pa.date32(), _days),
    _ZONED: (_MOMENT_IN_UTC, _moments_in_utc),
}
