"""Walks down the data index of an HFile, to the data blocks of a range of keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from hoodie.errors import CorruptFileError
from hoodie.hfile.blocks import Blocks
from hoodie.hfile.index import Entry, IndexPage


class Forward:
    """Refuses an index that leads back: on each level a block lies behind the one before. So no walk is longer than the file."""

    def __init__(self, blocks: Blocks) -> None:
        self._name = blocks.source.name
        self._ends = [0] * (blocks.opened.trailer.data_index_levels + 1)

    def step(self, level: int, entry: Entry) -> None:
        """Raises CorruptFileError."""
        if entry.offset < self._ends[level]:
            raise CorruptFileError(
                f"HFile {self._name}: its index leads to byte {entry.offset} after byte {self._ends[level]}"
            )
        self._ends[level] = entry.offset + entry.size_bytes


def entry_of(blocks: Blocks, row: bytes) -> Entry | None:
    """The only data block that may hold the row; None where the row is before all of them."""
    page = blocks.opened.root
    for level in range(blocks.opened.trailer.data_index_levels, 0, -1):
        at = page.place(row)
        if at < 0:
            return None
        if level == 1:
            return page.entries[at]
        page = blocks.page(page.entries[at], is_leaf=level == 2)
    return None


def entries_between(blocks: Blocks, start: bytes, stop: bytes | None) -> Iterator[Entry]:
    """The data blocks that may hold rows from `start` to before `stop`."""
    levels = blocks.opened.trailer.data_index_levels
    return _below(blocks, blocks.opened.root, levels, start, stop, Forward(blocks))


def _below(
    blocks: Blocks, page: IndexPage, level: int, start: bytes, stop: bytes | None, forward: Forward
) -> Iterator[Entry]:
    first = max(0, page.place(start))
    end = len(page) if stop is None else bisect_left(page.rows, stop)
    for entry in page.entries[first:end]:
        forward.step(level, entry)
        if level == 1:
            yield entry
        else:
            below = blocks.page(entry, is_leaf=level == 2)
            yield from _below(blocks, below, level - 1, start, stop, forward)
