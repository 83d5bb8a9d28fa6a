"""Positions: which row of its base file each record of a log block is about, as block headers state it from version 8 on.

The n-th record of a block is about the row of the n-th smallest number in the header. Apache Hudi's readers find rows by that if
the header names the base file that they read (integration/test_positions_with_hudi.py); all others go by keys.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from hoodie.filegroup.picks import rows_at
from hoodie.format.roaring import encode_positions
from hoodie.model.enums import HeaderKey
from hoodie.model.files import FileSlice
from hoodie.model.instant import InstantTime
from hoodie.model.plans import PLACE, WriteContext


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
