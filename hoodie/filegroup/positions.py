"""Positions: which row of its base file each record of a log block is about, as block headers state it from version 8 on.

The n-th record of a block is about the row of the n-th smallest number in the header. Apache Hudi's readers find rows by that if
the header names the base file that they read (integration/test_positions_with_hudi.py); all others go by keys.

The numbers are a roaring bitmap of 64 bits in its portable form, as Base64.
Layout (little-endian): number of maps i64 = 1 | high half of the numbers i32 = 0 | a roaring bitmap of 32 bits: cookie i32 = 12346,
number of containers i32, of each its key u16 and its count less one u16, of each its offset u32, the containers. A container has
the numbers that share their upper 16 bits, which are its key: the lower ones in ascending order as u16, or, where there are more
than 4,096, a bit for each of them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from hoodie.filegroup.picks import rows_at
from hoodie.model.enums import HeaderKey
from hoodie.model.files import FileSlice
from hoodie.model.instant import InstantTime
from hoodie.model.plans import PLACE, WriteContext

_COOKIE = 12346
_MOST_IN_ARRAY = 4096
_CONTAINER = 1 << 16


def encode_positions(positions: np.ndarray) -> str:
    """The text of these row numbers, which ascend strictly and fit into 32 bits."""
    keys, starts, counts = np.unique(positions >> 16, return_index=True, return_counts=True)
    low = (positions & (_CONTAINER - 1)).astype("<u2")
    containers = [_container(low[start : start + count]) for start, count in zip(starts, counts, strict=True)]
    sizes = np.array([len(each) for each in containers], dtype=np.int64)
    heads = np.stack([keys, counts - 1], axis=1).astype("<u2").tobytes()
    first = 8 + len(heads) + 4 * len(containers)
    offsets = (first + np.cumsum(sizes) - sizes).astype("<u4").tobytes()
    numbers = np.array([1, 0], dtype="<i8").tobytes()[:12] + np.array([_COOKIE, len(containers)], dtype="<i4").tobytes()
    return base64.b64encode(b"".join((numbers, heads, offsets, *containers))).decode()


def _container(low: np.ndarray) -> bytes:
    if len(low) <= _MOST_IN_ARRAY:
        return low.tobytes()
    bits = np.zeros(_CONTAINER, dtype=np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def by_place(rows: pa.Table, context: WriteContext, groups: np.ndarray | None = None) -> pa.Table:
    """The rows in the order of their places, inside of their groups where these are given, which ascend."""
    if not context.positions or PLACE not in rows.column_names:
        return rows
    places = _places(rows) if groups is None else _places(rows) + (groups.astype(np.int64) << 32)
    return rows if (np.diff(places) >= 0).all() else rows_at(rows, np.argsort(places, kind="stable"))


class Positions:
    """What the headers of one log file say; nothing where not all places are known, or some are equal."""

    def __init__(self, base_instant: InstantTime, data: np.ndarray | None, deletes: np.ndarray | None) -> None:
        self._base_instant, self._data, self._deletes = base_instant, data, deletes

    @classmethod
    def of(cls, context: WriteContext, file_slice: FileSlice, data: pa.Table, deletes: pa.Table) -> Positions | None:
        """Of rows in the order of `by_place`; None: they state none."""
        if not context.positions or file_slice.base is None:
            return None
        return cls(file_slice.base.instant, _rising_places(data), _rising_places(deletes))

    def of_data(self, start: int, rows: int) -> Mapping[HeaderKey, str]:
        """Of the block with so many of the data rows from `start` on."""
        return self._header(None if self._data is None else self._data[start : start + rows])

    def of_deletes(self) -> Mapping[HeaderKey, str]:
        return self._header(self._deletes)

    def _header(self, positions: np.ndarray | None) -> Mapping[HeaderKey, str]:
        if positions is None:
            return {}
        return {
            HeaderKey.RECORD_POSITIONS: encode_positions(positions),
            HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: self._base_instant,
        }


def _rising_places(rows: pa.Table) -> np.ndarray | None:
    if not rows.num_rows or PLACE not in rows.column_names:
        return None
    places = _places(rows)
    return places if places[0] >= 0 and (np.diff(places) > 0).all() else None


def _places(rows: pa.Table) -> np.ndarray:
    places: np.ndarray = rows.column(PLACE).to_numpy().astype(np.int64)
    return places
