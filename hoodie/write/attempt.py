"""One try to write a batch, on one snapshot: locate, plan, write, publish, result.

`locate` asks the index on a snapshot of this moment. `plan` does so under the lock: it plans on what is there then, and gives the
instant. `write` has the engine make the files, `publish` names them and completes the instant. After a conflict nothing of the try
is visible; whoever made it (hoodie/writer.py) rolls its instant back and makes another one of the same staged rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from hoodie.errors import CommitConflictError, SchemaError
from hoodie.filegroup.row_copies import how_to_copy, staged_copies
from hoodie.filegroup.run import run_write
from hoodie.format.plan_avro import encode_replace_plan
from hoodie.model.enums import Action, TableType, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.model.plans import AppendTask, StagedFile, WriteResult
from hoodie.model.results import CommitResult
from hoodie.model.streams import format_batch
from hoodie.options.values import LogBlockFormat
from hoodie.options.write import WriteOptions
from hoodie.timeline.timeline import Timeline
from hoodie.txn.conflict import find_conflict, format_absent_in
from hoodie.txn.transaction import Transaction
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.batch import Batch
from hoodie.write.operation_rules import OperationRules, Replaces, Step, labelled, steps_of
from hoodie.write.overwrite import overwritten_partitions, replacing
from hoodie.write.placement import Located, placement_of
from hoodie.write.plan import MAX_GROWTH, SPARING_GROWTH, Sizing, Target, WritePlan
from hoodie.write.publish import commit_metadata, publish_files
from hoodie.write.schema import Leave, reconcile
from hoodie.write.stage import leave_of
from hoodie.write.streams import committed_since


class StaleSnapshotError(CommitConflictError):
    """The files that were looked into changed before the instant was allotted: look again. Nothing was written."""


class Written(NamedTuple):
    """Files in the staging folder of an instant."""

    results: list[WriteResult]
    copies: list[StagedFile]
    """Row copies: Parquet files of what stands in logs."""


class Attempt:
    """A staged batch, and the table as it is now.

    Raises:
        SchemaError: the batch does not fit the table any more.
        UnsupportedTableError: the table is one that this release only reads.
        OptionError: the table's index cannot do what is asked for.
    """

    def __init__(self, context: TableContext, batch: Batch, options: WriteOptions, snapshot: Snapshot) -> None:
        self._context = context
        self._batch = batch
        self._snapshot = snapshot
        self._rules = OperationRules.of(batch.operation, options)
        self._schema = _schema_after(context, batch, leave_of(context, self._rules, options), snapshot)
        self._options = options.for_text_ordering() if _orders_texts(context, self._schema) else options
        self._placement = placement_of(context.config, self._rules, options)
        self._label = partial(labelled, batch.operation, context.config.name, steps=steps_of(self._placement.step))

    def run(self) -> CommitResult:
        """Write the batch as one instant; without one when that changes nothing.

        Raises:
            CommitConflictError: another writer was faster; the instant, if one was allotted, is left to be rolled back.
            DuplicateKeyError: an insert that is to fail on stored keys met one.
        """
        if self.changes_nothing():
            return CommitResult(None, self._batch.operation, seconds=time.monotonic() - self._batch.started_s)
        located = self.locate()
        transaction, plan = self.plan(located)
        with transaction:
            written = self.write(transaction, plan)
            self.publish(transaction, plan, written)
        return self.result(transaction, plan, located, written)

    def changes_nothing(self) -> bool:
        """Whether nothing is replaced, and by nothing."""
        if not self._replaces or (self._places_rows and self._batch.has_rows):
            return False
        return not self._snapshot.view.written_slices(self._overwritten(self._snapshot))

    def locate(self) -> Located:
        """Where the rows go, as far as an index has to find it out before there is an instant."""
        batch = self._batch if self._places_rows else replace(self._batch, chunks=())
        return self._placement.locate(self._context, batch, self._snapshot, self._label)

    def plan(self, located: Located) -> tuple[Transaction, WritePlan]:
        """The instant, and which files it writes."""
        return Transaction.start(
            self._context,
            Action.REPLACECOMMIT if self._replaces else action_of(self._context.config.table_type),
            partial(self._plan_on, located),
            lambda planned: _described(planned, self._batch.operation),
            requested=encode_replace_plan(self._batch.operation) if self._replaces else b"",
            seen=self._snapshot.view,
        )

    def write(self, transaction: Transaction, plan: WritePlan) -> Written:
        """Make the files, in the staging folder."""
        context, batch, options, rules = self._context, self._batch, self._options, self._rules
        write_context = replace(
            transaction.write_context(self._schema, options.file_options()),
            combine=options.combine or self._placement.combines,
            given=tuple(batch.given.names) if rules.partial else None,
            sort_by_key=rules.sorts,
            row_copies=how_to_copy(
                context.rule,
                wanted=options.copies_rows and context.config.table_type is TableType.MERGE_ON_READ,
                size_bytes=batch.size_bytes,
                in_process=batch.in_process,
            ),
            # What is still an upsert where keys are generated brought them along.
            generates_keys=(
                context.config.generates_keys and rules.inserts and batch.operation is not WriteOperation.UPSERT
            ),
            held_key_bytes=self._placement.key_bytes_to_hold(context, batch, len(plan.tasks)),
        )
        run = partial(run_write, context.storage, write_context)
        appends = all(isinstance(task, AppendTask) for task in plan.tasks)  # of rows that are in memory anyway
        at_once = context.storage.at_once if appends else 1
        found = batch.engine.run(run, plan.tasks, label=self._label(Step.WRITE), at_once=at_once)
        results = [result for result in found if result is not None]
        return Written(results, staged_copies(context.storage, write_context, results))

    def publish(self, transaction: Transaction, plan: WritePlan, written: Written) -> None:
        """Give the files their names and complete the instant: from then on readers see them."""
        options = self._options
        publish_files(self._context, transaction.instant, written.results, written.copies)
        self._placement.remember(self._context, written.results)
        metadata = commit_metadata(
            written.results,
            operation=self._batch.operation,
            schema=self._schema,
            table_name=self._context.config.name,
            extra={
                **options.commit_entries,
                **(format_batch(options.stream) if options.stream else {}),
                **(format_absent_in(plan.absent_in) if self._rules.deletes and not self._replaces else {}),
            },
            replaced=plan.replaced,
        )
        transaction.commit(metadata, based_on=plan.based_on, absent_in=plan.absent_in)

    def result(self, transaction: Transaction, plan: WritePlan, located: Located, written: Written) -> CommitResult:
        """What the write did."""
        stats = [result.stat for result in written.results]
        return replace(
            CommitResult.of(transaction.instant, self._batch.operation, stats, replaced=plan.replaced),
            index=located.ways(plan),
            opened=located.opened,
            seconds=time.monotonic() - self._batch.started_s,
            engine=self._batch.engine.name,
        )

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
            of_rows={span.partition_path for chunk in self._batch.chunks for span in chunk.ranges},
            stored=snapshot.view.every_partition(),
        )

    def _plan_on(self, located: Located, now: Snapshot) -> WritePlan:
        """Plan on the slices as they are under the lock; what was located must still be true."""
        name = self._context.config.name
        if committed_since(now, self._snapshot.timeline, self._options.stream):
            raise StaleSnapshotError(
                f"another run of stream {self._options.stream} wrote this batch to table {name!r} meanwhile; run the write again"
            )
        require_same_columns(self._context, self._snapshot, now)
        if self._replaces:
            partitions = self._overwritten(now)
            return replacing(
                located.plan(self._target(now, ())),
                partitions,
                now.view.written_slices(partitions),
                all_of_it=self._rules.replaces is Replaces.ALL,
            )
        touched = dict.fromkeys(span.partition_path for chunk in self._batch.chunks for span in chunk.ranges)
        slices = now.view.latest_slices(touched)
        if not located.holds(slices):
            raise StaleSnapshotError(
                f"another writer changed table {name!r} while keys were looked up; run the write again"
            )
        plan = located.plan(self._target(now, slices))
        if self._batch.found_on is not None:
            _require_same_rows(self._context, self._batch.found_on, now, plan)
        return plan

    def _target(self, now: Snapshot, slices: Sequence[FileSlice]) -> Target:
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
            busy=frozenset(now.view.pending_compactions()),
            packs=self._rules.packs,
            table=self._context.storage.uri,
        )


def _schema_after(context: TableContext, batch: Batch, leave: Leave, snapshot: Snapshot) -> pa.Schema:
    """The table's columns after this write, as the table is now: others may have changed them since the rows were prepared."""
    config = context.config
    # What the batch lacks was asked when its rows were prepared. A column that another writer added since is null in them.
    since = replace(leave, null_for_missing=True)
    schema = reconcile(snapshot.schema, batch.given, table_name=config.name, leave=since)
    for name in (*config.record_key_fields, *config.partition_fields):
        top = name.split(".")[0]
        # Keys and paths are texts of the values, and were made from the types that the columns had.
        if top in batch.schema.names and schema.field(top).type != batch.schema.field(top).type:
            raise SchemaError(
                f"another writer changed column {top!r} of table {config.name!r} from {batch.schema.field(top).type} to "
                f"{schema.field(top).type} while this batch was read; nothing was written, run the write again"
            )
    return schema


def _orders_texts(context: TableContext, schema: pa.Schema) -> bool:
    ordering = [schema.field(name).type for name in context.config.ordering_fields if name in schema.names]
    return any(map(pa.types.is_string, ordering))


def action_of(table_type: TableType) -> Action:
    """The action of a commit that only adds file slices."""
    return Action.COMMIT if table_type is TableType.COPY_ON_WRITE else Action.DELTACOMMIT


def require_same_columns(context: TableContext, looked_at: Snapshot, now: Snapshot) -> None:
    """Raises StaleSnapshotError when another writer changed the table's columns since."""
    if now.schema is not None and looked_at.schema != now.schema:
        raise StaleSnapshotError(
            f"another writer changed the schema of table {context.config.name!r}; run the write again"
        )


def _require_same_rows(context: TableContext, found_on: Timeline, now: Snapshot, plan: WritePlan) -> None:
    """The rows that a condition found are as they were: nobody has changed the file groups that they are in since.

    From here on the commit itself sees to that. Rows that came to fit the condition meanwhile are left: the write goes before
    the one that brought them.
    """
    before, there = found_on.completed_times, now.timeline.completed_times
    changed = find_conflict(
        based_on=plan.based_on,
        absent_in=frozenset(),
        current={group: now.view.slice_of(group) for group in plan.based_on},
        others=((i, now.active.read_commit(i)) for i in now.timeline.commits if i.time not in before),
    )
    if changed is None and found_on.commits and found_on.commits[-1].time not in there:
        changed = f"commit {found_on.commits[-1]} was taken off the timeline"
    if changed is not None:
        raise StaleSnapshotError(
            f"table {context.config.name!r} was changed after the condition was evaluated: {changed}; nothing was written, run the "
            "write again"
        )


def _described(plan: WritePlan, operation: WriteOperation) -> CommitMetadata:
    """Content of the inflight file: the file groups that the write names, as Hudi's workload profile does."""
    stats: dict[str, list[WriteStat]] = {}
    for task in plan.tasks:
        stats.setdefault(task.partition_path, []).append(
            WriteStat(
                file_id=task.file_id,
                partition_path=task.partition_path,
                path="",
                prev_commit=plan.based_on.get(FileGroupId(task.partition_path, task.file_id)),
                num_updates=sum(m.count for m in task.updates),
                num_inserts=task.inserts.rows if task.inserts else 0,
            )
        )
    for partition_path, file_ids in plan.replaced.items():
        stats.setdefault(partition_path, []).extend(
            WriteStat(file_id, partition_path, path="", prev_commit=plan.based_on[FileGroupId(partition_path, file_id)])
            for file_id in file_ids
        )
    return CommitMetadata(operation=operation, write_stats={p: tuple(found) for p, found in stats.items()})
