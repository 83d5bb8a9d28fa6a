"""Undo an instant that will never complete (table version 6).

Base files of the instant are deleted: no reader counts them. Log files stay where they are; a new log file with a
rollback block disarms what the instant appended, because readers of version 6 see blocks by instant, and one that has
left the active timeline would count as committed.

A crash at any point is resumed (`recovery.py`): from the plan in `.rollback.requested`, or, when the rollback completed,
by removing what is left of the instant.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from hoodie.errors import CommitConflictError, CorruptFileError
from hoodie.filegroup.row_copies import drop_row_copies
from hoodie.format.log_block import LogBlock, rollback_block, scan_blocks
from hoodie.format.plan_avro import encode_rollback_metadata, encode_rollback_plan
from hoodie.model.enums import Action, HeaderKey, State
from hoodie.model.files import LogFile
from hoodie.model.instant import Instant
from hoodie.model.names import (
    LogFileName,
    WriteToken,
    format_log_file,
    heartbeat_path,
    join,
    parse_base_file,
    parse_log_file,
)
from hoodie.model.payloads import RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest
from hoodie.options.fits import check_version
from hoodie.storage.base import Storage
from hoodie.timeline.pending import being_written, pending_write
from hoodie.txn.heartbeat import Life, life_of
from hoodie.view.context import Snapshot, TableContext

log = logging.getLogger("hoodie")


def rollback_instant(context: TableContext, instant_time: str) -> str | None:
    """Roll back one pending write. None when it turns out to have landed, or to be gone already.

    Raises:
        InstantNotFoundError: the instant is completed, or not on the timeline at all.
        CommitConflictError: its writer lives. UnsupportedTableError: the table is not of version 6.
    """
    check_version(context.config)
    with context.lock.held(context.lock_timeout_s):
        timeline = context.active.load()
        instant = pending_write(context.active, timeline, instant_time, table=context.storage.uri)
        if instant is None:
            return None
        if life_of(instant_time, context) is not Life.DEAD:
            writer = being_written(instant, table=context.storage.uri, by=context.liveness.holder(instant_time))
            raise CommitConflictError(f"{writer}; try again later")
        context.publisher.fence(instant_time)
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
        execute_rollback(context, rollback_time, plan)
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


def execute_rollback(context: TableContext, rollback_time: str, plan: RollbackPlan) -> None:
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


def _forget(context: TableContext, instant_time: str, action: Action) -> None:
    """Remove what is left of a rolled-back instant; its timeline files and heartbeat go last."""
    storage = context.storage
    drop_row_copies(storage, of=instant_time)
    context.publisher.forget(instant_time)
    context.active.remove(Instant(instant_time, action, State.INFLIGHT))
    context.active.remove(Instant(instant_time, action, State.REQUESTED))
    storage.delete(heartbeat_path(instant_time))
    context.liveness.release(instant_time)
