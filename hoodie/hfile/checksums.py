"""Checksums of blocks: one for each `chunk_bytes` of what stands on storage, the block's header included."""

from __future__ import annotations

import zlib
from enum import IntEnum

import numpy as np

from hoodie.hashes.crc32c import crc32c, crc32c_of_rows

CHUNK_BYTES = 16 * 1024
_LEAST_FOR_ROWS = 8


class ChecksumKind(IntEnum):
    """As block headers name them."""

    NONE = 0
    CRC32 = 1
    CRC32C = 2


def checksum_bytes(size_bytes: int, chunk_bytes: int = CHUNK_BYTES) -> int:
    """How many bytes the checksums of so many bytes take."""
    return -(-size_bytes // chunk_bytes) * 4


def checksums(kind: ChecksumKind, data: bytes | memoryview, chunk_bytes: int = CHUNK_BYTES) -> bytes:
    """The checksum of each chunk, four big-endian bytes each; the last chunk may be shorter."""
    view = memoryview(data)
    if kind == ChecksumKind.NONE:  # HBase wants the room
        return bytes(checksum_bytes(len(view), chunk_bytes))
    if kind == ChecksumKind.CRC32:
        starts = range(0, len(view), chunk_bytes)
        return b"".join(zlib.crc32(view[at : at + chunk_bytes]).to_bytes(4, "big") for at in starts)
    if chunk_bytes < _LEAST_FOR_ROWS:
        starts = range(0, len(view), chunk_bytes)
        return b"".join(crc32c(view[at : at + chunk_bytes]).to_bytes(4, "big") for at in starts)
    whole = len(view) // chunk_bytes
    parts = []
    if whole:
        rows = np.frombuffer(view, np.uint8, count=whole * chunk_bytes).reshape(whole, chunk_bytes)
        parts.append(crc32c_of_rows(rows).astype(">u4").tobytes())
    if rest := view[whole * chunk_bytes :]:
        parts.append(crc32c(rest).to_bytes(4, "big"))
    return b"".join(parts)
