"""A row filter as a tree: columns by the names that the table has, values in the types of their columns.

Whoever answers a filter (Arrow on rows, bounds of files, Spark) walks this tree, so that it means one thing everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa


class Op(StrEnum):
    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def flipped(self) -> Op:
        """The same with the sides swapped."""
        return _FLIPPED.get(self, self)


_FLIPPED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


@dataclass(frozen=True, repr=False)
class Computation:
    """A value that is made of columns, in the place of a column. Of NULL it is null, unless its function says else.

    Arguments have the types that the function takes, so that whoever answers it converts nothing: `hoodie.read.computed` makes it.
    """

    function: Function
    arguments: tuple[Column | pa.Scalar[Any] | Condition, ...]
    """Conditions only of CASE: a condition and a value by turns, and the value of all other rows."""
    kind: pa.DataType

    def __str__(self) -> str:
        if self.function is Function.FIELD:
            return ".".join(str(each.as_py() if isinstance(each, pa.Scalar) else each) for each in self.arguments)
        if self.function is Function.CAST:
            return str(self.arguments[0])
        texts = [repr(each.as_py()) if isinstance(each, pa.Scalar) else str(each) for each in self.arguments]
        if self.function in _SIGNS:
            return f"({f' {self.function} '.join(texts)})"
        return "CASE … END" if self.function is Function.CASE else f"{self.function}({', '.join(texts)})"

    __repr__ = __str__


class Function(StrEnum):
    """What makes a value. Integers are int64; one beyond it is an error. What is divided by zero is null."""

    FIELD = "field"
    """Of a struct: a column, and the names on the way."""
    CAST = "cast"
    """To the kind: a type that holds the value, or a float that is near it. A timestamp as a date is that of UTC."""
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    """Of doubles."""
    REMAINDER = "%"
    """Of integers; it has the sign of the left one."""
    ADD_DAYS = "add_days"
    """To a date."""
    DAYS = "days"
    """From the right date to the left one."""
    ABS = "abs"
    LOWER = "lower"
    UPPER = "upper"
    TRIM = "trim"
    """Without blanks on both sides."""
    LENGTH = "length"
    """In characters."""
    SUBSTR = "substr"
    """Of a text, from a place (the first is 0) to another one, which is null for the end."""
    CONCAT = "||"
    YEAR = "year"
    """Of a date."""
    MONTH = "month"
    DAY = "day"
    COALESCE = "coalesce"
    """The first value that is not null."""
    CASE = "case"


_SIGNS = frozenset([*map(Function, "+-*/%"), Function.CONCAT])
Column = str | Computation
"""A column by its name, or what is computed of columns."""


@dataclass(frozen=True)
class Always:
    """The same for every row; None is null."""

    value: bool | None


@dataclass(frozen=True)
class FilledValue:
    """This value for rows that have a value in the column, null for the others."""

    column: Column
    value: bool


@dataclass(frozen=True)
class Comparison:
    column: Column
    op: Op
    value: pa.Scalar[Any]
    """Of the column's type. Never null, never NaN."""


@dataclass(frozen=True)
class ComparedColumns:
    left: Column
    op: Op
    right: Column
    common: pa.DataType | None
    """The type in which both are compared, which holds every value of either; None: `left` is int64 and `right` floating."""


@dataclass(frozen=True)
class Among:
    """Whether the column has one of the values; null where it is null."""

    column: Column
    values: pa.Array[Any]
    """Of the column's type, without null and NaN; of zero both signs, which Arrow and Parquet tell apart in sets."""


@dataclass(frozen=True)
class Like:
    column: Column
    pattern: str
    """`%` any characters, `_` one, either or a backslash behind a backslash itself."""
    ignore_case: bool

    @property
    def prefix(self) -> str:
        """What every match begins with."""
        letters: list[str] = []
        characters = iter(self.pattern)
        for each in characters:
            if each in "%_":
                break
            letters.append(next(characters) if each == "\\" else each)
        return "".join(letters)


@dataclass(frozen=True)
class IsNull:
    part: Column | Condition
    """A column, or a condition that is neither true nor false."""


@dataclass(frozen=True)
class IsTruth:
    """Whether the condition is this value; never null."""

    part: Condition
    value: bool


@dataclass(frozen=True)
class Negation:
    part: Condition


@dataclass(frozen=True)
class Junction:
    """All of the parts, or any of them."""

    every: bool
    parts: tuple[Condition, ...]


Condition = Always | FilledValue | Comparison | ComparedColumns | Among | Like | IsNull | IsTruth | Negation | Junction


def computes(condition: Condition) -> bool:
    """Whether a value of it is computed of columns."""
    match condition:
        case Junction(_, parts):
            return any(map(computes, parts))
        case Negation(part) | IsTruth(part, _):
            return computes(part)
        case IsNull(part):
            return isinstance(part, Computation) or (not isinstance(part, str) and computes(part))
        case ComparedColumns(left, _, right):
            return isinstance(left, Computation) or isinstance(right, Computation)
        case Comparison() | Among() | Like() | FilledValue():
            return isinstance(condition.column, Computation)
    return False


def columns_of(value: Condition | Column) -> Iterator[str]:
    """The columns that a condition or a value looks at; one may come more than once."""
    match value:
        case str():
            yield value
        case Computation():
            for argument in value.arguments:
                if isinstance(argument, Column | Condition):
                    yield from columns_of(argument)
        case Always():
            return
        case ComparedColumns(left, _, right):
            yield from columns_of(left)
            yield from columns_of(right)
        case Junction(_, parts):
            for part in parts:
                yield from columns_of(part)
        case IsNull(part) | IsTruth(part) | Negation(part):
            yield from columns_of(part)
        case _:
            yield from columns_of(value.column)
