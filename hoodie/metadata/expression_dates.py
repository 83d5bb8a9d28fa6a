"""Times as Spark formats them, and the time zone of a process."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute
_PARTS = re.compile(r"'(?P<quoted>[^']*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<plain>[^A-Za-z'\[\]{}#]+)")
_LOCAL_TIME = Path("/etc/localtime")
_ZONES = "zoneinfo/"
_FIXED = ("UTC", "GMT", "Z")
_KNOWN_UNTIL_US = 2_114_380_800_000_000
"""2037-01-01, the last year of which files of time zones say each change."""


def local_zone() -> str | None:
    """The time zone of this process, by the name that the IANA database has for it; None: it has none here."""
    setting = os.environ.get("TZ", "").removeprefix(":")
    if not setting and not _LOCAL_TIME.exists():
        return "UTC"
    # A copy of a zone's file does not tell its name.
    return (setting or str(_LOCAL_TIME.resolve())).rpartition(_ZONES)[2].removeprefix(str(_LOCAL_TIME)) or None


def in_zone(values: Any, zone: str | None) -> Any:
    """Timestamps as a clock in the zone shows them; what has no zone is as it stands.

    Raises:
        ValueError: the zone is not known, or Arrow does not know how clocks are changed then.
    """
    if values.type.tz is None:
        return values
    if zone is None:
        raise ValueError("the time zone of this process has no name here: say hoodie.python.index.expression.timezone")
    if zone not in _FIXED and not zone.startswith("Etc/"):
        latest = pc.max(values).cast(pa.timestamp("us", "UTC")).cast(pa.int64()).as_py()
        if latest is not None and latest >= _KNOWN_UNTIL_US:
            raise ValueError(f"a time after 2036 in {zone}, whose clocks may change: have the values of UTC")
    return pc.local_timestamp(values.cast(pa.timestamp(values.type.unit, zone)))


def formatted(moments: Any, pattern: str) -> Any:
    """Timestamps without a zone as texts, by a pattern of Java.

    Raises:
        ValueError: the pattern has letters that are not known here, or a year has not four digits.
    """
    pieces, at = [], 0
    while at < len(pattern):
        part = _PARTS.match(pattern, at)
        if part is None:
            raise ValueError(f"{pattern[at]!r} in format {pattern!r} is not known")
        at = part.end()
        if part["letters"]:
            piece = _LETTERS.get(part["letters"])
            if piece is None:
                raise ValueError(f"{part['letters']!r} in format {pattern!r} is not known")
            pieces.append(piece(moments))
        else:
            text = part["plain"] if part["quoted"] is None else part["quoted"] or "'"
            pieces.append(pa.scalar(text, pa.string()))
    texts = pc.binary_join_element_wise(*pieces, pa.scalar("", pa.string()))
    return pc.if_else(moments.is_valid(), texts, pa.scalar(None, pa.string()))


def _number(of: Callable[[Any], Any], width: int, moments: Any) -> Any:
    return pc.utf8_lpad(of(moments).cast(pa.string()), width, padding="0")


def _year(moments: Any) -> Any:
    years = pc.year(moments)
    if pc.any(pc.or_(pc.less(years, 1), pc.greater(years, 9999))).as_py():
        raise ValueError("a year before 1 or after 9999")
    return pc.utf8_lpad(years.cast(pa.string()), 4, padding="0")


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    **{"M": pc.month, "d": pc.day, "H": pc.hour, "m": pc.minute, "s": pc.second},
}
_LETTERS: Mapping[str, Callable[[Any], Any]] = {
    "yyyy": _year,
    "SSS": partial(_number, pc.millisecond, 3),
    **{letter * width: partial(_number, of, width) for letter, of in _FIELDS.items() for width in (1, 2)},
}
