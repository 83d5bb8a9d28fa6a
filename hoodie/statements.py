"""UPDATE and MERGE as methods of a table that is open without Spark."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

import hoodie.dml
import hoodie.read
import hoodie.write
from hoodie.errors import OptionError
from hoodie.model.enums import WriteOperation
from hoodie.model.results import CommitResult
from hoodie.options.write import WriteOptions, WriteRequest
from hoodie.storage.refusals import plain_errors, with_hoodie_errors
from hoodie.verbs import TableVerbs

if TYPE_CHECKING:
    import pyarrow.compute as pc

    import hoodie.dml.changes
    import hoodie.dml.merge
    import hoodie.dml.merge_plan
    import hoodie.dml.rows
    import hoodie.dml.update
    import hoodie.keyed
    import hoodie.read.where
    import hoodie.write.inputs
    import hoodie.write.keys
    from hoodie.dml.changes import Changes
    from hoodie.dml.merge import Join, Merge
    from hoodie.dml.merge_plan import Clause, MergePlan, Tally
    from hoodie.dml.rows import RowChange
    from hoodie.read.pushdown import NewScan, Query
    from hoodie.read.scan import Scan
    from hoodie.read.where import Where
    from hoodie.write.inputs import Rows
    from hoodie.write.plan import WritePlan


@with_hoodie_errors
class Statements(TableVerbs["Rows"]):
    @abstractmethod
    def scan(self, columns: Sequence[str] | None = None, where: Where | None = None) -> Scan: ...

    @abstractmethod
    def _pinned(self, *, stored: bool = False) -> NewScan:
        """Scans of the newest snapshot, which is the same for all of them."""

    @abstractmethod
    def _request_for(self, operation: WriteOperation, options: Mapping[str, str] | None) -> WriteRequest: ...

    @abstractmethod
    def _write_found(
        self, find: Callable[[], pa.RecordBatchReader], operation: WriteOperation, options: WriteOptions
    ) -> CommitResult: ...

    @abstractmethod
    def _plan_of(
        self, rows: pa.RecordBatchReader, operation: WriteOperation, options: WriteOptions
    ) -> WritePlan | None: ...

    def update(
        self,
        set: Mapping[str, Any],
        where: Where | None = None,
        options: Mapping[str, str] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
    ) -> CommitResult:
        """Give columns of stored rows new values, in one commit.

        A text is an expression of SQL over the row, in DuckDB's dialect, and needs the extra `sql`; every other value stands for
        itself. A row whose partition column changes moves to the other partition. A row that would get a lower value in an ordering
        column stays as it is, as after an upsert.

        Args:
            set: column -> expression or value.
            where: which rows, as `scan` takes it; None is all of them.
            options: Hudi's write options, for this write.
            params: values for the parameters of the condition, as `scan` has them.

        Returns:
            What the write did.

        Raises:
            OptionError: an expression cannot be understood, or a record key would change.
            KeyFieldError: a column that the table does not have.
            SchemaError: a value does not fit its column.
            DuplicateKeyError: a row would move to where its key is stored already.
            CommitConflictError: others changed the same rows, ten times in a row.

        Example:
            >>> table.update({"fare": "fare * 1.1", "seen": True}, where="city = 'rome'")
        """
        write = self._request_for(WriteOperation.UPSERT, options).write
        values = hoodie.dml.changes.checked_values(set)
        hoodie.dml.update.check_columns(values, self._schema_to_change(), self.config.name)
        moves = not {*hoodie.write.keys.key_columns(self.config)}.isdisjoint(values)
        condition = hoodie.read.where.bound(where, params)

        def find() -> pa.RecordBatchReader:
            changes = self._changes(write, moves=moves)
            stored_rows = self._pinned(stored=True)(changes.columns.names, condition).to_batches()
            memory = write.memory_limit_bytes // 4
            batches = hoodie.dml.update.run_update(changes, stored_rows, values, uri=self.uri, memory_bytes=memory)
            return pa.RecordBatchReader.from_batches(changes.schema, batches)

        return self._write_found(find, WriteOperation.UPSERT, write)

    def merge(
        self,
        source: Rows,
        on: str | None = None,
        options: Mapping[str, str] | None = None,
        *,
        predicate: str | None = None,
        source_alias: str = "s",
        target_alias: str = "t",
    ) -> Merge[CommitResult]:
        """Join rows with the table, and update, delete or insert the matching or missing rows, in one commit.

        Needs the extra `sql`; expressions are in DuckDB's dialect. The source is held in memory. Ordering fields apply as in an
        upsert.

        Args:
            source: rows, as `upsert` takes them.
            on: which rows of both belong together, such as "t.id = s.id". `predicate` is another name for it.
            options: Hudi's write options, for this write.
            source_alias, target_alias: the names of both in expressions.

        Returns:
            A MERGE that has not run yet. Its methods add clauses, `execute` runs it.

        Example:
            >>> (table.merge(rows, on="t.id = s.id")
            ...     .when_matched_update_all()
            ...     .when_not_matched_insert_all()
            ...     .execute())
        """
        text = predicate if on is None else on
        arguments: tuple[object, ...] = (text, source_alias, target_alias)
        if not all(isinstance(each, str) and each for each in arguments):
            raise OptionError(
                f'merge needs a condition: give on="{target_alias}.id = {source_alias}.id", not {text!r:.60}'
            )
        join = hoodie.dml.merge.Join(str(text), source_alias, target_alias)
        rows = hoodie.write.inputs.reader_of(source, lambda: self.schema).read_all()
        return self._merge_of(join, lambda _: Beside(rows, {}), options)

    def _merge_of(
        self, join: Join, beside: Callable[[NewScan], Beside], options: Mapping[str, str] | None
    ) -> Merge[CommitResult]:
        """`beside`: scans of the table -> the source, and what else the statement names; each try asks anew."""
        write = self._request_for(WriteOperation.UPSERT, options).write
        self._schema_to_change()
        find = partial(self._find_merged, join, beside, write)

        def run(clauses: Sequence[Clause]) -> CommitResult:
            with plain_errors(self.uri):
                return self._write_found(partial(find, clauses), WriteOperation.UPSERT, write)

        def explain(clauses: Sequence[Clause]) -> MergePlan:
            tally = hoodie.dml.merge_plan.Tally()
            with plain_errors(self.uri):
                plan = self._plan_of(find(clauses, tally), WriteOperation.UPSERT, write)
            return hoodie.dml.merge_plan.MergePlan.of(self.config.name, clauses, tally, plan)

        return hoodie.dml.merge.Merge(run, explain)

    def _find_merged(
        self,
        join: Join,
        beside: Callable[[NewScan], Beside],
        write: WriteOptions,
        clauses: Sequence[Clause],
        tally: Tally | None = None,
    ) -> pa.RecordBatchReader:
        """The rows that a MERGE changes."""
        merge = hoodie.dml.merge

        pinned = self._pinned(stored=True)
        source, tables = beside(pinned)
        if tally is not None:
            tally.source_rows = source.num_rows
        equal = join.equalities(self.uri)
        changes = self._changes(write, moves=merge.moves(clauses, self.config))
        batches = merge.run_merge(
            changes,
            join,
            equal,
            clauses,
            partial(_all_columns, pinned, changes),
            source,
            tables,
            config=self.config,
            options=write,
            uri=self.uri,
            memory_bytes=write.memory_limit_bytes // 2,
            tally=tally,
        )
        return pa.RecordBatchReader.from_batches(changes.schema, batches)

    def _change_rows(
        self, change: RowChange, beside: Callable[[NewScan], Mapping[str, Any]], options: Mapping[str, str] | None
    ) -> CommitResult:
        """UPDATE or DELETE as a statement; `beside`: scans of the table -> what its subqueries name; each try asks anew."""
        write = self._request_for(WriteOperation.UPSERT, options).write
        schema, keys = self._schema_to_change(), hoodie.write.keys.key_columns(self.config)
        if change.values is not None:
            hoodie.dml.update.check_columns(change.values, schema, self.config.name)
        moves = change.values is not None and not {*keys}.isdisjoint(change.values)

        def find() -> pa.RecordBatchReader:
            pinned = self._pinned(stored=True)
            changes = self._changes(write, moves=moves)
            scan, memory = partial(_all_columns, pinned, changes), write.memory_limit_bytes // 2
            tables = beside(pinned)
            batches = hoodie.dml.rows.run_rows(
                changes, change, scan, tables, keys=keys, uri=self.uri, memory_bytes=memory
            )
            return pa.RecordBatchReader.from_batches(changes.schema, batches)

        with plain_errors(self.uri):
            return self._write_found(find, WriteOperation.UPSERT, write)

    def _insert_found(
        self, rows: Callable[[NewScan], pa.Table], operation: WriteOperation, options: Mapping[str, str] | None
    ) -> CommitResult:
        """INSERT as a statement; `rows`: scans of the table -> what it inserts; each try asks anew."""
        write = self._request_for(operation, options).write
        return self._write_found(lambda: rows(self._pinned()).to_reader(), operation, write)

    def _changes(self, options: WriteOptions, *, moves: bool) -> Changes:
        def stored(keys: pa.Table) -> pa.Table:
            where = hoodie.keyed.where_keys(self._context, keys, options)
            return self.scan(hoodie.write.keys.key_columns(self.config), where).to_arrow()

        return hoodie.dml.changes.Changes(self._context, options, stored, moves=moves)

    def _schema_to_change(self) -> pa.Schema:
        """Raises OptionError where the table has no columns yet."""
        if (schema := self.schema) is None:
            raise OptionError(f"table {self.config.name!r} has no columns yet: there is nothing to change")
        return schema


class Beside(NamedTuple):
    """What a MERGE reads beside its table."""

    source: pa.Table
    tables: Mapping[str, Any]
    """Arrow data or Datasets by name."""


def _all_columns(scan: NewScan, changes: Changes, columns: Sequence[str] | None, where: pc.Expression | None) -> Query:
    return scan(changes.columns.names if columns is None else columns, where)
