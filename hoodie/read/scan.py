"""A query that has not run yet: made by `HoodieTable.scan` and `changes`, run by the method that asks for its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

import hoodie.read
from hoodie.engine.progress import Progress
from hoodie.errors import MissingFileError, OptionError
from hoodie.filegroup.conform import conform
from hoodie.format.variants import shown_schema
from hoodie.metadata.listing import distrust_metadata, has_metadata
from hoodie.model.enums import ChangeFormat, QueryType
from hoodie.model.html import html_pairs
from hoodie.model.plans import ChangeTask, ReadContext, ReadPlan, ReadTask
from hoodie.options.arguments import parse_columns
from hoodie.options.read import ReadOptions
from hoodie.read.count import count_files
from hoodie.read.deletion_vectors import say_what_counts
from hoodie.read.plan import plan_pinned
from hoodie.read.scan_tasks import FileTask, Task, run_task, with_scan_files
from hoodie.read.where import Where, both
from hoodie.storage.base import Storage
from hoodie.storage.refusals import plain_errors, with_hoodie_errors
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.queries import Reading

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    import hoodie.read.dataset
    import hoodie.read.lazy_frame
    from hoodie.read.dataset import TableDataset

T = TypeVar("T")

_MOST_ROWS = 2**63 - 1
_READ_AGAIN = 5
_SHOWN_COLUMNS = 20
"""In a notebook."""


@with_hoodie_errors
class Scan:
    """Rows of one query: made by `HoodieTable.scan` and `HoodieTable.changes`, run by the method that asks for rows.

    Each such method runs the query again, on the snapshot of the moment when the scan was made. If a clean has deleted files of
    that snapshot meanwhile, `to_arrow` and `count` read the newest one, unless the query is of a moment or a range.

    Any library that takes an Arrow stream takes a scan: `polars.DataFrame(scan)`, `duckdb.from_arrow(scan.to_reader())`,
    `pyarrow.table(scan)`.
    """

    def __init__(
        self,
        context: TableContext,
        options: ReadOptions,
        *,
        meta_columns: bool = False,
        snapshot: Snapshot | None = None,
        stored: bool = False,
    ) -> None:
        """`stored`: give variants as the table holds them, for rows that are written again; else as JSON."""
        self._context = context
        self._stored = stored
        self._options = options
        self._limit: int | None = None
        self._meta_columns = meta_columns
        self.plan: ReadPlan
        self.plan, self._snapshot = plan_pinned(context, options, meta_columns=meta_columns, snapshot=snapshot)

    def __repr__(self) -> str:
        details = [f"{name}={value}" for name, value in self._details() if name not in ("table", "query")]
        return f"<Scan of {self._context.storage.uri}: {self._options.query.value}, {', '.join(details)}>"

    def _repr_html_(self) -> str:
        return html_pairs("scan, not run yet", self._details())

    def _details(self) -> list[tuple[str, object]]:
        """What is known of the query without running it."""
        names = self.plan.output.names
        more = len(names) - _SHOWN_COLUMNS
        options, span = self._options, self._options.range
        pairs: list[tuple[str, object]] = [
            ("table", self._context.storage.uri),
            ("query", options.query.value),
            ("columns", ", ".join(names[:_SHOWN_COLUMNS]) + (f" and {more} more" if more > 0 else "")),
            ("where", options.where),
            ("as of", options.as_of),
            ("since", span.begin),
            ("until", span.end),
            ("limit", self._limit),
            ("file slices", len(self.plan.tasks)),
        ]
        return [(name, value) for name, value in pairs if value is not None]

    @property
    def uri(self) -> str:
        """The table's address."""
        return self._context.storage.uri

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, known before any of them is read."""
        return self.plan.output if self._stored else shown_schema(self.plan.output)

    @property
    def position(self) -> str | None:
        """How far a pull has read: give it as `since` to the next one, and no row is missed or read twice.

        It never lies behind a write that is still in progress. Of a scan of the whole table it is where pulls go on from; rows of
        the newest commits may then come once more. None for `as_of` and read-optimized scans, and of a table without commits.
        """
        return None if self.plan.position is None else str(self.plan.position)

    def limit(self, rows: int) -> Scan:
        """The same query with at most so many rows. Rows have no order, so it may be any of them.

        Files are read only until there are enough.

        Args:
            rows: how many; 0 gives none.

        Raises:
            OptionError: not a whole number, or below 0.

        Example:
            >>> table.scan(where="city = 'rome'").limit(5).to_pandas()
        """
        try:
            most = index(rows)
        except TypeError:
            most = -1
        if not 0 <= most <= _MOST_ROWS:
            raise OptionError(f"limit({rows!r}) takes a whole number of rows, 0 or more")
        fewer = copy(self)
        fewer._limit = most if self._limit is None else min(most, self._limit)
        return fewer

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a `pyarrow.RecordBatchReader`, which reads them as they are drawn.

        Returns:
            A reader with `schema`; close it when you do not read it to its end.
        """
        return self._read(self.plan.tasks, self.plan.output)

    def _read(
        self, tasks: Sequence[ReadTask | ChangeTask], output: pa.Schema, progress: Progress | None = None
    ) -> pa.RecordBatchReader:
        if self._limit is None:
            return self._read_all(tasks, output, progress)
        schema = output if self._stored else shown_schema(output)
        return pa.RecordBatchReader.from_batches(schema, self._read_first(self._limit, tasks, output))

    def _read_all(
        self, tasks: Sequence[ReadTask | ChangeTask], output: pa.Schema, progress: Progress | None = None
    ) -> pa.RecordBatchReader:
        storage, context = self._context.storage, self.plan.context
        final = with_scan_files(self._context, context, tasks)
        if progress is not None:
            progress.expect(len(final))
        reading = Reading(storage.identity, self.plan.reads_at)
        forget = self._context.forget_files if self._context.synced is not None else None
        run = partial(_run_counted, storage, context, progress, reading, forget)
        reader: pa.RecordBatchReader = self._context.engine.read(
            run, final, output, at_once=self._context.storage.can.at_once
        )
        schema = output if self._stored else shown_schema(output)
        return reader if schema is output else pa.RecordBatchReader.from_batches(schema, _with_json(reader, schema))

    def _read_first(
        self, remaining: int, tasks: Sequence[ReadTask | ChangeTask], output: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """So many rows: of one task, then of twice as many with each step, which run side by side."""
        begin, step = 0, 1
        while remaining and begin < len(tasks):
            with self._read_all(tasks[begin : begin + step], output) as reader:
                for batch in reader:
                    yield batch.slice(0, remaining)
                    remaining -= min(remaining, batch.num_rows)
                    if not remaining:
                        break
            begin, step = begin + step, 2 * step

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow record batches, one after the other: for more rows than fit into memory.

        Example:
            >>> for batch in table.scan(columns=["city"]).to_batches():
            ...     cities.update(batch.column("city").to_pylist())
        """
        yield from self.to_reader()

    def to_arrow(self) -> pa.Table:
        """All rows as a `pyarrow.Table`."""

        def read() -> pa.Table:
            with Progress(f"read {self._context.config.name}", unit="files") as progress:
                return self._read(self.plan.tasks, self.plan.output, progress).read_all()

        return self._whole(read)

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a `pandas.DataFrame`; needs pandas.

        Integers with nulls are floats there, or objects where a float would be another number.
        """
        return pandas_of(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """All rows as a `polars.DataFrame`; needs polars."""
        import polars  # noqa: PLC0415 - optional, and only here

        return polars.DataFrame(self.to_arrow())

    def to_polars_lazy(self) -> pl.LazyFrame:
        """A `polars.LazyFrame` that reads when it is collected: only the columns that it needs, and only the files that its filters do
        not exclude.

        Filters have polars's meaning, where NaN is the greatest number.

        Raises:
            OptionError: the scan has a `limit`, or is a change feed; polars is not installed.

        Example:
            >>> table.scan().to_polars_lazy().filter(pl.col("city") == "rome").select("fare").collect()
        """
        self._whole_states()
        return hoodie.read.lazy_frame.lazy_frame(self.schema, self._part)

    def dataset(self) -> TableDataset:
        """A pyarrow Dataset of this scan, for duckdb, datafusion, ibis and others that push columns and filters down into it.

        Each query reads the snapshot of the scan: only the columns that it needs, and only the files that its filters do not exclude.

        Raises:
            OptionError: the scan has a `limit`, or is a change feed.

        Example:
            >>> last_year = table.scan(as_of="2025-12-31").dataset()
            >>> duckdb.sql("SELECT sum(fare) FROM last_year WHERE city = 'rome'")
        """
        self._whole_states()
        return hoodie.read.dataset.TableDataset(self._part)

    def _whole_states(self) -> None:
        """Raises OptionError where columns and filters of the result are not those of the query."""
        if self._limit is not None:
            raise OptionError("a filter on a scan with a limit would find other rows: limit the result instead")
        if self._options.query is QueryType.INCREMENTAL and self._options.changes is not ChangeFormat.LATEST_STATE:
            raise OptionError(
                "columns and filters of a change feed are those of `changes`: give them there, and read it by to_arrow()"
            )

    def _part(self, columns: Sequence[str] | None, where: Where | None) -> Scan:
        """The same query of fewer columns and rows, on the same snapshot."""
        options = self._options
        narrow = replace(
            options,
            columns=parse_columns(self.schema.names if columns is None else columns),
            where=both(options.where, where, self.plan.context.schema),
        )
        return Scan(
            self._context, narrow, meta_columns=self._meta_columns, snapshot=self._snapshot, stored=self._stored
        )

    def count(self) -> int:
        """The number of rows. Without a filter, for file slices without log files, it comes from commits or footers. Of other slices
        the scan reads one column, and the columns for merging and for the filter.
        """

        def read() -> int:
            count, rest = count_files(self._context, self.plan)
            if self._limit is not None and count >= self._limit:
                return self._limit
            narrow = tuple(replace(task, columns=task.columns[:1]) for task in rest)
            schema = pa.schema([self.plan.output.field(name) for name in narrow[0].columns]) if narrow else None
            rows = count + (0 if schema is None else sum(batch.num_rows for batch in self._read(narrow, schema)))
            return rows if self._limit is None else min(rows, self._limit)

        return self._whole(read)

    def explain(self, *, merging: bool = True) -> str:
        """What the query will read, in a few lines: file slices before and after each kind of pruning, bytes, columns.

        Args:
            merging: say how this process merges logs, too; Spark has ways of its own.

        Example:
            >>> print(table.scan(where="fare > 100").explain())
        """
        tasks = self.plan.tasks
        logs = sum(1 for t in tasks if t.slice.logs)
        log_files = sum(len(t.slice.logs) for t in tasks)
        size = sum(t.slice.size_bytes for t in tasks)
        span = self._options.range
        lines = [
            f"{self._options.query.value} query of {self._context.storage.uri}",
            f"  {self._considered()} -> {len(tasks):,} read; {logs:,} with logs ({log_files:,} log files)",
            f"  bytes: {size:,} in base and log files",
            f"  columns: {', '.join(self.plan.output.names)}",
        ]
        lines += self._merging() if logs and merging else []
        if self._options.where is not None:
            lines.append(f"  where: {self._options.where}")
            lines += self._unknown()
        if self._options.as_of:
            lines.append(f"  as of: {self._options.as_of}")
        if self._limit is not None:
            lines.append(f"  limit: {self._limit:,} rows")
        if span.begin or span.end:
            lines.append(f"  committed in: ({span.begin or 'beginning'}, {span.end or 'latest'}]")
        return "\n".join(lines)

    def _merging(self) -> list[str]:
        """How logs take part: what the engine runs, found by the same planning."""
        run = with_scan_files(self._context, self.plan.context, self.plan.tasks)
        files = [task.file for task in run if isinstance(task, FileTask)]
        merged = sum(1 for task in run if not isinstance(task, FileTask) and task.slice.logs)
        parts = [f"{len(files):,} files by row numbers ({say_what_counts(files)})"] if files else []
        parts += [f"{merged:,} file slices by decoding their logs"] if merged else []
        return [f"  merging: {', '.join(parts)}"]

    def _considered(self) -> str:
        pruning = self.plan.pruning
        if self._options.query is not QueryType.INCREMENTAL:
            what = f"file slices: {pruning.total:,} total"
        elif self._options.changes is ChangeFormat.LATEST_STATE:
            what = f"file groups: {pruning.total:,} touched by the range"
        else:
            what = f"changes of file groups by commits of the range: {pruning.total:,} total"
        where = f" in the partitions that fit ({pruning.unlisted:,} not listed)" if pruning.unlisted else ""
        return f"{what}{where} -> {pruning.after_partitions:,} after partitions -> {pruning.after_statistics:,} after statistics"

    def _unknown(self) -> list[str]:
        """What the statistics cost, and where there are none."""
        pruning = self.plan.pruning
        lines = [f"  footers read for statistics: {pruning.footers:,}"] if pruning.footers else []
        if pruning.without_statistics:
            lines.append(f"  without statistics, and so read: {pruning.without_statistics:,}")
        return lines

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader: Any = self.to_reader()
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream

    def _whole(self, read: Callable[[], T]) -> T:
        """What all of a read gives. Nobody has seen a part of it, so it can begin anew where the table has left its files behind."""
        for _ in range(_READ_AGAIN):
            try:
                return read()
            except MissingFileError:
                if not self._goes_on():
                    raise
        return read()

    def _goes_on(self) -> bool:
        """Plan for the newest snapshot; where the table stands still, or the query is not of that, without the metadata table. False
        where all this changes nothing.
        """
        options = self._options
        is_of_newest = options.query is not QueryType.INCREMENTAL and options.as_of is None
        if is_of_newest and self._plans_otherwise(options):
            return True
        if not has_metadata(self._context.with_view(options.view)):
            return False
        if not self._plans_otherwise(replace(options, view=replace(options.view, metadata=False))):
            return False
        distrust_metadata(self._context)
        return True

    def _plans_otherwise(self, options: ReadOptions) -> bool:
        plan, self._snapshot = plan_pinned(self._context, options, meta_columns=self._meta_columns)
        moved = plan.tasks != self.plan.tasks
        self.plan = plan
        return moved


def _with_json(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows with variants as JSON."""
    with reader:
        for batch in reader:
            yield conform(batch, schema, path="a file slice")


def _run_counted(
    storage: Storage,
    context: ReadContext,
    progress: Progress | None,
    reading: Reading,
    forget: Callable[[], object] | None,
    task: Task,
) -> Iterator[pa.RecordBatch]:
    """`run_task`, and one more is done at its end. While this is held, no clean of this process takes the files away.

    `forget`: what to do where a file is not there that a timeline was thought to tell.
    """
    try:
        with plain_errors(storage.uri):
            yield from run_task(storage, context, task)
    except MissingFileError:
        if forget is not None:
            forget()
        raise
    if progress is not None:
        progress.add()


# -- Rows as frames of pandas.

_EXACT = 2**53
"""Beyond it a double does not have every whole number."""


def pandas_of(rows: pa.Table) -> pd.DataFrame:
    """The rows in pandas' usual types: integers with nulls are floats, unless a float would be another number."""
    frame: pd.DataFrame = rows.to_pandas(integer_object_nulls=any(map(_rounds, rows.columns)))
    return frame


def _rounds(column: pa.ChunkedArray) -> bool:
    integers = [leaf for chunk in column.chunks for leaf in _leaves(chunk) if pa.types.is_int64(leaf.type)]
    if not any(leaf.null_count for leaf in integers):
        return False
    ends = [pc.min_max(leaf).as_py() for leaf in integers]
    return any(each["max"] is not None and (each["max"] > _EXACT or each["min"] < -_EXACT) for each in ends)


def _leaves(array: Any) -> Iterator[Any]:
    kind = array.type
    if pa.types.is_struct(kind):
        for part in array.flatten():
            yield from _leaves(part)
    elif pa.types.is_list(kind):
        yield from _leaves(array.flatten())
    elif pa.types.is_map(kind):
        yield from _leaves(array.items)
    else:
        yield array
