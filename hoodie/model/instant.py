"""Instants: the points of the timeline, and ranges of them.

An instant time is text of 17 digits, `yyyyMMddHHmmssSSS` in the table's time zone; the 14-digit form of old tables
sorts as if `999` were appended. Instant times compare as strings after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from hoodie.errors import CorruptFileError
from hoodie.model.enums import Action, State

_SECONDS_DIGITS = 14
_MILLIS_DIGITS = 17


def sort_key(time: str) -> str:
    """The text by which an instant time sorts: 14-digit times are the last millisecond of their second."""
    return time + "999" if len(time) == _SECONDS_DIGITS else time


def is_instant_time(text: str) -> bool:
    """Whether the text has the form of an instant time (metadata tables use longer ones; those count too)."""
    return text.isascii() and text.isdigit() and len(text) >= _SECONDS_DIGITS


def format_instant(when: datetime) -> str:
    """17 digits of a wall clock time; the caller has put it into the table's zone."""
    return when.strftime("%Y%m%d%H%M%S").zfill(_SECONDS_DIGITS) + f"{when.microsecond // 1000:03d}"


def parse_instant(time: str, zone: tzinfo = UTC) -> datetime:
    """The moment of an instant time, to the millisecond.

    Raises:
        CorruptFileError: its digits are none, such as 61 seconds.
    """
    padded = sort_key(time)[:_MILLIS_DIGITS]
    try:
        moment = datetime.strptime(padded[:_SECONDS_DIGITS], "%Y%m%d%H%M%S") + timedelta(
            milliseconds=int(padded[_SECONDS_DIGITS:])
        )
    except ValueError as exc:
        raise CorruptFileError(f"instant {time} is no moment in time: `hoodie doctor` names its file") from exc
    return moment.replace(tzinfo=zone)


def hours_before(time: str, hours: int) -> str:
    """The instant so long before another one; not before the calendar begins, however long it is."""
    moment = parse_instant(time)
    most = (moment - datetime.min.replace(tzinfo=moment.tzinfo)) // timedelta(hours=1)
    return format_instant(moment - timedelta(hours=min(hours, most)))


def next_instant(now: datetime, latest: str | None) -> str:
    """The instant time of `now`, or one millisecond after `latest` when the clock is not past it."""
    mine = format_instant(now)
    if latest is None or mine > sort_key(latest):
        return mine
    return format_instant(parse_instant(latest) + timedelta(milliseconds=1))


class Instant(NamedTuple):
    """One instant in the furthest state it has reached. A completed compaction is a `commit`, as stored."""

    time: str
    """When it was requested: what names its files, and what its rows have as `_hoodie_commit_time`."""
    action: Action
    state: State
    completion: str | None = None
    """When it was completed. Timeline layout 2 (table versions 8 and 9) only; layout 1 does not state it."""

    @property
    def position(self) -> str:
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

    begin: str | None = None
    end: str | None = None
    only: frozenset[str] | None = None
    """Where set: of these only those in the set. Commits that overlap complete in another order than they are requested,
    so that a range of completion times is no range of commit times (table versions 8 and 9)."""

    def contains(self, time: str) -> bool:
        """Whether an instant time lies in the range."""
        if self.only is not None and time not in self.only:
            return False
        key = sort_key(time)
        return (self.begin is None or key > sort_key(self.begin)) and (self.end is None or key <= sort_key(self.end))


@dataclass(frozen=True)
class VisibleInstants:
    """Which instants' data a reader counts; small and picklable, for tasks that never see the timeline."""

    completed: frozenset[str]
    pending: frozenset[str]
    start: str | None
    """Where the active timeline begins; older instants were archived, and only completed ones are."""
    until: str | None = None
    """Later instants are not seen (as-of and incremental reads)."""
    since: str | None = None
    """Log blocks up to this instant are not seen either: an incremental read merges only those of its range onto the base
    file, as Hudi's does (golden table v6_mor_logs: a late row that lost against an earlier log is pulled)."""
    only: frozenset[str] | None = None
    """Where set: of these only those in the set, as in `InstantRange`."""

    def sees(self, time: str) -> bool:
        if self.only is not None and time not in self.only:
            return False
        if self.since is not None and sort_key(time) <= sort_key(self.since):
            return False
        if self.until is not None and sort_key(time) > sort_key(self.until):
            return False
        if time in self.completed:
            return True
        return time not in self.pending and self.start is not None and sort_key(time) < sort_key(self.start)
