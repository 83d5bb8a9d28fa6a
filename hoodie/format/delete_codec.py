"""The list of deleted keys in a delete block: one bare Avro array of (record key, partition path, ordering value). Blocks of Apache
Hudi before 0.14 are read (`kryo_deletes`), not written.

The ordering value is a union of null and wrapper records, one for each Java class. Apache Hudi's writer puts an
`IntWrapper` of 0 where there is no ordering value: such a delete wins against everything ("commit-time delete").
Several ordering fields stand in one `ArrayWrapper`.
Witness: the delete blocks of the golden tables, and the bytes in tests/format/test_log_content.py.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import hoodie.format
from hoodie.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.format.avro_wire import (
    Bytes,
    Column,
    Ints,
    big_endian,
    data_of,
    decimals_from,
    from_bytes,
    join,
    lengths_of,
    minimal_lengths,
    offsets_in,
    padded,
    ragged,
    read_varints,
    sign_extended,
    slices,
    spread,
    tagged,
    tails,
    valid_in,
    varints,
    windows,
)
from hoodie.format.cursor import Cursor, i32

if TYPE_CHECKING:
    import hoodie.format.kryo_deletes

_VERSION = 3
_SLICE_BYTES = 1 << 30  # below Arrow's short offsets
_MAX_FIELDS = 63  # so that their number takes one byte
_WRAPPED_DECIMAL = pa.decimal128(30, 15)

# Branches of the union. A branch's byte on storage is twice its number.
_NULL, _BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _STRING, _DATE, _DECIMAL, _TIME, _TIMESTAMP, _ARRAY = range(13)
_LAST = _ARRAY
_LOCAL_DATE = 12
"""Inside an array the last branch is another one: a date as days."""
_VARINTS = frozenset({_INT, _LONG, _DATE, _TIME, _TIMESTAMP})
_LENGTHS = frozenset({_BYTES, _STRING, _DECIMAL})
_WIDTHS = {_NULL: 0, _BOOLEAN: 1, _FLOAT: 4, _DOUBLE: 8}


# --- encode ----------------------------------------------------------------------------------------------------


def encode_deletes(
    record_keys: pa.Array[Any] | pa.ChunkedArray[Any],
    partition_paths: pa.Array[Any] | pa.ChunkedArray[Any],
    ordering: pa.Array[Any] | pa.ChunkedArray[Any] | None,
) -> bytes:
    """The content of a delete block.

    Layout (big-endian): version i32 = 3 | length i32 | Avro array of records. `ordering` is the column as the table
    stores it. Where it is null, or None as a whole, the delete always wins; to readers an int column's value 0 says the
    same.

    Raises:
        SchemaError: a key or path is null, or the ordering column has a type or value that no delete block can hold.
    """
    keys, paths = _text(record_keys, "record key"), _text(partition_paths, "partition path")
    rows = len(keys)
    values = _whole(ordering) if ordering is not None else pa.nulls(rows, pa.int32())
    if len(paths) != rows or len(values) != rows:
        raise SchemaError(f"{rows} record keys, {len(paths)} partition paths and {len(values)} ordering values")
    count, _ = varints(np.array([rows]))
    body = b"\x00"  # an Avro array ends with a block of no items
    if rows:
        pieces = [*_text_pieces(keys), *_text_pieces(paths), *_ordering_pieces(values)]
        records = join(pieces)
        bounds = offsets_in(records)
        items = memoryview(data_of(records))[bounds[0] : bounds[-1]]
        body = b"".join((count.tobytes(), items, b"\x00"))
    if len(body) >= 1 << 31:
        raise SchemaError(f"{rows} deletes take {len(body)} bytes; a delete block holds less than 2 GiB, split them")
    return b"".join((i32(_VERSION), i32(len(body)), body))


def _whole(values: Column) -> Column:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _text(values: Column, what: str) -> Column:
    whole = _whole(values)
    if whole.null_count:
        raise SchemaError(f"{whole.null_count} deletes have no {what}")
    return whole.cast(pa.large_string())


def _text_pieces(values: Column, *, branch: int = 1, valid: npt.NDArray[np.bool_] | None = None) -> list[Column]:
    data = values.cast(pa.large_binary())
    lengths = lengths_of(data)
    return [tagged(*varints(lengths), (0, 2 * branch), valid), data]


def _ordering_pieces(values: Column) -> list[Column]:
    """Branch and value of each row; a null one is IntWrapper 0, the bytes 04 00."""
    kind = values.type
    rows = len(values)
    valid = valid_in(values)
    if pa.types.is_null(kind) or not valid.any():
        return [_always_wins(valid, rows)]
    null_piece = None if valid.all() else _always_wins(valid, rows)
    if pa.types.is_struct(kind):
        result = _array_pieces(values)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        result = _text_pieces(values, branch=_STRING)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        result = _text_pieces(values, branch=_BYTES)
    elif pa.types.is_decimal(kind):
        matrix = big_endian(_cast(values, _WRAPPED_DECIMAL))
        lengths = minimal_lengths(matrix)
        result = [tagged(*varints(lengths), (0, 2 * _DECIMAL), None), tails(matrix, lengths)]
    else:
        branch, matrix, lengths = _number(values)
        result = [tagged(matrix, lengths, (0, 2 * branch), None)]
    if null_piece is None:
        return result
    # Where the value is null its own piece must be empty, whatever stood under the null.
    every: Column = pa.array(np.arange(rows), mask=~valid)
    return [null_piece, *(piece.take(every) for piece in result)]


def _array_pieces(values: Any) -> list[Column]:
    """An ArrayWrapper for each row: branch, the branch of its list, a block of as many items as fields, the list's end."""
    parts = values.flatten()
    if len(parts) > _MAX_FIELDS:
        raise SchemaError(
            f"{len(parts)} ordering columns are more than the {_MAX_FIELDS} that are stored with a delete"
        )
    begin = np.tile(np.array([2 * _ARRAY, 2, 2 * len(parts)], dtype=np.uint8), (len(values), 1))
    end = np.zeros((len(values), 1), dtype=np.uint8)
    every = np.ones(len(values), dtype=np.int64)
    return [
        ragged(begin, 3 * every),
        *(piece for part in parts for piece in _ordering_pieces(part)),
        ragged(end, every),
    ]


def _always_wins(valid: npt.NDArray[np.bool_], rows: int) -> Column:
    marks = np.tile(np.array([2 * _INT, 0], dtype=np.uint8), (rows, 1))
    return ragged(marks, np.where(valid, 0, 2).astype(np.int64))


def _number(values: Column) -> tuple[int, Bytes, npt.NDArray[np.int64]]:
    kind = values.type
    rows = len(values)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        branch = _INT if kind.bit_width < 32 or kind == pa.int32() else _LONG
        return (branch, *varints(values.cast(pa.int64()).fill_null(0).to_numpy()))
    if pa.types.is_timestamp(kind):
        # Observed: Hudi's writer uses LongWrapper for timestamps, not TimestampMicrosWrapper. It holds the stored long:
        # µs, but ms where the table stores ms. No table stores seconds or nanoseconds.
        stored = values if kind.unit == "ms" else _cast(values, pa.timestamp("us", kind.tz))
        return (_LONG, *varints(stored.cast(pa.int64()).fill_null(0).to_numpy()))
    if pa.types.is_boolean(kind):
        flags = values.cast(pa.uint8()).fill_null(0).to_numpy().reshape(-1, 1)
        return _BOOLEAN, flags, np.ones(rows, dtype=np.int64)
    if pa.types.is_float64(kind):
        return _DOUBLE, _raw(values.fill_null(0.0), "<f8"), np.full(rows, 8)
    if pa.types.is_float32(kind):
        return _FLOAT, _raw(values.fill_null(0.0), "<f4"), np.full(rows, 4)
    if kind == pa.date32():
        # Apache Hudi 1.2.0 fails to write these. As an int they have the Java class that its readers hold dates in.
        return (_INT, *varints(values.cast(pa.int32()).cast(pa.int64()).fill_null(0).to_numpy()))
    raise SchemaError(
        f"an ordering column of type {kind} cannot be stored with a delete; use a number, text or timestamp"
    )


def _raw(values: Column, dtype: str) -> Bytes:
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False).astype(dtype)
    return numbers.view(np.uint8).reshape(len(values), -1)


def _cast(values: Column, kind: pa.DataType) -> Column:
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as exc:
        raise SchemaError(
            f"an ordering value of type {values.type} does not fit a delete block's {kind}: {exc}"
        ) from exc


# --- decode ----------------------------------------------------------------------------------------------------


def decode_deletes(content: memoryview | bytes, ordering_type: pa.DataType | None) -> pa.Table:
    """The deletes of a block: record_key string, partition_path string, ordering of `ordering_type` (null if None).

    A null ordering is a commit-time delete, which wins against every record: it was stored as null, as int 0, or as a
    value of another Java class than the ordering column has (Hudi then lets the delete win, too). For several ordering
    fields `ordering_type` is a struct of them.

    Raises:
        CorruptFileError: the content is not one whole list.
        UnsupportedTableError: another block version, or an ordering value in a block before version 3 that is not read.
    """
    version, body = _list_in(content)
    if version < _VERSION:
        body = hoodie.format.kryo_deletes.avro_deletes(body)
    try:
        spans, items = _walk(body)
    except IndexError as exc:
        raise CorruptFileError(f"a delete list of {len(body)} bytes is cut within a record") from exc
    buffer = padded(body)
    try:
        return pa.table(
            {
                "record_key": _strings(buffer, spans[:, 0], spans[:, 1]),
                "partition_path": _strings(buffer, spans[:, 2], spans[:, 3]),
                "ordering": _ordering(buffer, spans[:, 4], spans[:, 5], spans[:, 6], ordering_type, items),
            }
        )
    except pa.ArrowInvalid as exc:
        raise CorruptFileError(f"a delete list holds an invalid value: {exc}") from exc


def deletes_without(content: memoryview | bytes, keys: Sequence[bytes]) -> int | None:
    """How many deletes a block has, by the word of its list, where none of them is of one of these keys; None where one may be.

    Its bytes are searched, and nothing is decoded.

    Raises:
        CorruptFileError, UnsupportedTableError: the content is not one whole list, as far as its lengths say.
    """
    version, body = _list_in(content)
    if version < _VERSION or any(key in body for key in keys):
        return None
    try:
        return abs(_long(body, 0)[0])
    except IndexError as exc:
        raise CorruptFileError(f"a delete list of {len(body)} bytes is cut") from exc


def _list_in(content: memoryview | bytes) -> tuple[int, bytes]:
    """Version and list."""
    cursor = Cursor(content)
    version = cursor.i32("version of a delete block")
    if not 1 <= version <= _VERSION:
        raise UnsupportedTableError(f"delete block of version {version}; versions 1 to {_VERSION} are read")
    length = cursor.i32("length of a delete list")
    if length != cursor.remaining:
        raise CorruptFileError(f"a delete block claims a list of {length} bytes, {cursor.remaining} follow")
    if length > _SLICE_BYTES:
        raise UnsupportedTableError(f"a delete list of {length} bytes is larger than the 1 GiB that is read")
    return version, bytes(cursor.take(length, "delete list"))


def _walk(body: bytes) -> tuple[Ints, Ints]:
    """One row for each delete: start and end of key, of path (end -1 for null), branch, start and end of the value.

    And one row for each item of the arrays: branch, start and end of its value; an array's start and end count these.

    A row loop: the records are not framed, so only the end of one says where the next begins. Keys and paths below 64
    bytes, nearly all, are stepped over in place: this halves the time of the whole decoding.
    """
    spans = array("q")
    items = array("q")
    count, at = _long(body, 0)
    while count:
        if count < 0:  # a block that says its size, too
            count = -count
            _, at = _long(body, at)
        if count > len(body) // 3:
            raise CorruptFileError(f"a delete list of {len(body)} bytes claims {count} records")
        for _ in range(count):
            size = body[at + 1]
            if body[at] == 2 and size < 0x80 and not size & 1:
                key = at + 2
                key_end = at = key + (size >> 1)
            else:
                key, key_end, at = _optional_text(body, at)
            size = body[at + 1]
            if body[at] == 2 and size < 0x80 and not size & 1:
                path = at + 2
                path_end = at = path + (size >> 1)
            else:
                path, path_end, at = _optional_text(body, at)
            branch = body[at] >> 1  # of 13 branches, each in one byte
            if body[at] & 0x81 or branch > _LAST:
                raise CorruptFileError(f"a delete list has a wrong union branch at byte {at}")
            at += 1
            start = at
            if branch in _VARINTS:
                while body[at] >= 0x80:
                    at += 1
                end = at = at + 1
            elif branch == _ARRAY:
                start = len(items) // 3
                at = _walk_array(body, at, items)
                end = len(items) // 3
            else:
                start, end = _value(body, at, branch)
                at = end
            spans.extend((key, key_end, path, path_end, branch, start, end))
        count, at = _long(body, at)
    if at != len(body):
        raise CorruptFileError(f"a delete list ends at byte {at} of {len(body)}")
    return np.frombuffer(spans, dtype=np.int64).reshape(-1, 7), np.frombuffer(items, dtype=np.int64).reshape(-1, 3)


def _walk_array(body: bytes, at: int, items: array[int]) -> int:
    """Appends branch, start and end of each item; gives the offset after the ArrayWrapper."""
    count_code = body[at]
    at += 1
    if count_code == 0:
        return at
    if count_code != 2:
        raise CorruptFileError(f"a delete list has a wrong union branch at byte {at - 1}")
    count, at = _long(body, at)
    while count:
        if count < 0:
            count = -count
            _, at = _long(body, at)
        if count > len(body) - at:
            raise CorruptFileError(f"a delete list of {len(body)} bytes has an array of {count} values")
        for _ in range(count):
            branch = body[at] >> 1
            if body[at] & 0x81 or branch > _LOCAL_DATE:
                raise CorruptFileError(f"a delete list has a wrong union branch at byte {at}")
            branch = _DATE if branch == _LOCAL_DATE else branch
            start, end = _value(body, at + 1, branch)
            items.extend((branch, start, end))
            at = end
        count, at = _long(body, at)
    return at


def _value(body: bytes, at: int, branch: int) -> tuple[int, int]:
    """Start and end of a value's bytes, behind its length where it has one."""
    if branch in _VARINTS:
        start = at
        while body[at] >= 0x80:
            at += 1
        return start, at + 1
    if branch in _LENGTHS:
        size, start = _long(body, at)
        return start, _forward(body, start, size)
    return at, _forward(body, at, _WIDTHS[branch])


def _long(body: bytes, at: int) -> tuple[int, int]:
    byte = body[at]
    at += 1
    coded = byte & 0x7F
    shift = 7
    while byte >= 0x80:
        byte = body[at]
        at += 1
        coded |= (byte & 0x7F) << shift
        shift += 7
        if not byte or shift > 70 or coded >= 1 << 64:
            raise CorruptFileError(f"a delete list has a padded number, or one of more than 64 bits, at byte {at - 1}")
    return (coded >> 1) ^ -(coded & 1), at


def _optional_text(body: bytes, at: int) -> tuple[int, int, int]:
    branch = body[at]
    if branch == 0:
        return at + 1, -1, at + 1
    if branch != 2:
        raise CorruptFileError(f"a delete list has a wrong union branch at byte {at}")
    size, start = _long(body, at + 1)
    end = _forward(body, start, size)
    return start, end, end


def _forward(body: bytes, at: int, size: int) -> int:
    if not 0 <= size <= len(body) - at:
        raise CorruptFileError(f"a delete list has a value of {size} bytes at byte {at} of {len(body)}")
    return at + size


def _strings(buffer: Bytes, starts: Ints, ends: Ints) -> Column:
    there = ends >= 0
    return slices(buffer, starts, np.where(there, ends, starts), None if there.all() else there).cast(pa.string())


def _ordering(buffer: Bytes, branches: Ints, starts: Ints, ends: Ints, kind: pa.DataType | None, items: Ints) -> Column:
    if kind is None or pa.types.is_null(kind):
        return pa.nulls(len(branches))
    if isinstance(kind, pa.StructType):
        there = (branches == _ARRAY) & (ends - starts == kind.num_fields)
        chosen = [items[starts[there] + i] for i in range(kind.num_fields)]
        parts = [
            spread(_ordering(buffer, item[:, 0], item[:, 1], item[:, 2], kind.field(i).type, items), there)
            for i, item in enumerate(chosen)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.array(~there))
    there = np.isin(branches, _branches_of(kind))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return slices(buffer, starts, np.where(there, ends, starts), there).cast(kind)
    at = np.flatnonzero(there)
    if pa.types.is_decimal(kind):
        lengths = ends[at] - starts[at]
        if ((lengths < 1) | (lengths > 16)).any():
            raise CorruptFileError("a delete list has a decimal of 0 or of more than 16 bytes")
        column = decimals_from(sign_extended(buffer, starts[at], ends[at]), pa.decimal128(38, 15)).cast(kind)
    elif pa.types.is_floating(kind):
        raw = np.ascontiguousarray(windows(buffer, starts[at], kind.bit_width // 8))
        column = from_bytes(kind, len(at), raw)
    elif pa.types.is_boolean(kind):
        flags = buffer[starts[at]]
        if (flags > 1).any():
            raise CorruptFileError("a delete list has a boolean that is neither 0 nor 1")
        column = pa.array(flags.astype(np.bool_))
    else:
        values, after = read_varints(buffer, starts[at])
        if (after != ends[at]).any():
            raise CorruptFileError("a delete list has a padded number, or one of more than 64 bits")
        if pa.types.is_timestamp(kind) and kind.unit == "ms":
            values = np.where(branches[at] == _TIMESTAMP, values // 1000, values)
        wins = (branches[at] == _INT) & (values == 0)
        there[at[wins]] = False
        # int64 -> int32 is checked, the step to date or timestamp only renames.
        stored = pa.array(values[~wins]).cast(pa.int32() if kind.bit_width <= 32 else pa.int64())
        column = stored.cast(kind)
    return spread(column, there)


def _branches_of(kind: pa.DataType) -> tuple[int, ...]:
    """The wrappers whose Java class is that of an ordering column of this type."""
    if pa.types.is_string(kind):
        return (_STRING,)
    if pa.types.is_binary(kind):
        return (_BYTES,)
    if pa.types.is_decimal(kind):
        return (_DECIMAL,)
    if pa.types.is_float32(kind):
        return (_FLOAT,)
    if pa.types.is_float64(kind):
        return (_DOUBLE,)
    if pa.types.is_boolean(kind):
        return (_BOOLEAN,)
    if pa.types.is_timestamp(kind):
        return (_LONG, _TIMESTAMP)
    if kind == pa.int64():
        return (_LONG,)
    if kind == pa.int32():
        return (_INT,)
    if kind == pa.date32():
        return (_INT, _DATE)
    if kind == pa.time64("us"):
        return (_LONG, _TIME)
    raise SchemaError(f"an ordering column of type {kind} is none that a stored table has")
