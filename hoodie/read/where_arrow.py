"""A row filter as an expression of Arrow, which says of each row whether it fits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.read.condition import (
    Always,
    Among,
    Column,
    ComparedColumns,
    Comparison,
    Computation,
    Condition,
    FilledValue,
    Function,
    IsNull,
    IsTruth,
    Junction,
    Like,
    Negation,
    Op,
)

COMPARE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def _null() -> pc.Expression:
    return pc.scalar(pa.scalar(None, pa.bool_()))


def expression_of(condition: Condition) -> pc.Expression:
    """What the condition says of a row, by Arrow."""
    match condition:
        case Always(value):
            return _null() if value is None else pc.scalar(value)
        case FilledValue(column, value):
            return pc.if_else(_value(column).is_valid(), pc.scalar(value), _null())
        case Comparison(column, op, value):
            result: pc.Expression = COMPARE[op](_value(column), pc.scalar(value))
            return result
        case ComparedColumns(left, op, right, common):
            return _columns_compared(left, op, right, common)
        case Among(column, values):
            return pc.if_else(_value(column).is_valid(), _value(column).isin(values), _null())
        case Like(column, pattern, ignore_case):
            if not ignore_case:
                return pc.match_like(_value(column), pattern)
            return pc.match_like(pc.utf8_lower(_value(column)), pc.utf8_lower(pa.scalar(pattern)).as_py())
        case IsNull(part):
            return (_value(part) if isinstance(part, str | Computation) else expression_of(part)).is_null()
        case IsTruth(part, value):
            inner = expression_of(part)
            return pc.coalesce(inner if value else ~inner, pc.scalar(False))
        case Negation(part):
            return ~expression_of(part)
        case Junction(every, parts):
            return reduce(operator.and_ if every else operator.or_, map(expression_of, parts))


def _columns_compared(left: Column, op: Op, right: Column, common: pa.DataType | None) -> pc.Expression:
    one, other = _value(left), _value(right)
    if common is not None:
        result: pc.Expression = COMPARE[op](one.cast(common), other.cast(common))
        return result
    # An int64 rounded to a double keeps its order; where both are equal then, the double is a whole number itself, and
    # the integers decide. None is as large as 2**63.
    rounded, other = one.cast(pa.float64(), safe=False), other.cast(pa.float64())
    whole = other.cast(pa.int64(), safe=False)
    beyond = pc.scalar(op in (Op.LT, Op.LE, Op.NE))
    exact = pc.if_else(rounded == other, COMPARE[op](one, whole), COMPARE[op](rounded, other))
    return pc.if_else(other >= 2.0**63, pc.if_else(one.is_valid(), beyond, _null()), exact)


def _value(of: Column | pa.Scalar[Any]) -> pc.Expression:
    if isinstance(of, str):
        return pc.field(of)
    return pc.scalar(of) if isinstance(of, pa.Scalar) else _computed(of)


def _computed(of: Computation) -> pc.Expression:
    function: Any = of.function
    if function is Function.CASE:
        *pairs, expression = (each if isinstance(each, Condition) else _value(each) for each in of.arguments)
        for value, condition in zip(pairs[::-2], pairs[-2::-2], strict=True):
            expression = pc.if_else(expression_of(condition), value, expression)
        return expression
    if function is Function.FIELD:
        return pc.field(*(each.as_py() if isinstance(each, pa.Scalar) else str(each) for each in of.arguments))
    arguments = [_value(each) for each in of.arguments if not isinstance(each, Condition)]
    if function is Function.SUBSTR:
        start, stop = (each.as_py() for each in of.arguments[1:] if isinstance(each, pa.Scalar))
        return pc.utf8_slice_codeunits(arguments[0], start, stop)
    if function is Function.CAST:
        return _cast(arguments[0], of.kind)
    expression = _MADE[function](*arguments)
    return expression


def _cast(value: pc.Expression, kind: Any) -> pc.Expression:
    if pa.types.is_date32(kind):  # of a timestamp: its day
        return pc.floor_temporal(value, unit="day").cast(kind, safe=False)
    return value.cast(kind, safe=not pa.types.is_floating(kind))


def _days(value: pc.Expression) -> pc.Expression:
    return value.cast(pa.int32()).cast(pa.int64())


def _remainder(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    # -1 leaves nothing over, as 1 does; the least integer divided by it is too large.
    by = pc.if_else(right == -1, pc.scalar(1), pc.if_else(right == 0, pc.scalar(pa.scalar(None, pa.int64())), right))
    return pc.subtract(left, pc.multiply(pc.divide(left, by), by))


def _quotient(left: pc.Expression, right: pc.Expression) -> pc.Expression:
    return pc.divide(left, pc.if_else(right == 0.0, pc.scalar(pa.scalar(None, pa.float64())), right))


_MADE: dict[Function, Callable[..., pc.Expression]] = {
    Function.ADD: pc.add_checked,
    Function.SUBTRACT: pc.subtract_checked,
    Function.MULTIPLY: pc.multiply_checked,
    Function.DIVIDE: _quotient,
    Function.REMAINDER: _remainder,
    Function.ADD_DAYS: lambda day, days: pc.add_checked(_days(day), days).cast(pa.int32()).cast(pa.date32()),
    Function.DAYS: lambda left, right: pc.subtract(_days(left), _days(right)),
    Function.ABS: pc.abs_checked,
    Function.LOWER: pc.utf8_lower,
    Function.UPPER: pc.utf8_upper,
    Function.TRIM: lambda text: pc.utf8_trim(text, characters=" "),
    Function.LENGTH: lambda text: pc.utf8_length(text).cast(pa.int64()),
    Function.CONCAT: lambda one, other: pc.binary_join_element_wise(one, other, ""),
    Function.YEAR: pc.year,
    Function.MONTH: pc.month,
    Function.DAY: pc.day,
    Function.COALESCE: pc.coalesce,
}
