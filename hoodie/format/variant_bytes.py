"""What Parquet's Variant encoding (VariantEncoding.md) says of bytes, for many values at once.

A value is a node: where it begins, where its row ends, and its row, whose metadata have the names of fields. Whatever stands in
the bytes is checked before it is followed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.avro_wire import Ints, Mask, from_bytes, offsets_of, padded, windows

Array = Any

SHORT_TEXT, OBJECT, ARRAY = 1, 2, 3
"""Kinds of values besides primitive ones, which are 0."""
INTEGERS = {3: "<i1", 4: "<i2", 5: "<i4", 6: "<i8"}
FLOATS = {7: "<f8", 14: "<f4"}
DECIMALS = {8: 4, 9: 8, 10: 16}
"""Bytes behind the one of the scale."""
MOMENTS = {
    11: ("<i4", pa.date32()),
    12: ("<i8", pa.timestamp("us", "UTC")),
    13: ("<i8", pa.timestamp("us")),
    17: ("<i8", pa.time64("us")),
    18: ("<i8", pa.timestamp("ns", "UTC")),
    19: ("<i8", pa.timestamp("ns")),
}
BINARY, TEXT, UUID = 15, 16, 20
_SHORT_OFFSETS = pa.binary()
_MAX_NAME_BYTES = 1 << 30
"""Of one level: what names of fields take written out."""


class VariantBytes(NamedTuple):
    data: npt.NDArray[np.uint8]
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, column: Array) -> VariantBytes:
        """Of an array of byte strings with long offsets."""
        if column.null_count:
            raise damaged("it has no value")
        offsets = np.frombuffer(column.buffers()[1] or bytes(8), np.int64)[column.offset :][: len(column) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        content = memoryview(column.buffers()[2] or b"")[first:last]
        return cls(padded(content), offsets[:-1] - first, offsets[1:] - first)


class Containers:
    """Objects and arrays, each with its elements."""

    def __init__(
        self, data: npt.NDArray[np.uint8], at: Ints, ends: Ints, objects: npt.NDArray[np.bool_], what: Ints
    ) -> None:
        """`at`: behind their first byte, of which `what` is all but the kind."""
        self._data = data
        offset_width = (what & 3) + 1
        id_width = np.where(objects, ((what >> 2) & 3) + 1, 0)
        count_width = np.where(np.where(objects, what >> 4, what >> 2) & 1, 4, 1)
        self.counts = numbers(data, at, count_width, ends)
        ids_at = at + count_width
        offsets_at = ids_at + self.counts * id_width
        first = offsets_at + (self.counts + 1) * offset_width
        within(first, ends)
        self.ends = first + numbers(data, offsets_at + self.counts * offset_width, offset_width, ends)
        """Behind their last byte."""
        self.above = np.repeat(np.arange(len(at)), self.counts)
        """Which of the containers each element is in."""
        places = np.arange(len(self.above)) - np.repeat(offsets_of(self.counts)[:-1], self.counts)
        width = offset_width[self.above]
        self._row_ends = ends[self.above]
        self.starts = first[self.above] + numbers(data, offsets_at[self.above] + places * width, width, self._row_ends)
        """Of the elements."""
        self._id_width = id_width[self.above]
        self._ids_at = ids_at[self.above] + places * self._id_width

    def ids(self, elements: Ints) -> Ints:
        """The numbers of the names of these elements, which objects have."""
        return numbers(self._data, self._ids_at[elements], self._id_width[elements], self._row_ends[elements])


class Names:
    """The names of fields, which metadata have."""

    def __init__(self, metadata: VariantBytes) -> None:
        self._bytes = metadata
        data, at, ends = metadata
        within(at + 1, ends)
        heads = data[at]
        if len(heads) and (heads & 0xF != 1).any():
            raise damaged("its metadata are of an unknown version")
        self._width = (heads >> 6).astype(np.int64) + 1
        self.counts = numbers(data, at + 1, self._width, ends)
        self._offsets_at = at + 1 + self._width
        self._first = self._offsets_at + (self.counts + 1) * self._width
        within(self._first, ends)

    def texts(self, rows: Ints, ids: Ints) -> Array:
        if (ids >= self.counts[rows]).any():
            raise damaged("it has a field without a name")
        data, _, ends = self._bytes
        width = self._width[rows]
        begin, end = (numbers(data, self._offsets_at[rows] + (ids + k) * width, width, ends[rows]) for k in (0, 1))
        within(self._first[rows] + end, ends[rows])
        if (end < begin).any() or int((end - begin).sum()) > _MAX_NAME_BYTES:
            raise damaged("its metadata have a name of a wrong length")
        return gathered(data, self._first[rows] + begin, end - begin).cast(pa.string())


def ends_of(data: npt.NDArray[np.uint8], at: Ints, row_ends: Ints) -> Ints:
    """Behind the last byte of the value at each place."""
    within(at + 1, row_ends)
    heads = data[at]
    basic, what = heads & 3, (heads >> 2).astype(np.int64)
    sizes = np.select([basic == 0, basic == SHORT_TEXT], [_SIZES[what], what])
    if (sizes < 0).any():
        raise damaged("it has a value of an unknown type")
    result = at + 1 + sizes
    for kind in (BINARY, TEXT):
        alike = np.flatnonzero((basic == 0) & (what == kind))
        result[alike] += numbers(data, at[alike] + 1, np.full(len(alike), 4), row_ends[alike])
    nested = np.flatnonzero(basic >= OBJECT)
    objects: Mask = basic[nested] == OBJECT
    result[nested] = Containers(data, at[nested] + 1, row_ends[nested], objects, what[nested]).ends
    within(result, row_ends)
    return result


def _sizes() -> Ints:
    """Bytes of primitive values behind the first, less those of a length that stands there; -1 for unknown types."""
    sizes = np.full(64, -1)
    sizes[:3] = 0
    fixed: list[tuple[int, int]] = [(kind, np.dtype(name).itemsize) for kind, name in (INTEGERS | FLOATS).items()]
    fixed += [(kind, 1 + width) for kind, width in DECIMALS.items()]
    fixed += [(kind, np.dtype(name).itemsize) for kind, (name, _) in MOMENTS.items()]
    for kind, size in [*fixed, (BINARY, 4), (TEXT, 4), (UUID, 16)]:
        sizes[kind] = size
    return sizes


_SIZES = _sizes()


def numbers(data: npt.NDArray[np.uint8], at: Ints, widths: Ints, ends: Ints) -> Ints:
    """Unsigned numbers of 1 to 4 bytes each, little-endian."""
    within(at + widths, ends)
    four = np.ascontiguousarray(windows(data, at, 4)).view("<u4")[:, 0].astype(np.int64)
    return four & ((1 << (8 * widths)) - 1)


def gathered(data: npt.NDArray[np.uint8], starts: Ints, lengths: Ints, kind: Any = _SHORT_OFFSETS) -> Array:
    """The byte strings, wherever they stand."""
    offsets = offsets_of(lengths)
    index = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    dtype = np.int64 if pa.types.is_large_binary(kind) else np.int32
    return from_bytes(kind, len(starts), offsets.astype(dtype), data[index])


def within(at: Ints, ends: Ints) -> None:
    if (at > ends).any():
        raise damaged("it ends early")


def damaged(why: str) -> CorruptFileError:
    return CorruptFileError(f"a VARIANT is damaged: {why}; write its row again, or restore the table")
