"""UPDATE and MERGE as methods of a table that is open on Spark. Spark gives expressions their meaning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeGuard

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hoodie.dml.changes import checked_values, require_whole_columns
from hoodie.dml.merge import Merge
from hoodie.dml.merge_plan import Case, Clause, MergePlan, Tally
from hoodie.dml.update import check_columns
from hoodie.errors import DuplicateKeyError, OptionError, SchemaError
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from hoodie.model.results import CommitResult
from hoodie.options.write import WriteRequest
from hoodie.read.where import Where, bound
from hoodie.table import HoodieTable as Core
from hoodie.verbs import TableVerbs
from pyspark_hoodie import dataframe
from pyspark_hoodie.merge_frames import Merged, RowClause, given_value, with_given, with_stored
from pyspark_hoodie.schema import spark_schema
from pyspark_hoodie.sql_changes import BY_SOURCE, MATCHED, NOT_MATCHED, TWO_ROWS
from pyspark_hoodie.where import quoted

_CASES = {Case.MATCHED: MATCHED, Case.NOT_MATCHED: NOT_MATCHED, Case.NOT_MATCHED_BY_SOURCE: BY_SOURCE}


class Statements(TableVerbs[DataFrame]):
    _core: Core

    @abstractmethod
    def read(
        self, columns: Sequence[str] | None = None, where: Where | None = None, *, meta_columns: bool
    ) -> DataFrame: ...

    @abstractmethod
    def _request(self, operation: WriteOperation, options: Mapping[str, str] | None) -> WriteRequest: ...

    def update(
        self,
        set: Mapping[str, Any],
        where: Where | None = None,
        options: Mapping[str, str] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
    ) -> CommitResult:
        """Give columns of stored rows new values, in one commit.

        A text is an expression of Spark SQL over the row, a Column counts as it is, and every other value stands for itself. A row
        whose partition column changes moves to the other partition. A row that would get a lower value in an ordering column stays
        as it is, as after an upsert.

        Args:
            set: column -> expression or value.
            where: which rows, as `read` takes it; None is all of them.
            options: Hudi's write options, for this write.
            params: values for the parameters of the condition, as `read` has them.

        Returns:
            What the write did.

        Raises:
            OptionError: an expression cannot be understood, or a record key would change.
            KeyFieldError: a column that the table does not have.
            CommitConflictError: others changed the same rows, ten times in a row.

        Example:
            >>> table.update({"fare": "fare * 1.1", "seen": True}, where="city = 'rome'")
        """
        given, condition = checked_values(set), bound(where, params)
        schema = self._schema_to_change("update")
        check_columns(given, schema, self.config.name)
        with self._refusals():
            values = {name: _column(value) for name, value in given.items()}

        def find() -> DataFrame:
            rows = self.read(where=condition, meta_columns=True).alias("t")
            columns = [
                values[each.name].cast(each.dataType).alias(each.name)
                if each.name in values
                else F.col(quoted(each.name))
                for each in spark_schema(schema)
            ]
            return rows.select(RECORD_KEY, PARTITION_PATH, F.lit(False).alias(DELETED), *columns)

        return self._written(find, self._request(WriteOperation.UPSERT, options))

    def merge(
        self,
        source: DataFrame,
        on: str | Column | None = None,
        options: Mapping[str, str] | None = None,
        *,
        predicate: str | Column | None = None,
        source_alias: str = "s",
        target_alias: str = "t",
    ) -> Merge[CommitResult]:
        """Join rows with the table, and update, delete or insert the matching or missing rows, in one commit.

        Expressions are texts of Spark SQL, or Columns. Ordering fields apply as in an upsert.

        Args:
            source: the rows.
            on: which rows of both belong together, such as "t.id = s.id". `predicate` is another name for it.
            options: Hudi's write options, for this write.
            source_alias, target_alias: the names of both in expressions.

        Returns:
            A MERGE that has not run yet. Its methods add clauses, `execute` runs it, and `explain` says what it would do.

        Raises:
            OptionError: an argument is missing.

        Example:
            >>> (table.merge(df, on="t.id = s.id")
            ...     .when_matched_update_all()
            ...     .when_not_matched_insert_all()
            ...     .execute())
        """
        condition = predicate if on is None else on
        if not (_is_column(condition) or (isinstance(condition, str) and condition)):
            raise OptionError(
                f'merge needs a condition: give on="{target_alias}.id = {source_alias}.id", not {condition!r:.60}'
            )
        require_frame(source)

        def request(clauses: Sequence[Clause]) -> WriteRequest:
            only_deletes = all(each.deletes for each in clauses)
            return self._request(WriteOperation.DELETE if only_deletes else WriteOperation.UPSERT, options)

        request([])  # says what is wrong with the options

        def merged(clauses: Sequence[Clause]) -> Merged:
            schema = self._schema_to_change("merge")
            for each in clauses:
                names = each.updates or {}
                require_whole_columns(names, schema, what="MERGE's", table=self.config.name, says="the MERGE")
            in_source = {name.lower(): name for name in source.columns}  # case does not count in Spark
            common = {name: in_source[name.lower()] for name in schema.names if name.lower() in in_source}
            rows = with_stored(self.read(meta_columns=True), schema.names).alias(target_alias)
            given = with_given(source, list(common.values())).alias(source_alias)
            return Merged(rows, given, _column(condition), [_row_clause(each, common) for each in clauses])

        def changes(clauses: Sequence[Clause]) -> DataFrame:
            only_deletes = all(each.deletes for each in clauses)
            fields = [] if only_deletes else spark_schema(self._schema_to_change("merge")).fields
            return merged(clauses).changes(fields)

        def run(clauses: Sequence[Clause]) -> CommitResult:
            return self._written(lambda: changes(clauses), request(clauses))

        def explain(clauses: Sequence[Clause]) -> MergePlan:
            with self._refusals():
                frames = merged(clauses)
                tally = Tally(source.count(), matched=frames.matched())
                tally.by_clause.update(frames.counts())
                found = changes(clauses) if tally.by_clause else None
                plan = None if found is None else dataframe.plan_records(self._core, found, request(clauses))
            return MergePlan.of(self.config.name, clauses, tally, plan)

        return Merge(run, explain)

    def _schema_to_change(self, verb: str) -> pa.Schema:
        """The columns of the table.

        Raises:
            OptionError: it has none yet, or its rows cannot be told from each other.
        """
        schema = self._core._schema_to_change()
        if not self.config.populate_meta_fields:
            raise OptionError(
                f"{verb} finds rows by the _hoodie_ columns, which table {self.uri} does not store "
                "(hoodie.populate.meta.fields=false): use upsert(df) and delete(where=…)"
            )
        return schema

    def _written(self, find: Callable[[], DataFrame], request: WriteRequest) -> CommitResult:
        with self._refusals():
            return dataframe.write_found(self._core, find, request)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What Spark says of expressions and of rows, as errors of ours."""
        try:
            yield
        except AnalysisException as error:
            raise OptionError(f"table {self.uri}: {str(error).strip().partition(chr(10))[0]}") from error
        except Exception as error:
            if TWO_ROWS not in str(error):
                raise
            raise DuplicateKeyError(
                f"several rows of the source match one row of table {self.uri}; nothing was written. Keep one of them in the source"
            ) from error


def require_frame(data: object) -> None:
    """Raises SchemaError for what is no DataFrame of Spark."""
    if not hasattr(data, "sparkSession"):
        kind = type(data)
        raise SchemaError(
            f"cannot take rows from a {kind.__module__}.{kind.__name__}: give a DataFrame of Spark; "
            "spark.createDataFrame makes one of lists, pandas frames and Arrow tables (of these give it "
            "`table.combine_chunks()`: Spark 4 may lose the rows behind an empty chunk)"
        )


def _row_clause(clause: Clause, common: Mapping[str, str]) -> RowClause:
    """`common`: columns of the table -> how the source writes them."""
    condition = None if clause.condition is None else _column(clause.condition)
    if clause.all_columns:
        values: dict[str, Column] | None = {name: given_value(each) for name, each in common.items()}
    else:
        values = None if clause.updates is None else {name: _column(each) for name, each in clause.updates.items()}
    return RowClause(_CASES[clause.case], condition, values)


def _column(value: Any) -> Column:
    """An expression as text, a Column, or a value that stands for itself."""
    return value if _is_column(value) else F.expr(value) if isinstance(value, str) else F.lit(value)


def _is_column(value: object) -> TypeGuard[Column]:
    """On 3.5 Connect has a class of its own."""
    return type(value).__name__ == "Column"
