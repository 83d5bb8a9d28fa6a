"""What is known of the values of a column in some files: the nouns by which a query leaves files out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple


class ValueRange(NamedTuple):
    """Bounds of one column's values; they may be wider than the values are.

    Values are such that Python compares them as the column's type does: bool, int (dates as days, timestamps in the unit of
    their type), float, str, Decimal. NaN is outside of any bounds.
    """

    low: Any = None
    """None together with `high`: there are no values, or the bounds are not known."""
    high: Any = None
    nulls: int = 1
    """How many nulls there are; where only that there may be some is known, 1."""
    values: bool = True
    """Whether there may be any value that is not null."""

    @property
    def bounded(self) -> bool:
        """Whether every value but NaN is known to lie in [low, high]."""
        return not self.values or self.low is not None


UNKNOWN = ValueRange()
ALL_NULL = ValueRange(values=False)


def union(ranges: Iterable[ValueRange]) -> ValueRange:
    """Of values that stand in any of these; nothing is known where there are none of them."""
    all_ranges = list(ranges)
    return reduce(_either, all_ranges) if all_ranges else UNKNOWN


def _either(one: ValueRange, other: ValueRange) -> ValueRange:
    nulls = one.nulls + other.nulls
    if not (one.values and other.values):
        filled = one if one.values else other
        return filled._replace(nulls=nulls)
    if not (one.bounded and other.bounded):
        return ValueRange(nulls=nulls)
    return ValueRange(min(one.low, other.low), max(one.high, other.high), nulls)


class Pruning(NamedTuple):
    """How many file slices a plan considered, and how many were left after each step."""

    total: int = 0
    """Of the partitions that were listed."""
    after_partitions: int = 0
    after_statistics: int = 0
    without_statistics: int = 0
    """Of those after partitions: nothing was known of their columns, so they are read."""
    footers: int = 0
    """Parquet footers that were read for it."""
    unlisted: int = 0
    """Partitions, or folders of several, that were left out by their paths before anybody looked into them."""
