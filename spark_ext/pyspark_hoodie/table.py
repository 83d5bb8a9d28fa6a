"""`HoodieTable` for Spark: the facade of the core with DataFrames in and out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.consumers import TableConsumers
from hoodie.errors import OptionError
from hoodie.keyed import keys_of, where_keys
from hoodie.maintenance.table_services import TableServices
from hoodie.model.enums import ChangeFormat, QueryType, WriteOperation
from hoodie.model.results import CommitResult
from hoodie.options.arguments import parse_options
from hoodie.options.compatibility import check_against, check_operation
from hoodie.options.moments import Moment
from hoodie.options.option import option_name
from hoodie.options.read import ReadOptions
from hoodie.options.write import WriteOptions, WriteRequest
from hoodie.read.where import Where, bound
from hoodie.table import HoodieTable as Core
from hoodie.table import is_table
from hoodie.verbs import TableVerbs
from hoodie.view.context import TableContext
from hoodie.write.keys import key_columns
from pyspark_hoodie import dataframe
from pyspark_hoodie.arrow_frame import arrow_frame
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.frame_marks import marked
from pyspark_hoodie.native import plan_frame, readers
from pyspark_hoodie.reach import reached, session_options
from pyspark_hoodie.schema import given_schema
from pyspark_hoodie.small_batch import collected
from pyspark_hoodie.statements import Statements, require_frame
from pyspark_hoodie.stream_sink import StreamSink, stream_writer

_MOST_KEYS = 100_000
"""Of a look-up."""


def last_commit(path: str, storage_options: Mapping[str, str] | None = None) -> CommitResult:
    """What the last write to a table did.

    Args:
        path: the table's folder.
        storage_options: how to reach the storage, beside what the active session says.

    Returns:
        As this process saw it, else as the table's timeline tells it.

    Raises:
        TableNotFoundError: there is no table at the path.
        OptionError: nothing was written to it yet.

    Example:
        >>> df.write.format("hoodie").mode("append").save("/data/trips")
        >>> pyspark_hoodie.last_commit("/data/trips").inserted
    """
    how = {**session_options(SparkSession.getActiveSession(), path), **(storage_options or {})}
    return dataframe.last_result(path, how or None)


class HoodieTable(Statements, TableVerbs[DataFrame], TableServices, TableConsumers[DataFrame]):
    """An open table on Spark: writes take DataFrames, and reads give DataFrames that are pinned to the snapshot of the call.

    `HoodieTable.for_path` opens one.
    """

    def __init__(
        self, spark: SparkSession, context: TableContext | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        if not isinstance(context, TableContext):
            raise OptionError("HoodieTable(…) opens nothing: use pyspark_hoodie.HoodieTable.for_path(spark, path)")
        self._spark = spark
        self._options = dict(parse_options(options))
        self._reach: dict[str, str] = {}
        """How to reach the storage, where the session does not say it."""
        self._core = Core(context, options)

    @classmethod
    def for_path(cls, spark: SparkSession, path: str, options: Mapping[str, str] | None = None) -> HoodieTable:
        """Open a table.

        Args:
            spark: the session whose executors do the work, classic or Connect.
            path: the table's folder.
            options: Hudi's write options that every write through the object has, and how to reach the storage.

        Returns:
            The open table.

        Raises:
            TableNotFoundError: there is no table at the path.

        Example:
            >>> table = HoodieTable.for_path(spark, "/data/trips")
            >>> table.upsert(df)
        """
        storage, others = reached(path, options, spark)
        table = cls(spark, TableContext.open(storage, SparkEngine(spark, storage)), others)
        table._reach = {name: text for name, text in parse_options(options).items() if name not in others}
        return table

    @classmethod
    def is_table(cls, spark: SparkSession, path: str) -> bool:
        """Whether there is a table at a path.

        Args:
            spark: the session.
            path: a folder.

        Returns:
            True also for a table of a version that this release does not know, or with damaged properties.
        """
        return is_table(path, storage_options=session_options(spark, path) or None)

    def __repr__(self) -> str:
        return repr(self._core)

    def _repr_html_(self) -> str:
        return self._core._repr_html_()

    # -- writing -----------------------------------------------------------------------------------------------------

    @property
    def _context(self) -> TableContext:
        return self._core._context

    def _delete_by(self, where: Where | None, options: Mapping[str, str] | None) -> CommitResult:
        request = self._request(WriteOperation.DELETE, options)
        return dataframe.write_found(
            self._core, lambda: self.read(columns=key_columns(self.config), where=where), request
        )

    def _keys(self, data: DataFrame | Collection[object]) -> DataFrame:
        """Columns of the driver become a DataFrame."""
        rows = keys_of(self.config, data)
        return arrow_frame(self._spark, pa.table(rows)) if isinstance(rows, Mapping) else rows

    def _delete_partitions(self, paths: tuple[str, ...], options: Mapping[str, str] | None) -> CommitResult:
        result = self._core.delete_partitions(paths, {**self._options, **parse_options(options)})
        return dataframe.remember(self._core, result)

    def foreach_batch(self, options: Mapping[str, str] | None = None, *, output_mode: str = "append") -> StreamSink:
        """A function for `df.writeStream.foreachBatch(…)` that writes each batch of a query once.

        Args:
            options: Hudi's write options, as `pyspark_hoodie.stream_writer` takes them.
            output_mode: the query's: append, update, or complete.
        """
        return stream_writer(self.uri, {**self._options, **parse_options(options)}, output_mode=output_mode)

    def _write(self, data: DataFrame, operation: WriteOperation, options: Mapping[str, str] | None) -> CommitResult:
        require_frame(data)
        request = self._request(operation, options)
        return dataframe.write_records(self._core, data, given_schema(data.schema), request)

    def _request(self, operation: WriteOperation, options: Mapping[str, str] | None) -> WriteRequest:
        request = dataframe.parse_request({**self._options, **parse_options(options)})
        check_against(self.config, request.table)
        check_operation(operation, request.write.operation, parse_options(options))
        return replace(request, write=replace(request.write, operation=operation))

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        query: str = QueryType.SNAPSHOT,
        as_of: Moment | None = None,
        meta_columns: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> DataFrame:
        """The rows of the table as a DataFrame, as they are now or were at an earlier moment; `scan` is the same.

        Args:
            columns: which columns, in this order; None gives all.
            where: rows to read: SQL-like text such as "fare > 3 and city = 'rome'". It leaves out files that cannot have such rows.
            query: "snapshot" gives the newest rows; "read_optimized" reads base files only, without rows that are still in log files.
            as_of: an earlier moment: an instant, a datetime, a date, the result of a commit, a savepoint, -1 for the newest commit,
                or text such as "2026-01-31 12:00" or "2 hours ago". Times without a zone are in that of the table (UTC, unless its
                properties say LOCAL).
            meta_columns: put the five `_hoodie_` columns in front.
            params: values for the parameters of a text: `where="fare > :low", params={"low": 3}`.

        Returns:
            A DataFrame over the snapshot of this moment: commits that come later are not in it.

        Raises:
            InstantNotFoundError: `as_of` lies before the first commit, or the files of that moment were cleaned.
            OptionError: a column that does not exist; a condition or a moment that cannot be understood.

        Example:
            >>> table.read(columns=["city", "fare"], where="fare > 100", as_of="yesterday").show()
        """
        where = bound(where, params)
        scan = self._core.scan(columns, where, query=query, as_of=as_of, meta_columns=meta_columns)
        frame = plan_frame(self._spark, self._context, scan.plan, where=where)
        names = ",".join(scan.plan.output.names)
        if (
            as_of is not None
            or not (where is None or isinstance(where, str))
            or names.split(",") != scan.plan.output.names
        ):
            return frame
        read_options = {} if where is None else {option_name(ReadOptions, "where"): where}
        read_options |= self._reach | {
            option_name(ReadOptions, "query"): str(query),
            option_name(ReadOptions, "columns"): names,
        }
        return marked(self._spark, frame, self.uri, read_options)

    scan = read

    def head(self, rows: int = 10) -> DataFrame:
        """Some rows, to see what the table holds: short for `read().limit(rows)`.

        Args:
            rows: how many at most.

        Example:
            >>> table.head(5).show()
        """
        return self.read().limit(rows)

    def lookup(
        self,
        keys: DataFrame | Collection[object],
        columns: Sequence[str] | None = None,
        *,
        meta_columns: bool = False,
    ) -> DataFrame:
        """The rows with these record keys, in all partitions. Bounds, bloom filters and a record index leave files out.

        Args:
            keys: the key columns, or a list of bare keys. At most 100,000: the driver takes them.
            columns, meta_columns: as `read` has them.

        Returns:
            A DataFrame over the snapshot of this moment.

        Raises:
            OptionError: the table is empty, or there are more keys.
            KeyFieldError, SchemaError: these are no keys of the table.

        Example:
            >>> table.lookup(["a", "b"], columns=["fare"]).show()
        """
        given = keys_of(self.config, keys)
        rows = pa.table(given) if isinstance(given, Mapping) else collected(given.limit(_MOST_KEYS + 1))
        if rows.num_rows > _MOST_KEYS:
            raise OptionError(
                f"lookup of table {self.uri} takes {_MOST_KEYS:,} keys, and there are more: join with read() instead"
            )
        return self.read(columns, where_keys(self._context, rows, WriteOptions()), meta_columns=meta_columns)

    def explain(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        query: str = QueryType.SNAPSHOT,
        as_of: Moment | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> str:
        """Say which files `read` would open, why it would skip the others, and whether Spark or hoodie would read them.

        With `since` or `until` it says that of `changes`.

        Args:
            columns, where, query, as_of, params: as `read` takes them.
            since, until: as `changes` takes them.

        Example:
            >>> print(table.explain(where="fare > 100"))
        """
        where = bound(where, params)
        if since is None and until is None:
            scan = self._core.scan(columns, where, query=query, as_of=as_of)
        elif as_of is not None or query != QueryType.SNAPSHOT:
            raise OptionError(
                "explain takes since and until, or query and as_of: a pull of changes has neither of these"
            )
        else:
            scan = self._core.changes(since, until, columns, where)
        return (
            f"{scan.explain(merging=False)}\n  read by: {readers(self._spark, self._context, scan.plan, where=where)}"
        )

    def changes(
        self,
        since: Moment | None = None,
        until: Moment | None = None,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        images: str = ChangeFormat.LATEST_STATE,
        full_scan_fallback: bool = False,
        meta_columns: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> DataFrame:
        """What was committed after `since`, up to and including `until`, as a DataFrame.

        By default this is an incremental pull: the latest state of the rows that were written in the range, without deletes. With
        `images="before_after"` it is the change feed: each insert, update and delete. `hoodie.HoodieTable.changes` says more.

        Args:
            since: where the range begins, exclusive: a moment as `read(as_of=…)` takes it; None is the beginning.
            until: where the range ends, inclusive; None is the last commit that can be passed safely.
            columns: which columns; in the change feed those of `before` and `after`.
            where: rows to give; in the change feed changes that fit on either side.
            images: "latest_state", "before_after", or "cdc" for Apache Hudi's columns.
            full_scan_fallback: read a range from the whole table when its commits were archived or its files cleaned.
            meta_columns: put the five `_hoodie_` columns in front.
            params: as `read` has them.

        Returns:
            A DataFrame over the snapshot of this moment.

        Raises:
            InstantNotFoundError: `until` lies beyond a write in progress, or the range was archived or cleaned.
        """
        where = bound(where, params)
        scan = self._core.changes(
            since,
            until,
            columns,
            where,
            images=images,
            full_scan_fallback=full_scan_fallback,
            meta_columns=meta_columns,
        )
        return plan_frame(self._spark, self._context, scan.plan, where=where)

    def _at_work(self, options: Mapping[str, str] | None = None) -> tuple[TableContext, WriteOptions]:
        return self._core._at_work(options)
