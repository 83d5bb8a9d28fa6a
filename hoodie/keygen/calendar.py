"""Days, dates and time zones as Java's libraries count them: years of any size, and of both calendars.

Python's own dates end at the years 1 and 9999; a column of numbers, read as a time in the wrong unit, soon leaves them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

DAY_MS = 86_400_000
_CYCLE_DAYS = 146_097
"""Days of 400 years: after them dates and weekdays are the same again."""
_CYCLE_S = _CYCLE_DAYS * 86_400
_LAST_PLAIN_S = 251_000_000_000
"""Seconds since 1970, in the year 9923: later ones are moved back by whole cycles before their offset is looked up."""
_FIRST_PLAIN_S = -62_000_000_000
"""In the year 5: zones have had one offset up to then."""
_JULIAN_UNTIL = -141_427
"""1582-10-15 in days since 1970: `java.sql.Timestamp` names the days before it by the Julian calendar."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIXED = re.compile(r"GMT([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date of the proleptic Gregorian calendar; there is a year 0."""
    year -= month <= 2
    cycle, of_cycle = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return cycle * _CYCLE_DAYS + of_cycle * 365 + of_cycle // 4 - of_cycle // 100 + of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """(year, month, day) of days since 1970-01-01."""
    cycle, rest = divmod(days + 719_468, _CYCLE_DAYS)
    of_cycle = (rest - rest // 1460 + rest // 36_524 - rest // 146_096) // 365
    of_year = rest - (365 * of_cycle + of_cycle // 4 - of_cycle // 100)
    shifted = (5 * of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return cycle * 400 + of_cycle + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def days_in_month(year: int, month: int) -> int:
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    return days_from_civil(*following, 1) - days_from_civil(year, month, 1)


def iso_week(days: int) -> tuple[int, int]:
    """(week-based year, week) of days since 1970-01-01."""
    thursday = days + 4 - weekday(days)
    year = civil_from_days(thursday)[0]
    return year, (thursday - days_from_civil(year, 1, 1)) // 7 + 1


def weekday(days: int) -> int:
    """1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def sql_timestamp(millis: int) -> str:
    """`java.sql.Timestamp.toString` in UTC: `2024-01-02 03:04:05.678`, no zero at the end but for `.0`.

    Days before 1582-10-15 have their Julian dates, years before the first count backwards without a sign.
    """
    days, of_day = divmod(millis, DAY_MS)
    year, month, day = civil_from_days(days) if days >= _JULIAN_UNTIL else _julian_from_days(days)
    of_second = f"{of_day % 1000:03d}".rstrip("0") or "0"
    seconds = of_day // 1000
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{of_second}"
    return f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d} {clock}"


def _julian_from_days(days: int) -> tuple[int, int, int]:
    """The same of the Julian calendar, whose leap years are every fourth; year 0 is 1 BC."""
    cycle, rest = divmod(days + 719_470, 1461)
    of_cycle = min(rest // 365, 3)
    of_year = rest - 365 * of_cycle
    shifted = (5 * of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return cycle * 4 + of_cycle + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


@dataclass(frozen=True)
class Zone:
    """A time zone: of a fixed offset, or of the IANA database."""

    name: str
    """As Joda-Time writes it: `Europe/Berlin`, `UTC`, `+08:00`."""
    fixed_s: int | None = None
    """Seconds east of Greenwich where they never change."""

    def offset_s(self, instant_s: int) -> int:
        """Seconds east of Greenwich at an instant, given in seconds since 1970."""
        if self.fixed_s is not None:
            return self.fixed_s
        if instant_s > _LAST_PLAIN_S:
            instant_s -= -(-(instant_s - _LAST_PLAIN_S) // _CYCLE_S) * _CYCLE_S
        at = _EPOCH + timedelta(seconds=max(instant_s, _FIRST_PLAIN_S))
        return round((at.astimezone(_region(self.name)).utcoffset() or timedelta()).total_seconds())

    def offset_of_local_s(self, local_s: int) -> int:
        """The offset that a clock on the wall had; of two that are possible the one of the earlier instant.

        Raises:
            ValueError: no clock ever showed this time: it lies in the gap when clocks are put forward.
        """
        around = {self.offset_s(local_s - 86_400), self.offset_s(local_s + 86_400)}
        fitting = [offset for offset in around if self.offset_s(local_s - offset) == offset]
        if not fitting:
            raise ValueError(f"no clock in {self.name} ever showed it: clocks were put forward over it")
        return max(fitting)


UTC_ZONE = Zone("UTC", 0)


def zone_named(name: str) -> Zone:
    """The zone of a name that Java knows: `UTC`, `GMT+8`, `GMT-03:30`, `Europe/Berlin`.

    Raises:
        ValueError: there is no such zone. (Java takes UTC for it without a word.)
    """
    if name in {"UTC", "GMT"}:
        return UTC_ZONE
    match = _FIXED.fullmatch(name)
    if match and int(match[2]) <= 23:
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        return fixed_zone(-60 * minutes if match[1] == "-" else 60 * minutes)
    try:
        _region(name)
    except (OSError, ValueError, LookupError):
        raise ValueError(f"{name!r} is not a time zone; name one as UTC, Europe/Berlin or GMT+8") from None
    return Zone(name)


def fixed_zone(seconds: int) -> Zone:
    if not seconds:
        return UTC_ZONE
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return Zone(f"{'-' if seconds < 0 else '+'}{hours:02d}:{minutes:02d}", seconds)


@cache
def _region(name: str) -> ZoneInfo:
    return ZoneInfo(name)
