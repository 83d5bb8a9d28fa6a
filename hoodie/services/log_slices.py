"""Plans over file slices with logs, of compactions and log compactions alike: how they come onto the timeline, and the slices again
when a plan is run.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hoodie.engine.base import Engine
from hoodie.engine.local import TASK_BYTES
from hoodie.errors import HoodieError
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.plan_avro import encode_compaction_plan
from hoodie.model.enums import Action, BlockKind, HeaderKey, State
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Instant
from hoodie.model.names import doctor_of
from hoodie.model.payloads import NEW_GROUPS_ONLY, NON_BLOCKING, CommitMetadata, CompactionOperation, CompactionPlan
from hoodie.options.write import WriteOptions
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.txn.critical import under_lock
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.view import FileSystemView


@dataclass(frozen=True)
class FoundSlices:
    """What a plan may take."""

    free: Sequence[FileSlice]
    """Latest slices with logs that nobody is at work on, and that no other plan names."""
    timeline: Timeline


def try_to_schedule(
    context: TableContext,
    action: Action,
    plan: Callable[[FoundSlices], Sequence[CompactionPlan]],
    *,
    take_what_is_free: bool,
    filter_of: Callable[[Snapshot], Callable[[FileSlice], bool]] = lambda _: lambda _: True,
) -> tuple[str | None, bool]:
    """The instant of the first new plan, if one was made, and whether pending writes stood in the way of a (fuller) one.

    Args:
        filter_of: gives for a snapshot which slices with logs are worth waiting for at all.
    """
    # The whole table is listed before writers have to wait. With the gate closed, the listing mostly holds under the lock.
    view = context.ask(_list_slices)
    with under_lock(context):
        snapshot = context.snapshot(view)
        pending = {*snapshot.view.pending_compactions(), *snapshot.view.pending_clusterings()}
        # A compaction may pass one: what it merges is all that a log compaction would. Where completion decides, that one's log would
        # come to lie on the new base file.
        if action is Action.LOGCOMPACTION or snapshot.timeline.by_completion:
            pending |= snapshot.view.pending_log_compactions().keys()
        is_wanted = filter_of(snapshot)
        with_logs = [s for s in snapshot.view.latest_slices() if s.logs and s.group not in pending and is_wanted(s)]
        excluded = _in_the_way(context, snapshot, with_logs, action)
        # Before anything is said of their logs: a write that has published its log and not yet its commit is waited for too.
        busy = any(s.group in excluded for s in with_logs)
        if busy and not take_what_is_free:
            return None, True
        free = [s for s in with_logs if s.group not in excluded and is_explained(context, s, snapshot.timeline)]
        latest, instants = snapshot.timeline.latest_time, []
        for each in plan(FoundSlices(free, snapshot.timeline)):
            latest = context.clock.allot(latest)
            data = encode_compaction_plan(each, of_logs=action is Action.LOGCOMPACTION)
            context.active.create(Instant(latest, action, State.REQUESTED), data)
            instants.append(latest)
    return next(iter(instants), None), busy


def _list_slices(snapshot: Snapshot) -> FileSystemView:
    snapshot.view.latest_slices()
    return snapshot.view


def _in_the_way(
    context: TableContext, snapshot: Snapshot, slices: Sequence[FileSlice], action: Action
) -> frozenset[FileGroupId]:
    """File groups that pending writes name.

    A non-blocking write need not stand in the way of a compaction: its log will lie on the new base file. But readers merge logs in
    the order of their instants, so it does where a later instant was completed first: whose rows win must not change.
    """
    passes = action is Action.COMPACTION and snapshot.timeline.by_completion
    every = frozenset(each.group for each in slices)
    result: set[FileGroupId] = set()
    for instant in snapshot.timeline.pending_writes:
        inflight = context.active.read_inflight(instant) if instant.state is State.INFLIGHT else None
        groups = _named_by(inflight)
        busy_groups = every if groups is None else groups
        if passes and (context.concurrency.non_blocking or (inflight is not None and NON_BLOCKING in inflight.extra)):
            late = {each.group for each in slices if any(log.base_instant > instant.time for log in each.logs)}
            busy_groups &= late
        result |= busy_groups
    return frozenset(result)


def named_by_pending_writes(active: ActiveTimeline, snapshot: Snapshot) -> frozenset[FileGroupId] | None:
    """File groups that pending writes name; None when one of them may touch any."""
    groups: frozenset[FileGroupId] = frozenset()
    for instant in snapshot.timeline.pending_writes:
        busy_groups = _named_by(active.read_inflight(instant) if instant.state is State.INFLIGHT else None)
        if busy_groups is None:
            return None
        groups |= busy_groups
    return groups


def _named_by(inflight: CommitMetadata | None) -> frozenset[FileGroupId] | None:
    """None: it may touch any file group."""
    if inflight is not None and NEW_GROUPS_ONLY in inflight.extra:
        return frozenset()
    if inflight is None or not inflight.write_stats:
        return None
    if not all(stat.file_id for stat in inflight.stats()):
        return None  # Hudi's profile of inserts: the files are chosen later, without our lock
    return frozenset(FileGroupId(stat.partition_path, stat.file_id) for stat in inflight.stats())


def is_explained(context: TableContext, file_slice: FileSlice, timeline: Timeline) -> bool:
    """Whether every log of the slice is accounted for; a slice with another one waits until that is rolled back.

    A log file that no active commit names is accounted for when it holds rollback blocks only, when its commit was taken back or
    archived, or when its commit completed without it (a dead attempt's leftover, which no reader of ours counts). What a log
    compaction left that is still pending says nothing that other logs do not say.
    """
    merging = frozenset(i.time for i in timeline.pending(Action.LOGCOMPACTION))
    unknown_times, taken_back = set(), set()
    for item in file_slice.logs:
        if item.committed_bytes is not None:
            continue
        try:
            data = context.storage.read(item.path)
        except OSError as exc:
            if exc.errno == errno.EBUSY:
                return False  # on HDFS: somebody writes it at this moment
            raise
        for block in scan_blocks(data):
            if not isinstance(block, LogBlock):
                continue
            if block.kind is BlockKind.COMMAND:
                taken_back.add(block.header.get(HeaderKey.TARGET_INSTANT_TIME, ""))
            elif (instant := block.header.get(HeaderKey.INSTANT_TIME, "")) not in merging and not timeline.sees(
                instant
            ):
                unknown_times.add(instant)
    if not timeline.pending(Action.ROLLBACK, Action.RESTORE):  # who is at it may yet add to the slice
        unknown_times -= taken_back
    return all(_is_undone(context.active, timeline, each) for each in unknown_times)


def _is_undone(active: ActiveTimeline, timeline: Timeline, instant: str) -> bool:
    """Whether a rollback or a restore has taken it back: of a log that came after that, or that has no block which says so."""
    return any(
        active.rollback_target(each) == instant
        if each.action is Action.ROLLBACK
        else each.action is Action.RESTORE and any(time == instant for time, _ in active.planned_to_undo(each))
        for each in timeline
        if each.is_completed and each.time > instant
    )


def planned_slice(snapshot: Snapshot, operation: CompactionOperation, table: str) -> FileSlice:
    """The slice with exactly the files that the plan names."""
    group = FileGroupId(operation.partition_path, operation.file_id)
    for candidate in snapshot.view.file_groups(operation.partition_path):
        if candidate.id != group:
            continue
        logs = {log.name: log for file_slice in candidate.slices for log in file_slice.logs}
        bases = {file_slice.base.name: file_slice.base for file_slice in candidate.slices if file_slice.base}
        base = bases.get(operation.data_file) if operation.data_file else None
        if (operation.data_file and base is None) or any(name not in logs for name in operation.log_files):
            break
        return FileSlice(group, operation.base_instant, base, tuple(logs[name] for name in operation.log_files))
    raise HoodieError(
        f"the compaction plan of table {table} names files of group {operation.file_id} in partition "
        f"{operation.partition_path!r} that are not there, because files were changed without the timeline: {doctor_of(table)}"
    )


def share_memory(context: TableContext, options: WriteOptions, tasks: int) -> tuple[Engine, int]:
    """The engine that runs so many tasks within the memory of a compaction, and what each of them may take of it."""
    memory_bytes = options.compaction.memory_bytes
    engine = context.engine.within(memory_bytes)
    at_once = max(1, min(tasks, memory_bytes // TASK_BYTES)) if engine.shares_memory else 1
    return engine, max(memory_bytes // at_once, context.tuning.least_room_bytes)
