"""The data source that Spark 4 finds by itself: correct for everything that Spark lets through, without `enable`.

All of this runs in Python workers. Reads have a partition for some file slices. Writes are staged by the tasks, and
committed once by a worker on the driver's machine, with the embedded engine.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from hoodie.engine.late_pandas import put_pandas_off
from hoodie.engine.local import LocalEngine
from hoodie.errors import HoodieError, OptionError
from hoodie.filegroup.conform import conform
from hoodie.filegroup.run import run_read
from hoodie.model.names import name_of, staging_folder
from hoodie.model.plans import ChangeTask, Chunk, ReadPlan, ReadTask
from hoodie.read.plan import plan_read
from hoodie.storage.base import Storage
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext
from hoodie.write.prepare import Preparation, run_prepare
from hoodie.write.stage import PreparedRows, plan_preparation
from pyspark_hoodie.dataframe import (
    APPEND,
    OVERWRITE,
    in_mode,
    needs_no_rows,
    open_for_write,
    parse_query,
    parse_request,
)
from pyspark_hoodie.engine import conformed, reading_groups
from pyspark_hoodie.reach import reached
from pyspark_hoodie.schema import arrow_schema, given_schema, selected_schema, spark_schema
from pyspark_hoodie.short_errors import short_errors
from pyspark_hoodie.stream_source import CommitStream, source_plan_options
from pyspark_hoodie.stream_staging import BatchStager

log = logging.getLogger("hoodie")

S = TypeVar("S")


@cache
def _say_once() -> None:
    """Planner workers live on, so this is one line for most jobs."""
    log.warning(
        'format("hoodie") read or written without pyspark_hoodie.enable(spark), or through a view that SQL made, which enable does '
        "not reach: correct, but slower. In place of CREATE TEMPORARY VIEW use createOrReplaceTempView of a DataFrame"
    )


class DefaultSource(DataSource):
    """What stands behind `format("hoodie")` in PySpark. Option keys arrive in lower case."""

    @classmethod
    def name(cls) -> str:
        return "hoodie"

    @short_errors
    def schema(self) -> StructType:
        path, options = self._target()
        storage, options = reached(path, options)
        context = TableContext.open(storage, LocalEngine())
        return spark_schema(_plan(storage, source_plan_options(context, options)).output)

    @short_errors
    def reader(self, schema: StructType) -> DataSourceReader:
        _say_once()
        return SliceReader(*self._target(), schema)

    @short_errors
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        _say_once()
        return StagingWriter(*self._target(), given_schema(schema), mode=OVERWRITE if overwrite else APPEND)

    @short_errors
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return CommitStream(*self._target(), schema)

    @short_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """`overwrite`: output mode complete."""
        _say_once()
        return BatchStager(*self._target(), given_schema(schema), complete=overwrite)

    def _target(self) -> tuple[str, dict[str, str]]:
        put_pandas_off()
        options = dict(self.options.items())
        path = options.pop("path", None)
        if not path:
            # A catalog table: Spark creates it and then hands none of its options to the scan.
            raise OptionError(
                "format 'hoodie' needs the path of one table. Spark does not tell the path of catalog tables USING hoodie: use "
                "CREATE TEMPORARY VIEW … USING hoodie OPTIONS (path '…'), or HoodieTable of pyspark_hoodie"
            )
        return path, options


def named(alias: str) -> type[DataSource]:
    """The source under another name, for `spark.dataSource.register`."""
    return type("DefaultSource", (DefaultSource,), {"name": classmethod(lambda cls: alias)})


def _plan(storage: Storage, options: Mapping[str, str]) -> ReadPlan:
    context = TableContext.open(storage, LocalEngine())
    return plan_read(context, parse_query(context, options), meta_columns=context.config.populate_meta_fields)


# -- reading -----------------------------------------------------------------------------------------------------------


class SliceReader(DataSourceReader):
    """Planned when it is made: what Spark sends to the tasks is pickled before it asks for partitions.

    `pushFilters` stays Spark's own: a reader that has one is refused unless a setting of Spark's is on.
    """

    def __init__(self, path: str, options: Mapping[str, str], schema: StructType) -> None:
        self._storage, options = reached(path, options)
        plan = _plan(self._storage, options)
        chosen = selected_schema(spark_schema(plan.output), schema, path=path, earlier=True)
        self._context = plan.context
        # Spark compares the schema of the batches with the one it asked for, nullability included.
        self._schema = arrow_schema(schema)
        self._tasks = [_narrowed(task, chosen.names) for task in plan.tasks]

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(group) for group in reading_groups(self._tasks, storage=self._storage)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None or partition.value is None:  # what Spark makes of no partitions, before 4.2 and since
            return
        put_pandas_off()
        for task in partition.value:
            for batch in run_read(self._storage, self._context, task):
                yield conform(batch, self._schema, path="a file slice")


def _narrowed(task: ReadTask | ChangeTask, names: Sequence[str]) -> ReadTask | ChangeTask:
    return replace(task, columns=tuple(names))


# -- writing -----------------------------------------------------------------------------------------------------------


@dataclass
class StagedChunks(WriterCommitMessage):
    """What one task staged, or the error of ours that it ended with: trying again would not help."""

    chunks: tuple[Chunk, ...] = ()
    error: HoodieError | None = None


class StagingWriter(DataSourceArrowWriter):
    """Made on the driver's machine: the table is created, and the schema checked, before any task runs.

    The folder of the staged rows has no mark of a living writer, because no process lives from here to the commit;
    others leave folders without one alone.
    """

    def __init__(self, path: str, options: Mapping[str, str], schema: pa.Schema, *, mode: str) -> None:
        self._path = path
        self._schema = schema
        self._storage, options = reached(path, options)
        self._request = parse_request(options)
        table = open_for_write(self._storage, self._request, schema, mode=mode, engine=LocalEngine())
        if table is not None:
            self._request = in_mode(mode, self._request, table)
        write = self._request.write
        self._folder = staging_folder(f"rows-{uuid.uuid4().hex}")
        self._preparation: Preparation | None = None
        if not needs_no_rows(write):
            context = TableContext.open(self._storage, LocalEngine())
            self._preparation = plan_preparation(context, schema, operation=write.operation, options=write)
            self._storage.mkdirs(self._folder, durable=False)  # here, as no task makes it: one may outlive its write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedChunks:  # type: ignore[override]
        if self._preparation is None:
            return StagedChunks()
        put_pandas_off()
        rows = conformed(iterator, self._schema)
        try:
            return StagedChunks(tuple(run_prepare(self._preparation, self._storage, self._folder, rows)))
        except HoodieError as error:
            return StagedChunks(error=error)

    @short_errors
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Runs once, with the message of the one attempt of each task that counts."""
        put_pandas_off()
        staged = [each for each in messages if isinstance(each, StagedChunks)]
        for each in staged:
            if each.error is not None:
                raise each.error  # Spark calls `abort` then
        chunks = [chunk for each in staged for chunk in each.chunks]
        write = self._request.write
        context = TableContext.open(self._storage, LocalEngine(), write.concurrency)
        if self._preparation is None:
            log.info("%s", HoodieTable(context).writer.write_no_rows(write.operation, write))
            return
        mark = name_of(self._folder)
        context.liveness.hold(mark)
        try:
            result = HoodieTable(context).writer.write(
                PreparedRows(self._preparation, chunks),
                self._schema,
                write.operation,
                write,
                engine=LocalEngine(),
            )
        finally:
            self._storage.delete_folder(self._folder)
            context.liveness.release(mark)
        log.info("%s", result)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._storage.delete_folder(self._folder)
