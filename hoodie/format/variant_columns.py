"""Typed columns -> values of the Variant encoding, in which nothing is nested."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie.errors import UnsupportedTableError
from hoodie.format.avro_wire import Bytes, Column, Ints, join, lengths_of, ragged, values_of
from hoodie.format.variant_bytes import BINARY, TEXT, UUID

_INTEGERS = ((3, 1), (4, 2), (5, 4), (6, 8))
"""Type and bytes."""
_DECIMALS = ((8, 4, 9), (9, 8, 18), (10, 16, 38))
"""Type, bytes and digits."""
_TRUE, _FALSE, _DATE, _TIME, _FLOAT, _DOUBLE = 1, 2, 11, 17, 14, 7
_MOMENTS = {("us", True): 12, ("us", False): 13, ("ns", True): 18, ("ns", False): 19}
_SHORT_TEXT = 64


def encoded_column(column: Column) -> Column:
    """The value of each, as byte strings with long offsets; there are no nulls.

    Raises:
        UnsupportedTableError: no variant has values of this type.
    """
    kind, types = column.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return encoded_column(column.storage)
    if types.is_dictionary(kind):
        return encoded_column(column.dictionary_decode())
    if types.is_boolean(kind):
        heads = np.where(column.to_numpy(zero_copy_only=False), _TRUE << 2, _FALSE << 2).astype(np.uint8)
        return ragged(heads[:, None], np.ones(len(heads), np.int64))
    if types.is_signed_integer(kind):
        return _integers(column)
    if types.is_decimal(kind):
        return _decimals(column.cast(pa.decimal128(kind.precision, kind.scale)))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _texts(column.cast(pa.large_string()).cast(pa.large_binary()))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return _with_length(BINARY, column.cast(pa.large_binary()))
    if types.is_time(kind):
        column = column.cast(pa.time64("us"))
    elif types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        column = column.cast(pa.timestamp("us", kind.tz))
    number = _number(column.type)
    if number is None:
        raise UnsupportedTableError(
            f"a VARIANT is shredded into {kind}, which no variant has; write the table without shredding"
        )
    return _fixed(number, values_of(column, "u1", column.type.byte_width))


def _number(kind: pa.DataType) -> int | None:
    """Of types whose values all take the same bytes, in Arrow as well."""
    if pa.types.is_timestamp(kind):
        return _MOMENTS[kind.unit, kind.tz is not None]
    fixed = {
        pa.date32(): _DATE,
        pa.time64("us"): _TIME,
        pa.float32(): _FLOAT,
        pa.float64(): _DOUBLE,
        pa.binary(16): UUID,
    }
    return fixed.get(kind)


def _fixed(number: int, data: Bytes) -> Column:
    whole = _headed(np.full(len(data), number), data)
    return ragged(whole, np.full(len(data), whole.shape[1]))


def _integers(column: Column) -> Column:
    values = column.to_numpy().astype("<i8")
    kinds = np.searchsorted([1 << bits for bits in (7, 15, 31)], np.where(values < 0, ~values, values), side="right")
    number, width = np.array(_INTEGERS).T[:, kinds]
    return ragged(_headed(number, values.view(np.uint8).reshape(-1, 8)), 1 + width)


def _headed(number: Ints, data: Bytes) -> Bytes:
    return np.hstack([(number << 2).astype(np.uint8)[:, None], data])


def _decimals(column: Column) -> Column:
    scale = column.type.scale
    data = values_of(column, "u1", 16)
    low, high = values_of(column, "<i8", 2).T
    kinds = np.zeros(len(data), np.int64)
    for _, _, digits in _DECIMALS[:2]:
        kinds += (high != low >> 63) | (low <= -(10**digits)) | (low >= 10**digits) | (scale > digits)
    number, width, _ = np.array(_DECIMALS).T[:, kinds]
    scales = np.full((len(data), 1), scale, np.uint8)
    return ragged(_headed(number, np.hstack([scales, data])), 2 + width)


def _texts(data: Column) -> Column:
    lengths = lengths_of(data)
    is_short = lengths < _SHORT_TEXT
    heads = _length_heads(TEXT, lengths)
    heads[is_short, 0] = (lengths[is_short] << 2 | 1).astype(np.uint8)
    return join([ragged(heads, np.where(is_short, 1, 5)), data])


def _with_length(number: int, data: Column) -> Column:
    lengths = lengths_of(data)
    return join([ragged(_length_heads(number, lengths), np.full(len(data), 5)), data])


def _length_heads(number: int, lengths: Ints) -> Bytes:
    return _headed(np.full(len(lengths), number), lengths.astype("<u4").view(np.uint8).reshape(-1, 4))
