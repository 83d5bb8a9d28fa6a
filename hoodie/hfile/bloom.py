"""HBase's compound bloom filters of rows: chunks of bits among the data blocks, and what finds them in the part read first.

Content of the meta block: version i32 | bytes of all chunks i64 | hashes i32 | kind of hash i32 | keys i64 | keys it is made
for i64 | chunks i32 | name of the comparator (none for rows) | an entry for each chunk, as in the root of an index. A row is
looked up in the chunk whose first row is the last one not after it. Its bits are `abs(h1 + i * h2) mod bits`, with two murmur
hashes: the first is the seed of the second.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFileError, OptionError
from hoodie.hashes.murmur import murmur_of_rows
from hoodie.hfile.index import Entry, IndexPage, decode_root, encode_root
from hoodie.hfile.wire import decode_hadoop_int

_HEAD = struct.Struct(">iqiiqqi")
_VERSION = 3
_MURMUR = 1
_MOST_FOLDS = 7
_MOST_HASHES = 1_100
_LN2 = math.log(2)
CHUNK_BYTES = 128 * 1024


@dataclass(frozen=True)
class BloomMeta:
    """What the part of a file that is read first says of its filter."""

    hashes: int
    chunks: IndexPage


def chunk_size(chunk_bytes: int, rate: float) -> tuple[int, int, int]:
    """Bytes, hashes and keys of a chunk for a false positive rate.

    Raises:
        OptionError: a value is out of range.
    """
    if not 0.0 < rate < 1.0:
        raise OptionError(f"bloom filter false positive rate {rate}: give a value between 0 and 1, such as 0.01")
    folds = 1 << _MOST_FOLDS
    size = -(-chunk_bytes // folds) * folds
    bits = size * 8
    ideal = int(bits * (_LN2 * _LN2 / -math.log(rate)))
    if ideal < 1:
        raise OptionError(f"a bloom filter chunk of {size} bytes holds no key at the rate {rate}: give more bytes")
    hashes = max(1, math.ceil(_LN2 * (bits // ideal)))
    return size, hashes, max(1, int(-bits / hashes * math.log(1 - math.exp(math.log(rate) / hashes))))


class BloomWriter:
    """Gathers rows; gives chunks when they are full."""

    def __init__(self, chunk_bytes: int, rate: float) -> None:
        self._bytes, self._hashes, self._room = chunk_size(chunk_bytes, rate)
        self._flags = np.zeros(self._bytes * 8, np.bool_)
        self._first: bytes | None = None
        self._count = 0
        self.keys = self._most_keys = self._all_bytes = 0
        self._entries: list[Entry] = []

    def add(self, rows: pa.Array[Any]) -> list[tuple[bytes, bytes]]:
        """The chunks that these rows have filled: first row and bits of each. They have to be written, and `placed`."""
        full = []
        while len(rows):
            part = rows.slice(0, self._room - self._count)
            if self._first is None:
                self._first = part[0].as_py()
            first, step = murmur_of_rows(part)
            place = first.copy()
            for _ in range(self._hashes):
                self._flags[_places(place, len(self._flags))] = True
                place += step
            self._count += len(part)
            rows = rows.slice(len(part))
            if self._count == self._room:
                full.append(self._closed())
        return full

    def finish(self) -> list[tuple[bytes, bytes]]:
        """The last chunk, where there is one."""
        return [self._closed()] if self._count else []

    def _closed(self) -> tuple[bytes, bytes]:
        flags, room = self._flags, self._room
        # A chunk with few keys is folded: its halves are laid over each other.
        while len(flags) % 16 == 0 and room > 2 * self._count:
            half = len(flags) // 2
            flags = flags[:half] | flags[half:]
            room //= 2
        assert self._first is not None
        chunk = (self._first, np.packbits(flags, bitorder="little").tobytes())
        self.keys += self._count
        self._most_keys += room
        self._all_bytes += len(chunk[1])
        self._flags[:] = False
        self._first, self._count = None, 0
        return chunk

    def placed(self, row: bytes, offset: int, size_bytes: int) -> None:
        """Where the chunk that begins with this row was written."""
        self._entries.append(Entry(row, offset, size_bytes))

    def meta(self) -> bytes:
        """The content of the meta block, when all chunks are placed."""
        head = _HEAD.pack(
            _VERSION, self._all_bytes, self._hashes, _MURMUR, self.keys, self._most_keys, len(self._entries)
        )
        return head + b"\0" + encode_root(self._entries)


def decode_bloom_meta(data: memoryview) -> BloomMeta | None:
    """What the meta block says; None for a filter by another hash than murmur, which is not used.

    Raises:
        CorruptFileError: it is no such block.
    """
    if len(data) < _HEAD.size:
        raise CorruptFileError(f"its bloom filter is cut off after {len(data)} bytes")
    version, _, hashes, kind, _, _, count = _HEAD.unpack_from(data)
    if version != _VERSION or not 1 <= hashes <= _MOST_HASHES or not 0 <= count <= len(data):
        raise CorruptFileError(f"its bloom filter has version {version}, {hashes} hashes and {count} chunks")
    if kind != _MURMUR:
        return None
    size, at = decode_hadoop_int(data, _HEAD.size)
    if not 0 <= size <= len(data) - at:
        raise CorruptFileError(f"the comparator of its bloom filter takes {size} bytes")
    entries, _ = decode_root(data, count, offset=at + size)
    return BloomMeta(hashes, IndexPage(entries))


def might_hold(chunk: memoryview, hashes: int, rows: pa.Array[Any]) -> npt.NDArray[np.bool_]:
    """For each row whether it may be among those of the chunk; it is not where the answer is no."""
    bits = np.frombuffer(chunk, np.uint8)
    if not len(bits):
        return np.ones(len(rows), np.bool_)
    place, step = murmur_of_rows(rows)
    alive = np.ones(len(rows), np.bool_)
    for _ in range(hashes):
        at = _places(place, len(bits) * 8)
        alive &= bits[at >> 3] >> (at & 7).astype(np.uint8) & 1 == 1
        place = place + step
    return alive


def _places(hashes: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.int64]:
    # abs(h % m) with Java's % is abs(h) mod m.
    places: npt.NDArray[np.int64] = np.abs(hashes.view(np.int32).astype(np.int64)) % bits
    return places
