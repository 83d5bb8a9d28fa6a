"""Cells as HBase stores them, and blocks of them in numpy and Arrow.

A cell: key length i32 | value length i32 | key | value | tags, if the file has them: length u16, bytes | the version in
memory as Hadoop's number, if the file has them; a zero byte otherwise. A key: row length u16 | row | family length u8 |
family | qualifier | timestamp i64 | type u8. What callers see as the key is the row. Apache Hudi leaves family and
qualifier empty, has the greatest timestamp, and the type "put".
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.avro_wire import from_bytes, join, offsets_in
from hoodie.hfile.wire import hadoop_int_size

_Ints = npt.NDArray[np.int64]
_LENGTHS = struct.Struct(">II")
_HEAD = struct.Struct(">IIH")
"""Lengths of key, value and row."""
_PUT = 4
LATEST = (1 << 63) - 1
"""The timestamp that stands for "whatever is newest"."""
MOST_KEY_BYTES = (1 << 15) - 1
MOST_VALUE_BYTES = 1 << 30
BESIDE_BYTES = 8 + 2 + 1 + 8 + 1 + 1
"""What a cell takes beside its row, family, qualifier and value: lengths, timestamp, type, version."""
_KEY_BESIDE = 2 + 1 + 8 + 1
_MOST_PLACES = 16
"""A row that stands in more places is short, and says little by its bytes."""


@dataclass(frozen=True)
class Column:
    """What all cells of a written file have in common."""

    family: bytes = b""
    qualifier: bytes = b""
    timestamp: int = LATEST

    @cached_property
    def suffix(self) -> bytes:
        """What follows the row in a key."""
        return bytes([len(self.family)]) + self.family + self.qualifier + struct.pack(">qB", self.timestamp, _PUT)


@dataclass(frozen=True)
class Cells:
    """How the cells of a file end."""

    has_versions: bool = True
    versions_are_zero: bool = True
    has_tags: bool = False
    keys_are_rows: bool = False
    """Nothing follows the row in a key: files by Apache Hudi's own writer before 1.2 (public table hudi-v9-table-mor)."""


def encode_key(row: bytes, column: Column) -> bytes:
    """A whole key, as indexes have it."""
    return len(row).to_bytes(2, "big") + row + column.suffix


def row_of(key: bytes | memoryview) -> bytes:
    """The row in a key of an index; Apache Hudi writes nothing behind it there.

    Raises:
        CorruptFileError: it is no key.
    """
    size = int.from_bytes(key[:2], "big")
    if len(key) < 2 or size > len(key) - 2:
        raise CorruptFileError(f"the row of a key takes {size} bytes, the key has {len(key)}")
    return bytes(key[2 : 2 + size])


def encode_cells(keys: pa.Array[Any], values: pa.Array[Any], column: Column) -> tuple[_Ints, memoryview]:
    """The cells of these `large_binary` arrays behind one another: where each begins, where the last ends; the bytes."""
    suffix = column.suffix
    count = len(keys)
    key_sizes = np.diff(offsets_in(keys))
    heads = np.zeros(count, np.dtype([("key", ">u4"), ("value", ">u4"), ("row", ">u2")]))
    heads["key"] = key_sizes + (2 + len(suffix))
    heads["value"] = np.diff(offsets_in(values))
    heads["row"] = key_sizes
    width = heads.dtype.itemsize
    starts = np.arange(0, (count + 1) * width, width, dtype=np.int64)
    before = from_bytes(pa.large_binary(), count, starts, heads.view(np.uint8))
    between, after = (pa.scalar(part, pa.large_binary()) for part in (suffix, b"\0"))
    cells = join([before, keys, between, values, after])
    offsets = offsets_in(cells)
    return offsets, memoryview(cells.buffers()[2] or b"")


@dataclass(frozen=True, eq=False)
class CellBlock:
    """The cells of a buffer, by the places of their rows and values in it."""

    data: memoryview
    row_starts: _Ints
    row_ends: _Ints
    value_starts: _Ints
    value_ends: _Ints

    def __len__(self) -> int:
        return len(self.row_starts)

    @cached_property
    def _rows(self) -> tuple[list[int], list[int]]:
        return self.row_starts.tolist(), self.row_ends.tolist()

    def row(self, number: int) -> bytes:
        starts, ends = self._rows
        return bytes(self.data[starts[number] : ends[number]])

    def value(self, number: int) -> bytes:
        return bytes(self.data[self.value_starts[number] : self.value_ends[number]])

    def place(self, row: bytes) -> int:
        """The number of the first cell whose row is not smaller."""
        data = self.data
        starts, ends = self._rows
        return bisect_left(range(len(starts)), row, key=lambda at: bytes(data[starts[at] : ends[at]]))

    def find(self, row: bytes) -> bytes | None:
        """The value of the row, None where there is none."""
        number = self.place(row)
        return self.value(number) if number < len(self) and self.row(number) == row else None

    @property
    def size_bytes(self) -> int:
        """In memory; places are kept as numpy's and, once looked into, as Python's integers."""
        return len(self.data) + len(self) * (4 * 8 + 2 * 40)

    def rows(self, start: int = 0, stop: int | None = None) -> Any:
        """The rows of these cells as an array."""
        return picked(self.data, self.row_starts[start:stop], self.row_ends[start:stop])

    def values(self, start: int = 0, stop: int | None = None) -> Any:
        """The values of these cells as an array."""
        return picked(self.data, self.value_starts[start:stop], self.value_ends[start:stop])


def picked(data: memoryview, starts: _Ints, ends: _Ints) -> Any:
    """The byte strings `data[starts[i]:ends[i]]`, of which none begins before the one in front of it has ended.

    They and the gaps between them are seen as one array without a copy; to take every second one lets Arrow do the copying.
    """
    count = len(starts)
    if not count:
        return pa.nulls(0, pa.large_binary())
    offsets = np.empty(2 * count, np.int64)
    offsets[0::2] = starts
    offsets[1::2] = ends
    every = from_bytes(pa.large_binary(), 2 * count - 1, offsets, data)
    return every.take(pa.array(np.arange(0, 2 * count, 2)))


def decode_cells(data: memoryview, cells: Cells, spans: Sequence[tuple[int, int]]) -> CellBlock:
    """The cells that fill each of these spans of the data, one behind the other; their places count from its beginning.

    Raises:
        CorruptFileError: they do not fill them. UnsupportedTableError: one of them is not a put.
    """
    alike = [_alike(data, cells, start, end) for start, end in spans]
    placed = [each for each in alike if each is not None]
    if len(placed) == len(spans) > 0:
        return CellBlock(data, *(placed[0] if len(placed) == 1 else map(np.concatenate, zip(*placed))))
    starts_of = [_walked(data, cells, start, end) for start, end in spans]
    # A cell ends where the next one begins, and the last one of a span where that does.
    ends = [np.append(starts[1:], end) if len(starts) else starts for starts, (_, end) in zip(starts_of, spans)]
    return _placed(data, cells, np.concatenate(starts_of), np.concatenate(ends))


def _alike(data: memoryview, cells: Cells, start: int, stop: int) -> tuple[_Ints, _Ints, _Ints, _Ints] | None:
    """The places of cells whose keys, rows and values are all as long as those of the first one; None where they are not, or
    where anything is wrong with one.
    """
    is_plain = not (cells.has_tags or cells.keys_are_rows or (cells.has_versions and not cells.versions_are_zero))
    if stop - start < _HEAD.size or not is_plain:
        return None
    key, value, row = _HEAD.unpack_from(data, start)
    room = key - _KEY_BESIDE - row
    size = _LENGTHS.size + key + value + cells.has_versions
    count, rest = divmod(stop - start, size)
    if room < 0 or rest:
        return None
    table = np.frombuffer(data, np.uint8, count * size, start).reshape(count, size)
    heads = table[:, : _HEAD.size]
    is_sound = (
        (heads == heads[0]).all()
        and (table[:, _HEAD.size + row] <= room).all()  # lengths of families
        and (table[:, _LENGTHS.size + key - 1] == _PUT).all()
        and not (cells.has_versions and table[:, -1].any())
    )
    if not is_sound:
        return None
    rows: _Ints = np.arange(start + _HEAD.size, stop, size)
    values = rows + (key - (_HEAD.size - _LENGTHS.size))
    return rows, rows + row, values, values + value


def cells_with(data: memoryview, cells: Cells, rows: Sequence[bytes]) -> CellBlock | None:
    """The cells that have one of these few rows, of those that fill the data; None where there are none.

    The bytes of rows are searched, so that cells of other rows are at most passed over, and not checked.

    Raises:
        CorruptFileError, UnsupportedTableError: as `decode_cells`, of what is looked at.
    """
    text = bytes(data)
    places = {place for row in rows for place in _places_of(row, text)}
    if not places:
        return None
    if len(places) <= _MOST_PLACES:
        begins = _walked(data, cells, 0, len(data), until=max(places)).tolist()
        spans = [span for span in pairwise(begins) if span[0] + _HEAD.size in places]
        if len(spans) == len(places):
            return decode_cells(data, cells, spans)
    # Elsewhere than at the beginning of a cell: in a value, or because the cells before it are damaged.
    return decode_cells(data, cells, [(0, len(data))])


def _places_of(row: bytes, text: bytes) -> Iterator[int]:
    place = text.find(row)
    for _ in range(_MOST_PLACES + 1):
        if place < 0:
            return
        yield place
        place = text.find(row, place + 1)


def _walked(data: memoryview, cells: Cells, start: int, stop: int, *, until: int | None = None) -> _Ints:
    """Where cells begin, one after the other: each says where the next one is, so numpy has nothing to do here.

    `until`: no further than to the cell at that place, and the end of that one is the last number.
    """
    last = stop if until is None else until
    starts: list[int] = []
    unpack, beside = _LENGTHS.unpack_from, _LENGTHS.size + (1 if cells.has_versions else 0)
    plain = not cells.has_tags and (cells.versions_are_zero or not cells.has_versions)
    try:
        while start < last:
            starts.append(start)
            key, value = unpack(data, start)
            start += key + value + beside
            if not plain:
                end = start - (1 if cells.has_versions else 0)
                if cells.has_tags:
                    end += 2 + int.from_bytes(data[end : end + 2], "big")
                start = end + (hadoop_int_size(data[end]) if cells.has_versions else 0)
    except (struct.error, IndexError):
        start = stop + 1
    if until is not None and start <= stop:
        return np.array([*starts, start], np.int64)
    if start != stop:
        raise CorruptFileError(f"the {len(starts)} cells in it do not end where it does")
    return np.array(starts, np.int64)


def _placed(data: memoryview, cells: Cells, starts: _Ints, ends: _Ints) -> CellBlock:
    if not len(starts):
        return CellBlock(data, starts, starts, starts, starts)
    buffer = np.frombuffer(data, np.uint8)
    # Lengths are below 2**32 here, and their sums fit the block, so nothing overflows below.
    numbers = _windows(buffer, starts, _LENGTHS.size).view(">u4").astype(np.int64)
    key_starts = starts + _LENGTHS.size
    key_ends = key_starts + numbers[:, 0]
    value_ends = key_ends + numbers[:, 1]
    beside = 2 if cells.keys_are_rows else _KEY_BESIDE
    wrong = (numbers[:, 0] < beside) | (value_ends > ends)
    if wrong.any():
        raise CorruptFileError(f"a cell in it has a key of {int(numbers[np.argmax(wrong), 0])} bytes")
    row_sizes = _windows(buffer, key_starts, 2).view(">u2")[:, 0].astype(np.int64)
    row_ends = key_starts + 2 + row_sizes
    room = numbers[:, 0] - beside - row_sizes
    if (room < 0).any():
        raise CorruptFileError(f"the row of a cell in it takes {int(row_sizes[np.argmax(room < 0)])} bytes")
    if not cells.keys_are_rows:
        _require_puts(buffer, row_ends, key_ends, room)
    if cells.has_versions and cells.versions_are_zero and buffer[ends - 1].any():
        raise CorruptFileError("a cell in it has a version, though the file says that none has")
    return CellBlock(data, key_starts + 2, row_ends, key_ends, value_ends)


def _require_puts(buffer: npt.NDArray[np.uint8], row_ends: _Ints, key_ends: _Ints, room: _Ints) -> None:
    if (buffer[row_ends].astype(np.int64) > room).any():
        raise CorruptFileError("the family of a cell in it is longer than its key")
    kinds = buffer[key_ends - 1]
    if (kinds != _PUT).any():
        kind = int(kinds[np.argmax(kinds != _PUT)])
        raise UnsupportedTableError(f"the HFile has a cell of type {kind}; only puts (type {_PUT}) are read")


def _windows(buffer: npt.NDArray[np.uint8], positions: _Ints, width: int) -> npt.NDArray[np.uint8]:
    return np.lib.stride_tricks.sliding_window_view(buffer, width)[positions]
