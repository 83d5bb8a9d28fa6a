"""Data files of our own: blocks of rows as Arrow holds them in memory, so that they are written and read without work on each row.

file    = "HKVDATA1", block*, index, bloom, trailer
block   = a frame of rows, as in the log (`wal_frames`): checked by CRC-32
index   = Arrow IPC: of each block its first key, where it begins and how long it is
bloom   = a filter of the keys (`format.bloom`, SIMPLE)
trailer = offset, length and CRC-32 of index and bloom, number of rows, "HKVDATA1"
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.bloom import SIMPLE, BloomFilter, build_bloom, parse_bloom
from hoodie.kv.binary import KEYS, Binary, listed
from hoodie.kv.rows import NOTHING, SortedRows, between
from hoodie.kv.settings import NO_COMPRESSION
from hoodie.kv.wal_frames import Rows, frame_of, rows_frame
from hoodie.model.late import once
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, Kind

BLOCK_BYTES = 64 * 1024
_MAGIC = b"HKVDATA1"
_TRAILER = struct.Struct("<QIIQIIQ8s")
_FPP = 0.01
_MOST_ROWS = 1 << 14
_READ_AT_ONCE = 4 * 1024 * 1024


class _Place(NamedTuple):
    offset: int
    length: int
    crc: int


class _Block(NamedTuple):
    keys: list[bytes]
    rows: SortedRows


_BLOCKS: Kind[_Block] = Kind("blocks of key-value files")


class BlockFormat:
    suffix = ".kv"
    most_key_bytes = most_value_bytes = 1 << 30
    compressions = (NO_COMPRESSION,)

    @contextmanager
    def create(self, storage: Storage, path: str, compression: str = NO_COMPRESSION) -> Iterator[_Writer]:
        with storage.open_output(path) as stream:
            writer = _Writer(stream)
            yield writer
            writer.finish()

    def open(self, storage: Storage, path: str, cache: Cache) -> _Reader:
        return _Reader(storage, path, cache)


class _Writer:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._firsts: list[bytes] = []
        self._offsets: list[int] = []
        self._lengths: list[int] = []
        self._keys: list[Binary] = []
        stream.write(_MAGIC)
        self.size_bytes = len(_MAGIC)

    def add(self, rows: SortedRows) -> None:
        n = len(rows.keys)
        if not n:
            return
        self._keys.append(rows.keys)
        in_a_block = min(_MOST_ROWS, max(1, BLOCK_BYTES * n // max(1, rows.size_bytes)))
        parts: list[bytes | memoryview] = []
        for start in range(0, n, in_a_block):
            block = rows.slice(start, min(n, start + in_a_block))
            frame = rows_frame(Rows(*block))
            self._firsts.append(block.keys[0].as_py())
            self._offsets.append(self.size_bytes)
            length = sum(map(len, frame))
            self._lengths.append(length)
            self.size_bytes += length
            parts += frame
        for part in parts:
            self._stream.write(part)

    def finish(self) -> None:
        index = pa.record_batch(
            [pa.array(self._firsts, KEYS), pa.array(self._offsets, pa.int64()), pa.array(self._lengths, pa.int64())],
            ["first", "offset", "length"],
        ).serialize()
        entries = sum(map(len, self._keys))
        bloom = b""
        keys_of_blocks = [_texts(keys.filter(pc.greater(pc.binary_length(keys), 0))) for keys in self._keys]
        if sum(map(len, keys_of_blocks)):
            count = sum(map(len, keys_of_blocks))
            bloom = build_bloom(
                SIMPLE, pa.chunked_array(keys_of_blocks), num_entries=count, fpp=_FPP, max_entries=count
            ).to_bytes()
        index_at, bloom_at = self.size_bytes, self.size_bytes + len(index)
        trailer = _TRAILER.pack(
            *(index_at, len(index), zlib.crc32(index)), *(bloom_at, len(bloom), zlib.crc32(bloom)), entries, _MAGIC
        )
        for part in (index, bloom, trailer):
            self._stream.write(part)
        self.size_bytes += len(index) + len(bloom) + len(trailer)


class _Reader:
    def __init__(self, storage: Storage, path: str, cache: Cache) -> None:
        self._storage = storage
        self._path = path
        self._cache = cache
        self._info = storage.stat(path)
        self._key = (storage.identity, path, self._info.identity)
        size = self._info.size_bytes
        if size < len(_MAGIC) + _TRAILER.size:
            raise self._corrupt(f"has {size} bytes, which is not a whole file")
        trailer = storage.read(path, size - _TRAILER.size, _TRAILER.size)
        index_at, index_bytes, index_crc, bloom_at, bloom_bytes, bloom_crc, self.entries, magic = _TRAILER.unpack(
            trailer
        )
        if magic != _MAGIC or index_at + index_bytes != bloom_at or bloom_at + bloom_bytes + _TRAILER.size != size:
            raise self._corrupt("does not end as a data file does")
        self._bloom_place = _Place(bloom_at, bloom_bytes, bloom_crc)
        index = pa.ipc.read_record_batch(
            pa.py_buffer(self._checked(_Place(index_at, index_bytes, index_crc), "index")), _INDEX
        )
        self._firsts: list[bytes] = listed(index["first"])
        self._offsets: list[int] = listed(index["offset"])
        self._lengths: list[int] = listed(index["length"])

    def get(self, key: bytes, *, is_likely: bool = True) -> tuple[bool, bytes | None]:
        number = bisect_right(self._firsts, key) - 1
        if number < 0:
            return False, None
        block = self._cache.find(_BLOCKS, (self._key, number))
        if block is None:
            if key and self._bloom is not None and not self._bloom.might_contain(_texts(pa.array([key], KEYS)))[0]:
                return False, None
            block = self._block(number)
        at = bisect_left(block.keys, key)
        if at == len(block.keys) or block.keys[at] != key:
            return False, None
        return True, block.rows.values[at].as_py()

    def get_many(self, keys: SortedRows) -> SortedRows:
        candidates = keys.keys
        if not len(candidates) or not self._firsts:
            return NOTHING
        if self._bloom is not None:
            candidates = candidates.filter(pa.array(self._bloom.might_contain(_texts(candidates))))
        parts: list[SortedRows] = []
        numbers = np.array([bisect_right(self._firsts, key) - 1 for key in listed(candidates)], np.int64)
        for number in np.unique(numbers):
            if number < 0:
                continue
            low, high = np.searchsorted(numbers, (number, number + 1))
            rows = self._block(int(number)).rows
            at = pc.index_in(candidates.slice(low, high - low), rows.keys).drop_null()
            if len(at):
                parts.append(SortedRows(rows.keys.take(at), rows.values.take(at)))
        if not parts:
            return NOTHING
        return SortedRows(*(pa.concat_arrays(list(each)) for each in zip(*parts, strict=True)))

    def scan(self, start: bytes | None, stop: bytes | None) -> Iterator[SortedRows]:
        low = 0 if start is None else max(0, bisect_right(self._firsts, start) - 1)
        high = len(self._firsts) if stop is None else bisect_left(self._firsts, stop)
        while low < high:
            end = low + 1
            bytes_at_once = self._lengths[low]
            while end < high and bytes_at_once + self._lengths[end] <= _READ_AT_ONCE:
                bytes_at_once += self._lengths[end]
                end += 1
            content = memoryview(self._storage.read(self._path, self._offsets[low], bytes_at_once))
            parts = []
            for number in range(low, end):
                at = self._offsets[number] - self._offsets[low]
                parts.append(self._decoded(number, content[at : at + self._lengths[number]]))
            rows = SortedRows(*(pa.concat_arrays(list(each)) for each in zip(*parts, strict=True)))
            rows = between(rows, start, stop)
            if len(rows.keys):
                yield rows
            low = end

    def close(self) -> None:
        """Nothing is held open."""

    @once
    def _bloom(self) -> BloomFilter | None:
        if not self._bloom_place.length:
            return None
        return parse_bloom(SIMPLE, self._checked(self._bloom_place, "bloom filter"))

    def _block(self, number: int) -> _Block:
        def load() -> _Block:
            content = self._storage.read(self._path, self._offsets[number], self._lengths[number])
            rows = self._decoded(number, memoryview(content))
            return _Block(listed(rows.keys), rows)

        return self._cache.get(_BLOCKS, (self._key, number), load, lambda block: 2 * self._lengths[number])

    def _decoded(self, number: int, content: memoryview) -> SortedRows:
        rows = frame_of(content)
        if rows is None:
            raise self._corrupt(f"block {number}, at byte {self._offsets[number]:,}, does not match its checksum")
        return SortedRows(*rows)

    def _checked(self, place: _Place, what: str) -> bytes:
        content = self._storage.read(self._path, place.offset, place.length)
        if len(content) != place.length or zlib.crc32(content) != place.crc:
            raise self._corrupt(f"its {what} does not match its checksum")
        return content

    def _corrupt(self, why: str) -> CorruptFileError:
        return CorruptFileError(f"data file {self._storage.uri.rstrip('/')}/{self._path}: {why}")


def _texts(keys: Binary) -> pa.Array[Any]:
    """The same bytes under the type that record keys have, for which filters were made."""
    return keys.view(pa.string())


_INDEX = pa.schema([pa.field("first", KEYS), pa.field("offset", pa.int64()), pa.field("length", pa.int64())])  # type: ignore[arg-type]
