"""The engine on Spark: tasks become rows of a one-stage job, functions run in its Python workers.

A task or partition that Spark runs more than once (a retry, a speculative run) gives one result: Spark hands over the
output of one finished attempt. Errors of hoodie are no reason to try again; they come back as values and are raised on
the driver as themselves, without a trace of the JVM. All others go the way of Spark: the task is tried again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from hoodie.engine.base import StageBatches
from hoodie.errors import HoodieError
from hoodie.filegroup.conform import conform
from hoodie.model.plans import Chunk
from pyspark_hoodie.schema import arrow_schema, spark_schema

T = TypeVar("T")
R = TypeVar("R")

MAX_PARTITIONS = 10_000
"""Tasks beyond so many share partitions: each partition costs the driver some bookkeeping."""
_RESULT = "number long, part long, failed boolean, value binary"
_FIELDS: list[pa.Field] = [
    pa.field("number", pa.int64()),
    pa.field("part", pa.int64()),
    pa.field("failed", pa.bool_()),
    pa.field("value", pa.binary()),
]
_RESULT_ARROW = pa.schema(_FIELDS)


class SparkEngine:
    """Runs tasks on the executors of a session; `Records` is a DataFrame."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, fn: Callable[[T], R], tasks: Sequence[T], *, label: str) -> list[R]:
        if not tasks:
            return []
        texts = [pickle.dumps(task) for task in tasks]

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in _numbers(batches):
                yield _attempt(number, partial(_once, fn, texts[number]))

        with self._described(label):
            rows = self._numbered(len(tasks)).mapInArrow(work, _RESULT).collect()
        return _values(rows)

    def stage(self, records: DataFrame, fn: StageBatches, *, label: str) -> list[Chunk]:
        """As the seam says; order of arrival is the order of partitions. Rows stay where they are."""
        schema = arrow_schema(records.schema)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield _attempt(_partition(), lambda: list(fn(conformed(batches, schema))))

        # Columns travel by position: mapInArrow resolves names, and `a.b` or a name that stands twice does not resolve.
        plain = records.toDF(*[f"c{at}" for at in range(len(schema))])
        with self._described(label):
            rows = plain.mapInArrow(work, _RESULT).collect()
        return _values(rows)

    def read(self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], schema: pa.Schema) -> DataFrame:
        """A DataFrame that runs the tasks whenever it is evaluated, one partition each."""
        columns = spark_schema(schema)
        if not tasks:
            return self._spark.createDataFrame([], columns)
        exact = arrow_schema(columns)
        texts = [pickle.dumps(task) for task in tasks]

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in _numbers(batches):
                for batch in fn(pickle.loads(texts[number])):
                    yield conform(batch, exact, path="a file slice")

        return self._numbered(len(tasks)).mapInArrow(work, columns)

    def _numbered(self, count: int) -> DataFrame:
        """Rows 0, 1, ..., each in a partition of its own up to a bound: no shuffle, and the same in every attempt."""
        return self._spark.range(0, count, 1, min(count, MAX_PARTITIONS)).toDF("number")

    @contextmanager
    def _described(self, label: str) -> Iterator[None]:
        """Jobs in Spark's UI say what they are for; a session without a SparkContext (Connect) goes without."""
        context, before = None, None
        with suppress(AttributeError):  # what Connect sessions raise is one
            context = self._spark.sparkContext
            before = context.getLocalProperty("spark.job.description")
            context.setJobDescription(f"hoodie: {label}")
        try:
            yield
        finally:
            if context is not None:
                context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from map(int, batch.column(0).to_numpy())


def _partition() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def conformed(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches with the DataFrame's column names and UTC timestamps, as the types of `schema` are."""
    for batch in batches:
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _once(fn: Callable[[T], R], text: bytes) -> list[R]:
    return [fn(pickle.loads(text))]


def _attempt(number: int, work: Callable[[], Sequence[Any]]) -> pa.RecordBatch:
    """What a task gives, or the error of ours that it ended with, as rows of a result."""
    try:
        values = [pickle.dumps(value) for value in work()]
    except HoodieError as error:
        return _result(number, [pickle.dumps(error)], failed=True)
    return _result(number, values, failed=False)


def _result(number: int, values: list[bytes], *, failed: bool) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([number] * count, pa.int64()),
            pa.array(range(count), pa.int64()),
            pa.array([failed] * count, pa.bool_()),
            pa.array(values, pa.binary()),
        ],
        schema=_RESULT_ARROW,
    )


def _values(rows: Sequence[Any]) -> list[Any]:
    """Results in the order of their tasks; the first error, if there is one, is raised."""
    ordered = sorted(rows, key=lambda row: (row["number"], row["part"]))
    for row in ordered:
        if row["failed"]:
            raise pickle.loads(row["value"])
    return [pickle.loads(row["value"]) for row in ordered]
