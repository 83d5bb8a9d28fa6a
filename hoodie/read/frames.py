"""Rows as frames of pandas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pandas as pd

_EXACT = 2**53
"""Beyond it a double does not have every whole number."""


def pandas_of(rows: pa.Table) -> pd.DataFrame:
    """The rows in pandas' usual types: integers with nulls are floats, unless a float would be another number."""
    frame: pd.DataFrame = rows.to_pandas(integer_object_nulls=any(map(_rounds, rows.columns)))
    return frame


def _rounds(column: pa.ChunkedArray) -> bool:
    integers = [leaf for chunk in column.chunks for leaf in _leaves(chunk) if pa.types.is_int64(leaf.type)]
    if not any(leaf.null_count for leaf in integers):
        return False
    found = [pc.min_max(leaf).as_py() for leaf in integers]
    return any(each["max"] is not None and (each["max"] > _EXACT or each["min"] < -_EXACT) for each in found)


def _leaves(array: Any) -> Iterator[Any]:
    kind = array.type
    if pa.types.is_struct(kind):
        for part in array.flatten():
            yield from _leaves(part)
    elif pa.types.is_list(kind):
        yield from _leaves(array.flatten())
    elif pa.types.is_map(kind):
        yield from _leaves(array.items)
    else:
        yield array
