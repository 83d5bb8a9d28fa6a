"""Writes that were under way when one began: what they announced, and when to let them go first.

Each writer names the file groups that it is going to write in its inflight file, under the lock, before it writes a byte. So the next
one knows them before it has done any work, which is earlier than Hudi's early conflict detection, by markers of open files, can know.
It takes log versions above theirs. What one of them is going to rewrite it leaves alone until that one is done: the work would be in
vain. And it is not completed before those that it shares a file group with: they would have to begin anew with a greater instant.
Everybody waits for smaller instants only, so nobody waits in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Instant
from hoodie.model.names import COMPLETES_AS
from hoodie.model.payloads import CommitMetadata
from hoodie.timeline.clock import Clock
from hoodie.timeline.timeline import Timeline
from hoodie.txn.heartbeat import Life, held_by_this_thread, life_of, writers_beside
from hoodie.view.context import TableContext

FIRST_PAUSE_S = 0.02
MAX_PAUSE_S = 0.2


@dataclass(frozen=True)
class Ahead:
    """The living writes that took their instants before; what each of them announced (`heartbeat.writers_beside`)."""

    writes: Mapping[Instant, CommitMetadata]
    """A stat with a log version stands for logs that a file group gets, another one for a new base file."""
    overtaken: frozenset[Instant] = frozenset()
    """Those that have lost already: a later write of their file groups is completed. It would be in vain to wait for one of them,
    and it may be a process that hangs."""

    @classmethod
    def of(cls, writes: Mapping[Instant, CommitMetadata], completed: Iterable[tuple[Instant, CommitMetadata]]) -> Ahead:
        """`completed`: the writes that were completed with greater instants than the smallest of these."""
        all_completed = list(completed)
        overtaken = {
            instant
            for instant, announced in writes.items()
            for other, metadata in all_completed
            if other.time > instant.time and _meet(announced, metadata)
        }
        return cls(writes, frozenset(overtaken))

    @classmethod
    def beside(cls, context: TableContext, timeline: Timeline, *, strangers: bool) -> Ahead:
        """Of a write that takes its instant now; `strangers`: also beside writers that do not share our lock."""
        writes = writers_beside(timeline, context, beside_strangers=strangers)
        if not writes:
            return cls({})
        first = min(instant.time for instant in writes)
        later = [instant for instant in timeline.commits if instant.time > first]
        return cls.of(writes, [(instant, context.active.read_commit(instant)) for instant in later])

    def log_versions(self) -> dict[FileGroupId, int]:
        """The highest version of the logs that a file group is going to get."""
        highest: dict[FileGroupId, int] = {}
        for announced in self.writes.values():
            for group, version in _groups(announced).items():
                if version is not None:
                    highest[group] = max(version, highest.get(group, 0))
        return highest

    def rewriting(self, ours: CommitMetadata) -> frozenset[Instant]:
        """Those that make the work on a file group vain: one of the two rewrites it."""
        mine = _groups(ours)
        return frozenset(
            instant
            for instant, announced in self.writes.items()
            for group, version in _groups(announced).items()
            if group in mine and (version is None or mine[group] is None)
        ).difference(self.overtaken)

    def meeting(self, ours: CommitMetadata) -> frozenset[Instant]:
        """Those that would lose if this write were completed first: both write a file group, or insert into a partition."""
        return frozenset(i for i, announced in self.writes.items() if _meet(ours, announced)) - self.overtaken


class Patience:
    """So many seconds one waits for others, in pauses that become longer."""

    def __init__(self, seconds: float) -> None:
        self.left_s = seconds
        self._next_s = FIRST_PAUSE_S

    def pause(self, clock: Clock) -> bool:
        """Wait a moment; False, and at once, when one has waited long enough."""
        if self.left_s <= 0:
            return False
        pause_s = min(self._next_s, self.left_s)
        self._next_s = min(MAX_PAUSE_S, 1.2 * pause_s)
        self.left_s -= pause_s
        clock.pause(pause_s)
        return True


def wait_for(context: TableContext, instants: frozenset[Instant], patience: Patience) -> None:
    """Wait until none of these writes is under way, or one's patience ends."""
    # To wait for what this very thread is doing would be to wait for ever.
    instants = frozenset(i for i in instants if not held_by_this_thread(i.time))
    while instants and patience.left_s > 0:
        pending = set(context.active.load().pending_writes)
        instants = frozenset(i for i in instants & pending if life_of(i.time, context) is Life.ALIVE)
        if instants:
            patience.pause(context.clock)


def wait_for_service(context: TableContext, instant_time: str, patience: Patience) -> bool:
    """Wait until a plan of a service that somebody is carrying out is not pending any more; False when nobody does so, or one's
    patience ends.
    """
    while any(i.time == instant_time for i in context.active.load().pending(*COMPLETES_AS)):
        if life_of(instant_time, context) is Life.DEAD or held_by_this_thread(instant_time):
            return False
        if not patience.pause(context.clock):
            return False
    return True


def _meet(one: CommitMetadata, other: CommitMetadata) -> bool:
    """Whether both write a file group, or insert into a partition."""
    return bool(_groups(one).keys() & _groups(other).keys() or _inserted(one) & _inserted(other))


def _groups(metadata: CommitMetadata) -> dict[FileGroupId, int | None]:
    """File group -> the highest version of the logs that it gets; None: it gets a new base file, or is replaced."""
    result: dict[FileGroupId, int | None] = {}
    for stat in metadata.stats():
        group = FileGroupId(stat.partition_path, stat.file_id)
        before = result.get(group, 0)
        result[group] = None if before is None or stat.log_version is None else max(before, stat.log_version)
    return result


def _inserted(metadata: CommitMetadata) -> set[str]:
    if metadata.operation is WriteOperation.CLUSTER:
        return set()  # rows that were there
    return {path for path, stats in metadata.write_stats.items() if any(stat.num_inserts for stat in stats)}
