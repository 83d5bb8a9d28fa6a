"""The instants of a metadata table's own work, and the times at which its instants are completed: by its version.

In version 6 an instant of its own work is that of the table before it and three more digits. In versions 8 and 9 it is one above all
that both timelines have. Files of completed instants name a time, which is taken under the table's lock, as for those of the table.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

from hoodie.metadata.visibility import BEGINNING, FIRST_SUFFIX
from hoodie.model.instant import Instant, InstantTime
from hoodie.timeline.clock import Clock
from hoodie.timeline.timeline import Timeline

COMPACTION, CLEAN = "001", "002"


class OwnInstants:
    """For one writer, who holds the table's lock."""

    def __init__(self, own: Timeline, table: Timeline, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._by_completion = own.layout.by_completion
        self._latest = max((each for each in (own.latest_time, table.latest_time) if each), default=InstantTime(""))

    def after(self, write: InstantTime, suffix: str) -> InstantTime:
        """Of a compaction or a clean, after the last delta commit of the table."""
        if not self._by_completion:
            return InstantTime(f"{write}{suffix}")
        self._latest = self._clock.allot(self._latest or None)
        return self._latest

    def first(self, times: Collection[InstantTime]) -> InstantTime:
        """The instant time of the first state of a partition; `times`: those that are taken."""
        completed_times = [each.time for each in self._table if each.is_completed]
        after, start = max(completed_times, default=BEGINNING), FIRST_SUFFIX
        if self._by_completion:
            after, start = BEGINNING, 0
        return next(time for n in count(start) if (time := InstantTime(f"{after}{n:03d}")) not in times)

    def completing(self, instant: Instant) -> Instant:
        """The completed instant with the time of its completion, where its file names that. Let the file follow."""
        if not self._by_completion:
            return instant
        self._latest = self._clock.allot(max(self._latest, instant.time) or None)
        self._clock.wait_until_passed(self._latest)
        return instant._replace(completion=self._latest)
