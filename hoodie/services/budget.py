"""Runs that have only so long: how large the plans are that are made for one, and whether another one is begun.

A plan on the timeline is done as a whole or not at all: writers name their logs after it from the moment it is there, so that a
compaction which left out one of its slices would hide the rows of that slice. What can be small is the plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hoodie.model.enums import Action
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext

SECONDS = "hoodie.python.compaction.seconds"
"""Key of ours in a compaction's metadata: how long it took to merge and write."""
ASSUMED_BYTES_A_S = 8 * 1024 * 1024
"""Of logs and base files that are read and written, where no compaction of the table says it: a slow store."""
_PLANS_A_BUDGET = 4


class Budget:
    """Counts plans that are run one after another; the first is always begun, so that each run gets on."""

    def __init__(
        self,
        seconds: float | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_stopped`: whether to begin no further one, however much time is left."""
        self._seconds = seconds
        self._is_stopped = is_stopped
        self._clock = clock
        self._started = clock()
        self._count = 0

    @property
    def left_s(self) -> float | None:
        return None if self._seconds is None else max(0.0, self._seconds - (self._clock() - self._started))

    @property
    def is_begun(self) -> bool:
        return self._count > 0

    def allows_another(self) -> bool:
        """Whether another plan is expected to end in time: when those before took as long on average."""
        if not self._count:
            return True
        if self._is_stopped():
            return False
        if self._seconds is None:
            return True
        spent = self._clock() - self._started
        return spent + spent / self._count <= self._seconds

    def count(self) -> None:
        """A plan was run."""
        self._count += 1


def part_bytes(context: TableContext, timeline: Timeline, budget_s: float) -> int:
    """What one of several plans reads and writes so that some fit into the budget, by what the last compaction took."""
    last = next((i for i in reversed(timeline.commits) if i.time in timeline.compactions), None)
    rate = float(ASSUMED_BYTES_A_S)
    if last is not None and last.action is Action.COMMIT:
        metadata = context.active.read_commit(last)
        took_s = _number(metadata.extra.get(SECONDS, ""))
        io_bytes = sum(s.total_log_bytes_compacted + 2 * s.file_size_bytes for s in metadata.stats())
        if took_s and io_bytes:
            rate = io_bytes / took_s
    return max(context.tuning.least_plan_bytes, int(rate * budget_s / _PLANS_A_BUDGET))


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if 0 < number < float("inf") else 0.0
