"""Blocks of an open HFile, decoded and checked once, then kept in the cache."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hoodie.errors import CorruptFileError
from hoodie.hfile.block import HEADER_BYTES, BlockKind, StoredBlock, content_of, decode_block, verify
from hoodie.hfile.compression import Compression
from hoodie.hfile.index import Entry, IndexPage, decode_page, page_of
from hoodie.hfile.key_value import CellBlock, cells_with, decode_cells
from hoodie.hfile.opened import Opened, check_places, naming
from hoodie.hfile.source import Source
from hoodie.storage.cache import Cache, Kind

_CELLS: Kind[CellBlock] = Kind("HFile data blocks")
_PAGES: Kind[IndexPage] = Kind("HFile index pages")
_CHUNKS: Kind[memoryview] = Kind("HFile bloom chunks")
_WINDOW_BYTES = 4 * 1024 * 1024
"""Neighbours are read together up to this."""
_REMOTE_GAP_BYTES = 256 * 1024
_LOCAL_GAP_BYTES = 16 * 1024
_MANY_SHARE = 16
"""Blocks that take more than this part of the cache are many."""


@dataclass(frozen=True)
class Blocks:
    """Thread-safe, as its parts are."""

    source: Source
    opened: Opened
    cache: Cache

    @property
    def gap_bytes(self) -> int:
        """To read over so much that nobody asked for is quicker than to read once more."""
        return _REMOTE_GAP_BYTES if self.source.is_remote else _LOCAL_GAP_BYTES

    def cells(self, entry: Entry) -> CellBlock:
        """A data block."""
        result = self.kept_cells(entry)
        if result is None:
            result = self._keep(entry, self.content(entry, (BlockKind.DATA,)))
        return result

    def kept_cells(self, entry: Entry) -> CellBlock | None:
        """A data block, if it is in the cache."""
        return self.cache.find(_CELLS, (self.source.identity, entry.offset))

    def _keep(self, entry: Entry, content: memoryview) -> CellBlock:
        with naming(self.source, f"the block at byte {entry.offset}"):
            cells = decode_cells(content, self.opened.cells, [(0, len(content))])
        self.cache.put(_CELLS, (self.source.identity, entry.offset), cells, cells.size_bytes)
        return cells

    def page(self, entry: Entry, *, is_leaf: bool) -> IndexPage:
        """A page of the data index below its root."""
        kind = BlockKind.LEAF_INDEX if is_leaf else BlockKind.INTERMEDIATE_INDEX

        def load() -> IndexPage:
            content = self.content(entry, (kind,))
            with naming(self.source, f"the block at byte {entry.offset}"):
                page = page_of(decode_page(content))
                check_places(page, self.opened.trailer)
                if not page.rows or page.rows[0] != entry.key:
                    raise CorruptFileError("it does not begin with the key that it is found by")
            return page

        return self.cache.get(_PAGES, (self.source.identity, entry.offset), load, lambda page: page.size_bytes)

    def chunk(self, entry: Entry) -> memoryview:
        """The bits of a part of the bloom filter."""
        key = (self.source.identity, entry.offset)
        result = self.cache.find(_CHUNKS, key)
        if result is None:
            result = self.content(entry, (BlockKind.BLOOM_CHUNK,))
            self.cache.put(_CHUNKS, key, result, len(result))
        return result

    def content(self, entry: Entry, kinds: Sequence[BlockKind]) -> memoryview:
        """The content of one block, read by itself."""
        data = self.source.read(entry.offset, entry.size_bytes)
        with naming(self.source, f"the block at byte {entry.offset}"):
            return content_of(_expected(decode_block(data), entry, kinds), self.opened.trailer.compression)

    def many(
        self, entries: Sequence[Entry], rows: Callable[[int], Sequence[bytes] | None]
    ) -> Iterator[CellBlock | None]:
        """These data blocks in their order; those that are not in the cache are read with their neighbours.

        Of a block that is not kept, only those of its cells that have one of the `rows` (of its number; None: all cells), and None
        where none has.

        They are kept, but where they are many on a disk: the next ones would push them out before they are asked for again, and
        with them what is asked for more often.
        """
        pairs = [(entry, self.kept_cells(entry)) for entry in entries]
        absent = [entry for entry, cells in pairs if cells is None]
        missing = windows(absent, gap_bytes=self.gap_bytes)
        size = sum(entry.size_bytes for entry in absent)
        keeps = self.source.is_remote or size <= self.cache.capacity_bytes // _MANY_SHARE
        read: deque[memoryview] = deque()
        for number, (entry, cells) in enumerate(pairs):
            if cells is not None:
                yield cells
                continue
            if not read:
                window = next(missing)
                data, start = self._read(window), window[0].offset
                read.extend(_part(data, each, start) for each in window)
            with naming(self.source, f"the block at byte {entry.offset}"):
                block = _expected(decode_block(read.popleft()), entry, (BlockKind.DATA,))
                content = content_of(block, self.opened.trailer.compression)
                if not keeps:
                    few = rows(number)
                    if few is None:
                        yield decode_cells(content, self.opened.cells, [(0, len(content))])
                    else:
                        yield cells_with(content, self.opened.cells, few)
                    continue
            # A copy of its own: what is kept must not hold the whole window.
            yield self._keep(entry, memoryview(bytes(content)))

    def together(self, window: Sequence[Entry]) -> CellBlock:
        """The cells of data blocks that follow each other, as one block that is not kept."""
        data, start = self._read(window), window[0].offset
        codec = self.opened.trailer.compression
        contents: list[bytes | memoryview] = []
        spans: list[tuple[int, int]] = []
        size = 0
        for entry in window:
            with naming(self.source, f"the block at byte {entry.offset}"):
                block = _expected(decode_block(_part(data, entry, start)), entry, (BlockKind.DATA,))
                if codec == Compression.NONE:
                    verify(block)
                    at = entry.offset - start
                    if block.raw_bytes != block.stored_end - HEADER_BYTES:
                        raise CorruptFileError(f"it claims {block.raw_bytes} bytes and is not compressed")
                    spans.append((at + HEADER_BYTES, at + block.stored_end))
                    continue
                contents.append(content_of(block, codec))
                spans.append((size, size + len(contents[-1])))
                size += len(contents[-1])
        if codec != Compression.NONE:
            data = memoryview(b"".join(contents))
        with naming(self.source, f"the blocks from byte {start} on"):
            return decode_cells(data, self.opened.cells, spans)

    def _read(self, window: Sequence[Entry]) -> memoryview:
        start, last = window[0].offset, window[-1]
        return self.source.read(start, last.offset + last.size_bytes - start)


def windows(entries: Iterable[Entry], *, gap_bytes: int) -> Iterator[list[Entry]]:
    """Blocks to be read in one go each, over bloom chunks, index pages and other blocks between them.

    A file whose index goes backwards gets a window for each step back.
    """
    window: list[Entry] = []
    for entry in entries:
        if window:
            gap = entry.offset - (window[-1].offset + window[-1].size_bytes)
            size = entry.offset + entry.size_bytes - window[0].offset
            if not 0 <= gap <= gap_bytes or size > _WINDOW_BYTES:
                yield window
                window = []
        window.append(entry)
    if window:
        yield window


def _part(data: memoryview, entry: Entry, start: int) -> memoryview:
    return data[entry.offset - start : entry.offset - start + entry.size_bytes]


def _expected(block: StoredBlock, entry: Entry, kinds: Sequence[BlockKind]) -> StoredBlock:
    if block.kind not in kinds:
        raise CorruptFileError(f"it is {block.kind.name} instead of {' or '.join(kind.name for kind in kinds)}")
    if block.size_bytes != entry.size_bytes:
        raise CorruptFileError(f"it has {block.size_bytes} bytes instead of {entry.size_bytes}")
    return block
