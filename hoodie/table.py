"""The facade: one short method per operation. It orders the steps; the rooms below do them."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.base import Engine
from hoodie.engine.inputs import Rows, reader_of
from hoodie.engine.local import LocalEngine
from hoodie.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    OptionError,
)
from hoodie.model.enums import Action, ChangeFormat, QueryType, TableType, WriteOperation
from hoodie.model.files import FileSlice
from hoodie.model.instant import Instant
from hoodie.model.results import CommitResult
from hoodie.options.arguments import parse_columns, parse_images, parse_names, parse_query, parse_table_type
from hoodie.options.fits import check_against, check_writable
from hoodie.options.keys import OPERATION, PARTIAL_UPSERT
from hoodie.options.moments import Moment, parse_begin_option, parse_instant_option, parse_position_option
from hoodie.options.parse import load_defaults, parse_write_options
from hoodie.options.read import ReadOptions
from hoodie.options.table import TableConfig, TableOptions
from hoodie.options.write import WriteOptions, WriteRequest
from hoodie.read.scan import Scan
from hoodie.services import compaction
from hoodie.services.inline import after_commit
from hoodie.services.rollback import rollback_failed, rollback_instant
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage
from hoodie.timeline.clock import zone_of
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.txn.context import Snapshot, TableContext
from hoodie.write.conduct import Conduct, Replaces
from hoodie.write.create import create_at
from hoodie.write.given_schema import SchemaLike, parse_schema_like
from hoodie.write.keys import key_columns, operation_on
from hoodie.write.layout import with_layout
from hoodie.write.load import loads_in_one_pass, run_load
from hoodie.write.operations import Batch, batch_of_no_rows, run_batch, staged_batch
from hoodie.write.streams import is_committed

log = logging.getLogger("hoodie")

MAX_TRIES = 10
"""How often a write is run again on a new snapshot after another writer was faster."""
FIRST_BACK_OFF_S = 0.01
MAX_BACK_OFF_S = 0.5


class HoodieTable:
    """An open table. Every operation works on the newest snapshot; the object holds no rows and no locks."""

    def __init__(self, context: TableContext, options: Mapping[str, str] | None = None) -> None:
        self._context = context
        self._options = dict(options or {})

    def __repr__(self) -> str:
        return f"HoodieTable({self._context.storage.uri!r}, {self.config.table_type.value})"

    # -- what the table is -------------------------------------------------------------------------------------------

    @property
    def config(self) -> TableConfig:
        return self._context.config

    @property
    def uri(self) -> str:
        return self._context.storage.uri

    @property
    def schema(self) -> pa.Schema | None:
        """The table's columns without meta columns; None before the first commit of a table without a create schema."""
        return self._context.snapshot().schema

    @property
    def timeline(self) -> Timeline:
        """The active timeline as it is now."""
        return self._context.active.load()

    def partitions(self) -> tuple[str, ...]:
        return self._context.snapshot().view.partitions()

    def files(self) -> list[FileSlice]:
        """The latest file slices."""
        return self._context.snapshot().view.latest_slices()

    def archived_instants(self) -> tuple[Instant, ...]:
        """The completed instants that were moved off the active timeline, oldest first."""
        there = {(instant.time, instant.action) for instant in self.timeline}
        return tuple(i for i in self._context.archived().instants if (i.time, i.action) not in there)

    def history(self, *, archived: bool = False) -> list[CommitResult]:
        """What each completed commit on the active timeline did, oldest first; `archived`: on the archived one too."""
        active, commits = self._context.active, self.timeline.commits
        older = [i for i in self.archived_instants() if i.action in WRITES] if archived else []
        old = self._context.archived().read_commits(older)
        metadata = [*((i, old[i.time]) for i in older), *((i, active.read_commit(i)) for i in commits)]
        return [
            CommitResult.of(i.time, m.operation, m.stats(), replaced=m.replaced_file_ids, completed=i.completion)
            for i, m in metadata
        ]

    # -- writing -----------------------------------------------------------------------------------------------------

    def upsert(
        self, data: Rows, options: Mapping[str, str] | None = None, *, partial: bool | None = None
    ) -> CommitResult:
        """Insert rows with new keys, replace rows whose key is stored. See docs/OPTIONS.md for `options`.

        `partial`: of stored rows only the columns that the data has are replaced; new rows have null in the others.
        """
        said = {} if partial is None else {PARTIAL_UPSERT.name: str(partial)}
        return self.write(data, WriteOperation.UPSERT, {**(options or {}), **said})

    def insert(self, data: Rows, options: Mapping[str, str] | None = None) -> CommitResult:
        """Add rows without looking their keys up, unless an option says what to do with stored ones.

        A key that is stored twice stays so: later upserts and deletes change one of its rows in each file group that has it.
        """
        return self.write(data, WriteOperation.INSERT, options)

    def bulk_insert(self, data: Rows, options: Mapping[str, str] | None = None) -> CommitResult:
        """Add rows into new file groups only: for first loads."""
        return self.write(data, WriteOperation.BULK_INSERT, options)

    def delete(
        self, data: Rows | None = None, options: Mapping[str, str] | None = None, *, where: str | None = None
    ) -> CommitResult:
        """Delete the rows with these keys (key and partition columns; more are ignored), or those that a filter finds."""
        if (data is None) == (where is None):
            raise OptionError("delete takes either keys or where=…, exactly one of them")
        if where is not None:
            data = self.scan(columns=key_columns(self.config), where=where).to_arrow()
            if not data.num_rows:
                return CommitResult(None, WriteOperation.DELETE)
        return self.write(data, WriteOperation.DELETE, options)

    def insert_overwrite(self, data: Rows, options: Mapping[str, str] | None = None) -> CommitResult:
        """Replace all rows of the partitions that the data is in; without rows nothing changes."""
        return self.write(data, WriteOperation.INSERT_OVERWRITE, options)

    def insert_overwrite_table(self, data: Rows, options: Mapping[str, str] | None = None) -> CommitResult:
        """Replace all rows of the table; without rows it is empty then."""
        return self.write(data, WriteOperation.INSERT_OVERWRITE_TABLE, options)

    def delete_partitions(self, partitions: Sequence[str], options: Mapping[str, str] | None = None) -> CommitResult:
        """Delete all rows of partitions, given by their paths as `partitions()` lists them; `*` stands for any text.

        Paths that are not there do not matter.

        Raises:
            OptionError: no list of paths; the table is empty.
        """
        if isinstance(partitions, str):
            raise OptionError(
                f"delete_partitions({partitions!r}) takes a list of partition paths: give [{partitions!r}]"
            )
        write = self._asked(WriteOperation.DELETE_PARTITION, options).write
        return self.write_no_rows(
            WriteOperation.DELETE_PARTITION, replace(write, partitions_to_delete=tuple(partitions))
        )

    def write(self, data: Rows, operation: WriteOperation, options: Mapping[str, str] | None = None) -> CommitResult:
        """One write with Hudi's option names; `data` is anything that `upsert` takes."""
        request = self._asked(operation, options)
        reader = reader_of(data, lambda: self.schema)
        return self.write_records(
            reader, reader.schema, operation, request.write, engine=self._context.engine, in_memory=True
        )

    def _asked(self, operation: WriteOperation, options: Mapping[str, str] | None) -> WriteRequest:
        request = self._request(options)
        named = {key.lower() for key in options or {}} & {name.lower() for name in OPERATION.names}
        if named and request.write.operation is not operation:
            raise OptionError(
                f"{named.pop()} says {request.write.operation.value.lower()}, but {operation.value.lower()}() was called: "
                "drop the option, or call the method that it names"
            )
        return request

    def write_no_rows(self, operation: WriteOperation, options: WriteOptions) -> CommitResult:
        """A write whose options say all of it: `delete_partition` with a list of partitions."""
        context = replace(self._context, lock_timeout_s=options.concurrency.lock_timeout_s)
        options = replace(options, operation=operation)
        check_writable(context.config)
        rollback_failed(context)
        batch = batch_of_no_rows(context, operation)
        result = self._retried(lambda: self._run(context, batch, options))
        after_commit(context, options)
        return result

    def write_records(
        self,
        records: Any,
        schema: pa.Schema,
        operation: WriteOperation,
        options: WriteOptions,
        *,
        engine: Engine,
        in_memory: bool,
        repeatable: bool = False,
    ) -> CommitResult:
        """Write an engine's records: the path that all writes take.

        `in_memory`: prepared rows stay in this process. `repeatable`: the records can be evaluated anew, as a load in one pass
        has to when it loses against another writer.
        """
        operation = operation_on(self.config, operation, options, schema.names)
        context = replace(self._context, lock_timeout_s=options.concurrency.lock_timeout_s)
        options = replace(options, operation=operation)  # which combine.before.* counts goes by what is really done
        check_writable(context.config)
        if options.stream is not None and is_committed(context.snapshot(), options.stream, table=self.uri):
            log.info(
                "batch %d of stream %s is in table %s already", options.stream.number, options.stream.stream, self.uri
            )
            return CommitResult(None, operation)
        rollback_failed(context)
        if repeatable:
            loaded = self._loaded(context, records, schema, operation, options, engine)
            if loaded is not None:
                after_commit(context, options)
                return loaded
        with staged_batch(
            context, records, schema, operation=operation, options=options, engine=engine, in_memory=in_memory
        ) as batch:
            overwrites = Conduct.of(operation, options).replaces is not Replaces.NOTHING
            if not overwrites and not any(chunk.rows for chunk in batch.chunks):
                return CommitResult(None, operation, seconds=time.monotonic() - batch.started_s)
            result = self._retried(lambda: self._run(context, batch, options))
        after_commit(context, options)
        return result

    def _loaded(
        self,
        context: TableContext,
        records: Any,
        schema: pa.Schema,
        operation: WriteOperation,
        options: WriteOptions,
        engine: Engine,
    ) -> CommitResult | None:
        """Write in one pass what can be written so. None when it cannot, or when it lost against another writer.

        Then the usual way is taken, which evaluates the input anew and no more than once, however often it is tried: of this
        try nothing is visible.
        """
        context = self._with_layout(context, options, context.snapshot())
        if not loads_in_one_pass(context, operation, options):
            return None
        try:
            result = run_load(context, records, schema, operation=operation, options=options, engine=engine)
        except CommitConflictError:
            rollback_failed(context)
            return None
        except CommitOutcomeUnknownError:
            raise
        except Exception:
            self._roll_back_quietly()
            raise
        if result.instant is None:
            self._roll_back_quietly()
        return result

    def _run(self, context: TableContext, batch: Batch, options: WriteOptions) -> CommitResult:
        snapshot = context.snapshot(context.kept_view())
        return run_batch(self._with_layout(context, options, snapshot), batch, options, snapshot)

    def _with_layout(self, context: TableContext, options: WriteOptions, snapshot: Snapshot) -> TableContext:
        """The context with what the table says now of where its keys stand; the next writes know it too."""
        found = with_layout(context, options.index, snapshot)
        if found.config.buckets != self.config.buckets:
            self._context = replace(self._context, config=found.config)
        return found

    def _retried(self, run: Callable[[], CommitResult]) -> CommitResult:
        """Run again on a new snapshot while other writers are faster; each lost try is rolled back first."""
        for tries in range(1, MAX_TRIES + 1):
            try:
                return run()
            except CommitConflictError:
                rollback_failed(self._context)
                if tries == MAX_TRIES:
                    raise
                # Writers that lost together must not meet again: each waits a while of its own.
                self._context.clock.pause(random.uniform(0, min(MAX_BACK_OFF_S, FIRST_BACK_OFF_S * 2**tries)))
            except CommitOutcomeUnknownError:
                raise  # it may have landed: what is to be undone, the next write finds out
            except Exception:
                # Known to have failed: leave nothing pending. What cannot be undone now, the next write undoes.
                self._roll_back_quietly()
                raise
        raise AssertionError("unreachable")

    def _roll_back_quietly(self) -> None:
        try:
            rollback_failed(self._context)
        except Exception:  # noqa: BLE001 - the error that brought us here is the one to report
            return

    # -- reading -----------------------------------------------------------------------------------------------------

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | pc.Expression | None = None,
        *,
        query: str = "snapshot",
        as_of: Moment | None = None,
        meta_columns: bool = False,
    ) -> Scan:
        """The table's rows now, or as of an instant: `query` is "snapshot" (logs merged in) or "read_optimized" (base files only)."""
        kind = parse_query(query)
        at = None if as_of is None else parse_instant_option(as_of, name="as_of", zone=self._zone())
        options = ReadOptions(query=kind, as_of=at, where=where, columns=parse_columns(columns))
        return Scan(self._context, options, meta_columns=meta_columns)

    def changes(
        self,
        since: Moment | None = None,
        until: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: str | pc.Expression | None = None,
        *,
        images: str = ChangeFormat.LATEST_STATE,
        full_scan_fallback: bool = False,
        meta_columns: bool = False,
    ) -> Scan:
        """Latest state of the rows committed in (since, until]; `until` defaults to the last commit that can be passed safely.

        With images="before_after" it is the change feed: each insert, update and delete of each commit, as columns `op` (i, u,
        d), `instant`, and the structs `before` and `after`, which hold `columns`; `where` takes changes that fit on either
        side. "cdc" gives Apache Hudi's columns instead: op, ts_ms, and both rows as JSON. docs/CHANGES.md says more.

        Since and until are instants as `CommitResult.position` has them: instant times, and of tables of version 8 and 9
        completion times.

        Deletes are not in it. On a merge-on-read table rows are merged with what was written in the range only, as Apache
        Hudi does: a late row that lost against an *older* row is in it, although a scan shows the older row. Compare
        ordering values before you apply it. On a copy-on-write table such a row was never stored and is not in it.
        docs/CONCURRENCY.md, "Incremental pulls", says more.

        Raises:
            InstantNotFoundError: `until` lies beyond a write in progress; or commits of the range were archived, or its files
                cleaned, and `full_scan_fallback` does not have it read from the whole table (docs/CHANGES.md says how).
        """
        zone = self._zone()
        options = ReadOptions(
            query=QueryType.INCREMENTAL,
            begin=None if since is None else parse_begin_option(since, name="since", zone=zone),
            end=None if until is None else parse_position_option(until, name="until", zone=zone),
            changes=parse_images(images),
            full_scan_fallback=full_scan_fallback,
            where=where,
            columns=parse_columns(columns),
        )
        return Scan(self._context, options, meta_columns=meta_columns)

    def read(self, options: ReadOptions, *, meta_columns: bool = True) -> Scan:
        """A query of parsed options, as the doors have them."""
        return Scan(self._context, options, meta_columns=meta_columns)

    # -- table services ----------------------------------------------------------------------------------------------

    def schedule_compaction(self, options: Mapping[str, str] | None = None, *, wait_s: float = 30) -> str | None:
        """Plan the merge of log files into base files; gives its instant, None when there is nothing to merge.

        Holds new writes back and waits up to `wait_s` seconds for pending ones, whose file groups cannot be planned.
        """
        write = self._request(options).write
        return compaction.schedule_compaction(
            self._context, target_io_bytes=write.compaction.target_io_mb * 1024 * 1024, wait_s=wait_s
        )

    def run_compaction(
        self, instant: str | None = None, budget_s: float | None = 300, options: Mapping[str, str] | None = None
    ) -> list[CommitResult]:
        """Run one scheduled compaction, or all that are pending; none is begun after `budget_s` seconds."""
        files = self._request(options).write.file_options()
        return compaction.run_compaction(self._context, options=files, instant=instant, budget_s=budget_s)

    def compact(self, options: Mapping[str, str] | None = None) -> list[CommitResult]:
        """Schedule a compaction and run what is pending."""
        self.schedule_compaction(options)
        return self.run_compaction(budget_s=None, options=options)

    def rollback(self, instant: str | None = None) -> list[str]:
        """Undo a pending instant that its writer left behind (all of them, when none is named); gives what was undone."""
        if instant is None:
            return rollback_failed(self._context)
        return [instant] if rollback_instant(self._context, instant) else []

    def pending_compactions(self) -> tuple[Instant, ...]:
        return self.timeline.pending(Action.COMPACTION)

    def _request(self, options: Mapping[str, str] | None) -> WriteRequest:
        request = parse_write_options({**self._options, **(options or {})}, defaults=load_defaults())
        check_against(self.config, request.table)
        return request

    def _zone(self) -> tzinfo | None:
        return zone_of(self.config.timezone)


def open_table(
    path: str | PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> HoodieTable:
    """Open a table.

    Args:
        options: Hudi's write options that every write through this object has.

    Raises:
        TableNotFoundError: there is no table at the path.
    """
    return open_at(open_storage(path, storage_options), engine=engine, options=options)


def open_at(
    storage: Storage,
    *,
    engine: Engine | None = None,
    options: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> HoodieTable:
    """Open the table at a storage's root; `sleep` is how a commit waits for the storage's clock."""
    return HoodieTable(TableContext.open(storage, engine or LocalEngine(), sleep=sleep), options)


def create_table(
    path: str | PathLike[str],
    schema: SchemaLike | None = None,
    *,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_type: str | TableType | None = None,
    name: str | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> HoodieTable:
    """Create a table of version 6 and open it.

    Args:
        schema: its columns; when given, key, partition and ordering columns are checked against it now.
        partition_by: None: as the options say, else not partitioned.
        ordering: of two rows with one key the greater value wins; None: as the options say, else the later write wins.
        table_type: None: as the options say, else copy-on-write.
        options: Hudi's table and write options; the arguments win over them.

    Raises:
        TableExistsError: there is a table. OptionError, KeyFieldError, SchemaError: the arguments do not fit together.
    """
    storage = open_storage(path, storage_options)
    request = parse_write_options(options or {}, defaults=load_defaults())
    asked = TableOptions(
        name=name,
        table_type=None if table_type is None else parse_table_type(table_type),
        record_key_fields=parse_names(record_key),
        partition_fields=None if partition_by is None else parse_names(partition_by),
        ordering_fields=None if ordering is None else parse_names(ordering),
    ).over(request.to_create())
    create_at(storage, asked, schema=None if schema is None else parse_schema_like(schema))
    return open_at(storage, engine=engine, options=options)
