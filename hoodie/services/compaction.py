"""Compaction: merge the logs of file slices into new base files, while writers keep appending.

Scheduling and running are two acts, possibly of two processes. From the moment the plan is on the timeline, writers
name their log files with the compaction's instant: the plan's logs are complete, and what comes later belongs to the
new slice. A scheduled compaction is never taken back; a failed run goes back to requested.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from hoodie.errors import CommitConflictError, HoodieError, InstantNotFoundError, OptionError
from hoodie.filegroup.row_copies import drop_row_copies
from hoodie.filegroup.run import run_compact
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.plan_avro import encode_compaction_plan
from hoodie.model.enums import Action, BlockKind, HeaderKey, State, TableType, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Instant
from hoodie.model.payloads import NEW_GROUPS_ONLY, CompactionOperation, CompactionPlan
from hoodie.model.plans import CompactTask, FileOptions
from hoodie.model.results import CommitResult
from hoodie.options.fits import check_version
from hoodie.services.rollback import delete_compaction_output, reset_compaction, rollback_failed
from hoodie.timeline.timeline import Timeline
from hoodie.txn.gate import PATIENCE_S, PAUSE_S, closed_gate
from hoodie.txn.same_table import require_same_table
from hoodie.txn.transaction import Transaction
from hoodie.view.columns import refuse_to_write
from hoodie.view.context import Snapshot, TableContext, load_config
from hoodie.write.publish import commit_metadata, publish_files

log = logging.getLogger("hoodie")

DEFAULT_TARGET_IO_BYTES = 500 * 1024 * 1024 * 1024
"""Hudi's `hoodie.compaction.target.io` default (500 GB): one plan reads and writes at most this much."""

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


def schedule_compaction(
    context: TableContext, *, target_io_bytes: int = DEFAULT_TARGET_IO_BYTES, wait_s: float = PATIENCE_S
) -> str | None:
    """Put a compaction plan on the timeline; gives its instant, None when no file group has logs to merge.

    File groups that a pending write names are left out: new writes are held back, and pending ones waited for, up to
    `wait_s` seconds. A pending write that does not say which groups it names stands for all.

    Raises:
        OptionError: the table is not merge-on-read.
        CommitConflictError: pending writes named every file group with logs all the time.
    """
    check_version(context.config)
    _require_merge_on_read(context)
    rollback_failed(context)
    waited = 0.0
    with closed_gate(context):
        while True:
            instant, busy = _try_to_schedule(context, target_io_bytes, take_what_is_free=waited >= wait_s)
            if instant is not None or not busy:
                return instant
            if waited >= wait_s:
                raise CommitConflictError(
                    f"no compaction of table {context.storage.uri} could be scheduled within {wait_s:.0f} s: every file group "
                    "with logs is named by a write in progress; nothing was changed, try again when they are done"
                )
            context.clock.pause(PAUSE_S)
            waited += PAUSE_S


def _try_to_schedule(
    context: TableContext, target_io_bytes: int, *, take_what_is_free: bool
) -> tuple[str | None, bool]:
    """The instant of the new plan, if one was made, and whether pending writes stood in the way of a (fuller) one."""
    with context.lock.held(context.lock_timeout_s):
        require_same_table(context.config, load_config(context.storage))
        snapshot = context.snapshot()
        refuse_to_write(context.storage, snapshot.active, snapshot.timeline)
        pending = frozenset(snapshot.view.pending_compactions())
        with_logs = [s for s in snapshot.view.latest_slices() if s.logs and s.group not in pending]
        named = _named_by_pending_writes(context, snapshot)
        excluded = frozenset(s.group for s in with_logs) if named is None else named
        # Before anything is said of their logs: a write that has published its log and not yet its commit is waited for too.
        busy = any(s.group in excluded for s in with_logs)
        if busy and not take_what_is_free:
            return None, True
        candidates = [s for s in with_logs if _explained(context, s, snapshot.timeline)]
        plan = plan_compaction(candidates, excluded=excluded, target_io_bytes=target_io_bytes)
        if not plan.operations:
            return None, busy
        instant = context.clock.allot(snapshot.timeline.latest_time)
        context.active.create(Instant(instant, Action.COMPACTION, State.REQUESTED), encode_compaction_plan(plan))
    return instant, busy


def run_compaction(
    context: TableContext,
    *,
    options: FileOptions,
    instant: str | None = None,
    budget_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[CommitResult]:
    """Run one scheduled compaction, or all of them, oldest first; no new one is begun after `budget_s` seconds.

    Raises:
        InstantNotFoundError: no compaction is pending at `instant`.
        CommitConflictError: another process runs it.
    """
    check_version(context.config)
    _require_merge_on_read(context)
    pending = context.active.load().pending(Action.COMPACTION)
    if instant is not None:
        pending = tuple(i for i in pending if i.time == instant)
        if not pending:
            raise InstantNotFoundError(
                f"no compaction is pending at instant {instant} of table {context.storage.uri}; it may have been completed. "
                "`hoodie timeline PATH` lists the instants"
            )
    started = clock()
    results: list[CommitResult] = []
    for found in pending:
        if budget_s is not None and results and clock() - started >= budget_s:
            break
        results.append(_run(context, found, options))
    return results


def _run(context: TableContext, instant: Instant, options: FileOptions) -> CommitResult:
    started = time.monotonic()
    if instant.state is State.INFLIGHT and not reset_compaction(context, instant.time):
        raise CommitConflictError(
            f"compaction {instant.time} of table {context.storage.uri} is being run by another process; nothing was done"
        )
    refuse_to_write(context.storage, context.active, context.active.load())
    with Transaction.claim(context, instant.time) as transaction:
        snapshot = context.snapshot()
        plan = context.active.read_compaction_plan(instant.time)
        delete_compaction_output(context.storage, instant.time, plan)
        slices = [_planned_slice(snapshot, operation, context.storage.uri) for operation in plan.operations]
        schema = snapshot.schema
        if schema is None:
            raise HoodieError(
                f"table {context.storage.uri} has no completed commit, so compaction {instant.time} has no schema"
            )
        write_context = replace(transaction.write_context(schema, options), visible=snapshot.timeline.visible())
        tasks = [CompactTask(number, file_slice) for number, file_slice in enumerate(slices)]
        results = context.engine.run(
            partial(run_compact, context.storage, write_context), tasks, label=f"compact {context.config.name}"
        )
        publish_files(context.storage, instant.time, results)
        metadata = commit_metadata(
            results,
            operation=WriteOperation.COMPACT,
            schema=schema,
            table_name=context.config.name,
            compacted=True,
        )
        # Its claim, not the slices, decides: writers moved on to the new slice when the plan was made.
        transaction.commit(metadata, based_on={}, inserted_partitions=frozenset())
    _drop_old_copies(context, snapshot.timeline)
    return replace(
        CommitResult.of(instant.time, WriteOperation.COMPACT, [r.stat for r in results]),
        seconds=time.monotonic() - started,
    )


def _drop_old_copies(context: TableContext, timeline: Timeline) -> None:
    """Remove row copies from before the last compaction but this one: who reads slices as old as that can decode their logs."""
    try:
        drop_row_copies(context.storage, before=max(timeline.compactions, default=None))
    except OSError as exc:
        log.warning("row copies of table %s were not removed: %s", context.storage.uri, exc)


def _named_by_pending_writes(context: TableContext, snapshot: Snapshot) -> frozenset[FileGroupId] | None:
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


def _explained(context: TableContext, file_slice: FileSlice, timeline: Timeline) -> bool:
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


def _planned_slice(snapshot: Snapshot, operation: CompactionOperation, table: str) -> FileSlice:
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


def _require_merge_on_read(context: TableContext) -> None:
    if context.config.table_type is not TableType.MERGE_ON_READ:
        raise OptionError(
            f"table {context.config.name!r} is COPY_ON_WRITE: it has no logs, so there is nothing to compact"
        )
