"""A row filter as a tree: columns by the names that the table has, values in the types of their columns.

Whoever answers a filter (Arrow on rows, bounds of files, Spark) walks this tree, so that it means one thing everywhere.
"""

from __future__ import annotations

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


@dataclass(frozen=True)
class Always:
    """The same for every row; None is null."""

    value: bool | None


@dataclass(frozen=True)
class Filled:
    """This value for rows that have a value in the column, null for the others."""

    column: str
    value: bool


@dataclass(frozen=True)
class Compared:
    column: str
    op: Op
    value: pa.Scalar[Any]
    """Of the column's type. Never null, never NaN."""


@dataclass(frozen=True)
class ComparedColumns:
    left: str
    op: Op
    right: str
    common: pa.DataType | None
    """The type in which both are compared, which holds every value of either; None: `left` is int64 and `right` floating."""


@dataclass(frozen=True)
class Among:
    """Whether the column has one of the values; null where it is null."""

    column: str
    values: pa.Array[Any]
    """Of the column's type, without null and NaN; of zero both signs, which Arrow and Parquet tell apart in sets."""


@dataclass(frozen=True)
class Like:
    column: str
    pattern: str
    """`%` any characters, `_` one, either or a backslash behind a backslash itself."""
    ignore_case: bool

    @property
    def prefix(self) -> str:
        """What every match begins with."""
        found: list[str] = []
        characters = iter(self.pattern)
        for each in characters:
            if each in "%_":
                break
            found.append(next(characters) if each == "\\" else each)
        return "".join(found)


@dataclass(frozen=True)
class IsNull:
    part: str | Condition
    """A column, or a condition that is neither true nor false."""


@dataclass(frozen=True)
class IsTruth:
    """Whether the condition is this value; never null."""

    part: Condition
    value: bool


@dataclass(frozen=True)
class Negated:
    part: Condition


@dataclass(frozen=True)
class Joined:
    """All of the parts, or any of them."""

    every: bool
    parts: tuple[Condition, ...]


Condition = Always | Filled | Compared | ComparedColumns | Among | Like | IsNull | IsTruth | Negated | Joined
