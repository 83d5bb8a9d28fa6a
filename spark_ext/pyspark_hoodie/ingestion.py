"""Ingestion by Spark: executors decode files and records of topics, rows are a DataFrame, and Spark SQL transforms them.

What comes next, what a checkpoint says and what is set apart is the core's (`hoodie/ingestion`): so either goes on where the
other ended.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import and_
from os import PathLike
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit
from pyspark.sql.types import DataType, StructType

import hoodie
from hoodie.engine.base import Records
from hoodie.errors import OptionError
from hoodie.ingestion.file_types import FileContent, columns_of, look, looked_again, rows_of_file
from hoodie.ingestion.folders import FolderSource
from hoodie.ingestion.queues import is_queue
from hoodie.ingestion.salvage import with_known_types
from hoodie.ingestion.source import Bounds, Checkpoint, Round, Source
from hoodie.ingestion.work import (
    EMBEDDED,
    INPUT,
    INPUT_NAME,
    Needs,
    PreparedRound,
    as_bad,
    keyless,
    partition_columns,
    says_places,
    without_nulls,
    without_path,
)
from hoodie.model.ingest_results import IngestResult
from hoodie.options.table_options import TableOptions
from hoodie.options.write import WriteOptions, WriteRequest
from hoodie.table import HoodieTable
from pyspark_hoodie.arrow_frame import arrow_frame
from pyspark_hoodie.dataframe import write_records
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.reach import session_options
from pyspark_hoodie.schema import given_schema, spark_schema
from pyspark_hoodie.small_batch import TooLargeError, collected
from pyspark_hoodie.topics import next_of_topics, topics_of
from pyspark_hoodie.where import quoted


def ingest(
    spark: SparkSession,
    source: str | PathLike[str] | HoodieTable | Source,
    target: str | PathLike[str],
    **arguments: Any,
) -> IngestResult:
    """Write new rows of a source to a table by Spark: executors read the files of a folder or the topics of Kafka, and write the
    rows.

    The driver reads other sources. Checkpoints are those of `hoodie.ingest`, and either goes on where the other ended. For topics the
    executors need confluent-kafka, too.

    Args:
        spark: the session, classic or Connect.
        source, target: as `hoodie.ingest` takes them.
        arguments: those of `hoodie.ingest`, by name. `sql` is in Spark's dialect. The session's settings for storages count, beside
            `storage_options` and `source_options`.

    Returns:
        The rounds that it carried out.

    Raises:
        OptionError: as `hoodie.ingest` does; or the session has a temporary view named `source`, which the query names.

    Example:
        >>> pyspark_hoodie.ingest(spark, "s3a://landing/trips", "s3a://lake/trips", record_key="id", max_files=10_000)
    """
    for name, address in (("storage_options", target), ("source_options", source)):
        if isinstance(address, str | PathLike):
            place = (
                "s3a://" if name == "source_options" and is_queue(str(address)) else str(address)
            )  # its files are there
            reach_options = {**session_options(spark, place), **(arguments.get(name) or {})}
            arguments = {**arguments, name: reach_options or None}
    return hoodie.ingest(source, target, work=SparkWork(spark), **arguments)


@dataclass(frozen=True)
class SparkWork:
    """`Work` on the executors of a session; `Round.rows` of folders and topics are a DataFrame."""

    spark: SparkSession

    def with_engine(self, table: HoodieTable) -> HoodieTable:
        context = table._context
        return HoodieTable(replace(context, engine=SparkEngine(self.spark, context.storage)), table._options)

    def next(self, source: Source, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        topics = topics_of(source)
        if topics is not None:
            return next_of_topics(self.spark, source, topics, after, bounds, schema)
        if not isinstance(source, FolderSource):
            return source.next(after, bounds, schema)
        new = source.new_files(after, bounds)
        if new is None:
            return None
        engine = SparkEngine(self.spark, source.storage)
        looked: Sequence[FileContent] = engine.run(partial(look, source, schema), new.files, label="types of new files")
        types = columns_of(looked)
        differing = [number for number, each in enumerate(looked) if each.differs_from(types)]
        again = engine.run(
            partial(looked_again, source, types), [new.files[n] for n in differing], label="files of other types"
        )
        bad = {**dict(enumerate(each.bad for each in looked)), **dict(zip(differing, (each.bad for each in again)))}
        return new.round(
            engine.read(partial(rows_of_file, source, types), new.files, types),
            tuple(record for number in sorted(bad) for record in bad[number]),
        )

    @contextmanager
    def prepared(self, table: HoodieTable, rows: Records, sql: str | None, needs: Needs) -> Iterator[PreparedRound]:
        frame = rows if isinstance(rows, DataFrame) else _frame(self.spark, rows)
        if not frame.columns:
            yield PreparedRound(frame, 0)
            return
        with _transformed(self.spark, frame, sql) as transformed:
            cached_rows = _with_columns_of(transformed, needs.null_if_missing).persist()
            try:
                yield _without_nulls(_without_bad_keys(cached_rows, needs.keys), needs.columns)
            finally:
                cached_rows.unpersist()

    def with_paths(self, table: HoodieTable, rows: Records) -> PreparedRound:
        if isinstance(rows, pa.Table):
            return EMBEDDED.with_paths(table, rows)
        paths = {name: path for name in table.config.partition_fields if (path := _path_of(rows.schema, name))}
        values = collected(rows.select([col(path).alias(name) for name, path in paths.items()]).distinct())
        is_bad, reasons = without_path(values, table.config)
        kept, bad = rows, []
        for value, reason in zip(values.filter(pa.array(is_bad)).to_pylist(), reasons):
            is_one = reduce(lambda one, other: one & other, [col(paths[n]).eqNullSafe(v) for n, v in value.items()])
            bad += as_bad(found := collected(rows.filter(is_one)), [reason] * found.num_rows)
            kept = kept.filter(~is_one)
        return PreparedRound(kept, kept.count(), bad)

    def write(self, table: HoodieTable, rows: Records, options: WriteOptions) -> str | None:
        if isinstance(rows, pa.Table):
            return EMBEDDED.write(table, rows, options)
        if not says_places(table, options):
            nulls = [col(quoted(each)).isNull() for each in partition_columns(table, rows.columns)]
            if not rows.filter(reduce(and_, nulls, lit(True))).isEmpty():
                return EMBEDDED.write(table, _keys_in_driver(table, rows), options)
        return write_records(table, rows, given_schema(rows.schema), WriteRequest(TableOptions(), options)).instant


def _keys_in_driver(table: hoodie.HoodieTable, rows: DataFrame) -> pa.Table:
    """Raises OptionError where they are more than Spark's driver takes."""
    try:
        return collected(rows)
    except TooLargeError as error:
        raise OptionError(
            f"table {table.uri}: some rows to delete do not say their partitions, and all rows of the round are more than "
            "spark.driver.maxResultSize: read less in a round (max_files, max_rows), or add the partition columns"
        ) from error


def _frame(spark: SparkSession, rows: pa.Table | pa.RecordBatchReader) -> DataFrame:
    """Rows of the driver. A column of nothing but null comes with its first value."""
    return arrow_frame(spark, with_known_types(rows if isinstance(rows, pa.Table) else rows.read_all()))


@contextmanager
def _transformed(spark: SparkSession, frame: DataFrame, sql: str | None) -> Iterator[DataFrame]:
    """What Spark SQL makes of the rows. Connect looks for the view whenever they are evaluated, so it stays as long as they do."""
    if sql is None:
        yield frame
        return
    view = f"hoodie_ingest_{secrets.token_hex(8)}" if INPUT in sql else INPUT_NAME
    try:
        frame.createTempView(view)
    except AnalysisException as exc:
        raise OptionError(
            f"the session has a temporary view {view}: write {INPUT} in the query for the rows of the source"
        ) from exc
    try:
        yield spark.sql(sql.replace(INPUT, view))
    finally:
        spark.catalog.dropTempView(view)


def _without_bad_keys(frame: DataFrame, fields: Sequence[str]) -> PreparedRound:
    keys = {name: path for name in fields if (path := _path_of(frame.schema, name)) is not None}
    count = frame.count()
    if not keys:
        return PreparedRound(frame, count)
    has_key = reduce(lambda one, other: one | other, [_is_given(path) for path in keys.values()])
    bad = collected(frame.filter(~has_key))
    return (
        PreparedRound(frame.filter(has_key), count - bad.num_rows, keyless(bad, list(keys)))
        if bad.num_rows
        else PreparedRound(frame, count)
    )


def _with_columns_of(frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows with the columns of the schema that they lack, full of null."""
    names = {name.lower() for name in frame.columns}
    missing = [each for each in spark_schema(schema) if each.name.lower() not in names]
    return frame.select("*", *(lit(None).cast(each.dataType).alias(each.name) for each in missing))


def _without_nulls(prepared: PreparedRound, columns: Sequence[str]) -> PreparedRound:
    nulls = [col(quoted(name)).isNull() for name in columns if name in prepared.rows.columns]
    if not nulls:
        return prepared
    has_null = reduce(lambda one, other: one | other, nulls)
    _, bad = without_nulls(collected(prepared.rows.filter(has_null)), columns)
    return PreparedRound(prepared.rows.filter(~has_null), prepared.size - len(bad), [*prepared.bad, *bad])


def _path_of(schema: StructType, name: str) -> str | None:
    """How Spark names a column, or a field of a struct; None: there is none, which the write says."""
    parts = [name] if name in schema.names else name.split(".")
    kind: DataType = schema
    for part in parts:
        if not isinstance(kind, StructType) or part not in kind.names:
            return None
        kind = kind[part].dataType
    return ".".join(quoted(part) for part in parts)


def _is_given(path: str) -> Column:
    """An empty text is no key."""
    return col(path).isNotNull() & (col(path).cast("string") != "")
