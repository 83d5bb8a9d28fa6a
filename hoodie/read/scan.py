"""A query that has not run yet: made by `HoodieTable.scan` and `changes`, run by the method that asks for its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.model.enums import ChangeFormat, QueryType
from hoodie.model.plans import ChangeTask, ReadPlan, ReadTask
from hoodie.options.read import ReadOptions
from hoodie.read.copied_slices import run_task, with_final_files
from hoodie.read.plan import plan_read
from hoodie.txn.context import TableContext


class Scan:
    """Rows of one query. Each method that draws rows runs the query on the snapshot pinned when the scan was made."""

    def __init__(self, context: TableContext, options: ReadOptions, *, meta_columns: bool = False) -> None:
        self._context = context
        self._options = options
        self.plan: ReadPlan = plan_read(context, options, meta_columns=meta_columns)

    @property
    def schema(self) -> pa.Schema:
        return self.plan.output

    def records(self) -> Any:
        """The rows as the engine's own kind: a `pyarrow.RecordBatchReader` embedded, a DataFrame in Spark."""
        return self._read(self.plan.tasks, self.plan.output)

    def _read(self, tasks: Sequence[ReadTask | ChangeTask], output: pa.Schema) -> Any:
        storage, context = self._context.storage, self.plan.context
        final = with_final_files(storage, context, tasks)
        return self._context.engine.read(partial(run_task, storage, context), final, output)

    def to_reader(self) -> pa.RecordBatchReader:
        reader: pa.RecordBatchReader = self.records()
        return reader

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.to_reader()

    def to_arrow(self) -> pa.Table:
        return self.to_reader().read_all()

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        import polars  # noqa: PLC0415 - optional, and only here

        return polars.from_arrow(self.to_arrow())

    def count(self) -> int:
        """Number of rows, found by reading the first column only, and what merging and the filter look at."""
        narrow = self._narrowed()
        schema = pa.schema([self.plan.output.field(name) for name in narrow[0].columns]) if narrow else pa.schema([])
        return sum(batch.num_rows for batch in self._read(narrow, schema)) if narrow else 0

    def explain(self) -> str:
        """What the query will read, in a few lines."""
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
        if self._options.where is not None:
            lines.append(f"  where: {self._options.where}")
            lines += self._unknown()
        if self._options.as_of:
            lines.append(f"  as of: {self._options.as_of}")
        if span.begin or span.end:
            lines.append(f"  committed in: ({span.begin or 'beginning'}, {span.end or 'latest'}]")
        return "\n".join(lines)

    def _considered(self) -> str:
        found = self.plan.pruning
        if self._options.query is not QueryType.INCREMENTAL:
            what = f"file slices: {found.total:,} total"
        elif self._options.changes is ChangeFormat.LATEST_STATE:
            what = f"file groups: {found.total:,} touched by the range"
        else:
            what = f"changes of file groups by commits of the range: {found.total:,} total"
        return f"{what} -> {found.after_partitions:,} after partitions -> {found.after_statistics:,} after statistics"

    def _unknown(self) -> list[str]:
        """What the statistics cost, and where there are none."""
        found = self.plan.pruning
        lines = [f"  footers read for statistics: {found.footers:,}"] if found.footers else []
        if found.without_statistics:
            lines.append(f"  without statistics, and so read: {found.without_statistics:,}")
        return lines

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader: Any = self.to_reader()
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream

    def _narrowed(self) -> tuple[ReadTask | ChangeTask, ...]:
        """The tasks with one narrow column only: enough to count rows."""
        tasks = self.plan.tasks
        return tuple(replace(task, columns=task.columns[:1]) for task in tasks)
