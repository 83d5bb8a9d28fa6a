"""Writes an HFile from sorted keys and their values, as Arrow arrays in batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import DuplicateKeyError, OptionError, SchemaError
from hoodie.format.avro_wire import offsets_in
from hoodie.hfile import file_info
from hoodie.hfile.arrays import as_binary, first_disorder
from hoodie.hfile.block import HEADER_BYTES, NO_PREVIOUS, BlockKind, Coding, encode_block
from hoodie.hfile.bloom import CHUNK_BYTES, BloomWriter
from hoodie.hfile.index import Entry, IndexWriter, encode_root
from hoodie.hfile.key_value import (
    BESIDE_BYTES,
    MOST_KEY_BYTES,
    MOST_VALUE_BYTES,
    Column,
    encode_cells,
    encode_key,
)
from hoodie.hfile.trailer import TRAILER_BYTES, Trailer, encode_trailer

_GROUP_BYTES = 8 * 1024 * 1024
"""Cells that are encoded together."""


class Sink(Protocol):
    """Where the bytes go, in their order; what `Storage.open_output` gives is one."""

    def write(self, data: bytes, /) -> object: ...


class HFileWriter:
    """One file; `finish` writes what makes it one. Holds about 16 MB of cells beside the batch that is written."""

    def __init__(self, sink: Sink, options: HFileOptions | None = None) -> None:
        self.options = HFileOptions() if options is None else options
        self.size_bytes = 0
        """Written so far."""
        self.entry_count = 0
        self._sink = sink
        self._index = IndexWriter(self.options.index_page_bytes, self.options.index_least_entries)
        rate = self.options.bloom_rate
        self._bloom = None if rate is None else BloomWriter(self.options.bloom_chunk_bytes, rate)
        self._waiting: list[tuple[Any, Any]] = []
        self._waiting_bytes = 0
        self._cell_bytes = BESIDE_BYTES + len(self.options.column.family) + len(self.options.column.qualifier)
        self._last: bytes | None = None
        self._key_bytes = self._value_bytes = self._raw_bytes = 0
        self._first_data = self._last_data = -1
        self._previous: dict[BlockKind, int] = {}
        self._metas: dict[bytes, bytes] = {}
        self._infos: dict[bytes, bytes] = {}
        self._finished = False

    def write(self, keys: pa.Array[Any], values: pa.Array[Any]) -> None:
        """Add keys, which are greater than all before and in the order of their bytes, with their values.

        Both are arrays of (large) binaries or strings, of equal length and without nulls. Keys have at most 32,767 bytes.

        Raises:
            DuplicateKeyError: a key is there already. SchemaError: anything else is wrong with them. Nothing was added then.
        """
        keys, values = as_binary(keys, "keys"), as_binary(values, "values")
        if len(keys) != len(values):
            raise SchemaError(f"{len(keys)} keys with {len(values)} values: each key has one")
        if not len(keys):
            return
        key_offsets, value_offsets = offsets_in(keys), offsets_in(values)
        _check_sizes(key_offsets, MOST_KEY_BYTES, "key")
        _check_sizes(value_offsets, MOST_VALUE_BYTES, "value")
        self._check_order(keys)
        self._last = keys[-1].as_py()
        self.entry_count += len(keys)
        self._key_bytes += int(key_offsets[-1] - key_offsets[0])
        self._value_bytes += int(value_offsets[-1] - value_offsets[0])
        ends = (key_offsets[1:] - key_offsets[0]) + (value_offsets[1:] - value_offsets[0])
        ends = ends + self._cell_bytes * np.arange(1, len(keys) + 1)
        start = 0
        while start < len(keys):
            before = int(ends[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(ends, before + _GROUP_BYTES)))
            end = min(end, len(keys))
            self._waiting.append((keys.slice(start, end - start), values.slice(start, end - start)))
            self._waiting_bytes += int(ends[end - 1]) - before
            if self._waiting_bytes >= _GROUP_BYTES:
                self._write_blocks(last=False)
            start = end

    def add_meta(self, name: str, content: bytes) -> None:
        """A block of the caller's, to be found by its name; it is kept until the end."""
        self._metas[name.encode()] = content

    def add_info(self, name: bytes, value: bytes) -> None:
        """An entry of the file info, which each reader has in memory."""
        if name.startswith(file_info.RESERVED_PREFIX):
            raise OptionError(
                f"file info {name!r}: names that begin with {file_info.RESERVED_PREFIX!r} are HFile's own"
            )
        self._infos[name] = value

    def finish(self) -> None:
        """Write what is left, and all that readers begin with. The sink is the caller's to close."""
        if self._finished:
            raise OptionError("the HFile is finished already")
        self._finished = True
        self._write_blocks(last=True)
        self._write_bloom_chunks([] if self._bloom is None else self._bloom.finish())
        metas = [Entry(name, *self._write_block(BlockKind.META, self._metas[name])) for name in sorted(self._metas)]
        root, root_count = self._index.finish(self._write_page)
        load_on_open, _ = self._write_block(BlockKind.ROOT_INDEX, root)
        self._write_block(BlockKind.ROOT_INDEX, encode_root(metas))
        info_at, _ = self._write_block(BlockKind.FILE_INFO, file_info.encode_file_info(self._file_info()))
        if self._bloom is not None and self._bloom.keys:
            self._write_block(BlockKind.BLOOM_META, self._bloom.meta())
        trailer = Trailer(
            file_info_offset=info_at,
            load_on_open_offset=load_on_open,
            data_index_bytes=self._index.raw_bytes,
            raw_bytes=self._raw_bytes + TRAILER_BYTES,
            data_index_count=root_count,
            meta_index_count=len(metas),
            entry_count=self.entry_count,
            data_index_levels=self._index.levels,
            first_data_offset=self._first_data,
            last_data_offset=self._last_data,
            compression=self.options.coding.compression,
        )
        self._put(encode_trailer(trailer))

    def _check_order(self, keys: Any) -> None:
        if self._last is not None:
            first = keys[0].as_py()
            if first <= self._last:
                _refuse(self._last, first)
        at = first_disorder(keys)
        if at is not None:
            _refuse(keys[at].as_py(), keys[at + 1].as_py())

    def _write_blocks(self, *, last: bool) -> None:
        """Encode what waits and write its whole blocks; the rest waits on, or is a block itself where it is the last."""
        if not self._waiting:
            return
        keys, values = (pa.concat_arrays([pair[side] for pair in self._waiting]) for side in (0, 1))
        offsets, data = encode_cells(keys, values, self.options.column)
        start, count = 0, len(keys)
        while start < count:
            end = int(np.searchsorted(offsets, offsets[start] + self.options.block_bytes))
            if end > count:
                if not last:
                    break
                end = count
            content = data[int(offsets[start]) : int(offsets[end])]
            offset, size = self._write_block(BlockKind.DATA, content)
            self._last_data = offset
            if self._first_data < 0:
                self._first_data = offset
            key = encode_key(keys[start].as_py(), self.options.column)
            self._index.add(Entry(key, offset, size), self._write_page)
            start = end
        if self._bloom is not None:
            self._write_bloom_chunks(self._bloom.add(keys.slice(0, start)))
        self._waiting = [(keys.slice(start), values.slice(start))] if start < count else []
        self._waiting_bytes = int(offsets[count] - offsets[start])

    def _write_bloom_chunks(self, chunks: list[tuple[bytes, bytes]]) -> None:
        for row, bits in chunks:
            assert self._bloom is not None
            self._bloom.placed(row, *self._write_block(BlockKind.BLOOM_CHUNK, bits))

    def _write_page(self, content: bytes, is_leaf: bool) -> tuple[int, int]:
        return self._write_block(BlockKind.LEAF_INDEX if is_leaf else BlockKind.INTERMEDIATE_INDEX, content)

    def _write_block(self, kind: BlockKind, content: bytes | memoryview) -> tuple[int, int]:
        """Its offset and size."""
        offset = self.size_bytes
        previous = self._previous.get(kind, NO_PREVIOUS)
        block = encode_block(kind, content, self.options.coding, previous=previous)
        self._previous[kind] = offset
        self._raw_bytes += HEADER_BYTES + len(content)
        self._put(block)
        return offset, len(block)

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self.size_bytes += len(data)

    def _file_info(self) -> dict[bytes, bytes]:
        count, beside = max(1, self.entry_count), self._cell_bytes - 9
        result = self._infos | {
            file_info.AVERAGE_KEY: _i32((self._key_bytes + beside * self.entry_count) // count),
            file_info.AVERAGE_VALUE: _i32(self._value_bytes // count),
            file_info.CREATED: self.options.created_ms.to_bytes(8, "big"),
            file_info.KEY_VALUE_VERSION: _i32(1),
            file_info.GREATEST_VERSION: bytes(8),
        }
        if self._last is not None:
            result[file_info.LAST_KEY] = encode_key(self._last, self.options.column)
            if self._bloom is not None:
                result |= {
                    file_info.BLOOM_TYPE: b"ROW",
                    file_info.LAST_BLOOM_KEY: self._last,
                    file_info.DELETE_FAMILIES: bytes(8),
                }
        return result


def _i32(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _check_sizes(offsets: npt.NDArray[np.int64], most: int, what: str) -> None:
    longest = int(np.diff(offsets).max())
    if longest > most:
        raise SchemaError(f"a {what} of an HFile has {longest} bytes: at most {most} fit")


def _refuse(before: bytes, after: bytes) -> None:
    if before == after:
        raise DuplicateKeyError(f"key {after!r} comes twice in an HFile: give each key once")
    raise SchemaError(f"key {after!r} comes behind {before!r} in an HFile: give the keys in the order of their bytes")


# -- How an HFile is written.

_MOST_BLOCK_BYTES = 1 << 28


@dataclass(frozen=True)
class HFileOptions:
    """What readers find in the file by itself; nothing of it has to be said again to read."""

    block_bytes: int = 64 * 1024
    """A data block is closed with the cell that makes it so large."""
    coding: Coding = field(default_factory=Coding)
    column: Column = field(default_factory=Column)
    bloom_rate: float | None = 0.01
    """How often the bloom filter says yes wrongly; None: no filter."""
    bloom_chunk_bytes: int = CHUNK_BYTES
    index_page_bytes: int = 128 * 1024
    """A data index that is larger gets a level more."""
    index_least_entries: int = 16
    created_ms: int = 0
    """Milliseconds since 1970; the same for the same bytes."""

    def __post_init__(self) -> None:
        if not 1 <= self.block_bytes <= _MOST_BLOCK_BYTES:
            raise OptionError(f"HFile blocks of {self.block_bytes} bytes: give 1 to {_MOST_BLOCK_BYTES}")
        if self.index_page_bytes < 1 or self.index_least_entries < 2:
            raise OptionError("pages of an HFile index have at least 1 byte and 2 entries")
