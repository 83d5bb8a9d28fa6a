"""Instant times: allotted strictly increasing, and never ahead of the storage's clock once data is published."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from hoodie.errors import LockError
from hoodie.model.instant import BOOTSTRAP_INSTANTS, InstantTime, format_instant, next_instant, parse_instant

_LONGEST_PAUSE_S = 0.05
MAX_COMMIT_WAIT_S = 120.0
"""A clock that stands further back than this behind the timeline is wrong; waiting would look like a hang."""


def zone_of(timezone_name: str) -> tzinfo | None:
    """The zone of `hoodie.table.timeline.timezone`: UTC, or None for the process's local time."""
    return UTC if timezone_name.upper() == "UTC" else None


class Clock:
    """Allots instants in one table's time zone from the storage's clock. `sleep` is injectable for tests."""

    def __init__(
        self, now_s: Callable[[], float], zone: tzinfo | None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._now_s = now_s
        self._zone = zone
        self._sleep = sleep

    def allot(self, latest: str | None) -> InstantTime:
        """An instant time above `latest`; call it under the table lock, create the requested file before release.

        Raises:
            LockError: the timeline is further ahead of the clock than a commit may wait.
        """
        allotted = next_instant(self._wall(), latest)
        ahead_s = self._ahead_s(allotted)
        if ahead_s > MAX_COMMIT_WAIT_S:
            raise LockError(
                f"the newest instant {latest} lies {ahead_s:.0f} s ahead of the storage's clock: set the clock right if it is "
                "wrong; if the instant is, `hoodie doctor` says how to undo it"
            )
        return allotted

    def now(self) -> InstantTime:
        """The time of the storage's clock, as an instant."""
        return format_instant(self._wall())

    def pause(self, seconds: float) -> None:
        """Wait for somebody else; as `sleep` was given."""
        self._sleep(seconds)

    def wait_until_passed(self, instant_time: str, *, step_s: float = 0.0) -> None:
        """Commit wait: return when the storage's clock, told in such steps, is past the instant.

        Apache Hudi 1.x takes the modification time of a completed file as its completion time; were that below the
        instant itself, its readers would put log files into the wrong file slice.

        Raises:
            LockError: the clock was set back so far that waiting would look like a hang.
        """
        waited_s = 0.0
        while (ahead_s := self._ahead_s(instant_time, step_s)) >= 0:
            if waited_s > MAX_COMMIT_WAIT_S:
                raise LockError(
                    f"the storage's clock was set back while instant {instant_time} was written, and stands {ahead_s:.0f} s "
                    "behind it; nothing of this write is visible. Set the clock right and run it again"
                )
            pause_s = min(ahead_s + 0.001, _LONGEST_PAUSE_S)
            self._sleep(pause_s)
            waited_s += pause_s

    def ahead_of(self, moment_s: float, instant_time: str) -> bool:
        """Whether a moment (seconds since the epoch) lies before the instant."""
        return self._behind_s(moment_s, instant_time) > 0

    def age_s(self, instant_time: str) -> float:
        """Seconds from the instant until now."""
        return -self._ahead_s(instant_time)

    def is_far_ahead(self, instant_time: str) -> bool:
        """Whether the clock will not reach the instant within the time that a commit may wait."""
        return self._ahead_s(instant_time) > MAX_COMMIT_WAIT_S

    def wall(self, moment_s: float) -> datetime:
        """A moment in seconds since the epoch, as a wall clock in the table's zone shows it."""
        return self._in_zone(moment_s)

    def _wall(self) -> datetime:
        return self._in_zone(self._now_s())

    def _in_zone(self, moment_s: float) -> datetime:
        # zone None: the process's own zone, as Hudi's LOCAL timelines mean it.
        return datetime.fromtimestamp(moment_s, UTC).astimezone(self._zone)

    def _ahead_s(self, instant_time: str, step_s: float = 0.0) -> float:
        now_s = self._now_s()
        return self._behind_s(now_s if not step_s else now_s // step_s * step_s, instant_time)

    def _behind_s(self, moment_s: float, instant_time: str) -> float:
        is_first = instant_time in BOOTSTRAP_INSTANTS
        instant = datetime.min if is_first else parse_instant(instant_time).replace(tzinfo=None)
        return (instant - self._in_zone(moment_s).replace(tzinfo=None)).total_seconds()
