"""Variants -> one JSON text a row, all rows at once, level by level of nesting.

The encoding is that of Parquet (VariantEncoding.md). A value is a node: where it begins, where its row ends, and its row, whose
metadata have the names of fields. Texts, dates, moments, UUIDs and binaries (base64) are JSON's texts; numbers keep their digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError
from hoodie.format.avro_wire import Ints, from_bytes, offsets_of, padded, windows
from hoodie.format.json_text import json_text

Array = Any

_SHORT_TEXT, _OBJECT, _ARRAY = 1, 2, 3
"""Kinds of values besides primitive ones, which are 0."""
_INTEGERS = {3: "<i1", 4: "<i2", 5: "<i4", 6: "<i8"}
_FLOATS = {7: "<f8", 14: "<f4"}
_DECIMALS = {8: 4, 9: 8, 10: 16}
"""Bytes behind the one of the scale."""
_MOMENTS = {
    11: ("<i4", pa.date32()),
    12: ("<i8", pa.timestamp("us", "UTC")),
    13: ("<i8", pa.timestamp("us")),
    17: ("<i8", pa.time64("us")),
    18: ("<i8", pa.timestamp("ns", "UTC")),
    19: ("<i8", pa.timestamp("ns")),
}
_CONSTANTS = {0: "null", 1: "true", 2: "false"}
_BINARY, _TEXT, _UUID = 15, 16, 20
_MAX_DEPTH = 256
_MAX_NAME_BYTES = 1 << 30
"""Of one level: what names of fields take written out."""


def variant_json(column: Array) -> Array:
    """The JSON of each value of an array of variants; null where the row is.

    Raises:
        CorruptFileError: a value is no variant.
    """
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    rows = column if valid.all() else column.filter(pa.array(valid))
    metadata, values = (_Bytes.of(part) for part in rows.flatten())
    try:
        texts = _Decoder(metadata, values).texts()
    except pa.ArrowInvalid as exc:
        raise _damaged(str(exc)) from exc
    if valid.all():
        return texts
    places = np.cumsum(valid) - 1
    return texts.take(pa.array(places, mask=~valid))


class _Bytes(NamedTuple):
    data: npt.NDArray[np.uint8]
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, column: Array) -> _Bytes:
        if column.null_count:
            raise _damaged("it has no value")
        offsets = np.frombuffer(column.buffers()[1] or bytes(8), np.int64)[column.offset :][: len(column) + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        content = memoryview(column.buffers()[2] or b"")[first:last]
        return cls(padded(content), offsets[:-1] - first, offsets[1:] - first)


class _Decoder:
    def __init__(self, metadata: _Bytes, values: _Bytes) -> None:
        self._values = values
        self._names = _Names(metadata)
        self._left = len(values.data)
        """How many more values there may be: each takes a byte."""

    def texts(self) -> Array:
        starts, ends = self._values.starts, self._values.ends
        return self._nodes(np.arange(len(starts)), starts, ends, 0)

    def _nodes(self, rows: Ints, at: Ints, ends: Ints, depth: int) -> Array:
        """The text of each value."""
        self._left -= len(at)
        if depth > _MAX_DEPTH or self._left < 0:
            raise _damaged("it is nested too deep" if depth > _MAX_DEPTH else "it claims more values than it has bytes")
        if not len(at):
            return pa.array([], pa.string())
        _within(at + 1, ends)
        heads = self._values.data[at]
        basic, what = heads & 3, (heads >> 2).astype(np.int64)
        found: list[Array] = []
        places: list[Ints] = []
        nested = np.flatnonzero(basic >= _OBJECT)
        if len(nested):
            children = (basic[nested] == _OBJECT, what[nested])
            found.append(self._containers(rows[nested], at[nested] + 1, ends[nested], *children, depth))
            places.append(nested)
        short = np.flatnonzero(basic == _SHORT_TEXT)
        if len(short):
            found.append(self._strings(at[short] + 1, what[short], ends[short]))
            places.append(short)
        for kind in np.unique(what[basic == 0]).tolist():
            alike = np.flatnonzero((basic == 0) & (what == kind))
            found.append(self._primitive(kind, at[alike] + 1, ends[alike]))
            places.append(alike)
        order = np.argsort(np.concatenate(places), kind="stable")
        return pa.concat_arrays(found).take(pa.array(order))

    def _containers(
        self, rows: Ints, at: Ints, ends: Ints, objects: npt.NDArray[np.bool_], what: Ints, depth: int
    ) -> Array:
        """Objects and arrays; `at`: behind their first byte."""
        offset_width = (what & 3) + 1
        id_width = np.where(objects, ((what >> 2) & 3) + 1, 0)
        count_width = np.where(np.where(objects, what >> 4, what >> 2) & 1, 4, 1)
        counts = _numbers(self._values.data, at, count_width, ends)
        ids_at = at + count_width
        offsets_at = ids_at + counts * id_width
        first = offsets_at + (counts + 1) * offset_width
        _within(first, ends)
        above = np.repeat(np.arange(len(rows)), counts)
        numbers = np.arange(len(above)) - np.repeat(offsets_of(counts)[:-1], counts)
        width = offset_width[above]
        inner = first[above] + _numbers(self._values.data, offsets_at[above] + numbers * width, width, ends[above])
        texts = self._nodes(rows[above], inner, ends[above], depth + 1)
        named = np.flatnonzero(objects[above])
        if len(named):
            at_id = ids_at[above[named]] + numbers[named] * id_width[above[named]]
            ids = _numbers(self._values.data, at_id, id_width[above[named]], ends[above[named]])
            names = self._names.texts(rows[above[named]], ids)
            places = np.full(len(above), -1)
            places[named] = np.arange(len(named))
            heads = pc.binary_join_element_wise(json_text(names), ":", "")
            heads = pc.fill_null(heads.take(pa.array(places, mask=places < 0)), "")
            texts = pc.binary_join_element_wise(heads, texts, "")
        lists: Any = pa.ListArray.from_arrays(pa.array(offsets_of(counts), pa.int32()), texts)
        is_object = pa.array(objects)
        opening, closing = pc.if_else(is_object, "{", "["), pc.if_else(is_object, "}", "]")
        return pc.binary_join_element_wise(opening, pc.binary_join(lists, ","), closing, "")

    def _primitive(self, kind: int, at: Ints, ends: Ints) -> Array:
        if kind in _CONSTANTS:
            return pa.array([_CONSTANTS[kind]]).take(pa.array(np.zeros(len(at), np.int64)))
        if kind in (_BINARY, _TEXT):
            lengths = _numbers(self._values.data, at, np.full(len(at), 4), ends)
            return self._strings(at + 4, lengths, ends, text=kind == _TEXT)
        if kind in _DECIMALS:
            return self._decimals(at, _DECIMALS[kind], ends)
        if kind in _INTEGERS or kind in _FLOATS:
            dtype = np.dtype(_INTEGERS.get(kind) or _FLOATS[kind])
            return json_text(pa.array(self._fixed(at, dtype.itemsize, ends).view(dtype)[:, 0]))
        if kind in _MOMENTS:
            name, arrow = _MOMENTS[kind]
            numbers = pa.array(self._fixed(at, np.dtype(name).itemsize, ends).view(name)[:, 0])
            return json_text(numbers.cast(arrow).cast(pa.string()))
        if kind == _UUID:
            digits = self._fixed(at, 16, ends).tobytes().hex()
            texts = from_bytes(pa.binary(32), len(at), np.frombuffer(digits.encode(), np.uint8))
            texts = texts.cast(pa.binary()).cast(pa.string())
            parts = [pc.utf8_slice_codeunits(texts, *cut) for cut in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))]
            return json_text(pc.binary_join_element_wise(*parts, "-"))
        raise _damaged(f"it has a value of the unknown type {kind}")

    def _fixed(self, at: Ints, width: int, ends: Ints) -> npt.NDArray[np.uint8]:
        _within(at + width, ends)
        return np.ascontiguousarray(windows(self._values.data, at, width))

    def _strings(self, at: Ints, lengths: Ints, ends: Ints, *, text: bool = True) -> Array:
        _within(at + lengths, ends)
        found = _gathered(self._values.data, at, lengths)
        return json_text(found.cast(pa.string()) if text else found)

    def _decimals(self, at: Ints, width: int, ends: Ints) -> Array:
        scales = self._fixed(at, 1, ends)[:, 0]
        digits = self._fixed(at + 1, width, ends)
        if scales.max() > 38:
            raise _damaged("it has a decimal of more than 38 digits")
        sign = np.where(digits[:, -1:] >= 0x80, np.uint8(0xFF), np.uint8(0))
        whole = np.hstack([digits, np.repeat(sign, 16 - width, axis=1)])
        found, places = [], []
        for scale in np.unique(scales).tolist():
            alike = np.flatnonzero(scales == scale)
            numbers = from_bytes(pa.decimal128(38, scale), len(alike), np.ascontiguousarray(whole[alike]).reshape(-1))
            found.append(numbers.cast(pa.string()))
            places.append(alike)
        return pa.concat_arrays(found).take(pa.array(np.argsort(np.concatenate(places), kind="stable")))


class _Names:
    """The names of fields, which metadata have."""

    def __init__(self, metadata: _Bytes) -> None:
        self._bytes = metadata
        data, at, ends = metadata
        _within(at + 1, ends)
        heads = data[at]
        if len(heads) and (heads & 0xF != 1).any():
            raise _damaged("its metadata are of an unknown version")
        self._width = (heads >> 6).astype(np.int64) + 1
        self._counts = _numbers(data, at + 1, self._width, ends)
        self._offsets_at = at + 1 + self._width
        self._first = self._offsets_at + (self._counts + 1) * self._width
        _within(self._first, ends)

    def texts(self, rows: Ints, ids: Ints) -> Array:
        if (ids >= self._counts[rows]).any():
            raise _damaged("it has a field without a name")
        data, _, ends = self._bytes
        width = self._width[rows]
        begin, end = (_numbers(data, self._offsets_at[rows] + (ids + k) * width, width, ends[rows]) for k in (0, 1))
        _within(self._first[rows] + end, ends[rows])
        if (end < begin).any() or int((end - begin).sum()) > _MAX_NAME_BYTES:
            raise _damaged("its metadata have a name of a wrong length")
        return _gathered(data, self._first[rows] + begin, end - begin).cast(pa.string())


def _numbers(data: npt.NDArray[np.uint8], at: Ints, widths: Ints, ends: Ints) -> Ints:
    """Unsigned numbers of 1 to 4 bytes each, little-endian."""
    _within(at + widths, ends)
    four = np.ascontiguousarray(windows(data, at, 4)).view("<u4")[:, 0].astype(np.int64)
    return four & ((1 << (8 * widths)) - 1)


def _gathered(data: npt.NDArray[np.uint8], starts: Ints, lengths: Ints) -> Array:
    """The byte strings, wherever they stand."""
    offsets = offsets_of(lengths)
    index = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
    return from_bytes(pa.binary(), len(starts), offsets.astype(np.int32), data[index])


def _within(at: Ints, ends: Ints) -> None:
    if (at > ends).any():
        raise _damaged("it ends early")


def _damaged(why: str) -> CorruptFileError:
    return CorruptFileError(f"a VARIANT is damaged: {why}; write its row again, or restore the table")
