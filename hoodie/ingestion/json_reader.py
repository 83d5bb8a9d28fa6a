"""Objects of JSON as Arrow rows. Arrow reads them; where it would not, or would change a value, this does before or instead.

Loops over rows are for what Arrow's reader does not have: maps, variants, numbers that are texts, numbers that a float does not hold.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

_LONGEST_BLOCK = 2**31 - 1
_SMALLEST_BLOCK = 1 << 20
_DEEPEST = 500
"""Levels of lists and objects. Arrow's reader overflows the stack of the process at some ten thousands."""
_LONG_LINE = 4 * _DEEPEST
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_FIRST_NULL = re.compile(rb"\A((?:\xef\xbb\xbf)?\s*)null")
_SPACE = re.compile(r"\s*")
_LARGE_FLOAT = 2.0**53
_LONG_NUMBER = re.compile(rb"[:,\[\s]-?[0-9]{16,}[,\]}\s]")
"""A whole number that may be beyond 2**53; without one, no line has to be read by Python."""
_LARGE_NUMBER = pa.decimal128(38, 0)
NO_FINITE_NUMBERS = (b'"NaN"', b'"Infinity"', b'"-Infinity"')


def json_types(schema: pa.Schema | None) -> pa.Schema | None:
    """By which values of these columns are read from JSON."""
    return None if schema is None else pa.schema([pa.field(each.name, _json_type(each.type)) for each in schema])


def _json_type(kind: pa.DataType) -> pa.DataType:
    """The type, where a value of it is read as it is; otherwise a text, which is cast."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_json_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _json_type(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), _json_type(kind.item_type))
    if pa.types.is_floating(kind):
        return pa.float64()  # Arrow reads infinity where a narrower one overflows
    is_plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind)
    return kind if is_plain or pa.types.is_decimal(kind) or _is_variant(kind) else pa.string()


def read_json(content: bytes, types: pa.Schema | None) -> pa.Table:
    """The objects as rows; columns that `types` does not have get the types of their values.

    Raises ArrowInvalid: a line is no object, or a value does not fit its type, or would change; which one is not said.
    """
    _check_text(content)
    _check_depth(content)
    plain = None if types is None else pa.schema([each.with_type(_plain_type(each.type)) for each in types])
    if types is not None and plain != types:
        rows = _from_plain(_read(_plain_objects(content, types), plain), types)
    else:
        rows = _read_with_numbers(content, types)
    large = [name for name in rows.schema.names if _has_large_float(rows.column(name))]
    if not large or not _LONG_NUMBER.search(content) or not _loses_digits(content, rows.schema):
        return rows
    if types is not None and any(name in types.names for name in large):
        raise pa.ArrowInvalid("a whole number has more digits than a float holds")
    exact = [pa.field(name, _LARGE_NUMBER) for name in large if pa.types.is_floating(rows.schema.field(name).type)]
    if len(exact) < len(large):
        raise pa.ArrowInvalid("a whole number has more digits than a float holds")
    return read_json(content, pa.schema([*(types or ()), *exact]))


def _read(content: bytes, types: pa.Schema | None) -> pa.Table:
    # The reader of pyarrow 26 ends the process at a null in front.
    content = _FIRST_NULL.sub(rb"\1{}", content, count=1)
    # One block: types are inferred of all rows, and not of the first megabyte.
    size = min(max(len(content) + 1, _SMALLEST_BLOCK), _LONGEST_BLOCK)
    return pyarrow.json.read_json(
        io.BytesIO(content),
        read_options=pyarrow.json.ReadOptions(block_size=size, use_threads=False),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=types, unexpected_field_behavior="infer"),
    )


def _check_text(content: bytes) -> None:
    """Arrow's reader takes any bytes as text."""
    if not content.isascii():
        try:
            pa.array([content], pa.large_binary()).cast(pa.large_string())
        except pa.ArrowInvalid as exc:
            raise pa.ArrowInvalid("it is not UTF-8 text") from exc


def _check_depth(content: bytes) -> None:
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
    bounds = np.concatenate(([-1], ends, [len(content)]))
    for number in np.flatnonzero(np.diff(bounds) > _LONG_LINE).tolist():
        line = content[bounds[number] + 1 : bounds[number + 1]]
        if line.count(b"[") + line.count(b"{") > _DEEPEST:
            each = np.frombuffer(_TEXTS.sub(b"", line), np.uint8)
            opens, closes = np.isin(each, list(b"[{")), np.isin(each, list(b"]}"))
            if (np.cumsum(opens, dtype=np.int64) - np.cumsum(closes, dtype=np.int64)).max() > _DEEPEST:
                raise pa.ArrowInvalid(f"lists and objects are nested more than {_DEEPEST} deep")


def _read_with_numbers(content: bytes, types: pa.Schema | None) -> pa.Table:
    try:
        return _read(content, types)
    except pa.ArrowInvalid:
        line = content.strip()
        if types is None or b"\n" in line or not any(each in line for each in NO_FINITE_NUMBERS):
            raise
        return _read(_plain_objects(line, types), types)


def _is_variant(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.JsonType)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """What Arrow's reader has in place of it: it knows no maps and no variants."""
    if _is_variant(kind):
        return pa.string()
    if pa.types.is_map(kind):
        return pa.list_(pa.struct([("key", pa.string()), ("value", _plain_type(kind.item_type))]))
    if pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain_type(each.type)) for each in kind])
    return kind


def _objects(content: bytes, **hooks: Any) -> Iterator[Any]:
    decoder = json.JSONDecoder(**hooks)
    text = content.decode().lstrip("\ufeff").strip()
    at = 0
    try:
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            yield value
            space = _SPACE.match(text, end)
            at = end if space is None else space.end()
    except (ValueError, ArithmeticError) as exc:  # an exponent may be beyond those of decimals
        raise pa.ArrowInvalid(f"JSON parse error: {exc}") from exc


def _plain_objects(content: bytes, types: pa.Schema) -> bytes:
    kind = pa.struct(list(types))
    return "\n".join(json.dumps(_plain_value(each, kind)) for each in _objects(content, parse_float=Decimal)).encode()


def _plain_value(value: Any, kind: pa.DataType) -> Any:
    """JSON has no NaN: writers of JSON, Debezium and Spark among them, give a text. Only a column of numbers has one."""
    if _is_variant(kind):
        return None if value is None else json.dumps(_plain_value(value, pa.null()))
    if isinstance(value, Decimal):
        return str(value) if pa.types.is_decimal(kind) else float(value)
    if isinstance(value, dict):
        if pa.types.is_map(kind):
            return [{"key": name, "value": _plain_value(each, kind.item_type)} for name, each in value.items()]
        types = {each.name: each.type for each in kind} if pa.types.is_struct(kind) else {}
        return {name: _plain_value(each, types.get(name, pa.null())) for name, each in value.items()}
    if isinstance(value, list):
        entry: pa.DataType = pa.null()
        if pa.types.is_list(kind):
            entry = kind.value_type
        elif pa.types.is_map(kind):
            entry = pa.struct([("key", pa.string()), ("value", kind.item_type)])
        return [_plain_value(each, entry) for each in value]
    is_number = pa.types.is_floating(kind) and isinstance(value, str)
    return float(value) if is_number and f'"{value}"'.encode() in NO_FINITE_NUMBERS else value


def _from_plain(rows: pa.Table, types: pa.Schema) -> pa.Table:
    columns = [
        _of_type(rows.column(name).combine_chunks(), types.field(name).type)
        if name in types.names
        else rows.column(name)
        for name in rows.schema.names
    ]
    return pa.table(columns, names=rows.schema.names)


def _of_type(array: Any, kind: pa.DataType) -> Any:
    """The plain array with its maps and variants; fields that only it has stay."""
    if _is_variant(kind):
        return array.cast(kind)
    if pa.types.is_map(kind):
        keys, values = array.values.field("key"), _of_type(array.values.field("value"), kind.item_type)
        if keys.null_count or array.values.null_count:
            raise pa.ArrowInvalid("an entry of a map has no key")
        named = pa.map_(pa.string(), values.type)
        entries = pa.StructArray.from_arrays([keys, values], fields=[named.key_field, named.item_field])
        return pa.Array.from_buffers(named, len(array), array.buffers()[:2], array.null_count, array.offset, [entries])
    if pa.types.is_list(kind) and not pa.types.is_null(array.type):
        values = _of_type(array.values, kind.value_type)
        return pa.Array.from_buffers(
            pa.list_(values.type), len(array), array.buffers()[:2], array.null_count, array.offset, [values]
        )
    if pa.types.is_struct(kind):
        types = {each.name: each.type for each in kind}
        names = [each.name for each in array.type]
        fields = [_of_type(array.field(name), types.get(name, pa.null())) for name in names]
        return pa.StructArray.from_arrays(fields, names, mask=array.is_null())
    return array


def _has_large_float(column: pa.ChunkedArray) -> bool:
    """Whether one of its numbers may have been a whole number with more digits than a float holds."""
    kind = column.type
    if pa.types.is_list(kind):
        return _has_large_float(pc.list_flatten(column))
    if pa.types.is_struct(kind):
        return any(_has_large_float(pc.struct_field(column, each.name)) for each in kind)
    if pa.types.is_map(kind):
        chunks: list[Any] = column.chunks
        return _has_large_float(pa.chunked_array([each.items for each in chunks], kind.item_type))
    if not pa.types.is_floating(kind):
        return False
    found: bool | None = pc.any(pc.greater_equal(pc.abs(column), _LARGE_FLOAT)).as_py()
    return bool(found)


def _loses_digits(content: bytes, schema: pa.Schema) -> bool:
    kind = pa.struct(list(schema))
    return any(_lost(each, kind) for each in _objects(content))


def _lost(value: Any, kind: pa.DataType) -> bool:
    """A number that a float of as many digits writes is none that lost some: 12345678901234567000 is 1.2345678901234567e+19."""
    if isinstance(value, dict):
        if pa.types.is_map(kind):
            return any(_lost(each, kind.item_type) for each in value.values())
        types = {each.name: each.type for each in kind} if pa.types.is_struct(kind) else {}
        return any(_lost(each, types[name]) for name, each in value.items() if name in types)
    if isinstance(value, list):
        return pa.types.is_list(kind) and any(_lost(each, kind.value_type) for each in value)
    is_whole = isinstance(value, int) and pa.types.is_floating(kind) and abs(value) > _LARGE_FLOAT
    return is_whole and Decimal(repr(float(value))) != value
