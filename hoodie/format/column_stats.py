"""Bounds of columns: taken from Parquet footers and from rows, and written into commit metadata as text.

The text is `<crc32 of the rest, 8 hex digits> <JSON>`; the JSON `{"version": 1, "columns": [names], "files": {file name:
[entry of each column]}}`. An entry is null (nothing is known), [nulls] (nothing but nulls) or [nulls, low, high]. Dates are days
since 1970, timestamps whole numbers in the unit of the column, decimals text; all others are JSON's own. Types are those that
the schema of the same commit states. Bounds of texts are cut short: the upper one is rounded up, in the order of code
points, which is that of UTF-8. Floats that are not finite have no bounds.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from hoodie.format.timestamp_labels import is_mislabelled
from hoodie.model.meta_fields import COMMIT_TIME, META_COLUMNS, RECORD_KEY
from hoodie.model.statistics import UNKNOWN, ValueRange

COLUMN_STATS = "hoodie.python.column_stats"
"""Key in a commit's extra metadata."""
MAX_COLUMNS = 32
"""The first ones of the table whose types have bounds; the record key and the commit time come on top."""
MAX_CHARACTERS = 32
MAX_BYTES = 256 * 1024
"""Of one commit's text: columns at the end are left out where it would be longer. Every reader loads the commits."""
_VERSION = 1
_LAST_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_CACHED_TEXTS = 1024
_FEW = 128

pc: Any = pyarrow.compute  # its stubs tell kinds of arrays apart, which are known at run time only
Ranges = Mapping[str, ValueRange]
Entries = Mapping[str, Sequence[object]]


def has_bounds(kind: pa.DataType) -> bool:
    """Whether columns of this type get bounds: bool, signed integers, floats, texts, decimals, dates, timestamps."""
    types = pa.types
    return bool(
        types.is_boolean(kind)
        or types.is_signed_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_decimal128(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
    )


def stated_columns(schema: pa.Schema) -> list[pa.Field]:
    """The columns whose bounds a commit states; `schema` has the meta columns."""
    users = [field for field in schema if field.name not in META_COLUMNS and has_bounds(field.type)]
    meta = [schema.field(name) for name in (RECORD_KEY, COMMIT_TIME) if name in schema.names]
    return [*meta, *users[:MAX_COLUMNS]]


# -- taking them -------------------------------------------------------------------------------------------------------


def ranges_of_rows(rows: pa.Table, *, commit_time: str | None = None) -> dict[str, ValueRange]:
    """Bounds of the stated columns of a log's rows, but of texts only the record key, cut.

    Texts took two thirds of the time, 5 % of an upsert; of rows in no order they rarely leave anything out.
    `commit_time`: that of all rows, where they share one.
    """
    return ranges_of_parts(rows, [0, rows.num_rows], commit_time=commit_time)[0]


def ranges_of_parts(
    rows: pa.Table, bounds: Sequence[int], *, commit_time: str | None = None, texts: bool = False
) -> list[dict[str, ValueRange]]:
    """`ranges_of_rows` of the rows between each two of the `bounds`; `texts`: of all texts, too, as of a base file."""
    parts = list(pairwise(bounds))
    result: list[dict[str, ValueRange]] = [{} for _ in parts]
    for field in stated_columns(rows.schema):
        if not texts and field.name not in META_COLUMNS and _is_text(field.type):
            continue
        if field.name == COMMIT_TIME and commit_time is not None and rows.num_rows:
            ranges = [ValueRange(commit_time, commit_time, 0)] * len(parts)
        else:
            column: Any = rows.column(field.name)
            values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            ranges = [_cut(value_range) for value_range in _ranges_of_values(values, parts)]
        for of_part, value_range in zip(result, ranges, strict=True):
            of_part[field.name] = value_range
    return result


def _ranges_of_values(values: Any, parts: Sequence[tuple[int, int]]) -> list[ValueRange]:
    """Few and plain values take no call of Arrow's compute: it costs more than they do, most of all beside other threads."""
    types, kind = pa.types, values.type
    if types.is_temporal(kind):
        values = values.view(pa.int32() if types.is_date32(kind) else pa.int64())
    if len(values) > _FEW * len(parts):
        return [_range_of_many(values.slice(start, end - start)) for start, end in parts]
    every = values.to_pylist()
    result = []
    for start, end in parts:
        present = [value for value in every[start:end] if value is not None]
        nulls, has_values = end - start - len(present), bool(present)
        if types.is_floating(kind):
            present = [value for value in present if not math.isnan(value)]
        result.append(
            _checked(min(present), max(present), nulls) if present else ValueRange(nulls=nulls, values=has_values)
        )
    return result


def _range_of_many(values: Any) -> ValueRange:
    nulls, kind = values.null_count, values.type
    if nulls == len(values):
        return ValueRange(nulls=nulls, values=False)
    if not nulls and pa.types.is_primitive(kind) and not pa.types.is_boolean(kind):
        numbers = values.to_numpy()
        low, high = numbers.min(), numbers.max()
        if math.isnan(low):  # both are, where one value is
            low, high = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
        return _checked(low.item(), high.item(), nulls)
    bounds = pc.min_max(values)
    return _checked(bounds["min"].as_py(), bounds["max"].as_py(), nulls)


def ranges_of_footer(
    metadata: pq.FileMetaData,
    fields: Sequence[pa.Field],
    *,
    cut: bool = False,
    group: int | None = None,
    places: Mapping[str, int] | None = None,
) -> dict[str, ValueRange]:
    """Bounds that a Parquet footer states for these columns of the file, of which `fields` gives the types.

    `cut`: texts as they are written into commits. `group`: of this row group alone. `places`: the `flat_places` of the file's schema.
    """
    if places is None:
        places = flat_places(metadata.schema)
    numbers = range(metadata.num_row_groups) if group is None else [group]
    groups = [ranges for ranges in map(metadata.row_group, numbers) if ranges.num_rows]
    ranges = {}
    for field in fields:
        place = places.get(field.name)
        value_range = UNKNOWN if place is None or not has_bounds(field.type) else _of_groups(groups, place, field.type)
        ranges[field.name] = _cut(value_range) if cut else value_range
    return ranges


def flat_places(schema: pq.ParquetSchema) -> dict[str, int]:
    """The numbers of the columns in which nothing is nested, by name."""
    columns = enumerate(map(schema.column, range(len(schema))))
    return {
        each.path: place for place, each in columns if each.max_repetition_level == 0 and each.max_definition_level <= 1
    }


def _of_groups(groups: Sequence[pq.RowGroupMetaData], place: int, kind: pa.DataType) -> ValueRange:
    """Over the row groups of a file; not known as soon as one of them does not say it."""
    lows, highs, nulls, unknown = [], [], 0, False
    for group in groups:
        statistics: Any = group.column(place).statistics
        if statistics is None or not statistics.has_null_count:
            return UNKNOWN
        absent = statistics.null_count
        nulls += absent
        if absent == group.num_rows:
            continue
        if statistics.has_min_max:
            lows.append(_from_raw(statistics.min_raw, kind))
            highs.append(_from_raw(statistics.max_raw, kind))
        else:
            unknown = True
    if unknown or None in lows or None in highs:
        return ValueRange(nulls=nulls)
    return _checked(min(lows), max(highs), nulls) if lows else ValueRange(nulls=nulls, values=False)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _from_raw(value: Any, kind: pa.DataType) -> Any:
    """A bound as Parquet stores it; None where it is none of this type."""
    if _is_text(kind):
        try:
            return value.decode() if isinstance(value, bytes) else None
        except UnicodeDecodeError:
            return None
    if pa.types.is_decimal(kind):
        unscaled = int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else value
        # Not `scaleb`, which rounds to the precision of a context.
        return Decimal(f"{unscaled}E{-kind.scale}") if isinstance(unscaled, int) else None
    return value if _fits(value, kind) else None


def _checked(low: Any, high: Any, nulls: int) -> ValueRange:
    if isinstance(low, float) and not (math.isfinite(low) and math.isfinite(high)):
        return ValueRange(nulls=nulls)
    return ValueRange(low, high, nulls) if low <= high else ValueRange(nulls=nulls)


def _cut(value_range: ValueRange) -> ValueRange:
    if not isinstance(value_range.low, str) or max(len(value_range.low), len(value_range.high)) <= MAX_CHARACTERS:
        return value_range
    high = _rounded_up(value_range.high)
    return (
        ValueRange(nulls=value_range.nulls)
        if high is None
        else value_range._replace(low=value_range.low[:MAX_CHARACTERS], high=high)
    )


def _rounded_up(text: str) -> str | None:
    """A short text that is not less than this one; None where there is none."""
    if len(text) <= MAX_CHARACTERS:
        return text
    prefix = text[:MAX_CHARACTERS]
    while prefix:
        following = ord(prefix[-1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _LAST_CODE_POINT:
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return None


# -- as text -----------------------------------------------------------------------------------------------------------


def encode_column_stats(files: Mapping[str, Ranges]) -> str | None:
    """The text for these files, by their names; None where nothing is known, or it would be too long with one column.

    Args:
        files: file name -> bounds of its columns, in the order in which they may be left out from the end.
    """
    columns = list(dict.fromkeys(name for ranges in files.values() for name in ranges))
    entries = {file: [entry_of(ranges.get(name)) for name in columns] for file, ranges in files.items()}
    while columns:
        content = {"version": _VERSION, "columns": columns, "files": entries}
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        data = body.encode()
        if len(data) <= MAX_BYTES:
            return f"{zlib.crc32(data):08x} {body}"
        fewer = min(len(columns) - 1, len(columns) * MAX_BYTES // len(data))
        columns = columns[:fewer]
        entries = {file: each[:fewer] for file, each in entries.items()}
    return None


def entry_of(value_range: ValueRange | None) -> list[Any] | None:
    """How the text has these bounds."""
    if value_range is None or not value_range.bounded:
        return None
    if not value_range.values:
        return [value_range.nulls]
    return [
        value_range.nulls,
        *(str(each) if isinstance(each, Decimal) else each for each in (value_range.low, value_range.high)),
    ]


@lru_cache(maxsize=_CACHED_TEXTS)
def decode_column_stats(text: str) -> Mapping[str, Entries]:
    """File name -> column -> entry, for `range_of`; empty where the text is damaged or of a later version.

    A query without it only opens more files.
    """
    body = json_of_column_stats(text)
    try:
        content = json.loads(body or "{}")
        if content["version"] != _VERSION:
            return {}
        columns = [str(name) for name in content["columns"]]
        return {str(file): dict(zip(columns, entries, strict=True)) for file, entries in content["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def json_of_column_stats(text: str) -> str | None:
    """The JSON in the text, not yet looked into; None where the text is damaged."""
    checksum, _, body = text.partition(" ")
    try:
        return body if int(checksum, 16) == zlib.crc32(body.encode()) else None
    except ValueError:
        return None


def range_of(entry: object, kind: pa.DataType) -> ValueRange:
    """The bounds in an entry of a column of this type; UNKNOWN where it holds none."""
    if not isinstance(entry, list) or not entry or not isinstance(entry[0], int) or not has_bounds(kind):
        return UNKNOWN
    nulls = entry[0]
    if len(entry) == 1:
        return ValueRange(nulls=nulls, values=False)
    low, high = (_from_json(value, kind) for value in entry[1:3]) if len(entry) == 3 else (None, None)
    return ValueRange(nulls=nulls) if low is None or high is None else _checked(low, high, nulls)


def _from_json(value: object, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        try:
            number = Decimal(value) if isinstance(value, str) else None
        except InvalidOperation:
            return None
        return number if number is not None and number.is_finite() else None
    return value if _fits(value, kind) else None


def _fits(value: object, kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_boolean(kind):
        return isinstance(value, bool)
    if types.is_floating(kind):
        return isinstance(value, float)
    if _is_text(kind):
        return isinstance(value, str)
    return isinstance(value, int) and not isinstance(value, bool)


# -- in another type ---------------------------------------------------------------------------------------------------


def converted(value_range: ValueRange, stored: pa.DataType, now: pa.DataType) -> ValueRange:
    """Bounds of a column in the type that the table gives it now; values are converted as `filegroup.conform` does.

    Only where that keeps their order: a number that became text sorts otherwise, and then nothing but nulls is known.
    """
    if stored == now or not value_range.values:
        return value_range
    convert = _conversion(stored, now)
    if convert is None or not value_range.bounded:
        return ValueRange(nulls=value_range.nulls)
    return _checked(convert(value_range.low), convert(value_range.high), value_range.nulls)


def _conversion(stored: pa.DataType, now: pa.DataType) -> Callable[[Any], Any] | None:
    types = pa.types
    if types.is_signed_integer(stored) and types.is_signed_integer(now) and now.bit_width >= stored.bit_width:
        return int
    if types.is_signed_integer(stored) and types.is_float64(now):
        return float
    if types.is_signed_integer(stored) and types.is_decimal(now):
        return Decimal
    if types.is_float32(stored) and types.is_float64(now):
        return _by_digits
    if is_mislabelled(stored, now):
        return int
    if _is_text(stored) and _is_text(now):
        return str
    if types.is_decimal(stored) and types.is_decimal(now) and now.scale >= stored.scale:
        return Decimal
    return None


def _by_digits(value: float) -> float:
    """A float as the double of its fewest decimal digits: 0.1 stays 0.1. Neighbouring floats keep their order by it."""
    return float(pc.cast(pa.scalar(value, pa.float32()), pa.string()).as_py())


def as_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Bounds as an array of the column's type; None is null.

    Raises:
        pa.ArrowException, OverflowError: one is none of that type.
    """
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)
