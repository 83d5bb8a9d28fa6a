"""Where in a base file record keys stand: a map from their hashes to blocks of rows, between the last column and the footer.

Keys are random in most files: every page of the key column has some below and some above a sought one, so all of it would be decoded
for one row. By the map a reader decodes a page or two, and it says which keys the file does not have without its bloom filter.
Parquet's readers go from the footer to the columns, and pass over these bytes, as they pass over page indexes that they do not know.

    count of each bucket, u8 | fingerprint of each key, u16 | block of each key, u8 | tail

Keys are in buckets by the upper bits of their hashes; the next 16 bits are their fingerprints. The block is a row's number without
its lowest bits.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hoodie.model.sought import RowBlocks

_LEAST_ROWS = 16 * 1024
"""The key column of a file of fewer rows is decoded in a millisecond."""
_MOST_ROWS = 2 * 1024 * 1024
"""To make the map of a file takes some 25 bytes of memory a row."""
_SIZES = struct.Struct("<IBBH")
"""Rows, bits of a bucket, bits of a row in its block, nothing."""
_TAIL = struct.Struct("<8sI8s")
"""The sizes, a checksum of all before it, magic bytes."""
_MAGIC = b"HPYKEYS1"
_FOOTER_TAIL_BYTES = 8
_KEY_BYTES = 3
_MOST_BITS = 16
_KEYS_OF_A_BUCKET_BITS = 3
_BLOCK_BITS = 8
_MOST_OF_A_BUCKET = 255
_FEW = 4
"""Before so many buckets the counts are added one by one."""

Hashes = npt.NDArray[np.uint32]


class KeyMap(NamedTuple):
    """That of one file."""

    counts: npt.NDArray[np.uint8]
    fingerprints: npt.NDArray[np.uint16]
    blocks: npt.NDArray[np.uint8]
    bits: int
    shift: int

    @property
    def size_bytes(self) -> int:
        return len(self.counts) + _KEY_BYTES * len(self.blocks)

    def blocks_of(self, hashes: Hashes) -> RowBlocks:
        """Where keys with these hashes may stand."""
        buckets = hashes >> np.uint32(32 - self.bits)
        counts = self.counts[buckets].astype(np.int64)
        if len(hashes) <= _FEW:
            starts = np.array([self.counts[:bucket].sum(dtype=np.int64) for bucket in buckets.tolist()], np.int64)
        else:
            starts = np.cumsum(self.counts, dtype=np.int64)[buckets] - counts
        numbers = np.repeat(np.arange(len(hashes)), counts)
        places = np.arange(len(numbers)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        same = np.flatnonzero(self.fingerprints[places] == _fingerprints(hashes, self.bits)[numbers])
        return RowBlocks(self.shift, len(self.blocks), numbers[same], self.blocks[places[same]])

    def missing(self, hashes: Hashes, first: int) -> int:
        """How many of these hashes, those of rows from `first` on, are not where they should be."""
        _, _, numbers, blocks, _ = self.blocks_of(hashes)
        there = np.zeros(len(hashes), np.bool_)
        there[numbers[blocks == first + numbers >> self.shift]] = True
        return int(len(there) - np.count_nonzero(there))


def encode_key_map(hashes: Hashes) -> bytes:
    """The map of a file whose keys, row by row, have these hashes; nothing where it would not help."""
    rows = len(hashes)
    if not _LEAST_ROWS <= rows <= _MOST_ROWS:
        return b""
    bits = min(_MOST_BITS, rows.bit_length() - _KEYS_OF_A_BUCKET_BITS)
    buckets = (hashes >> np.uint32(32 - bits)).astype(np.uint16)
    counts = np.bincount(buckets, minlength=1 << bits)
    if counts.max() > _MOST_OF_A_BUCKET:
        return b""  # some keys are there again and again
    order = np.argsort(buckets, kind="stable")  # by digits, as they are short
    shift = max(0, (rows - 1).bit_length() - _BLOCK_BITS)
    parts = [
        counts.astype(np.uint8),
        _fingerprints(hashes, bits).astype("<u2")[order],
        (order >> shift).astype(np.uint8),
    ]
    body = b"".join(part.tobytes() for part in parts)
    sizes = _SIZES.pack(rows, bits, shift, 0)
    return body + _TAIL.pack(sizes, zlib.crc32(body + sizes), _MAGIC)


def _fingerprints(hashes: Hashes, bits: int) -> npt.NDArray[np.uint16]:
    return (hashes >> np.uint32(_MOST_BITS - bits)).astype(np.uint16)


def may_have_key_map(file_bytes: int) -> bool:
    """Whether a file of this size is large enough for one."""
    return file_bytes > _KEY_BYTES * _LEAST_ROWS


def key_map_of(data: memoryview) -> KeyMap | None:
    """A copy of the map in the Parquet file that `data` is; None where it has none, or a damaged one."""
    end = len(data) - _FOOTER_TAIL_BYTES - int.from_bytes(data[-_FOOTER_TAIL_BYTES:-4], "little") - _TAIL.size
    if end < 0 or data[end + _TAIL.size - len(_MAGIC) : end + _TAIL.size] != _MAGIC:
        return None
    sizes, checksum, _ = _TAIL.unpack_from(data, end)
    rows, bits, shift, _ = _SIZES.unpack(sizes)
    begin = end - (1 << bits) - _KEY_BYTES * rows
    is_sound = begin >= 0 and 0 < bits <= _MOST_BITS and max(0, rows - 1) >> shift < 1 << _BLOCK_BITS
    if not is_sound or zlib.crc32(data[begin : end + _SIZES.size]) != checksum:
        return None
    body = bytes(data[begin:end])
    fingerprints = np.frombuffer(body, "<u2", rows, 1 << bits)
    counts, blocks = np.frombuffer(body, np.uint8, 1 << bits), np.frombuffer(body, np.uint8, rows, len(body) - rows)
    return KeyMap(counts, fingerprints, blocks, bits, shift) if counts.sum(dtype=np.int64) == rows else None
