"""Streams out of a table: the commits after the checkpoint, batch by batch, for Spark's Python data source API.

An offset is the position of a commit (`CommitResult.position`): what lies in (start, end] is an incremental query, whose
plan, rows and errors are those of `HoodieTable.changes`. Where a stream begins and how much a batch takes: docs/STREAMING.md.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from hoodie.engine.late_pandas import put_pandas_off
from hoodie.engine.local import LocalEngine
from hoodie.errors import OptionError
from hoodie.filegroup.conform import conform
from hoodie.filegroup.run import run_read
from hoodie.model.enums import ChangeFormat, QueryType
from hoodie.model.instant import InstantRange, InstantTime
from hoodie.model.plans import ReadPlan
from hoodie.options.moments import BEGINNING, parse_begin_option
from hoodie.options.option import key_of, option_name
from hoodie.options.read import ReadOptions, StreamReadOptions
from hoodie.read.plan import plan_read
from hoodie.timeline.clock import zone_of
from hoodie.timeline.moments import refuse_undone
from hoodie.view.context import Snapshot, TableContext
from pyspark_hoodie.dataframe import parse_query
from pyspark_hoodie.engine import reading_groups
from pyspark_hoodie.reach import reached
from pyspark_hoodie.schema import arrow_schema, selected_schema, spark_schema
from pyspark_hoodie.short_errors import short_errors

VERSION = 1
"""Of the JSON of an offset."""
_LATEST = "latest"
_API: Any = import_module("pyspark.sql.streaming.datasource") if find_spec("pyspark.sql.streaming.datasource") else None
"""Read limits and available-now: there from Spark 4.2 on. Before, a batch's start is known from the batch before it only."""
_AvailableNow: Any = object if _API is None else _API.SupportsTriggerAvailableNow


class CommitStream(DataSourceStreamReader, _AvailableNow):  # type: ignore[misc]
    """Lives in one worker of the driver as long as the query runs; `read` runs in the tasks on what a partition holds."""

    def __init__(self, path: str, options: Mapping[str, str], schema: StructType) -> None:
        self._path = path
        self._storage, options = reached(path, options)
        self._context = TableContext.open(self._storage, LocalEngine())
        self._query = stream_query(self._context, options)
        self._stream: StreamReadOptions = self._query.stream
        own_schema = spark_schema(self._plan(self._query).output)
        self._names = tuple(selected_schema(own_schema, schema, path=path, earlier=True).names)
        # Spark compares the schema of the batches with the one it asked for, nullability included.
        self._schema = arrow_schema(schema)
        self._initial: InstantTime | None = None
        self._pinned = False
        self._start: InstantTime | None = None
        self._target: InstantTime | None = None
        self._newest: str | None = None

    # -- offsets -----------------------------------------------------------------------------------------------------

    @short_errors
    def initialOffset(self) -> dict[str, Any]:
        """The same as long as this object lives; Spark asks again for the first batch."""
        if self._initial is None:
            start = self._stream.start.strip()
            if start.lower() == _LATEST:
                self._initial = _limit(self._context.snapshot()) or BEGINNING
                # Spark does not write an initial offset down, but the end of each batch before it runs it: an empty first
                # batch makes `latest` durable. Otherwise its repetition would begin later than it did.
                self._pinned = True
            else:
                zone = zone_of(self._context.config.timezone)
                self._initial = parse_begin_option(start, name=option_name(StreamReadOptions, "start"), zone=zone)
            self._start = self._initial
        return format_offset(self._initial)

    @short_errors
    def latestOffset(self, *args: Any) -> dict[str, Any]:
        """Where the next batch ends. Spark gives its start and a limit from 4.2 on, nothing before."""
        start = parse_offset(args[0], path=self._path) if args else self._start
        bounded = not (len(args) > 1 and _API is not None and isinstance(args[1], _API.ReadAllAvailable))
        if self._pinned and start == self._initial:
            self._pinned = False
            end = start
        else:
            end = self._next(start, bounded=bounded)
        self._start = end
        return format_offset(end or BEGINNING)

    def getDefaultReadLimit(self) -> Any:
        """Says that there are bounds; Spark has no limit by commits, and these are applied in `latestOffset`."""
        if self._stream.max_commits is not None:
            return _API.ReadMaxFiles(self._stream.max_commits)
        if self._stream.max_bytes is not None:
            return _API.ReadMaxBytes(self._stream.max_bytes)
        return _API.ReadAllAvailable()

    @short_errors
    def prepareForTriggerAvailableNow(self) -> None:
        self._target = _limit(self._context.snapshot()) or BEGINNING

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None if self._newest is None else format_offset(self._newest)

    def _next(self, start: InstantTime | None, *, bounded: bool) -> InstantTime | None:
        snapshot = self._context.snapshot()
        self._newest = limit = _limit(snapshot)
        if limit is not None and self._target is not None:
            limit = min(limit, self._target)
        # Else a stream beyond the restored commit would wait in silence until others have passed it.
        refuse_undone(snapshot.active, snapshot.timeline, start, table=self._context.storage.uri)
        if limit is None or (start is not None and limit <= start):
            return start
        # Of an unknown start (an older Spark went on from its checkpoint) no part can be told.
        return limit if start is None or not bounded else bounded_end(snapshot, start, limit, self._stream)

    # -- rows --------------------------------------------------------------------------------------------------------

    @short_errors
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Of the file slices that commits in (start, end] wrote to."""
        begin, until = (parse_offset(each, path=self._path) for each in (start, end))
        # A repeated first batch of `latest` begins later than it ends: it was empty.
        if begin >= until:
            return []
        plan = self._plan(replace(self._query, begin=begin, end=until))
        context = pickle.dumps(plan.context)
        tasks = [replace(task, columns=self._names) for task in plan.tasks]
        return [InputPartition((context, group)) for group in reading_groups(tasks, storage=self._storage)]

    def _plan(self, query: ReadOptions) -> ReadPlan:
        return plan_read(self._context, query, meta_columns=self._context.config.populate_meta_fields)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None or partition.value is None:  # what Spark makes of no partitions, before 4.2 and since
            return
        put_pandas_off()
        context, group = partition.value
        for task in group:
            for batch in run_read(self._storage, pickle.loads(context), task):
                yield conform(batch, self._schema, path="a file slice")


def stream_query(context: TableContext, options: Mapping[str, str]) -> ReadOptions:
    """The incremental query of a stream, over no commit yet.

    Raises:
        OptionError: an option that says where a single query begins, ends or looks; a change feed that is not asked for as
            an incremental query, as in Apache Hudi.
    """
    names = {key.lower() for key in options}
    for key in (key_of(ReadOptions, each) for each in ("begin", "end", "as_of")):
        if any(name.lower() in names for name in key.names):
            raise OptionError(
                f"option {key.name} does not go with a stream, which goes on from its checkpoint; where it begins without one says "
                f"{option_name(StreamReadOptions, 'start')}"
            )
    here = _limit(context.snapshot()) or BEGINNING
    query_options = parse_query(context, with_begin(options, here))
    if query_options.query is QueryType.READ_OPTIMIZED:
        raise OptionError("a stream reads what commits changed: query type read_optimized does not go with it")
    if query_options.query is QueryType.SNAPSHOT and query_options.changes is not ChangeFormat.LATEST_STATE:
        changes, query = (option_name(ReadOptions, each) for each in ("changes", "query"))
        raise OptionError(f"{changes}={query_options.changes} goes with {query}=incremental only: set that as well")
    return replace(query_options, query=QueryType.INCREMENTAL, begin=here, end=None if here == BEGINNING else here)


def with_begin(options: Mapping[str, str], position: str) -> dict[str, str]:
    """The options with a begin where an incremental query has none: those of a stream do not say it."""
    by_lower_name = {key.lower(): value for key, value in options.items()}
    incremental = any(
        by_lower_name.get(name.lower(), "").lower() == QueryType.INCREMENTAL
        for name in key_of(ReadOptions, "query").names
    )
    if not incremental or option_name(ReadOptions, "begin").lower() in by_lower_name:
        return dict(options)
    return {**options, option_name(ReadOptions, "begin"): position}


def source_plan_options(context: TableContext, options: Mapping[str, str]) -> dict[str, str]:
    """Options whose plan has the schema that a read or a stream with `options` gives: Spark does not say which of them it is."""
    return with_begin(options, _limit(context.snapshot()) or BEGINNING)


def bounded_end(snapshot: Snapshot, start: InstantTime, limit: InstantTime, bounds: StreamReadOptions) -> InstantTime:
    """Where a batch from `start` ends: at the commit by which a bound is reached, at the latest at `limit`.

    Compactions bring no rows and do not count. Where commits at the beginning were archived, or their files cleaned, a batch
    from the beginning is the whole table.
    """
    if bounds.max_commits is None and bounds.max_bytes is None:
        return limit
    timeline = snapshot.timeline
    begin = start if start.strip("0") else None
    if begin is None and (snapshot.archived.files or snapshot.active.earliest_kept(timeline)):
        return limit
    commits, size = 0, 0
    end = None
    for instant in sorted(timeline.completed_in(InstantRange(begin, limit)), key=lambda i: i.position):
        if instant.time not in timeline.compactions | timeline.log_compactions:
            if bounds.max_commits is not None and commits == bounds.max_commits:
                return end or limit
            if bounds.max_bytes is not None:
                size += sum(stat.total_bytes for stat in snapshot.active.read_commit(instant).stats())
                if commits and size > bounds.max_bytes:
                    return end or limit
            commits += 1
        end = instant.position
    return limit


def _limit(snapshot: Snapshot) -> InstantTime | None:
    """How far a batch may go: not beyond a write in progress that may end below newer commits."""
    return snapshot.timeline.readable_until(snapshot.pending_writes)


def format_offset(position: str) -> dict[str, Any]:
    return {"version": VERSION, "instant": position}


def parse_offset(offset: Mapping[str, Any], *, path: str) -> InstantTime:
    """The position in an offset.

    Raises:
        OptionError: it is none of this release's.
    """
    if offset.get("version") != VERSION or not isinstance(offset.get("instant"), str):
        raise OptionError(
            f"the checkpoint of this stream from table {path} has offset {dict(offset)}, which this release does not know: it was "
            "written by a newer release, or the checkpoint belongs to another source"
        )
    return InstantTime(offset["instant"])
