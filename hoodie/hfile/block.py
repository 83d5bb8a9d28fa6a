"""Blocks: a header, the content (perhaps compressed), the checksums.

Header (big-endian, 33 bytes): magic 8 | bytes behind the header i32 | raw bytes of the content i32 | offset of the previous
block of this kind i64, or -1 | kind of checksum i8 | bytes under each checksum i32 | bytes of header and stored content i32.
Apache Hudi writes blocks without checksums, and HBase with them; witness: `tests/hfile/test_golden_hfiles.py`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from hoodie.errors import CorruptFileError
from hoodie.hfile.checksums import CHUNK_BYTES, ChecksumKind, checksum_bytes, checksums
from hoodie.hfile.compression import Compression, compress, decompress

_HEADER = struct.Struct(">8siiqbii")
HEADER_BYTES = _HEADER.size
NO_PREVIOUS = -1


class BlockKind(Enum):
    """By the magic that a block begins with."""

    DATA = b"DATABLK*"
    LEAF_INDEX = b"IDXLEAF2"
    BLOOM_CHUNK = b"BLMFBLK2"
    META = b"METABLKc"
    INTERMEDIATE_INDEX = b"IDXINTE2"
    ROOT_INDEX = b"IDXROOT2"
    FILE_INFO = b"FILEINF2"
    BLOOM_META = b"BLMFMET2"
    DELETE_BLOOM_META = b"DFBLMET2"
    ENCODED_DATA = b"DATABLKE"


@dataclass(frozen=True)
class Coding:
    """How the blocks of a file are stored."""

    compression: Compression = Compression.NONE
    checksum: ChecksumKind = ChecksumKind.CRC32


@dataclass(frozen=True)
class StoredBlock:
    """A whole block as it stands in a file, its checksums not yet looked at."""

    kind: BlockKind
    data: memoryview
    """From the header to the last checksum."""
    stored_end: int
    """Where the stored content ends in `data`."""
    raw_bytes: int
    checksum: ChecksumKind
    chunk_bytes: int

    @property
    def size_bytes(self) -> int:
        return len(self.data)


def encode_block(kind: BlockKind, content: bytes | memoryview, coding: Coding, *, previous: int) -> bytes:
    """The block's bytes; `previous` is the offset of the last block of its kind.

    Raises:
        OptionError: the content compresses so well that no reader would take it.
    """
    stored = compress(coding.compression, content)
    end = HEADER_BYTES + len(stored)
    sums = checksum_bytes(end)
    header = _HEADER.pack(kind.value, len(stored) + sums, len(content), previous, coding.checksum, CHUNK_BYTES, end)
    block = header + stored
    return block + checksums(coding.checksum, block)


def decode_block(data: memoryview, offset: int = 0) -> StoredBlock:
    """The block that begins at the offset; what stands behind it is not looked at.

    Raises:
        CorruptFileError: there is none, or it is cut off.
    """
    if len(data) - offset < HEADER_BYTES:
        raise CorruptFileError(f"its header is cut off after {len(data) - offset} bytes")
    magic, behind, raw, _, sum_kind, chunk, end = _HEADER.unpack_from(data, offset)
    try:
        kind = BlockKind(magic)
    except ValueError as exc:
        raise CorruptFileError(f"it begins with {magic!r}, which is not a kind of block") from exc
    size = HEADER_BYTES + behind
    if not (HEADER_BYTES <= end <= size <= len(data) - offset and raw >= 0):
        raise CorruptFileError(
            f"its header claims {size} bytes, {end} without checksums, {raw} raw; {len(data) - offset} are there"
        )
    try:
        checksum = ChecksumKind(sum_kind)
    except ValueError as exc:
        raise CorruptFileError(f"its header names the unknown kind of checksum {sum_kind}") from exc
    expected = checksum_bytes(end, chunk) if chunk > 0 else -1
    # Without checksums Apache Hudi leaves no room for them, and HBase does.
    if size - end != expected and (checksum != ChecksumKind.NONE or size != end):
        raise CorruptFileError(f"{size - end} bytes of checksums follow {end} bytes, one for each {chunk}")
    return StoredBlock(kind, data[offset : offset + size], end, raw, checksum, chunk)


def verify(block: StoredBlock) -> None:
    """Compare the checksums with the bytes.

    Raises:
        CorruptFileError: they differ.
    """
    # Without checksums their room is zeros, if it is there: so a kind that was changed to "none" does not go unnoticed.
    if block.checksum == ChecksumKind.NONE and block.stored_end == block.size_bytes:
        return
    if checksums(block.checksum, block.data[: block.stored_end], block.chunk_bytes) != block.data[block.stored_end :]:
        raise CorruptFileError(f"its {block.checksum.name} checksums do not fit its bytes")


def content_of(block: StoredBlock, compression: Compression) -> memoryview:
    """The raw content, checked against its checksums.

    Raises:
        CorruptFileError: the checksums or the sizes do not fit.
    """
    verify(block)
    return memoryview(decompress(compression, block.data[HEADER_BYTES : block.stored_end], block.raw_bytes))
