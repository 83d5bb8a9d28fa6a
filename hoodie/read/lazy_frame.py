"""A scan as a polars LazyFrame: filters of polars become conditions of the scan, so that files are pruned by them.

A condition may be weaker than the filter that it stands for: what has no counterpart is left out, and polars filters the rows
that come. So NaN, nulls in lists and the like mean what they mean in polars.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from hoodie.errors import OptionError
from hoodie.read import typed_values
from hoodie.read.condition import Condition, IsNull, Junction, Like, Negation, Op
from hoodie.read.pushdown import NewScan
from hoodie.read.typed_values import Misfit, is_text

if TYPE_CHECKING:
    import polars as pl

_MOST_COLUMNS = 1_000
"""That a filter names, each time counted: Arrow walks a condition by recursion."""
_CLOSED: tuple[Literal["both", "left", "right", "none"], ...] = ("both", "left", "right", "none")


def lazy_frame(schema: pa.Schema, scan: NewScan) -> pl.LazyFrame:
    """A frame whose rows are read when it is collected; `scan` makes the scan of some columns and rows.

    Raises:
        OptionError: polars is not installed, or too old.
    """
    try:
        import polars as pl  # noqa: PLC0415 - an extra
        from polars.io.plugins import register_io_source  # noqa: PLC0415
    except ImportError:
        raise OptionError("a lazy frame needs polars 1.22 or later: pip install 'hoodie[polars]'") from None

    def frames(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        # `rows` counts before the filter.
        where = None if predicate is None or rows is not None else _Conditions(schema).implied(predicate)
        part = scan(columns, where)
        for batch in (part if rows is None else part.limit(rows)).to_batches():
            frame = pl.DataFrame(batch)
            yield frame if predicate is None else frame.filter(predicate)

    return register_io_source(frames, schema=dict(pl.DataFrame(schema.empty_table()).schema))


class _Conditions:
    """Conditions for expressions of polars. An expression names its parts, and not itself: it is what equals one that is made of
    these parts.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def implied(self, predicate: pl.Expr) -> Condition | None:
        """A condition that every row fulfils that the predicate keeps; None: there is none."""
        if len(predicate.meta.root_names()) > _MOST_COLUMNS:
            return None
        return self._condition(predicate, exact=False)

    def _condition(self, expr: pl.Expr, *, exact: bool) -> Condition | None:
        """`exact`: it has to have the value of the expression in every row, null where that is null."""
        match expr.meta.pop()[::-1]:
            case []:
                return self._compared(expr, Op.EQ, True)
            case [one]:
                return self._of_one(expr, one)
            case [one, other]:
                return self._of_two(expr, one, other, exact=exact)
            case [one, low, high] if closed := next(
                (c for c in _CLOSED if _is(expr, one.is_between(low, high, c))), None
            ):
                from_, to = (
                    (Op.GE if closed in ("both", "left") else Op.GT),
                    (Op.LE if closed in ("both", "right") else Op.LT),
                )
                return _joined(True, [self._compared(one, from_, low), self._compared(one, to, high)], exact=exact)
        return None

    def _of_one(self, expr: pl.Expr, one: pl.Expr) -> Condition | None:
        if _is(expr, ~one):
            inner = self._condition(one, exact=True)
            return None if inner is None else Negation(inner)
        name = self._column(one)
        if name is not None and _is(expr, one.is_null()):
            return IsNull(name)
        return Negation(IsNull(name)) if name is not None and _is(expr, one.is_not_null()) else None

    def _of_two(self, expr: pl.Expr, one: pl.Expr, other: pl.Expr, *, exact: bool) -> Condition | None:
        if _is(expr, one & other) or _is(expr, one | other):
            every = _is(expr, one & other)
            return _joined(every, [self._condition(part, exact=exact) for part in (one, other)], exact=exact)
        expressions = {
            Op.EQ: one == other,
            Op.NE: one != other,
            Op.LT: one < other,
            Op.LE: one <= other,
            Op.GT: one > other,
            Op.GE: one >= other,
        }
        op = next((op for op, each in expressions.items() if _is(expr, each)), None)
        if op is not None:
            return self._compared(one, op, other) if _is_constant(other) else self._compared(other, op.flipped, one)
        if not _is_constant(other):
            return None
        if _is(expr, one.is_in(other)):
            return self._among(one, other)
        name = self._column(one)
        if name is not None and is_text(self._schema.field(name).type) and _is(expr, one.str.starts_with(other)):
            prefix = _value(other)
            return Like(name, f"{_escaped(prefix)}%", False) if isinstance(prefix, str) else None
        return None

    def _compared(self, operand: pl.Expr, op: Op, value: Any) -> Condition | None:
        name = self._column(operand)
        if name is None:
            return None
        kind = self._schema.field(name).type
        value = value if value is True else _value(value)
        if value is None or _is_nan(value):
            return None
        try:
            if pa.types.is_floating(kind) and op in (Op.GT, Op.GE):  # NaN is greater than all numbers in polars
                return Negation(typed_values.compare(name, kind, Op.LE if op is Op.GT else Op.LT, value))
            return typed_values.compare(name, kind, op, value)
        except Misfit:
            return None

    def _among(self, operand: pl.Expr, values: pl.Expr) -> Condition | None:
        name, candidates = self._column(operand), _value(values)
        if (
            name is None
            or not isinstance(candidates, list)
            or not candidates
            or any(each is None or _is_nan(each) for each in candidates)
        ):
            return None
        try:
            return typed_values.among(name, self._schema.field(name).type, candidates)
        except Misfit:
            return None

    def _column(self, expr: pl.Expr) -> str | None:
        """The column that this is, or is cast to a type that has all its values."""
        import polars as pl  # noqa: PLC0415

        names = expr.meta.root_names()
        if len(names) != 1 or names[0] not in self._schema.names:
            return None
        name, column = names[0], pl.col(names[0])
        if _is(expr, column):
            return name
        wider = _WIDER.get(str(self._schema.field(name).type), ())
        casts = (column.cast(getattr(pl, each), strict=strict) for each in wider for strict in (False, True))
        return name if any(_is(expr, each) for each in casts) else None


_WIDER = {
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16", "uint32"), ("Int64", "Float64")),
    "float": ("Float64",),
    "date32[day]": ("Datetime",),
}
"""Types of Arrow -> those of polars that a filter casts a column to, and that have all its values."""


def _is(expr: pl.Expr, other: pl.Expr) -> bool:
    return expr.meta.eq(other)


def _is_constant(expr: pl.Expr) -> bool:
    return not expr.meta.root_names()


def _value(constant: pl.Expr) -> Any:
    """A value, or a list of them; None: there is none, or it depends on columns."""
    import polars as pl  # noqa: PLC0415

    values: Any = pl.select(constant).to_series().to_arrow() if _is_constant(constant) else []
    return _plain(values[0]) if len(values) == 1 else None


def _plain(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    if pa.types.is_list(scalar.type) or pa.types.is_large_list(scalar.type):
        return [_plain(each) for each in scalar.values]
    if isinstance(scalar, pa.TimestampScalar):  # of nanoseconds Python has none
        return np.datetime64(scalar.value, scalar.type.unit)
    return scalar.as_py()


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _escaped(text: str) -> str:
    return "".join(f"\\{each}" if each in "%_\\" else each for each in text)


def _joined(every: bool, parts: Sequence[Condition | None], *, exact: bool) -> Condition | None:
    conditions = tuple(part for part in parts if part is not None)
    if len(conditions) < len(parts) and (exact or not every or not conditions):
        return None
    return conditions[0] if len(conditions) == 1 else Junction(every, conditions)
