"""Variants -> one JSON text a row, all rows at once, level by level of nesting.

Texts, dates, moments, UUIDs and binaries (base64) are JSON's texts; numbers keep their digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.format.avro_wire import Ints, Mask, from_bytes, offsets_of, windows
from hoodie.format.json_text import json_text
from hoodie.format.variant_bytes import (
    BINARY,
    DECIMALS,
    FLOATS,
    INTEGERS,
    MOMENTS,
    OBJECT,
    SHORT_TEXT,
    TEXT,
    UUID,
    Containers,
    Names,
    VariantBytes,
    damaged,
    gathered,
    numbers,
    within,
)

Array = Any

_CONSTANTS = {0: "null", 1: "true", 2: "false"}
_MAX_DEPTH = 256


def variant_json(column: Array) -> Array:
    """The JSON of each value of an array of variants; null where the row is.

    Raises:
        CorruptFileError: a value is no variant.
    """
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    rows = column if valid.all() else column.filter(pa.array(valid))
    metadata, values = (VariantBytes.of(part) for part in rows.flatten())
    try:
        texts = _Decoder(metadata, values).texts()
    except pa.ArrowInvalid as exc:
        raise damaged(str(exc)) from exc
    if valid.all():
        return texts
    places = np.cumsum(valid) - 1
    return texts.take(pa.array(places, mask=~valid))


class _Decoder:
    def __init__(self, metadata: VariantBytes, values: VariantBytes) -> None:
        self._values = values
        self._names = Names(metadata)
        self._remaining = len(values.data)
        """How many more values there may be: each takes a byte."""

    def texts(self) -> Array:
        starts, ends = self._values.starts, self._values.ends
        return self._nodes(np.arange(len(starts)), starts, ends, 0)

    def _nodes(self, rows: Ints, at: Ints, ends: Ints, depth: int) -> Array:
        """The text of each value."""
        self._remaining -= len(at)
        if depth > _MAX_DEPTH or self._remaining < 0:
            raise damaged("it is nested too deep" if depth > _MAX_DEPTH else "it claims more values than it has bytes")
        if not len(at):
            return pa.array([], pa.string())
        within(at + 1, ends)
        heads = self._values.data[at]
        basic, what = heads & 3, (heads >> 2).astype(np.int64)
        parts: list[Array] = []
        places: list[Ints] = []
        nested = np.flatnonzero(basic >= OBJECT)
        if len(nested):
            children = (basic[nested] == OBJECT, what[nested])
            parts.append(self._containers(rows[nested], at[nested] + 1, ends[nested], *children, depth))
            places.append(nested)
        short = np.flatnonzero(basic == SHORT_TEXT)
        if len(short):
            parts.append(self._strings(at[short] + 1, what[short], ends[short]))
            places.append(short)
        for kind in np.unique(what[basic == 0]).tolist():
            alike = np.flatnonzero((basic == 0) & (what == kind))
            parts.append(self._primitive(kind, at[alike] + 1, ends[alike]))
            places.append(alike)
        order = np.argsort(np.concatenate(places), kind="stable")
        return pa.concat_arrays(parts).take(pa.array(order))

    def _containers(self, rows: Ints, at: Ints, ends: Ints, objects: Mask, what: Ints, depth: int) -> Array:
        """Objects and arrays; `at`: behind their first byte."""
        nested = Containers(self._values.data, at, ends, objects, what)
        above = nested.above
        texts = self._nodes(rows[above], nested.starts, ends[above], depth + 1)
        in_objects = np.flatnonzero(objects[above])
        if len(in_objects):
            names = self._names.texts(rows[above[in_objects]], nested.ids(in_objects))
            places = np.full(len(above), -1)
            places[in_objects] = np.arange(len(in_objects))
            heads = pc.binary_join_element_wise(json_text(names), ":", "")
            heads = pc.fill_null(heads.take(pa.array(places, mask=places < 0)), "")
            texts = pc.binary_join_element_wise(heads, texts, "")
        lists: Any = pa.ListArray.from_arrays(pa.array(offsets_of(nested.counts), pa.int32()), texts)
        is_object = pa.array(objects)
        opening, closing = pc.if_else(is_object, "{", "["), pc.if_else(is_object, "}", "]")
        return pc.binary_join_element_wise(opening, pc.binary_join(lists, ","), closing, "")

    def _primitive(self, kind: int, at: Ints, ends: Ints) -> Array:
        if kind in _CONSTANTS:
            return pa.array([_CONSTANTS[kind]]).take(pa.array(np.zeros(len(at), np.int64)))
        if kind in (BINARY, TEXT):
            lengths = numbers(self._values.data, at, np.full(len(at), 4), ends)
            return self._strings(at + 4, lengths, ends, text=kind == TEXT)
        if kind in DECIMALS:
            return self._decimals(at, DECIMALS[kind], ends)
        if kind in INTEGERS or kind in FLOATS:
            dtype = np.dtype(INTEGERS.get(kind) or FLOATS[kind])
            return json_text(pa.array(self._fixed(at, dtype.itemsize, ends).view(dtype)[:, 0]))
        if kind in MOMENTS:
            name, arrow = MOMENTS[kind]
            moments = pa.array(self._fixed(at, np.dtype(name).itemsize, ends).view(name)[:, 0])
            return json_text(moments.cast(arrow).cast(pa.string()))
        if kind == UUID:
            digits = self._fixed(at, 16, ends).tobytes().hex()
            texts = from_bytes(pa.binary(32), len(at), np.frombuffer(digits.encode(), np.uint8))
            texts = texts.cast(pa.binary()).cast(pa.string())
            parts = [pc.utf8_slice_codeunits(texts, *cut) for cut in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))]
            return json_text(pc.binary_join_element_wise(*parts, "-"))
        raise damaged(f"it has a value of the unknown type {kind}")

    def _fixed(self, at: Ints, width: int, ends: Ints) -> npt.NDArray[np.uint8]:
        within(at + width, ends)
        return np.ascontiguousarray(windows(self._values.data, at, width))

    def _strings(self, at: Ints, lengths: Ints, ends: Ints, *, text: bool = True) -> Array:
        within(at + lengths, ends)
        strings = gathered(self._values.data, at, lengths)
        return json_text(strings.cast(pa.string()) if text else strings)

    def _decimals(self, at: Ints, width: int, ends: Ints) -> Array:
        scales = self._fixed(at, 1, ends)[:, 0]
        digits = self._fixed(at + 1, width, ends)
        if scales.max() > 38:
            raise damaged("it has a decimal of more than 38 digits")
        sign = np.where(digits[:, -1:] >= 0x80, np.uint8(0xFF), np.uint8(0))
        whole = np.hstack([digits, np.repeat(sign, 16 - width, axis=1)])
        texts, places = [], []
        for scale in np.unique(scales).tolist():
            alike = np.flatnonzero(scales == scale)
            numbers = from_bytes(pa.decimal128(38, scale), len(alike), np.ascontiguousarray(whole[alike]).reshape(-1))
            texts.append(numbers.cast(pa.string()))
            places.append(alike)
        return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate(places), kind="stable")))
