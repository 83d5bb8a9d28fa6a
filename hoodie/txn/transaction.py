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
from hoodie.model.enums import Action, State, TableType
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import CommitMetadata
from hoodie.model.plans import FileOptions, WriteContext
from hoodie.options.mergers import runnable
from hoodie.storage.parallel import together
from hoodie.timeline.pending import run_by_others
from hoodie.timeline.timeline import Timeline
from hoodie.txn.commit_check import CommitCheck, StrangerAtWorkError
from hoodie.txn.conflict import BasedOn, WriteBasis
from hoodie.txn.critical import refuse_amid_restore
from hoodie.txn.earlier_writers import Ahead, Patience, wait_for
from hoodie.txn.heartbeat import Heartbeat, format_writer, writer_of
from hoodie.txn.lock_look import look_under_lock, require_same_layout
from hoodie.txn.metadata_table import Seen, list_metadata_folder
from hoodie.txn.participants import before_completion, before_plan
from hoodie.view.columns import column_history, history_after, keep_history
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import refuse_lost_types, stated_schema
from hoodie.view.view import FileSystemView

P = TypeVar("P")
log = logging.getLogger("hoodie")

NONCE = "hoodie.python.commit"
"""Key in a commit's extra metadata: tells this very attempt's file from any other of the same name."""


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
        self._commit_check().check_files(self.context.snapshot(), footing)

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
        snapshot = self._commit_check().check(snapshot, metadata, footing)
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

    def _commit_check(self) -> CommitCheck:
        return CommitCheck(
            self.context,
            self.instant,
            self.action,
            self.started_on,
            self.planned_on,
            self.claimed,
            self.non_blocking,
            self._conflict,
        )

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
        if not self._commit_check().is_rolled_back_by(timeline):
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
