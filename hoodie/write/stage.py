"""Evaluate the input of a write: rows are prepared once, and held in memory or in staged files until the write is decided."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from hoodie.engine.base import Engine, Records
from hoodie.engine.local import LocalEngine
from hoodie.errors import CommitConflictError, OptionError
from hoodie.filegroup.chunks import sorted_chunks
from hoodie.keygen.virtual_columns import folder_values
from hoodie.model.enums import WriteOperation
from hoodie.model.names import name_of, staging_folder
from hoodie.model.plans import DELETED, Chunk
from hoodie.options.values import SortMode
from hoodie.options.write import WriteOptions
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.batch import Batch
from hoodie.write.keys import carries_keys, key_columns, require_stored_keys, table_keys
from hoodie.write.operation_rules import OperationRules, Step, labelled, steps_of
from hoodie.write.placement import placement_of
from hoodie.write.prepare import ADD_IT, Preparation, prepare_part, require_columns
from hoodie.write.row_memory import RowMemory
from hoodie.write.schema import leave_of, reconcile, require_ordering_types, storable

log = logging.getLogger("hoodie")

_ADD_TO_DELETE = (
    "add the column; or leave all partition columns out and call delete of the table itself, which finds keys in every partition; "
    "or delete by a condition, where=…"
)


class PreparedRows(NamedTuple):
    """Rows that tasks of somebody else have prepared and staged: records of a write as they are."""

    preparation: Preparation
    chunks: Sequence[Chunk]

    def for_(self, preparation: Preparation) -> list[Chunk]:
        """The chunks, where they are what this preparation makes.

        Raises:
            CommitConflictError: the table's schema changed since they were prepared.
        """
        if preparation != self.preparation:
            raise CommitConflictError(
                f"the schema of table {preparation.table_name!r} changed while the rows were staged; nothing of this write "
                "is visible: run it again"
            )
        return list(self.chunks)


@contextmanager
def staged_batch(
    context: TableContext,
    records: Records,
    batch_schema: pa.Schema,
    *,
    operation: WriteOperation,
    options: WriteOptions,
    engine: Engine,
    found_on: Timeline | None = None,
    snapshot: Snapshot | None = None,
) -> Iterator[Batch]:
    """Evaluate the input and hold its prepared rows; staged files are removed at the end. `found_on`: as `Batch` has it;
    `snapshot`: that of a moment ago.

    Raises:
        SchemaError, KeyFieldError: before any row is drawn where the schema alone shows it.
    """
    started = time.monotonic()
    snapshot = context.snapshot() if snapshot is None else snapshot
    preparation = plan_preparation(context, batch_schema, operation=operation, options=options, snapshot=snapshot)
    rows_folder = _RowsFolder(context)
    try:
        rules = OperationRules.of(operation, options)
        steps = steps_of(placement_of(context.config, rules, options).step)
        label = labelled(operation, preparation.table_name, Step.READ, steps)
        folder = None
        if engine.shares_memory:
            engine = engine.within(options.memory_limit_bytes // 2)
        if isinstance(records, PreparedRows):
            chunks = records.for_(preparation)
        elif engine.shares_memory:
            memory = RowMemory(options.memory_limit_bytes, context.storage)
            chunks = engine.stage(records, partial(prepare_part, preparation, None, None, memory), label=label)
        else:
            folder = rows_folder.path()
            prepare = partial(prepare_part, preparation, context.storage, folder, None)
            chunks = engine.stage(records, prepare, label=label)
            if sum(chunk.size_bytes for chunk in chunks) <= options.driver_max_bytes:
                # Few rows: what remains costs less here, on the staged files, than as jobs of a cluster.
                engine, folder = LocalEngine().within(options.memory_limit_bytes), None
        if rules.sort is SortMode.GLOBAL_SORT:
            chunks = sorted_chunks(chunks)
        input_schema = _stored_columns(context, batch_schema, operation)
        yield Batch(
            operation,
            tuple(chunks),
            preparation.schema,
            input_schema,
            engine,
            folder,
            started,
            found_on,
            prepared_for=snapshot.schema,
        )
    finally:
        rows_folder.remove()


class _RowsFolder:
    """A private folder for prepared rows, made when it is asked for; as long as this process lives nobody removes it."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self._path: str | None = None

    def path(self) -> str:
        if self._path is None:
            path = staging_folder(f"rows-{uuid.uuid4().hex}")
            self._context.liveness.hold(name_of(path))
            self._path = path
            self._context.storage.mkdirs(path, durable=False)
        return self._path

    def remove(self) -> None:
        """What cannot be removed, the next write removes: by then it is decided what became of this one."""
        if self._path is None:
            return
        name = name_of(self._path)
        try:
            self._context.storage.delete_folder(self._path)
            self._context.liveness.release(name)
        except OSError as exc:
            log.warning("the staged rows in %s of table %s were not removed: %s", name, self._context.storage.uri, exc)
            self._context.liveness.abandon(name)


def plan_preparation(
    context: TableContext,
    batch_schema: pa.Schema,
    *,
    operation: WriteOperation,
    options: WriteOptions,
    snapshot: Snapshot | None = None,
) -> Preparation:
    """How rows of this schema are prepared for the table as it is now.

    Raises:
        SchemaError, KeyFieldError: the schema alone shows that they cannot be. OptionError: a delete on an empty table.
    """
    # Whoever writes the rows checks them against the table of then.
    snapshot = context.snapshot() if snapshot is None else snapshot
    config = context.config
    if options.in_all_partitions:
        raise OptionError(_for_deletes(config.name, operation))
    rules = OperationRules.of(operation, options)
    deletes = rules.deletes
    by_meta = carries_keys(config, operation, batch_schema.names)
    if config.generates_keys and operation is WriteOperation.DELETE:
        require_stored_keys(batch_schema.names, config)
    elif not (by_meta and deletes):
        require = partial(require_columns, batch_schema.names, table=config.name)
        require(config.record_key_fields, what="record key")
        require(config.partition_fields, what="partition", fix=_ADD_TO_DELETE if deletes else ADD_IT)
    if not (deletes or rules.partial):
        require_columns(batch_schema.names, config.ordering_fields, what="ordering", table=config.name)
    input_schema = _stored_columns(context, batch_schema, operation)
    require_ordering_types(input_schema, config.ordering_fields)
    if deletes and snapshot.schema is None:
        raise OptionError(f"table {config.name!r} is empty: there is nothing to delete")
    schema = reconcile(snapshot.schema, input_schema, table_name=config.name, leave=leave_of(config, rules, options))
    keygen = table_keys(context, snapshot, options)
    is_global = placement_of(config, rules, options).is_global
    return Preparation(
        schema,
        keygen,
        deletes,
        config.name,
        context.rule.ordering_columns,
        set_columns=rules.columns_from(input_schema.names),
        sort_by_key=rules.sorts,
        marker=context.rule.delete_marker or options.delete_marker,
        keys_given=by_meta,
        moves=not is_global,
        chunk_bytes=context.tuning.chunk_bytes,
        keeps_order=rules.looks_up and is_global,
        folders=folder_values(config, schema),
    )


def _for_deletes(table: str, operation: WriteOperation) -> str:
    """Why a write by the key generator of such deletes is none."""
    if operation is WriteOperation.DELETE:
        return (
            f"a delete by key generator GLOBAL_DELETE has to find its rows in table {table!r} first, which is not done here: call "
            "pyspark_hoodie.enable(spark), or delete of the table itself"
        )
    return (
        f"key generator GLOBAL_DELETE is for operation delete, and {operation.value.lower()} needs the partitions of its rows: "
        f"drop it, for table {table!r} remembers its own"
    )


def _stored_columns(context: TableContext, batch_schema: pa.Schema, operation: WriteOperation) -> pa.Schema:
    """The columns of the input in the types that a table stores; of a delete only those that make keys."""
    batch_schema = pa.schema([field for field in batch_schema if field.name != DELETED])
    if OperationRules.of(operation, WriteOptions()).deletes:
        names = key_columns(context.config)
        batch_schema = pa.schema([field for field in batch_schema if field.name in names])
    return storable(batch_schema)
