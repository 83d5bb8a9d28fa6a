"""The engine on Spark: tasks become rows of a one-stage job, functions run in its Python workers.

A task or partition that Spark runs more than once (a retry, a speculative run) gives one result: Spark hands over the
output of one finished attempt. Errors of hoodie are no reason to try again; they come back as values and are raised on
the driver as themselves, without a trace of the JVM. All others go the way of Spark: the task is tried again.
"""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import zipimport
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame, SparkSession

from hoodie.engine.base import StageBatches
from hoodie.engine.late_pandas import put_pandas_off
from hoodie.engine.packing import WORTH_A_GROUP_BYTES, groups_for, packed, slices_in_order
from hoodie.engine.progress import EVERY_S, LOG, Progress
from hoodie.errors import HoodieError
from hoodie.filegroup.conform import as_type, conform
from hoodie.filegroup.unused_memory import release_unused_memory
from hoodie.storage.base import Storage
from hoodie.storage.hdfs import HdfsStorage
from pyspark_hoodie import hosts
from pyspark_hoodie.schema import arrow_schema, given_schema, spark_schema

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

MAX_PARTITIONS = 10_000
"""Tasks beyond so many share partitions: each partition costs the driver some bookkeeping."""
_CORES_UNKNOWN = 50
"""Cores assumed where the session does not say (Connect)."""
_RESULT = "number long, part long, failed boolean, value binary"
_FIELDS: list[pa.Field] = [
    pa.field("number", pa.int64()),
    pa.field("part", pa.int64()),
    pa.field("failed", pa.bool_()),
    pa.field("value", pa.binary()),
]
_RESULT_ARROW = pa.schema(_FIELDS)


def zone_name(spark: SparkSession) -> str:
    """The session's time zone; where it sets none, that of its JVM: which `conf.get` with a default would not give."""
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"


class SparkEngine:
    """Runs tasks on the executors of a session; `Records` is a DataFrame."""

    name = "spark"
    shares_memory = False

    def __init__(self, spark: SparkSession, storage: Storage | None = None) -> None:
        """`storage`: where the files of the tasks lie; tasks then run beside them, where that is known."""
        self._spark = spark
        self._storage = storage
        self.jobs = 0
        """Actions that were run on the session so far: one Spark job each, but for those of the input's own plan."""

    @property
    def zone(self) -> str:
        return zone_name(self._spark)

    def within(self, memory_bytes: int) -> SparkEngine:
        return self  # tasks run in memory of the executors

    def run(self, fn: Callable[[T], R], tasks: Sequence[T], *, label: str, at_once: int = 1) -> list[R]:
        if not tasks:
            return []
        texts = [pickle.dumps(task) for task in tasks]
        weights = [_size_bytes(task) for task in tasks]
        groups = packed(weights, groups_for(weights, self._cores()))
        heaviest = [tasks[max(group, key=weights.__getitem__)] for group in groups]

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for group in _numbers(batches):
                for number in groups[group]:
                    yield _attempt(number, partial(_once, fn, texts[number]))

        with self.described(label):
            rows = self._numbered(heaviest).mapInArrow(work, _RESULT).collect()
        return _values(rows)

    def stage(self, records: DataFrame, fn: StageBatches[S], *, label: str) -> list[S]:
        """As the seam says; order of arrival is the order of partitions. Rows stay where they are."""
        schema = given_schema(records.schema)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            number = _partition()
            yield _attempt(number, lambda: list(fn(number, conformed(batches, schema))))

        # Columns travel by position: mapInArrow resolves names, and `a.b` or a name that stands twice does not resolve.
        plain = records.toDF(*[f"c{at}" for at in range(len(schema))])
        with self.described(label):
            rows = plain.mapInArrow(work, _RESULT).collect()
        return _values(rows)

    def read(
        self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], schema: pa.Schema, *, at_once: int = 1
    ) -> DataFrame:
        """A DataFrame that runs the tasks whenever it is evaluated, neighbours one after the other in a partition."""
        columns = spark_schema(schema)
        if not tasks:
            return self._spark.createDataFrame([], columns)
        exact = arrow_schema(columns)
        groups = reading_groups(tasks, self._cores(), self._storage)
        texts = [pickle.dumps(group) for group in groups]

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            put_pandas_off()
            for number in _numbers(batches):
                for task in pickle.loads(texts[number]):
                    for batch in fn(task):
                        yield conform(batch, exact, path="a file slice")
            spare_next_task()

        heaviest = [max(group, key=_size_bytes) for group in groups]
        return self._numbered(heaviest).mapInArrow(work, columns)

    def mapped(
        self, records: DataFrame, fn: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: pa.Schema
    ) -> DataFrame:
        """A DataFrame of what `fn` makes of the batches of each partition, whenever it is evaluated; partitions stay in order."""
        columns = spark_schema(schema)
        exact = arrow_schema(columns)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            put_pandas_off()
            for batch in fn(batches):
                yield conform(batch, exact, path="new records")
            spare_next_task()

        return records.mapInArrow(work, columns)

    def _numbered(self, tasks: Sequence[object]) -> DataFrame:
        """Rows 0, 1, ..., each in a partition of its own up to a bound: no shuffle, and the same in every attempt."""
        places = hosts.hosts_of(self._spark, self._storage, tasks)
        if places is not None:
            return hosts.placed_numbers(self._spark, places)
        count = len(tasks)
        return self._spark.range(0, count, 1, min(count, MAX_PARTITIONS)).toDF("number")

    def _cores(self) -> int:
        context = _context_of(self._spark)
        return _CORES_UNKNOWN if context is None else context.defaultParallelism

    @contextmanager
    def described(self, label: str) -> Iterator[None]:
        """Spark's UI and log say what the job is for, and our log how far it is when it takes long.

        A session without a SparkContext (Connect) goes without.
        """
        self.jobs += 1
        context = _context_of(self._spark)
        if context is None:
            yield
            return
        text = f"hoodie {label}"
        before = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, text)
        ended = threading.Event()
        watch = threading.Thread(target=_watch, args=(context, text, ended), name="hoodie-progress", daemon=True)
        watch.start()
        try:
            yield
        finally:
            ended.set()
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


def reading_groups(tasks: Sequence[T], cores: int | None = None, storage: Storage | None = None) -> list[Sequence[T]]:
    """Tasks of a read that share a partition. Where files have hosts, few do: a partition goes to the host of one file."""
    most_bytes = hosts.LEAST_BYTES if isinstance(storage, HdfsStorage) else WORTH_A_GROUP_BYTES
    groups = slices_in_order([_size_bytes(task) for task in tasks], cores or _CORES_UNKNOWN, most_bytes=most_bytes)
    return [tasks[group.start : group.stop] for group in groups]


def _size_bytes(task: object) -> int:
    return getattr(task, "size_bytes", 1)


_DESCRIPTION = "spark.job.description"
"""Local property of a thread: what the UI says of its jobs and their stages."""


def _context_of(spark: SparkSession) -> SparkContext | None:
    try:
        return spark.sparkContext
    except AttributeError:  # what Connect sessions raise is one
        return None


def _watch(context: SparkContext, name: str, ended: threading.Event) -> None:
    progress = Progress(name, way=LOG)  # Spark draws bars of its own
    while not ended.wait(EVERY_S):
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        ours = [stage for stage in stages if stage is not None and stage.name == name]
        if ours:
            progress.at(sum(s.numCompletedTasks for s in ours), of=sum(s.numTasks for s in ours))


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
            column if column.type == field.type else as_type(column, field.type)
            for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _once(fn: Callable[[T], R], text: bytes) -> list[R]:
    return [fn(pickle.loads(text))]


def _attempt(number: int, work: Callable[[], Sequence[Any]]) -> pa.RecordBatch:
    """What a task gives, or the error of ours that it ended with, as rows of a result."""
    put_pandas_off()
    try:
        values = [pickle.dumps(value) for value in work()]
    except HoodieError as error:
        return _result(number, [pickle.dumps(error)], failed=True)
    finally:
        spare_next_task()
    return _result(number, values, failed=False)


def spare_next_task() -> None:
    """Leave the worker as light as it was: without memory that nobody uses, and quick to begin another task.

    Forgotten are Python's finders in zip files, of which a worker has one for every package of PySpark.

    A worker begins each task with `importlib.invalidate_caches()`, and a zip finder then reads the directory of its archive anew:
    for all of them a tenth of a second, more than most tasks of ours take. A finder that is needed again is made again, from
    a directory that Python keeps. After the task it looks through all objects for garbage.
    """
    _leave_modules_alone()
    release_unused_memory()  # a worker stays for as long as the executor, whether it gets another task of ours or not
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            sys.path_importer_cache.pop(path, None)


@cache
def _leave_modules_alone() -> None:
    """Once in a worker: what it has imported by now is there for good, and no search for garbage need look at it again."""
    gc.collect()
    gc.freeze()


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
