"""The condition of option `where` as a Spark column, with the meaning that the embedded engine gives it.

Spark's own parser reads some of the same texts otherwise: "x" is a string there, timestamps are of the session's zone,
numbers are rounded to doubles, and NaN is greater than every number. Here NaN is what IEEE 754 says, as embedded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from hoodie.read.condition import (
    Always,
    Among,
    ComparedColumns,
    Comparison,
    Computation,
    Condition,
    FilledValue,
    IsNull,
    IsTruth,
    Junction,
    Like,
    Negation,
    Op,
)
from hoodie.read.condition import Column as Named
from hoodie.read.where import Where, condition_of
from pyspark_hoodie.computed import computed_column
from pyspark_hoodie.schema import spark_schema

_COMPARE: dict[Op, Callable[[Any, Any], Column]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}
_DAY_US = 86_400 * 10**6


def filter_column(where: Where, schema: pa.Schema) -> Column:
    """The condition as a Spark column; `where` is text or a list of conditions.

    Raises:
        OptionError: as `hoodie.read.where.parse_filter`.
    """
    return _Columns(schema).of(condition_of(where, schema))


def quoted(name: str) -> str:
    """A column name for `F.col`: dots in it are part of the name."""
    return "`" + name.replace("`", "``") + "`"


def literal_text(value: str) -> str:
    """A text as SQL has it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


class _Columns:
    """Columns of Spark for the nodes of a filter's tree."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def of(self, condition: Condition) -> Column:
        match condition:
            case Always(value):
                return F.lit(value).cast("boolean")
            case FilledValue(name, value):
                return F.when(self.column(name).isNotNull(), F.lit(value))
            case Comparison(name, op, value):
                return self._compared(name, op, value)
            case ComparedColumns():
                return self._columns_compared(condition)
            case Among(name, values):
                return _among(self.column(name), values)
            case Like(name, pattern, ignore_case):
                column = self.column(name)
                return column.ilike(pattern) if ignore_case else column.like(pattern)
            case IsNull(part):
                return (self.column(part) if isinstance(part, str | Computation) else self.of(part)).isNull()
            case IsTruth(part, value):
                part_column = self.of(part)
                return F.coalesce(part_column if value else ~part_column, F.lit(False))
            case Negation(part):
                return ~self.of(part)
            case Junction(every, parts):
                return reduce(operator.and_ if every else operator.or_, map(self.of, parts))

    def column(self, of: Named) -> Column:
        return F.col(quoted(of)) if isinstance(of, str) else computed_column(of, self.column, self.of, _literal)

    def _kind(self, of: Named) -> pa.DataType:
        kind: pa.DataType = self._schema.field(of).type if isinstance(of, str) else of.kind
        return kind

    def _compared(self, name: Named, op: Op, value: pa.Scalar[Any]) -> Column:
        column, kind = self.column(name), value.type
        if pa.types.is_boolean(kind) and op is Op.EQ and value.as_py():
            return column
        if not pa.types.is_floating(kind):
            side, (literal,) = _sides(column, [value])
            return _COMPARE[op](side, literal)
        return _without_nan(op, _beside(column, op, value), column)

    def _columns_compared(self, comparison: ComparedColumns) -> Column:
        one, other, op = self.column(comparison.left), self.column(comparison.right), comparison.op
        kinds = [self._kind(comparison.left), self._kind(comparison.right)]
        floats = [side for side, kind in zip((one, other), kinds, strict=True) if pa.types.is_floating(kind)]
        if comparison.common is not None:
            sides = [_cast(*each, comparison.common) for each in zip((one, other), kinds, strict=True)]
            return _without_nan(op, _COMPARE[op](*sides), *floats)
        rounded, other = one.cast("double"), other.cast("double")
        beyond = F.when(one.isNotNull(), F.lit(op in (Op.LT, Op.LE, Op.NE)))
        exact = F.when(rounded == other, _COMPARE[op](one, other.cast("bigint"))).otherwise(
            _COMPARE[op](rounded, other)
        )
        return _without_nan(op, F.when(other >= F.lit(2.0**63), beyond).otherwise(exact), *floats)


def _without_nan(op: Op, compared: Column, *floats: Column) -> Column:
    """NaN equals NaN and is greater than every number in Spark; in Arrow, as in IEEE 754, it is neither."""
    for side in floats:
        compared = (compared | F.isnan(side)) if op is Op.NE else (compared & ~F.isnan(side))
    return compared


def _beside(column: Column, op: Op, value: pa.Scalar[Any]) -> Column:
    """Beside a zero, comparisons that still hold where Parquet's bounds and dictionaries tell -0.0 from 0.0."""
    if value.as_py() != 0:
        return _COMPARE[op](column, _literal(value))
    least, most = (_literal(pa.scalar(zero, value.type)) for zero in (-0.0, 0.0))
    if op is Op.EQ:
        return (column >= least) & (column <= most)
    return _COMPARE[op](column, least if op in (Op.GT, Op.GE) else most)


def _among(column: Column, values: pa.Array[Any]) -> Column:
    zeros = [value for value in values if pa.types.is_floating(values.type) and value.as_py() == 0]
    side, others = _sides(column, [value for value in values if value not in zeros])
    if not zeros:
        return side.isin(others)
    zero = _beside(column, Op.EQ, zeros[0])  # Spark keeps one of two zeros in a list
    return (column.isin(others) | zero) if others else zero


def _sides(column: Column, values: Sequence[pa.Scalar[Any]]) -> tuple[Column, list[Column]]:
    """What is compared with what. As numbers where a value is of the days that the Julian calendar lacks.

    Spark hands dates and timestamps to its Parquet reader as `java.sql.Date` and `Timestamp`, which have no such days: it gets
    others, and leaves out row groups of these.
    """
    if not any(map(_is_of_no_julian_day, values)):
        return column, [_literal(value) for value in values]
    if pa.types.is_date32(values[0].type):
        return F.unix_date(column), [F.lit(value.cast(pa.int32()).as_py()) for value in values]
    return F.unix_micros(column), [F.lit(_microseconds(value)) for value in values]


def _is_of_no_julian_day(value: pa.Scalar[Any]) -> bool:
    kind: Any = value.type
    if pa.types.is_date32(kind):
        return value.is_valid and _NO_JULIAN_DAYS[0] <= value.cast(pa.int32()).as_py() < _NO_JULIAN_DAYS[1]
    if not pa.types.is_timestamp(kind) or kind.tz is None or not value.is_valid:
        return False
    return _NO_JULIAN_DAYS[0] * _DAY_US <= _microseconds(value) < _NO_JULIAN_DAYS[1] * _DAY_US


_NO_JULIAN_DAYS = (-141_438, -141_426)
"""From 1582-10-04 to before 1582-10-16, in days since 1970-01-01: a day more on each side, as the JVM's time zone has a part in it."""


def _microseconds(value: pa.Scalar[Any]) -> int:
    kind: Any = value.type
    moment = value.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    return int(moment.as_py())


def _cast(column: Column, kind: pa.DataType, common: Any) -> Column:
    if kind == common:
        return column
    if pa.types.is_date32(kind) and common.tz is not None:  # midnight of UTC, not of the session
        return F.timestamp_micros(F.unix_date(column).cast("bigint") * F.lit(_DAY_US))
    return column.cast(_spark_type(common))


def _spark_type(kind: Any) -> Any:
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz)
    return spark_schema(pa.schema([("value", kind)])).fields[0].dataType


def _literal(value: pa.Scalar[Any]) -> Column:
    """A value in the type of the column that it stands beside."""
    kind: Any = value.type
    types = pa.types
    if types.is_timestamp(kind):
        if kind.tz is not None:
            return F.timestamp_micros(F.lit(_microseconds(value)))
        return F.lit(value.cast(pa.timestamp("us")).cast(pa.string()).as_py()).cast(_spark_type(kind))
    if types.is_date32(kind):
        return F.date_from_unix_date(F.lit(value.cast(pa.int32()).as_py()))
    plain = value.as_py()
    if isinstance(plain, bool | str):
        return F.lit(plain)
    if isinstance(plain, bytes):
        return F.lit(bytearray(plain))
    if types.is_decimal(kind):
        plain = format(plain, "f")
    return F.lit(plain).cast(_spark_type(kind))
