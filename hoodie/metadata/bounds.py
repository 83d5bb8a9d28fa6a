"""Bounds of one column in some files, as the records of a metadata table tell them: in the type that the column has.

The wrapper of a bound does not say what it is. Writers give dates as whole numbers of days and timestamps as those of microseconds,
in wrappers of numbers or of their own, and decimals as bytes of scale 15; so the column's type decides (public table
hudi_comprehensive_types_v6_mor). A bound that the type cannot have is not known, and neither are those of timestamps in
milliseconds, which Apache Hudi trusts from version 9 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.format.avro_wire import Ints, data_of, decimals_from, offsets_in, padded, sign_extended
from hoodie.format.column_stats import has_bounds
from hoodie.model.statistics import ValueRange

pc: Any = pyarrow.compute
_nulls_of: Any = pa.nulls
_DECIMAL = pa.decimal128(30, 15)
_TRUSTED_UNIT = "us"


class Bounds:
    """Records of the column in so many files, taken oldest first."""

    def __init__(self, kind: pa.DataType, count: int) -> None:
        self._kind = kind
        self._has_bounds = np.zeros(count, np.bool_)
        self._low: Any = _nulls_of(count, kind)
        self._high: Any = _nulls_of(count, kind)
        self._nulls: Any = pa.nulls(count, pa.int64())
        self._values: Any = pa.nulls(count, pa.int64())

    def forget(self, rows: Ints) -> None:
        """Drop the bounds of these files."""
        self._has_bounds[rows] = False

    def add(self, rows: Ints, stats: pa.Table) -> None:
        """Records of these files, as `payload.Stats` has them. One takes the place of an older one where either was deleted, or its
        bounds are tight; else both count.
        """
        count = len(self._has_bounds)
        at = numbers_of([rows], count)
        scales = stats["decimal"].combine_chunks()
        low, high = (in_type(stats[name].combine_chunks(), self._kind, scales).take(at) for name in ("low", "high"))
        nulls, values, deleted, tight = (
            stats[name].combine_chunks().take(at) for name in ("nulls", "values", "deleted", "tight")
        )
        # Where a column has nothing but nulls, writers state a bound of 0.
        is_empty = pc.equal(nulls, values).fill_null(False)
        none = pa.scalar(None, self._kind)
        low, high = pc.if_else(is_empty, none, low), pc.if_else(is_empty, none, high)
        there = at.is_valid()
        is_alone = pc.or_kleene(deleted, tight).fill_null(False)
        both = pc.and_(pc.and_(there, pa.array(self._has_bounds)), pc.invert(is_alone))
        # A bound that is missing beside values is unknown, and so is then the joined one.
        self._low = pc.if_else(both, self._joined(self._low, low, is_empty, pc.less), pc.if_else(there, low, self._low))
        self._high = pc.if_else(
            both, self._joined(self._high, high, is_empty, pc.greater), pc.if_else(there, high, self._high)
        )
        self._nulls = pc.if_else(both, pc.add(self._nulls, nulls), pc.if_else(there, nulls, self._nulls))
        self._values = pc.if_else(both, pc.add(self._values, values), pc.if_else(there, values, self._values))
        self._has_bounds[rows] = ~deleted.fill_null(True).to_numpy(zero_copy_only=False)[rows]

    def _joined(self, old: Any, new: Any, is_empty: Any, comes_first: Callable[[Any, Any], Any]) -> Any:
        """The outer one of both bounds; null where one of them is not known."""
        was_empty = pc.equal(self._nulls, self._values).fill_null(False)
        outer = pc.if_else(comes_first(new, old), new, old)
        return pc.if_else(is_empty, old, pc.if_else(was_empty, new, outer))

    def table(self) -> pa.Table:
        """low, high, nulls and values for each file; all are null where a file has no bounds."""
        is_bounded = pa.array(self._has_bounds)
        columns = {"low": self._low, "high": self._high, "nulls": self._nulls, "values": self._values}
        return pa.table(
            {name: pc.if_else(is_bounded, each, pa.scalar(None, each.type)) for name, each in columns.items()}
        )


class ColumnBounds:
    """`Bounds` of several columns in so many files. A row is that of the file, after those of the columns before."""

    def __init__(self, kinds: Sequence[pa.DataType], count: int) -> None:
        self._count = count
        self._bounds = [Bounds(kind, count) for kind in kinds]

    def forget(self, rows: Ints) -> None:
        """As `Bounds.forget` of each column."""
        for bounds, mine in self._by_column(rows):
            bounds.forget(rows[mine] % self._count)

    def add(self, rows: Ints, stats: pa.Table) -> None:
        """As `Bounds.add` of each column."""
        for bounds, mine in self._by_column(rows):
            bounds.add(rows[mine] % self._count, stats.take(pa.array(mine)))

    def tables(self) -> list[pa.Table]:
        """As `Bounds.table` of each column."""
        return [each.table() for each in self._bounds]

    def _by_column(self, rows: Ints) -> Iterator[tuple[Bounds, Ints]]:
        numbers = rows // max(self._count, 1)
        for number in np.unique(numbers).tolist():
            yield self._bounds[number], np.flatnonzero(numbers == number)


def counted_together(stats: pa.Table) -> pa.Table:
    """Records of an expression index with nulls among the values, which Apache Hudi counts apart there. Where there is a bound, there
    are values.
    """
    filled = pc.or_(pc.is_valid(stats["low"]), pc.is_valid(stats["high"])).combine_chunks()
    nulls = stats["nulls"].combine_chunks()
    values = pc.if_else(filled, pc.max_element_wise(stats["values"].combine_chunks(), pc.add(nulls, 1)), nulls)
    return stats.set_column(stats.column_names.index("values"), "values", values)


def in_type(bounds: Any, kind: pa.DataType, decimals: Any = None) -> Any:
    """Bounds as they were stored -> those of a column of this type; null where they are none of it. `decimals`: what records say of
    their precision and scale, from index version V2 on.
    """
    unknown = _nulls_of(len(bounds), kind)
    if pa.types.is_null(bounds.type):
        return unknown
    try:
        values = _cast(bounds, kind, decimals)
    except pa.ArrowException:
        return unknown
    if values is None:
        return unknown
    is_number = pc.invert(pc.is_nan(values)) if pa.types.is_floating(kind) else None
    return values if is_number is None else pc.if_else(is_number, values, pa.scalar(None, kind))


def value_ranges(bounds: pa.Table) -> list[ValueRange | None]:
    """What `Bounds.table` says of each file; None where nothing is known of it, or not enough.

    Timestamps are never known: what a file counts in may be another unit than that of its schema.
    """
    kind = bounds["low"].type
    if not has_bounds(kind) or pa.types.is_timestamp(kind):
        return [None] * bounds.num_rows
    lows, highs = (bounds[name] for name in ("low", "high"))
    if pa.types.is_date32(kind):
        lows, highs = lows.cast(pa.int32()), highs.cast(pa.int32())
    columns = (each.to_pylist() for each in (lows, highs, bounds["nulls"], bounds["values"]))
    return [_range(*row) for row in zip(*columns, strict=True)]


def _range(low: Any, high: Any, nulls: int | None, values: int | None) -> ValueRange | None:
    if nulls is None or values is None or not 0 <= nulls <= values:
        return None
    if nulls == values:
        return ValueRange(nulls=nulls, values=False)
    if low is None or high is None or not low <= high or (isinstance(low, float) and not isfinite(high - low)):
        return None
    return ValueRange(low, high, nulls)


def numbers_of(rows: list[Ints], count: int) -> Any:
    """For each of so many places the number of the row that belongs there, null where none does."""
    number = np.full(count, -1, np.int64)
    places = np.concatenate([np.empty(0, np.int64), *rows])
    number[places] = np.arange(len(places))
    return pa.array(number, mask=number < 0)


def _cast(bounds: Any, kind: pa.DataType, decimals: Any) -> Any:
    """None where values of the stored type do not compare as those of the column do."""
    stored, types = bounds.type, pa.types
    if types.is_decimal(kind) and decimals is not None and decimals.null_count < len(decimals):
        return _cast_each(bounds, kind, decimals) if types.is_binary(stored) else None
    if types.is_decimal(kind):
        if kind.scale > _DECIMAL.scale:
            return None  # it was rounded
        numbers = _decimals(bounds, _DECIMAL) if types.is_binary(stored) else bounds
        return numbers.cast(kind) if types.is_decimal(numbers.type) else None
    if types.is_timestamp(kind):
        is_trusted = kind.unit == _TRUSTED_UNIT and (types.is_timestamp(stored) or stored == pa.int64())
        return bounds.cast(pa.int64()).cast(kind) if is_trusted else None
    if types.is_date32(kind):
        return bounds.cast(kind) if types.is_date32(stored) or stored == pa.int32() else None
    # Readers take a float into a column of doubles by its digits.
    is_wider = types.is_floating(kind) and (stored == kind or types.is_integer(stored))
    is_alike = any(of(kind) and of(stored) for of in (types.is_integer, types.is_boolean, _is_text, _is_bytes))
    return bounds.cast(kind) if is_wider or is_alike else None


def _cast_each(bounds: Any, kind: pa.DataType, decimals: Any) -> Any:
    """Bounds in bytes, each of the precision and scale that its record says."""
    result = _nulls_of(len(bounds), kind)
    for text in decimals.drop_null().unique().to_pylist():
        is_such = pc.equal(decimals, text).fill_null(False)
        precision, scale = (int(each) for each in text.split(","))
        values = _decimals(pc.if_else(is_such, bounds, pa.scalar(None, bounds.type)), pa.decimal128(precision, scale))
        result = pc.coalesce(result, values.cast(kind))
    return result


def _decimals(values: Any, kind: pa.Decimal128Type) -> Any:
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    present = values.drop_null().cast(pa.large_binary())
    offsets = offsets_in(present)
    lengths = np.diff(offsets)
    if ((lengths < 1) | (lengths > kind.byte_width)).any():
        raise pa.ArrowInvalid("a decimal of no or of more than 16 bytes")
    dense = decimals_from(sign_extended(padded(memoryview(data_of(present))), offsets[:-1], offsets[1:]), kind)
    return dense.take(pa.array(np.cumsum(valid) - 1, mask=~valid))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
