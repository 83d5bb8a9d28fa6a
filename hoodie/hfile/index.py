"""Indexes of blocks: for each block its first key, its offset and its size on storage.

A root is entries of offset i64 | size i32 | key length as Hadoop's number | key. A page below it is count i32 | where each
entry begins, and where the last one ends, i32 each | entries of offset i64 | size i32 | key. The root of an index of several
levels ends with 16 bytes that name the middle key.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hoodie.errors import CorruptFileError
from hoodie.hfile.key_value import row_of
from hoodie.hfile.wire import decode_hadoop_int, decode_varint, encode_hadoop_int

_PLACE = struct.Struct(">qi")
_U32 = struct.Struct(">I")
_MIDDLE = struct.Struct(">qii")
LengthAt = Callable[[memoryview, int], tuple[int, int]]
"""Reads a number at an offset; gives it, and the offset behind it."""


class Entry(NamedTuple):
    """One block."""

    key: bytes
    """Whole, as it is stored, or the row alone: see who gives it."""
    offset: int
    size_bytes: int


@dataclass
class IndexPage:
    """Entries in the order of their keys, which are rows here."""

    entries: Sequence[Entry]
    rows: list[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [entry.key for entry in self.entries]

    def __len__(self) -> int:
        return len(self.entries)

    def place(self, row: bytes) -> int:
        """The number of the only block that may hold the row; -1 where the row is before all of them."""
        return bisect_right(self.rows, row) - 1

    @property
    def size_bytes(self) -> int:
        """In memory."""
        return sum(200 + len(row) for row in self.rows)


def encode_root(entries: Sequence[Entry]) -> bytes:
    """Also what meta blocks and bloom filters are found by; their keys are names and rows."""
    parts: list[bytes] = []
    for key, offset, size in entries:
        parts += (_PLACE.pack(offset, size), encode_hadoop_int(len(key)), key)
    return b"".join(parts)


def decode_root(
    data: memoryview, count: int, *, offset: int = 0, length_at: LengthAt = decode_hadoop_int
) -> tuple[list[Entry], int]:
    """So many entries, their keys as they are stored, and the offset behind them.

    Raises:
        CorruptFileError: the data does not hold them.
    """
    entries = []
    for number in range(count):
        if len(data) - offset < _PLACE.size:
            raise CorruptFileError(f"its index ends after {number} of {count} entries")
        at, size = _PLACE.unpack_from(data, offset)
        key, offset = _key_at(data, offset + _PLACE.size, length_at)
        entries.append(Entry(key, at, size))
    return entries, offset


def _key_at(data: memoryview, offset: int, length_at: LengthAt) -> tuple[bytes, int]:
    size, after = length_at(data, offset)
    if not 0 <= size <= len(data) - after:
        raise CorruptFileError(f"a key of its index takes {size} bytes, {len(data) - after} are left")
    return bytes(data[after : after + size]), after + size


def page_of(entries: Sequence[Entry]) -> IndexPage:
    """The page of entries with whole keys.

    Raises:
        CorruptFileError: a key is none, or they are out of order.
    """
    page = IndexPage([Entry(row_of(key), offset, size) for key, offset, size in entries])
    for before, after in pairwise(page.rows):
        if before > after:
            raise CorruptFileError(f"its index has key {after!r} behind {before!r}")
    return page


def encode_page(entries: Sequence[Entry]) -> bytes:
    """A page below the root."""
    sizes = [_PLACE.size + len(key) for key, _, _ in entries]
    marks = np.zeros(len(entries) + 2, ">u4")
    marks[0] = len(entries)
    marks[2:] = np.cumsum(sizes)
    return marks.tobytes() + b"".join(_PLACE.pack(offset, size) + key for key, offset, size in entries)


def decode_page(data: memoryview) -> list[Entry]:
    """The entries of a page below the root, their keys as they are stored.

    Raises:
        CorruptFileError: the data is no page.
    """
    if len(data) < 2 * _U32.size:
        raise CorruptFileError("its index is cut off")
    (count,) = _U32.unpack_from(data)
    if count > (len(data) - 2 * _U32.size) // (_U32.size + _PLACE.size):
        raise CorruptFileError(f"its index claims {count} entries in {len(data)} bytes")
    marks = np.frombuffer(data, ">u4", count=count + 1, offset=_U32.size).tolist()
    first = (count + 2) * _U32.size
    if first + marks[-1] != len(data) or marks[0]:
        raise CorruptFileError(f"the {count} entries of its index end after {first + marks[-1]} of {len(data)} bytes")
    entries = []
    for begin, end in pairwise(marks):
        if end - begin < _PLACE.size:
            raise CorruptFileError(f"an entry of its index has {end - begin} bytes")
        offset, size = _PLACE.unpack_from(data, first + begin)
        entries.append(Entry(bytes(data[first + begin + _PLACE.size : first + end]), offset, size))
    return entries


Write = Callable[[bytes, bool], tuple[int, int]]
"""Writes a page (of leaves, or of what is above them); gives its offset and size."""


class IndexWriter:
    """The index of the data blocks: a root, and pages of about `page_bytes` below it where there are more entries."""

    def __init__(self, page_bytes: int, least_entries: int) -> None:
        self._page_bytes = page_bytes
        self._least_entries = least_entries
        self._open: list[Entry] = []
        self._open_bytes = 0
        self._root: list[Entry] = []
        self._leaf_counts: list[int] = []
        self.levels = 1
        self.raw_bytes = 0

    def add(self, entry: Entry, write: Write) -> None:
        """One more data block; a page that is full is written."""
        self._open.append(entry)
        self._open_bytes += _PLACE.size + _U32.size + len(entry.key)
        if self._open_bytes >= self._page_bytes and len(self._open) >= self._least_entries:
            self._write_leaf(write)

    def finish(self, write: Write) -> tuple[bytes, int]:
        """The root's content and the number of its entries."""
        if not self._root:
            self._root, self._open = self._open, []
            return self._encoded(b"")
        if self._open:
            self._write_leaf(write)
        middle = self._middle()
        while self._root_bytes() > self._page_bytes and len(self._root) > self._least_entries:
            self._add_level(write)
        return self._encoded(middle)

    def _encoded(self, middle: bytes) -> tuple[bytes, int]:
        content = encode_root(self._root) + middle
        self.raw_bytes += len(content)
        return content, len(self._root)

    def _root_bytes(self) -> int:
        return sum(_PLACE.size + 2 + len(entry.key) for entry in self._root)

    def _write_leaf(self, write: Write) -> None:
        self._root.append(self._written(self._open, write, True))
        self._leaf_counts.append(len(self._open))
        self._open, self._open_bytes = [], 0
        self.levels = 2

    def _written(self, entries: Sequence[Entry], write: Write, is_leaf: bool) -> Entry:
        content = encode_page(entries)
        self.raw_bytes += len(content)
        return Entry(entries[0].key, *write(content, is_leaf))

    def _add_level(self, write: Write) -> None:
        above: list[Entry] = []
        chunk: list[Entry] = []
        size = 0
        for entry in self._root:
            chunk.append(entry)
            size += _PLACE.size + len(entry.key)
            if size >= self._page_bytes and len(chunk) >= self._least_entries:
                above.append(self._written(chunk, write, False))
                chunk, size = [], 0
        if chunk:
            above.append(self._written(chunk, write, False))
        self._root = above
        self.levels += 1

    def _middle(self) -> bytes:
        """Which entry of which leaf is in the middle: what HBase splits regions by."""
        number = (sum(self._leaf_counts) - 1) // 2
        for leaf, count in zip(self._root, self._leaf_counts):
            if number < count:
                return _MIDDLE.pack(leaf.offset, leaf.size_bytes, number)
            number -= count
        raise AssertionError("the middle is one of the entries")


def tolerant_root(data: memoryview, count: int, *, behind: int) -> list[Entry]:
    """The root of a data index, behind which so many bytes may stand.

    Writers of Apache Hudi before 1.2 had key lengths from 128 on in protobuf's spelling. A root that does not fit by
    Hadoop's is read by that one.

    Raises:
        CorruptFileError: it fits by neither.
    """
    try:
        return _exact(decode_root(data, count), data, behind)
    except CorruptFileError as error:
        if all(byte < 0x80 for byte in data):  # both spellings are the same
            raise
        first = error
    try:
        return _exact(decode_root(data, count, length_at=decode_varint), data, behind)
    except CorruptFileError:
        raise first from None


def _exact(parsed: tuple[list[Entry], int], data: memoryview, behind: int) -> list[Entry]:
    entries, end = parsed
    if len(data) - end not in (0, behind):
        raise CorruptFileError(f"{len(data) - end} bytes follow its {len(entries)} entries")
    for entry in entries:
        row_of(entry.key)
    return entries
