"""The embedded engine: threads of this process. Arrow and numpy release the interpreter lock where the work is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa

from hoodie.engine.base import StageBatches
from hoodie.errors import SchemaError
from hoodie.model.plans import Chunk

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """The reference engine: `Records` is a `pyarrow.RecordBatchReader` (in: anything Arrow-like)."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or min(32, os.cpu_count() or 1)

    def run(self, fn: Callable[[T], R], tasks: Sequence[T], *, label: str) -> list[R]:
        if len(tasks) <= 1 or self._threads == 1:
            return [fn(task) for task in tasks]
        with ThreadPoolExecutor(self._threads, thread_name_prefix="hoodie") as pool:
            futures = [pool.submit(fn, task) for task in tasks]
            try:
                return [future.result() for future in futures]
            except BaseException:
                for future in futures:
                    future.cancel()
                raise

    def stage(self, records: Any, fn: StageBatches, *, label: str) -> list[Chunk]:
        return list(fn(iter(batches_of(records))))

    def read(
        self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], schema: pa.Schema
    ) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, self._batches(fn, tasks))

    def _batches(self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T]) -> Iterator[pa.RecordBatch]:
        """Batches in task order; as many tasks ahead of the consumer as there are threads, so memory stays bounded."""
        if len(tasks) <= 1 or self._threads == 1:
            for task in tasks:
                yield from fn(task)
            return
        with ThreadPoolExecutor(self._threads, thread_name_prefix="hoodie") as pool:
            waiting = iter(tasks)
            running = [pool.submit(_collect, fn, task) for task in islice(waiting, self._threads + 1)]
            try:
                while running:
                    batches = running.pop(0).result()
                    following = next(waiting, None)
                    if following is not None:
                        running.append(pool.submit(_collect, fn, following))
                    yield from batches
            finally:
                for future in running:
                    future.cancel()


def _collect(fn: Callable[[T], Iterator[pa.RecordBatch]], task: T) -> list[pa.RecordBatch]:
    return list(fn(task))


def batches_of(data: Any) -> Iterable[pa.RecordBatch]:
    """Record batches of an Arrow table, batch or reader, of anything with `__arrow_c_stream__`, or of a pandas frame.

    Raises:
        SchemaError: the value is none of these.
    """
    if isinstance(data, pa.RecordBatch):
        return [data]
    if isinstance(data, pa.Table):
        return data.to_batches()
    return reader_of(data)


def reader_of(data: Any) -> pa.RecordBatchReader:
    """A reader over whatever `batches_of` accepts; `reader.schema` is known before any row is drawn."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if hasattr(data, "iloc") and hasattr(data, "dtypes"):  # before its Arrow stream, which makes the index a column
        return pa.Table.from_pandas(data, preserve_index=False).to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    raise SchemaError(
        f"cannot take rows from a {type(data).__module__}.{type(data).__name__}: "
        "give an Arrow table, batch or reader, a polars, duckdb or pandas frame, or anything with __arrow_c_stream__"
    )
