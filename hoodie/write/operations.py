"""Upsert, insert, bulk_insert and delete: the steps of a write, in order. Each step lives in a room of its own.

stage (once) -> look up -> start -> route -> seal -> commit. After a conflict the facade rolls the instant back and
calls `run_batch` again on a new snapshot; the staged rows are used again, the input is not.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hoodie.engine.base import Engine, Records
from hoodie.engine.local import LocalEngine
from hoodie.errors import CommitConflictError, OptionError, SchemaError
from hoodie.filegroup.run import run_write
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.format.base_file import read_footer
from hoodie.index.bloom import pieces_by_partition, plan_lookup, run_lookup
from hoodie.keygen import key_generator
from hoodie.model.enums import Action, TableType, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.model.plans import Chunk, LookupResult, WriteContext
from hoodie.model.results import CommitResult
from hoodie.options.values import KeyGeneratorType
from hoodie.options.write import WriteOptions
from hoodie.timeline.active import scratch_folder
from hoodie.txn.context import Snapshot, TableContext
from hoodie.txn.transaction import Transaction
from hoodie.write.plan import Sizing, Tagged, WritePlan, plan_write
from hoodie.write.prepare import Preparation, require_columns, run_prepare
from hoodie.write.schema import reconcile, storable
from hoodie.write.seal import commit_metadata, publish_files

_LOOKS_UP = (WriteOperation.UPSERT, WriteOperation.DELETE)


@dataclass(frozen=True)
class Batch:
    """Rows on their way into the table: evaluated once, kept until the write is decided."""

    operation: WriteOperation
    chunks: tuple[Chunk, ...]
    schema: pa.Schema
    """Columns of the prepared rows: the table's after this write, as the table was when they were prepared."""
    given: pa.Schema
    """The input's columns, in the types that a table stores."""
    engine: Engine
    """Runs the tasks; where the chunks live in memory it is the embedded one, and also where they are few."""
    folder: str | None
    """Where tasks stage what they find for other processes; None when all of them run in this one."""
    started_s: float


class StaleSnapshotError(CommitConflictError):
    """The files that were looked into changed before the instant was allotted: look again. Nothing was written."""


@contextmanager
def staged_batch(
    context: TableContext,
    records: Records,
    batch_schema: pa.Schema,
    *,
    operation: WriteOperation,
    options: WriteOptions,
    engine: Engine,
    in_memory: bool,
) -> Iterator[Batch]:
    """Evaluate the input and hold its prepared rows; staged files are removed at the end.

    Raises:
        SchemaError, KeyFieldError: before any row is drawn where the schema alone shows it.
    """
    started = time.monotonic()
    preparation = plan_preparation(context, batch_schema, operation=operation, options=options)
    folder = None if in_memory else scratch_folder(f"rows-{uuid.uuid4().hex}")
    if folder is not None:
        context.liveness.hold(folder.rpartition("/")[2])
        context.storage.mkdirs(folder)
    try:
        prepare = partial(run_prepare, preparation, None if in_memory else context.storage, folder)
        label = f"{operation.value.lower()} {preparation.table_name}: read the batch"
        chunks = engine.stage(records, prepare, label=label)
        if not in_memory and sum(chunk.size_bytes for chunk in chunks) <= options.driver_max_bytes:
            # Few rows: what remains costs less here, on the staged files, than as jobs of a cluster.
            engine, folder_of_tasks = LocalEngine(), None
        else:
            folder_of_tasks = folder
        given = storable(batch_schema)
        yield Batch(operation, tuple(chunks), preparation.schema, given, engine, folder_of_tasks, started)
    finally:
        if folder is not None:
            context.storage.delete_folder(folder)
            context.liveness.release(folder.rpartition("/")[2])


def plan_preparation(
    context: TableContext, batch_schema: pa.Schema, *, operation: WriteOperation, options: WriteOptions
) -> Preparation:
    """How rows of this schema are prepared for the table as it is now.

    Raises:
        SchemaError, KeyFieldError: the schema alone shows that they cannot be. OptionError: a delete on an empty table.
    """
    snapshot = context.snapshot()
    config = context.config
    deletes = operation is WriteOperation.DELETE
    require_columns(batch_schema.names, config.record_key_fields, what="record key", table=config.name)
    require_columns(batch_schema.names, config.partition_fields, what="partition", table=config.name)
    if not deletes:
        require_columns(batch_schema.names, config.ordering_fields, what="ordering", table=config.name)
    given = storable(batch_schema)
    if deletes and snapshot.schema is None:
        raise OptionError(f"table {config.name!r} is empty: there is nothing to delete")
    schema = reconcile(snapshot.schema, given, table_name=config.name, partial=deletes)
    keygen = key_generator(config, name_single_key=_names_single_key(context, snapshot, options))
    return Preparation(schema, keygen, deletes, config.name, context.rule.ordering_field)


def run_batch(context: TableContext, batch: Batch, options: WriteOptions) -> CommitResult:
    """Write a staged batch as one instant.

    Raises:
        CommitConflictError: another writer was faster; the instant, if one was allotted, is left to be rolled back.
    """
    config = context.config
    snapshot = context.snapshot()
    schema = _schema_now(context, snapshot, batch)
    pieces = pieces_by_partition(batch.chunks)
    lookups: list[LookupResult] = []
    label = f"{batch.operation.value.lower()} {config.name}"
    if batch.operation in _LOOKS_UP:
        tasks = plan_lookup(
            pieces,
            snapshot.view.latest_slices(pieces),
            stage_to=batch.folder,
            prune_by_range=options.index.prune_by_ranges,
            logs_before_base=snapshot.view.logs_before_base,
            visible=snapshot.timeline.visible(),
        )
        lookups = batch.engine.run(partial(run_lookup, context.storage), tasks, label=f"{label}: look up keys")
    concat = batch.operation not in _LOOKS_UP
    tagged = Tagged(pieces, lookups, inserts=batch.operation is not WriteOperation.DELETE, concat=concat)
    transaction, plan = Transaction.start(
        context,
        action_of(config.table_type),
        lambda now: _plan(context, tagged, snapshot, now, batch, options),
        lambda planned: _described(planned, batch.operation),
    )
    try:
        write_context = WriteContext(
            instant=transaction.instant,
            table_name=config.name,
            schema=schema,
            rule=context.rule,
            combine=options.combine,
            files=options.file_options(),
            staging=transaction.staging,
            visible=transaction.started_on.visible(),
        )
        run = partial(run_write, context.storage, write_context)
        results = [r for r in batch.engine.run(run, plan.tasks, label=f"{label}: write files") if r is not None]
        publish_files(context.storage, transaction.instant, results)
        metadata = commit_metadata(results, operation=batch.operation, schema=schema, table_name=config.name)
        transaction.commit(metadata, based_on=plan.based_on, inserted_partitions=plan.inserted_partitions)
    except BaseException as exc:
        if isinstance(exc, OSError):
            # On a full disk the rollback, and every later write, needs the room that the staged files take.
            with suppress(OSError):
                context.storage.delete_folder(transaction.staging)
        transaction.abandon()
        raise
    return _result(transaction.instant, batch, [r.stat for r in results], lookups)


def _schema_now(context: TableContext, snapshot: Snapshot, batch: Batch) -> pa.Schema:
    """The table's columns after this write, as the table is now: others may have changed them since the rows were prepared.

    Raises:
        SchemaError: the batch does not fit the table any more.
    """
    config = context.config
    partial_rows = batch.operation is WriteOperation.DELETE
    schema = reconcile(snapshot.schema, batch.given, table_name=config.name, partial=partial_rows)
    for name in (*config.record_key_fields, *config.partition_fields):
        top = name.split(".")[0]
        # Keys and paths are texts of the values, and were made from the types that the columns had.
        if top in batch.schema.names and schema.field(top).type != batch.schema.field(top).type:
            raise SchemaError(
                f"another writer changed column {top!r} of table {config.name!r} from {batch.schema.field(top).type} to "
                f"{schema.field(top).type} while this batch was read; nothing was written, run the write again"
            )
    return schema


def _names_single_key(context: TableContext, snapshot: Snapshot, options: WriteOptions) -> bool:
    """Whether keys of one column are written `column:value`. Hudi's versions differ, and the table does not say: its files do."""
    config = context.config
    if config.keygen is not KeyGeneratorType.COMPLEX or len(config.record_key_fields) > 1:
        return True
    if options.complex_key_new_encoding is not None:
        return not options.complex_key_new_encoding
    for partition_path in snapshot.view.partitions():
        for piece in snapshot.view.latest_slices([partition_path]):
            if piece.base is not None:
                with open_base_file(context.storage, piece.base) as (_, metadata):
                    smallest = read_footer(metadata, path=piece.base.path).min_key
                if smallest is not None:
                    return smallest.startswith(f"{config.record_key_fields[0]}:")
    return True


def action_of(table_type: TableType) -> Action:
    return Action.COMMIT if table_type is TableType.COPY_ON_WRITE else Action.DELTACOMMIT


def _plan(
    context: TableContext, tagged: Tagged, looked_at: Snapshot, now: Snapshot, batch: Batch, options: WriteOptions
) -> WritePlan:
    """Plan on the slices as they are under the lock; what the look-up saw must still be what is stored."""
    slices = now.view.latest_slices(tagged.pieces)
    if not tagged.concat and _bases(slices) != _bases(looked_at.view.latest_slices(tagged.pieces)):
        raise StaleSnapshotError(
            f"another writer changed table {context.config.name!r} while keys were looked up; run the write again"
        )
    if now.schema is not None and looked_at.schema != now.schema:
        raise StaleSnapshotError(
            f"another writer changed the schema of table {context.config.name!r}; run the write again"
        )
    return plan_write(
        tagged,
        slices,
        table_type=context.config.table_type,
        sizing=Sizing(options.max_file_size_bytes, options.small_file_limit_bytes),
        busy=frozenset(now.view.pending_compactions()),
        pack_small_files=batch.operation is not WriteOperation.BULK_INSERT,
    )


def _bases(slices: list[FileSlice]) -> dict[FileGroupId, str]:
    return {piece.group: piece.base.name for piece in slices if piece.base is not None}


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
    return CommitMetadata(operation=operation, write_stats={p: tuple(found) for p, found in stats.items()})


def _result(instant: str, batch: Batch, stats: list[WriteStat], lookups: list[LookupResult]) -> CommitResult:
    ways: dict[str, int] = {}
    for result in lookups:
        ways[result.how] = ways.get(result.how, 0) + 1
    return replace(
        CommitResult.of(instant, batch.operation, stats),
        index=ways,
        seconds=time.monotonic() - batch.started_s,
        engine="embedded" if batch.folder is None else "spark",
    )
