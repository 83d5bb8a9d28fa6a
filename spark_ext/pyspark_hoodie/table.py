"""`HoodieTable` for Spark: the facade of the core with DataFrames in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.errors import OptionError
from hoodie.model.enums import ChangeFormat, QueryType, WriteOperation
from hoodie.model.files import FileSlice
from hoodie.model.instant import Instant
from hoodie.model.results import CommitResult
from hoodie.options.fits import check_against
from hoodie.options.keys import PARTIAL_UPSERT
from hoodie.options.moments import Moment
from hoodie.options.table import TableConfig
from hoodie.read.where import Where
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable as Core
from hoodie.timeline.timeline import Timeline
from hoodie.txn.context import TableContext
from hoodie.write.keys import key_columns
from pyspark_hoodie import dataframe
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.native import plan_frame
from pyspark_hoodie.schema import arrow_schema
from pyspark_hoodie.stream_sink import StreamSink, stream_writer


def last_commit(path: str) -> CommitResult:
    """What the last write to the table at `path` did.

    Raises:
        TableNotFoundError: there is no table. OptionError: nothing was written to it yet.
    """
    return dataframe.last_result(path)


class HoodieTable:
    """An open table. Reads are DataFrames pinned to the snapshot of the call; writes take DataFrames."""

    def __init__(self, spark: SparkSession, context: TableContext, options: Mapping[str, str] | None = None) -> None:
        self._spark = spark
        self._context = context
        self._options = dict(options or {})
        self._core = Core(context, options)

    @classmethod
    def for_path(cls, spark: SparkSession, path: str, options: Mapping[str, str] | None = None) -> HoodieTable:
        """Open the table at a path; `options` are Hudi's write options that every write through the object has.

        Raises:
            TableNotFoundError: there is no table.
        """
        return cls(spark, TableContext.open(open_storage(path), SparkEngine(spark)), options)

    def __repr__(self) -> str:
        return repr(self._core)

    # -- what the table is -------------------------------------------------------------------------------------------

    @property
    def config(self) -> TableConfig:
        return self._core.config

    @property
    def uri(self) -> str:
        return self._core.uri

    @property
    def schema(self) -> pa.Schema | None:
        """The table's columns without meta columns; None when nothing has stated them yet."""
        return self._core.schema

    @property
    def timeline(self) -> Timeline:
        return self._core.timeline

    def partitions(self) -> tuple[str, ...]:
        return self._core.partitions()

    def files(self) -> list[FileSlice]:
        """The latest file slices."""
        return self._core.files()

    def history(self) -> list[CommitResult]:
        """What each completed commit on the active timeline did, oldest first."""
        return self._core.history()

    # -- writing -----------------------------------------------------------------------------------------------------

    def upsert(
        self, df: DataFrame, options: Mapping[str, str] | None = None, *, partial: bool | None = None
    ) -> CommitResult:
        """Insert rows with new keys, replace rows whose key is stored.

        `partial`: of stored rows only the columns that the DataFrame has are replaced; new rows have null in the others.
        """
        said = {} if partial is None else {PARTIAL_UPSERT.name: str(partial)}
        return self._write(df, WriteOperation.UPSERT, {**(options or {}), **said})

    def insert(self, df: DataFrame, options: Mapping[str, str] | None = None) -> CommitResult:
        """Add rows without looking their keys up."""
        return self._write(df, WriteOperation.INSERT, options)

    def bulk_insert(self, df: DataFrame, options: Mapping[str, str] | None = None) -> CommitResult:
        """Add rows into new file groups only: for first loads."""
        return self._write(df, WriteOperation.BULK_INSERT, options)

    def delete(
        self, df: DataFrame | None = None, options: Mapping[str, str] | None = None, *, where: Where | None = None
    ) -> CommitResult:
        """Delete the rows with these keys (key and partition columns; more are ignored), or those that a filter finds."""
        if (df is None) == (where is None):
            raise OptionError("delete takes either keys or where=…, exactly one of them")
        if df is None:
            df = self.read(columns=key_columns(self.config), where=where)
        return self._write(df, WriteOperation.DELETE, options)

    def insert_overwrite(self, df: DataFrame, options: Mapping[str, str] | None = None) -> CommitResult:
        """Replace all rows of the partitions that the DataFrame is in; without rows nothing changes."""
        return self._write(df, WriteOperation.INSERT_OVERWRITE, options)

    def insert_overwrite_table(self, df: DataFrame, options: Mapping[str, str] | None = None) -> CommitResult:
        """Replace all rows of the table; without rows it is empty then."""
        return self._write(df, WriteOperation.INSERT_OVERWRITE_TABLE, options)

    def delete_partitions(self, partitions: Sequence[str], options: Mapping[str, str] | None = None) -> CommitResult:
        """Delete all rows of partitions, given by their paths as `partitions()` lists them; `*` stands for any text."""
        result = self._core.delete_partitions(partitions, {**self._options, **(options or {})})
        return dataframe.remember(self._core, result)

    def foreach_batch(self, options: Mapping[str, str] | None = None, *, output_mode: str = "append") -> StreamSink:
        """A function for `df.writeStream.foreachBatch(…)` that writes each batch once, as `pyspark_hoodie.stream_writer` says."""
        return stream_writer(self.uri, {**self._options, **(options or {})}, output_mode=output_mode)

    def _write(self, df: DataFrame, operation: WriteOperation, options: Mapping[str, str] | None) -> CommitResult:
        request = dataframe.parse_request({**self._options, **(options or {})})
        check_against(self.config, request.table)
        request = replace(request, write=replace(request.write, operation=operation))
        return dataframe.write_records(self._core, df, arrow_schema(df.schema), request)

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        query: str = QueryType.SNAPSHOT,
        as_of: Moment | None = None,
        meta_columns: bool = False,
    ) -> DataFrame:
        """The table's rows now or as of an instant: query "snapshot" (logs merged in) or "read_optimized" (base files)."""
        scan = self._core.scan(columns, where, query=query, as_of=as_of, meta_columns=meta_columns)
        return plan_frame(self._spark, self._context, scan.plan, where=where)

    scan = read

    def explain(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        query: str = QueryType.SNAPSHOT,
        as_of: Moment | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> str:
        """Which files `read`, or `changes` where `since` or `until` is given, would open, and what left the others out."""
        if since is None and until is None:
            return self._core.scan(columns, where, query=query, as_of=as_of).explain()
        if as_of is not None or query != QueryType.SNAPSHOT:
            raise OptionError(
                "explain takes since and until, or query and as_of: a pull of changes has neither of these"
            )
        return self._core.changes(since, until, columns, where).explain()

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
    ) -> DataFrame:
        """Latest state of the rows committed in (since, until], or each change of them: as `hoodie.HoodieTable.changes` says."""
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

    # -- table services ----------------------------------------------------------------------------------------------

    def schedule_compaction(self, options: Mapping[str, str] | None = None) -> str | None:
        """Plan the merge of log files into base files; gives its instant, None when there is nothing to merge."""
        return self._core.schedule_compaction(options)

    def run_compaction(
        self, instant: str | None = None, budget_s: float | None = 300, options: Mapping[str, str] | None = None
    ) -> list[CommitResult]:
        """Run one scheduled compaction, or all that are pending; none is begun after `budget_s` seconds."""
        return self._core.run_compaction(instant, budget_s, options)

    def compact(self, options: Mapping[str, str] | None = None) -> list[CommitResult]:
        """Schedule a compaction and run what is pending."""
        return self._core.compact(options)

    def rollback(self, instant: str | None = None) -> list[str]:
        """Undo a pending instant that its writer left behind (all of them, when none is named)."""
        return self._core.rollback(instant)

    def pending_compactions(self) -> tuple[Instant, ...]:
        return self._core.pending_compactions()
