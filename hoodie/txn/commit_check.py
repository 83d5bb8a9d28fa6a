"""Whether anything that others did stands against a commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hoodie.errors import CommitConflictError
from hoodie.model.enums import MOVES_ROWS, Action, State, TableType, WriteOperation
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import CommitMetadata
from hoodie.model.streams import repeats
from hoodie.timeline.timeline import Timeline
from hoodie.txn.conflict import Conflict, WriteBasis, find_conflict, find_missed_delete, find_schema_conflict
from hoodie.txn.heartbeat import Life, life_of, writer_of
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import stated_schema, table_schema
from hoodie.view.view import FileSystemView


class OutdatedPlanError(CommitConflictError):
    """Others changed what a write was planned on, and its instant may stay: plan again on `snapshot`, and write what is not right."""

    def __init__(self, message: str, snapshot: Snapshot) -> None:
        super().__init__(message)
        self.snapshot = snapshot


class StrangerAtWorkError(CommitConflictError):
    """A writer of another program is at work, and has to end first."""


@dataclass(frozen=True)
class CommitCheck:
    """A pending instant, and the table on which it was planned, beside what others have done since."""

    context: TableContext
    instant: InstantTime
    action: Action
    planned_at: Timeline
    planned_on: FileSystemView | None
    """What the plan went by; None: nothing was listed."""
    claimed: bool
    """It carries out a service's plan, which moves rows that have their places already."""
    non_blocking: bool
    refusal: Callable[[str], str]
    """The message of an error, by its reason."""

    @property
    def _inflight(self) -> Instant:
        return Instant(self.instant, self.action, State.INFLIGHT)

    def check(self, snapshot: Snapshot, metadata: CommitMetadata, footing: WriteBasis) -> Snapshot:
        """Gives the snapshot by which nothing stands against the commit; under the lock.

        Raises:
            OutdatedPlanError, StrangerAtWorkError: try again. CommitConflictError: the instant is to be rolled back.
        """
        context = self.context
        at_work = [i.time for i in snapshot.timeline.pending() if i.state is State.INFLIGHT and i.time != self.instant]
        if [time for time in at_work if context.publisher.advance(time)]:
            snapshot = context.snapshot()
        view = snapshot.view
        if self.planned_on is not None and self._others(snapshot.timeline) == self._others(self.planned_at):
            view = self.planned_on  # nobody has done anything since, so another listing could show nothing else
        if self._inflight not in snapshot.timeline.pending():
            raise CommitConflictError(self.refusal("its files were removed from the timeline: it was rolled back"))
        if self.is_rolled_back_by(snapshot.timeline):
            raise CommitConflictError(self.refusal("another process is rolling it back"))
        if _restores(snapshot.timeline) != _restores(self.planned_at):
            raise CommitConflictError(self.refusal("the table was restored to an earlier commit meanwhile"))
        self._refuse_amid_strangers(snapshot.timeline)
        others = self._others_since(snapshot)
        conflict = self._find_conflict(view, footing, others)
        if conflict is None or conflict.mends:
            conflict = self._find_lasting_conflict(metadata, footing, others) or conflict
        self._raise(conflict, snapshot, others)
        return snapshot

    def check_files(self, snapshot: Snapshot, footing: WriteBasis) -> None:
        """The same of the files that the plan rests on, before anything has its final name.

        Raises:
            OutdatedPlanError, CommitConflictError: as `check`.
        """
        others = self._others_since(snapshot)
        if others:
            self._raise(self._find_conflict(snapshot.view, footing, others), snapshot, others)

    def _refuse_amid_strangers(self, timeline: Timeline) -> None:
        """A writer of Apache Hudi that began after us looks up keys, and then checks file groups only. Rows that were inserted in
        between would be inserted by it, too, into another file group.
        """
        later = [i for i in timeline.pending_writes if i.time > self.instant]
        for instant in () if self.claimed or self.non_blocking else later:
            if life_of(instant.time, self.context) is Life.FOREIGN_ALIVE:
                raise StrangerAtWorkError(self.refusal(f"instant {instant} is being written by another program"))

    def _others_since(self, snapshot: Snapshot) -> list[tuple[Instant, CommitMetadata]]:
        """The commits that the plan knows nothing of.

        Those of greater instants, too, though a plan that was mended knows of them: what they did comes after it in the timeline.
        """
        before = self.planned_at.completed_times
        return [
            (i, self.context.active.read_commit(i))
            for i in snapshot.timeline.commits
            if i.time not in before or (not self.claimed and i.time > self.instant)
        ]

    def _find_conflict(
        self,
        view: FileSystemView,
        footing: WriteBasis,
        others: Sequence[tuple[Instant, CommitMetadata]],
    ) -> Conflict | None:
        current = {group: view.written_slice(group) for group in footing.based_on}
        config = self.context.config
        logs_move = config.layout.by_completion and config.table_type is TableType.MERGE_ON_READ
        return find_conflict(self.instant, footing, current=current, others=others, logs_move=logs_move)

    def _find_lasting_conflict(
        self, metadata: CommitMetadata, footing: WriteBasis, others: Sequence[tuple[Instant, CommitMetadata]]
    ) -> Conflict | None:
        """One that no other files of this instant could mend."""
        context = self.context
        reason = find_missed_delete(self.instant, metadata, footing.absent_in, others)
        repeated = next((i for i, theirs in others if repeats(metadata.extra, theirs.extra)), None)
        if reason is None and repeated is not None:
            reason = f"{repeated} holds the same batch of its stream"
        reason = reason or self._find_altered(metadata, others)
        if reason is None and others:
            ours = stated_schema(self._inflight, metadata)
            reason = find_schema_conflict(
                self.instant,
                before=table_schema(context.active, self.planned_at, context.config.raw),
                ours=ours,
                # A plan of a service states the columns of its moment, and is no newer than later commits.
                others=[
                    (i, stated_schema(i, other)) for i, other in others if not self.claimed or i.time < self.instant
                ],
            )
        return None if reason is None else Conflict(reason, mends=False)

    def _find_altered(self, metadata: CommitMetadata, others: Sequence[tuple[Instant, CommitMetadata]]) -> str | None:
        """Why files of this write, or of the others, would have other columns than readers take from their instants."""
        if metadata.operation is WriteOperation.ALTER_SCHEMA:
            return next(
                (f"{i} was committed meanwhile" for i, they in others if they.operation not in MOVES_ROWS), None
            )
        altered = (i for i, theirs in others if theirs.operation is WriteOperation.ALTER_SCHEMA and not self.claimed)
        return next((f"{i} changed the table's columns" for i in altered), None)

    def _raise(
        self,
        conflict: Conflict | None,
        snapshot: Snapshot,
        others: Sequence[tuple[Instant, CommitMetadata]],
    ) -> None:
        if conflict is None:
            return
        reason = conflict.reason
        by = next((writer_of(theirs).who for i, theirs in others if i.time in reason), None)
        message = self.refusal(reason if by is None else f"{reason} (it was written by {by})")
        raise OutdatedPlanError(message, snapshot) if conflict.mends else CommitConflictError(message)

    def _others(self, timeline: Timeline) -> tuple[Instant, ...]:
        return tuple(instant for instant in timeline if instant.time != self.instant)

    def is_rolled_back_by(self, timeline: Timeline) -> bool:
        """A rollback whose plan is only being written does not count: its writer looks for our completed file."""
        before = {i.time for i in self.planned_at}
        rollbacks = [i for i in timeline if i.action is Action.ROLLBACK and i.time not in before]
        return any(self.context.active.rollback_target(r) == self.instant for r in rollbacks)


def _restores(timeline: Timeline) -> frozenset[str]:
    return frozenset(i.time for i in timeline if i.action is Action.RESTORE)
