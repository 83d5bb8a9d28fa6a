"""How the content of blocks is compressed, in the framing that Hadoop's codecs give it.

GZ is a gzip stream. SNAPPY, LZ4 and ZSTD are frames: the raw size, then pieces with the size of each in front, big-endian.
So HBase's own codecs have them; witness: `integration/test_hfiles_with_hbase.py`. Hadoop's native codec for ZSTD writes
bare zstd frames instead. Both are read.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from enum import IntEnum
from typing import Any

import pyarrow as pa

from hoodie.errors import CorruptFileError, OptionError, UnsupportedTableError

_U32 = struct.Struct(">I")
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_GZIP_FORMAT = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 256 * 1024
"""Hadoop's codecs take so much at once; their readers have buffers of this size."""
_PIECE_ROOM = 256 * 1024 - (256 * 1024 // 6 + 32)
"""What of a buffer Hadoop fills: incompressible bytes must fit it, too."""
_LEAST_LIMIT_BYTES = 64 * 1024 * 1024
_BEST_RATIO = 1_032


class Compression(IntEnum):
    """As trailers name them."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6
    LZMA = 7
    BROTLI = 8


_ARROW: dict[Compression, Any] = {Compression.SNAPPY: "snappy", Compression.LZ4: "lz4_raw", Compression.ZSTD: "zstd"}
KNOWN = (Compression.NONE, Compression.GZ, *_ARROW)


def largest_raw_bytes(stored_bytes: int) -> int:
    """What so many compressed bytes may become: more is no block, but a way to fill a reader's memory."""
    return max(_LEAST_LIMIT_BYTES, _BEST_RATIO * stored_bytes)


def check_known(codec: Compression) -> None:
    """Raises UnsupportedTableError for a codec that is neither read nor written here."""
    if codec not in KNOWN:
        names = ", ".join(each.name for each in KNOWN)
        raise UnsupportedTableError(f"HFile compression {codec.name} is not known here; known are {names}")


def compress(codec: Compression, data: bytes | memoryview) -> bytes | memoryview:
    """The stored form of a block's content.

    Raises:
        OptionError: the content compresses so well that no reader would take it.
    """
    if codec == Compression.NONE:
        return data
    if codec == Compression.GZ:
        compressor = zlib.compressobj(wbits=_GZIP_FORMAT)
        stored = compressor.compress(data) + compressor.flush()
    else:
        stored = _frame(_arrow(codec), memoryview(data))
    if len(data) > largest_raw_bytes(len(stored)):
        raise OptionError(
            f"a block of {len(data)} bytes is compressed to {len(stored)}, which HFile readers refuse: "
            "give smaller values, or no compression"
        )
    return stored


def decompress(codec: Compression, stored: memoryview, raw_bytes: int) -> bytes | memoryview:
    """The content of a block, which has to be of that size.

    Raises:
        CorruptFileError: it is not.
    """
    if codec == Compression.NONE:
        raw: bytes | memoryview = stored
    elif raw_bytes > largest_raw_bytes(len(stored)):
        raise CorruptFileError(f"{len(stored)} compressed bytes claim to be {raw_bytes}")
    elif codec == Compression.GZ:
        raw = _gunzip(stored, raw_bytes)
    elif codec == Compression.ZSTD and bytes(stored[:4]) == _ZSTD_MAGIC:
        raw = _unpack(codec, stored, raw_bytes)
    else:
        raw = _unframe(codec, stored, raw_bytes)
    if len(raw) != raw_bytes:
        raise CorruptFileError(f"its content has {len(raw)} bytes instead of {raw_bytes}")
    return raw


def _arrow(codec: Compression) -> Any:
    return pa.Codec(_ARROW[codec])


def _gunzip(stored: memoryview, raw_bytes: int) -> bytes:
    stream = zlib.decompressobj(_GZIP_FORMAT)
    try:
        # One byte more than there should be, to see that there is none. Memory grows with what really comes out.
        raw = stream.decompress(stored, raw_bytes + 1)
    except zlib.error as exc:
        raise CorruptFileError(f"its content is not a gzip stream: {exc}") from exc
    if not stream.eof:
        raise CorruptFileError(f"its content is not a gzip stream of {raw_bytes} bytes")
    return raw


def _unpack(codec: Compression, stored: memoryview, room: int) -> bytes:
    """What a piece holds, of at most so many bytes."""
    if codec == Compression.ZSTD:
        return _streamed(stored, room)
    # Arrow fills a buffer of the size that it is told, and does not tell how much of it was filled. But these codecs refuse
    # one that is too small, so the size is the least one that is not refused.
    raw = _unpacked(codec, stored, room)
    if raw is None:
        raise CorruptFileError(f"its content does not decompress to {room} bytes")
    if not room or _unpacked(codec, stored, room - 1) is None:
        return raw
    size = bisect_left(range(room), True, key=lambda size: _unpacked(codec, stored, size) is not None)
    return raw[:size]


def _streamed(stored: memoryview, room: int) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(stored)), "zstd") as stream:
            raw: bytes = stream.read(room + 1)
    except (pa.ArrowException, OSError, ValueError) as exc:
        raise CorruptFileError(f"its content is not a frame of zstd: {exc}") from exc
    if len(raw) > room:
        raise CorruptFileError(f"its content has more than {room} bytes")
    return raw


def _unpacked(codec: Compression, stored: memoryview, room: int) -> bytes | None:
    try:
        raw: bytes = _arrow(codec).decompress(pa.py_buffer(stored), room, asbytes=True)
    except (pa.ArrowException, OSError, ValueError):
        return None
    return raw


def _frame(codec: Any, data: memoryview) -> bytes:
    """Frames of at most a buffer's raw bytes each: raw size, then one piece with its size."""
    parts: list[bytes] = []
    for start in range(0, len(data), _PIECE_ROOM):
        piece = data[start : start + _PIECE_ROOM]
        packed = codec.compress(piece, asbytes=True)
        parts += (_U32.pack(len(piece)), _U32.pack(len(packed)), packed)
    return b"".join(parts)


def _unframe(codec: Compression, stored: memoryview, raw_bytes: int) -> bytes:
    parts: list[bytes] = []
    at = position = 0
    while at < len(stored):
        frame, at = _size_at(stored, at)
        if frame > raw_bytes - position:
            raise CorruptFileError(f"a frame in it claims {frame} bytes, {raw_bytes - position} are missing")
        end = position + frame
        while position < end:
            size, at = _size_at(stored, at)
            if size > len(stored) - at:
                raise CorruptFileError(f"a piece in it takes {size} bytes, {len(stored) - at} are left")
            # All pieces but the last are as large as the writer's buffer, which nothing names.
            piece = _unpack(codec, stored[at : at + size], end - position)
            if not piece:
                raise CorruptFileError("a piece in it is empty")
            parts.append(piece)
            position += len(piece)
            at += size
    return b"".join(parts)


def _size_at(stored: memoryview, at: int) -> tuple[int, int]:
    if len(stored) - at < _U32.size:
        raise CorruptFileError("its content is cut off")
    return int(_U32.unpack_from(stored, at)[0]), at + _U32.size
