"""DataFrames in and out of a table: what `format("hoodie")` does when `enable` has been called."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.engine.base import Engine
from hoodie.engine.local import LocalEngine
from hoodie.errors import OptionError, TableExistsError, TableNotFoundError
from hoodie.model.enums import WriteOperation
from hoodie.model.results import CommitResult
from hoodie.options.parse import load_defaults, parse_read_options, parse_write_options
from hoodie.options.read import ReadOptions
from hoodie.options.table import check_against
from hoodie.options.write import WriteRequest
from hoodie.read.plan import plan_read
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable, create_at
from hoodie.timeline.clock import zone_of
from hoodie.txn.context import TableContext
from hoodie.write.prepare import require_columns
from hoodie.write.schema import storable
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.native import plan_frame
from pyspark_hoodie.schema import arrow_schema

log = logging.getLogger("hoodie")

APPEND, OVERWRITE, IGNORE, ERROR_IF_EXISTS = "append", "overwrite", "ignore", "errorifexists"
_MODES = {
    **{m: m for m in (APPEND, OVERWRITE, IGNORE, ERROR_IF_EXISTS)},
    "error": ERROR_IF_EXISTS,
    "default": ERROR_IF_EXISTS,
}


@dataclass(frozen=True)
class _Written:
    result: CommitResult
    latest: str | None
    """The newest commit when the write was through: a later one means that the result is not the table's last."""


_written: dict[str, _Written] = {}
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
        mode: append, overwrite (only where there are no rows yet), ignore, or errorifexists (the default, as in Spark).
        partition_by: the partition columns, as the option of that name says them.

    Returns:
        None when mode `ignore` left the table alone.

    Raises:
        TableExistsError, TableNotFoundError, OptionError, KeyFieldError, SchemaError: before any job where that can be.
    """
    storage = open_storage(path)
    request = parse_request(options or {}, partition_by)
    schema = arrow_schema(df.schema)
    table = open_for_write(storage, request, schema, mode=mode_of(mode), engine=SparkEngine(df.sparkSession))
    return None if table is None else write_records(table, df, schema, request)


def write_records(table: HoodieTable, df: DataFrame, schema: pa.Schema, request: WriteRequest) -> CommitResult:
    """Write to an open table, and remember the result for `last_result`."""
    result = table.write_records(
        df, schema, request.write.operation, request.write, engine=SparkEngine(df.sparkSession), in_memory=False
    )
    latest = table.timeline.latest_commit
    _written[table.uri] = _Written(result, latest.time if latest else None)
    return result


def last_result(path: str) -> CommitResult:
    """What the last write to the table did: as this process saw it, else as the timeline tells it.

    Raises:
        TableNotFoundError: there is no table. OptionError: nothing was written to it yet.
    """
    table = open_table(open_storage(path))
    latest = table.timeline.latest_commit
    mine = _written.get(table.uri)
    if mine is not None and mine.latest == (latest.time if latest else None):
        return mine.result
    writes = [result for result in table.history() if result.operation is not WriteOperation.COMPACT]
    if not writes:
        raise OptionError(f"nothing has been written to table {table.uri} yet")
    return writes[-1]


def open_table(storage: Storage, spark: SparkSession | None = None) -> HoodieTable:
    """An open table whose tasks run on the session, or in this process without one; raises TableNotFoundError."""
    return HoodieTable(TableContext.open(storage, SparkEngine(spark) if spark else LocalEngine()))


def parse_request(options: Mapping[str, str], partition_by: Sequence[str] = ()) -> WriteRequest:
    """The options of a write, with `partitionBy` among them; what is not needed here is named in one warning."""
    request = parse_write_options(options, defaults=load_defaults())
    if partition_by:
        named = request.table.partition_fields
        if named is not None and named != tuple(partition_by):
            raise OptionError(
                f"partitionBy({', '.join(map(repr, partition_by))}) contradicts "
                f"hoodie.datasource.write.partitionpath.field={','.join(named)!r}: drop one of them"
            )
        request = replace(request, table=replace(request.table, partition_fields=tuple(partition_by)))
    warn_ignored(request.ignored)
    return request


def warn_ignored(ignored: Sequence[str]) -> None:
    """One line for all options of Apache Hudi that have no effect here; names only, values may be secrets."""
    if ignored:
        log.warning("options of Apache Hudi that have no effect here: %s", ", ".join(ignored))


def mode_of(text: str | None) -> str:
    """Raises OptionError for what is no save mode."""
    mode = _MODES.get((text or ERROR_IF_EXISTS).lower())
    if mode is None:
        raise OptionError(f"save mode {text!r} is none of append, overwrite, ignore, error, errorifexists")
    return mode


def open_for_write(
    storage: Storage, request: WriteRequest, schema: pa.Schema, *, mode: str, engine: Engine
) -> HoodieTable | None:
    """The table to write to, created when it is not there; None when mode `ignore` says to leave it alone.

    A table without commits counts as empty in every mode: a first write that failed can be run again as it was.
    """
    try:
        table = HoodieTable(TableContext.open(storage, engine))
    except TableNotFoundError:
        if request.write.operation is WriteOperation.DELETE:
            raise
        _create(storage, request, schema)
        table = HoodieTable(TableContext.open(storage, engine))
    check_against(table.config, request.table)
    if mode == APPEND or not table.timeline.commits:
        return table
    if mode == IGNORE:
        return None
    if mode == OVERWRITE:
        raise OptionError(
            f'mode("overwrite") would replace all rows of table {table.uri}, which this release does not do: delete the '
            'folder first if that is meant, or use mode("append") to upsert'
        )
    raise TableExistsError(
        f'there is a table at {table.uri} already: use mode("append") to write to it, or another path'
    )


def _create(storage: Storage, request: WriteRequest, schema: pa.Schema) -> None:
    """Create the table if its columns are in the data. Of several first writers one creates, the others join it."""
    asked = request.to_create()
    names = storable(schema).names
    name = asked.name or storage.uri.rstrip("/").rpartition("/")[2]
    for fields, what in (
        (asked.record_key_fields, "record key"),
        (asked.partition_fields, "partition"),
        (asked.ordering_fields, "ordering"),
    ):
        require_columns(names, fields or (), what=what, table=name)
    try:
        create_at(storage, asked)
    except TableExistsError:
        return


def read(spark: SparkSession, path: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """The rows of a query in Hudi's options, meta columns first, pinned to the snapshot of this moment.

    Raises:
        TableNotFoundError, OptionError, InstantNotFoundError: before any job.
    """
    context = TableContext.open(open_storage(path), SparkEngine(spark))
    return read_context(spark, context, parse_query(context, options or {}))


def parse_query(context: TableContext, options: Mapping[str, str]) -> ReadOptions:
    """The options of a read; instants with an offset are taken to the table's time zone."""
    zone = zone_of(context.config.timezone) or datetime.now(UTC).astimezone().tzinfo or UTC
    found = parse_read_options(options, defaults=load_defaults(), zone=zone)
    warn_ignored(found.ignored)
    return found


def read_context(spark: SparkSession, context: TableContext, options: ReadOptions) -> DataFrame:
    """The DataFrame of parsed options."""
    plan = plan_read(context, options, meta_columns=True)
    return plan_frame(spark, context, plan, where=options.where)
