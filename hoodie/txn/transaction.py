"""A write instant from its allotment to its completion. docs/CONCURRENCY.md has the rules that it carries out.

start   under the lock: reload, plan on what is there now, allot T above every instant, heartbeat, requested, inflight
commit  under the lock: reload, check, complete

What another write changed in between may be mended: who wrote it plans again on the snapshot of the check, keeps T and the files
that are still right, and calls `follow`. T must be greater than the other's instant then, so that the newest file is the newest by
name, too, and logs are merged in the order of the timeline.

Its `Publisher` is asked to begin once, in `start`. Whoever rolls T back fences it first, so that a writer that was only paused
can publish nothing afterwards: neither data files nor the completed file.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa

from hoodie.errors import CommitConflictError, CommitOutcomeUnknownError, CorruptFileError, HoodieError, LockError
from hoodie.format.column_ids import with_docs
from hoodie.format.commit_avro import decode_commit_file
from hoodie.format.internal_schema import LATEST_SCHEMA, encode_internal_schema
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.model.change import change_of_commit
from hoodie.model.columns import ColumnHistory
from hoodie.model.enums import MOVES_ROWS, Action, State, TableType, WriteOperation
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import CommitMetadata
from hoodie.model.plans import FileOptions, WriteContext
from hoodie.model.streams import repeats
from hoodie.options.mergers import runnable
from hoodie.storage.parallel import together
from hoodie.timeline.pending import run_by_others
from hoodie.timeline.timeline import Timeline
from hoodie.txn.conflict import BasedOn, Conflict, WriteBasis, find_conflict, find_missed_delete, find_schema_conflict
from hoodie.txn.critical import refuse_amid_restore
from hoodie.txn.earlier_writers import Ahead, Patience, wait_for
from hoodie.txn.heartbeat import Heartbeat, Life, format_writer, life_of, writer_of
from hoodie.txn.lock_look import look_under_lock, require_same_layout
from hoodie.txn.metadata_table import Seen, list_metadata_folder
from hoodie.txn.participants import before_completion, before_plan
from hoodie.view.columns import column_history, history_after, keep_history
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import refuse_lost_types, stated_schema, table_schema
from hoodie.view.view import FileSystemView

P = TypeVar("P")
log = logging.getLogger("hoodie")

NONCE = "hoodie.python.commit"
"""Key in a commit's extra metadata: tells this very attempt's file from any other of the same name."""


class OutdatedPlanError(CommitConflictError):
    """Others changed what a write was planned on, and its instant may stay: plan again on `snapshot`, and write what is not right."""

    def __init__(self, message: str, snapshot: Snapshot) -> None:
        super().__init__(message)
        self.snapshot = snapshot


class StrangerAtWorkError(CommitConflictError):
    """A writer of another program is at work, and has to end first."""


@dataclass
class Transaction:
    """One pending instant that this process works on."""

    context: TableContext
    instant: InstantTime
    action: Action
    started_on: Timeline
    heartbeat: Heartbeat
    planned_on: FileSystemView | None = None
    """What the plan went by; None: nothing was listed."""
    claimed: bool = False
    """It carries out a service's plan, which moves rows that have their places already."""
    committed: bool = False
    completed_at: InstantTime | None = None
    """Set by `commit`; stays None where a table's instants state no completion times (version 6)."""
    announced: CommitMetadata = field(default_factory=CommitMetadata)
    """What it is going to write, as others see it in its inflight file."""
    ahead: Ahead = field(default_factory=lambda: Ahead({}))
    leftovers: Sequence[str] | None = None
    """As `Publisher.clear` takes them."""
    history: ColumnHistory | None = None
    """Where columns were renamed, dropped or moved before it."""
    non_blocking: bool = False
    """It waits for nobody, and works beside writers of other programs."""
    writer: Mapping[str, str] = field(default_factory=dict)
    """The entry of its metadata that says who writes it."""

    def __post_init__(self) -> None:
        self.writer = format_writer(self.context.coordination.kind)
        takes_turns = self.context.concurrency.takes_turns and not self.non_blocking
        self._patience = Patience(self.context.lock_timeout_s if takes_turns else 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Without a commit the instant is left pending, for a rollback.

        Raises:
            CommitConflictError: the block ended because files were not where it had put them, for the instant was fenced.
        """
        if self.committed and error is None:
            return
        if isinstance(error, FileNotFoundError) and self._is_fenced():
            self.heartbeat.abandon()
            raise CommitConflictError(self._conflict("another process is rolling it back")) from error
        if isinstance(error, OSError):
            # On a full disk the rollback, and every later write, needs the room that the staged files take.
            with suppress(OSError):
                self.context.publisher.abandon(self.instant)
        self.heartbeat.abandon()

    @property
    def staging(self) -> str:
        """Folder for files that are not published yet, relative to the table."""
        return self.context.publisher.staging(self.instant)

    @classmethod
    def start(
        cls,
        context: TableContext,
        action: Action,
        plan: Callable[[Snapshot, Ahead], P],
        describe: Callable[[P], CommitMetadata],
        *,
        requested: bytes = b"",
        last_view: FileSystemView | None = None,
        non_blocking: bool = False,
        hold: ExitStack | None = None,
    ) -> tuple[Transaction, P]:
        """Plan on the newest snapshot and make the instant known, in one critical section.

        `plan` runs under the lock: it must be quick and do no IO but listings. `describe` gives the content of the
        inflight file: the file groups that the plan touches. `requested`: that of the requested file. `last_view`: a view that
        still holds if the timeline is the same. `non_blocking`: as the field says. `hold`: gets the lock, for who releases it while
        he goes on; else it is released.
        """
        transaction: Transaction | None = None
        try:
            with ExitStack() as lock:
                snapshot, seen = look_under_lock(context, lock, last_view)
                before_plan(context, seen)
                refuse_lost_types(context.active, snapshot.timeline, seen.properties, table=context.storage.uri)
                refuse_amid_restore(context, snapshot.timeline)
                ahead = Ahead.beside(context, snapshot.timeline, strangers=non_blocking)
                planned = plan(snapshot, ahead)
                time = context.clock.allot(snapshot.timeline.latest_time)
                transaction = cls(
                    context,
                    time,
                    action,
                    snapshot.timeline,
                    Heartbeat(time, context),
                    snapshot.view,
                    announced=describe(planned),
                    ahead=ahead,
                    history=snapshot.history,
                    non_blocking=non_blocking,
                )
                together(context.storage, transaction.heartbeat.hold, partial(context.publisher.begin, time))
                request = partial(context.active.create, Instant(time, action, State.REQUESTED), requested)
                # An empty file is durable with the next one of its folder: nothing is published before that.
                together(context.storage, transaction.heartbeat.start, partial(request, durable=bool(requested)))
                described = transaction.announced
                described = replace(described, extra={**described.extra, **transaction.writer})
                inflight = Instant(time, action, State.INFLIGHT)
                context.active.create(inflight, context.active.encode_commit(inflight, described))
                # Was held all the time if it is now: no plan of a compaction has come between.
                transaction._require_held(context.lock.is_known_lost())
                if hold is not None:
                    hold.push(lock.pop_all())
        except BaseException:
            if transaction is not None:
                transaction.heartbeat.abandon()
            raise
        return transaction, planned

    @classmethod
    def claim(cls, context: TableContext, plan: Instant) -> Transaction:
        """Take over the scheduled plan of a service: exclusive creation of its inflight file, under the lock.

        Raises:
            CommitConflictError: another process runs it.
        """
        transaction: Transaction | None = None
        try:
            with context.lock.held(context.lock_timeout_s):
                require_same_layout(context, places_rows=False)
                timeline = context.active.load()
                refuse_amid_restore(context, timeline)
                if timeline.find(plan.time, plan.action) is None:
                    raise CommitConflictError(run_by_others(plan, table=context.storage.uri))
                refuse_lost_types(context.active, timeline, context.config.raw, table=context.storage.uri)
                heartbeat = Heartbeat(plan.time, context)
                context.active.create(Instant(plan.time, plan.action, State.INFLIGHT))
                history = column_history(context.active, timeline, until=plan.time)
                transaction = cls(context, plan.time, plan.action, timeline, heartbeat, claimed=True, history=history)
                together(context.storage, heartbeat.hold, partial(context.publisher.begin, plan.time))
                heartbeat.start()
        except BaseException:
            if transaction is not None:
                transaction.heartbeat.abandon()
            raise
        return transaction

    def before_writing(self, footing: WriteBasis) -> None:
        """Let those go first that rewrite what this write touches, or touch what it rewrites.

        Raises:
            OutdatedPlanError: one of them did, as was to be expected. CommitConflictError: as `commit`.
        """
        rivals = self.ahead.rewriting(self.announced)
        if rivals and self._patience.left_s > 0:
            self._let_finish(rivals, footing)

    def before_publishing(self, footing: WriteBasis) -> None:
        """Let those go first that would lose against this write; they have done most of their work.

        Looks, too, what anybody did who was at work when this write began: what has no final name yet is mended at no risk.

        Raises:
            OutdatedPlanError, CommitConflictError: as `commit`.
        """
        if self.started_on.pending():
            self._let_finish(self.ahead.meeting(self.announced), footing)

    def _let_finish(self, rivals: frozenset[Instant], footing: WriteBasis) -> None:
        wait_for(self.context, rivals, self._patience)
        snapshot = self.context.snapshot()
        others = self._others_since(snapshot)
        if others:
            self._raise(self._find_conflict(snapshot.view, footing, others), snapshot, others)

    def follow(self, snapshot: Snapshot, announced: CommitMetadata) -> None:
        """What is written from now on is planned on this snapshot, as an `OutdatedPlanError` had it."""
        self.started_on, self.planned_on, self.announced = snapshot.timeline, None, announced

    def commit(
        self, metadata: CommitMetadata, footing: WriteBasis, *, name_files: Callable[[], None] | None = None
    ) -> None:
        """Publish the completed instant.

        `name_files`: gives the files their final names, where that takes moments; a far storage does so while it is looked whether
        anything stands against the commit.

        Raises:
            OutdatedPlanError: others changed what this write was planned on, before its instant; see `follow`.
            CommitConflictError: somebody else changed what this write was planned on; nothing of it is visible, and
                the instant is to be rolled back.
            CommitOutcomeUnknownError: it is not known whether the completed file landed; nothing may be deleted.
        """
        context = self.context
        history = self._history_after(metadata)
        if history is not None:
            latest = {LATEST_SCHEMA: encode_internal_schema(history.newest)}
            schema_json = with_docs(metadata.schema_json or "", history.now)
            metadata = replace(metadata, schema_json=schema_json, extra={**metadata.extra, **latest})
        metadata = replace(metadata, extra={**metadata.extra, **self.writer, NONCE: uuid.uuid4().hex})
        if name_files is not None and context.storage.can.at_once == 1:
            name_files()
            name_files = None
        patience = Patience(context.lock_timeout_s)
        while True:
            with ExitStack() as hold:
                try:
                    landed = self._complete(metadata, footing, history, hold, name_files)
                except StrangerAtWorkError:
                    hold.close()
                    name_files = None
                    if not patience.pause(context.clock):
                        raise
                    continue
                # The commit is there: nobody has to wait for the look at it, nor for the end of what it needs no more.
                _, timeline, _ = together(
                    context.storage, hold.close, partial(self._timeline_with, landed), self._clean_up
                )
                break
        self._refuse_rolled_back(timeline, landed)
        self._keep_view(timeline, metadata)
        self.committed = True
        # Others may have archived it by now.
        completed = timeline.commit_at.get(self.instant) if timeline.by_completion else None
        self.completed_at = None if completed is None else completed.completion

    def _complete(
        self,
        metadata: CommitMetadata,
        footing: WriteBasis,
        history: ColumnHistory | None,
        hold: ExitStack,
        name_files: Callable[[], None] | None,
    ) -> Instant:
        """Check and complete, under the lock, which `hold` gets; gives the completed instant."""
        context = self.context
        look = partial(self._look, metadata, footing, hold)
        epoch, snapshot, seen, has_lock = (
            look() if name_files is None else together(context.storage, look, name_files)[0]
        )
        snapshot = self._check(snapshot, metadata, footing)
        change = change_of_commit(self._completed, metadata)
        before_completion(context, change, seen._replace(timeline=snapshot.timeline))
        if history is not None:
            keep_history(context.active, context.active.load(), history, self.instant)
        self._require_held(self.heartbeat.is_lost() or not has_lock or context.lock.is_known_lost())
        return self._publish(metadata, epoch, snapshot.timeline)

    def _look(
        self, metadata: CommitMetadata, footing: WriteBasis, hold: ExitStack
    ) -> tuple[Hashable, Snapshot, Seen, bool]:
        """Take the lock as soon as the clock allows a commit, and look at the table: the epoch, what the table is, and whether the
        lock is still held.
        """
        context = self.context
        context.clock.wait_until_passed(self.instant, step_s=self._told_in_steps(metadata))
        self._wait_until_later_than_slices(footing.based_on)
        take_lock = partial(hold.enter_context, context.lock.held(context.lock_timeout_s))
        _, epoch = together(context.storage, take_lock, self._epoch)
        while True:
            # The epoch was taken before this look: whoever commits from now on makes it another one, unless he is seen here.
            has_lock, snapshot, now, newest_epoch, folder = together(
                context.storage,
                context.lock.is_held,
                context.snapshot,
                partial(require_same_layout, context, places_rows=not self.claimed),
                self._epoch,
                partial(list_metadata_folder, context.active, context.storage),
            )
            if newest_epoch == epoch:
                return epoch, snapshot, Seen(now.raw, snapshot.timeline, folder), has_lock
            epoch = newest_epoch  # another write was committed while this one waited for the lock

    def _history_after(self, metadata: CommitMetadata) -> ColumnHistory | None:
        """The history of columns after this commit; `metadata` may state the columns with their ids, or their schema."""
        schema = stated_schema(self._completed, metadata)
        return self.history if schema is None else history_after(self.history, schema, int(self.instant.padded))

    def write_context(self, schema: pa.Schema, files: FileOptions) -> WriteContext:
        """What the tasks of this instant share; whoever makes them adds what is special about them.

        Args:
            schema: the table's columns after this write, without meta columns.
        """
        return WriteContext(
            instant=self.instant,
            table_name=self.context.config.name,
            schema=schema,
            rule=runnable(self.context.rule),
            combine=False,
            files=files,
            staging=self.staging,
            visible=self.started_on.visible(),
            tuning=self.context.tuning,
            history=history_after(self.history, schema, int(self.instant.padded)),
            unstored=unstored_of(self.context.config, schema),
            own_logs=self.context.config.layout.by_completion,
            change_logs=self.context.config.change_logs,
        )

    def _check(self, snapshot: Snapshot, metadata: CommitMetadata, footing: WriteBasis) -> Snapshot:
        """Raise where something stands against the commit; gives the snapshot that says so."""
        context = self.context
        at_work = [i.time for i in snapshot.timeline.pending() if i.state is State.INFLIGHT and i.time != self.instant]
        if [time for time in at_work if context.publisher.advance(time)]:
            snapshot = context.snapshot()
        view = snapshot.view
        if self.planned_on is not None and self._others(snapshot.timeline) == self._others(self.started_on):
            view = self.planned_on  # nobody has done anything since, so another listing could show nothing else
        if Instant(self.instant, self.action, State.INFLIGHT) not in snapshot.timeline.pending():
            raise CommitConflictError(self._conflict("its files were removed from the timeline: it was rolled back"))
        if self._rolled_back_by(snapshot.timeline):
            raise CommitConflictError(self._conflict("another process is rolling it back"))
        if _restores(snapshot.timeline) != _restores(self.started_on):
            raise CommitConflictError(self._conflict("the table was restored to an earlier commit meanwhile"))
        self._refuse_amid_strangers(snapshot.timeline)
        others = self._others_since(snapshot)
        conflict = self._find_conflict(view, footing, others)
        if conflict is None or conflict.mends:
            conflict = self._find_lasting_conflict(metadata, footing, others) or conflict
        self._raise(conflict, snapshot, others)
        return snapshot

    def _refuse_amid_strangers(self, timeline: Timeline) -> None:
        """A writer of Apache Hudi that began after us looks up keys, and then checks file groups only. Rows that were inserted in
        between would be inserted by it, too, into another file group.
        """
        later = [i for i in timeline.pending_writes if i.time > self.instant]
        for instant in () if self.claimed or self.non_blocking else later:
            if life_of(instant.time, self.context) is Life.FOREIGN_ALIVE:
                raise StrangerAtWorkError(self._conflict(f"instant {instant} is being written by another program"))

    def _others_since(self, snapshot: Snapshot) -> list[tuple[Instant, CommitMetadata]]:
        """The commits that the plan knows nothing of.

        Those of greater instants, too, though a plan that was mended knows of them: what they did comes after it in the timeline.
        """
        before = self.started_on.completed_times
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
            ours = stated_schema(Instant(self.instant, self.action, State.INFLIGHT), metadata)
            reason = find_schema_conflict(
                self.instant,
                before=table_schema(context.active, self.started_on, context.config.raw),
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
        message = self._conflict(reason if by is None else f"{reason} (it was written by {by})")
        raise OutdatedPlanError(message, snapshot) if conflict.mends else CommitConflictError(message)

    def _told_in_steps(self, metadata: CommitMetadata) -> float:
        """The storage's step of modification times, where the completion must not look older than the instant; else 0.

        Apache Hudi 1.x would put the log files of a slice that this begins into the slice before it.
        """
        logs = self.context.config.table_type is TableType.MERGE_ON_READ
        begins = logs and any(stat.log_version is None and stat.prev_commit is not None for stat in metadata.stats())
        return self.context.storage.can.time_step_s if begins else 0.0

    def _wait_until_later_than_slices(self, based_on: BasedOn) -> None:
        """Where modification times are told to the second, the completion must not look older than the slices that it adds to.

        Apache Hudi 1.x would put the log files into older slices. It takes a wait only for a slice of this very second.
        """
        step_s = self.context.storage.can.time_step_s
        if step_s and based_on:
            self.context.clock.wait_until_passed(max(based_on.values()), step_s=step_s)

    def _require_held(self, is_lost: bool) -> None:
        if is_lost:
            raise LockError(
                f"instant {self.instant} of table {self.context.storage.uri} lost the table lock or its sign of life, because "
                "this process was paused or cut off for too long; another writer may have gone on meanwhile, so it was not "
                "published, and the next write rolls it back: run this write again"
            )

    def _others(self, timeline: Timeline) -> tuple[Instant, ...]:
        return tuple(instant for instant in timeline if instant.time != self.instant)

    @property
    def _completed(self) -> Instant:
        return Instant(self.instant, self.action, State.COMPLETED)

    def _epoch(self) -> Hashable:
        try:
            return self.context.publisher.epoch(self.instant)
        except FileNotFoundError as exc:
            raise CommitConflictError(self._conflict("another process is rolling it back")) from exc

    def _is_fenced(self) -> bool:
        try:
            self._epoch()
        except CommitConflictError:
            return True
        except OSError:
            return False  # not known
        return False

    def _publish(self, metadata: CommitMetadata, epoch: Hashable, timeline: Timeline) -> Instant:
        """Give the completed instant; `timeline`: as it was seen under the lock."""
        context = self.context
        completed = context.completing(self._completed, timeline)
        data = context.active.encode_commit(completed, metadata)
        try:
            context.active.complete(completed, data, context.publisher, epoch)
        except FileNotFoundError as exc:
            raise CommitConflictError(
                self._conflict("it was rolled back, or another write was committed while this one was paused")
            ) from exc
        except OSError as exc:
            if not self._landed(completed, metadata, exc):
                raise
        return completed

    def _timeline_with(self, completed: Instant) -> Timeline:
        """The timeline with the instant that was just completed."""
        timeline = self._timeline_since()
        if not self._looks_early(completed):
            return timeline
        self._touch(self.context.active.path(completed))
        return self._timeline_since()

    def _refuse_rolled_back(self, timeline: Timeline, completed: Instant) -> None:
        """Only a writer that does not take our lock can roll back what was checked under it. It may have deleted our files."""
        if not self._rolled_back_by(timeline):
            return
        with self.context.lock.held(self.context.lock_timeout_s):
            self.context.active.remove(completed)
        raise CommitOutcomeUnknownError(
            f"instant {self.instant} of table {self.context.storage.uri} was rolled back by another writer while it was being "
            "published; check the table before writing again, and let all writers share one lock"
        )

    def _looks_early(self, completed: Instant) -> bool:
        """Hudi 1.x reads the modification time as completion time: never before T. A listing of the timeline shows it."""
        try:
            return self.context.clock.ahead_of(self.context.active.reached_at(completed), self.instant)
        except OSError as exc:  # the commit has landed, and only this finer point is not known
            log.warning("the modification time of %s could not be read: %s", self.context.active.path(completed), exc)
            return False

    def _touch(self, path: str) -> None:
        try:
            self.context.storage.touch(path)
        except OSError as exc:
            log.warning("the modification time of %s could not be set right: %s", path, exc)

    def _timeline_since(self) -> Timeline:
        try:
            return self.context.active.load()
        except OSError as exc:
            raise CommitOutcomeUnknownError(
                f"instant {self.instant} of table {self.context.storage.uri} was published, but then its timeline could not be "
                f"read ({exc}), so it is not known whether the commit stands. Nothing was deleted; look at the timeline"
            ) from exc

    def _landed(self, completed: Instant, metadata: CommitMetadata, error: OSError) -> bool:
        """After a failed publish: True when the file is there and is ours, False when it is not there."""
        path = self.context.active.path(completed)
        try:
            stored = decode_commit_file(self.context.storage.read(path), completed.action, path=path)
        except FileNotFoundError:
            return False
        except (OSError, CorruptFileError) as exc:
            raise CommitOutcomeUnknownError(
                f"publishing {path} of table {self.context.storage.uri} failed ({error}), and it cannot be read back ({exc}): "
                "it is not known whether the commit landed. Nothing was deleted; look at the timeline when the storage works again"
            ) from error
        if stored.extra.get(NONCE) == metadata.extra[NONCE]:
            return True
        raise CommitConflictError(self._conflict(f"{path} was published by another process")) from error

    def _rolled_back_by(self, timeline: Timeline) -> bool:
        """A rollback whose plan is only being written does not count: its writer looks for our completed file."""
        before = {i.time for i in self.started_on}
        rollbacks = [i for i in timeline if i.action is Action.ROLLBACK and i.time not in before]
        return any(self.context.active.rollback_target(r) == self.instant for r in rollbacks)

    def _keep_view(self, timeline: Timeline, metadata: CommitMetadata) -> None:
        """Leave what was listed, and what this commit added to it, to the next write."""
        completed = timeline.commit_at.get(self.instant)
        if self.planned_on is None or completed is None:
            return
        try:
            self.context.active.remember(completed, metadata)
            view = self.planned_on.following(timeline, completed)
            if view is not None:
                self.context.keep_view(view)
        except (HoodieError, OSError) as exc:  # the commit stands; the next write lists anew
            log.debug("the files of table %s are listed again by its next write: %s", self.context.storage.uri, exc)

    def _clean_up(self) -> None:
        # Hudi's order: complete first, markers after. A failure here costs space, never the commit.
        try:
            self.heartbeat.stop(clear=partial(self.context.publisher.clear, self.instant, self.leftovers))
        except OSError as exc:
            log.warning("instant %s is committed, but its temporary files could not be removed: %s", self.instant, exc)
            self.heartbeat.abandon()

    def _conflict(self, reason: str) -> str:
        return (
            f"instant {self.instant} of table {self.context.storage.uri}, written by "
            f"{writer_of(CommitMetadata(extra=self.writer)).who}, cannot be committed: {reason}; "
            "nothing of this write is visible, run it again on the new snapshot"
        )


def _restores(timeline: Timeline) -> frozenset[str]:
    return frozenset(i.time for i in timeline if i.action is Action.RESTORE)
