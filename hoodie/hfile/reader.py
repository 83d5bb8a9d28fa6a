"""Reads an HFile: one key, many keys, ranges of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.hashes.murmur import murmur_of_row
from hoodie.hfile.arrays import BINARY, as_binary, first_disorder
from hoodie.hfile.block import BlockKind
from hoodie.hfile.blocks import Blocks, windows
from hoodie.hfile.lookup import look_up
from hoodie.hfile.opened import open_hfile
from hoodie.hfile.source import Source
from hoodie.hfile.walk import entries_between, entry_of
from hoodie.storage.cache import Cache

SCHEMA = pa.schema([pa.field("key", BINARY, nullable=False), pa.field("value", BINARY, nullable=False)])
"""Of what `scan` gives."""


class HFileReader:
    """An open file; safe to use from several threads. Nothing has to be closed.

    Every damage that is noticed is a `CorruptFileError` that names the file: a block whose checksums do not fit, an index that
    leads nowhere, a scan that finds another number of cells than the trailer tells. Files of Apache Hudi have no checksums.
    """

    def __init__(self, source: Source, cache: Cache | None = None) -> None:
        """Open the file, in one or two reads. Blocks are kept in the cache, by default in none.

        Raises:
            CorruptFileError: it is no HFile. UnsupportedTableError: it is one of a kind that is not read.
        """
        self._opened = open_hfile(source)
        self._source = source
        self._blocks = Blocks(source, self._opened, Cache(0) if cache is None else cache)

    def __len__(self) -> int:
        """How many keys there are, as the file says."""
        return self._opened.trailer.entry_count

    @property
    def info(self) -> Mapping[bytes, bytes]:
        """The file info, the writer's own entries included."""
        return self._opened.info

    @property
    def meta_names(self) -> list[str]:
        return [name.decode("utf-8", errors="replace") for name in self._opened.metas]

    def meta(self, name: str) -> bytes | None:
        """The content of a meta block, None where there is none of that name."""
        entry = self._opened.metas.get(name.encode())
        return None if entry is None else bytes(self._blocks.content(entry, (BlockKind.META,)))

    def get(self, key: bytes, *, is_likely: bool = True) -> bytes | None:
        """The value of a key, None where the file does not have it.

        `is_likely`: a block that is in the cache is looked into at once, without a look at the filter.
        """
        if not is_likely and not self._may_hold(key):
            return None
        entry = entry_of(self._blocks, key)
        if entry is None:
            return None
        cells = self._blocks.kept_cells(entry)
        if cells is None:
            if is_likely and not self._may_hold(key):
                return None
            cells = self._blocks.cells(entry)
        return cells.find(key)

    def get_many(self, keys: pa.Array[Any]) -> Any:
        """The values of these keys in their order, as `large_binary`; null where the file does not have one.

        The keys may be in any order, and come more than once.
        """
        return look_up(self._blocks, as_binary(keys, "keys to look up"))

    def scan(
        self, start: bytes | None = None, stop: bytes | None = None, *, prefix: bytes | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Keys from `start` (included) to before `stop`, of those that begin with `prefix`, in batches of about 4 MB."""
        if prefix:
            start = prefix if start is None else max(start, prefix)
            after = _after_all_with(prefix)
            stop = after if stop is None else stop if after is None else min(stop, after)
        if start is not None and stop is not None and start >= stop:
            return
        count = 0
        last: bytes | None = None
        for window in windows(entries_between(self._blocks, start or b"", stop), gap_bytes=self._blocks.gap_bytes):
            cells = self._blocks.together(window)
            count += len(cells)
            if not len(cells):
                continue
            keys = cells.rows()
            self._check_order(last, keys)
            last = keys[-1].as_py()
            low = cells.place(start) if start and cells.row(0) < start else 0
            high = cells.place(stop) if stop is not None and last is not None and last >= stop else len(cells)
            if low < high:
                yield pa.RecordBatch.from_arrays([keys.slice(low, high - low), cells.values(low, high)], schema=SCHEMA)
        if not start and stop is None and count != len(self):
            raise CorruptFileError(f"HFile {self._source.name}: its trailer tells {len(self)} cells, {count} are there")

    def _may_hold(self, key: bytes) -> bool:
        bloom = self._opened.bloom
        if bloom is None:
            return True
        at = bloom.chunks.place(key)
        if at < 0:
            return False
        chunk = self._blocks.chunk(bloom.chunks.entries[at])
        bits = len(chunk) * 8
        if not bits:
            return True
        place, step = murmur_of_row(key)
        for _ in range(bloom.hashes):
            bit = (place if place < 1 << 31 else (1 << 32) - place) % bits
            if not chunk[bit >> 3] >> (bit & 7) & 1:
                return False
            place = place + step & 0xFFFFFFFF
        return True

    def _check_order(self, last: bytes | None, keys: Any) -> None:
        at = first_disorder(keys)
        before, after = (last, keys[0].as_py()) if at is None else (keys[at].as_py(), keys[at + 1].as_py())
        if before is None or before < after:
            return
        if before == after:
            raise UnsupportedTableError(f"HFile {self._source.name} has several cells of row {after!r}")
        raise CorruptFileError(f"HFile {self._source.name} has key {after!r} behind {before!r}")


def _after_all_with(prefix: bytes) -> bytes | None:
    """The smallest key behind all with the prefix; None where there is none."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None
