"""Avro's scalars as whole columns: varints, ragged byte strings and decimals, in numpy and Arrow without a row loop.

Written bytes are *pieces*: a `large_binary` array with one byte string per row. Pieces of several columns are joined
row by row in Arrow (`join`). Read positions are int64 arrays, one per row, into a buffer that has `PADDING` spare bytes
at its end, so that a read may begin anywhere up to the end of the data before its result is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Column: TypeAlias = Any
"""An Arrow array whose type only the schema at hand knows."""

PADDING = 16
OVERRUN = 1 << 62
"""Position after a varint that is padded or has more than 64 bits: past the end of every record."""
_EMPTY = pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(bytes(16)), pa.py_buffer(b"")])[0]
"""No bytes. `pa.scalar` would import pandas, which is for those who use it."""
_JOIN: Any = pc.binary_join_element_wise
_LENGTH_LIMITS = [np.uint64(1 << bits) for bits in range(7, 64, 7)]


# --- write -----------------------------------------------------------------------------------------------------


def join(pieces: Sequence[Column]) -> Column:
    """The pieces of each row behind one another; a null piece is empty."""
    if len(pieces) == 1 and not pieces[0].null_count:
        return pieces[0]
    return _JOIN(*pieces, _EMPTY, null_handling="replace", null_replacement="")


def from_bytes(kind: pa.DataType, rows: int, *data: Any, valid: Mask | None = None) -> Column:
    """An array over its data buffers (offsets and bytes, or values), which are not copied; null where not valid."""
    nulls = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little").data)
    return pa.Array.from_buffers(kind, rows, [nulls, *map(pa.py_buffer, data)])


def values_of(column: Column, dtype: str, width: int = 1) -> npt.NDArray[Any]:
    """A fixed-width column's stored values, `width` of the dtype for each row; anything where it is null."""
    every: npt.NDArray[Any] = np.frombuffer(column.buffers()[1] or b"", dtype=dtype)
    if width > 1:
        every = every.reshape(-1, width)
    return every[column.offset : column.offset + len(column)]


def lengths_of(data: Column) -> Ints:
    """Bytes of each string of a `large_binary` array, 0 where it is null."""
    lengths = np.diff(offsets_in(data))
    return np.where(valid_in(data), lengths, 0) if data.null_count else lengths


def valid_in(column: Column) -> Mask:
    mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def data_of(pieces: Column) -> Any:
    """The buffer that the offsets of the pieces point into."""
    return pieces.buffers()[2] or b""


def pieces_from_offsets(offsets: Ints, data: Any) -> Column:
    """Row i is `data[offsets[i]:offsets[i + 1]]`; nothing is copied."""
    return from_bytes(pa.large_binary(), len(offsets) - 1, np.ascontiguousarray(offsets), data)


def offsets_of(lengths: npt.NDArray[np.integer]) -> Ints:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def offsets_in(pieces: Column) -> Ints:
    """The offsets of an array's rows into its own data buffer."""
    every: Ints = np.frombuffer(pieces.buffers()[1] or bytes(8), dtype=np.int64)
    return every[pieces.offset : pieces.offset + len(pieces) + 1]


def ragged(matrix: Bytes, lengths: Ints) -> Column:
    """Row i is the first `lengths[i]` bytes of the matrix's row i."""
    width = matrix.shape[1]
    if len(lengths) and lengths.min() == width:
        return pieces_from_offsets(offsets_of(lengths), np.ascontiguousarray(matrix).reshape(-1))
    flat = matrix[np.arange(width) < lengths[:, None]]
    return pieces_from_offsets(offsets_of(lengths), flat)


def tagged(matrix: Bytes, lengths: Ints, tags: tuple[int, int] | None, valid: Mask | None) -> Column:
    """`ragged` with a union's branch byte in front; a row that is not valid is the null branch's byte alone.

    `tags` are the bytes of the null and of the value branch, None for a type that is not nullable.
    """
    if tags is None:
        return ragged(matrix, lengths)
    whole = np.empty((matrix.shape[0], matrix.shape[1] + 1), dtype=np.uint8)
    whole[:, 1:] = matrix
    whole[:, 0] = tags[1]
    lengths = lengths + 1
    if valid is not None:
        whole[~valid, 0] = tags[0]
        lengths[~valid] = 1
    return ragged(whole, lengths)


def varint(value: int) -> bytes:
    """One number that is not negative, seven bits a byte, the lowest first: as Avro, Thrift and protobuf have them below zigzag."""
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def varints(values: npt.NDArray[np.integer]) -> tuple[Bytes, Ints]:
    """Zigzag varints as a matrix and the length of each row's in it."""
    signed = values.astype(np.int64)
    coded = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    lengths = np.ones(len(coded), dtype=np.int64)
    top = int(coded.max()) if len(coded) else 0
    for limit in _LENGTH_LIMITS:
        if top < limit:
            break
        lengths += coded >= limit
    width = int(lengths.max()) if len(coded) else 1
    matrix = np.empty((len(coded), width), dtype=np.uint8)
    for at in range(width):
        byte = (coded >> np.uint64(7 * at)).astype(np.uint8)
        matrix[:, at] = byte & 0x7F if at == width - 1 else np.where(lengths > at + 1, byte | 0x80, byte & 0x7F)
    return matrix, lengths


def big_endian(decimals: Column) -> Bytes:
    """The 16 bytes of each decimal128's unscaled value, two's complement; any bytes where it is null."""
    return values_of(decimals, "u1", 16)[:, ::-1]


def minimal_lengths(matrix: Bytes) -> Ints:
    """How many trailing bytes of each big-endian two's complement row hold its value, as Java's BigInteger counts."""
    width = matrix.shape[1]
    sign = np.where(matrix[:, 0] >= 0x80, np.uint8(0xFF), np.uint8(0))
    differs = matrix != sign[:, None]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), width - 1)
    # The first byte that counts must show the sign itself.
    shows = (matrix[np.arange(len(matrix)), first] >= 0x80) == (sign == 0xFF)
    lengths: Ints = np.minimum(width - first + ~shows, width).astype(np.int64)
    return lengths


def tails(matrix: Bytes, lengths: Ints) -> Column:
    """Row i is the last `lengths[i]` bytes of the matrix's row i."""
    width = matrix.shape[1]
    return pieces_from_offsets(offsets_of(lengths), matrix[np.arange(width) >= width - lengths[:, None]])


# --- read ------------------------------------------------------------------------------------------------------


def padded(content: memoryview | bytes) -> Bytes:
    """A copy of the bytes with room for reads that begin at their end."""
    buffer = np.empty(len(content) + PADDING, dtype=np.uint8)
    buffer[: len(content)] = np.frombuffer(content, dtype=np.uint8)
    buffer[len(content) :] = 0
    return buffer


def read_varints(buffer: Bytes, positions: Ints) -> tuple[Ints, Ints]:
    """The zigzag varint at each position, and the position behind it (`OVERRUN` where it is none)."""
    byte = buffer[positions]
    coded = (byte & 0x7F).astype(np.uint64)
    after = positions + 1
    active = np.flatnonzero(byte >= 0x80)
    for at in range(1, 10):
        if not len(active):
            break
        byte = buffer[positions[active] + at]
        coded[active] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * at)
        after[active] += 1
        after[active[byte == 0]] = OVERRUN  # no writer pads; so each value has one spelling
        if at == 9:
            after[active[byte > 1]] = OVERRUN
        active = active[byte >= 0x80]
    return (coded >> np.uint64(1)).view(np.int64) ^ -(coded & np.uint64(1)).view(np.int64), after


def windows(buffer: Bytes, positions: Ints, width: int) -> Bytes:
    """`width` bytes from each position, as a matrix; any bytes where they would pass the buffer's end."""
    if buffer.size < width:
        return np.zeros((len(positions), width), dtype=np.uint8)
    every = np.lib.stride_tricks.sliding_window_view(buffer, width)
    return every[np.minimum(positions, len(every) - 1)]


def slices(buffer: Bytes, starts: Ints, ends: Ints, valid: Mask | None = None) -> Column:
    """The byte strings `buffer[starts[i]:ends[i]]`, null where not valid (and there empty).

    Needs `starts[0] <= ends[0] <= starts[1] <= …` and a buffer below 2 GiB. Strings and the gaps between them are seen
    as one array without copying anything; taking every second one lets Arrow do the copying (0.5 ms for 50,000 strings
    of 10 bytes).
    """
    rows = len(starts)
    if not rows:
        return pa.nulls(0, pa.binary())
    offsets = np.empty(2 * rows, dtype=np.int32)
    offsets[0::2] = starts
    offsets[1::2] = ends
    result = from_bytes(pa.binary(), 2 * rows - 1, offsets, buffer).take(pa.array(np.arange(0, 2 * rows, 2)))
    if valid is None:
        return result
    _, lengths, data = result.buffers()
    return from_bytes(pa.binary(), rows, lengths, data, valid=valid)


def decimals_from(matrix: Bytes, kind: pa.DataType, valid: Mask | None = None) -> Column:
    """Decimals from big-endian two's complement rows of at most 16 bytes.

    Raises:
        pa.ArrowInvalid: one has more digits than the type.
    """
    rows, width = matrix.shape
    little = np.empty((rows, 16), dtype=np.uint8)
    little[:, :width] = matrix[:, ::-1]
    little[:, width:] = np.where(matrix[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    result = from_bytes(kind, rows, little, valid=valid)
    result.validate(full=True)
    return result


def spread(dense: Column, valid: Mask | None) -> Column:
    """The values, one for each valid row, among nulls for the others."""
    if valid is None:
        return dense
    places: Column = pa.array(np.cumsum(valid) - 1, mask=~valid)
    return dense.take(places)


def sign_extended(buffer: Bytes, starts: Ints, ends: Ints) -> Bytes:
    """The big-endian numbers `buffer[starts[i]:ends[i]]`, of 1 to 16 bytes each, widened to rows of 16 bytes."""
    matrix = np.where(buffer[starts] >= 0x80, np.uint8(0xFF), np.uint8(0))[:, None].repeat(16, axis=1)
    inside = np.arange(16) >= 16 - (ends - starts)[:, None]
    matrix[inside] = buffer[(ends[:, None] - 16 + np.arange(16))[inside]]
    return matrix
