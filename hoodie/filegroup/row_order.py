"""Orders of rows: by columns one after the other, or along a curve that keeps rows together that are near in each of them.

On a curve it is not the values that count but their ranks, so that columns of any type, however their values are spread, weigh
the same. A rank is a place among all rows, or, where they do not fit into memory, among a sample. Nulls come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from hoodie.model.clustering import Cuts, Order
from hoodie.model.enums import RowOrder

pc: Any = pyarrow.compute  # its stubs tell kinds of arrays apart, which are known at run time only
Codes: TypeAlias = npt.NDArray[np.uint64]
Numbers: TypeAlias = npt.NDArray[np.int64]

_CURVE_BITS = 63
MAX_CURVE_COLUMNS = 16
"""Of more columns a place would have fewer than four bits of each, and no filter would be served."""
_MOST_BITS = 20
"""Of one column: a million places tell the files of any table apart."""


def can_sort(kind: pa.DataType) -> bool:
    """Whether rows can be ordered by columns of this type."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_float16(kind))


def sorted_places(rows: pa.Table, order: Order) -> Numbers:
    """Row numbers in their order; rows that are alike stay as they stand."""
    if order.layout is RowOrder.LINEAR or len(order.columns) == 1:
        return _sorted(rows.select(list(order.columns)))
    bits = _bits(len(order.columns))
    scaled = [_scaled(_ranks(rows.column(name)), rows.num_rows, bits) for name in order.columns]
    result: Numbers = np.argsort(_along(scaled, bits, order.layout), kind="stable")
    return result


def cuts_of(sample: pa.Table, order: Order, ranges: int) -> Cuts:
    """Where to cut, so that each range takes about as many rows of the sample."""
    at = np.unique(np.linspace(0, sample.num_rows, ranges + 1)[1:-1].astype(np.int64))
    at = at[at < sample.num_rows]
    sample = sample.select(list(order.columns))
    if order.layout is RowOrder.LINEAR or len(order.columns) == 1:
        return Cuts(order, sample.take(pa.array(_sorted(sample)[at])).combine_chunks())
    marks = tuple(_marks(sample.column(name)) for name in order.columns)
    places = np.sort(_places_among(sample, marks, order))
    return Cuts(order, places[at], marks)


def range_of_each(rows: pa.Table, cuts: Cuts) -> Numbers:
    """The range that each row belongs to."""
    columns = rows.select(list(cuts.order.columns))
    if isinstance(cuts.bounds, pa.Table):
        return _count_up_to(cuts.bounds, columns)
    result: Numbers = np.searchsorted(cuts.bounds, _places_among(columns, cuts.marks, cuts.order), side="right")
    return result


# -- ranks -------------------------------------------------------------------------------------------------------------


def _sorted(columns: pa.Table) -> Numbers:
    keys = [(name, "ascending") for name in columns.column_names]
    result: Numbers = pc.sort_indices(columns, sort_keys=keys).to_numpy().astype(np.int64)
    return result


def _ranks(column: pa.ChunkedArray) -> Numbers:
    """How many rows have smaller values; one for all rows of one value."""
    places = _sorted(pa.table({"value": column}))
    values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    in_order: Any = values.take(pa.array(places))
    ranks = np.empty(len(places), np.int64)
    if not len(places):
        return ranks
    same = pc.equal(in_order.slice(1), in_order.slice(0, len(in_order) - 1))
    both_null = pc.and_(in_order.slice(1).is_null(), in_order.slice(0, len(in_order) - 1).is_null())
    repeats = pc.or_(pc.fill_null(same, False), both_null).to_numpy(zero_copy_only=False)
    first = np.concatenate(([True], ~repeats))
    ranks[places] = np.maximum.accumulate(np.where(first, np.arange(len(places)), 0))
    return ranks


def _marks(column: pa.ChunkedArray) -> pa.Array:
    """Values of a sample that lie evenly among its rows, ascending and without nulls, which come after all."""
    values: Any = column.drop_null()
    values = values.combine_chunks()
    in_order: Any = values.take(pa.array(_sorted(pa.table({"value": values}))))
    step = max(1, -(-len(in_order) // (1 << _MOST_BITS)))
    result: pa.Array = in_order.take(pa.array(np.arange(0, len(in_order), step)))
    return result


def _places_among(rows: pa.Table, marks: Sequence[pa.Array], order: Order) -> Codes:
    bits = _bits(len(order.columns))
    scaled = []
    for name, mark in zip(order.columns, marks, strict=True):
        counts = _count_up_to(pa.table({"value": mark}), pa.table({"value": rows.column(name)}))
        scaled.append(_scaled(counts, len(mark) + 1, bits))
    return _along(scaled, bits, order.layout)


def _count_up_to(bounds: pa.Table, rows: pa.Table) -> Numbers:
    """How many of the bounds, which ascend, are not greater than each row."""
    both = pa.concat_tables([bounds, rows.cast(bounds.schema)])
    places = _sorted(both)  # of rows that are alike the bounds stand first
    before = np.cumsum(places < bounds.num_rows)
    counts = np.empty(both.num_rows, np.int64)
    counts[places] = before
    result: Numbers = counts[bounds.num_rows :]
    return result


def _scaled(ranks: Numbers, of: int, bits: int) -> Codes:
    result: Codes = ((ranks << bits) // max(1, of)).astype(np.uint64)
    return result


# -- curves ------------------------------------------------------------------------------------------------------------


def _bits(columns: int) -> int:
    return min(_MOST_BITS, _CURVE_BITS // columns)


def _along(scaled: Sequence[Codes], bits: int, layout: RowOrder) -> Codes:
    return interleaved(hilbert_axes(scaled, bits) if layout is RowOrder.HILBERT else scaled, bits)


def interleaved(axes: Sequence[Codes], bits: int) -> Codes:
    """Numbers of `bits` bits -> one number, which has the highest bit of each, then the next one, and so on (Morton, "z-order")."""
    code = np.zeros(len(axes[0]), np.uint64)
    one = np.uint64(1)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            code = (code << one) | ((axis >> np.uint64(bit)) & one)
    return code


def hilbert_axes(axes: Sequence[Codes], bits: int) -> list[Codes]:
    """Coordinates -> numbers whose interleaved bits are the place on Hilbert's curve.

    John Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004); over arrays.
    """
    x = [axis.copy() for axis in axes]
    top = 1 << (bits - 1)
    q = top
    while q > 1:
        low, at = np.uint64(q - 1), np.uint64(q)
        for i in range(len(x)):
            is_set = (x[i] & at) != 0
            swapped = np.where(is_set, np.uint64(0), (x[0] ^ x[i]) & low)
            x[0] ^= np.where(is_set, low, swapped)
            if i:  # with itself there is nothing to exchange
                x[i] ^= swapped
        q >>= 1
    for i in range(1, len(x)):
        x[i] ^= x[i - 1]
    turn = np.zeros_like(x[0])
    q = top
    while q > 1:
        turn ^= np.where((x[-1] & np.uint64(q)) != 0, np.uint64(q - 1), np.uint64(0))
        q >>= 1
    return [axis ^ turn for axis in x]
