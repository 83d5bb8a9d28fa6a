"""What a filter computes of columns, as a Spark column, with the meaning that the embedded engine gives it.

Integers that grow too large are an error in either mode of Spark, what is divided by zero is null, and a timestamp has its day in UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from hoodie.read.condition import Column as Named
from hoodie.read.condition import Computation, Condition, Function
from pyspark_hoodie.schema import spark_schema

_DAY_US = 86_400 * 10**6


def computed_column(
    of: Computation,
    column: Callable[[Named], Column],
    condition: Callable[[Condition], Column],
    literal: Callable[[pa.Scalar[Any]], Column],
) -> Column:
    """The value as a column; the functions make columns of what it is computed of."""
    if of.function is Function.FIELD:
        name, *path = of.arguments
        names = [each.as_py() for each in path if isinstance(each, pa.Scalar)]
        return reduce(lambda struct, field: struct.getField(field), names, column(str(name)))
    if of.function is Function.SUBSTR:
        text, start, stop = of.arguments
        first, last = (each.as_py() for each in (start, stop) if isinstance(each, pa.Scalar))
        return F.substring(
            _column_of(text, column, condition, literal), first + 1, 2**31 - 1 if last is None else last - first
        )
    arguments = [_column_of(each, column, condition, literal) for each in of.arguments]
    if of.function is Function.CASE:
        *pairs, value_column = arguments
        for value, fits in zip(pairs[::-2], pairs[-2::-2], strict=True):
            value_column = F.when(fits, value).otherwise(value_column)
        return value_column
    if of.function is Function.CAST:
        return _cast(arguments[0], of)
    if pa.types.is_integer(of.kind) and of.function in _TRIED:
        return _or_too_large(_TRIED[of.function](*arguments), arguments)
    value_column = _MADE[of.function](*arguments)
    return value_column


def _column_of(
    of: Named | pa.Scalar[Any] | Condition,
    column: Callable[[Named], Column],
    condition: Callable[[Condition], Column],
    literal: Callable[[pa.Scalar[Any]], Column],
) -> Column:
    if isinstance(of, str | Computation):
        return column(of)
    if isinstance(of, Condition):
        return condition(of)
    if of.is_valid:
        return literal(of)
    return F.lit(None).cast(_spark_type(of.type))


def _spark_type(kind: pa.DataType) -> Any:
    return spark_schema(pa.schema([("value", kind)])).fields[0].dataType


def _cast(value: Column, of: Computation) -> Column:
    kind: Any = of.kind
    if pa.types.is_timestamp(kind):  # another name of the zone
        return value
    if pa.types.is_date32(kind):  # of a timestamp; the day of UTC, not of the session
        source: Any = of.arguments[0]
        is_zoned = isinstance(source, Computation) and getattr(source.kind, "tz", None) is not None
        return _day(value) if is_zoned else value.cast("date")
    return value.cast(_spark_type(kind))


def _day(moment: Column) -> Column:
    micros = F.unix_micros(moment)
    return F.date_from_unix_date(((micros - F.pmod(micros, F.lit(_DAY_US))) / F.lit(_DAY_US)).cast("int"))


def _or_too_large(value: Column, arguments: list[Column]) -> Column:
    has_values = reduce(lambda one, other: one & other, (each.isNotNull() for each in arguments))
    message = F.lit(
        "a filter computes an integer that is too large: make one of its numbers a decimal, such as 2.0 for 2"
    )
    return F.coalesce(value, F.when(has_values, F.raise_error(message).cast("bigint")))


def _remainder(left: Column, right: Column) -> Column:
    return F.when(right == F.lit(-1), left * F.lit(0)).otherwise(left % F.when(right != F.lit(0), right))


def _absolute(value: Column) -> Column:
    return F.when(value < F.lit(0), F.try_subtract(F.lit(0).cast("bigint"), value)).otherwise(value)


_TRIED: dict[Function, Callable[..., Column]] = {
    Function.ADD: F.try_add,
    Function.SUBTRACT: F.try_subtract,
    Function.MULTIPLY: F.try_multiply,
    Function.ABS: _absolute,
}
_MADE: dict[Function, Callable[..., Column]] = {
    Function.ADD: lambda left, right: left + right,
    Function.SUBTRACT: lambda left, right: left - right,
    Function.MULTIPLY: lambda left, right: left * right,
    Function.DIVIDE: lambda left, right: left / F.when(right != F.lit(0.0), right),
    Function.REMAINDER: _remainder,
    Function.ADD_DAYS: lambda day, days: F.date_add(day, days.cast("int")),
    Function.DAYS: lambda left, right: F.datediff(left, right).cast("bigint"),
    Function.ABS: F.abs,
    Function.LOWER: F.lower,
    Function.UPPER: F.upper,
    Function.TRIM: F.trim,
    Function.LENGTH: lambda text: F.length(text).cast("bigint"),
    Function.CONCAT: F.concat,
    Function.YEAR: lambda day: F.year(day).cast("bigint"),
    Function.MONTH: lambda day: F.month(day).cast("bigint"),
    Function.DAY: lambda day: F.dayofmonth(day).cast("bigint"),
    Function.COALESCE: F.coalesce,
}
