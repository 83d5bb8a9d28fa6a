"""Values that a filter names, in the type of the column that they stand beside: comparisons are exact.

`n > 1.5` of whole numbers is `n > 1`, `n = 1.5` is never true, `n < 3000000000` of an int32 always is: so what is compared
is always two values of one type, and nothing is rounded on the way. Beside floats a number with a point or an exponent is
the nearest double, as in every language; a whole number is itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.read.condition import (
    Always,
    Among,
    Column,
    ComparedColumns,
    Comparison,
    Condition,
    FilledValue,
    Junction,
    Op,
)

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MAX_DIGITS = 1_000
_DAY_NS = 86_400 * 10**9
_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""Of the decimals that hold all integers of so many bits."""
_ROUNDED_DOWN = {Op.LT: Op.LE, Op.LE: Op.LE, Op.GT: Op.GT, Op.GE: Op.GT}
"""What a comparison becomes when its value is no value of the type and the next lower one takes its place."""


class Misfit(Exception):
    """Why a value or a column does not go with what it is compared with."""


class _Outside(Exception):
    """The value lies beyond all values of the type."""

    def __init__(self, *, above: bool) -> None:
        self.above = above


def parse_number(text: str) -> int | Decimal:
    """A number as it stands in a text.

    Raises:
        Misfit: it is none.
    """
    if not _NUMBER.fullmatch(text) or len(text) > _MAX_DIGITS:
        raise Misfit(f"{_short(text)} is not a number")
    return int(text) if text.lstrip("+-").isdigit() else Decimal(text)


def compare(column: Column, kind: pa.DataType, op: Op, value: Any) -> Condition:
    """The column beside a value of Python.

    Raises:
        Misfit: they cannot be compared.
    """
    if value is None:
        return Always(None)
    if _is_nan(kind, value):
        return FilledValue(column, op is Op.NE)
    try:
        floor, exact = _placed(kind, value, column)
    except _Outside as outside:
        return FilledValue(column, op is Op.NE or ((op in (Op.LT, Op.LE)) == outside.above and op is not Op.EQ))
    if exact:
        return Comparison(column, op, floor)
    if op in (Op.EQ, Op.NE):
        return FilledValue(column, op is Op.NE)
    return Comparison(column, _ROUNDED_DOWN[op], floor)


def among(column: Column, kind: pa.DataType, values: Sequence[Any]) -> Condition:
    """`column = value OR column = value …`, for at least one value.

    Raises:
        Misfit: one of them cannot be compared with the column.
    """
    present = [value for value in values if value is not None]
    array = _plain_array(present, kind)
    if array is None:
        singles = (compare(column, kind, Op.EQ, value) for value in present)
        array = _array([single.value for single in singles if isinstance(single, Comparison)], kind)
    one: Condition = Among(column, array) if len(array) else FilledValue(column, False)
    return one if len(present) == len(values) else Junction(False, (one, Always(None)))


def _plain_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any] | None:
    """Values of the kind that lists of many thousand have; None of others."""
    kinds = set(map(type, values))
    if kinds == {str} and is_text(kind):
        return pa.array(values, kind)
    if kinds == {int} and pa.types.is_signed_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return pa.array([value for value in values if -most <= value < most], kind)
    return None


def _array(values: list[pa.Scalar[Any]], kind: pa.DataType) -> pa.Array[Any]:
    if pa.types.is_floating(kind) and any(value.as_py() == 0 for value in values):
        values = [*values, pa.scalar(0.0, kind), pa.scalar(-0.0, kind)]
    array: Any
    if pa.types.is_temporal(kind):  # years beyond Python's
        number: Any = pa.int32() if kind.bit_width == 32 else pa.int64()
        array = pa.array([value.cast(number).as_py() for value in values], number).cast(kind)
    else:
        array = pa.array([value.as_py() for value in values], kind)
    typed: pa.Array[Any] = array
    return typed


def compare_columns(left: Column, one: pa.DataType, op: Op, right: Column, other: pa.DataType) -> Condition:
    """Two columns, in a type that holds every value of both.

    Raises:
        Misfit: there is none.
    """
    types = pa.types
    if types.is_floating(one) and _is_long(other):
        left, one, op, right, other = right, other, op.flipped, left, one
    if _is_long(one) and types.is_floating(other) and types.is_signed_integer(one):
        return ComparedColumns(left, op, right, None)
    common = _common(one, other)
    if common is None:
        raise Misfit(
            f"columns {left!r} ({one}) and {right!r} ({other}) cannot be compared exactly: bring them to one type yourself, "
            "in a pyarrow expression or in the result"
        )
    return ComparedColumns(left, op, right, common)


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if one == other and is_comparable(one):
        return one
    if types.is_integer(one) and types.is_integer(other):
        longest = max(one.bit_width, other.bit_width)
        signed = types.is_signed_integer(one) and types.is_signed_integer(other)
        return pa.int64() if signed or longest < 64 else pa.decimal128(_DIGITS[64], 0)
    numbers = (types.is_integer, types.is_floating)
    if any(is_it(one) for is_it in numbers) and any(is_it(other) for is_it in numbers):
        return None if _is_long(one) or _is_long(other) else pa.float64()
    whole, scale = (max(pair) for pair in zip(_decimal(one), _decimal(other), strict=True))
    if min(_decimal(one), _decimal(other)) > (0, -1):
        return pa.decimal128(whole + scale, scale) if whole + scale <= 38 else None
    for family, common in ((is_text, pa.large_string()), (_is_binary, pa.large_binary())):
        if family(one) and family(other):
            return common
    moments = [each for each in (one, other) if types.is_timestamp(each)]
    if moments and all(types.is_timestamp(each) or types.is_date32(each) for each in (one, other)):
        if len({each.tz is None for each in moments}) > 1:
            return None
        finest = min((each.unit for each in moments), key=lambda unit: _UNIT_NS[unit])
        return pa.timestamp("ns" if finest == "ns" else "us", None if moments[0].tz is None else "UTC")
    return None


def _decimal(kind: Any) -> tuple[int, int]:
    """Digits before and behind the point; (0, -1) of other types."""
    if pa.types.is_integer(kind):
        return _DIGITS[kind.bit_width] - (kind.bit_width == 64 and pa.types.is_signed_integer(kind)), 0
    return (kind.precision - kind.scale, kind.scale) if pa.types.is_decimal(kind) else (0, -1)


def _is_long(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) and kind.bit_width == 64)


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def is_comparable(kind: pa.DataType) -> bool:
    """Whether the type has values that SQL compares."""
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_dictionary(kind))


# -- one value as the column's type has it -----------------------------------------------------------------------------


def _is_nan(kind: pa.DataType, value: Any) -> bool:
    types = pa.types
    if isinstance(value, str):
        return bool(types.is_floating(kind)) and value.strip().lower() == "nan"
    numeric = types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    return bool(numeric) and isinstance(value, float | Decimal) and math.isnan(value)


def constant(kind: pa.DataType, value: Any) -> pa.Scalar[Any]:
    """A value of Python as one of the type.

    Raises:
        Misfit: the type does not have it.
    """
    if _is_nan(kind, value):
        return pa.scalar(math.nan, kind)
    if pa.types.is_floating(kind):
        return pa.scalar(float(_as_number(value, kind, "")), kind)
    try:
        scalar, exact = _placed(kind, value, "")
    except _Outside:
        exact = False
    if not exact:
        raise Misfit(f"{_short(value)} is not a value of type {kind}")
    return scalar


def _placed(kind: pa.DataType, value: Any, column: Column) -> tuple[pa.Scalar[Any], bool]:
    """The greatest value of the type that is not above this one, and whether it is the value itself.

    Raises:
        _Outside, Misfit
    """
    types = pa.types
    if types.is_boolean(kind):
        return _boolean(value, column), True
    if types.is_floating(kind):
        return _float(kind, _as_number(value, kind, column))
    if types.is_integer(kind):
        sign = types.is_signed_integer(kind)
        low, high = (
            (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1) if sign else (0, 2**kind.bit_width - 1)
        )
        floor, exact = _step(_as_number(value, kind, column), 1, low, high)
        return pa.scalar(floor, kind), exact
    if types.is_decimal(kind):
        most = 10**kind.precision - 1
        floor, exact = _step(_as_number(value, kind, column), Fraction(10) ** -kind.scale, -most, most)
        return pa.scalar(Decimal(f"{floor}E{-kind.scale}"), kind), exact
    if types.is_timestamp(kind) or types.is_date32(kind):
        return _moment(kind, value, column)
    if is_text(kind) or _is_binary(kind):
        return _text(kind, value, column), True
    if not is_comparable(kind):
        raise Misfit(f"column {column!r} is {kind}: of such columns only IS NULL and IS NOT NULL are understood")
    try:
        return pa.scalar(value).cast(kind), True
    except (pa.ArrowException, ValueError) as exc:
        raise _no(value, kind, column) from exc


def _boolean(value: Any, column: Column) -> pa.Scalar[Any]:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        value = value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise _no(value, pa.bool_(), column, "write TRUE or FALSE")
    return pa.scalar(value)


def _text(kind: pa.DataType, value: Any, column: Column) -> pa.Scalar[Any]:
    if (isinstance(value, bytes) and _is_binary(kind)) or isinstance(value, str):
        return pa.scalar(value).cast(kind)
    raise _no(value, kind, column, "write the value in single quotes")


def _as_number(value: Any, kind: pa.DataType, column: Column) -> int | float | Decimal:
    if isinstance(value, str):
        stripped = value.strip()
        if stripped.lower().lstrip("+-") in ("inf", "infinity") and pa.types.is_floating(kind):
            return float(stripped)
        try:
            return parse_number(stripped)
        except Misfit as exc:
            raise _no(value, kind, column) from exc
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _no(value, kind, column)
    # A float stands for its fewest digits, as it is written.
    return Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else value


def _step(number: int | float | Decimal, unit: Fraction | int, low: int, high: int) -> tuple[int, bool]:
    """The number in whole units, rounded down."""
    if not isinstance(number, int) and not math.isfinite(number):
        raise _Outside(above=number > 0)
    units = Fraction(number) / unit
    floor = math.floor(units)
    if not low <= floor <= high:
        raise _Outside(above=floor > high)
    return floor, units == floor


def _float(kind: pa.DataType, number: int | float | Decimal) -> tuple[pa.Scalar[Any], bool]:
    target: Any = kind.to_pandas_dtype()
    exactly: int | float = number if isinstance(number, int | float) else float(number)
    if isinstance(number, Decimal) and math.isinf(exactly):
        exactly = int(number)  # beyond all doubles, but not infinite
    try:
        with np.errstate(over="ignore"):
            nearest = target(float(exactly))
    except OverflowError:
        nearest = target(math.inf if exactly > 0 else -math.inf)
    # Python compares integers with floats exactly.
    if float(nearest) > exactly:
        nearest = np.nextafter(nearest, target(-math.inf))
    return pa.scalar(nearest, kind), float(nearest) == exactly


def _moment(kind: Any, value: Any, column: Column) -> tuple[pa.Scalar[Any], bool]:
    days = bool(pa.types.is_date32(kind))
    unit, number = (_DAY_NS, pa.int32()) if days else (_UNIT_NS[kind.unit], pa.int64())
    most = 2 ** (31 if days else 63)
    floor, exact = _step(_nanoseconds(kind, value, column), unit, -most, most - 1)
    return pa.scalar(floor, number).cast(kind), exact


def _nanoseconds(kind: Any, value: Any, column: Column) -> int:
    """Since 1970; a moment without a zone is UTC."""
    zone = None if pa.types.is_date32(kind) else kind.tz
    if isinstance(value, str):
        if pa.types.is_date32(kind):
            return _parsed(value, [pa.date32()], kind, column, "write it as 'YYYY-MM-DD'") * _DAY_NS
        names = ("us", "ns")
        tried = [pa.timestamp(unit) for unit in names] + [
            pa.timestamp(unit, "UTC") for unit in names if zone is not None
        ]
        hint = "write it as 'YYYY-MM-DD HH:MM:SS.ffffff'" + (
            ", with a zone as in +01:00 or without one for UTC" if zone is not None else "; the column has no zone"
        )
        return _parsed(value, tried, kind, column, hint)
    if isinstance(value, date | np.datetime64):  # a datetime is a date too
        scalar: Any = pa.array(np.array([value]) if isinstance(value, np.datetime64) else [value])[0]
        if not scalar.is_valid:
            raise _no(value, kind, column)
        if pa.types.is_date(scalar.type):
            return int(scalar.cast(pa.date32()).cast(pa.int32()).as_py()) * _DAY_NS
        if pa.types.is_timestamp(kind) and kind.tz is None and scalar.type.tz is not None:
            raise _no(value, kind, column, "give it without a zone, which the column has not")
        return int(scalar.cast(pa.int64()).as_py()) * _UNIT_NS[scalar.type.unit]
    raise _no(value, kind, column, "write it as text in single quotes")


def _parsed(text: str, kinds: list[Any], kind: pa.DataType, column: Column, hint: str) -> int:
    for each in kinds:
        try:
            number: int = pa.scalar(text).cast(each).cast(pa.int32() if each.bit_width == 32 else pa.int64()).as_py()
        except (pa.ArrowException, ValueError):
            continue
        return number * (1 if pa.types.is_date32(each) else _UNIT_NS[each.unit])
    raise _no(text, kind, column, hint)


def _no(value: Any, kind: pa.DataType, column: Column, hint: str = "") -> Misfit:
    return Misfit(
        f"column {column!r} is {kind}, and {_short(value)} is not a value of it" + (f": {hint}" if hint else "")
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
