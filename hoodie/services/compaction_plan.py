"""What a compaction plan names: which file slices are taken, which wait, and the slices again when the plan is run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from hoodie.errors import HoodieError
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.model.compaction import CompactionCandidate
from hoodie.model.enums import Action, BlockKind, HeaderKey, State
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.payloads import NEW_GROUPS_ONLY, CompactionOperation, CompactionPlan
from hoodie.options.services import CompactionOptions
from hoodie.services.compaction_choice import choose
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot, TableContext

MOST_PLANS = 16
"""Of one planner: each is three files on the timeline, which everybody lists."""
_MB = 1024 * 1024


def plan_compaction(
    slices: Iterable[FileSlice],
    *,
    excluded: frozenset[FileGroupId],
    options: CompactionOptions,
    today: date,
    new_file_bytes: int,
    part_bytes: int | None = None,
) -> tuple[CompactionPlan, ...]:
    """One plan of the slices that the options' strategy takes, or several that follow its order; none where it takes none. Pure.

    Args:
        slices: latest slices, not merged over pending compactions.
        excluded: file groups that a pending write or compaction names.
        today: in the table's time zone; some strategies go by it.
        new_file_bytes: what a base file is taken to have where there is none yet.
        part_bytes: about so much is read and written for each of several plans; None: one plan.
    """
    offered = {
        candidate_of(each, new_file_bytes=new_file_bytes): each
        for each in slices
        if each.logs and each.group not in excluded
    }
    chosen = choose(tuple(offered), options, today=today)
    plans = []
    for part in _parts(chosen, part_bytes):
        left_out = {each.partition_path: None for each in offered if each not in part}
        operations = tuple(_operation(offered[each], each) for each in part)
        plans.append(CompactionPlan(operations, missing_partitions=tuple(left_out)))
    return tuple(plans)


def candidate_of(file_slice: FileSlice, *, new_file_bytes: int) -> CompactionCandidate:
    """The slice by its sizes, as strategies look at it."""
    log_bytes = sum(log.size_bytes for log in file_slice.logs)
    base_bytes = file_slice.base.size_bytes if file_slice.base else 0
    return CompactionCandidate(
        partition_path=file_slice.group.partition_path,
        file_id=file_slice.group.file_id,
        log_files=len(file_slice.logs),
        log_bytes=log_bytes,
        base_bytes=base_bytes,
        read_mb=(log_bytes + base_bytes) // _MB,
        write_mb=(base_bytes or new_file_bytes) // _MB,
    )


def _parts(chosen: Sequence[CompactionCandidate], part_bytes: int | None) -> list[dict[CompactionCandidate, None]]:
    """The slices in their order, cut where a plan has enough; at most `MOST_PLANS`, and the rest is left to the next planner."""
    parts: list[dict[CompactionCandidate, None]] = []
    size = 0
    for each in chosen:
        io_bytes = each.log_bytes + 2 * each.base_bytes
        if not parts or (part_bytes is not None and size + io_bytes > part_bytes):
            if len(parts) == MOST_PLANS:
                break
            parts.append({})
            size = 0
        parts[-1][each] = None
        size += io_bytes
    return parts


def _operation(file_slice: FileSlice, sizes: CompactionCandidate) -> CompactionOperation:
    return CompactionOperation(
        partition_path=sizes.partition_path,
        file_id=sizes.file_id,
        base_instant=file_slice.base_instant,
        data_file=file_slice.base.name if file_slice.base else None,
        log_files=tuple(log.name for log in file_slice.logs),
        metrics={
            "TOTAL_LOG_FILES": float(sizes.log_files),
            "TOTAL_LOG_FILES_SIZE": float(sizes.log_bytes),
            "TOTAL_IO_READ_MB": float(sizes.read_mb),
            "TOTAL_IO_WRITE_MB": float(sizes.write_mb),
            "TOTAL_IO_MB": float(sizes.io_mb),
        },
    )


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
