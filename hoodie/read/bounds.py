"""Where a filter can be true at all, judged by bounds of its columns alone: one verdict for each of many file slices.

Three-valued logic, as the filter itself has it: of a condition is known whether some row may make it true, and whether some
row may make it false; null is neither. NOT swaps the two. What is not understood may be both. Comparisons are made by Arrow
on the bounds, with the very operators and casts that the filter uses on rows, which keep the order of values. NaN lies
outside of all bounds: it makes every comparison false but `<>`.

A slice has several files, and where records are merged field by field the columns of a row may come from different ones. So
each comparison is judged over all files of a slice, and conditions are joined for the slice.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import fs

from hoodie.format.column_stats import as_array, has_bounds
from hoodie.model.statistics import UNKNOWN, ValueRange, union
from hoodie.read.where import FilterParser, exact_array

MAX_COMPARISONS = 64
"""Of one text; those beyond may be both true and false. Each takes about a millisecond for some thousand files; IN is one."""

Flags = npt.NDArray[np.bool_]
Ranges = Mapping[str, Sequence[Sequence[ValueRange]]]
"""Column -> for each slice, its bounds in each of the files; without any nothing is known."""
_FOREIGN = (pa.ArrowException, ValueError, OverflowError, RecursionError, NotImplementedError, TypeError, KeyError)
_LOW, _HIGH = pc.field("low"), pc.field("high")
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


class Verdict(NamedTuple):
    """For each slice: whether a row of it may make a condition true, and whether one may make it false."""

    may: Flags
    may_not: Flags


def may_match(where: str | pc.Expression, schema: pa.Schema, ranges: Ranges, count: int) -> Flags:
    """One flag for each of `count` slices: False where no row can fulfil the filter. True is always a sound answer.

    `where` has been through `parse_filter` with this schema. `ranges` are in the types of the schema; of columns that are not
    in it nothing is known.
    """
    try:
        if isinstance(where, str):
            return _Judge(where, schema, ranges, count).verdict().may
        return _by_guarantees(where, schema, ranges, count)
    except _FOREIGN:
        return np.ones(count, np.bool_)


class _Column:
    """The bounds of one column in all files as arrays, and verdicts for the slices."""

    def __init__(self, ranges: Sequence[Sequence[ValueRange]], kind: pa.DataType) -> None:
        self._starts = np.cumsum([0, *(max(1, len(each)) for each in ranges[:-1])])
        self._ranges = [known for each in ranges for known in each or (UNKNOWN,)]
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
        found = np.zeros(len(self._ranges), np.bool_)
        found[self.bounds.filter(condition).column("row").to_numpy()] = True
        return self.judged(found)

    def judged(self, found: Flags) -> Flags:
        """Verdicts for the slices out of those for files with known bounds."""
        return self._of_slices((found | self._unknown) & self._filled)

    def _of_slices(self, flags: Flags) -> Flags:
        found: Flags = np.logical_or.reduceat(flags, self._starts)
        return found


class _Judge(FilterParser):
    """The same grammar, with verdicts as the outcome."""

    def __init__(self, text: str, schema: pa.Schema, ranges: Ranges, count: int) -> None:
        super().__init__(text, schema)
        self._ranges = ranges
        self._count = count
        self._columns: dict[str, _Column] = {}
        self._compared = 0

    def verdict(self) -> Verdict:
        return self._judge(ast.parse(self._to_python().strip(), mode="eval").body)

    def _judge(self, node: ast.expr) -> Verdict:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return reduce(_both, map(self._judge, values))
            case ast.BoolOp(op=ast.Or(), values=values):
                return _negated(reduce(_both, (_negated(self._judge(value)) for value in values)))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _negated(self._judge(operand))
            case ast.Compare():
                lefts = [node.left, *node.comparators[:-1]]
                return reduce(_both, map(self._judge_one, lefts, node.ops, node.comparators))
            case ast.BinOp(left=left, op=ast.MatMult(), right=ast.Tuple(elts=[low, high])):
                return _both(self._judge_one(left, ast.GtE(), low), self._judge_one(left, ast.LtE(), high))
            case ast.Name() | ast.Attribute():
                return self._compare(self._column(node), ast.Eq, pc.scalar(True))
            case ast.Constant(value=bool(value)):
                return self._always(value)
        return self._open()

    def _judge_one(self, left: ast.expr, how: ast.cmpop, right: ast.expr) -> Verdict:
        match how:
            case ast.In() | ast.NotIn():
                items = right.elts if isinstance(right, ast.Tuple | ast.List) else [right]
                found = self._judge_set(left, items)
                return _negated(found) if isinstance(how, ast.NotIn) else found
            case ast.Is() | ast.IsNot():
                if not _is_column(left):
                    return self._open()
                column = self._column(left)
                found = Verdict(column.nulls, column.values)
                return _negated(found) if isinstance(how, ast.IsNot) else found
        if _is_column(right) and not _is_column(left):
            left, right = right, left
            how = _FLIPPED.get(type(how), type(how))()
        if not _is_column(left) or _is_column(right):
            return self._open()
        value, kind = self._value(right, left), self._type_of(left)
        if value is None:
            return self._never()
        if kind is not None and pa.types.is_decimal(kind) and isinstance(value, float):
            return self._open()  # Arrow's way from a decimal to a double is not proven to keep the order
        return self._compare(self._column(left), type(how), self._operand(right, left))

    def _compare(self, column: _Column, how: type[ast.cmpop], value: pc.Expression) -> Verdict:
        self._compared += 1
        if self._compared > MAX_COMPARISONS:
            return self._open()
        try:
            verdict = _compared(column, how, value)
        except _FOREIGN:
            return self._open()
        if not column.floating:
            return verdict
        if how is ast.NotEq:
            return Verdict(column.values, verdict.may_not)
        return Verdict(verdict.may, column.values)

    def _judge_set(self, left: ast.expr, items: Sequence[ast.expr]) -> Verdict:
        kind = self._type_of(left)
        if kind is None:
            return self._open()
        values = [value for value in (self._value(item, left) for item in items) if value is not None]
        column = self._column(left)
        if values:
            one_set = exact_array(values, kind)
            found = self._open() if one_set is None else _among(column, one_set)
            may, outside = found.may, column.values if column.floating else found.may_not
        else:
            # No value is equal; that is false also where the column is null.
            may, outside = self._never().may, self._always(False).may_not
        return Verdict(may, outside if len(values) == len(items) else self._never().may_not)

    def _column(self, node: ast.expr) -> _Column:
        if not isinstance(node, ast.Name | ast.Attribute):
            raise ValueError("no column")
        name = self._name(node)
        if name not in self._columns:
            ranges = self._ranges.get(name, [()] * self._count)
            self._columns[name] = _Column(ranges, self._schema.field(name).type)
        return self._columns[name]

    def _open(self) -> Verdict:
        return Verdict(np.ones(self._count, np.bool_), np.ones(self._count, np.bool_))

    def _never(self) -> Verdict:
        """Always null."""
        return Verdict(np.zeros(self._count, np.bool_), np.zeros(self._count, np.bool_))

    def _always(self, value: bool) -> Verdict:
        return Verdict(np.full(self._count, value), np.full(self._count, not value))


def _is_column(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def _both(one: Verdict, other: Verdict) -> Verdict:
    return Verdict(one.may & other.may, one.may_not | other.may_not)


def _negated(found: Verdict) -> Verdict:
    return Verdict(found.may_not, found.may)


def _compared(column: _Column, how: type[ast.cmpop], value: pc.Expression) -> Verdict:
    if how in (ast.Eq, ast.NotEq):
        equal = Verdict(
            column.where((value >= _LOW) & (value <= _HIGH)), column.where((value != _LOW) | (value != _HIGH))
        )
        return equal if how is ast.Eq else _negated(equal)
    if how in (ast.Lt, ast.GtE):
        less = Verdict(column.where(value > _LOW), column.where(value <= _HIGH))
        return less if how is ast.Lt else _negated(less)
    most = Verdict(column.where(value >= _LOW), column.where(value < _HIGH))
    return most if how is ast.LtE else _negated(most)


def _among(column: _Column, values: pa.Array[Any]) -> Verdict:
    """Whether one of the values lies within the bounds, by the ranks of all of them together."""
    bounds = column.bounds
    if pa.types.is_floating(column.kind):
        values = values.filter(pc.is_finite(values))
    everything = pa.concat_arrays([values, *bounds.column("low").chunks, *bounds.column("high").chunks])
    ranks = pc.rank(everything, tiebreaker="dense").to_numpy()
    count = bounds.num_rows
    ordered = np.unique(ranks[: len(values)])
    low, high = ranks[len(values) : len(values) + count], ranks[len(values) + count :]
    inside = np.searchsorted(ordered, high, "right") > np.searchsorted(ordered, low, "left")
    return Verdict(column.judged(inside), column.judged(~(inside & (low == high))))


def _by_guarantees(where: pc.Expression, schema: pa.Schema, ranges: Ranges, count: int) -> Flags:
    """The verdict of Arrow's own simplification, which leaves row groups of Parquet files out by the same means.

    It takes NaN for a value like others, so that of floats only nulls are told.
    """
    known = {
        name: _Column([[union(of_slice)] for of_slice in each], schema.field(name).type)
        for name, each in ranges.items()
        if has_bounds(schema.field(name).type)
    }
    guarantees = [pc.scalar(True) for _ in range(count)]
    for name, column in known.items():
        field = pc.field(name)
        # Python loops over files here: expressions have no other form.
        bounds = column.bounds  # one row for each slice
        for at, (low, high) in enumerate(zip(bounds.column("low"), bounds.column("high"), strict=True)):
            said = _guarantee(field, column, at, low, high)
            guarantees[at] = guarantees[at] if said is None else guarantees[at] & said
    form = ds.ParquetFileFormat()  # no file is opened: the paths are numbers
    dataset: Any = ds.FileSystemDataset.from_paths(
        [str(at) for at in range(count)], schema, form, fs.LocalFileSystem(), partitions=guarantees
    )
    found = np.zeros(count, np.bool_)
    found[[int(fragment.path) for fragment in dataset.get_fragments(filter=where)]] = True
    return found


def _guarantee(
    field: pc.Expression, column: _Column, at: int, low: pa.Scalar[Any], high: pa.Scalar[Any]
) -> pc.Expression | None:
    if not column.values[at]:
        return field.is_null()
    if not low.is_valid or column.floating:
        return None if column.nulls[at] else field.is_valid()
    if column.nulls[at]:
        null = field.is_null()
        return ((field >= low) | null) & ((field <= high) | null)
    return (field >= low) & (field <= high) & field.is_valid()
