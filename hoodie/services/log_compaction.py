"""Log compaction: merge the log files of file slices into one log file each, while writers keep appending (Apache Hudi's RFC-48).

The base file stays as it is. So this costs what the logs weigh, and a query merges one log afterwards instead of many. The older log
files stay, too: readers of earlier moments, and pulls, still read them, until the slice is compacted and cleaned.

What is written says nothing new, and counts before whatever is newer than the plan. So no writer has to wait for it, nor does it for
them, and it loses against nobody: a compaction, a clustering or an overwrite that took its file groups first has done more than it
would. Such groups are left out when the plan is run, and a plan of which nothing is left is taken back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from hoodie.errors import HoodieError, OptionError
from hoodie.filegroup.compact_logs import LogCompacted, run_compact_logs
from hoodie.filegroup.row_copies import can_be_copied, drop_row_copies, how_to_copy, staged_copies
from hoodie.model.enums import Action, TableType, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import CompactionPlan
from hoodie.model.plans import LogCompactTask
from hoodie.model.results import CommitResult
from hoodie.options.write import WriteOptions
from hoodie.services.base import Service, require_merged
from hoodie.services.budget import SECONDS
from hoodie.services.compaction_plan import candidate_of, operation_of
from hoodie.services.log_slices import FoundSlices, share_memory, try_to_schedule
from hoodie.timeline.timeline import Timeline
from hoodie.txn.conflict import WriteBasis
from hoodie.txn.gate import planned_behind_gate
from hoodie.txn.transaction import Transaction
from hoodie.undo.rollback import rollback_instant
from hoodie.view.commit_files import format_stood_for
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import table_schema
from hoodie.write.attempt import orders_texts
from hoodie.write.publish import commit_metadata, publish_files


class LogCompactionService:
    """Log compaction as a table service; see `Service`."""

    action = Action.LOGCOMPACTION
    resumes = False

    def require_fit(self, context: TableContext) -> None:
        name = context.config.name
        if context.config.table_type is not TableType.MERGE_ON_READ:
            raise OptionError(f"table {name!r} is COPY_ON_WRITE: it has no logs, so there are none to merge")
        require_merged(context)
        if not can_be_copied(context.rule):
            raise OptionError(
                f"the logs of table {name!r} are not merged among themselves: its rows are made of several records, field by field or "
                "by a merger, and their result depends on the stored row. A compaction merges them with it: `hoodie compaction "
                "run PATH`"
            )

    def is_due(self, context: TableContext, options: WriteOptions) -> bool:
        """When an option asks for it, and so many delta commits have come since the last compaction, of either kind."""
        is_enabled = options.log_compaction.inline or (
            options.log_compaction.enabled and (options.compaction.in_background or options.compaction.schedules_only)
        )
        if not is_enabled or context.config.table_type is not TableType.MERGE_ON_READ:
            return False
        # The commit that was just made has loaded the timeline.
        timeline = context.active.last_loaded() or context.active.load()
        return _delta_commits(timeline, planned=self.only_schedules(options)) >= options.log_compaction.blocks

    def in_background(self, options: WriteOptions) -> bool:
        return options.compaction.in_background and not options.log_compaction.inline

    def only_schedules(self, options: WriteOptions) -> bool:
        return not (options.log_compaction.inline or options.compaction.in_background)

    def plan(self, context: TableContext, options: WriteOptions, *, wait_s: float) -> str | None:
        """Put a plan on the timeline; gives its instant, None when no slice has enough logs.

        File groups that a pending write names are left out, as `CompactionService.plan` has it.

        Raises:
            CommitConflictError: pending writes named every such file group all the time.
        """
        return planned_behind_gate(
            context,
            lambda take_what_is_free: try_to_schedule(
                context,
                self.action,
                partial(_plans, options),
                take_what_is_free=take_what_is_free,
                filter_of=lambda snapshot: partial(_has_many_logs, snapshot, options.log_compaction.blocks),
            ),
            wait_s=wait_s,
            refusal=f"no log compaction of table {context.storage.uri} could be scheduled within {wait_s:.0f} s: every file "
            "group with many logs is named by a write in progress; nothing was changed, try again when they are done",
        )

    def run(self, context: TableContext, instant: Instant, options: WriteOptions) -> CommitResult:
        """Merge the logs that the plan names, and complete as a delta commit. A result without an instant: nothing of it was left to
        do, and the plan was taken back.
        """
        started = time.monotonic()
        try:
            result = _run(context, instant, options, started)
        except _OvertakenError:
            rollback_instant(context, instant.time)
            result = CommitResult(None, WriteOperation.LOG_COMPACT)
        return replace(result, seconds=time.monotonic() - started)

    def withdraw(self, context: TableContext, instant_time: str) -> bool:
        return False

    def recover(self, context: TableContext, instant_time: str) -> None:
        """Log files of a dead runner stay, for somebody may be reading them: they do not count, and say nothing that others do not
        say.
        """
        drop_row_copies(context.storage, of={instant_time})


LOG_COMPACTION: Service[CommitResult] = LogCompactionService()


class _OvertakenError(HoodieError):
    """Nothing of a plan is left to do."""


# -- planning ----------------------------------------------------------------------------------------------------------


def _delta_commits(timeline: Timeline, *, planned: bool) -> int:
    """Delta commits of writers since the last compaction or log compaction; `planned`: also since one that is only planned."""
    plan_times = [*timeline.compactions, *timeline.log_compactions]
    if planned:
        plan_times += [i.time for i in timeline.pending(Action.LOGCOMPACTION)]
    last = max(plan_times, default="")
    written = (i for i in timeline.commits if i.action is Action.DELTACOMMIT and i.time not in timeline.log_compactions)
    return sum(i.time > last for i in written)


def _has_many_logs(snapshot: Snapshot, least: int, file_slice: FileSlice) -> bool:
    """Whether so many logs have come together since the last log compaction of the slice. A file to which several commits appended
    counts as often.
    """
    merged: frozenset[str] = frozenset()
    for log in reversed(file_slice.logs):
        if log.stands_for is not None and log.committed_entries:
            time = log.committed_entries[-1][0]
            merged = frozenset({log.name, *(log.stands_for or _planned_logs(snapshot, time, file_slice.group))})
            break
    fresh = [log for log in file_slice.logs if log.name not in merged]
    return sum(max(1, len(log.committed_entries)) for log in fresh) >= least


def _planned_logs(snapshot: Snapshot, time: InstantTime, group: FileGroupId) -> tuple[str, ...]:
    """The logs that the log compaction of an instant was to merge; nothing where the plan is not there any more."""
    try:
        operations = snapshot.active.read_compaction_plan(time, Action.LOGCOMPACTION).operations
    except FileNotFoundError:
        return ()
    return tuple(
        name for each in operations if (each.partition_path, each.file_id) == tuple(group) for name in each.log_files
    )


def _plans(options: WriteOptions, slices: FoundSlices) -> Sequence[CompactionPlan]:
    new_file_bytes = options.max_file_size_bytes
    operations = tuple(operation_of(each, candidate_of(each, new_file_bytes=new_file_bytes)) for each in slices.free)
    return [CompactionPlan(operations)] if operations else []


# -- running -----------------------------------------------------------------------------------------------------------


def _run(context: TableContext, instant: Instant, options: WriteOptions, started: float) -> CommitResult:
    with Transaction.claim(context, instant) as transaction:
        snapshot = context.snapshot()
        plan = context.active.read_compaction_plan(instant.time, instant.action)
        tasks = list(_tasks(snapshot, plan))
        # Apache Hudi's writers append to files that the plan names: what is newer than the plan is left out, new columns, too.
        then = snapshot.timeline.as_of(instant.time)
        schema = table_schema(context.active, snapshot.timeline, context.config.raw, until=instant.time)
        if not tasks or schema is None:
            raise _OvertakenError(f"nothing of log compaction {instant.time} is left to do")
        engine, memory_bytes = share_memory(context, options, len(tasks))
        options = options.for_text_ordering() if orders_texts(context, schema) else options
        shared = transaction.write_context(schema, options.file_options())
        write_context = replace(
            shared,
            visible=then.visible(),
            memory_bytes=memory_bytes,
            row_copies=how_to_copy(
                context.rule,
                copies=options.copies_rows and context.config.populate_meta_fields and shared.history is None,
                size_bytes=sum(task.size_bytes for task in tasks),
                in_process=engine.shares_memory,
            ),
        )
        run: Callable[[LogCompactTask], LogCompacted | None] = partial(run_compact_logs, context.storage, write_context)
        answers = engine.run(run, tasks, label=f"compact logs of {context.config.name}")
        pairs = [(task, each) for task, each in zip(tasks, answers, strict=True) if each is not None]
        results = [each.result for _, each in pairs]
        if not results:
            raise _OvertakenError(f"no block of the logs that log compaction {instant.time} was to merge counts")
        copies = partial(staged_copies, context.storage, write_context, results)
        publish_files(context, instant.time, results, copies)
        metadata = commit_metadata(
            [replace(each, rows=None) for each in results],
            operation=WriteOperation.LOG_COMPACT,
            schema=schema,
            table_name=context.config.name,
            compacted=True,
            extra={
                SECONDS: f"{time.monotonic() - started:.3f}",
                **format_stood_for({each.result.stat.path: _others(task, each) for task, each in pairs}),
            },
        )
        # It changes no row and takes the place of no file, so nothing that others have done meanwhile stands in its way. But where
        # completion decides, its log must not come to lie on a newer base file.
        footing = WriteBasis()
        if snapshot.timeline.by_completion:
            footing = WriteBasis({task.slice.group: task.slice.base_instant for task, _ in pairs}, heeds_others=False)
        transaction.commit(metadata, footing)
    stats = [result.stat for result in results]
    return CommitResult.of(instant.time, WriteOperation.LOG_COMPACT, stats, completed=transaction.completed_at)


def _tasks(snapshot: Snapshot, plan: CompactionPlan) -> Iterator[LogCompactTask]:
    """The slices of the plan that are still the newest of their file groups."""
    view = snapshot.view
    view.list_all({each.partition_path for each in plan.operations})
    busy_groups = {*view.pending_compactions(), *view.pending_clusterings()}
    for number, operation in enumerate(plan.operations):
        group = FileGroupId(operation.partition_path, operation.file_id)
        now = None if group in busy_groups else view.slice_of(group)
        if now is None or now.base_instant != operation.base_instant:
            continue
        names = frozenset(operation.log_files)
        logs = tuple(log for log in now.logs if log.name in names)
        if len(logs) < len(names):
            continue
        version = 1
        if not snapshot.timeline.by_completion:
            version += max(log.version for log in now.logs if log.base_instant == now.base_instant)
        yield LogCompactTask(number, now._replace(logs=logs), version, tuple(log.name for log in now.logs))


def _others(task: LogCompactTask, result: LogCompacted) -> list[str]:
    """Older log files of the slice that the new log file does not replace."""
    planned = {log.name for log in task.slice.logs}
    return [name for name in task.there if name not in planned or name in result.others]
