"""Values that a filter computes of columns and values: what type each has, and what is computed with what.

Integers are computed as int64, whatever the columns have, and decimals exactly. Beside a float everything is a double, and `/`
divides doubles. A number with a point is a decimal, but beside a float.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from hoodie.options.values import did_you_mean
from hoodie.read import typed_values
from hoodie.read.condition import Column, Computation, Condition, Function, IsTruth
from hoodie.read.typed_values import Misfit, is_text
from hoodie.read.where_text import DateText, Literal, Operand, Reference

Kinds = Callable[[str], pa.DataType]
"""The type of a column."""
_INTEGER, _DOUBLE, _DATE, _TEXT = pa.int64(), pa.float64(), pa.date32(), pa.string()
_MAX_DIGITS = 38
_DAYS_ONLY = "dates are computed as a date plus or minus days, and as the days between two dates"
_EXACTLY = Context(prec=1_000)


def column_of(operand: Reference | Computation) -> Column:
    return operand.name if isinstance(operand, Reference) else operand


def kind_of(operand: Reference | Computation, kinds: Kinds) -> pa.DataType:
    return kinds(operand.name) if isinstance(operand, Reference) else operand.kind


def field_of(column: str, kind: pa.DataType, names: Sequence[str]) -> Computation:
    """A value inside of a struct.

    Raises:
        Misfit: there is none of this name.
    """
    path = column
    spelled_names: list[str] = []
    for name in names:
        fields: Any = kind
        if not pa.types.is_struct(kind):
            raise Misfit(f"column {path!r} is {kind}, and has no field {name!r}")
        there = [each.name for each in fields]
        same = [name] if name in there else [each for each in there if each.lower() == name.lower()]
        if len(same) != 1:
            hint = did_you_mean(name, there)
            raise Misfit(
                f"there is no field {name!r} in {path!r}{f'; {hint} The' if hint else '; the'} fields are {', '.join(there)}"
            )
        spelled_names += same
        kind = fields.field(same[0]).type
        path = f"{path}.{same[0]}"
    return Computation(Function.FIELD, (column, *map(pa.scalar, spelled_names)), kind)


def compute(sign: str, left: Operand, right: Operand, kinds: Kinds) -> Operand:
    """`left sign right`, of + - * / % and ||.

    Raises:
        Misfit: these two do not go together.
    """
    function = Function(sign)
    if any(isinstance(each, Literal) and each.value is None for each in (left, right)):
        return Literal(None)
    if function is Function.CONCAT:
        return _of_texts(function, [left, right], kinds)
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(_folded(function, left.value, right.value))
    families = [_family(left, kinds, beside=right), _family(right, kinds, beside=left)]
    if _DATE in families:
        return _of_days(function, (left, right), families, kinds)
    common = (
        _DOUBLE
        if function is Function.DIVIDE or _DOUBLE in families
        else next((f for f in families if f != _INTEGER), _INTEGER)
    )
    if common == _INTEGER:
        return Computation(function, (_as(left, _INTEGER, kinds), _as(right, _INTEGER, kinds)), _INTEGER)
    if function is Function.REMAINDER:
        raise Misfit("% takes integers")
    if common == _DOUBLE:
        return Computation(function, (_as(left, _DOUBLE, kinds), _as(right, _DOUBLE, kinds)), _DOUBLE)
    one, other = (_decimal(each, family) for each, family in zip((left, right), families, strict=True))
    whole = max(one.precision - one.scale, other.precision - other.scale)
    scale = max(one.scale, other.scale)
    digits = (whole + scale + 1, scale)
    if function is Function.MULTIPLY:
        digits = (one.precision + other.precision + 1, one.scale + other.scale)
    if digits[0] > _MAX_DIGITS:
        raise Misfit(
            f"{_description(left)} {sign} {_description(right)} may have {digits[0]} digits, and a decimal has {_MAX_DIGITS} at most"
        )
    return Computation(function, (_as(left, one, kinds), _as(right, other, kinds)), pa.decimal128(*digits))


def negative(operand: Operand, kinds: Kinds) -> Operand:
    return compute("-", Literal(0), operand, kinds)


def _folded(function: Function, left: Any, right: Any) -> int | Decimal | DateText | None:
    """Two numbers of the text, exactly; a quotient as the nearest double. Two dates, or a date and days."""
    if isinstance(left, DateText | date):
        return _folded_days(function, left, right)
    for each in (left, right):
        if isinstance(each, bool) or not isinstance(each, int | float | Decimal):
            raise Misfit(f"{each!r} is not a number")
    one, other = (Decimal(repr(each)) if isinstance(each, float) else each for each in (left, right))
    try:
        match function:
            case Function.ADD | Function.SUBTRACT | Function.MULTIPLY if isinstance(one, int) and isinstance(
                other, int
            ):
                return {"+": one + other, "-": one - other, "*": one * other}[function]
            case Function.ADD:
                return _EXACTLY.add(one, other)
            case Function.SUBTRACT:
                return _EXACTLY.subtract(one, other)
            case Function.MULTIPLY:
                return _EXACTLY.multiply(one, other)
            case _ if other == 0:
                return None
            case Function.DIVIDE:
                return Decimal(repr(float(Fraction(one) / Fraction(other))))
            case Function.REMAINDER if isinstance(one, int) and isinstance(other, int):
                return one - other * int(Fraction(one, other))  # towards zero
    except (ArithmeticError, ValueError) as exc:
        raise Misfit(f"{left} {function} {right} cannot be computed: {exc}") from exc
    raise Misfit("% takes integers")


def _folded_days(function: Function, left: DateText | date, right: Any) -> int | DateText:
    try:
        day = date.fromisoformat(str(left))
        if isinstance(right, DateText | date) and function is Function.SUBTRACT:
            return (day - date.fromisoformat(str(right))).days
        if type(right) is int and function in (Function.ADD, Function.SUBTRACT):
            return DateText(day + timedelta(days=right if function is Function.ADD else -right))
    except (ValueError, OverflowError) as exc:
        raise Misfit(f"{left} {function} {right} cannot be computed: {exc}") from exc
    raise Misfit(_DAYS_ONLY)


def _family(operand: Operand, kinds: Kinds, *, beside: Operand | None = None) -> pa.DataType:
    """int64, double, a date, or a decimal as it is; a text is a date beside one."""
    types = pa.types
    if isinstance(operand, Literal):
        value = operand.value
        is_beside_date = isinstance(beside, Reference | Computation) and kind_of(beside, kinds) == _DATE
        if isinstance(value, DateText | date) or (isinstance(value, str) and is_beside_date):
            return _DATE
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise Misfit(f"{str(value)[:40]!r} is not a number")
        if isinstance(value, int):
            return _INTEGER
        if isinstance(value, float) or not value.is_finite():
            return _DOUBLE
        digits = value.as_tuple()
        scale = max(0, -int(digits.exponent))
        precision = max(len(digits.digits) + max(0, int(digits.exponent)), scale)
        return pa.decimal128(precision, scale) if precision <= _MAX_DIGITS else _DOUBLE
    kind = kind_of(operand, kinds)
    if types.is_integer(kind):
        return _INTEGER
    if types.is_floating(kind):
        return _DOUBLE
    if types.is_decimal(kind) or types.is_date32(kind):
        return kind
    raise Misfit(f"{_description(operand)} is {kind}, and is not computed with")


def _decimal(operand: Operand, family: Any) -> Any:
    if pa.types.is_decimal(family):
        return pa.decimal128(family.precision, family.scale)
    if isinstance(operand, Literal):
        return pa.decimal128(max(1, len(str(abs(int(operand.value or 0))))), 0)
    return pa.decimal128(19, 0)


def _of_days(
    function: Function, sides: tuple[Operand, Operand], families: Sequence[pa.DataType], kinds: Kinds
) -> Computation:
    left, right = sides
    if families == [_DATE, _DATE] and function is Function.SUBTRACT:
        return Computation(Function.DAYS, (_as(left, _DATE, kinds), _as(right, _DATE, kinds)), _INTEGER)
    if function is Function.ADD and families == [_INTEGER, _DATE]:
        left, right = right, left
    elif families != [_DATE, _INTEGER] or function not in (Function.ADD, Function.SUBTRACT):
        raise Misfit(_DAYS_ONLY)
    days = negative(right, kinds) if function is Function.SUBTRACT else right
    return Computation(Function.ADD_DAYS, (_as(left, _DATE, kinds), _as(days, _INTEGER, kinds)), _DATE)


def _as(operand: Operand, kind: pa.DataType, kinds: Kinds) -> Column | pa.Scalar[Any]:
    """In this type, which holds it."""
    if isinstance(operand, Literal):
        return pa.scalar(None, kind) if operand.value is None else typed_values.constant(kind, operand.value)
    column = column_of(operand)
    return column if kind_of(operand, kinds) == kind else Computation(Function.CAST, (column,), kind)


def _description(operand: Operand) -> str:
    if isinstance(operand, Reference):
        return f"column {operand.name!r}"
    return str(operand.value if isinstance(operand, Literal) else operand)


# -- functions ---------------------------------------------------------------------------------------------------------

_ONE_TEXT = {"lower": Function.LOWER, "upper": Function.UPPER, "trim": Function.TRIM, "length": Function.LENGTH}
_OTHER_NAMES = {
    "lcase": "lower",
    "ucase": "upper",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "substring": "substr",
    "dayofmonth": "day",
    "ifnull": "coalesce",
}
_OF_DATES = {"year": Function.YEAR, "month": Function.MONTH, "day": Function.DAY}
FUNCTIONS = ("abs", "coalesce", "day", "length", "lower", "month", "substr", "trim", "upper", "year")


def call(name: str, arguments: Sequence[Operand], kinds: Kinds) -> Operand:
    """A function of SQL.

    Raises:
        Misfit: there is none of this name, or it does not take these arguments.
    """
    word = _OTHER_NAMES.get(name.lower(), name.lower())
    if word not in FUNCTIONS:
        raise Misfit(
            f"{name} is not a function of this grammar, which has {', '.join(FUNCTIONS)}: give a pyarrow expression"
        )
    if word == "coalesce":
        return _coalesced(arguments, kinds)
    if len(arguments) not in ((2, 3) if word == "substr" else (1,)):
        raise Misfit(f"{word} takes {'a text, a place and a length' if word == 'substr' else 'one value'}")
    if word in _ONE_TEXT:
        return _of_texts(_ONE_TEXT[word], arguments, kinds)
    if word == "substr":
        return _substr(arguments, kinds)
    if isinstance(operand := arguments[0], Literal):
        if operand.value is None:
            return operand
        if word == "abs" and isinstance(operand.value, int | float | Decimal):
            return Literal(abs(operand.value))
        raise Misfit(f"{word} takes a column before anything else, not {str(operand.value)[:40]!r}")
    kind: Any = kind_of(operand, kinds)
    if word == "abs":
        family = _family(operand, kinds)
        if family == _DATE:
            raise Misfit(f"{_description(operand)} is {kind}, and abs takes numbers")
        return Computation(Function.ABS, (_as(operand, family, kinds),), family)
    if pa.types.is_timestamp(kind):
        moment = column_of(operand)
        if kind.tz is not None:
            moment = Computation(Function.CAST, (moment,), pa.timestamp(kind.unit, "UTC"))
        day = Computation(Function.CAST, (moment,), _DATE)
    elif pa.types.is_date32(kind):
        return Computation(_OF_DATES[word], (column_of(operand),), _INTEGER)
    else:
        raise Misfit(f"{_description(operand)} is {kind}, and {word} takes a date or a timestamp")
    return Computation(_OF_DATES[word], (day,), _INTEGER)


def _of_texts(function: Function, arguments: Sequence[Operand], kinds: Kinds) -> Operand:
    for each in arguments:
        if isinstance(each, Literal) and each.value is None:
            return each
        if isinstance(each, Literal) and not isinstance(each.value, str):
            raise Misfit(f"{function} takes texts, and {str(each.value)[:40]!r} is none: write it in single quotes")
        if not isinstance(each, Literal) and not is_text(kind_of(each, kinds)):
            raise Misfit(f"{function} takes texts, and {_description(each)} is {kind_of(each, kinds)}")
    kind = _INTEGER if function is Function.LENGTH else _TEXT
    return Computation(function, tuple(_as(each, _TEXT, kinds) for each in arguments), kind)


def _substr(arguments: Sequence[Operand], kinds: Kinds) -> Operand:
    text, *places = arguments
    numbers = [each.value for each in places if isinstance(each, Literal) and type(each.value) is int]
    if len(numbers) != len(places) or not numbers or numbers[0] < 1 or numbers[-1] < 0:
        raise Misfit("substr takes a place from 1 on, and a length, both as numbers: substr(name, 1, 3)")
    start = numbers[0] - 1
    result = _of_texts(Function.SUBSTR, [text], kinds)
    if isinstance(result, Literal) or not isinstance(result, Computation):
        return result
    stop = pa.scalar(start + numbers[1] if len(numbers) > 1 else None, _INTEGER)
    return Computation(Function.SUBSTR, (*result.arguments, pa.scalar(start, _INTEGER), stop), _TEXT)


def _coalesced(arguments: Sequence[Operand], kinds: Kinds) -> Operand:
    if not arguments:
        raise Misfit("coalesce takes values")
    common = _common(arguments, kinds)
    if common is None:
        first = next(
            (each for each in arguments if isinstance(each, Literal) and each.value is not None), Literal(None)
        )
        return first
    return Computation(Function.COALESCE, tuple(_as(each, common, kinds) for each in arguments), common)


def choose(pairs: Sequence[tuple[Condition, Operand]], rest: Operand, kinds: Kinds) -> Operand:
    """CASE: the value of the first condition that is true.

    Raises:
        Misfit: the values have no type in common.
    """
    values = [*(value for _, value in pairs), rest]
    common = _common(values, kinds)
    if common is None:
        common = _common_of_literals([each.value for each in values if isinstance(each, Literal)])
    arguments: list[Any] = []
    for condition, value in pairs:
        arguments += [IsTruth(condition, True), _as(value, common, kinds)]
    return Computation(Function.CASE, (*arguments, _as(rest, common, kinds)), common)


def _common(values: Sequence[Operand], kinds: Kinds) -> pa.DataType | None:
    """The type of the columns among the values, which literals take; None: there is none among them."""
    result: pa.DataType | None = None
    for each in values:
        if isinstance(each, Literal):
            continue
        kind = kind_of(each, kinds)
        kind = _TEXT if is_text(kind) else kind
        if result is None or result == kind:
            result = kind
            continue
        numbers = [pa.types.is_integer(one) or pa.types.is_floating(one) for one in (result, kind)]
        if not all(numbers):
            raise Misfit(f"{result} and {kind} are not values of one type")
        result = _DOUBLE if pa.types.is_floating(result) or pa.types.is_floating(kind) else _INTEGER
    if result is not None and not typed_values.is_comparable(result):
        raise Misfit(f"{result} is not computed with")
    if result is not None and pa.types.is_integer(result):
        # Beside numbers with a point integers are doubles, as in every dialect.
        points = any(isinstance(each, Literal) and isinstance(each.value, Decimal | float) for each in values)
        return _DOUBLE if points else _INTEGER
    return result


def _common_of_literals(values: Sequence[Any]) -> pa.DataType:
    present = [each for each in values if each is not None]
    families = {
        str if isinstance(each, str) else bool if isinstance(each, bool) else int if isinstance(each, int) else float
        for each in present
    }
    if families <= {int, float} and families:
        return _DOUBLE if float in families else _INTEGER
    if len(families) > 1:
        raise Misfit("the values of CASE are not of one type")
    return _TEXT if families == {str} else pa.bool_()
