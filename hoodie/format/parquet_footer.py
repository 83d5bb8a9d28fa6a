"""Parquet footers whose statements on floating columns hold for every reader.

Arrow leaves NaN out of the bounds of a column chunk, so a reader to whom NaN is a value like others, as it is to Spark, passes
over the rows that have it. parquet-mr writes no bounds of such a chunk; nor do files of ours. And parquet-mr passes over a
chunk whose dictionary lacks a value, bit by bit: -0.0 is not 0.0 to it. It looks into dictionaries only of chunks whose page
encodings the footer counts, so for chunks that may hold a zero ours says nothing of them.

Arrow writes footers and cannot be told any of this. So where a file has such a chunk, its own is followed by a second one, which is
the one that counts: readers begin at the end of a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.format.thrift_compact import LIST, STOP, STRUCT, end_of, field_at, head_of, list_head, list_head_of, text

SOUND_FLOATS = "hoodie.python.sound_floats"
"""Key in a commit's extra metadata: the Parquet files that it wrote are as this module makes them."""

Chunk = tuple[int, int]
"""Of a row group and a leaf column, the numbers."""

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4
_FLOATING = frozenset({"FLOAT", "DOUBLE"})

# Field numbers of parquet.thrift.
_ROW_GROUPS, _KEY_VALUES = 4, 5
_COLUMNS = 1
_CHUNK_METADATA = 3
_STATISTICS, _ENCODING_STATS = 12, 13
_NULL_COUNT = 3


def has_floats(kind: pa.DataType) -> bool:
    """Whether the type is a floating one, or one with such a type in it."""
    if pa.types.is_floating(kind):
        return True
    return any(has_floats(kind.field(i).type) for i in range(kind.num_fields))


class FloatingLeaves(NamedTuple):
    """Leaf columns by their numbers, in the order that Parquet has them in."""

    nan: frozenset[int]
    """In which a value is NaN."""
    zero: frozenset[int]
    """With values on both sides of zero, or a zero."""


def floating_leaves(rows: pa.Table) -> FloatingLeaves:
    """What the footer of these rows says of floating columns.

    What stands below a null counts too: it is not stored, but no row is lost by a bound that is missing.
    """
    found: list[tuple[int, bool, bool]] = []
    first = 0
    for i, field in enumerate(rows.schema):
        if has_floats(field.type):
            found += _floating_leaves_below(rows.column(i).chunks, field.type, first)
        first += _leaves(field.type)
    return FloatingLeaves(
        frozenset(leaf for leaf, nan, _ in found if nan), frozenset(leaf for leaf, _, zero in found if zero)
    )


def _leaves(kind: pa.DataType) -> int:
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaves(kind.field(i).type) for i in range(kind.num_fields))


def _floating_leaves_below(chunks: Sequence[Any], kind: pa.DataType, number: int) -> Iterator[tuple[int, bool, bool]]:
    """Each leaf below a column of this type, counted from `number`: whether it has NaN, and whether zero is between its values."""
    if pa.types.is_floating(kind):
        bounds = [_bounds(chunk) for chunk in chunks if chunk.null_count < len(chunk)]
        lows, highs = ([each[side] for each in bounds] for side in (0, 1))
        has_zero = bool(bounds) and bool(np.fmin.reduce(lows) <= 0 <= np.fmax.reduce(highs))
        yield number, any(has_nan for _, _, has_nan in bounds), has_zero
        return
    if not has_floats(kind):
        return
    below = [_children(chunk) for chunk in chunks]
    for i, child in enumerate(_kinds_below(kind)):
        yield from _floating_leaves_below([children[i] for children in below], child, number)
        number += _leaves(child)


def _bounds(values: Any) -> tuple[float, float, bool]:
    """The least and the greatest of values that are not all null, but for NaN, and whether one is NaN."""
    numbers = (values.drop_null() if values.null_count else values).to_numpy(zero_copy_only=False)
    low, high = numbers.min(), numbers.max()
    if not np.isnan(low):
        return low, high, False
    return np.fmin.reduce(numbers), np.fmax.reduce(numbers), True


def _kinds_below(kind: pa.DataType) -> list[pa.DataType]:
    if isinstance(kind, pa.MapType):
        return [kind.key_type, kind.item_type]
    return [kind.field(i).type for i in range(kind.num_fields)]


def _children(values: Any) -> list[Any]:
    if pa.types.is_struct(values.type):
        return list(values.flatten())
    if pa.types.is_map(values.type):
        return [values.keys, values.items]
    return [values.flatten()]


def sound_footer(written: pq.FileMetaData, nan: Collection[Chunk], key_values: Mapping[str, str | bytes]) -> bytes:
    """What to append to a file that Arrow has closed: its footer once more, with these key-values in it.

    Args:
        written: as Arrow wrote it, without key-values.
        nan: chunks in which a value is NaN.

    Raises:
        CorruptFileError: Arrow's footer is of another shape than Parquet's, as it was when this was written.
    """
    zeros = frozenset(_chunks_with_zero(written))
    sink = pa.BufferOutputStream()
    written.write_metadata_file(sink)
    whole = sink.getvalue().to_pybytes()
    data = whole[len(_MAGIC) : -len(_MAGIC) - _LENGTH_BYTES]
    try:
        footer = _edited(data, frozenset(nan), zeros, key_values)
    except (IndexError, KeyError, ValueError) as exc:
        raise CorruptFileError("the footer that Arrow wrote is of another shape than Parquet's") from exc
    return footer + len(footer).to_bytes(_LENGTH_BYTES, "little") + _MAGIC


def _chunks_with_zero(metadata: pq.FileMetaData) -> Iterator[Chunk]:
    """Floating chunks with a dictionary whose bounds have zero between them."""
    columns: Any = metadata.schema
    floating = [i for i in range(metadata.num_columns) if columns.column(i).physical_type in _FLOATING]
    for group in range(metadata.num_row_groups if floating else 0):
        chunks = metadata.row_group(group)
        for number in floating:
            column: Any = chunks.column(number)
            bounds = column.statistics if column.has_dictionary_page else None
            if bounds is not None and bounds.has_min_max and bounds.min <= 0 <= bounds.max:
                yield group, number


_Cut = tuple[int, int, bytes]
"""From, to, and what stands there instead."""


def _edited(
    data: bytes, nan: Collection[Chunk], zeros: Collection[Chunk], key_values: Mapping[str, str | bytes]
) -> bytes:
    """The footer, edited in one pass over its bytes: one of many columns has many thousand values."""
    pairs = [b"\x18" + text(key) + b"\x18" + text(value) + STOP for key, value in key_values.items()]
    entries = list_head_of(len(pairs)) + b"".join(pairs)
    cuts: list[_Cut] = []
    at = last = 0
    while data[at]:
        begin = at
        number, kind, at = field_at(data, at, last)
        if last < _KEY_VALUES < number and pairs:
            entry_list = head_of(_KEY_VALUES - last, LIST) + entries + head_of(number - _KEY_VALUES, kind)
            cuts.append((begin, at, entry_list))
        if number == _ROW_GROUPS:
            count, _, at = list_head(data, at)
            for group in range(count):
                at = _look_at_group(data, at, group, nan, zeros, cuts)
        else:
            at = end_of(data, at, kind)
        last = number
    if last < _KEY_VALUES:
        raise KeyError(_KEY_VALUES)  # Arrow names itself behind them
    parts, position = [], 0
    for begin, end, instead in cuts:
        parts += [data[position:begin], instead]
        position = end
    return b"".join([*parts, data[position:]])


def _look_at_group(
    data: bytes, at: int, group: int, nan: Collection[Chunk], zeros: Collection[Chunk], cuts: list[_Cut]
) -> int:
    number = 0
    while data[at]:
        number, kind, at = field_at(data, at, number)
        if number != _COLUMNS:
            at = end_of(data, at, kind)
            continue
        count, _, at = list_head(data, at)
        for column in range(count):
            chunk = (group, column)
            if chunk in nan or chunk in zeros:
                at = _look_at_chunk(data, at, cuts, nan=chunk in nan, zero=chunk in zeros)
            else:
                at = end_of(data, at, STRUCT)
    return at + 1


def _look_at_chunk(data: bytes, at: int, cuts: list[_Cut], *, nan: bool, zero: bool) -> int:
    number = 0
    while data[at]:
        number, kind, at = field_at(data, at, number)
        if number != _CHUNK_METADATA:
            at = end_of(data, at, kind)
            continue
        at = _look_at_metadata(data, at, cuts, nan=nan, zero=zero)
    return at + 1


def _look_at_metadata(data: bytes, at: int, cuts: list[_Cut], *, nan: bool, zero: bool) -> int:
    last = 0
    while data[at]:
        begin = at
        number, kind, at = field_at(data, at, last)
        end = end_of(data, at, kind)
        if number == _STATISTICS and nan:
            cuts.append((at, end, _null_count_only(data, at)))
        elif number == _ENCODING_STATS and zero:
            # The field behind it counts from the one before it.
            at = end
            if data[at]:
                number, kind, at = field_at(data, at, number)
                end = end_of(data, at, kind)
                cuts.append((begin, at, head_of(number - last, kind)))
            else:
                cuts.append((begin, at, b""))
        at, last = end, number
    return at + 1


def _null_count_only(data: bytes, at: int) -> bytes:
    number = 0
    while data[at]:
        number, kind, at = field_at(data, at, number)
        end = end_of(data, at, kind)
        if number == _NULL_COUNT:
            return head_of(number, kind) + data[at:end] + STOP
        at = end
    return STOP
