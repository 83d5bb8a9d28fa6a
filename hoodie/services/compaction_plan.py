"""What a compaction plan names: which of the slices that it may take, in one plan or in several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from hoodie.model.files import FileSlice
from hoodie.model.payloads import CompactionCandidate, CompactionOperation, CompactionPlan
from hoodie.options.compaction import CompactionOptions
from hoodie.services.compaction_choice import choose

MOST_PLANS = 16
"""Of one planner: each is three files on the timeline, which everybody lists."""
_MB = 1024 * 1024


def plan_compaction(
    slices: Iterable[FileSlice],
    *,
    options: CompactionOptions,
    today: date,
    new_file_bytes: int,
    part_bytes: int | None = None,
) -> tuple[CompactionPlan, ...]:
    """One plan of the slices that the options' strategy takes, or several that follow its order; none where it takes none. Pure.

    Args:
        slices: latest slices, not merged over pending compactions, that no pending write or compaction names.
        today: in the table's time zone; some strategies go by it.
        new_file_bytes: what a base file is taken to have where there is none yet.
        part_bytes: about so much is read and written for each of several plans; None: one plan.
    """
    offered = {candidate_of(each, new_file_bytes=new_file_bytes): each for each in slices if each.logs}
    chosen = choose(tuple(offered), options, today=today)
    plans = []
    for part in _parts(chosen, part_bytes):
        missing = {each.partition_path: None for each in offered if each not in part}
        operations = tuple(operation_of(offered[each], each) for each in part)
        plans.append(CompactionPlan(operations, missing_partitions=tuple(missing)))
    return tuple(plans)


def candidate_of(file_slice: FileSlice, *, new_file_bytes: int) -> CompactionCandidate:
    """The slice by its sizes, as strategies look at it."""
    log_bytes = sum(log.size_bytes for log in file_slice.logs)
    base_bytes = file_slice.base.rows_bytes if file_slice.base else 0
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


def operation_of(file_slice: FileSlice, sizes: CompactionCandidate) -> CompactionOperation:
    """The slice as a plan names it."""
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
        bootstrap_file=file_slice.base.source_uri if file_slice.base else None,
    )
