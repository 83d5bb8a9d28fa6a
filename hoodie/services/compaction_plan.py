"""What a compaction plan names: which file slices are taken, which wait, and the slices again when the plan is run."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import HoodieError
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.model.enums import Action, BlockKind, HeaderKey, State
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.payloads import NEW_GROUPS_ONLY, CompactionOperation, CompactionPlan
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot, TableContext

_MB = 1024 * 1024


def plan_compaction(
    slices: Iterable[FileSlice], *, excluded: frozenset[FileGroupId], target_io_bytes: int
) -> CompactionPlan:
    """Slices with logs, the largest logs first, until the plan's IO reaches the bound. Pure.

    Args:
        slices: latest slices, not merged over pending compactions.
        excluded: file groups that a pending write or compaction names.
    """
    with_logs = [s for s in slices if s.logs and s.group not in excluded]
    with_logs.sort(key=lambda s: sum(log.size_bytes for log in s.logs), reverse=True)
    operations: list[CompactionOperation] = []
    planned_io = 0
    for file_slice in with_logs:
        log_bytes = sum(log.size_bytes for log in file_slice.logs)
        base_bytes = file_slice.base.size_bytes if file_slice.base else 0
        io = log_bytes + 2 * base_bytes
        if operations and planned_io + io > target_io_bytes:
            break
        planned_io += io
        operations.append(
            CompactionOperation(
                partition_path=file_slice.group.partition_path,
                file_id=file_slice.group.file_id,
                base_instant=file_slice.base_instant,
                data_file=file_slice.base.name if file_slice.base else None,
                log_files=tuple(log.name for log in file_slice.logs),
                metrics={
                    "TOTAL_LOG_FILES": float(len(file_slice.logs)),
                    "TOTAL_LOG_FILES_SIZE": float(log_bytes),
                    "TOTAL_IO_READ_MB": float((log_bytes + base_bytes) // _MB),
                    "TOTAL_IO_WRITE_MB": float(base_bytes // _MB),
                    "TOTAL_IO_MB": float(io // _MB),
                },
            )
        )
    return CompactionPlan(tuple(operations))


def named_by_pending_writes(context: TableContext, snapshot: Snapshot) -> frozenset[FileGroupId] | None:
    """File groups that pending writes name; None when one of them may touch any."""
    groups: set[FileGroupId] = set()
    for instant in snapshot.timeline.pending_writes:
        named = context.active.read_inflight(instant) if instant.state is State.INFLIGHT else None
        if named is not None and NEW_GROUPS_ONLY in named.extra:
            continue
        if named is None or not named.write_stats:
            return None
        for stat in named.stats():
            if not stat.file_id:
                return None  # Hudi's profile of inserts: the files are chosen later, without our lock
            groups.add(FileGroupId(stat.partition_path, stat.file_id))
    return frozenset(groups)


def is_explained(context: TableContext, file_slice: FileSlice, timeline: Timeline) -> bool:
    """Whether every log of the slice is accounted for; a slice with another one waits until that is rolled back.

    A log file that no active commit names is accounted for when it holds rollback blocks only, when its commit was
    archived, or when its commit completed without it (a dead attempt's leftover, which no reader of ours counts).
    """
    for item in file_slice.logs:
        if item.committed_bytes is not None:
            continue
        for block in scan_blocks(context.storage.read(item.path)):
            if isinstance(block, LogBlock) and block.kind is not BlockKind.COMMAND:
                instant = block.header.get(HeaderKey.INSTANT_TIME, "")
                if not timeline.sees(instant) and not _disarmed(context, timeline, instant):
                    return False
    return True


def _disarmed(context: TableContext, timeline: Timeline, instant: str) -> bool:
    return any(
        context.active.rollback_target(r) == instant
        for r in timeline
        if r.action is Action.ROLLBACK and r.is_completed and r.time > instant
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
        f"{operation.partition_path!r} that are not there; the table was changed behind its timeline"
    )
