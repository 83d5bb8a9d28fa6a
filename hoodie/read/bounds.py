"""Where a filter can be true at all, judged by bounds of its columns alone: one verdict for each of many file slices.

Three-valued logic, as the filter itself has it: of a condition is known whether some row may make it true, and whether some
row may make it false; null is neither. NOT swaps the two. What is not understood may be both. Comparisons are made by Arrow
on the bounds, with the very operators and casts that the filter uses on rows, which keep the order of values. NaN lies
outside of all bounds: it makes every comparison false but `<>`.

A slice has several files, and where records are merged field by field the columns of a row may come from different ones. So
each comparison is judged over all files of a slice, and conditions are joined for the slice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from hoodie.format.column_stats import as_array, has_bounds
from hoodie.model.statistics import UNKNOWN, ValueRange, union
from hoodie.read.condition import (
    Always,
    Among,
    Comparison,
    Condition,
    FilledValue,
    IsNull,
    IsTruth,
    Junction,
    Like,
    Negation,
    Op,
)
from hoodie.read.where import Where, condition_of

MAX_COMPARISONS = 64
"""Of one text; those beyond may be both true and false. Each takes about a millisecond for some thousand files; IN is one."""

Flags = npt.NDArray[np.bool_]
Ranges = Mapping[str, Sequence[Sequence[ValueRange]]]
"""Column -> for each slice, its bounds in each of the files; without any nothing is known."""
_FOREIGN = (pa.ArrowException, OverflowError, RecursionError)
_LOW, _HIGH = pc.field("low"), pc.field("high")


class Verdict(NamedTuple):
    """For each slice: whether a row of it may make a condition true, and whether one may make it false."""

    may: Flags
    may_not: Flags


def may_match(where: Where | Condition, schema: pa.Schema, ranges: Ranges, count: int) -> Flags:
    """One flag for each of `count` slices: False where no row can fulfil the filter. True is always a sound answer.

    `where` has been through `parse_filter` with this schema. `ranges` are in the types of the schema; of columns that are not
    in it nothing is known.
    """
    try:
        if isinstance(where, pc.Expression):
            return _by_guarantees(where, schema, ranges, count)
        condition = where if isinstance(where, Condition) else condition_of(where, schema)
        return _Judge(schema, ranges, count).verdict(condition).may
    except _FOREIGN:
        return np.ones(count, np.bool_)


class _Column:
    """The bounds of one column in all files as arrays, and verdicts for the slices."""

    def __init__(self, ranges: Sequence[Sequence[ValueRange]], kind: pa.DataType) -> None:
        self._starts = np.cumsum([0, *(max(1, len(each)) for each in ranges[:-1])])
        self._ranges = [value_range for each in ranges for value_range in each or (UNKNOWN,)]
        self.kind = kind
        self.floating = pa.types.is_floating(kind)
        self._filled: Flags = np.array([each.values for each in self._ranges], np.bool_)
        self._unknown: Flags = np.array([not each.bounded for each in self._ranges], np.bool_)
        self.values = self._of_slices(self._filled)
        self.nulls = self._of_slices(np.array([each.nulls > 0 for each in self._ranges], np.bool_))

    @cached_property
    def bounds(self) -> pa.Table:
        """Columns low, high (null where there are none) and row."""
        try:
            low, high = (as_array([each[at] for each in self._ranges], self.kind) for at in (0, 1))
        except _FOREIGN:
            low = high = pa.array([None] * len(self._ranges), self.kind)
            self._unknown = self._filled
        return pa.table({"low": low, "high": high, "row": pa.array(np.arange(len(low)))})

    def where(self, condition: pc.Expression) -> Flags:
        """The slices with a file whose low and high fulfil the condition, or may, as they are not known."""
        flags = np.zeros(len(self._ranges), np.bool_)
        flags[self.bounds.filter(condition).column("row").to_numpy()] = True
        return self.judged(flags)

    def judged(self, flags: Flags) -> Flags:
        """Verdicts for the slices out of those for files with known bounds."""
        return self._of_slices((flags | self._unknown) & self._filled)

    def _of_slices(self, flags: Flags) -> Flags:
        result: Flags = np.logical_or.reduceat(flags, self._starts)
        return result


class _Judge:
    """Verdicts for the nodes of a filter's tree."""

    def __init__(self, schema: pa.Schema, ranges: Ranges, count: int) -> None:
        self._schema = schema
        self._ranges = ranges
        self._count = count
        self._columns: dict[str, _Column] = {}
        self._compared = 0

    def verdict(self, condition: Condition) -> Verdict:
        match condition:
            case Always(value):
                return self._always(value)
            case FilledValue(str(name), value):
                verdict = Verdict(self._column(name).values, self._nowhere())
                return verdict if value else _negated(verdict)
            case Comparison(str(name)) | Among(str(name)) | Like(str(name)):  # of what is computed bounds say nothing
                return self._judged(condition, name)
            case IsNull(str(name)):
                return Verdict(self._column(name).nulls, self._column(name).values)
            case IsTruth(part, value):
                inner = self.verdict(part)
                return Verdict(inner.may if value else inner.may_not, self._open().may_not)
            case Negation(part):
                return _negated(self.verdict(part))
            case Junction(every, parts):
                if every:
                    return reduce(_both, map(self.verdict, parts))
                return _negated(reduce(_both, (_negated(self.verdict(part)) for part in parts)))
        return self._open()

    def _judged(self, condition: Comparison | Among | Like, name: str) -> Verdict:
        self._compared += 1
        if self._compared > MAX_COMPARISONS:
            return self._open()
        column = self._column(name)
        try:
            match condition:
                case Comparison(_, op, value):
                    result = _compared(column, op, pc.scalar(value))
                case Among(_, values):
                    result = _among(column, values)
                case _:
                    return Verdict(_begins(column, condition), column.values)
        except _FOREIGN:
            return self._open()
        if not column.floating:
            return result
        if isinstance(condition, Comparison) and condition.op is Op.NE:
            return Verdict(column.values, result.may_not)
        return Verdict(result.may, column.values)

    def _column(self, name: str) -> _Column:
        if name not in self._columns:
            ranges = self._ranges.get(name, [()] * self._count)
            self._columns[name] = _Column(ranges, self._schema.field(name).type)
        return self._columns[name]

    def _open(self) -> Verdict:
        return Verdict(np.ones(self._count, np.bool_), np.ones(self._count, np.bool_))

    def _nowhere(self) -> Flags:
        return np.zeros(self._count, np.bool_)

    def _always(self, value: bool | None) -> Verdict:
        return Verdict(np.full(self._count, value is True), np.full(self._count, value is False))


def _both(one: Verdict, other: Verdict) -> Verdict:
    return Verdict(one.may & other.may, one.may_not | other.may_not)


def _negated(verdict: Verdict) -> Verdict:
    return Verdict(verdict.may_not, verdict.may)


def _compared(column: _Column, op: Op, value: pc.Expression) -> Verdict:
    if op in (Op.EQ, Op.NE):
        equal = Verdict(
            column.where((value >= _LOW) & (value <= _HIGH)), column.where((value != _LOW) | (value != _HIGH))
        )
        return equal if op is Op.EQ else _negated(equal)
    if op in (Op.LT, Op.GE):
        less = Verdict(column.where(value > _LOW), column.where(value <= _HIGH))
        return less if op is Op.LT else _negated(less)
    most = Verdict(column.where(value >= _LOW), column.where(value < _HIGH))
    return most if op is Op.LE else _negated(most)


def _begins(column: _Column, like: Like) -> Flags:
    """Where a text may begin as all that match do; bounds are in the order of code points, as prefixes are."""
    prefix = like.prefix
    if like.ignore_case or not prefix:
        return column.values
    prefix_value = pc.scalar(pa.scalar(prefix, column.kind))
    # A low bound beyond all that begin so is greater than the prefix, and does not begin so itself.
    return column.where((prefix_value <= _HIGH) & ((prefix_value >= _LOW) | pc.starts_with(_LOW, prefix)))


def _among(column: _Column, values: pa.Array[Any]) -> Verdict:
    """Whether one of the values lies within the bounds, by the ranks of all of them together."""
    bounds = column.bounds
    if column.floating:
        values = values.filter(pc.is_finite(values))
    everything = pa.concat_arrays([values, *bounds.column("low").chunks, *bounds.column("high").chunks])
    if column.floating:
        everything = pc.add(everything, pa.scalar(0.0, column.kind))  # -0.0 becomes 0.0, which it equals
    ranks = pc.rank(everything, tiebreaker="dense").to_numpy()
    count = bounds.num_rows
    is_value = np.zeros(int(ranks.max(initial=0)) + 1, dtype=np.int64)
    is_value[ranks[: len(values)]] = 1
    up_to = np.cumsum(is_value)  # how many of the values are at most as great as that of a rank, which begin at 1
    low, high = ranks[len(values) : len(values) + count], ranks[len(values) + count :]
    inside = up_to[high] > up_to[low - 1]
    return Verdict(column.judged(inside), column.judged(~(inside & (low == high))))


def _by_guarantees(where: pc.Expression, schema: pa.Schema, ranges: Ranges, count: int) -> Flags:
    """The verdict of Arrow's own simplification, which leaves row groups of Parquet files out by the same means.

    It takes NaN for a value like others, and knows nothing of `is_null(nan_is_null=True)`: so of floats nothing is told but
    that all are null.
    """
    possible = {
        name: _Column([[union(of_slice)] for of_slice in each], schema.field(name).type)
        for name, each in ranges.items()
        if has_bounds(schema.field(name).type)
    }
    guarantees = [pc.scalar(True) for _ in range(count)]
    for name, column in possible.items():
        field = pc.field(name)
        # Python loops over files here: expressions have no other form.
        bounds = column.bounds  # one row for each slice
        for at, (low, high) in enumerate(zip(bounds.column("low"), bounds.column("high"), strict=True)):
            guarantee = _guarantee(field, column, at, low, high)
            guarantees[at] = guarantees[at] if guarantee is None else guarantees[at] & guarantee
    import pyarrow.dataset as ds  # noqa: PLC0415 - imports pandas, which not every query of a table needs

    form = ds.ParquetFileFormat()  # no file is opened: the paths are numbers
    dataset: Any = ds.FileSystemDataset.from_paths(
        [str(at) for at in range(count)], schema, form, fs.LocalFileSystem(), partitions=guarantees
    )
    result = np.zeros(count, np.bool_)
    result[[int(fragment.path) for fragment in dataset.get_fragments(filter=where)]] = True
    return result


def _guarantee(
    field: pc.Expression, column: _Column, at: int, low: pa.Scalar[Any], high: pa.Scalar[Any]
) -> pc.Expression | None:
    if not column.values[at]:
        return field.is_null()
    if column.floating:
        return None
    if not low.is_valid:
        return None if column.nulls[at] else field.is_valid()
    if column.nulls[at]:
        null = field.is_null()
        return ((field >= low) | null) & ((field <= high) | null)
    return (field >= low) & (field <= high) & field.is_valid()
