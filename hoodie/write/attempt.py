"""One try to write a batch, on one snapshot: locate, plan, write, publish, result.

`locate` asks the index on a snapshot of this moment. `plan` does so under the lock: it plans on what is there then, and gives the
instant. `write` has the engine make the files, `publish` names them and completes the instant. After a conflict nothing of the try
is visible; whoever made it (hoodie/writer.py) rolls its instant back and makes another one of the same staged rows.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import pyarrow as pa

from hoodie.errors import CommitConflictError
from hoodie.filegroup.deleted_rows import can_revive
from hoodie.filegroup.equal_texts import key_texts
from hoodie.filegroup.row_copies import how_to_copy, staged_copies
from hoodie.filegroup.small_files import run_tasks
from hoodie.format.plan_avro import encode_replace_plan
from hoodie.model.enums import Action, TableType, UpdateStrategy, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice, LogFile
from hoodie.model.index_results import format_ways
from hoodie.model.names import hoodie_command
from hoodie.model.nested import field_at
from hoodie.model.payloads import NON_BLOCKING, CommitMetadata, WriteStat
from hoodie.model.plans import AppendTask, WriteContext, WriteResult
from hoodie.model.results import CommitResult
from hoodie.model.streams import format_batch
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.compatibility import check_non_blocking
from hoodie.options.option import option_name
from hoodie.options.values import OUTSIDE_INDEXES, LogBlockFormat
from hoodie.options.write import WriteOptions
from hoodie.storage.parallel import together
from hoodie.telemetry import note, span
from hoodie.txn.commit_check import OutdatedPlanError
from hoodie.txn.conflict import WriteBasis, format_absent_in
from hoodie.txn.earlier_writers import Ahead
from hoodie.txn.transaction import Transaction
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.adapt import adapted
from hoodie.write.batch import Batch
from hoodie.write.operation_rules import OperationRules, Replaces, Step, labelled, steps_of
from hoodie.write.overwrite import overwritten_partitions, replacing
from hoodie.write.placement import placement_of
from hoodie.write.plan import MAX_GROWTH, SPARING_GROWTH, Sizing, Target, WritePlan, rewriting
from hoodie.write.publish import commit_metadata, publish_files
from hoodie.write.schema import leave_of
from hoodie.write.search import Location, Search, Written
from hoodie.write.streams import committed_since
from hoodie.write.table_changes import StaleSnapshotError, require_same_columns, require_same_rows, schema_after
from hoodie.write.validators import validate

log = logging.getLogger("hoodie")

MAX_TURNS = 10
"""How often a write adapts its plan to what others completed first, under the same instant."""


_QUICK_BYTES = 8 * 1024 * 1024
"""So much a store copies in moments, for which others can wait for the lock."""


@dataclass
class TaskResults:
    """What the tasks of a plan made, by their numbers."""

    results: dict[int, WriteResult | None] = field(default_factory=dict)
    """None: nothing was left to write."""
    published: set[int] = field(default_factory=set)
    """Those whose files have their final names; the others are in the staging folder of the instant."""
    gathers_markers: bool = False
    numbers: int = 0
    """Task numbers below this one were given away."""

    def of(self, plan: WritePlan) -> list[WriteResult]:
        return [result for task in plan.tasks if (result := self.results.get(task.number)) is not None]


class ClusteringInTheWayError(CommitConflictError):
    """A pending clustering names a file group that the write would change: it has to be run, or dropped, first."""

    def __init__(self, message: str, instant: str) -> None:
        super().__init__(message)
        self.instant = instant


class Attempt:
    """A staged batch, and the table as it is now.

    Raises:
        SchemaError: the batch does not fit the table any more.
        UnsupportedTableError: the table is one that this release only reads.
        OptionError: the table's index cannot do what is asked for.
    """

    def __init__(
        self,
        context: TableContext,
        batch: Batch,
        options: WriteOptions,
        snapshot: Snapshot,
        earlier: Location | None = None,
    ) -> None:
        if context.concurrency.non_blocking:
            check_non_blocking(context.config, batch.operation)
        self._context = context
        self._batch = batch
        self._snapshot = snapshot
        self._rules = OperationRules.of(batch.operation, options)
        self._schema = schema_after(context, batch, leave_of(context.config, self._rules, options), snapshot)
        self._options = options.for_text_ordering() if orders_texts(context, self._schema) else options
        self._placement = placement_of(context.config, self._rules, options)
        self._rewritten: frozenset[FileGroupId] = frozenset()
        """File groups that get a new base file, for a log would bring deleted rows back."""
        self.located = earlier
        """What was found out last about the places of the rows: before this try, or by it."""
        self._label = partial(labelled, batch.operation, context.config.name, steps=steps_of(self._placement.step))

    def run(self) -> CommitResult:
        """Write the batch as one instant; without one when that changes nothing.

        Raises:
            CommitConflictError: another writer was faster; the instant, if one was allotted, is left to be rolled back.
            DuplicateKeyError: an insert that is to fail on stored keys met one.
        """
        if self.changes_nothing():
            return self._nothing()
        located = self._tagged(self._snapshot)
        may_do_nothing = self._options.only_stored and not self._options.commits_empty
        if may_do_nothing and not self._plan_on(located, self._snapshot, Ahead({})).tasks:
            return self._nothing()
        with ExitStack() as hold:
            return self._run_located(located, hold)

    def _run_located(self, located: Location, hold: ExitStack) -> CommitResult:
        """Plan, write and publish; `hold` gets the lock, until the instant is known and the files are being written."""
        storage = self._context.storage
        with span("write.plan"):
            transaction, plan = self.plan(located, hold)
            note(instant=transaction.instant, files=len(plan.tasks))
        with transaction:
            written = TaskResults()
            if storage.can.at_once == 1 or transaction.ahead.writes:  # else a request that the files need not wait for
                hold.close()
            for turn in count(1):
                try:
                    transaction.before_writing(self._footing(plan))
                    with span("write.files", files=len(plan.tasks)):
                        plan, _ = together(storage, partial(self.write, transaction, plan, written), hold.close)
                    transaction.before_publishing(self._footing(plan))
                    with span("write.commit"):
                        self.publish(transaction, plan, written)
                    break
                except OutdatedPlanError as outdated:
                    if turn == MAX_TURNS:
                        raise
                    located, plan = self.adapt(transaction, plan, written, outdated)
        return self.result(transaction, plan, located, written)

    def _nothing(self) -> CommitResult:
        return CommitResult(None, self._batch.operation, seconds=time.monotonic() - self._batch.started_s)

    def _tagged(self, snapshot: Snapshot) -> Location:
        with span("write.tag"):
            return self.locate(snapshot)

    def changes_nothing(self) -> bool:
        """Whether nothing is replaced, and by nothing."""
        if not self._replaces or (self._places_rows and self._batch.has_rows):
            return False
        return not self._snapshot.view.written_slices(self._overwritten(self._snapshot))

    def locate(self, snapshot: Snapshot) -> Location:
        """Where the rows go, as far as an index has to find it out before there is an instant."""
        batch = replace(self._batch, schema=self._schema, chunks=self._batch.chunks if self._places_rows else ())
        search = Search(self._context, batch, snapshot, self._label, self.located)
        result = self._placement.locate(search)
        self.located = result
        return result

    def plan(self, located: Location, hold: ExitStack | None = None) -> tuple[Transaction, WritePlan]:
        """The instant, and which files it writes; `hold` as `Transaction.start` takes it."""
        return Transaction.start(
            self._context,
            Action.REPLACECOMMIT if self._replaces else action_of(self._context.config.table_type),
            partial(self._plan_on, located),
            lambda planned: _described(planned, self._batch.operation, non_blocking=self._is_non_blocking),
            requested=encode_replace_plan(self._batch.operation) if self._replaces else b"",
            last_view=self._snapshot.view,
            non_blocking=self._is_non_blocking,
            hold=hold,
        )

    def foresee(self) -> WritePlan:
        """Which files would be written now; nothing is, and there is no instant."""
        return self._plan_on(self.locate(self._snapshot), self._snapshot, Ahead({}))

    def write(self, transaction: Transaction, plan: WritePlan, written: TaskResults) -> WritePlan:
        """Make the files that are not there yet, in the staging folder; gives the plan that they are of.

        Where logs would bring values of deleted rows back, their file groups get new base files in place of them.
        """
        finished = frozenset(written.results)
        self._run(transaction, plan, written)
        revived = frozenset(
            task.slice.group
            for task in plan.tasks
            if isinstance(task, AppendTask) and not task.busy and _revives(written.results[task.number])
        )
        if not revived:
            return plan
        self._rewritten |= revived
        logs = {t.number for t in plan.tasks if isinstance(t, AppendTask) and t.slice.group in revived}
        if logs & finished:  # of a hot file group
            raise CommitConflictError(
                f"instant {transaction.instant} of table {self._context.storage.uri} has written some of the logs of a file group "
                "from which another writer has deleted rows meanwhile; nothing of this write is visible, run it again"
            )
        for number in logs:
            del written.results[number]
        plan = rewriting(plan, revived)
        transaction.announced = _described(plan, self._batch.operation)
        self._run(transaction, plan, written)
        return plan

    def _run(self, transaction: Transaction, plan: WritePlan, written: TaskResults) -> None:
        context, batch = self._context, self._batch
        tasks = [task for task in plan.tasks if task.number not in written.results]
        how = self._write_context(transaction, plan)
        appends = all(isinstance(task, AppendTask) for task in tasks)  # of rows that are in memory anyway
        at_once = context.storage.can.at_once if appends else 1
        task_results = run_tasks(
            batch.engine, context.storage, how, tasks, label=self._label(Step.WRITE), at_once=at_once
        )
        written.results.update({task.number: result for task, result in zip(tasks, task_results, strict=True)})

    def _write_context(self, transaction: Transaction, plan: WritePlan) -> WriteContext:
        context, batch, options, rules = self._context, self._batch, self._options, self._rules
        shared = transaction.write_context(self._schema, options.file_options())
        return replace(
            shared,
            combine=options.combine or self._placement.combines,
            key_texts=key_texts(context.config, self._schema, by_path=not self._placement.is_global),
            set_columns=rules.columns_from(batch.input_schema.names),
            only_stored=options.only_stored,
            some_columns=(
                options.some_columns
                and context.config.layout.by_completion
                and context.config.populate_meta_fields
                and context.config.change_logs is None
            ),
            positions=(
                options.record_positions
                and context.config.layout.by_completion
                and context.config.table_type is TableType.MERGE_ON_READ
                and context.config.populate_meta_fields
            ),
            sort_by_key=rules.sorts,
            row_copies=how_to_copy(
                context.rule,
                copies=options.copies_rows
                and context.config.table_type is TableType.MERGE_ON_READ
                and context.config.populate_meta_fields
                and shared.history is None,
                size_bytes=batch.size_bytes,
                in_process=batch.in_process,
            ),
            # What is still an upsert where keys are generated brought them along.
            generates_keys=(
                context.config.generates_keys and rules.inserts and batch.operation is not WriteOperation.UPSERT
            ),
            held_key_bytes=self._placement.key_bytes_to_hold(context, batch, len(plan.tasks)),
        )

    def publish(self, transaction: Transaction, plan: WritePlan, written: TaskResults) -> None:
        """Give the files their names and complete the instant: from then on readers see them."""
        context, options = self._context, self._options
        fresh = [task.number for task in plan.tasks if task.number not in written.published]
        results = [result for number in fresh if (result := written.results[number]) is not None]
        write_context = self._write_context(transaction, plan)
        copies = partial(staged_copies, context.storage, write_context, results, number=min(fresh, default=0))
        if not written.published:  # markers of one instant are all of one kind
            written.gathers_markers = options.gathers_markers(len(results))
        is_first = not (written.published or written.numbers or self._rewritten)

        def name_files() -> None:
            leftovers = publish_files(
                context, transaction.instant, results, copies, gathered_markers=written.gathers_markers
            )
            # No task was tried twice, and no file was given up.
            transaction.leftovers = leftovers if is_first and self._batch.engine.shares_memory else None
            written.published.update(fresh)
            self._placement.remember(context, results)

        is_outside = not {context.config.index, options.index.type}.isdisjoint(OUTSIDE_INDEXES)
        waits_for_names = bool(options.validators.queries) or is_outside
        size_bytes = sum(result.stat.file_size_bytes for result in results)
        takes_moments = len(results) <= context.storage.can.at_once and size_bytes <= _QUICK_BYTES
        names_late = takes_moments and not waits_for_names
        if not names_late:
            name_files()
        metadata = commit_metadata(
            written.of(plan),
            operation=self._batch.operation,
            schema=self._schema,
            table_name=context.config.name,
            extra={
                **options.commit_entries,
                **format_ways({} if self.located is None else self.located.ways(plan)),
                **(format_batch(options.stream) if options.stream else {}),
                **(format_absent_in(plan.absent_in) if not (self._rules.inserts or self._replaces) else {}),
            },
            replaced=plan.replaced,
        )
        validate(context, metadata, options.validators)
        with self._placement.kept(Written(context, self._batch, self.located, plan, written.results, write_context)):
            transaction.commit(metadata, self._footing(plan), name_files=name_files if names_late else None)

    def adapt(
        self, transaction: Transaction, plan: WritePlan, written: TaskResults, outdated: OutdatedPlanError
    ) -> tuple[Location, WritePlan]:
        """The plan for the newest snapshot, under the same instant; deletes the written files that it does not need.

        Raises:
            CommitConflictError: the instant cannot stay. Among others where a log is of no use that has its final name: nobody reads
                a base file before its instant is completed, but any reader may be about to look into this log.
        """
        now = outdated.snapshot
        if self._replaces or self._batch.found_on is not None:
            raise outdated
        located = self._tagged(now)
        published = {n: result.file.final for n in written.published if (result := written.results[n]) is not None}
        newest = self._plan_on(located, now, transaction.ahead, frozenset(published.values()))
        if any(base > transaction.instant for base in newest.based_on.values()):
            raise outdated  # its file would be an older one than that which it takes the place of
        written.numbers = max([written.numbers, *(1 + task.number for task in plan.tasks)])
        changed = adapted(plan, newest, numbers_used=written.numbers, logs_stand_alone=self._logs_stand_alone)
        useless = written.results.keys() - {task.number for task in changed.tasks}
        if any(task.number in useless & published.keys() for task in plan.tasks if isinstance(task, AppendTask)):
            raise outdated
        storage = self._context.storage
        useless_results = [written.results[n] for n in useless & published.keys()]
        storage.each(storage.delete, [path for result in useless_results if result for path in result.paths])
        for number in useless:
            del written.results[number]
        written.published -= useless
        transaction.follow(now, _described(changed, self._batch.operation))
        return located, changed

    def result(
        self, transaction: Transaction, plan: WritePlan, located: Location, written: TaskResults
    ) -> CommitResult:
        """What the write did."""
        results = written.of(plan)
        stats = [result.stat for result in results]
        if any(result.revives for result in results):
            log.warning(
                "commit %s of table %s wrote rows again whose deletes still stand in logs, while a compaction or clustering of their "
                "file groups is pending: merge-on-read brings values of the deleted rows back, by a greater ordering value or for "
                "nulls. Run the pending service before such an upsert (docs/MERGING.md, Two stages)",
                transaction.instant,
                self._context.storage.uri,
            )
        return replace(
            CommitResult.of(
                transaction.instant,
                self._batch.operation,
                stats,
                replaced=plan.replaced,
                completed=transaction.completed_at,
            ),
            index=located.ways(plan),
            opened=located.opened,
            seconds=time.monotonic() - self._batch.started_s,
            engine=self._batch.engine.name,
        )

    def _footing(self, plan: WritePlan) -> WriteBasis:
        appended: dict[FileGroupId, int] = {}
        for task in plan.tasks if self._logs_stand_alone else ():
            if isinstance(task, AppendTask) and task.slice.group not in plan.origins:
                group = task.slice.group
                version = sys.maxsize if self._context.config.layout.by_completion else task.log_version
                appended[group] = min(version, appended.get(group, version))
        # Where keys are unique in the whole table a delete may mean that another write has moved the row.
        heeds_deletes = self._heeds_deletes or self._placement.is_global
        only_appends = self._is_non_blocking and all(isinstance(task, AppendTask) for task in plan.tasks)
        return WriteBasis(
            plan.based_on, plan.absent_in, appended, heeds_deletes, non_blocking=only_appends, starts=plan.starts
        )

    @property
    def _is_non_blocking(self) -> bool:
        """Whether it only appends what came with the batch, beside others that do so: neither has to know of the other."""
        return self._starts_logs and self._logs_stand_alone

    @property
    def _starts_logs(self) -> bool:
        return self._context.concurrency.non_blocking and not self._replaces

    @property
    def _logs_stand_alone(self) -> bool:
        """Whether what is written to logs came with the batch, all of it, and nothing is of stored rows."""
        set_columns = self._rules.columns_from(self._batch.input_schema.names)
        fills = set_columns is not None and not set(self._schema.names) <= set(set_columns)
        return not fills and self._batch.found_on is None

    @property
    def _heeds_deletes(self) -> bool:
        """Whether a row that it adds to a log may bring a deleted one back."""
        return not self._rules.deletes and can_revive(self._context.rule)

    @property
    def _replaces(self) -> bool:
        return self._rules.replaces is not Replaces.NOTHING

    @property
    def _places_rows(self) -> bool:
        """Not so where they only say which partitions are meant."""
        return self._batch.operation is not WriteOperation.DELETE_PARTITION

    def _overwritten(self, snapshot: Snapshot) -> tuple[str, ...]:
        return overwritten_partitions(
            self._batch.operation,
            self._rules.replaces,
            self._options,
            of_rows=self._batch.partitions.union(s.partition_path for c in self._batch.chunks for s in c.ranges),
            stored=snapshot.view.every_partition(),
        )

    def _plan_on(self, located: Location, now: Snapshot, ahead: Ahead, own: frozenset[str] = frozenset()) -> WritePlan:
        """Plan on the slices as they are under the lock; what was located must still be true. `own`: logs of this write itself."""
        name = self._context.config.name
        if self._snapshot.timeline.is_archived_on(now.timeline):
            raise StaleSnapshotError(
                f"so many commits were made to table {name!r} while keys were looked up that the first of them were archived; run the "
                "write again"
            )
        if self._snapshot.timeline.has_lost(now.timeline):
            raise StaleSnapshotError(
                f"table {name!r} was restored to an earlier commit while keys were looked up; run the write again"
            )
        if committed_since(now, self._snapshot.timeline, self._options.stream):
            raise StaleSnapshotError(
                f"another run of stream {self._options.stream} wrote this batch to table {name!r} meanwhile; run the write again"
            )
        require_same_columns(self._context, self._snapshot, now)
        if self._replaces:
            partitions = self._overwritten(now)
            plan = replacing(
                located.plan(self._target(now, (), ahead)),
                partitions,
                now.view.written_slices(partitions),
                all_of_it=self._rules.replaces is Replaces.ALL,
            )
            if self._batch.found_on is not None:
                require_same_rows(self._context, self._batch.found_on, now, plan)
            self._refuse_clustered(now, plan)
            return plan
        slices = located.slices(now.view)
        if not located.holds(slices, now.view):
            raise StaleSnapshotError(
                f"another writer changed table {name!r} while keys were looked up; run the write again"
            )
        slices = [s._replace(logs=tuple(log for log in s.logs if log.path not in own)) for s in slices]
        plan = rewriting(located.plan(self._target(now, slices, ahead)), self._rewritten)
        if self._batch.found_on is not None:
            require_same_rows(self._context, self._batch.found_on, now, plan)
        self._refuse_clustered(now, plan)
        return plan

    def _refuse_clustered(self, now: Snapshot, plan: WritePlan) -> None:
        """Raises ClusteringInTheWayError where the plan changes a file group whose rows are to be moved."""
        if self._options.clustering.updates is UpdateStrategy.ALLOW:
            return
        clustered = now.view.pending_clusterings()
        group = next((each for each in plan.based_on if each in clustered), None)
        if group is not None:
            time = clustered[group]
            raise ClusteringInTheWayError(
                f"this write to table {self._context.storage.uri} changes file group {group.file_id} in partition "
                f"{group.partition_path!r}, whose rows clustering {time} is going to move. Nothing was written. Run the clustering "
                f"first ({hoodie_command('clustering', 'run', self._context.storage.uri)}), drop it "
                f"({hoodie_command('rollback', self._context.storage.uri, time, '--yes')}), or let writes go before it "
                f"({option_name(ClusteringOptions, 'updates')}=allow)",
                time,
            )

    def _target(self, now: Snapshot, slices: Sequence[FileSlice], ahead: Ahead) -> Target:
        config, options = self._context.config, self._options
        # Only hoodie can run a merger of the user's own, so no record is left in a log for readers to merge.
        rewrites = self._context.rule.merger is not None
        return Target(
            slices,
            TableType.COPY_ON_WRITE if rewrites else config.table_type,
            Sizing(
                options.max_file_size_bytes,
                options.small_file_limit_bytes,
                MAX_GROWTH if options.log_block_format is LogBlockFormat.AVRO else SPARING_GROWTH,
                self._context.tuning.cheap_bytes,
                self._context.tuning.append_bytes,
            ),
            busy=_busy(now),
            log_versions=ahead.log_versions(),
            own_logs=config.layout.by_completion,
            deletes=_logs_with_deletes(now, slices) if self._heeds_deletes else {},
            packs=self._rules.packs,
            table=self._context.storage.uri,
            starts_logs=self._starts_logs,
            replaced=now.view.committed.replaced.keys() if self._starts_logs else frozenset(),
        )


def _busy(now: Snapshot) -> frozenset[FileGroupId]:
    view = now.view
    busy = {*view.pending_compactions(), *view.pending_clusterings()}
    if now.timeline.by_completion:  # what it writes would come to lie on a new base file
        busy |= view.pending_log_compactions().keys()
    return frozenset(busy)


def _logs_with_deletes(now: Snapshot, slices: Sequence[FileSlice]) -> dict[FileGroupId, tuple[LogFile, ...]]:
    """By what commits state of the logs. Archived ones state nothing any more.

    All logs of such a commit in the slice: where Apache Hudi's writer goes on to another file, the first one's count says it all.
    """
    result = {}
    for each in slices:
        deletes = now.view.committed.of(each.group.partition_path).deletes
        instants = {time for log in each.logs if log.path in deletes for time, _ in log.committed_entries}
        if each.base is not None and instants:
            result[each.group] = tuple(log for log in each.logs if any(i in instants for i, _ in log.committed_entries))
    return result


def _revives(result: WriteResult | None) -> bool:
    return result is not None and result.revives


def orders_texts(context: TableContext, schema: pa.Schema) -> bool:
    fields = [field_at(schema, name) for name in context.config.ordering_fields]
    return any(field is not None and pa.types.is_string(field.type) for field in fields)


def action_of(table_type: TableType) -> Action:
    """The action of a commit that only adds file slices."""
    return Action.COMMIT if table_type is TableType.COPY_ON_WRITE else Action.DELTACOMMIT


def _described(plan: WritePlan, operation: WriteOperation, *, non_blocking: bool = False) -> CommitMetadata:
    """Content of the inflight file: the file groups that the write names, as Hudi's workload profile does."""
    stats: dict[str, list[WriteStat]] = {}
    for task in plan.tasks:
        group = FileGroupId(task.partition_path, task.file_id)
        is_new, count = group in plan.starts, sum(m.count for m in task.updates)
        stats.setdefault(task.partition_path, []).append(
            WriteStat(
                file_id=task.file_id,
                partition_path=task.partition_path,
                path="",
                prev_commit=plan.based_on.get(group),
                num_updates=0 if is_new else count,
                num_inserts=(count if is_new else 0) + (task.inserts.rows if task.inserts else 0),
                log_version=task.log_version if isinstance(task, AppendTask) else None,
            )
        )
    for partition_path, file_ids in plan.replaced.items():
        stats.setdefault(partition_path, []).extend(
            WriteStat(file_id, partition_path, path="", prev_commit=plan.based_on[FileGroupId(partition_path, file_id)])
            for file_id in file_ids
        )
    return CommitMetadata(
        operation=operation,
        write_stats={p: tuple(stats_of_path) for p, stats_of_path in stats.items()},
        extra={NON_BLOCKING: "true"} if non_blocking else {},
    )
