"""Instants: the points of the timeline, and ranges of them.

An instant time is text of 17 digits, `yyyyMMddHHmmssSSS` in the table's time zone; the 14-digit form of old tables
sorts as if `999` were appended: `InstantTime` compares so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from hoodie.errors import CorruptFileError
from hoodie.model.enums import Action, State

_SECONDS_DIGITS = 14
_MILLIS_DIGITS = 17

BOOTSTRAP_INSTANTS = ("00000000000001", "00000000000002")
"""Which are no moments: of a bootstrap, the first for what it leaves where it is, the second for what it copies."""


class InstantTime(str):
    """An instant time: a text that equals and hashes as its digits do, and is earlier or later than another one.

    A time of 14 digits is the last millisecond of its second. Beside a plain text it compares in the same way, on either side.
    """

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return _padded(self) < _padded(other)

    def __le__(self, other: str) -> bool:
        return _padded(self) <= _padded(other)

    def __gt__(self, other: str) -> bool:
        return _padded(self) > _padded(other)

    def __ge__(self, other: str) -> bool:
        return _padded(self) >= _padded(other)

    @property
    def padded(self) -> str:
        """As a plain text that sorts as the time does: for columns of texts, and as a number."""
        return _padded(self)


def _padded(time: str) -> str:
    return time + "999" if len(time) == _SECONDS_DIGITS else str(time)


def is_instant_time(text: str) -> bool:
    """Whether the text has the form of an instant time (metadata tables use longer ones; those count too)."""
    return text.isascii() and text.isdigit() and len(text) >= _SECONDS_DIGITS


def format_instant(when: datetime) -> InstantTime:
    """17 digits of a wall clock time; the caller has put it into the table's zone."""
    return InstantTime(when.strftime("%Y%m%d%H%M%S").zfill(_SECONDS_DIGITS) + f"{when.microsecond // 1000:03d}")


def parse_instant(time: str, zone: tzinfo = UTC) -> datetime:
    """The moment of an instant time, to the millisecond.

    Raises:
        CorruptFileError: its digits are none, such as 61 seconds.
    """
    padded = _padded(time)[:_MILLIS_DIGITS]
    try:
        moment = datetime.strptime(padded[:_SECONDS_DIGITS], "%Y%m%d%H%M%S") + timedelta(
            milliseconds=int(padded[_SECONDS_DIGITS:])
        )
    except ValueError as exc:
        raise CorruptFileError(f"instant {time} is not a time: `hoodie doctor` names its file") from exc
    return moment.replace(tzinfo=zone)


def hours_before(time: str, hours: int) -> InstantTime:
    """The instant so long before another one; not before the calendar begins, however long it is."""
    moment = parse_instant(time)
    most = (moment - datetime.min.replace(tzinfo=moment.tzinfo)) // timedelta(hours=1)
    return format_instant(moment - timedelta(hours=min(hours, most)))


def next_instant(now: datetime, latest: str | None) -> InstantTime:
    """The instant time of `now`, or one millisecond after `latest` when the clock is not past it."""
    mine = format_instant(now)
    if latest is None or mine > latest:
        return mine
    return format_instant(parse_instant(latest) + timedelta(milliseconds=1))


class Instant(NamedTuple):
    """One instant in the furthest state it has reached. A completed compaction is a `commit`, as stored."""

    time: InstantTime
    """When it was requested: what names its files, and what its rows have as `_hoodie_commit_time`."""
    action: Action
    state: State
    completion: InstantTime | None = None
    """When it was completed. Timeline layout 2 (table versions 8 and 9) only; layout 1 does not state it."""

    @property
    def position(self) -> InstantTime:
        """Where a completed instant lies for incremental ranges: its completion time where stated, else its own time."""
        return self.completion or self.time

    @property
    def is_completed(self) -> bool:
        """Whether what the instant did is visible."""
        return self.state is State.COMPLETED

    def __str__(self) -> str:
        return f"{self.time}.{self.action}" + ("" if self.is_completed else f".{self.state}")


@dataclass(frozen=True)
class InstantRange:
    """Instant times in (begin, end]; None leaves an end open."""

    begin: InstantTime | None = None
    end: InstantTime | None = None
    only: frozenset[str] | None = None
    """Where set: of these only those in the set. Commits that overlap complete in another order than they are requested,
    so that a range of completion times is no range of commit times (table versions 8 and 9)."""

    def contains(self, time: str) -> bool:
        """Whether an instant time lies in the range."""
        if self.only is not None and time not in self.only:
            return False
        return (self.begin is None or time > self.begin) and (self.end is None or time <= self.end)


@dataclass(frozen=True)
class VisibleInstants:
    """Which instants' data a reader counts; small and picklable, for tasks that never see the timeline."""

    completed: frozenset[str]
    pending: frozenset[str]
    start: InstantTime | None
    """Where the active timeline begins; older instants were archived, and only completed ones are."""
    until: InstantTime | None = None
    """Later instants are not seen (as-of and incremental reads)."""
    since: InstantTime | None = None
    """Log blocks up to this instant are not seen either: an incremental read merges only those of its range onto the base
    file, as Hudi's does (golden table v6_mor_logs: a late row that lost against an earlier log is pulled)."""
    only: frozenset[str] | None = None
    """Where set: of these only those in the set, as in `InstantRange`."""

    def sees(self, time: str) -> bool:
        if self.only is not None and time not in self.only:
            return False
        if self.since is not None and time <= self.since:
            return False
        if self.until is not None and time > self.until:
            return False
        if time in self.completed:
            return True
        return time not in self.pending and self.start is not None and time < self.start
