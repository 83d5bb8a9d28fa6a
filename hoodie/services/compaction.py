"""Compaction: merge the logs of file slices into new base files, while writers keep appending.

From the moment the plan is on the timeline, writers name their log files with the compaction's instant: the plan's logs
are complete, and what comes later belongs to the new slice. A scheduled compaction is never taken back; a failed run goes
back to requested.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hoodie.errors import HoodieError, OptionError
from hoodie.filegroup.row_copies import drop_row_copies
from hoodie.filegroup.run import run_compact
from hoodie.model.enums import Action, TableType, WriteOperation
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import parse_base_file
from hoodie.model.payloads import CompactionPlan
from hoodie.model.plans import CompactTask
from hoodie.model.results import CommitResult
from hoodie.options.compaction import CompactionOptions, Trigger
from hoodie.options.write import WriteOptions
from hoodie.services.base import Service, require_merged
from hoodie.services.budget import SECONDS, part_bytes
from hoodie.services.compaction_plan import plan_compaction
from hoodie.services.log_slices import FoundSlices, planned_slice, share_memory, try_to_schedule
from hoodie.storage.base import Storage
from hoodie.timeline.clock import Clock
from hoodie.timeline.timeline import Timeline
from hoodie.txn.conflict import WriteBasis
from hoodie.txn.gate import planned_behind_gate
from hoodie.txn.heartbeat import Life, life_of
from hoodie.txn.transaction import Transaction
from hoodie.undo.rollback import rollback_instant
from hoodie.view.context import TableContext
from hoodie.write.publish import commit_metadata, publish_files

log = logging.getLogger("hoodie")


class CompactionService:
    """Compaction as a table service; see `Service`."""

    action = Action.COMPACTION
    resumes = False

    def require_fit(self, context: TableContext) -> None:
        if context.config.table_type is not TableType.MERGE_ON_READ:
            raise OptionError(
                f"table {context.config.name!r} is COPY_ON_WRITE: it has no logs, so there is nothing to compact"
            )
        require_merged(context)

    def is_due(self, context: TableContext, options: WriteOptions) -> bool:
        """When a compaction is asked for after writes, and its trigger says so."""
        compaction = options.compaction
        is_enabled = compaction.inline or compaction.in_background or compaction.schedules_only
        if not is_enabled or context.config.table_type is not TableType.MERGE_ON_READ:
            return False
        # The commit that was just made has loaded the timeline.
        return _is_triggered(context.active.last_loaded() or context.active.load(), compaction, context.clock)

    def in_background(self, options: WriteOptions) -> bool:
        return options.compaction.in_background and not options.compaction.inline

    def only_schedules(self, options: WriteOptions) -> bool:
        return not (options.compaction.inline or options.compaction.in_background)

    def plan(self, context: TableContext, options: WriteOptions, *, wait_s: float) -> str | None:
        """Put a compaction plan on the timeline, or several small ones where it is made for a budget; gives the instant of the
        first, None when the strategy finds nothing to take.

        File groups that a pending write names are left out: new writes are held back, and pending ones waited for, up to
        `wait_s` seconds. A pending write that does not say which groups it names stands for all.

        Raises:
            CommitConflictError: pending writes named every file group with logs all the time.
        """
        _withdraw_log_compactions(context)
        return planned_behind_gate(
            context,
            lambda take_what_is_free: try_to_schedule(
                context, self.action, partial(_plans, context, options), take_what_is_free=take_what_is_free
            ),
            wait_s=wait_s,
            refusal=f"no compaction of table {context.storage.uri} could be scheduled within {wait_s:.0f} s: every file "
            "group with logs is named by a write in progress; nothing was changed, try again when they are done",
        )

    def run(self, context: TableContext, instant: Instant, options: WriteOptions) -> CommitResult:
        """Merge the slices that the plan names, and complete as a commit."""
        started = time.monotonic()
        with Transaction.claim(context, instant) as transaction:
            snapshot = context.snapshot()
            plan = context.active.read_compaction_plan(instant.time)
            _delete_output(context.storage, instant.time, plan)
            snapshot.view.list_all({operation.partition_path for operation in plan.operations})
            slices = [planned_slice(snapshot, operation, context.storage.uri) for operation in plan.operations]
            schema = snapshot.schema_of_plan(instant.time)
            if schema is None:
                raise HoodieError(
                    f"table {context.storage.uri} has no completed commit, so compaction {instant.time} has no schema"
                )
            engine, memory_bytes = share_memory(context, options, len(slices))
            write_context = replace(
                transaction.write_context(schema, options.file_options()),
                visible=snapshot.timeline.visible(),
                memory_bytes=memory_bytes,
            )
            tasks = [CompactTask(number, file_slice) for number, file_slice in enumerate(slices)]
            results = engine.run(
                partial(run_compact, context.storage, write_context), tasks, label=f"compact {context.config.name}"
            )
            publish_files(context, instant.time, results)
            took_s = time.monotonic() - started
            metadata = commit_metadata(
                results,
                operation=WriteOperation.COMPACT,
                schema=schema,
                table_name=context.config.name,
                compacted=True,
                extra={SECONDS: f"{took_s:.3f}"},
            )
            # Its claim, not the slices, decides: writers moved on to the new slice when the plan was made.
            transaction.commit(metadata, WriteBasis())
        _drop_old_copies(context.storage, snapshot.timeline)
        return replace(
            CommitResult.of(
                instant.time, WriteOperation.COMPACT, [r.stat for r in results], completed=transaction.completed_at
            ),
            seconds=time.monotonic() - started,
        )

    def withdraw(self, context: TableContext, instant_time: str) -> bool:
        return False

    def recover(self, context: TableContext, instant_time: InstantTime) -> None:
        _delete_output(context.storage, instant_time, context.active.read_compaction_plan(instant_time))


def _withdraw_log_compactions(context: TableContext) -> None:
    """Take plans back that nobody carries out, where a file group in one is not compacted: a compaction does all of it."""
    timeline = context.active.load()
    for instant in timeline.pending(Action.LOGCOMPACTION) if timeline.by_completion else ():
        if life_of(instant.time, context) is Life.DEAD:
            rollback_instant(context, instant.time)


COMPACTION: Service[CommitResult] = CompactionService()


def _is_triggered(timeline: Timeline, options: CompactionOptions, clock: Clock) -> bool:
    """Apache Hudi's triggers: what was committed since the instant of the last compaction, or from the first delta commit on."""
    plan_times = [i.time for i in timeline.commits if i.time in timeline.compactions]
    if options.trigger is Trigger.NUM_COMMITS_AFTER_LAST_REQUEST:
        plan_times += [i.time for i in timeline.pending(Action.COMPACTION)]
    last = max(plan_times, default=None)
    written = [i.time for i in timeline.commits if i.action is Action.DELTACOMMIT]
    since = [time for time in written if last is None or time > last]
    if not written:
        return False
    enough = len(since) >= options.max_delta_commits
    late = clock.age_s(last or written[0]) >= options.max_delta_s
    match options.trigger:
        case Trigger.TIME_ELAPSED:
            return late
        case Trigger.NUM_AND_TIME:
            return enough and late
        case Trigger.NUM_OR_TIME:
            return enough or late
    return enough


def _plans(context: TableContext, options: WriteOptions, slices: FoundSlices) -> Sequence[CompactionPlan]:
    compaction = options.compaction
    return plan_compaction(
        slices.free,
        options=compaction,
        today=context.clock.wall(context.storage.now_s()).date(),
        new_file_bytes=options.max_file_size_bytes,
        part_bytes=None if compaction.budget_s is None else part_bytes(context, slices.timeline, compaction.budget_s),
    )


def _drop_old_copies(storage: Storage, timeline: Timeline) -> None:
    """Remove row copies from before the last compaction but this one: who reads slices as old as that can decode their logs."""
    try:
        drop_row_copies(storage, before=max(timeline.compactions, default=None))
    except OSError as exc:
        log.warning("row copies of table %s were not removed: %s", storage.uri, exc)


def _delete_output(storage: Storage, instant_time: str, plan: CompactionPlan) -> None:
    """Delete the base files that an earlier try of this very compaction left."""
    groups = {(operation.partition_path, operation.file_id) for operation in plan.operations}
    partitions = sorted({partition_path for partition_path, _ in groups})
    listings = storage.each(storage.list, partitions)
    for partition_path, infos in zip(partitions, listings, strict=True):
        for info in infos:
            base = parse_base_file(info.name)
            if base is not None and base.instant == instant_time and (partition_path, base.file_id) in groups:
                storage.delete(info.path)
