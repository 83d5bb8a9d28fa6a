"""Values of the expressions that expression indexes are of: those that Spark 3.5 gives.

Functions of days and hours read a timestamp by the clock of a time zone, as Spark does by that of its session: the values of all
writers have to be of one. Where Spark's value is not known here, it is an error, and the index is not kept up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.metadata.expression_dates import formatted, in_zone

pc: Any = pyarrow.compute
IDENTITY = "identity"
_FROM_SECONDS, _SECONDS = "from_unixtime", "unix_timestamp"
_OF_MOMENTS = (IDENTITY, _SECONDS)
"""Functions of timestamps that need no clock."""
_DATE, _INT, _LONG, _TEXT = pa.date32(), pa.int32(), pa.int64(), pa.string()
_DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"
_DAY = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_LOOKS_LIKE_A_DAY = r"\A\s*[+-]?[0-9]"
_LAST_CODE_POINT = 0x10FFFF
_SIGMA = "Σ"
_SECOND_US = 1_000_000


@dataclass(frozen=True)
class Expression:
    """A function of one column. `options`: of the index, without those of a bloom filter."""

    function: str
    column: str
    options: Mapping[str, str]
    zone: str | None
    """Of timestamps, as the IANA database names it; None: it has no name here."""

    def __str__(self) -> str:
        return (
            f"{self.function}({', '.join([self.column, *(f'{key}={text!r}' for key, text in self.options.items())])})"
        )

    def of(self, values: Any) -> Any:
        """The expression's values for the column's; null for null.

        Raises:
            UnsupportedTableError: they cannot be computed as Spark does.
        """
        function = _FUNCTIONS.get(self.function)
        if function is None:
            raise UnsupportedTableError(f"{self} is not computed outside of Spark")
        make, options = function
        strange = self.options.keys() - options
        if strange:
            raise UnsupportedTableError(f"{self.function} has no option {sorted(strange)[0]!r}")
        try:
            result = make(self, values)
        except (pa.ArrowException, ValueError, KeyError) as exc:
            raise UnsupportedTableError(f"{self} cannot be computed outside of Spark: {exc}") from exc
        return result

    def kind_of(self, kind: pa.DataType) -> pa.DataType:
        """The type of its values for a column of this type; raises as `of`."""
        result: pa.DataType = self.of(pa.array([], kind)).type
        return result

    def goes_by_clock(self, kind: pa.DataType) -> bool:
        """Whether the values for a column of this type depend on the time zone."""
        is_moment = pa.types.is_timestamp(kind) and kind.tz is not None
        return self.function == _FROM_SECONDS or (is_moment and self.function not in _OF_MOMENTS)

    def number(self, option: str) -> int:
        return int(self.options[option])


# -- texts -------------------------------------------------------------------------------------------------------------


def _texts(values: Any) -> Any:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise ValueError(f"a column of type {values.type} is no text")
    return values.cast(_TEXT)


def _cased(expression: Expression, values: Any) -> Any:
    texts = _texts(values)
    upper = expression.function == "upper"
    result = (pc.utf8_upper if upper else pc.utf8_lower)(texts)
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return result
    is_odd = pc.match_substring_regex(texts, _odd_letters(upper=upper)).fill_null(False)
    if not pc.any(is_odd).as_py():
        return result
    # Over distinct values: few letters become several, or others at the end of a word.
    odd = texts.filter(is_odd).dictionary_encode()
    spelled = [text.upper() if upper else _lower(text) for text in odd.dictionary.to_pylist()]
    return pc.replace_with_mask(result, is_odd, pa.array(spelled, _TEXT).take(odd.indices))


def _lower(text: str) -> str:
    """Java and Python agree on where a word ends with a sigma, unless something else than letters is in it."""
    for at, letter in enumerate(text):
        beside = (text[max(at - 1, 0) : at], text[at + 1 : at + 2]) if letter == _SIGMA else ()
        if any(each and not each.isspace() and each.lower() == each.upper() for each in beside):
            raise ValueError(f"where a word ends in {text!r} is not known")
    return text.lower()


@lru_cache(2)
def _odd_letters(*, upper: bool) -> str:
    """A pattern of the letters that Arrow changes one by one, and Java by rules of their own."""
    letters = [chr(each) for each in range(_LAST_CODE_POINT + 1) if not 0xD800 <= each < 0xE000]
    own = [each.upper() if upper else each.lower() for each in letters]
    by_arrow = (pc.utf8_upper if upper else pc.utf8_lower)(pa.array(letters, _TEXT))
    is_odd = pc.not_equal(by_arrow, pa.array(own, _TEXT)).to_pylist()
    odd_letters = [letter for letter, odd in zip(letters, is_odd, strict=True) if odd]
    return f"[{''.join([*odd_letters, '' if upper else _SIGMA])}]"


def _trimmed(cut: Callable[..., Any], expression: Expression, values: Any) -> Any:
    return cut(_texts(values), characters=expression.options.get("trimString", " "))


def _substring(expression: Expression, values: Any) -> Any:
    texts, start, length = _texts(values), expression.number("pos"), expression.number("len")
    if length <= 0:
        return pc.utf8_slice_codeunits(texts, 0, 0)
    if start >= 0:
        first = max(start - 1, 0)
        return pc.utf8_slice_codeunits(texts, first, first + length)
    stop = start + length
    return pc.utf8_slice_codeunits(texts, start, stop if stop < 0 else None)


# -- days and times ----------------------------------------------------------------------------------------------------


def _moments(expression: Expression, values: Any) -> Any:
    """Timestamps by the clock of the zone, without one."""
    if not pa.types.is_timestamp(values.type):
        raise ValueError(f"a column of type {values.type} has no times")
    return in_zone(values, expression.zone)


def _days(expression: Expression, values: Any) -> Any:
    if pa.types.is_date32(values.type):
        return values
    return pc.floor_temporal(_moments(expression, values), unit="day").cast(_DATE)


def _part_of_day(of: Callable[[Any], Any], expression: Expression, values: Any) -> Any:
    return of(_days(expression, values)).cast(_INT)


def _hour(expression: Expression, values: Any) -> Any:
    if pa.types.is_date32(values.type):
        return pc.multiply(values.cast(_INT), pa.scalar(0, _INT))
    return pc.hour(_moments(expression, values)).cast(_INT)


def _date_format(expression: Expression, values: Any) -> Any:
    pattern = expression.options["format"]
    if pa.types.is_date32(values.type):
        return formatted(values.cast(pa.timestamp("s")), pattern)
    return formatted(_moments(expression, values), pattern)


def _from_unixtime(expression: Expression, values: Any) -> Any:
    if not pa.types.is_integer(values.type):
        raise ValueError(f"a column of type {values.type} has no whole seconds")
    moments = values.cast(_LONG).cast(pa.timestamp("s", "UTC"))
    return formatted(in_zone(moments, expression.zone), expression.options.get("format", _DEFAULT_FORMAT))


def _unix_timestamp(expression: Expression, values: Any) -> Any:
    if not (pa.types.is_timestamp(values.type) and values.type.tz):
        raise ValueError(f"seconds of a column of type {values.type} are not known")
    # Toward zero: before 1970 as Spark has it.
    return pc.divide(values.cast(pa.timestamp("us", "UTC")).cast(_LONG), _SECOND_US)


def _to_date(expression: Expression, values: Any) -> Any:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return _days(expression, values)
    pattern = expression.options.get("format", "yyyy-MM-dd")
    if pattern != "yyyy-MM-dd":
        raise ValueError(f"days are read as yyyy-MM-dd alone, not as {pattern!r}")
    is_day = pc.match_substring_regex(values, _DAY).fill_null(True)
    is_other = pc.match_substring_regex(values, _LOOKS_LIKE_A_DAY if "format" not in expression.options else "")
    strange = values.filter(pc.and_not(is_other.fill_null(False), is_day))
    if len(strange):
        raise ValueError(f"{strange[0].as_py()!r} is a day in another form")
    days = pc.if_else(is_day, values, pa.scalar(None, values.type))
    dates = pc.strptime(days, format="%Y-%m-%d", unit="s", error_is_null=True).cast(_DATE)
    # A day beyond the end of its month is none, and Arrow takes it for one of the next month.
    return pc.if_else(pc.equal(dates.cast(_TEXT), days), dates, pa.scalar(None, _DATE))


def _moved(sign: int, expression: Expression, values: Any) -> Any:
    days = _days(expression, values).cast(_INT)
    return pc.add_checked(days, pa.scalar(sign * expression.number("days"), _INT)).cast(_DATE)


_OF_DAYS = {"year": pc.year, "month": pc.month, "day": pc.day}
_FUNCTIONS: Mapping[str, tuple[Callable[[Expression, Any], Any], frozenset[str]]] = {
    IDENTITY: (lambda _, values: values, frozenset()),
    "upper": (_cased, frozenset()),
    "lower": (_cased, frozenset()),
    "trim": (partial(_trimmed, pc.utf8_trim), frozenset({"trimString"})),
    "ltrim": (partial(_trimmed, pc.utf8_ltrim), frozenset({"trimString"})),
    "rtrim": (partial(_trimmed, pc.utf8_rtrim), frozenset({"trimString"})),
    "length": (lambda _, values: pc.utf8_length(_texts(values)), frozenset()),
    "substring": (_substring, frozenset({"pos", "len"})),
    **{name: (partial(_part_of_day, of), frozenset()) for name, of in _OF_DAYS.items()},
    "hour": (_hour, frozenset()),
    "date_format": (_date_format, frozenset({"format"})),
    _FROM_SECONDS: (_from_unixtime, frozenset({"format"})),
    _SECONDS: (_unix_timestamp, frozenset()),
    "to_date": (_to_date, frozenset({"format"})),
    "date_add": (partial(_moved, 1), frozenset({"days"})),
    "date_sub": (partial(_moved, -1), frozenset({"days"})),
}
"""What makes the values, and the options that it knows."""
