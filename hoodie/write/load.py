"""Loads: rows that need not meet any other go from the input into base files in one pass, where an engine can do that.

A bulk_insert looks nothing up and starts file groups of its own, so nothing about it depends on what else is stored or
written meanwhile: its instant can be allotted first, and each worker writes the rows that it prepares. No row is staged
but those of partitions of which a worker has too few for a file; these take the usual way, in the same instant.

Of a write that starts new file groups only no reader loses anything when others commit between its instant and its end:
a compaction that is planned meanwhile cannot miss logs of it, because it has none, and whoever inserts the same keys into
the same partitions finds its files in their own check (docs/contributing/decisions/writers.md, "Loads in one pass").
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hoodie.engine.base import Engine, Records
from hoodie.engine.local import LocalEngine
from hoodie.filegroup.small_files import run_tasks
from hoodie.index.bloom import pieces_by_partition
from hoodie.model.enums import WriteOperation
from hoodie.model.payloads import NEW_GROUPS_ONLY, CommitMetadata
from hoodie.model.plans import Chunk, WriteContext, WriteResult
from hoodie.model.results import CommitResult
from hoodie.options.values import SortMode
from hoodie.options.write import WriteOptions
from hoodie.txn.conflict import WriteBasis
from hoodie.txn.transaction import Transaction
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.attempt import action_of
from hoodie.write.load_part import run_load_part
from hoodie.write.operation_rules import OperationRules, Replaces, Step, labelled
from hoodie.write.placement import placement_of
from hoodie.write.plan import Sizing, TaggedBatch, Target, plan_write
from hoodie.write.publish import commit_metadata, publish_files
from hoodie.write.stage import plan_preparation
from hoodie.write.table_changes import require_same_columns
from hoodie.write.validators import validate


def loads_in_one_pass(context: TableContext, operation: WriteOperation, options: WriteOptions) -> bool:
    """Whether nothing about this write depends on other rows: stored ones, those of the batch, or those of a stream's past."""
    rules = OperationRules.of(operation, options)
    alone = (
        rules.inserts
        and not (rules.looks_up or rules.deletes or rules.partial or options.combine)
        and rules.replaces is Replaces.NOTHING
        and rules.sort not in (SortMode.GLOBAL_SORT, SortMode.PARTITION_SORT)
        and placement_of(context.config, rules, options).starts_anywhere
        and options.stream is None
    )
    # An insert fills small files up: where there are none it is as a bulk_insert.
    return alone and (not rules.packs or not context.active.load().commits)


def run_load(
    context: TableContext,
    records: Records,
    batch_schema: pa.Schema,
    *,
    operation: WriteOperation,
    options: WriteOptions,
    engine: Engine,
) -> CommitResult:
    """Write the records as one instant; without one when there are none: then it is left to be rolled back.

    The input is evaluated once here. After a conflict nothing of it is visible, and whoever runs the write again has it
    evaluated again, all of it.

    Raises:
        CommitConflictError: another writer changed the table's columns, its properties, or rolled this write back.
        SchemaError, KeyFieldError: before any row is drawn where the schema alone shows it.
    """
    started = time.monotonic()
    looked_at = context.snapshot()
    preparation = plan_preparation(context, batch_schema, operation=operation, options=options)
    config = context.config
    label = partial(labelled, operation, config.name, steps=(Step.LOAD, Step.REST, Step.COMMIT))
    transaction, _ = Transaction.start(
        context,
        action_of(config.table_type),
        lambda now, _: _require_writable(context, looked_at, now),
        lambda _: CommitMetadata(operation=operation, extra={NEW_GROUPS_ONLY: "true"}),
    )
    with transaction:
        write_context = transaction.write_context(preparation.schema, options.file_options())
        work = partial(run_load_part, preparation, context.storage, write_context, options.max_file_size_bytes)
        parts = engine.stage(records, work, label=label(Step.LOAD))
        results = [part for _, part in parts if isinstance(part, WriteResult)]
        rest = [part for _, part in parts if isinstance(part, Chunk)]
        if rest:
            rest_engine = engine
            if sum(chunk.size_bytes for chunk in rest) <= options.driver_max_bytes:
                rest_engine = LocalEngine()
            first = 1 + max(number for number, _ in parts)
            results += _write_rest(
                context, write_context, rest, options, rest_engine, label=label(Step.REST), first=first
            )
        if results:
            publish_files(context, transaction.instant, results, gathered_markers=options.gathers_markers(len(results)))
            metadata = commit_metadata(
                results,
                operation=operation,
                schema=preparation.schema,
                table_name=config.name,
                extra=options.commit_entries,
            )
            validate(context, metadata, options.validators)
            transaction.commit(metadata, WriteBasis())
    if not results:
        return CommitResult(None, operation, seconds=time.monotonic() - started)
    return replace(
        CommitResult.of(transaction.instant, operation, [r.stat for r in results], completed=transaction.completed_at),
        seconds=time.monotonic() - started,
        engine=engine.name,
    )


def _write_rest(
    context: TableContext,
    write_context: WriteContext,
    chunks: Sequence[Chunk],
    options: WriteOptions,
    engine: Engine,
    *,
    label: str,
    first: int,
) -> list[WriteResult]:
    """New files for the rows that were handed back; `first`: the least task number that no worker has."""
    plan = plan_write(
        TaggedBatch(pieces_by_partition(chunks)),
        Target(
            (),
            context.config.table_type,
            Sizing(options.max_file_size_bytes, options.small_file_limit_bytes),
            packs=False,
        ),
    )
    tasks = [replace(task, number=first + task.number) for task in plan.tasks]
    return [r for r in run_tasks(engine, context.storage, write_context, tasks, label=label) if r is not None]


def _require_writable(context: TableContext, looked_at: Snapshot, now: Snapshot) -> None:
    require_same_columns(context, looked_at, now)
