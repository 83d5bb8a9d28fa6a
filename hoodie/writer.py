"""Writes to one table: what is undone before, done again after a conflict, and due afterwards. One try: `write/attempt.py`."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hoodie.engine.base import Engine, Records
from hoodie.errors import CommitConflictError, CommitOutcomeUnknownError, MissingFileError
from hoodie.metadata.listing import plans_by_metadata
from hoodie.model.collector import COLLECTOR_SPARED
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.results import CommitResult
from hoodie.options.compatibility import check_writable
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.services.catalog import SERVICES
from hoodie.services.inline import after_commit
from hoodie.storage.parallel import together
from hoodie.telemetry import note, record, span
from hoodie.timeline.timeline import Timeline
from hoodie.timeline_server.embedded import embedded
from hoodie.txn.earlier_writers import Patience, wait_for_service
from hoodie.txn.heartbeat import changes_table
from hoodie.undo.recovery import recover_before_write, rollback_failed
from hoodie.view.context import Snapshot, TableContext, load_config
from hoodie.write.agreement import require_agreement
from hoodie.write.alter import run_alter
from hoodie.write.attempt import Attempt, ClusteringInTheWayError
from hoodie.write.batch import Batch, batch_of_no_rows
from hoodie.write.column_changes import ColumnChange
from hoodie.write.keys import operation_on
from hoodie.write.layout import Basis, basis_of, with_layout
from hoodie.write.load import loads_in_one_pass, run_load
from hoodie.write.operation_rules import OperationRules, Replaces
from hoodie.write.plan import WritePlan
from hoodie.write.search import Location
from hoodie.write.stage import staged_batch
from hoodie.write.streams import is_committed

log = logging.getLogger("hoodie")

_RECENT_S = 1.0
"""A look at the timeline that is younger serves the look-up of keys, too; it is looked at again under the lock."""

MAX_TRIES = 10
"""How often a write is run again on a new snapshot after another writer was faster."""
FIRST_BACK_OFF_S = 0.01
MAX_BACK_OFF_S = 0.5


class TableWriter:
    """The way that all writes of an open table take; `context` follows what the writes learn about the table."""

    def __init__(self, context: TableContext) -> None:
        self.context = context

    @property
    def uri(self) -> str:
        return self.context.storage.uri

    @changes_table
    def write(
        self,
        records: Records,
        schema: pa.Schema,
        operation: WriteOperation,
        options: WriteOptions,
        *,
        engine: Engine,
        repeatable: bool = False,
        found_on: Timeline | None = None,
    ) -> CommitResult:
        """Write an engine's records.

        Args:
            repeatable: the records can be evaluated anew, as a load in one pass has to when it loses against another writer.
            found_on: see `write_found`, which runs this then.
        """
        operation = operation_on(self.context.config, operation, options, schema.names)
        context, options = self._start(operation, options)
        if options.stream is not None and is_committed(context.snapshot(), options.stream, table=context.storage.uri):
            log.info(
                "batch %d of stream %s is in table %s already",
                options.stream.number,
                options.stream.stream,
                context.storage.uri,
            )
            return CommitResult(None, operation)
        with _span(context, operation), embedded(context, options.embedded):
            return self._written(context, records, schema, operation, options, engine, repeatable, found_on)

    def _written(
        self,
        context: TableContext,
        records: Records,
        schema: pa.Schema,
        operation: WriteOperation,
        options: WriteOptions,
        engine: Engine,
        repeatable: bool,
        found_on: Timeline | None,
    ) -> CommitResult:
        began_s = time.monotonic()
        snapshot, config = together(
            context.storage, partial(recover_before_write, context, SERVICES), partial(load_config, context.storage)
        )
        result = self._loaded(context, records, schema, operation, options, engine) if repeatable else None
        if result is None:
            with staged_batch(
                context,
                records,
                schema,
                operation=operation,
                options=options,
                engine=engine,
                found_on=found_on,
                snapshot=None if repeatable else snapshot,
            ) as batch:
                changes_nothing = OperationRules.of(operation, options).replaces is Replaces.NOTHING
                if not batch.has_rows and changes_nothing and not options.commits_empty:
                    return CommitResult(None, operation, seconds=time.monotonic() - batch.started_s)
                is_recent = snapshot is not None and time.monotonic() - began_s < _RECENT_S
                recent = (snapshot.timeline, config) if snapshot and is_recent else None
                result = self._attempts(context, batch, options, recent)
        _note(result)
        after_commit(context, options, result)
        return result

    def plan(
        self, records: Records, schema: pa.Schema, operation: WriteOperation, options: WriteOptions, *, engine: Engine
    ) -> WritePlan | None:
        """What a write would do to the table as it is now, which stays so; None: nothing."""
        operation = operation_on(self.context.config, operation, options, schema.names)
        check_writable(self.context.config)
        context, options = self.context.with_view(options.view), replace(options, operation=operation)
        with staged_batch(context, records, schema, operation=operation, options=options, engine=engine) as batch:
            attempt = self._attempt(context, batch, options, None, None) if batch.has_rows else None
            return None if attempt is None else attempt.foresee()

    @changes_table
    def write_no_rows(self, operation: WriteOperation, options: WriteOptions) -> CommitResult:
        """A write whose options say all of it: `delete_partition` with a list of partitions."""
        context, options = self._start(operation, options)
        with _span(context, operation), embedded(context, options.embedded):
            recover_before_write(context, SERVICES)
            result = self._attempts(context, batch_of_no_rows(context, operation), options)
            _note(result)
            after_commit(context, options, result)
            return result

    @changes_table
    def alter(self, change: ColumnChange, options: WriteOptions) -> CommitResult:
        """A commit of other columns, without rows."""
        context, options = self._start(WriteOperation.ALTER_SCHEMA, options)
        with _span(context, WriteOperation.ALTER_SCHEMA):
            recover_before_write(context, SERVICES)
            result = self._retried(context, lambda: run_alter(context, change))
            _note(result)
            return result

    def write_found(self, write: Callable[[Timeline], CommitResult], concurrency: ConcurrencyOptions) -> CommitResult:
        """Run a write of rows that a condition finds in the table itself; each try evaluates the condition anew.

        `write` gets the timeline of the moment before it does so, and hands it to `self.write`: a row that was changed since,
        and may not fit the condition any more, is not written.
        """
        context = self.context.with_concurrency(concurrency)
        return self._retried(context, lambda: write(context.snapshot().timeline))

    def _start(self, operation: WriteOperation, options: WriteOptions) -> tuple[TableContext, WriteOptions]:
        check_writable(self.context.config)
        self.context = self.context.with_view(options.view)
        context = self.context.with_concurrency(options.concurrency)
        require_agreement(context)
        return context, replace(
            options, operation=operation
        )  # which combine.before.* counts goes by what is really done

    def _loaded(
        self,
        context: TableContext,
        records: Records,
        schema: pa.Schema,
        operation: WriteOperation,
        options: WriteOptions,
        engine: Engine,
    ) -> CommitResult | None:
        """Write in one pass what can be written so. None when it cannot, or when it lost against another writer.

        Then the usual way is taken, which evaluates the input anew and no more than once, however often it is tried: of this
        try nothing is visible.
        """
        context = self._with_layout(context, options, basis_of(context))
        if not loads_in_one_pass(context, operation, options):
            return None
        try:
            with span("write.load"):
                result = run_load(context, records, schema, operation=operation, options=options, engine=engine)
        except CommitConflictError:
            rollback_failed(context, SERVICES)
            return None
        except CommitOutcomeUnknownError:
            raise
        except Exception:
            _roll_back_quietly(context)
            raise
        if result.instant is None:
            _roll_back_quietly(context)
        return result

    def _attempts(
        self,
        context: TableContext,
        batch: Batch,
        options: WriteOptions,
        recent: tuple[Timeline, TableConfig] | None = None,
    ) -> CommitResult:
        """`recent`: the table as it was a moment ago, for the first try."""
        located: Location | None = None

        def run() -> CommitResult:
            # A merger of the user's own may leave cycles of large tables behind, which have to go soon.
            with COLLECTOR_SPARED if context.rule.merger is None else nullcontext():
                return run_once()

        def run_once() -> CommitResult:
            nonlocal located, recent
            attempt = self._attempt(context, batch, options, located, recent)
            recent = None
            if attempt is None:
                return CommitResult(None, batch.operation, seconds=time.monotonic() - batch.started_s)
            try:
                return attempt.run()
            finally:
                located = attempt.located

        # Rows that were found in the table have to be looked for again before another try.
        return run() if batch.found_on is not None else self._retried(context, run)

    def _attempt(
        self,
        context: TableContext,
        batch: Batch,
        options: WriteOptions,
        located: Location | None,
        recent: tuple[Timeline, TableConfig] | None,
    ) -> Attempt | None:
        """None: the stream's batch is in the table already."""
        context = plans_by_metadata(context)
        basis = basis_of(context, context.kept_view(), recent)
        context = self._with_layout(context, options, basis)
        if is_committed(basis.snapshot, options.stream, table=context.storage.uri):
            return None
        return Attempt(context, batch, options, basis.snapshot, located)

    def _with_layout(self, context: TableContext, options: WriteOptions, basis: Basis) -> TableContext:
        """The context with what the table says now of where its keys stand; the next writes know it too."""
        result = with_layout(context, options.index, basis)
        if result.config.buckets != self.context.config.buckets:
            self.context = replace(self.context, config=result.config)
        return result

    def _retried(self, context: TableContext, run: Callable[[], CommitResult]) -> CommitResult:
        """Run again on a new snapshot while other writers, or a clean, are faster; each lost try is rolled back first."""
        cleaned: Sequence[Instant] | None = None
        for tries in range(1, MAX_TRIES + 1):
            try:
                return run()
            except CommitConflictError as conflict:
                rollback_failed(context, SERVICES)
                if tries == MAX_TRIES:
                    raise
                if isinstance(conflict, ClusteringInTheWayError) and not wait_for_service(
                    context, conflict.instant, Patience(context.lock_timeout_s)
                ):
                    raise
                note(retries=tries)
                record("write.retries", 1, table=context.config.name)
                # Writers that lost together must not meet again: each waits a while of its own.
                context.clock.pause(random.uniform(0, min(MAX_BACK_OFF_S, FIRST_BACK_OFF_S * 2**tries)))
            except CommitOutcomeUnknownError:
                raise  # it may have landed: what is to be undone, the next write finds out
            except MissingFileError:
                _roll_back_quietly(context)
                # A clean may take what a slow look-up still reads. Else a fresh listing says which commit's file it is.
                context.forget_files()
                before, cleaned = cleaned, context.ask(_whole_after)
                if tries == MAX_TRIES or cleaned == before:
                    raise
            except Exception:
                # Known to have failed: leave nothing pending. What cannot be undone now, the next write undoes.
                _roll_back_quietly(context)
                raise
        raise AssertionError("unreachable")


def _span(context: TableContext, operation: WriteOperation) -> AbstractContextManager[object]:
    return span("write", table=context.config.name, path=context.storage.uri, operation=operation.value)


def _note(result: CommitResult) -> None:
    rows = result.inserted + result.updated + result.deleted
    note(instant=result.instant, rows=rows, files=result.files, bytes=result.bytes_written)


def _whole_after(snapshot: Snapshot) -> Sequence[Instant]:
    """The instants that may have taken files away.

    Raises:
        MissingFileError: files of the newest slices are gone.
    """
    snapshot.view.latest_slices()
    return [i for i in snapshot.timeline if i.is_completed and i.action in (Action.CLEAN, Action.RESTORE)]


def _roll_back_quietly(context: TableContext) -> None:
    try:
        rollback_failed(context, SERVICES)
    except Exception:  # noqa: BLE001 - the error that brought us here is the one to report
        return
