"""Loads: rows that need not meet any other go from the input into base files in one pass, where an engine can do that.

A bulk_insert looks nothing up and starts file groups of its own, so nothing about it depends on what else is stored or
written meanwhile: its instant can be allotted first, and each worker writes the rows that it prepares. No row is staged
but those of partitions of which a worker has too few for a file; these take the usual way, in the same instant.

Of a write that starts new file groups only no reader loses anything when others commit between its instant and its end:
a compaction that is planned meanwhile cannot miss logs of it, because it has none, and whoever inserts the same keys into
the same partitions finds its files in their own check (docs/CONCURRENCY.md, "Loads in one pass").
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.base import Engine, Records
from hoodie.engine.gather import bytes_of, gathered
from hoodie.engine.local import LocalEngine
from hoodie.errors import CommitConflictError
from hoodie.filegroup.chunks import make_chunk
from hoodie.filegroup.new_groups import NewGroups
from hoodie.filegroup.run import run_write
from hoodie.index.bloom import pieces_by_partition
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.payloads import NEW_GROUPS_ONLY, CommitMetadata
from hoodie.model.plans import DELETED, Chunk, WriteContext, WriteResult
from hoodie.model.results import CommitResult
from hoodie.options.values import SortMode
from hoodie.options.write import WriteOptions
from hoodie.storage.base import Storage
from hoodie.txn.context import Snapshot, TableContext
from hoodie.txn.transaction import Transaction
from hoodie.view.columns import refuse_to_write
from hoodie.write.attempt import action_of, require_same_columns
from hoodie.write.conduct import Conduct, Replaces, Step, labelled
from hoodie.write.placement import placement_of
from hoodie.write.plan import Sizing, Tagged, Target, plan_write
from hoodie.write.prepare import Preparation, prepare_rows
from hoodie.write.seal import commit_metadata, publish_files
from hoodie.write.stage import plan_preparation

FEED_BYTES = 32 * 1024 * 1024
"""Rows are prepared in pieces of about this size."""


def loads_in_one_pass(context: TableContext, operation: WriteOperation, options: WriteOptions) -> bool:
    """Whether nothing about this write depends on other rows: stored ones, those of the batch, or those of a stream's past."""
    conduct = Conduct.of(operation, options)
    alone = (
        conduct.inserts
        and not (conduct.looks_up or conduct.deletes or conduct.partial or options.combine)
        and conduct.replaces is Replaces.NOTHING
        and conduct.sort not in (SortMode.GLOBAL_SORT, SortMode.PARTITION_SORT)
        and placement_of(context.config, conduct, options).starts_anywhere
        and options.stream is None
    )
    # An insert fills small files up: where there are none it is as a bulk_insert.
    return alone and (not conduct.packs or not context.active.load().commits)


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
        lambda now: _require_writable(context, looked_at, now),
        lambda _: CommitMetadata(operation=operation, extra={NEW_GROUPS_ONLY: "true"}),
    )
    with transaction:
        write_context = transaction.write_context(preparation.schema, options.file_options())
        work = partial(run_load_part, preparation, context.storage, write_context, options.max_file_size_bytes)
        parts = engine.stage(records, work, label=label(Step.LOAD))
        results = [found for _, found in parts if isinstance(found, WriteResult)]
        rest = [found for _, found in parts if isinstance(found, Chunk)]
        if rest:
            rest_engine = engine
            if sum(chunk.size_bytes for chunk in rest) <= options.driver_max_bytes:
                rest_engine = LocalEngine()
            first = 1 + max(number for number, _ in parts)
            results += _write_rest(
                context, write_context, rest, options, rest_engine, label=label(Step.REST), first=first
            )
        if results:
            publish_files(context.storage, transaction.instant, results)
            metadata = commit_metadata(
                results,
                operation=operation,
                schema=preparation.schema,
                table_name=config.name,
                extra=options.commit_entries,
            )
            transaction.commit(metadata, based_on={}, inserted_partitions=frozenset())
    if not results:
        return CommitResult(None, operation, seconds=time.monotonic() - started)
    return replace(
        CommitResult.of(transaction.instant, operation, [r.stat for r in results]),
        seconds=time.monotonic() - started,
        engine=engine.name,
    )


def run_load_part(
    preparation: Preparation,
    storage: Storage,
    context: WriteContext,
    max_file_bytes: int,
    number: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, WriteResult | Chunk]]:
    """What one worker does with its batches: files that it finished, and chunks of the rows that it leaves to others."""
    counted = 0
    with NewGroups(storage, context, number=number, max_file_bytes=max_file_bytes) as groups:
        for raw in _fed(batches):
            rows = prepare_rows(raw, preparation)
            if not (preparation.keygen.record_key_fields or preparation.keys_given):
                rows = _completed_keys(rows, f"{context.instant}_{number}", counted)
            counted += rows.num_rows
            for found in groups.add(_live(rows)):
                yield number, _left(found, storage, context)
        for found in groups.finish():
            yield number, _left(found, storage, context)


def _left(found: WriteResult | pa.Table, storage: Storage, context: WriteContext) -> WriteResult | Chunk:
    """A file as it is; rows as a chunk in the instant's staging folder, which goes with it.

    Raises:
        CommitConflictError: the folder is gone: another process rolled the instant back.
    """
    if not isinstance(found, pa.Table):
        return found
    try:
        return make_chunk(found, storage=storage, stage_to=context.staging)
    except FileNotFoundError as exc:
        raise CommitConflictError(
            f"instant {context.instant} of table {storage.uri} was rolled back by another process while its rows were read; "
            "nothing of it is visible, run it again"
        ) from exc


def _fed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in gathered(batches):
        waiting.append(batch)
        size += bytes_of(batch)
        if size >= FEED_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _live(rows: pa.Table) -> pa.Table:
    """Rows to store: an insert of a row that is marked as deleted inserts nothing."""
    if DELETED not in rows.column_names:
        return rows
    return rows.filter(pc.invert(rows.column(DELETED))).drop_columns([DELETED])


def _completed_keys(rows: pa.Table, prefix: str, first: int) -> pa.Table:
    """Generated keys, which are the rows' numbers within this piece so far: instant, worker, number within the worker."""
    join_texts: Any = pc.binary_join_element_wise  # its stubs know no mix of texts and columns
    numbers = pa.array(np.arange(first, first + rows.num_rows)).cast(pa.string())
    return rows.set_column(rows.schema.get_field_index(RECORD_KEY), RECORD_KEY, join_texts(prefix, numbers, "_"))


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
        Tagged(pieces_by_partition(chunks)),
        Target(
            (),
            context.config.table_type,
            Sizing(options.max_file_size_bytes, options.small_file_limit_bytes),
            packs=False,
        ),
    )
    tasks = [replace(task, number=first + task.number) for task in plan.tasks]
    run = partial(run_write, context.storage, write_context)
    return [r for r in engine.run(run, tasks, label=label) if r is not None]


def _require_writable(context: TableContext, looked_at: Snapshot, now: Snapshot) -> None:
    refuse_to_write(context.storage, now.active, now.timeline)
    require_same_columns(context, looked_at, now)
