"""Undo an instant that will never complete (table version 6).

Base files of the instant are deleted: no reader counts them. Log files stay where they are; a new log file with a
rollback block disarms what the instant appended, because readers of version 6 see blocks by instant, and one that has
left the active timeline would count as committed.

A crash at any point is resumed: from the plan in `.rollback.requested`, or, when the rollback completed, by removing
what is left of the instant.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from contextlib import suppress

from hoodie.errors import CommitConflictError, CorruptFileError, InstantNotFoundError
from hoodie.filegroup.row_copies import drop_row_copies
from hoodie.format.log_block import LogBlock, rollback_block, scan_blocks
from hoodie.format.plan_avro import encode_rollback_metadata, encode_rollback_plan
from hoodie.model.enums import Action, HeaderKey, State
from hoodie.model.files import LogFile
from hoodie.model.instant import Instant, is_instant_time
from hoodie.model.names import (
    MARKERS,
    STAGING,
    LogFileName,
    WriteToken,
    format_log_file,
    join,
    parse_base_file,
    parse_log_file,
)
from hoodie.model.payloads import CompactionPlan, RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest
from hoodie.options.fits import check_version
from hoodie.storage.base import Storage
from hoodie.timeline.active import scratch_folder
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.txn.heartbeat import Life, heartbeat_path, life_of
from hoodie.view.context import Snapshot, TableContext

log = logging.getLogger("hoodie")

_FENCED = ".rolled-back"


def rollback_failed(context: TableContext) -> list[str]:
    """Roll back every pending write whose writer is dead; gives their instants. Done before each write.

    Raises:
        CommitConflictError: a writer that does not share our lock is working on the table right now.
        UnsupportedTableError: the table is not of version 6. TableNotFoundError: it was deleted.
    """
    check_version(context.config)
    timeline = context.snapshot().timeline
    dead = []
    for instant in timeline.pending_writes:
        match life_of(instant.time, storage=context.storage, liveness=context.liveness):
            case Life.DEAD:
                dead.append(instant)
            case Life.FOREIGN_ALIVE:
                raise CommitConflictError(
                    f"another writer is working on table {context.storage.uri}: instant {instant} is pending and its heartbeat is "
                    "fresh. Nothing was written; run again when it is done"
                )
            case Life.ALIVE:
                continue
    unfinished = timeline.pending(Action.ROLLBACK)
    for rollback in unfinished:
        _resume(context, rollback)
    undone = []
    for instant in dead:
        # A writer that completed after the timeline was read looks dead: it is not at work any more.
        with suppress(InstantNotFoundError):
            rollback_instant(context, instant.time)
            undone.append(instant.time)
    _release_compactions(context, timeline)
    _remove_remains(context)
    return undone


def rollback_instant(context: TableContext, instant_time: str) -> str | None:
    """Roll back one pending write. None when it turns out to have landed, or to be gone already.

    Raises:
        InstantNotFoundError: the instant is completed, or not on the timeline at all.
        CommitConflictError: its writer lives. UnsupportedTableError: the table is not of version 6.
    """
    check_version(context.config)
    with context.lock.held(context.lock_timeout_s):
        timeline = context.active.load()
        instant = timeline.find(instant_time, *WRITES)
        if instant is None:
            if any(context.active.rollback_target(r) == instant_time for r in timeline if r.action is Action.ROLLBACK):
                return None
            raise InstantNotFoundError(timeline.not_pending(instant_time, table=context.storage.uri))
        if instant.is_completed:
            raise InstantNotFoundError(
                f"instant {instant} of table {context.storage.uri} is completed; only pending instants are rolled back"
            )
        if life_of(instant_time, storage=context.storage, liveness=context.liveness) is not Life.DEAD:
            raise CommitConflictError(
                f"instant {instant} of table {context.storage.uri} is still being written; try again later"
            )
        _fence(context.storage, instant_time)
        if context.active.exists(Instant(instant.time, instant.action, State.COMPLETED)):
            return None  # it landed at the last moment
        earlier = next(
            (r for r in timeline if r.action is Action.ROLLBACK and context.active.rollback_target(r) == instant_time),
            None,
        )
        if earlier is not None and earlier.is_completed:
            _forget(context, instant_time, instant.action)
            return earlier.time
        if earlier is None:
            rollback_time = context.clock.allot(timeline.latest_time)
            plan = plan_rollback(context.storage, context.snapshot(), instant)
            context.active.create(Instant(rollback_time, Action.ROLLBACK, State.REQUESTED), encode_rollback_plan(plan))
        else:
            rollback_time, plan = earlier.time, context.active.read_rollback_plan(earlier.time)
        _execute(context, rollback_time, plan)
        return rollback_time


def plan_rollback(storage: Storage, snapshot: Snapshot, instant: Instant) -> RollbackPlan:
    """What the instant left behind, found by listing: markers may be gone, and other writers' may have other forms."""
    requests: list[RollbackRequest] = []
    for partition_path in snapshot.view.partitions():  # one without partition metadata has no data files yet
        groups: dict[str, list[LogFile]] = {}
        doomed: dict[str, list[str]] = {}
        for info in storage.list(partition_path):
            name = info.path.rpartition("/")[2]
            base = parse_base_file(name)
            if base is not None and base.instant == instant.time:
                doomed.setdefault(base.file_id, []).append(info.path)
            found = parse_log_file(name)
            if found is not None:
                groups.setdefault(found.file_id, []).append(
                    LogFile(partition_path, found.file_id, found.base_instant, found.version, name, info.size_bytes)
                )
        for paths in doomed.values():
            full = tuple(f"{storage.uri.rstrip('/')}/{path}" for path in paths)
            requests.append(RollbackRequest(partition_path, files_to_delete=full))
        committed = snapshot.view.committed.of(partition_path)
        for file_id, logs in groups.items():
            for item in logs:
                if committed.log_size(item.path) is None and _has_blocks_of(storage, item, instant.time):
                    requests.append(
                        RollbackRequest(
                            partition_path,
                            file_id=file_id,
                            base_instant=item.base_instant,
                            log_blocks={item.name: item.size_bytes},
                        )
                    )
    return RollbackPlan(instant.time, instant.action, tuple(requests))


def _has_blocks_of(storage: Storage, item: LogFile, instant_time: str) -> bool:
    try:
        blocks = list(scan_blocks(storage.read(item.path)))
    except (FileNotFoundError, CorruptFileError):
        return False
    return any(isinstance(b, LogBlock) and b.header.get(HeaderKey.INSTANT_TIME) == instant_time for b in blocks)


def _execute(context: TableContext, rollback_time: str, plan: RollbackPlan) -> None:
    """Carry a plan out; every step may have been done before."""
    storage = context.storage
    started = time.monotonic()
    inflight = Instant(rollback_time, Action.ROLLBACK, State.INFLIGHT)
    if not context.active.exists(inflight):
        context.active.create(inflight)
    partitions: dict[str, list[RollbackPartition]] = {}
    by_slice: dict[tuple[str, str, str], dict[str, int]] = {}
    for request in plan.requests:
        if request.file_id and request.base_instant and request.log_blocks:
            key = (request.partition_path, request.file_id, request.base_instant)
            by_slice.setdefault(key, {}).update(request.log_blocks)
        deleted = []
        for full in request.files_to_delete:
            name = full.rpartition("/")[2]
            storage.delete(join(request.partition_path, name))
            deleted.append(full)
        if deleted:
            partitions.setdefault(request.partition_path, []).append(
                RollbackPartition(request.partition_path, deleted=tuple(deleted))
            )
    for (partition_path, file_id, base_instant), failed in by_slice.items():
        path, size = _disarm(storage, partition_path, file_id, base_instant, rollback_time, plan.instant)
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
    if not context.active.exists(completed):
        context.active.create(completed, encode_rollback_metadata(metadata))
    _forget(context, plan.instant, plan.action)
    log.info("rolled back instant %s of table %s", plan.instant, storage.uri)


def _disarm(
    storage: Storage, partition_path: str, file_id: str, base_instant: str, rollback_time: str, target: str
) -> tuple[str, int]:
    """A log file with one rollback block, behind every log file of the slice. Written once, also when resumed."""
    block = rollback_block(instant=rollback_time, target=target)
    highest = 0
    for info in storage.list(partition_path):
        found = parse_log_file(info.path.rpartition("/")[2])
        if found is None or (found.file_id, found.base_instant) != (file_id, base_instant):
            continue
        highest = max(highest, found.version)
        if info.size_bytes == len(block) and storage.read(info.path) == block:
            return info.path, len(block)
    name = format_log_file(LogFileName(file_id, base_instant, highest + 1, str(WriteToken(0, 0, 0))))
    path = join(partition_path, name)
    storage.create_new(path, block)
    return path, len(block)


def _merged(partition_path: str, parts: Iterable[RollbackPartition]) -> RollbackPartition:
    deleted: list[str] = []
    blocks: dict[str, int] = {}
    failed: dict[str, int] = {}
    for part in parts:
        deleted.extend(part.deleted)
        blocks.update(part.rollback_log_files)
        failed.update(part.failed_log_files)
    return RollbackPartition(partition_path, tuple(deleted), (), blocks, failed)


def _fence(storage: Storage, instant_time: str) -> None:
    """Take the instant's staging folder away: a writer that was only paused can publish nothing any more."""
    staging, fenced = scratch_folder(instant_time), fenced_folder(instant_time)
    try:
        storage.rename_folder(staging, fenced)
    except FileNotFoundError:
        return  # another kind of writer, or an earlier try
    except FileExistsError:
        storage.delete_folder(fenced)
        storage.rename_folder(staging, fenced)


def fenced_folder(instant_time: str) -> str:
    """Where the staging folder of an instant is moved, so that its writer does not find it any more."""
    return scratch_folder(instant_time) + _FENCED


def _forget(context: TableContext, instant_time: str, action: Action) -> None:
    """Remove what is left of a rolled-back instant; its timeline files and heartbeat go last."""
    storage = context.storage
    drop_row_copies(storage, of=instant_time)
    storage.delete_folder(join(MARKERS, instant_time))
    storage.delete_folder(fenced_folder(instant_time))
    storage.delete_folder(scratch_folder(instant_time))
    context.active.remove(Instant(instant_time, action, State.INFLIGHT))
    context.active.remove(Instant(instant_time, action, State.REQUESTED))
    storage.delete(heartbeat_path(instant_time))
    context.liveness.release(instant_time)


def _resume(context: TableContext, rollback: Instant) -> None:
    """Finish a rollback whose process died; the instant that it undoes cannot come back to life."""
    with context.lock.held(context.lock_timeout_s):
        if not context.active.exists(Instant(rollback.time, Action.ROLLBACK, State.REQUESTED)):
            return
        if context.active.exists(Instant(rollback.time, Action.ROLLBACK, State.COMPLETED)):
            return
        try:
            plan = context.active.read_rollback_plan(rollback.time)
        except CorruptFileError:
            if context.active.exists(Instant(rollback.time, Action.ROLLBACK, State.INFLIGHT)):
                raise
            # Other writers do not publish plans atomically: this one died before it had done anything.
            context.active.remove(rollback)
            return
        _fence(context.storage, plan.instant)
        _execute(context, rollback.time, plan)


def _release_compactions(context: TableContext, timeline: Timeline) -> None:
    """A compaction whose runner died goes back to requested: logs that are named with it live by it."""
    for instant in timeline.pending(Action.COMPACTION):
        if instant.state is State.INFLIGHT:
            reset_compaction(context, instant.time)


def reset_compaction(context: TableContext, instant_time: str) -> bool:
    """Take a dead runner's claim back and delete its base files. False while its runner lives, or when it completed."""
    storage = context.storage
    with context.lock.held(context.lock_timeout_s):
        if life_of(instant_time, storage=storage, liveness=context.liveness) is not Life.DEAD:
            return False
        _fence(storage, instant_time)
        if context.active.exists(Instant(instant_time, Action.COMMIT, State.COMPLETED)):
            return False
        delete_compaction_output(storage, instant_time, context.active.read_compaction_plan(instant_time))
        storage.delete_folder(join(MARKERS, instant_time))
        storage.delete_folder(fenced_folder(instant_time))
        context.active.remove(Instant(instant_time, Action.COMPACTION, State.INFLIGHT))
        storage.delete(heartbeat_path(instant_time))
        context.liveness.release(instant_time)
    return True


def delete_compaction_output(storage: Storage, instant_time: str, plan: CompactionPlan) -> None:
    """Delete the base files that an earlier try of this very compaction left."""
    for operation in plan.operations:
        for info in storage.list(operation.partition_path):
            base = parse_base_file(info.path.rpartition("/")[2])
            if base is not None and (base.file_id, base.instant) == (operation.file_id, instant_time):
                storage.delete(info.path)


def _remove_remains(context: TableContext) -> None:
    """What dead writers left that no pending instant stands for any more.

    They died before their instant was on the timeline, after it was completed, or at the end of a rollback.
    """
    if not _remains(context):
        return
    storage = context.storage
    with context.lock.held(context.lock_timeout_s):  # a writer makes its staging folder and its mark under the lock
        for name in _remains(context):
            if is_instant_time(name):
                storage.delete_folder(join(MARKERS, name))
            storage.delete_folder(scratch_folder(name))
            storage.delete_folder(fenced_folder(name))
            if is_instant_time(name):
                storage.delete(heartbeat_path(name))
            context.liveness.release(name)


def _remains(context: TableContext) -> list[str]:
    """Names of marks and staging folders whose writer is dead, but for those of pending instants."""
    marks = context.liveness.marks()
    staged = {
        info.path.rpartition("/")[2].removesuffix(_FENCED) for info in context.storage.list(STAGING) if info.is_folder
    }
    if not (marks or staged):
        return []
    pending = {instant.time for instant in context.active.load().pending()}
    return sorted(
        name
        for name in (marks | staged) - pending
        if (name not in marks and is_instant_time(name)) or context.liveness.is_alive(name) is False
    )
