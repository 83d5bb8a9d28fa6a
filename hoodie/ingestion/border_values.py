"""The greatest value of a column up to which a database was read: as text, as SQL and as Arrow have it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError

NUMBER, TIME, TIME_WITH_ZONE, TEXT = "number", "time", "time with zone", "text"
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DATE = len("2024-01-01")
_EPOCH = datetime(1970, 1, 1)
_EXACT = Context(prec=80)
_TIME = re.compile(r"\d{4,}-\d\d-\d\d([ T][0-9:.]+)?([+-][0-9:]+|Z)?")


@dataclass(frozen=True)
class Border:
    text: str
    """As Apache Hudi's checkpoint has it; a time with a zone is in UTC, and says so."""
    kind: str

    @property
    def is_text(self) -> bool:
        return self.kind == TEXT

    @property
    def literal(self) -> str:
        """In SQL; of a text there is none, it is a parameter."""
        return self.text if self.kind == NUMBER else f"'{self.text}'"

    def back(self, by: float) -> Border:
        """What lies so far before it: seconds of a time.

        Raises:
            OptionError: it is a text.
        """
        if not by:
            return self
        if self.is_text:
            raise OptionError(f"look_back={by:g} has no meaning for a column of texts: take one of times or numbers")
        if self.kind == NUMBER:
            return Border(format(_EXACT.subtract(Decimal(self.text), Decimal(repr(by))).normalize(_EXACT), "f"), NUMBER)
        moment = datetime.fromisoformat(self.text) - timedelta(seconds=by)
        # Of a date the whole day: SQL and Arrow have to mean the same rows.
        return Border(str(moment.date() if len(self.text) == _DATE else moment), self.kind)

    def not_before(self, column: pa.ChunkedArray) -> Any:
        """Which values of the column are not before it."""
        if self.is_text:
            return pc.equal(column, pa.scalar(self.text, column.type))
        if self.kind == NUMBER:
            if pa.types.is_floating(column.type):
                return pc.greater_equal(column, pa.scalar(float(self.text), column.type))
            return pc.greater_equal(column, pa.scalar(Decimal(self.text)))
        moment = datetime.fromisoformat(self.text)
        if pa.types.is_date(column.type):
            column = pc.cast(column, pa.timestamp("s"))
        return pc.greater_equal(column, pa.scalar(moment, pa.timestamp("us", "UTC" if moment.tzinfo else None)))


def border_of(value: pa.Scalar, origin: str) -> Border:
    """Of a value of the column.

    Raises:
        OptionError: the column has no order that grows with what is written.
    """
    kind = value.type
    if pa.types.is_timestamp(kind):
        return _time(value)
    python_value: Any = value.as_py()
    if pa.types.is_date(kind):
        return Border(str(python_value), TIME)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Border(str(python_value), TEXT)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        number = Decimal(repr(python_value)) if isinstance(python_value, float) else Decimal(python_value)
        if number.is_finite():
            return Border(format(number.normalize(_EXACT), "f"), NUMBER)
    raise OptionError(
        f"{origin} has {python_value!r} of type {kind}: an incremental column has finite numbers, times or texts"
    )


def parse_border(text: str, kind: str) -> Border:
    """Of a checkpoint, which may be one of Apache Hudi's: there a time with a zone has none, and is taken as UTC.

    Raises:
        OptionError: the text is no such value.
    """
    if kind == NUMBER:
        try:
            return Border(format(Decimal(text.strip()), "f"), kind)
        except InvalidOperation:
            pass
    elif kind == TEXT:
        return Border(text, kind)
    elif _TIME.fullmatch(text):
        zoned = text if kind == TIME or re.search(r"[+-]\d\d(:?\d\d)?$|Z$", text[10:]) else f"{text}+00:00"
        return Border(zoned, kind)
    raise OptionError(
        f"the checkpoint {text!r} is not a {kind} as the incremental column is: another source, or another column, has been written "
        "to this table under the same name; give name="
    )


def _time(value: Any) -> Border:
    """By whole numbers: Python's times end at microseconds."""
    unit, zoned = value.type.unit, value.type.tz is not None
    seconds, rest = divmod(value.value, _UNITS[unit])
    digits = f"{rest:0{len(str(_UNITS[unit])) - 1}d}".rstrip("0") if rest else ""
    text = str(_EPOCH + timedelta(seconds=seconds)) + (f".{digits}" if digits else "")
    return Border(text + ("+00:00" if zoned else ""), TIME_WITH_ZONE if zoned else TIME)
