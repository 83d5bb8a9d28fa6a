"""What expression indexes say of file slices, for the parts of a filter that compare what is computed of one column.

Of the functions of filters those count that mean to an index what they mean here: `lower` and `upper` change some letters in
another way there, and timestamps have the days of another time zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.model.files import FileSlice
from hoodie.model.statistics import UNKNOWN
from hoodie.read.bounds import may_match
from hoodie.read.condition import Among, Comparison, Computation, Condition, Function, Junction
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.listing import DerivedColumn

_VALUE = "value"
_PLAIN = {Function.TRIM: "trim", Function.LENGTH: "length"}
_OF_DAYS = {Function.YEAR: "year", Function.MONTH: "month", Function.DAY: "day"}


def by_expressions(
    context: TableContext,
    snapshot: Snapshot,
    where: object,
    kinds: Mapping[str, pa.DataType],
    candidates: Sequence[Sequence[FileSlice]],
) -> npt.NDArray[np.bool_]:
    """Which candidates may have rows that fulfil the filter, by the bounds. `kinds`: columns that files may be asked for."""
    mask = np.ones(len(candidates), np.bool_)
    if context.catalogue is None or not isinstance(where, Condition):
        return mask
    for part, value in _parts(where, kinds):
        files = [[path for piece in slices for path in _paths(piece)] for slices in candidates]
        every = list(dict.fromkeys(path for paths in files for path in paths))
        bounds = context.catalogue.made_bounds(snapshot.timeline, value, every)
        if bounds is None:
            continue
        ranges_of = {path: each or UNKNOWN for path, each in zip(every, bounds, strict=True)}
        ranges = {_VALUE: [[ranges_of[path] for path in paths] for paths in files]}
        compared = replace(part, column=_VALUE)
        mask &= may_match(compared, pa.schema([(_VALUE, value.kind)]), ranges, len(candidates))
    return mask


def _paths(piece: FileSlice) -> Iterator[str]:
    if piece.base is not None:
        yield piece.base.path
    yield from (log.path for log in piece.logs)


def _parts(where: Condition, kinds: Mapping[str, pa.DataType]) -> Iterator[tuple[Comparison | Among, DerivedColumn]]:
    """What all rows have to fulfil that an index may know."""
    if isinstance(where, Junction) and where.every:
        for each in where.parts:
            yield from _parts(each, kinds)
    elif isinstance(where, Comparison | Among) and isinstance(where.column, Computation):
        value = _indexed_value(where.column, kinds)
        if value is not None:
            yield where, value


def _indexed_value(value: Computation, kinds: Mapping[str, pa.DataType]) -> DerivedColumn | None:
    column, *rest = value.arguments
    if not isinstance(column, str) or column not in kinds:
        return None
    if value.function in _PLAIN:
        return DerivedColumn(_PLAIN[value.function], column, {}, value.kind)
    if value.function in _OF_DAYS and pa.types.is_date32(kinds[column]):
        return DerivedColumn(_OF_DAYS[value.function], column, {}, value.kind)
    if value.function is Function.SUBSTR:
        start, stop = (each.as_py() if isinstance(each, pa.Scalar) else None for each in rest)
        if start is not None and stop is not None:
            return DerivedColumn("substring", column, {"pos": str(start + 1), "len": str(stop - start)}, value.kind)
    return None
