"""The facade: one short method per operation. It orders the steps; the rooms below do them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import hoodie.read
import hoodie.write
from hoodie.consumers import TableConsumers
from hoodie.engine.base import Engine
from hoodie.engine.local import LocalEngine
from hoodie.errors import (
    CorruptFileError,
    KeyFieldError,
    OptionError,
    TableNotFoundError,
    UnsupportedTableError,
)
from hoodie.maintenance.table_services import TableServices
from hoodie.model.enums import ChangeFormat, QueryType, TableType, WriteOperation
from hoodie.model.html import html_pairs
from hoodie.model.late import once
from hoodie.model.results import CommitResult
from hoodie.model.tuning import Tuning
from hoodie.options.arguments import (
    parse_columns,
    parse_images,
    parse_names,
    parse_operation,
    parse_options,
    parse_query,
    parse_table_type,
)
from hoodie.options.compatibility import check_against, check_operation
from hoodie.options.defaults_file import load_defaults
from hoodie.options.moments import Moment, parse_begin_option, parse_instant_option, parse_position_option
from hoodie.options.parse import parse_view_options, parse_write_options
from hoodie.options.read import ReadOptions
from hoodie.options.registry import remembered_names
from hoodie.options.table_options import TableOptions
from hoodie.options.unsupported import warn
from hoodie.options.write import WriteOptions, WriteRequest
from hoodie.statements import Statements
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache
from hoodie.storage.refusals import plain_errors, with_hoodie_errors
from hoodie.storage.uri import open_storage
from hoodie.timeline.clock import zone_of
from hoodie.timeline.moments import counted
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext, load_config

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    import hoodie.keyed
    import hoodie.read.dataset
    import hoodie.read.plan
    import hoodie.read.scan
    import hoodie.read.where
    import hoodie.write.create
    import hoodie.write.inputs
    import hoodie.write.keys
    import hoodie.write.schema_input
    import hoodie.writer
    from hoodie.read.dataset import TableDataset
    from hoodie.read.pushdown import NewScan
    from hoodie.read.scan import Scan
    from hoodie.read.where import Where
    from hoodie.write.inputs import Rows
    from hoodie.write.plan import WritePlan
    from hoodie.write.schema_input import SchemaLike
    from hoodie.writer import TableWriter


@with_hoodie_errors
class HoodieTable(Statements, TableServices, TableConsumers["Scan"]):
    """An open table: `open_table` and `create_table` give one.

    Every method works on the newest state of the table. The object holds no rows and no locks, may be kept for as long as you
    like, and may be used by several threads.
    """

    def __init__(self, context: TableContext, options: Mapping[str, str] | None = None) -> None:
        if not isinstance(context, TableContext):
            raise OptionError(
                f"HoodieTable({context!r}) opens nothing: use hoodie.open_table(path) or hoodie.create_table(path, …)"
            )
        self._opened = context
        self._options = dict(parse_options(options))
        if options:
            self._request(None)  # what is wrong with them is said here, not at the first write
        self._opened = context.with_view(parse_view_options(self._options, defaults=load_defaults()))

    def __dir__(self) -> list[str]:
        """What completion shows: not what the doors to Spark and the command line call."""
        return [name for name in super().__dir__() if name != "writer"]

    @once
    def writer(self) -> TableWriter:
        """Writes what was parsed already, for the doors to Spark and the command line."""
        return hoodie.writer.TableWriter(self._opened)

    @property
    def _context(self) -> TableContext:
        writer: TableWriter | None = self.__dict__.get("writer")
        return self._opened if writer is None else writer.context  # which follows what writes learn

    def __repr__(self) -> str:
        return f"<HoodieTable {self.uri}: {self.config.table_type.value}, version {int(self.config.version)}>"

    def _repr_html_(self) -> str:
        # The configuration only: a prompt must not wait for storage.
        config = self.config
        return html_pairs(
            f"hoodie table {config.name}",
            [
                ("path", self.uri),
                ("type", f"{config.table_type.value}, version {int(config.version)}"),
                ("record key", ", ".join(config.record_key_fields) or "(generated)"),
                ("partitioned by", ", ".join(config.partition_fields) or "(not partitioned)"),
                ("ordering", ", ".join(config.ordering_fields) or "(none: the later write wins)"),
            ],
        )

    # -- writing -----------------------------------------------------------------------------------------------------

    def _keys(self, data: Rows | Collection[object]) -> Rows:
        return hoodie.keyed.keys_of(self.config, data)  # type: ignore[no-any-return]

    def _delete_by(self, where: Where | None, options: Mapping[str, str] | None) -> CommitResult:
        return self._delete_where(where, self._request_for(WriteOperation.DELETE, options).write)

    def _delete_where(self, where: Where | None, options: WriteOptions) -> CommitResult:
        columns = hoodie.write.keys.key_columns(self.config)
        return self._write_found(lambda: self.scan(columns, where).to_reader(), WriteOperation.DELETE, options)

    def _write_found(
        self, find: Callable[[], pa.RecordBatchReader], operation: WriteOperation, options: WriteOptions
    ) -> CommitResult:
        """Write rows that are made of stored ones; each try makes them anew, of the newest state."""

        def write(found_on: Timeline) -> CommitResult:
            rows = find()
            engine = self._context.engine
            return self.writer.write(rows, rows.schema, operation, options, engine=engine, found_on=found_on)

        return self.writer.write_found(write, options.concurrency)

    def _pinned(self, *, stored: bool = False) -> NewScan:
        snapshot = hoodie.read.plan.pin_snapshot(self._context)

        def scan(columns: Sequence[str] | None, where: Where | None) -> Scan:
            options = ReadOptions(where=where, columns=parse_columns(columns))
            return hoodie.read.scan.Scan(self._context, options, snapshot=snapshot, stored=stored)

        return scan

    def _plan_of(
        self, rows: pa.RecordBatchReader, operation: WriteOperation, options: WriteOptions
    ) -> WritePlan | None:
        return self.writer.plan(rows, rows.schema, operation, options, engine=self._context.engine)

    def _delete_partitions(self, paths: tuple[str, ...], options: Mapping[str, str] | None) -> CommitResult:
        write = self._request_for(WriteOperation.DELETE_PARTITION, options).write
        return self.writer.write_no_rows(WriteOperation.DELETE_PARTITION, replace(write, partitions_to_delete=paths))

    def write(
        self, data: Rows, operation: str | WriteOperation, options: Mapping[str, str] | None = None
    ) -> CommitResult:
        """Write with any operation, as `upsert`, `insert` and the others do, for programs that choose at run time.

        Args:
            data: the rows, as `upsert` takes them.
            operation: which write: "upsert", "insert" and so on, in any case, or `WriteOperation.UPSERT`.
            options: Hudi's write options, for this write.

        Returns:
            What the write did.
        """
        return self._write(data, parse_operation(operation), options)

    def _write(self, data: Rows, operation: WriteOperation, options: Mapping[str, str] | None) -> CommitResult:
        request = self._request_for(operation, options)
        reader = hoodie.write.inputs.reader_of(data, lambda: self.schema)
        columns, index = hoodie.write.keys.key_columns(self.config), hoodie.write.inputs.index_names(data)
        hidden = [name for name in index if name in columns and name not in reader.schema.names]
        if hidden:
            raise KeyFieldError(
                f"column {hidden[0]!r} of table {self.config.name!r} is the index of the pandas frame, and an index is not written: "
                "give df.reset_index()"
            )
        if hoodie.keyed.deletes_by_keys_alone(self.config, operation, request.write, reader.schema.names):
            keys = hoodie.keyed.read_keys(self.config, reader)
            return self._delete_where(
                hoodie.keyed.where_keys(self._context, keys, request.write), request.write.of_found_rows()
            )
        return self.writer.write(reader, reader.schema, operation, request.write, engine=self._context.engine)

    def _request_for(self, operation: WriteOperation, options: Mapping[str, str] | None) -> WriteRequest:
        request = self._request(options)
        warn(request.ignored, request.not_done)
        check_operation(operation, request.write.operation, parse_options(options))
        return request

    # -- reading -----------------------------------------------------------------------------------------------------

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        query: str = "snapshot",
        as_of: Moment | None = None,
        meta_columns: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> Scan:
        """Query the rows of the table, as they are now or were at an earlier moment.

        Nothing is read before a method of the result asks for rows. The result is pinned: commits that come later are not in it.

        Args:
            columns: which columns, in this order; None gives all. An empty list gives rows without columns, to be counted.
            where: rows to read: SQL-like text such as "fare > 3 and city = 'rome'" (docs/FILTERS.md), a pyarrow expression, or a
                list of conditions that all hold, such as [("fare", ">", 3), ("city", "=", "rome")].
            query: "snapshot" gives the newest rows; "read_optimized" reads base files only, without rows that are still in log files.
            as_of: an earlier moment: an instant, a datetime, a date, the result of a commit, a savepoint, -1 for the newest commit,
                or text such as "2026-01-31 12:00" or "2 hours ago". Times without a zone are in that of the table (UTC, unless its
                properties say LOCAL).
            meta_columns: put the five `_hoodie_` columns in front.
            params: values for the parameters of a text: `where="fare > :low", params={"low": 3}`.

        Returns:
            A query that has not run yet: `to_arrow()`, `to_pandas()`, `to_polars()`, `to_batches()` and `count()` run it.

        Raises:
            InstantNotFoundError: `as_of` lies before the first commit, or the files of that moment were cleaned.
            OptionError: a column that does not exist; a condition or a moment that cannot be understood.

        Example:
            >>> table.scan(columns=["city", "fare"], where="fare > 100").to_pandas()
            >>> table.scan(as_of="yesterday").count()
        """
        kind = parse_query(query)
        as_of = self._counted(as_of, "as_of")
        at = None if as_of is None else parse_instant_option(as_of, name="as_of", zone=self._zone())
        condition = hoodie.read.where.bound(where, params)
        options = ReadOptions(query=kind, as_of=at, where=condition, columns=parse_columns(columns))
        return hoodie.read.scan.Scan(self._context, options, meta_columns=meta_columns)

    def lookup(
        self, keys: Rows | Collection[object], columns: Sequence[str] | None = None, *, meta_columns: bool = False
    ) -> Scan:
        """Query the rows with these record keys, in all partitions.

        For up to 2,000 keys, bounds, key maps and bloom filters exclude files without them. In the other files it reads the key
        column first, and then the other columns of row groups that have one of the keys; on a local disk, only the pages that have
        one, of the key column too if the file has a key map (`hoodie.python.parquet.key.map`).

        Args:
            keys: the key columns, in any form that `upsert` takes, or a list of bare keys.
            columns, meta_columns: as `scan` has them.

        Returns:
            A query that has not run yet.

        Raises:
            OptionError: the table is empty. KeyFieldError, SchemaError: these are no keys of the table.

        Example:
            >>> table.lookup(["a", "b"], columns=["fare"]).to_pandas()
        """
        reader = hoodie.write.inputs.reader_of(self._keys(keys), lambda: self.schema)
        key_rows = hoodie.keyed.read_keys(self.config, reader)
        where = hoodie.keyed.where_keys(self._context, key_rows, WriteOptions())
        return self.scan(columns, where, meta_columns=meta_columns)

    def dataset(self) -> TableDataset:
        """The table as a pyarrow Dataset, for duckdb and others that push columns and filters down into it.

        Each query is a scan of the newest state, of the columns and rows that it needs; files are pruned as `scan` prunes them.

        Example:
            >>> trips = table.dataset()
            >>> duckdb.sql("SELECT sum(fare) FROM trips WHERE city = 'rome'")
        """
        return hoodie.read.dataset.TableDataset(self.scan)

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
    ) -> Scan:
        """Query the changes that were committed after `since`, up to and including `until`.

        By default this is an incremental pull: the latest state of the rows that were written in the range. Deletes are not in it.
        On a merge-on-read table rows are merged only with what was written in the range, as Apache Hudi does: a late row that lost
        against an *older* row is in it, although a scan shows the older row. Compare ordering values before you apply it. On a
        copy-on-write table such a row was never stored and is not in it. docs/CONCURRENCY.md says more about such pulls.

        With `images="before_after"` it is the change feed: each insert, update and delete of each commit, with the columns `op`
        (i, u or d), `instant`, and the structs `before` and `after`. docs/CHANGES.md says more.

        Args:
            since: where the range begins, exclusive: a moment as `scan(as_of=…)` takes it; None is the beginning. The result of a
                commit stands for its `position`: continue from the last one that you have pulled.
            until: where the range ends, inclusive; None is the last commit that can be passed safely.
            columns: which columns; in the change feed those of `before` and `after`.
            where: rows to give; in the change feed changes that fit on either side.
            images: "latest_state", "before_after", or "cdc" for Apache Hudi's columns: op, ts_ms and both rows as JSON.
            full_scan_fallback: read a range from the whole table when its commits were archived or its files cleaned.
            meta_columns: put the five `_hoodie_` columns in front.
            params: as `scan` has them.

        Returns:
            A query that has not run yet, as `scan` gives it.

        Raises:
            InstantNotFoundError: `until` lies beyond a write in progress; or the range was archived or cleaned, and there is no
                `full_scan_fallback`.
            OptionError: the range ends before it begins, or an argument cannot be understood.

        Example:
            >>> first = table.upsert(rows)
            >>> table.changes(since=first).to_pandas()
            >>> table.changes(since="1 day ago", images="before_after").to_arrow()
        """
        zone, since, until = self._zone(), self._counted(since, "since"), self._counted(until, "until")
        options = ReadOptions(
            query=QueryType.INCREMENTAL,
            begin=None if since is None else parse_begin_option(since, name="since", zone=zone),
            end=None if until is None else parse_position_option(until, name="until", zone=zone),
            changes=parse_images(images),
            full_scan_fallback=full_scan_fallback,
            where=hoodie.read.where.bound(where, params),
            columns=parse_columns(columns),
        )
        return hoodie.read.scan.Scan(self._context, options, meta_columns=meta_columns)

    def to_arrow(self) -> pa.Table:
        """All rows as a `pyarrow.Table`: short for `scan().to_arrow()`."""
        return self.scan().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a `pandas.DataFrame`: short for `scan().to_pandas()`; needs pandas."""
        return self.scan().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a `polars.DataFrame`: short for `scan().to_polars()`; needs polars."""
        return self.scan().to_polars()

    def head(self, rows: int = 10) -> pa.Table:
        """Some rows, to see what the table holds: short for `scan().limit(rows).to_arrow()`.

        Args:
            rows: how many at most.

        Example:
            >>> table.head(5).to_pandas()
        """
        return self.scan().limit(rows).to_arrow()

    def read(self, options: ReadOptions, *, meta_columns: bool = True) -> Scan:
        """Query with options that were parsed already, as Spark and the command line have them."""
        return hoodie.read.scan.Scan(self._context, options, meta_columns=meta_columns)

    def _request(self, options: Mapping[str, str] | None) -> WriteRequest:
        request = parse_write_options({**self._options, **parse_options(options)}, defaults=load_defaults())
        check_against(self.config, request.table)
        return request

    def _at_work(self, options: Mapping[str, str] | None = None) -> tuple[TableContext, WriteOptions]:
        write = self._request(options).write
        return self._context.with_view(write.view).with_concurrency(write.concurrency), write

    def _counted(self, moment: Moment | None, name: str) -> Any:
        return counted(moment, lambda: self.timeline.commits, name=name)

    def _zone(self) -> tzinfo | None:
        return zone_of(self.config.timezone)


def open_table(
    path: str | PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> HoodieTable:
    """Open a table.

    Args:
        path: its folder: a local path, or `file://…`, `s3://…`, `gs://…`, `az://…`, `hdfs://…` or `memory://…`.
        storage_options: how to reach the storage.
        options: Hudi's write options that every write through this object has.
        engine: who runs the work; None: threads of this process.

    Returns:
        The open table.

    Raises:
        TableNotFoundError: there is no table at the path.
        UnsupportedTableError: there is one of a version or with a feature that this release does not know.

    Example:
        >>> table = hoodie.open_table("/data/trips")
        >>> table.head()
    """
    return open_at(open_storage(path, storage_options), engine=engine, options=options)


def is_table(path: str | PathLike[str], *, storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether there is a table at a path. Nothing is opened but `.hoodie/hoodie.properties`.

    Args:
        path: a folder, as `open_table` takes it.
        storage_options: how to reach the storage.

    Returns:
        True also for a table that `open_table` refuses: of a version that this release does not know, or with damaged
        properties. False if there is nothing, or something else than a table.

    Raises:
        OptionError: the address is not valid.
        AccessDeniedError: the storage may not be read.

    Example:
        >>> if not hoodie.is_table("/data/trips"):
        ...     hoodie.create_table("/data/trips", record_key="id")
    """
    storage = open_storage(path, storage_options)
    try:
        with plain_errors(storage.uri):
            load_config(storage)
    except TableNotFoundError:
        return False
    except (CorruptFileError, UnsupportedTableError):
        return True
    return True


def open_at(
    storage: Storage,
    *,
    engine: Engine | None = None,
    options: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    cache: Cache | None = None,
    tuning: Tuning | None = None,
) -> HoodieTable:
    """Open the table at a storage's root; `sleep`, `cache` and `tuning` as for `TableContext.open`."""
    with plain_errors(storage.uri):
        context = TableContext.open(storage, engine or LocalEngine(), sleep=sleep, cache=cache, tuning=tuning)
    return HoodieTable(context, options)


def create_table(
    path: str | PathLike[str],
    schema: SchemaLike | None = None,
    *,
    record_key: str | Sequence[str],
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    table_type: str | TableType | None = None,
    name: str | None = None,
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> HoodieTable:
    """Create a table and open it. It has version 6, which Apache Hudi 0.14 and later read and write, unless
    `hoodie.write.table.version` in the options says 8 or 9.

    Args:
        path: its folder, which may exist: a local path, or `file://…`, `s3://…`, `gs://…`, `az://…`, `hdfs://…` or `memory://…`.
        schema: its columns: a schema or a frame of pyarrow, pandas, polars or Spark, or a dict such as
            {"id": "string", "fare": "float64"}. None takes them from the first write.
        record_key: the column or columns that identify a row.
        partition_by: the columns whose values choose the folder of a row; None: as the options say, else not partitioned.
        ordering: if two rows have one key, the greater value of this column wins; None: as the options say, else the later write wins.
        table_type: "COPY_ON_WRITE" (quick to read) or "MERGE_ON_READ" (quick to write); None: as the options say, else
            copy-on-write.
        name: the table's name; None: that of its folder.
        options: Hudi's table and write options; the arguments win over them.
        storage_options: how to reach the storage.
        engine: who runs the work; None: threads of this process.

    Returns:
        The open table.

    Raises:
        TableExistsError: there is a table already.
        KeyFieldError: a key, partition or ordering column is not in the schema, or of a type that makes no key or has no order.
        SchemaError: a column has a type that a table cannot store.
        OptionError: the arguments and options do not fit together.

    Example:
        >>> table = hoodie.create_table("/data/trips", frame, record_key="id", partition_by="city", ordering="ts")
        >>> table.upsert(frame)
    """
    storage = open_storage(path, storage_options)
    request = parse_write_options(parse_options(options), defaults=load_defaults())
    table_options = TableOptions(
        name=name,
        table_type=None if table_type is None else parse_table_type(table_type),
        record_key_fields=parse_names(record_key, what="record_key"),
        partition_fields=None if partition_by is None else parse_names(partition_by, what="partition_by"),
        ordering_fields=None if ordering is None else parse_names(ordering, what="ordering"),
    ).over(request.to_create())
    with plain_errors(storage.uri):
        columns = None if schema is None else hoodie.write.schema_input.parse_schema_like(schema)
        hoodie.write.create.create_at(storage, table_options, schema=columns, concurrency=request.write.concurrency)
    # The arguments have won over the options, and what the table remembers it is not asked again.
    rest = {name: text for name, text in (options or {}).items() if name.lower() not in remembered_names()}
    return open_at(storage, engine=engine, options=rest)
