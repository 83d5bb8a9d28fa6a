"""The timeline as a value: every instant in the furthest state that it has reached. Immutable, no IO."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from hoodie.format.layout import V6, Layout
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantRange, InstantTime, VisibleInstants
from hoodie.model.names import COMPLETES_AS

WRITES = frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT})
"""Actions that change rows or the files that hold them; a completed compaction is a commit."""

BEFORE_ALL = InstantTime("00000000000000000")
"""Before every instant."""
_PROGRESS = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}


def _order(instant: Instant) -> tuple[InstantTime, Action]:
    return instant.time, instant.action


class _TimelineParts(NamedTuple):
    instants: list[Instant]
    """Each in the furthest state, in order."""
    compactions: frozenset[InstantTime]
    log_compactions: frozenset[InstantTime]
    """Times of those that are completed."""


def _fold(instants: Iterable[Instant]) -> _TimelineParts:
    """Fold instants, one for each state that they have reached, into one each."""
    furthest: dict[tuple[InstantTime, Action], Instant] = {}
    for instant in instants:
        at = (instant.time, instant.action)
        if at not in furthest or _PROGRESS[instant.state] > _PROGRESS[furthest[at].state]:
            furthest[at] = instant
    times_of: dict[Action, set[InstantTime]] = {action: set() for action in COMPLETES_AS}
    for time, action in list(furthest):
        finished = furthest.get((time, COMPLETES_AS[action])) if action in COMPLETES_AS else None
        if finished is not None and finished.is_completed:
            del furthest[time, action]
            times_of[action].add(time)
    ordered = sorted(furthest.values(), key=_order)
    return _TimelineParts(ordered, frozenset(times_of[Action.COMPACTION]), frozenset(times_of[Action.LOGCOMPACTION]))


@dataclass(frozen=True)
class Timeline:
    """The instants of a table, sorted by time, each in the furthest state that it has reached. It does not change."""

    instants: tuple[Instant, ...]
    compactions: frozenset[InstantTime] = frozenset()
    """Times of completed commits that were compactions (their requested file still stands)."""
    layout: Layout = V6
    unseen: frozenset[InstantTime] = frozenset()
    """Times of archived writes that do not count: they were completed later than the moment that this timeline shows."""
    until: InstantTime | None = None
    """The earlier moment that this timeline was reduced to; None: it is the newest."""
    log_compactions: frozenset[InstantTime] = frozenset()
    """Times of completed delta commits that were log compactions."""

    @classmethod
    def from_file_names(cls, names: Iterable[str], *, layout: Layout = V6) -> Timeline:
        """Fold the names of a timeline folder; names that are no timeline files do not matter."""
        instants = (instant for name in names if (instant := layout.parse(name)) is not None)
        folded = _fold(instants)
        return cls(tuple(folded.instants), folded.compactions, layout, log_compactions=folded.log_compactions)

    def extended(self, names: Iterable[str]) -> Timeline:
        """The timeline of a folder that has these names besides those that this one was made of."""
        fresh = [instant for name in names if (instant := self.layout.parse(name)) is not None]
        times = {instant.time for instant in fresh}
        folded = _fold([*(i for i in self.instants if i.time in times), *fresh])
        others = [i for i in self.instants if i.time not in times]
        return replace(
            self,
            instants=tuple(sorted(others + folded.instants, key=_order)),
            compactions=self.compactions | folded.compactions,
            log_compactions=self.log_compactions | folded.log_compactions,
        )

    def with_clusterings(self, times: Iterable[str]) -> Timeline:
        """The timeline on which the pending replacecommits of these times are clusterings."""
        time_set = frozenset(times)
        if not time_set:
            return self
        corrected = tuple(
            i._replace(action=Action.CLUSTERING)
            if i.time in time_set and i.action is Action.REPLACECOMMIT and not i.is_completed
            else i
            for i in self.instants
        )
        return replace(self, instants=tuple(sorted(corrected, key=_order)))

    @property
    def by_completion(self) -> bool:
        """As `Layout.by_completion`."""
        return self.layout.by_completion

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __len__(self) -> int:
        return len(self.instants)

    def __repr__(self) -> str:
        span = f", {self.instants[0].time} to {self.instants[-1].time}" if self.instants else ""
        return f"<Timeline of {len(self)} instants{span}; {len(self.commits)} commits, {len(self.pending())} pending>"

    @cached_property
    def latest_time(self) -> InstantTime | None:
        """The greatest instant time in any state, or time of completion: what is new has a greater one."""
        return max((i.position for i in self.instants), default=None)

    @cached_property
    def start(self) -> InstantTime | None:
        """Where the active timeline begins: the first write instant in any state.

        Savepoints do not count, as their commits may stay while later ones are archived (`hoodie.archive.beyond.savepoint`). Where
        there is nothing else, it is the last one.
        """
        saved = {i.time for i in self.instants if i.action is Action.SAVEPOINT and i.is_completed}
        writes = [i.time for i in self.instants if i.action in WRITES or i.action in COMPLETES_AS]
        return next((time for time in writes if time not in saved), writes[-1] if writes else None)

    @cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed writes (commit, deltacommit, replacecommit; compactions among them), oldest first."""
        return tuple(i for i in self.instants if i.is_completed and i.action in WRITES)

    @cached_property
    def commit_at(self) -> dict[InstantTime, Instant]:
        """The completed writes by their time."""
        return {i.time: i for i in self.commits}

    @cached_property
    def completed_times(self) -> frozenset[InstantTime]:
        return frozenset(self.commit_at)

    @cached_property
    def latest_commit(self) -> Instant | None:
        return self.commits[-1] if self.commits else None

    @cached_property
    def latest_position(self) -> InstantTime | None:
        """The greatest position of a completed write."""
        return max((i.position for i in self.commits), default=None)

    def pending(self, *actions: Action) -> tuple[Instant, ...]:
        """Instants of these actions (all, when none is given) that are requested or inflight."""
        return tuple(i for i in self._unfinished if not actions or i.action in actions)

    @cached_property
    def _unfinished(self) -> tuple[Instant, ...]:
        """Asked for some sixty times for a commit, and mostly none or one of all instants."""
        return tuple(i for i in self.instants if not i.is_completed)

    @cached_property
    def at_work(self) -> tuple[Instant, ...]:
        """Pending instants but for savepoints, which change nothing, and have the time of their commit."""
        return tuple(i for i in self._unfinished if i.action is not Action.SAVEPOINT)

    @cached_property
    def pending_writes(self) -> tuple[Instant, ...]:
        """Pending instants that bring rows. A pending clustering is none: its rows keep their commit times."""
        return self.pending(*WRITES)

    @cached_property
    def pending_times(self) -> frozenset[InstantTime]:
        """Times of writes and compactions in flight: what they wrote is not to be seen."""
        return frozenset(i.time for i in self.pending(*WRITES, *COMPLETES_AS)) | self.unseen

    @property
    def needed_from(self) -> InstantTime:
        """The commit from whose state on readers of this timeline need files: the last one before all that is pending.

        What is pending may be completed while they read. Then it has taken the place of files of theirs under an instant that
        lies before their newest commit. `BEFORE_ALL` where there is no such commit.
        """
        pending = self.pending(*WRITES, *COMPLETES_AS)
        return next((i.time for i in reversed(self.commits) if not pending or i.time < pending[0].time), BEFORE_ALL)

    def completed_in(self, span: InstantRange) -> tuple[Instant, ...]:
        """Completed writes whose position lies in the range."""
        return tuple(i for i in self.commits if span.contains(i.position))

    def find(self, time: str, *actions: Action) -> Instant | None:
        """The instant of this time and of one of these actions (any, when none is given); None when there is none."""
        return next((i for i in self.instants if i.time == time and (not actions or i.action in actions)), None)

    def newest(self, action: Action) -> Instant | None:
        """The newest completed instant of an action."""
        return next((i for i in reversed(self.instants) if i.action is action and i.is_completed), None)

    def sees(self, time: str) -> bool:
        """Whether data of instant `time` counts: completed, or older than everything on the active timeline.

        An instant older than the active timeline was archived, and only completed (or rolled back) ones are.
        """
        return self._visible_now.sees(time)

    @cached_property
    def _visible_now(self) -> VisibleInstants:
        return self.visible()

    def visible(self, until: InstantTime | None = None, since: InstantTime | None = None) -> VisibleInstants:
        """The part of the timeline that a task needs to tell live log blocks from dead ones."""
        return VisibleInstants(self.completed_times, self.pending_times, self.start, until, since)

    def as_of(self, time: str) -> Timeline:
        """The timeline of a reader who sees no instant after `time`: later ones are pending."""
        return self._reduced(InstantTime(time), lambda instant: instant.time <= time)

    def completed_by(self, position: str, archived: Iterable[Instant] = ()) -> Timeline:
        """The timeline as it was at a position: what was completed later is pending. Where instant times decide, the same as `as_of`.

        Args:
            archived: archived writes; where completion times decide one of them may have been completed after that position.
        """
        late = frozenset(i.time for i in archived if i.position > position)
        # A savepoint that was made later has kept an older commit from the archive, too: `start` has to know it.
        return self._reduced(
            InstantTime(position), lambda i: i.position <= position or i.action is Action.SAVEPOINT, late
        )

    def without(self, times: Container[str]) -> Timeline:
        """The timeline that there is when the writes and compactions of these times were taken back."""
        undone_instants = {
            i for i in self.instants if i.time in times and (i.action in WRITES or i.action in COMPLETES_AS)
        }
        instants = tuple(i for i in self.instants if i not in undone_instants)
        if not undone_instants:
            return self
        undone_times = {i.time for i in undone_instants}
        return replace(
            self,
            instants=instants,
            compactions=self.compactions - undone_times,
            log_compactions=self.log_compactions - undone_times,
        )

    def has_lost(self, later: Timeline) -> bool:
        """Whether commits of this timeline were taken back on a later one: a restore and a rollback begin with the newest."""
        newest, first = self.latest_commit, later.commits[0] if later.commits else None
        if newest is None or newest.time in later.completed_times:
            return False
        return first is None or newest.time >= first.time

    def is_archived_on(self, later: Timeline) -> bool:
        """Whether commits that came after this timeline may be in the archive by the time of a later one, and so not be on it.

        A savepointed commit stays, and lies before the start of both: nothing says more of it than that the start has moved.
        """
        newest, start = self.latest_commit, later.start
        if newest is None or start is None or newest.time >= start:
            return False
        return newest.time not in later.completed_times or self.start != start

    def _reduced(
        self, until: InstantTime, keeps: Callable[[Instant], bool], unseen: frozenset[InstantTime] = frozenset()
    ) -> Timeline:
        instants = tuple(
            i if not i.is_completed or keeps(i) else Instant(i.time, i.action, State.INFLIGHT) for i in self.instants
        )
        if instants == self.instants and not unseen:
            return self
        return replace(self, instants=instants, unseen=unseen, until=until)

    def readable_until(self, pending: Iterable[Instant] | None = None) -> InstantTime | None:
        """How far an incremental pull may go, as a position; `pending` (default: all) are the writes to wait for.

        By instant times: the last completed write below the first pending one, because a write that finishes late with a smaller
        instant would be skipped for ever by whoever has passed it. By completion times: the last one; later ones are greater.
        """
        if self.by_completion:
            return self.latest_position
        waited_for = self.pending_writes if pending is None else pending
        stop = min((i.time for i in waited_for), default=None)
        below = [i.time for i in self.commits if stop is None or i.time < stop]
        return below[-1] if below else None

    def not_found(self, time: str, *, table: str) -> str:
        """A sentence for whoever asked for an instant that is not there; it names the earliest and the latest commit."""
        if not self.commits:
            return f"table {table} has no completed commit yet, so there is nothing at instant {time}"
        return (
            f"instant {time} is not a completed commit on the active timeline of table {table}; "
            f"the earliest is {self.commits[0].time}, the latest {self.commits[-1].time}"
        )

    def not_pending(self, time: str, *, table: str) -> str:
        """A sentence for whoever wants to roll back an instant that is not there; it names those that could be."""
        pending = ", ".join(each.time for each in self.pending_writes)
        newest = f"the newest commit, {self.latest_commit.time}" if self.latest_commit else "the newest commit"
        return (
            f"there is no instant {time} on the active timeline of table {table}; what can be rolled back is {newest}, and pending "
            f"writes: {pending or 'there are none'}"
        )


# -- What Apache Hudi's timeline server and its clients tell each other about where they stand: the last instant, and a hash.

_COMPACTIONS = (Action.COMPACTION, Action.LOGCOMPACTION)


def timeline_hash(instants: Iterable[Instant], layout: Layout = V6) -> str:
    """`HoodieTimeline.getTimelineHash` of these instants, in their order: SHA-256 over time, action and state of each."""
    digest = hashlib.sha256()
    for instant in instants:
        digest.update(f"{instant.time}_{layout.action_in_names(instant)}_{instant.state.value.upper()}".encode())
    return digest.hexdigest()


def completed_and_compactions(timeline: Timeline) -> tuple[Instant, ...]:
    """The instants of a timeline as Apache Hudi's views take it: what is completed, and pending compactions."""
    return tuple(i for i in timeline if i.is_completed or i.action in _COMPACTIONS)
