"""The steps of a write, in order. Each step lives in a room of its own; `conduct.py` says how operations differ.

stage (once) -> look up -> start -> route -> seal -> commit. After a conflict the facade rolls the instant back and
calls `run_batch` again on a new snapshot; the staged rows are used again, the input is not.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hoodie.engine.base import Engine, Records
from hoodie.engine.local import LocalEngine
from hoodie.errors import CommitConflictError, DuplicateKeyError, OptionError, SchemaError
from hoodie.filegroup.chunks import load_chunk, load_rows, sorted_chunks
from hoodie.filegroup.row_copies import how_to_copy, staged_copies
from hoodie.filegroup.run import run_write
from hoodie.format.plan_avro import encode_replace_plan
from hoodie.index.bloom import packed_lookups, pieces_by_partition, plan_lookup, run_lookups
from hoodie.index.bucket import plan_buckets, run_buckets
from hoodie.index.stored_keys import KNOWN_FILES, held_key_bytes
from hoodie.model.buckets import BucketRows
from hoodie.model.enums import Action, TableType, WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.model.plans import Chunk, LookupResult, WriteContext
from hoodie.model.results import CommitResult
from hoodie.model.streams import format_batch
from hoodie.options.mergers import runnable
from hoodie.options.values import DuplicatePolicy, LogBlockFormat, SortMode
from hoodie.options.write import WriteOptions
from hoodie.storage.base import Storage
from hoodie.timeline.active import scratch_folder
from hoodie.timeline.timeline import Timeline
from hoodie.txn.conflict import find_conflict
from hoodie.txn.context import Snapshot, TableContext
from hoodie.txn.transaction import Transaction
from hoodie.view.columns import refuse_to_write
from hoodie.write.bucket_plan import plan_bucket_write
from hoodie.write.conduct import Conduct, Replaces, Step, labelled
from hoodie.write.keys import carries_keys, key_columns, require_stored_keys, table_keys
from hoodie.write.overwrite import overwritten_partitions, replacing
from hoodie.write.plan import CHEAP_BYTES, MAX_GROWTH, SPARING_GROWTH, Sizing, Tagged, WritePlan, plan_write
from hoodie.write.prepare import ADD_IT, Memory, Preparation, require_columns, run_prepare
from hoodie.write.schema import Leave, reconcile, storable
from hoodie.write.seal import commit_metadata, publish_files
from hoodie.write.streams import committed_since, is_committed

log = logging.getLogger("hoodie")

_PREPARED_ON_S = 0.05
"""What the call before has listed: each listing of a thousand commits takes two milliseconds."""


_ADD_TO_DELETE = (
    "add the column: keys are unique per partition, so a delete needs it; or delete by a condition, where=…"
)


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
    found_on: Timeline | None = None
    """Where the rows are those that a condition found in the table: the timeline of then. They must still be as they were."""


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
    found_on: Timeline | None = None,
) -> Iterator[Batch]:
    """Evaluate the input and hold its prepared rows; staged files are removed at the end. `found_on`: as `Batch` has it.

    Raises:
        SchemaError, KeyFieldError: before any row is drawn where the schema alone shows it.
    """
    started = time.monotonic()
    preparation = plan_preparation(context, batch_schema, operation=operation, options=options)
    rows_folder = _RowsFolder(context)
    try:
        folder = None if in_memory else rows_folder.path()
        memory = None
        if in_memory and isinstance(engine, LocalEngine):
            memory = Memory(options.memory_limit_bytes, context.storage, rows_folder.path)
            engine = engine.within(options.memory_limit_bytes // 2)
        prepare = partial(_prepare_part, preparation, None if in_memory else context.storage, folder, memory)
        steps = Conduct.of(operation, options).steps(bucketed=context.config.buckets is not None)
        label = labelled(operation, preparation.table_name, Step.READ, steps)
        chunks = engine.stage(records, prepare, label=label)
        if not in_memory and sum(chunk.size_bytes for chunk in chunks) <= options.driver_max_bytes:
            # Few rows: what remains costs less here, on the staged files, than as jobs of a cluster.
            engine, folder_of_tasks = LocalEngine().within(options.memory_limit_bytes), None
        else:
            folder_of_tasks = folder
        if Conduct.of(operation, options).sort is SortMode.GLOBAL_SORT:
            chunks = sorted_chunks(chunks)
        given = _taken(context, batch_schema, operation)
        yield Batch(operation, tuple(chunks), preparation.schema, given, engine, folder_of_tasks, started, found_on)
    finally:
        rows_folder.remove()


class _RowsFolder:
    """A private folder for prepared rows, made when it is asked for; as long as this process lives nobody removes it."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._path: str | None = None

    def path(self) -> str:
        if self._path is None:
            path = scratch_folder(f"rows-{uuid.uuid4().hex}")
            self._context.liveness.hold(path.rpartition("/")[2])
            self._path = path
            self._context.storage.mkdirs(path, durable=False)
        return self._path

    def remove(self) -> None:
        """What cannot be removed, the next write removes: by then it is decided what became of this one."""
        if self._path is None:
            return
        name = self._path.rpartition("/")[2]
        try:
            self._context.storage.delete_folder(self._path)
            self._context.liveness.release(name)
        except OSError as exc:
            log.warning("the staged rows in %s of table %s were not removed: %s", name, self._context.storage.uri, exc)
            self._context.liveness.abandon(name)


def _prepare_part(
    preparation: Preparation,
    storage: Storage | None,
    stage_to: str | None,
    memory: Memory | None,
    _number: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[Chunk]:
    return run_prepare(preparation, storage, stage_to, batches, memory=memory)


def plan_preparation(
    context: TableContext, batch_schema: pa.Schema, *, operation: WriteOperation, options: WriteOptions
) -> Preparation:
    """How rows of this schema are prepared for the table as it is now.

    Raises:
        SchemaError, KeyFieldError: the schema alone shows that they cannot be. OptionError: a delete on an empty table.
    """
    # Whoever writes the rows checks them against the table of then.
    snapshot = context.snapshot(max_age_s=_PREPARED_ON_S)
    refuse_to_write(context.storage, snapshot.active, snapshot.timeline)
    config = context.config
    conduct = Conduct.of(operation, options)
    deletes = conduct.deletes
    by_meta = carries_keys(config, operation, batch_schema.names)
    if config.generates_keys and operation is WriteOperation.DELETE:
        require_stored_keys(batch_schema.names, config)
    else:
        require = partial(require_columns, batch_schema.names, table=config.name)
        require(config.record_key_fields, what="record key")
        require(config.partition_fields, what="partition", fix=_ADD_TO_DELETE if deletes else ADD_IT)
    if not (deletes or conduct.partial):
        require_columns(batch_schema.names, config.ordering_fields, what="ordering", table=config.name)
    given = _taken(context, batch_schema, operation)
    if deletes and snapshot.schema is None:
        raise OptionError(f"table {config.name!r} is empty: there is nothing to delete")
    schema = reconcile(snapshot.schema, given, table_name=config.name, leave=_leave(context, conduct, options))
    keygen = table_keys(context, snapshot, options)
    return Preparation(
        schema,
        keygen,
        deletes,
        config.name,
        context.rule.ordering_fields,
        given=tuple(given.names) if conduct.partial else None,
        sort_by_key=conduct.sorts,
        marker=context.rule.delete_marker or options.delete_marker,
        keys_given=by_meta,
    )


def _taken(context: TableContext, batch_schema: pa.Schema, operation: WriteOperation) -> pa.Schema:
    """The columns of the input that are taken, in the types that a table stores: of a delete only those that make keys."""
    if Conduct.of(operation, WriteOptions()).deletes:
        names = key_columns(context.config)
        batch_schema = pa.schema([field for field in batch_schema if field.name in names])
    return storable(batch_schema)


def _leave(context: TableContext, conduct: Conduct, options: WriteOptions) -> Leave:
    config = context.config
    return Leave(
        keys=frozenset((*config.record_key_fields, *config.partition_fields)),
        keys_only=conduct.deletes,
        partial=conduct.partial,
        upserts=conduct.updates and conduct.inserts,
        null_for_missing=options.null_for_missing,
        integers_to_floating=options.integers_to_floating,
    )


def batch_of_no_rows(context: TableContext, operation: WriteOperation) -> Batch:
    """For an operation that needs none: one that deletes the partitions that it is told.

    Raises:
        OptionError: the table is empty.
    """
    schema = context.snapshot().schema
    if schema is None:
        raise OptionError(f"table {context.config.name!r} is empty: there is nothing to delete")
    return Batch(operation, (), schema, schema, LocalEngine(), None, time.monotonic())


def run_batch(context: TableContext, batch: Batch, options: WriteOptions, snapshot: Snapshot) -> CommitResult:
    """Write a staged batch as one instant, planned on a snapshot of this moment; without one when it changes nothing.

    Raises:
        CommitConflictError: another writer was faster; the instant, if one was allotted, is left to be rolled back.
        DuplicateKeyError: an insert that is to fail on stored keys met one.
    """
    config = context.config
    refuse_to_write(context.storage, snapshot.active, snapshot.timeline)
    if is_committed(snapshot, options.stream, table=context.storage.uri):
        return CommitResult(None, batch.operation, seconds=time.monotonic() - batch.started_s)
    conduct = Conduct.of(batch.operation, options)
    schema = _schema_now(context, snapshot, batch, _leave(context, conduct, options))
    if any(pa.types.is_string(schema.field(name).type) for name in config.ordering_fields if name in schema.names):
        options = options.for_text_ordering()
    if conduct.replaces is not Replaces.NOTHING and not _changes_something(snapshot, batch, conduct, options):
        return CommitResult(None, batch.operation, seconds=time.monotonic() - batch.started_s)
    pieces = pieces_by_partition(batch.chunks)
    lookups: list[LookupResult] = []
    by_bucket: list[BucketRows] | None = None
    label = partial(labelled, batch.operation, config.name, steps=conduct.steps(bucketed=config.buckets is not None))
    if config.buckets is not None:
        if options.stored_keys is not DuplicatePolicy.NONE:
            raise OptionError(
                f"table {config.name!r} has the bucket index, which looks no keys up, so an insert cannot drop rows of stored keys or "
                "fail on them: use upsert, or leave the options about duplicates out"
            )
        # No file is looked into, and must not be: on merge-on-read tables keys stand in logs only.
        buckets = plan_buckets(batch.chunks, config.buckets, stage_to=batch.folder)
        found = batch.engine.run(partial(run_buckets, context.storage), buckets, label=label(Step.HASH))
        by_bucket = [rows for each in found for rows in each]
    elif conduct.looks_up:
        tasks = plan_lookup(
            pieces,
            snapshot.view.latest_slices(pieces),
            stage_to=batch.folder,
            prune_by_range=options.index.prune_by_ranges,
            logs_before_base=snapshot.view.logs_before_base,
            visible=snapshot.timeline.visible(),
            stays=config.table_type is TableType.MERGE_ON_READ,
        )
        packs = packed_lookups(tasks)
        packed = batch.engine.run(partial(run_lookups, context.storage), packs, label=label(Step.LOOK_UP))
        lookups = [result for results in packed for result in results]
        if conduct.refuses_stored:
            _refuse_stored(context, batch, lookups)
    if batch.operation is WriteOperation.DELETE_PARTITION:
        pieces, by_bucket = {}, None  # its rows only say which partitions are meant
    tagged = Tagged(
        pieces,
        lookups,
        inserts=conduct.inserts,
        updates=conduct.updates,
        concat=conduct.concat,
        # Rows of one key must meet in one task where they are to be combined, which ranges do not promise.
        ranged=conduct.sort is SortMode.GLOBAL_SORT and not options.combine,
    )
    replaces = conduct.replaces is not Replaces.NOTHING
    transaction, plan = Transaction.start(
        context,
        Action.REPLACECOMMIT if replaces else action_of(config.table_type),
        lambda now: _plan(context, tagged, by_bucket, snapshot, now, batch, conduct, options),
        lambda planned: _described(planned, batch.operation),
        requested=encode_replace_plan(batch.operation) if replaces else b"",
        seen=snapshot.view,
    )
    try:
        write_context = WriteContext(
            instant=transaction.instant,
            table_name=config.name,
            schema=schema,
            rule=runnable(context.rule),
            combine=options.combine or by_bucket is not None,
            files=options.file_options(),
            staging=transaction.staging,
            visible=transaction.started_on.visible(),
            given=tuple(batch.given.names) if conduct.partial else None,
            sort_by_key=conduct.sorts,
            row_copies=how_to_copy(
                context.rule,
                wanted=options.copies_rows and config.table_type is TableType.MERGE_ON_READ,
                size_bytes=sum(chunk.size_bytes for chunk in batch.chunks),
                in_process=batch.folder is None,
            ),
            # What is still an upsert where keys are generated brought them along.
            generates_keys=config.generates_keys and conduct.inserts and batch.operation is not WriteOperation.UPSERT,
            held_key_bytes=held_key_bytes(len(plan.tasks)) if batch.folder is None and by_bucket is None else 0,
        )
        run = partial(run_write, context.storage, write_context)
        results = [r for r in batch.engine.run(run, plan.tasks, label=label(Step.WRITE)) if r is not None]
        copies = staged_copies(context.storage, write_context, results)
        publish_files(context.storage, transaction.instant, results, copies)
        for result in results:
            if result.keys is not None:
                KNOWN_FILES.remember(context.storage, result.stat.path, result.keys)
        metadata = commit_metadata(
            results,
            operation=batch.operation,
            schema=schema,
            table_name=config.name,
            extra={**options.commit_entries, **(format_batch(options.stream) if options.stream else {})},
            replaced=plan.replaced,
        )
        transaction.commit(metadata, based_on=plan.based_on, inserted_partitions=plan.inserted_partitions)
    except BaseException as exc:
        if isinstance(exc, OSError):
            # On a full disk the rollback, and every later write, needs the room that the staged files take.
            with suppress(OSError):
                context.storage.delete_folder(transaction.staging)
        transaction.abandon()
        raise
    ways = (
        {"bucket": len({(task.partition_path, task.file_id) for task in plan.tasks})}
        if by_bucket is not None
        else _ways(lookups)
    )
    return replace(
        CommitResult.of(transaction.instant, batch.operation, [r.stat for r in results], replaced=plan.replaced),
        index=ways,
        opened=sum(1 for result in lookups if result.how != "range"),
        seconds=time.monotonic() - batch.started_s,
        engine="embedded" if batch.folder is None else "spark",
    )


def _changes_something(snapshot: Snapshot, batch: Batch, conduct: Conduct, options: WriteOptions) -> bool:
    if batch.operation is not WriteOperation.DELETE_PARTITION and any(chunk.rows for chunk in batch.chunks):
        return True
    return bool(snapshot.view.written_slices(_overwritten(snapshot, batch, conduct, options)))


def _overwritten(snapshot: Snapshot, batch: Batch, conduct: Conduct, options: WriteOptions) -> tuple[str, ...]:
    return overwritten_partitions(
        batch.operation,
        conduct.replaces,
        options,
        of_rows={span.partition_path for chunk in batch.chunks for span in chunk.ranges},
        stored=snapshot.view.every_partition(),
    )


def _refuse_stored(context: TableContext, batch: Batch, lookups: list[LookupResult]) -> None:
    """Raises DuplicateKeyError when a key of the batch is stored."""
    stored = [(result, matches) for result in lookups for matches in result.matches if matches.count]
    if not stored:
        return
    result, matches = stored[0]
    row = int(load_rows(context.storage, matches)[0])
    key = load_chunk(context.storage, batch.chunks[matches.number]).column(RECORD_KEY)[row].as_py()
    raise DuplicateKeyError(
        f"{sum(m.count for _, m in stored)} rows of the insert into table {context.config.name!r} have keys that are stored already, "
        f"such as {key!r} in partition {result.base.partition_path!r}; nothing was written. Upsert them, drop them "
        "(hoodie.datasource.insert.dup.policy=drop), or keep both (none)"
    )


def _schema_now(context: TableContext, snapshot: Snapshot, batch: Batch, leave: Leave) -> pa.Schema:
    """The table's columns after this write, as the table is now: others may have changed them since the rows were prepared.

    Raises:
        SchemaError: the batch does not fit the table any more.
    """
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


def action_of(table_type: TableType) -> Action:
    return Action.COMMIT if table_type is TableType.COPY_ON_WRITE else Action.DELTACOMMIT


def _plan(
    context: TableContext,
    tagged: Tagged,
    by_bucket: list[BucketRows] | None,
    looked_at: Snapshot,
    now: Snapshot,
    batch: Batch,
    conduct: Conduct,
    options: WriteOptions,
) -> WritePlan:
    """Plan on the slices as they are under the lock; what the look-up saw must still be what is stored."""
    if committed_since(now, looked_at.timeline, options.stream):
        raise StaleSnapshotError(
            f"another run of stream {options.stream} wrote this batch to table {context.config.name!r} meanwhile; run the write again"
        )
    if conduct.replaces is not Replaces.NOTHING:
        _require_same_schema(context, looked_at, now)
        partitions = _overwritten(now, batch, conduct, options)
        plan = _plan_rows(context, tagged, by_bucket, (), now, conduct, options)
        return replacing(
            plan, partitions, now.view.written_slices(partitions), all_of_it=conduct.replaces is Replaces.ALL
        )
    slices = now.view.latest_slices(tagged.pieces)
    if by_bucket is None and conduct.looks_up and _bases(slices) != _bases(looked_at.view.latest_slices(tagged.pieces)):
        raise StaleSnapshotError(
            f"another writer changed table {context.config.name!r} while keys were looked up; run the write again"
        )
    _require_same_schema(context, looked_at, now)
    plan = _plan_rows(context, tagged, by_bucket, slices, now, conduct, options)
    if batch.found_on is not None:
        _require_same_rows(context, batch.found_on, now, plan)
    return plan


def _require_same_rows(context: TableContext, found_on: Timeline, now: Snapshot, plan: WritePlan) -> None:
    """The rows that a condition found are as they were: nobody has changed the file groups that they are in since.

    From here on the commit itself sees to that. Rows that came to fit the condition meanwhile are left: the write goes before
    the one that brought them.
    """
    before, there = found_on.completed_times, now.timeline.completed_times
    changed = find_conflict(
        based_on=plan.based_on,
        inserted_partitions=frozenset(),
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


def _plan_rows(
    context: TableContext,
    tagged: Tagged,
    by_bucket: list[BucketRows] | None,
    slices: Sequence[FileSlice],
    now: Snapshot,
    conduct: Conduct,
    options: WriteOptions,
) -> WritePlan:
    """Which files take the rows; `slices` are those that they may go to."""
    # Only hoodie can run a merger of the user's own, so no record is left in a log for readers to merge.
    rewrites = context.rule.merger is not None
    table_type = TableType.COPY_ON_WRITE if rewrites else context.config.table_type
    if context.config.buckets is not None and by_bucket is not None:
        return plan_bucket_write(
            by_bucket,
            tagged.pieces,
            slices,
            layout=context.config.buckets,
            table_type=table_type,
            inserts=tagged.inserts,
            table=context.storage.uri,
        )
    return plan_write(
        tagged,
        slices,
        table_type=table_type,
        sizing=Sizing(
            options.max_file_size_bytes,
            options.small_file_limit_bytes,
            MAX_GROWTH if options.log_block_format is LogBlockFormat.AVRO else SPARING_GROWTH,
            CHEAP_BYTES,
        ),
        busy=frozenset(now.view.pending_compactions()),
        pack_small_files=conduct.packs,
    )


def _require_same_schema(context: TableContext, looked_at: Snapshot, now: Snapshot) -> None:
    if now.schema is not None and looked_at.schema != now.schema:
        raise StaleSnapshotError(
            f"another writer changed the schema of table {context.config.name!r}; run the write again"
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
    for partition_path, file_ids in plan.replaced.items():
        stats.setdefault(partition_path, []).extend(
            WriteStat(file_id, partition_path, path="", prev_commit=plan.based_on[FileGroupId(partition_path, file_id)])
            for file_id in file_ids
        )
    return CommitMetadata(operation=operation, write_stats={p: tuple(found) for p, found in stats.items()})


def _ways(lookups: list[LookupResult]) -> dict[str, int]:
    ways: dict[str, int] = {}
    for result in lookups:
        ways[result.how] = ways.get(result.how, 0) + 1
    return ways
