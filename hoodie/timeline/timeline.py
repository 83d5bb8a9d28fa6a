"""The timeline as a value: every instant in the furthest state that it has reached. Immutable, no IO."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantRange, VisibleInstants, sort_key
from hoodie.model.names import parse_instant_file

WRITES = frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT})
"""Actions that change rows or the files that hold them; a completed compaction is a commit."""

_PROGRESS = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}
_COMPLETES_AS = {Action.COMPACTION: Action.COMMIT, Action.LOGCOMPACTION: Action.DELTACOMMIT}


@dataclass(frozen=True)
class Timeline:
    """Instants sorted by time. Build it with `from_file_names`."""

    instants: tuple[Instant, ...]
    compactions: frozenset[str] = frozenset()
    """Times of completed commits that were compactions (their requested file still stands)."""

    @classmethod
    def from_file_names(cls, names: Iterable[str]) -> Timeline:
        """Fold the names of a `.hoodie` folder; names that are no timeline files do not matter."""
        furthest: dict[tuple[str, Action], State] = {}
        for name in names:
            instant = parse_instant_file(name)
            if instant is None:
                continue
            at = (instant.time, instant.action)
            if at not in furthest or _PROGRESS[instant.state] > _PROGRESS[furthest[at]]:
                furthest[at] = instant.state
        compactions = set()
        for (time, action), _ in list(furthest.items()):
            finished = _COMPLETES_AS.get(action)
            if finished and furthest.get((time, finished)) is State.COMPLETED:
                del furthest[time, action]
                if action is Action.COMPACTION:
                    compactions.add(time)
        ordered = sorted(
            (Instant(time, action, state) for (time, action), state in furthest.items()),
            key=lambda instant: (sort_key(instant.time), instant.action),
        )
        return cls(tuple(ordered), frozenset(compactions))

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    @cached_property
    def latest_time(self) -> str | None:
        """The greatest instant time in any state."""
        return self.instants[-1].time if self.instants else None

    @cached_property
    def start(self) -> str | None:
        """Where the active timeline begins: the first write instant in any state."""
        return next((i.time for i in self.instants if i.action in WRITES or i.action in _COMPLETES_AS), None)

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed writes (commit, deltacommit, replacecommit; compactions among them), oldest first."""
        return tuple(i for i in self.instants if i.is_completed and i.action in WRITES)

    @cached_property
    def completed_times(self) -> frozenset[str]:
        return frozenset(i.time for i in self.commits)

    @cached_property
    def latest_commit(self) -> Instant | None:
        return self.commits[-1] if self.commits else None

    def pending(self, *actions: Action) -> tuple[Instant, ...]:
        """Instants of these actions (all, when none is given) that are requested or inflight."""
        return tuple(i for i in self.instants if not i.is_completed and (not actions or i.action in actions))

    @cached_property
    def pending_writes(self) -> tuple[Instant, ...]:
        return self.pending(*WRITES)

    @cached_property
    def pending_times(self) -> frozenset[str]:
        """Times of writes and compactions in flight: what they wrote is not to be seen."""
        return frozenset(i.time for i in self.pending(*WRITES, *_COMPLETES_AS))

    def completed_in(self, span: InstantRange) -> tuple[Instant, ...]:
        return tuple(i for i in self.commits if span.contains(i.time))

    def find(self, time: str, *actions: Action) -> Instant | None:
        return next((i for i in self.instants if i.time == time and (not actions or i.action in actions)), None)

    def sees(self, time: str) -> bool:
        """Whether data of instant `time` counts: completed, or older than everything on the active timeline.

        An instant older than the active timeline was archived, and only completed (or rolled back) ones are.
        """
        return self.visible().sees(time)

    def visible(self, until: str | None = None, since: str | None = None) -> VisibleInstants:
        """The part of the timeline that a task needs to tell live log blocks from dead ones."""
        return VisibleInstants(self.completed_times, self.pending_times, self.start, until, since)

    def readable_until(self) -> str | None:
        """The last completed write below the first pending one: how far an incremental pull may go.

        A write that finishes late with a smaller instant would otherwise be skipped for ever by whoever has passed it.
        """
        stop = min((sort_key(i.time) for i in self.pending_writes), default=None)
        below = [i.time for i in self.commits if stop is None or sort_key(i.time) < stop]
        return below[-1] if below else None

    def not_found(self, time: str, *, table: str) -> str:
        if not self.commits:
            return f"table {table} has no completed commit yet, so there is nothing at instant {time}"
        return (
            f"instant {time} is not a completed commit on the active timeline of table {table}; "
            f"the earliest is {self.commits[0].time}, the latest {self.commits[-1].time}"
        )
