"""Shredded variants -> whole ones: parts of values that stand in typed columns of their own, put back into the encoding.

Parquet has it (VariantShredding.md): beside `value` stands `typed_value`, of any type. Fields of objects and elements of arrays
are again groups of the two. Metadata stay as they are, for they have all names. Integers and decimals take the least width, as
Spark gives them. Values are put together level by level of the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import UnsupportedTableError
from hoodie.format.avro_wire import (
    Bytes,
    Column,
    Ints,
    data_of,
    join,
    lengths_of,
    offsets_in,
    offsets_of,
    pieces_from_offsets,
    ragged,
    spread,
    valid_in,
    values_of,
)
from hoodie.format.variant_bytes import (
    ARRAY,
    BINARY,
    OBJECT,
    TEXT,
    UUID,
    Containers,
    Names,
    VariantBytes,
    damaged,
    ends_of,
    gathered,
)
from hoodie.format.variants import METADATA, TYPED_VALUE, VALUE, VARIANT

_BYTES = pa.large_binary()
_NULL = b"\0"
"""The value."""


def variants_of(names: Sequence[str], parts: Sequence[Column], mask: Column = None) -> Column:
    """Variants of the arrays of their parts, in whatever order, shredded or not; null where masked.

    Raises:
        CorruptFileError: parts contradict each other, or are no variants.
        UnsupportedTableError: a part is of a type that no variant has.
    """
    by_name = dict(zip(names, parts, strict=True))
    whole = _whole(by_name, mask) if TYPED_VALUE in by_name else by_name
    columns = [whole[field.name].cast(field.type) for field in VARIANT]
    return pa.StructArray.from_arrays(columns, fields=list(VARIANT), mask=mask)


def _whole(parts: Mapping[str, Column], mask: Column) -> dict[str, Column]:
    """Metadata and values of shredded variants."""
    valid = None if mask is None else ~mask.to_numpy(zero_copy_only=False)
    there = {name: part if valid is None else part.filter(pa.array(valid)) for name, part in parts.items()}
    metadata = there[METADATA].cast(_BYTES)
    if metadata.null_count:
        raise damaged("it has no metadata")
    try:
        values = _Assembly(metadata).values(np.arange(len(metadata)), there)
    except pa.ArrowInvalid as exc:
        raise damaged(str(exc)) from exc
    return {METADATA: spread(metadata, valid), VALUE: spread(pc.fill_null(values, _NULL), valid)}


class _Assembly:
    def __init__(self, metadata: Column) -> None:
        self._fields = _Fields(metadata)

    def values(self, rows: Ints, parts: Mapping[str, Column]) -> Column:
        """The values of groups of these parts in rows of the column; null where they are missing."""
        value, typed = parts.get(VALUE), parts.get(TYPED_VALUE)
        plain = pa.nulls(len(rows), _BYTES) if value is None else value.cast(_BYTES)
        if typed is None or typed.null_count == len(typed):
            return plain
        valid = valid_in(typed)
        at, there = np.flatnonzero(valid), typed.drop_null()
        if pa.types.is_struct(typed.type):
            variants = self._objects(rows[at], plain.take(pa.array(at)), there)
        elif pc.any(pc.and_(typed.is_valid(), plain.is_valid())).as_py():
            raise damaged("it has a value twice, shredded and whole")
        elif pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type):
            variants = self._arrays(rows[at], there)
        else:
            variants = encoded_column(there)
        return variants if len(at) == len(rows) else pc.coalesce(spread(variants, valid), plain)

    def _arrays(self, rows: Ints, lists: Column) -> Column:
        counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
        pieces = self.values(np.repeat(rows, counts), _parts(lists.flatten()))
        return _containers(ARRAY, counts, pc.fill_null(pieces, _NULL))

    def _objects(self, rows: Ints, rest: Column, typed: Column) -> Column:
        """Objects of shredded fields and the rest, which are objects of other fields."""
        names = [field.name for field in typed.type]
        field_ranks = [self._fields.rank(name) for name in names]
        above, ranks, pieces = self._rest(rows, rest)
        if np.isin(ranks, field_ranks).any():
            raise damaged("it has a field twice, shredded and whole")
        owners, orders, values = [above], [ranks], [pieces]
        for rank, column in zip(field_ranks, typed.flatten(), strict=True):
            part = self.values(rows, _parts(column))
            there = np.flatnonzero(valid_in(part))
            owners.append(there)
            orders.append(np.full(len(there), rank))
            values.append(part.drop_null())
        owner, order = np.concatenate(owners), np.concatenate(orders)
        sequence = np.lexsort((order, owner))
        owner, order = owner[sequence], order[sequence]
        ids = self._fields.ids(rows[owner], order)
        return _containers(
            OBJECT, np.bincount(owner, minlength=len(rows)), pa.concat_arrays(values).take(pa.array(sequence)), ids
        )

    def _rest(self, rows: Ints, rest: Column) -> tuple[Ints, Ints, Column]:
        """Of the fields of encoded objects: which object each is in, the rank of its name, and its value."""
        there = np.flatnonzero(valid_in(rest))
        data, at, ends = VariantBytes.of(rest.drop_null())
        if (at >= ends).any() or (data[at] & 3 != OBJECT).any():
            raise damaged("it is an object in part, and the rest of it is none")
        nested = Containers(data, at + 1, ends, np.ones(len(at), np.bool_), data[at].astype(np.int64) >> 2)
        pieces = gathered(data, nested.starts, ends_of(data, nested.starts, ends[nested.above]) - nested.starts, _BYTES)
        above = there[nested.above]
        return above, self._fields.ranks(rows[above], nested.ids(np.arange(len(above)))), pieces


class _Fields:
    """Names of fields by their rank among all names of the column, and their numbers in the metadata of each row."""

    def __init__(self, metadata: Column) -> None:
        encoded = metadata.dictionary_encode()
        self._kind = encoded.indices.to_numpy().astype(np.int64)
        names = Names(VariantBytes.of(encoded.dictionary))
        self._firsts = offsets_of(names.counts)
        kinds = np.repeat(np.arange(len(names.counts)), names.counts)
        numbers = np.arange(len(kinds)) - self._firsts[kinds]
        texts = names.texts(kinds, numbers).cast(_BYTES).dictionary_encode()
        by_name = pc.array_sort_indices(texts.dictionary)
        self._names = texts.dictionary.take(by_name)
        ranks = np.empty(len(by_name), np.int64)
        ranks[by_name.to_numpy()] = np.arange(len(by_name))
        self._ranks = ranks[texts.indices.to_numpy()]
        self._keys, first = np.unique(kinds * len(ranks) + self._ranks, return_index=True)
        self._ids = numbers[first]

    def rank(self, name: str) -> int:
        """-1 for a name that no row has."""
        place: int = pc.index(self._names, pa.scalar(name.encode(), _BYTES)).as_py()
        return place

    def ranks(self, rows: Ints, ids: Ints) -> Ints:
        kinds = self._kind[rows]
        if (ids >= self._firsts[kinds + 1] - self._firsts[kinds]).any():
            raise damaged("it has a field without a name")
        result: Ints = self._ranks[self._firsts[kinds] + ids]
        return result

    def ids(self, rows: Ints, ranks: Ints) -> Ints:
        """The number of each name in its row."""
        keys = self._kind[rows] * len(self._names) + ranks
        places = np.searchsorted(self._keys, keys)
        if (ranks < 0).any() or (self._keys[np.minimum(places, len(self._keys) - 1)] != keys).any():
            raise damaged("it has a shredded field whose name its metadata do not have")
        result: Ints = self._ids[places]
        return result


def _parts(group: Column) -> dict[str, Column]:
    if not pa.types.is_struct(group.type) or not {VALUE, TYPED_VALUE} & {field.name for field in group.type}:
        raise UnsupportedTableError(
            f"a VARIANT is shredded into {group.type}, which is not as Parquet's specification has it"
        )
    return dict(zip([field.name for field in group.type], group.flatten(), strict=True))


def _containers(kind: int, counts: Ints, pieces: Column, ids: Ints | None = None) -> Column:
    """Objects or arrays of as many of the values each."""
    firsts = offsets_of(counts)
    above = np.repeat(np.arange(len(counts)), counts)
    ends = offsets_of(lengths_of(pieces))
    sizes = np.diff(ends[firsts])
    width = _width(sizes)
    what, id_parts = width - 1, []
    if ids is not None:
        most = np.zeros(len(counts), np.int64)
        np.maximum.at(most, above, ids)
        id_width = _width(most)
        what |= id_width - 1 << 2
        id_parts = [_grouped(_numbers(ids, id_width[above]), firsts)]
    is_large = counts > 0xFF
    what |= is_large.astype(np.int64) << (4 if ids is not None else 2)
    head = np.hstack([(kind | what << 2).astype(np.uint8)[:, None], _little_endian(counts)])
    places = np.insert(ends[:-1] - ends[firsts[above]], firsts[1:], sizes)  # the end of all behind the starts of each
    offsets = _grouped(_numbers(places, np.repeat(width, counts + 1)), firsts + np.arange(len(firsts)))
    return join([ragged(head, np.where(is_large, 5, 2)), *id_parts, offsets, _grouped(pieces, firsts)])


def _grouped(pieces: Column, firsts: Ints) -> Column:
    """As many of the pieces in a row as one."""
    return pieces_from_offsets(offsets_in(pieces)[firsts], data_of(pieces))


def _numbers(values: Ints, widths: Ints) -> Column:
    return ragged(_little_endian(values), widths)


def _little_endian(values: Ints) -> Any:
    return np.ascontiguousarray(values, "<u4").view(np.uint8).reshape(-1, 4)


def _width(most: Ints) -> Ints:
    return np.searchsorted([1 << bits for bits in (8, 16, 24)], most, side="right") + 1


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
