"""Bytes of a write-ahead log. Pure.

A segment is a header and frames. A frame is its length, the CRC-32 of its body, and a body: rows, or what becomes of all rows since
the last such word. They are committed as a window, or dropped. A window lies in one segment. A segment may end anywhere, where its
writer died: a frame that is not whole, and rows without a word on them, are cut. Such a frame elsewhere is damage (`commits_beyond`).

    segment = "HKVLOG01" u64 epoch, frame*
    frame   = u32 length of body, u32 crc32 of body, body
    body    = u8 1 (rows), u32 n, u8 deletes?, u32[n+1] key ends, i64[n+1] value ends, keys, values, u8[n] deleted
            | u8 2 (committed), i64 window
            | u8 3 (dropped)
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.kv.binary import KEYS, VALUES, Binary

MAGIC = b"HKVLOG01"
HEADER = struct.Struct("<8sQ")
_FRAME = struct.Struct("<II")
_ROWS, _END, _DROPPED = 1, 2, 3
_ROWS_HEAD = struct.Struct("<BIB")
_END_BODY = struct.Struct("<Bq")
_END_LENGTH = struct.pack("<I", _END_BODY.size)


class Rows(NamedTuple):
    """Puts and deletes in their order."""

    keys: Binary
    values: Binary
    """Null: the key is deleted."""


class End(NamedTuple):
    """The rows since the last one are those of this window; None: they are dropped."""

    window: int | None


def header(epoch: int) -> bytes:
    return HEADER.pack(MAGIC, epoch)


def epoch_of(segment: memoryview) -> int:
    result: int = HEADER.unpack_from(segment)[1]
    return result


def rows_frame(rows: Rows) -> list[bytes | memoryview]:
    """The parts of a frame, to be written one after the other: the bytes of keys and values are not copied."""
    n = len(rows.keys)
    key_ends, keys = _parts(rows.keys, np.uint32)
    value_ends, values = _parts(rows.values, np.int64)
    deleted = rows.values.is_null().to_numpy(zero_copy_only=False).astype(np.uint8) if rows.values.null_count else None
    parts: list[bytes | memoryview] = [
        _ROWS_HEAD.pack(_ROWS, n, deleted is not None),
        key_ends,
        value_ends,
        keys,
        values,
    ]
    if deleted is not None:
        parts.append(deleted.tobytes())
    return _framed(parts)


def end_frame(window: int | None) -> list[bytes | memoryview]:
    return _framed([bytes([_DROPPED]) if window is None else _END_BODY.pack(_END, window)])


def frames(content: memoryview) -> Iterator[tuple[int, Rows | End]]:
    """The whole frames of a segment after its header, each with the offset behind it; ends where one is not whole."""
    at = HEADER.size
    while (frame := _whole(content, at)) is not None:
        at += _FRAME.size + int(_FRAME.unpack_from(content, at)[0])
        yield at, frame


def commits_beyond(rest: memoryview) -> bool:
    """Whether a window was acknowledged in bytes that begin with no whole frame: then they were damaged, and are no torn tail.

    A window is on storage before anything is written behind it. So one that has a whole frame behind it was acknowledged. One that has
    none may be the window during which its writer died, of which the end got to the disk and the beginning did not.
    """
    content, at = bytes(rest), 0
    if content.startswith(_END_LENGTH) and _whole(rest, _FRAME.size + _END_BODY.size) is not None:
        return True  # it was the end of a window itself
    while (at := content.find(_END_LENGTH, at)) >= 0:
        end = at + _FRAME.size + _END_BODY.size
        if isinstance(_whole(rest, at), End) and content[at + _FRAME.size] == _END and _whole(rest, end) is not None:
            return True
        at += 1
    return False


def frame_of(content: memoryview) -> Rows | None:
    """The rows of a frame; None: this is no whole one."""
    if len(content) < _FRAME.size:
        return None
    length, crc = _FRAME.unpack_from(content)
    body = content[_FRAME.size :]
    if length != len(body) or not length or zlib.crc32(body) != crc:
        return None
    frame = _decoded(body)
    return frame if isinstance(frame, Rows) else None


def _whole(content: memoryview, at: int) -> Rows | End | None:
    """The frame at that place; None: it is not whole."""
    if at + _FRAME.size > len(content):
        return None
    length, crc = _FRAME.unpack_from(content, at)
    body = content[at + _FRAME.size : at + _FRAME.size + length]
    return _decoded(body) if length and len(body) == length and zlib.crc32(body) == crc else None


def _framed(parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    crc = length = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
        length += len(part)
    return [_FRAME.pack(length, crc), *parts]


def _parts(array: Binary, ends: type[np.uint32 | np.int64]) -> tuple[bytes, memoryview]:
    """Where each entry ends, from 0 for the first one's start, and the bytes of all."""
    is_large = pa.types.is_large_binary(array.type)
    _, offsets_buffer, data = array.buffers()
    if offsets_buffer is None or len(array) == 0:
        return np.zeros(len(array) + 1, ends).tobytes(), memoryview(b"")
    kind = np.dtype(np.int64 if is_large else np.int32)
    offsets = np.frombuffer(memoryview(offsets_buffer), kind)[array.offset :][: len(array) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    content = memoryview(data)[first:last] if data is not None else memoryview(b"")
    return (offsets - first).astype(ends).tobytes(), content


def _decoded(body: memoryview) -> Rows | End | None:
    if body[0] == _END and len(body) == _END_BODY.size:
        return End(_END_BODY.unpack(body)[1])
    if body[0] == _DROPPED and len(body) == 1:
        return End(None)
    if body[0] != _ROWS or len(body) < _ROWS_HEAD.size:
        return None
    _, n, has_deletes = _ROWS_HEAD.unpack_from(body)
    at = _ROWS_HEAD.size
    keys_at = at + 4 * (n + 1) + 8 * (n + 1)
    if keys_at > len(body):
        return None
    key_ends = np.frombuffer(body, np.uint32, n + 1, at)
    value_ends = np.frombuffer(body, np.int64, n + 1, at + 4 * (n + 1))
    key_bytes, value_bytes = int(key_ends[-1]), int(value_ends[-1])
    if keys_at + key_bytes + value_bytes + (n if has_deletes else 0) != len(body):
        return None
    for ends in (key_ends, value_ends):
        if ends[0] != 0 or (np.diff(ends.astype(np.int64)) < 0).any():
            return None
    data = pa.py_buffer(body)
    keys = pa.Array.from_buffers(
        KEYS, n, [None, pa.py_buffer(key_ends.astype(np.int32).tobytes()), data.slice(keys_at, key_bytes)]
    )
    values_at = keys_at + key_bytes
    validity = None
    if has_deletes:
        deleted = np.frombuffer(body, np.uint8, n, values_at + value_bytes)
        validity = pa.py_buffer(np.packbits(deleted == 0, bitorder="little").tobytes())
    values = pa.Array.from_buffers(
        VALUES, n, [validity, pa.py_buffer(value_ends.tobytes()), data.slice(values_at, value_bytes)]
    )
    return Rows(keys, values)
