"""Undo an instant that will never complete, or the newest commit.

Base files of the instant are deleted: no reader counts them. From version 8 on its log files are, too. In version 6 log files
stay where they are; a new log file with a rollback block disarms what the instant appended, because readers of version 6 see
blocks by instant, and one that has left the active timeline would count as committed.

A crash at any point is resumed (`recovery.py`): from the plan in `.rollback.requested`, or, when the rollback completed,
by removing what is left of the instant.

A writer of another program that died on HDFS may have left a log file open. While its lease stands, nobody without a JVM can read the
file to its end, neither the rollback nor a query, so the lease is recovered first. Our writers hold no file open under its final
name.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import cast

from hoodie.errors import CommitConflictError, InstantNotFoundError, LockError
from hoodie.filegroup.row_copies import drop_row_copies
from hoodie.format.plan_avro import encode_rollback_metadata, encode_rollback_plan
from hoodie.model.change import change_of_undoing
from hoodie.model.enums import Action, State
from hoodie.model.files import LogFile
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import COMPLETES_AS, heartbeat_path, join, name_of, parse_base_file, parse_log_file
from hoodie.model.payloads import RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest
from hoodie.model.results import RestoreResult
from hoodie.storage.base import AppendingStorage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.clock import Clock
from hoodie.timeline.pending import being_written, pending_write, written_by_others
from hoodie.timeline.timeline import Timeline
from hoodie.txn.completion import complete
from hoodie.txn.critical import under_lock
from hoodie.txn.heartbeat import Life, life_of
from hoodie.txn.index_changes import note_undone
from hoodie.txn.participants import before_plan
from hoodie.undo.undo_files import disarm, instants_in
from hoodie.undo.undo_rules import carries_on, preview, put_plan, require_newest, unreadable_commits
from hoodie.view.context import TableContext
from hoodie.view.view import FileSystemView

log = logging.getLogger("hoodie")

_TRIES = 3


def rollback_instant(context: TableContext, instant_time: InstantTime) -> str | None:
    """Roll back one pending write. None when it turns out to have landed, or to be gone already.

    Raises:
        InstantNotFoundError: the instant is completed, or not on the timeline at all.
        CommitConflictError: its writer lives, or one of another program that may hold log files open.
    """
    with context.lock.held(context.lock_timeout_s):
        timeline = context.active.load()
        instant = pending_write(context.active, timeline, instant_time, table=context.storage.uri)
        if instant is None:
            return None
        if life_of(instant_time, context) is not Life.DEAD:
            writer = being_written(instant, table=context.storage.uri, by=context.liveness.holder(instant_time))
            raise CommitConflictError(f"{writer}; try again later")
        context.publisher.fence(instant_time)
        if context.active.exists(
            Instant(instant.time, COMPLETES_AS.get(instant.action, instant.action), State.COMPLETED)
        ):
            return None  # it landed at the last moment
        earlier = context.active.rollback_of(timeline, instant_time)
        if earlier is not None and earlier.is_completed:
            _forget(context, instant_time, instant.action)
            return earlier.time
        if earlier is None:
            end_open_logs(context, timeline, instant)
            rollback_time = _allot(context.clock, timeline, instant_time)
            plan = plan_rollback(context, instant)
            context.active.create(Instant(rollback_time, Action.ROLLBACK, State.REQUESTED), encode_rollback_plan(plan))
        else:
            rollback_time, plan = earlier.time, context.active.read_rollback_plan(earlier.time)
        execute_rollback(context, rollback_time, plan)
        return rollback_time


def roll_back_commit(context: TableContext, instant_time: InstantTime) -> str:
    """Roll back the newest completed commit; gives the instant of the rollback.

    Raises:
        InstantNotFoundError, CommitConflictError: as `require_newest`.
    """
    context = context.on_storage()
    for _ in range(_TRIES):
        snapshot = context.snapshot()
        instant = snapshot.timeline.commit_at.get(instant_time)
        if instant is None:
            raise InstantNotFoundError(snapshot.timeline.not_found(instant_time, table=context.storage.uri))
        require_newest(context, snapshot, instant)
        with under_lock(context):
            if context.active.load_all().instants != snapshot.timeline.instants:
                continue
            before_plan(context)
            rollback_time = _allot(context.clock, snapshot.timeline, instant_time)
            plan = plan_rollback(context, instant)
            requested = Instant(rollback_time, Action.ROLLBACK, State.REQUESTED)
            put_plan(context, requested, encode_rollback_plan(plan))
            if context.lock.is_known_lost():
                # A write may have begun on this commit meanwhile. Nothing was undone yet.
                context.active.remove(requested)
                raise LockError(
                    f"the lock of table {context.storage.uri} ended while a rollback was planned; run it again"
                )
            with carries_on(context.storage, requested):
                execute_rollback(context, rollback_time, plan)
            context.kept_view()  # it lists files that are gone
            return rollback_time
    raise CommitConflictError(
        f"instant {instant_time} of table {context.storage.uri} was not rolled back: other processes kept changing the table; "
        "try again"
    )


def _allot(clock: Clock, timeline: Timeline, undone: InstantTime) -> InstantTime:
    """The instant of a rollback: above all others, but for those of a wrong clock where it takes one of them back."""
    if not clock.is_far_ahead(undone):
        return clock.allot(timeline.latest_time)
    reached = [i.time for i in timeline if not clock.is_far_ahead(i.time)]
    return clock.allot(max(reached, default=None))


def is_completed(active: ActiveTimeline, instant_time: str) -> bool:
    """Whether a commit is what is asked to be rolled back."""
    return any(instant.time == instant_time for instant in active.load().commits)


def preview_rollback(context: TableContext, instant_time: InstantTime | None) -> RestoreResult:
    """What a rollback would take back: of the newest commit, of a pending write or a plan that can be dropped, or of all writes whose
    writer is dead.

    Raises:
        InstantNotFoundError, CommitConflictError: as the rollback itself.
    """
    snapshot = context.snapshot()
    timeline = snapshot.timeline
    commit = timeline.commit_at.get(instant_time) if instant_time else None
    if commit is not None:
        require_newest(context, snapshot, commit)
        before = [i.time for i in timeline.commits if i != commit]
        return preview(context.listing, snapshot, [commit.time], to=before[-1] if before else None)
    planned = timeline.find(instant_time or "", Action.CLUSTERING, Action.LOGCOMPACTION)
    if instant_time is not None and planned is None:
        pending_write(context.active, timeline, instant_time, table=context.storage.uri)
    candidates = [planned] if planned else [i for i in timeline.pending_writes if instant_time in (None, i.time)]
    dead = [i.time for i in reversed(candidates) if life_of(i.time, context) is Life.DEAD]
    return preview(context.listing, snapshot, dead, to=timeline.commits[-1].time if timeline.commits else None)


def plan_rollback(context: TableContext, instant: Instant) -> RollbackPlan:
    """What the instant left behind, found by listing: markers may be gone, and other writers' may have other forms.

    Logs in a slice that a completed instant began go with its base file; those of a pending one are disarmed, because a copy of
    one may still come.
    """
    storage, snapshot = context.storage, context.snapshot()
    own_logs = context.config.layout.by_completion  # a log file has blocks of the instant in its name, and of no other
    left_out = unreadable_commits(context.active, snapshot.timeline, snapshot.timeline.completed_times) | {instant.time}
    view = FileSystemView(context.listing, context.active, snapshot.timeline.without(left_out), snapshot.archived)
    requests: list[RollbackRequest] = []
    # A view may follow the timeline, which does not tell of partitions that only the failed write has made. Those without
    # partition metadata have no data files yet.
    for partition_path in context.listing.all_files().partitions:
        groups: dict[str, list[LogFile]] = {}
        doomed: dict[str, list[str]] = {}
        for info in storage.list(partition_path):
            name = info.name
            base, log_name = parse_base_file(name), parse_log_file(name)
            if base is not None and base.instant == instant.time:
                doomed.setdefault(base.file_id, []).append(info.path)
            elif (
                log_name is not None
                and (own_logs or instant.is_completed or log_name.suffix)
                and log_name.base_instant == instant.time
            ):
                doomed.setdefault(log_name.file_id, []).append(info.path)
            elif log_name is not None and not own_logs and not log_name.suffix:
                groups.setdefault(log_name.file_id, []).append(
                    LogFile(
                        partition_path, log_name.file_id, log_name.base_instant, log_name.version, name, info.size_bytes
                    )
                )
        for file_id, paths in doomed.items():
            full = tuple(f"{storage.uri.rstrip('/')}/{path}" for path in paths)
            if own_logs:  # Apache Hudi's plans have a request for each file
                requests += [RollbackRequest(partition_path, file_id, instant.time, (path,)) for path in full]
            else:
                requests.append(RollbackRequest(partition_path, files_to_delete=full))
        committed = view.committed.of(partition_path)
        # Commits since then may have named what a log compaction left, which stays in the slice while its plan is pending.
        mere_names = () if instant.action is Action.LOGCOMPACTION else (0,)
        for file_id, logs in groups.items():
            for item in logs:
                accounted = committed.log_size(item.path) in (*mere_names, item.size_bytes)
                if not accounted and instant.time in instants_in(storage, item.path):
                    requests.append(
                        RollbackRequest(
                            partition_path,
                            file_id=file_id,
                            base_instant=item.base_instant,
                            log_blocks={item.name: item.size_bytes},
                        )
                    )
    return RollbackPlan(instant.time, instant.action, tuple(requests))


def execute_rollback(context: TableContext, rollback_time: InstantTime, plan: RollbackPlan) -> None:
    """Carry a plan out; every step may have been done before."""
    storage = context.storage
    started = time.monotonic()
    inflight = Instant(rollback_time, Action.ROLLBACK, State.INFLIGHT)
    if not context.active.exists(inflight):
        context.active.create(inflight)
    _take_off(context, plan)
    partitions: dict[str, list[RollbackPartition]] = {}
    by_slice: dict[tuple[str, str, InstantTime], dict[str, int]] = {}
    for request in plan.requests:
        if request.file_id and request.base_instant and request.log_blocks:
            key = (request.partition_path, request.file_id, request.base_instant)
            by_slice.setdefault(key, {}).update(request.log_blocks)
        deleted = []
        for full in request.files_to_delete:
            name = name_of(full)
            storage.delete(join(request.partition_path, name))
            deleted.append(full)
        if deleted:
            partitions.setdefault(request.partition_path, []).append(
                RollbackPartition(request.partition_path, deleted=tuple(deleted))
            )
    for (partition_path, file_id, base_instant), failed in by_slice.items():
        path, size = disarm(storage, partition_path, file_id, base_instant, rollback_time, [plan.instant])
        partitions.setdefault(partition_path, []).append(
            RollbackPartition(
                partition_path,
                rollback_log_files={f"{storage.uri.rstrip('/')}/{path}": size},
                failed_log_files=failed,
            )
        )
    merged = tuple(_merged(partition_path, parts) for partition_path, parts in sorted(partitions.items()))
    metadata = RollbackMetadata(
        started=rollback_time,
        took_ms=int((time.monotonic() - started) * 1000),
        rolled_back=((plan.instant, plan.action),),
        partitions=merged,
    )
    completed = Instant(rollback_time, Action.ROLLBACK, State.COMPLETED)
    context.clock.wait_until_passed(rollback_time)
    change = change_of_undoing(completed, [metadata])
    complete(context, change, encode_rollback_metadata(metadata), under_lock=True)
    _forget(context, plan.instant, plan.action)
    log.info("rolled back instant %s of table %s", plan.instant, storage.uri)


def _take_off(context: TableContext, plan: RollbackPlan) -> None:
    """Where a completed commit is undone: from here on no reader counts it."""
    completed = Instant(plan.instant, COMPLETES_AS.get(plan.action, plan.action), State.COMPLETED)
    if not context.active.exists(completed):
        return
    note_undone(context, [plan.instant])
    # A decision that was left would have the file put again.
    context.publisher.forget(plan.instant)
    for scheduled in (each for each, action in COMPLETES_AS.items() if action is completed.action):
        # First: a compaction must not look pending, and its plan be read, while it goes.
        for state in (State.REQUESTED, State.INFLIGHT):
            context.active.remove(Instant(plan.instant, scheduled, state))
    context.active.remove(completed)


def _merged(partition_path: str, parts: Iterable[RollbackPartition]) -> RollbackPartition:
    deleted: list[str] = []
    blocks: dict[str, int] = {}
    failed: dict[str, int] = {}
    for part in parts:
        deleted.extend(part.deleted)
        blocks.update(part.rollback_log_files)
        failed.update(part.failed_log_files)
    return RollbackPartition(partition_path, tuple(deleted), (), blocks, failed)


def _forget(context: TableContext, instant_time: InstantTime, action: Action) -> None:
    """Remove what is left of a rolled-back instant; its timeline files and heartbeat go last."""
    storage = context.storage
    drop_row_copies(storage, of={instant_time})
    context.publisher.forget(instant_time)
    context.active.remove(Instant(instant_time, action, State.INFLIGHT))
    context.active.remove(Instant(instant_time, action, State.REQUESTED))
    storage.delete(heartbeat_path(instant_time))
    context.liveness.release(instant_time)


def end_open_logs(context: TableContext, timeline: Timeline, instant: Instant) -> None:
    """Recover the leases of log files, of which a pending write that is dead may hold some. It can write no more then.

    A log does not say in its name who writes it: so all are asked for, a request each. Ask under the lock.

    Raises:
        CommitConflictError: a living writer of another program may hold some of them. OSError: a lease was not recovered.
    """
    storage = context.storage
    if not (storage.can.is_remote and isinstance(storage.lock_root, AppendingStorage)):
        return
    if context.liveness.is_alive(instant.time) is not None:
        return  # ours
    for other in timeline.pending_writes:
        if other != instant and life_of(other.time, context) is Life.FOREIGN_ALIVE:
            raise CommitConflictError(written_by_others(other, table=storage.uri))
    for partition_path in context.listing.all_files().partitions:
        for info in storage.list(partition_path):
            if not info.is_folder and parse_log_file(info.name) is not None:
                cast(AppendingStorage, storage).end_log(info.path)
