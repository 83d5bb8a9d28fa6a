"""DataFrames in and out of a table: what `format("hoodie")` does when `enable` has been called."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, timedelta, timezone, tzinfo
from functools import partial, reduce
from operator import and_
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from hoodie.engine.base import Engine
from hoodie.engine.local import LocalEngine
from hoodie.errors import OptionError, TableExistsError, TableNotFoundError
from hoodie.filegroup.unused_memory import release_unused_memory
from hoodie.keyed import deletes_by_keys_alone, key_types, where_keys
from hoodie.migration.bootstrap import is_bootstrap
from hoodie.model.enums import WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.names import PROPERTIES, name_of
from hoodie.model.nested import nullable_columns
from hoodie.model.results import CommitResult
from hoodie.options.compatibility import check_against
from hoodie.options.defaults_file import load_defaults
from hoodie.options.option import option_name
from hoodie.options.parse import parse_read_options, parse_write_options
from hoodie.options.read import ReadOptions
from hoodie.options.table import TableConfig
from hoodie.options.unsupported import warn
from hoodie.options.values import OverwriteMode, SortMode
from hoodie.options.write import WriteOptions, WriteRequest
from hoodie.read.plan import plan_read
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable
from hoodie.timeline.clock import zone_of
from hoodie.timeline.moments import counted
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext
from hoodie.write.create import create_at
from hoodie.write.keys import key_columns
from hoodie.write.operation_rules import OperationRules
from hoodie.write.plan import WritePlan
from hoodie.write.prepare import require_columns
from hoodie.write.schema import storable
from pyspark_hoodie import bootstrap
from pyspark_hoodie.engine import SparkEngine, zone_name
from pyspark_hoodie.native import plan_frame
from pyspark_hoodie.reach import reached
from pyspark_hoodie.schema import given_schema, spark_schema
from pyspark_hoodie.small_batch import DriverEngine, TooLargeError, is_small
from pyspark_hoodie.where import quoted

log = logging.getLogger("hoodie")

_FIXED_ZONE = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)
APPEND, OVERWRITE, IGNORE, ERROR_IF_EXISTS = "append", "overwrite", "ignore", "errorifexists"
_MODES = {
    **{m: m for m in (APPEND, OVERWRITE, IGNORE, ERROR_IF_EXISTS)},
    "error": ERROR_IF_EXISTS,
    "default": ERROR_IF_EXISTS,
}


@dataclass(frozen=True)
class _SaveResult:
    result: CommitResult
    latest: str | None
    """The newest commit when the write was through: a later one means that the result is not the table's last."""


_written: dict[str, _SaveResult] = {}
"""Results of this process's writes by the table's URI."""


def write(
    df: DataFrame,
    path: str,
    options: Mapping[str, str] | None = None,
    mode: str | None = None,
    partition_by: Sequence[str] = (),
) -> CommitResult | None:
    """Write a DataFrame with Hudi's options; the first write creates the table.

    Args:
        mode: append, overwrite, ignore, or errorifexists (the default, as in Spark). overwrite replaces all rows of the table; the
            partitions that the rows are in with the operation insert_overwrite or hoodie.datasource.overwrite.mode=DYNAMIC, or where
            spark.sql.sources.partitionOverwriteMode of the session is dynamic and the options do not say otherwise.
        partition_by: the partition columns, as the option of that name says them.

    Returns:
        None when mode `ignore` left the table alone.

    Raises:
        TableExistsError, TableNotFoundError, OptionError, KeyFieldError, SchemaError: before any job where that can be.
    """
    storage, others = reached(path, options, df.sparkSession)
    save_mode = mode_of(mode)
    if is_bootstrap(others):
        is_there = storage.exists(PROPERTIES)
        return None if is_there and save_mode == IGNORE else bootstrap.run(df.sparkSession, path, options or {})
    request = parse_request(others, partition_by)
    schema = given_schema(df.schema)
    table = open_for_write(storage, request, schema, mode=save_mode, engine=SparkEngine(df.sparkSession, storage))
    if table is None:
        return None
    unsaid = session_overwrite_mode(df.sparkSession) if save_mode == OVERWRITE else OverwriteMode.STATIC
    return write_records(table, df, schema, in_mode(save_mode, request, table, unsaid=unsaid))


def write_records(
    table: HoodieTable,
    df: DataFrame,
    schema: pa.Schema,
    request: WriteRequest,
    *,
    found_on: Timeline | None = None,
) -> CommitResult:
    """Write to an open table, and remember the result for `last_result`. `found_on`: as the core's `write_found` gives it."""
    write = _by_this_spark(request.write, df.sparkSession)
    if deletes_by_keys_alone(table.config, write.operation, write, schema.names):
        of_found = replace(request, write=request.write.of_found_rows())
        return write_found(table, partial(_with_keys, table, df, schema, write), of_found)
    if needs_no_rows(write):
        return remember(table, table.writer.write_no_rows(write.operation, write))
    if OperationRules.of(write.operation, write).sort is SortMode.GLOBAL_SORT:
        df = _in_key_order(df, table.config)
    engine = SparkEngine(df.sparkSession, table.writer.context.storage)
    result = None
    if is_small(df, write.driver_max_bytes):
        result = _written_here(table, df, schema, write, engine, found_on)
    if result is None:
        result = table.writer.write(
            df, schema, write.operation, write, engine=engine, repeatable=True, found_on=found_on
        )
    release_unused_memory()  # the driver has better use for memory than to keep it for the next batch
    return remember(table, replace(result, jobs=engine.jobs))


def plan_records(table: HoodieTable, df: DataFrame, request: WriteRequest) -> WritePlan | None:
    """What `write_records` would do to the table as it is now; None: nothing."""
    write = _by_this_spark(request.write, df.sparkSession)
    engine = SparkEngine(df.sparkSession, table.writer.context.storage)
    return table.writer.plan(df, given_schema(df.schema), write.operation, write, engine=engine)


class RowsHere(NamedTuple):
    """Rows that this process writes."""

    rows: pa.Table
    only_stored: bool = False
    set_columns: tuple[str, ...] | None = None
    """Both as `WriteOptions` has them; None: the rows are whole."""

    def options(self, write: WriteOptions) -> WriteOptions:
        if self.set_columns is not None:
            write = replace(write, partial=True, set_columns=self.set_columns)
        return replace(write, only_stored=self.only_stored)


def write_found(table: HoodieTable, find: Callable[[], DataFrame | RowsHere], request: WriteRequest) -> CommitResult:
    """Write rows that are found in the table itself; each try finds them anew."""

    def write(found_on: Timeline) -> CommitResult:
        rows = find()
        if isinstance(rows, RowsHere):
            options, engine = rows.options(request.write), LocalEngine()
            reader = rows.rows.to_reader()
            result = table.writer.write(
                reader, reader.schema, options.operation, options, engine=engine, found_on=found_on
            )
            release_unused_memory()
            return remember(table, result)
        return write_records(table, rows, given_schema(rows.schema), request, found_on=found_on)

    return table.writer.write_found(write, request.write.concurrency)


def _with_keys(table: HoodieTable, df: DataFrame, schema: pa.Schema, write: WriteOptions) -> DataFrame:
    """The key columns of the stored rows with these keys, in whatever partition they are."""
    context, spark = table.writer.context, df.sparkSession
    kinds = key_types(context, schema)
    keys = df.select([col(quoted(name)) for name in kinds.names])
    where = None
    if is_small(keys, write.driver_max_bytes):
        with suppress(TooLargeError):
            engine = DriverEngine(SparkEngine(spark, context.storage))
            batches = engine.stage(keys, lambda _, rows: rows, label="read the keys to delete")
            where = where_keys(context, pa.Table.from_batches(batches, given_schema(keys.schema)), write)
    plan = table.scan(key_columns(table.config), where).plan
    rows = plan_frame(spark, context, plan, where=where)
    if where is not None:
        return rows
    types = spark_schema(kinds)
    distinct_keys = keys.select(
        [col(quoted(field.name)).cast(field.dataType).alias(field.name) for field in types]
    ).distinct()
    same = reduce(and_, (rows[quoted(name)].eqNullSafe(distinct_keys[quoted(name)]) for name in kinds.names))
    return rows.join(distinct_keys, same, "left_semi")


def _written_here(
    table: HoodieTable,
    df: DataFrame,
    schema: pa.Schema,
    write: WriteOptions,
    engine: SparkEngine,
    found_on: Timeline | None,
) -> CommitResult | None:
    """Write a small batch in this process; None where it turned out not to be small, and nothing was done."""
    try:
        return table.writer.write(df, schema, write.operation, write, engine=DriverEngine(engine), found_on=found_on)
    except TooLargeError:
        return None


def _by_this_spark(write: WriteOptions, spark: SparkSession) -> WriteOptions:
    """A registration in a Hive metastore names the Spark that wrote."""
    if not write.hive_sync.enabled or write.hive_sync.spark_version:
        return write
    return replace(write, hive_sync=replace(write.hive_sync, spark_version=spark.version))


def needs_no_rows(write: WriteOptions) -> bool:
    """Whether the options say all of the write: partitions to delete. The DataFrame is not looked at then, as in Apache Hudi."""
    return write.operation is WriteOperation.DELETE_PARTITION and write.partitions_to_delete is not None


def _in_key_order(df: DataFrame, config: TableConfig) -> DataFrame:
    """The rows so that each of Spark's partitions has a range of keys: as texts, for that is what keys are when they are compared."""
    fields = dict.fromkeys((*config.partition_fields, *config.record_key_fields))
    return df.orderBy(*[col(".".join(map(quoted, name.split(".")))).cast("string") for name in fields])


def remember(table: HoodieTable, result: CommitResult) -> CommitResult:
    """Keep the result for `last_result`, and give it back."""
    latest = table.timeline.latest_commit
    _written[table.uri] = _SaveResult(result, latest.time if latest else None)
    return result


def last_result(path: str, options: Mapping[str, str] | None = None) -> CommitResult:
    """What the last write to the table did: as this process saw it, else as the timeline tells it.

    Raises:
        TableNotFoundError: there is no table. OptionError: nothing was written to it yet.
    """
    table = open_table(open_storage(path, options))
    latest = table.timeline.latest_commit
    mine = _written.get(table.uri)
    if mine is not None and mine.latest == (latest.time if latest else None):
        return mine.result
    writes = [result for result in table.history() if result.operation is not WriteOperation.COMPACT]
    if not writes:
        raise OptionError(f"nothing has been written to table {table.uri} yet: write rows first")
    return writes[-1]


def open_table(storage: Storage, spark: SparkSession | None = None) -> HoodieTable:
    """An open table whose tasks run on the session, or in this process without one; raises TableNotFoundError."""
    return HoodieTable(TableContext.open(storage, SparkEngine(spark, storage) if spark else LocalEngine()))


def parse_request(options: Mapping[str, str], partition_by: Sequence[str] = ()) -> WriteRequest:
    """The options of a write, with `partitionBy` among them; what is not needed here is named in one warning."""
    request = parse_write_options(options, defaults=load_defaults())
    if partition_by:
        fields = request.table.partition_fields
        if fields is not None and fields != tuple(partition_by):
            raise OptionError(
                f"partitionBy({', '.join(map(repr, partition_by))}) contradicts "
                f"hoodie.datasource.write.partitionpath.field={','.join(fields)!r}: drop one of them"
            )
        request = replace(request, table=replace(request.table, partition_fields=tuple(partition_by)))
    warn(request.ignored, request.not_done)
    return request


def mode_of(text: str | None) -> str:
    """Raises OptionError for what is no save mode."""
    mode = _MODES.get((text or ERROR_IF_EXISTS).lower())
    if mode is None:
        raise OptionError(f"save mode {text!r} is none of append, overwrite, ignore, error, errorifexists")
    return mode


def session_overwrite_mode(spark: SparkSession) -> OverwriteMode:
    """What mode("overwrite") replaces in this session, for writes that do not say it."""
    mode = spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static") or ""
    return OverwriteMode.DYNAMIC if mode.upper() == OverwriteMode.DYNAMIC else OverwriteMode.STATIC


def session_zone(spark: SparkSession) -> tzinfo | None:
    """The session's time zone: a region, or an offset as `+08:00`, `GMT+8`, `Z`. None: not known to Python."""
    name = zone_name(spark)
    fixed = _FIXED_ZONE.fullmatch(name)
    if fixed:
        sign, hours, minutes = fixed.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-offset if sign == "-" else offset)
    try:
        return UTC if name == "Z" else ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return None


def in_mode(
    mode: str, request: WriteRequest, table: HoodieTable, *, unsaid: OverwriteMode = OverwriteMode.STATIC
) -> WriteRequest:
    """The request with what the save mode says about the operation on a table that has commits.

    `unsaid`: what is replaced when the options do not say it. A table without partitions is replaced as a whole, as Spark's own
    formats do it.

    Apache Hudi deletes the table and makes it anew when a write that is no overwrite by its operation has mode overwrite.
    Here the rows are replaced, so that readers, and what can be undone, stay.

    Raises:
        OptionError: the mode and the operation contradict each other.
    """
    write = request.write
    overwrites = write.operation in (WriteOperation.INSERT_OVERWRITE, WriteOperation.INSERT_OVERWRITE_TABLE)
    if mode != OVERWRITE or overwrites or not table.timeline.commits:
        return request
    if write.operation in (WriteOperation.DELETE, WriteOperation.DELETE_PARTITION):
        raise OptionError(
            f'operation {write.operation.value.lower()} deletes, mode("overwrite") replaces: use mode("append") to delete'
        )
    static = (write.overwrite_mode or unsaid) is OverwriteMode.STATIC or not table.config.partition_fields
    operation = WriteOperation.INSERT_OVERWRITE_TABLE if static else WriteOperation.INSERT_OVERWRITE
    # Rows of one key are reduced to one where the operation that was asked for would do that.
    return replace(request, write=replace(write, operation=operation, combine_before_insert=write.combine))


def open_for_write(
    storage: Storage, request: WriteRequest, schema: pa.Schema, *, mode: str, engine: Engine
) -> HoodieTable | None:
    """The table to write to, created when it is not there; None when mode `ignore` says to leave it alone.

    A table without commits counts as empty in every mode: a first write that failed can be run again as it was.
    """
    try:
        table = HoodieTable(TableContext.open(storage, engine))
    except TableNotFoundError:
        if request.write.operation in (WriteOperation.DELETE, WriteOperation.DELETE_PARTITION):
            raise
        _create(storage, request, schema)
        table = HoodieTable(TableContext.open(storage, engine))
    check_against(table.config, request.table)
    if mode in (APPEND, OVERWRITE) or not table.timeline.commits:
        return table
    if mode == IGNORE:
        return None
    raise TableExistsError(
        f'there is a table at {table.uri} already: use mode("append") to write to it, or another path'
    )


def _create(storage: Storage, request: WriteRequest, schema: pa.Schema) -> None:
    """Create the table if its columns are in the data. Of several first writers one creates, the others join it."""
    create_request = request.to_create()
    names = storable(schema).names
    name = create_request.name or name_of(storage.uri.rstrip("/"))
    for fields, what in (
        (create_request.record_key_fields, "record key"),
        (create_request.partition_columns, "partition"),
        (create_request.ordering_fields, "ordering"),
    ):
        fix = "add the column, or name another one"
        require_columns(names, fields or (), what=what, table=name, fix=fix, says="the option has")
    try:
        # An empty DataFrame commits nothing, and its columns are kept all the same.
        create_at(storage, create_request, schema=nullable_columns(schema), concurrency=request.write.concurrency)
    except TableExistsError:
        return
    if not create_request.record_key_fields:
        log.warning(
            "table %s was created without a record key: every row gets a key of its own, and upserts add rows. If rows have a "
            "key, drop the table and name its column: hoodie.datasource.write.recordkey.field",
            storage.uri,
        )


def read(spark: SparkSession, path: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """The rows of a query in Hudi's options, meta columns first, pinned to the snapshot of this moment.

    Raises:
        TableNotFoundError, OptionError, InstantNotFoundError: before any job.
    """
    storage, others = reached(path, options, spark)
    context = TableContext.open(storage, SparkEngine(spark, storage))
    return read_context(spark, context, parse_query(context, others, spark))


def bytes_of(spark: SparkSession, path: str, options: Mapping[str, str]) -> int:
    """What a query reads, about."""
    storage, others = reached(path, options, spark)
    context = TableContext.open(storage, LocalEngine())
    return sum(
        task.size_bytes for task in plan_read(context, parse_query(context, others, spark), meta_columns=True).tasks
    )


def parse_query(context: TableContext, options: Mapping[str, str], spark: SparkSession | None = None) -> ReadOptions:
    """The options of a read; instants with an offset are taken to the table's time zone. None: the session is not seen."""
    moments = {option_name(ReadOptions, each) for each in ("as_of", "begin", "end")}
    option_texts = {
        name: _of_instant(context, value, name) if name.lower() in moments else value for name, value in options.items()
    }
    result = parse_read_options(
        option_texts,
        defaults=load_defaults(),
        zone=zone_of(context.config.timezone),
        session_zone=None if spark is None else session_zone(spark),
    )
    warn(result.ignored)
    return result


def _of_instant(context: TableContext, value: str, name: str) -> str:
    """-1 as the newest commit, and so on; any other text as it is."""
    position = counted(value, lambda: context.snapshot().timeline.commits, name=name)
    return position.time if isinstance(position, Instant) else value


def read_context(spark: SparkSession, context: TableContext, options: ReadOptions) -> DataFrame:
    """The DataFrame of parsed options."""
    plan = plan_read(context, options, meta_columns=context.config.populate_meta_fields)
    return plan_frame(spark, context, plan, where=options.where)
