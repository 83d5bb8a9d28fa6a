"""Points in time as users name them -> instant times.

Wall clock without an offset is that of the table's timeline: of UTC or of the process's own time zone, as
`hoodie.table.timeline.timezone` says. What has an offset, or counts back from now, is converted to it.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from hoodie.errors import OptionError
from hoodie.model.instant import (
    BOOTSTRAP_INSTANTS,
    Instant,
    InstantTime,
    format_instant,
    is_instant_time,
    parse_instant,
)
from hoodie.model.results import CommitResult, Savepoint

Moment = str | date | CommitResult | Instant | Savepoint | int
"""What `as_of`, `since`, `until`, `restore` and all others take that mean a moment. A `datetime` is a `date`, and a pandas Timestamp
is a `datetime`. -1 is the newest commit, -2 the one before it (`timeline/moments.py`)."""

BEGINNING = InstantTime("000")
"""Sorts before every instant."""

_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?", re.ASCII
)
_AGO = re.compile(r"((?:(?:\d{1,9}|an?)\s*[a-z]+\s+)+)ago", re.ASCII)
_PART = re.compile(r"(\d+|an?)\s*([a-z]+)", re.ASCII)
_UNITS = {
    "seconds": ("s", "sec", "secs", "second", "seconds"),
    "minutes": ("m", "min", "mins", "minute", "minutes"),
    "hours": ("h", "hr", "hrs", "hour", "hours"),
    "days": ("d", "day", "days"),
    "weeks": ("w", "week", "weeks"),
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
_FORMS = (
    "17 or 14 digits (yyyyMMddHHmmss[SSS]), yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS], ISO 8601, "
    "'2 hours ago', 'today' or 'yesterday'"
)


def parse_instant_option(
    value: object, *, name: str, zone: tzinfo | None = UTC, now: datetime | None = None
) -> InstantTime:
    """The instant time that a value stands for: 14 or 17 digits.

    Digits are taken as they are. A date is its first millisecond, a time without a fraction the first of its second;
    finer fractions are cut. Of a commit's result, or an instant of the timeline, it is the instant time.

    Args:
        name: of the option or argument, for the message.
        zone: the timeline's; None: the process's own, with its summer time as it was at each moment.
        now: what "ago" counts from; with an offset.

    Raises:
        OptionError: no known form, or no date of the calendar.
    """
    if isinstance(value, CommitResult | Instant | Savepoint):
        return _of_commit(value, name, value.time if isinstance(value, Instant) else value.instant)
    if isinstance(value, date):
        moment = _of_date(value, zone)
        if moment is None:
            raise OptionError(f"{name}={value!r} is not a point in time")
        return format_instant(moment)
    if type(value).__module__ == "numpy" and hasattr(value, "item"):  # datetime64, to the microsecond
        return parse_instant_option(
            value.astype("datetime64[us]").item() if hasattr(value, "astype") else value.item(),
            name=name,
            zone=zone,
            now=now,
        )
    if not isinstance(value, str):
        raise OptionError(
            f"{name}={value!r} is a {type(value).__name__}: give the instant as text, a datetime or date, the result of a commit, "
            f"an instant of `history()`, a savepoint, or -1 for the newest; as text {_FORMS}"
        )
    text = value.strip()
    if (is_instant_time(text) and len(text) in {14, 17} and _is_date(text)) or text in BOOTSTRAP_INSTANTS:
        return InstantTime(text)
    parsed_moment = _of_text(text, zone, now or datetime.now(UTC))
    if parsed_moment is None:
        raise OptionError(f"option {name}={value!r} is not an instant, expected {_FORMS}")
    return format_instant(parsed_moment)


def parse_begin_option(
    value: object, *, name: str, zone: tzinfo | None = UTC, now: datetime | None = None
) -> InstantTime:
    """As `parse_position_option`; also `earliest` and zeros only, for the beginning of the timeline."""
    if isinstance(value, str):
        text = value.strip()
        if text.lower() == "earliest" or (text and not text.strip("0")):
            return BEGINNING
    return parse_position_option(value, name=name, zone=zone, now=now)


def parse_position_option(
    value: object, *, name: str, zone: tzinfo | None = UTC, now: datetime | None = None
) -> InstantTime:
    """As `parse_instant_option`, for an end of an incremental range: of a commit it is its position."""
    if isinstance(value, CommitResult | Instant):
        return _of_commit(value, name, value.position)
    return parse_instant_option(value, name=name, zone=zone, now=now)


def _of_commit(value: CommitResult | Instant | Savepoint, name: str, time_: str | None) -> InstantTime:
    if time_ is None:
        raise OptionError(
            f"{name} is the result of a write that had nothing to do ({value}): it has no instant, take an earlier result"
        )
    return InstantTime(time_)


def _is_date(digits: str) -> bool:
    try:
        parse_instant(digits)
    except (ValueError, OverflowError):
        return False
    return True


def _of_date(value: date, zone: tzinfo | None) -> datetime | None:
    """The wall clock of the timeline; None for what is no time (NaT)."""
    if not isinstance(value, datetime):
        return datetime.combine(value, time())
    if value != value:  # noqa: PLR0124 - pandas' NaT is a datetime that differs from itself
        return None
    return _in_zone(value, zone)


def _in_zone(moment: datetime, zone: tzinfo | None) -> datetime | None:
    try:
        return moment if moment.tzinfo is None else moment.astimezone(zone)
    except OverflowError:
        return None


def _of_text(text: str, zone: tzinfo | None, now: datetime) -> datetime | None:
    words = text.lower()
    days_back = {"now": None, "today": 0, "yesterday": 1}
    if words in days_back:
        here, back = now.astimezone(zone), days_back[words]
        return here if back is None else datetime.combine(here.date() - timedelta(days=back), time())
    try:
        if _DATE_TIME.fullmatch(text):
            return _in_zone(datetime.fromisoformat(text), zone)
        ago = _AGO.fullmatch(words)
        return None if ago is None else (now - _length(ago[1])).astimezone(zone)
    except (ValueError, OverflowError, KeyError):
        return None


def _length(text: str) -> timedelta:
    """Of "1 hour 30 minutes"; a day is 24 hours. Raises KeyError for a unit that there is not."""
    amounts: dict[str, Any] = {}
    for count, word in _PART.findall(text):
        unit = _UNIT_OF[word]
        amounts[unit] = amounts.get(unit, 0) + (int(count) if count.isdigit() else 1)
    return timedelta(**amounts)
