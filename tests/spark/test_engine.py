"""The engine contract: what the embedded engine gives, the one on Spark gives too."""

import gc
import os
import sys
import zipimport
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext

from hoodie.engine.local import LocalEngine
from hoodie.engine.packing import WORTH_A_GROUP_BYTES
from hoodie.errors import CorruptBlockError, KeyFieldError
from hoodie.filegroup.chunks import load_chunk
from hoodie.model.plans import Chunk
from hoodie.storage.local import LocalStorage
from pyspark_hoodie.engine import SparkEngine
from tests.spark.conftest import arrow_of

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("text", pa.string())])


@dataclass(frozen=True)
class Task:
    number: int


def squared(storage, task):
    return task.number**2, storage.uri


def fails_at(bad, task):
    if task.number in bad:
        raise KeyFieldError(f"no key in task {task.number}")
    return task.number


def broken_block(task):
    raise CorruptBlockError("broken", offset=task.number)


def fails_once(folder, task):
    """An error that is not ours on the first attempt, as of a disk that was full."""
    mark = Path(folder) / str(task.number)
    if not mark.exists():
        mark.write_text("tried")
        raise OSError("disk full")
    return task.number


def rows_of_task(task):
    for half in range(2):
        yield pa.RecordBatch.from_pydict({"n": [task.number], "text": [None if half else "x"]}, schema=SCHEMA)


def staged(storage, number, batches):
    """A chunk a batch, through a file: the chunk carries a path only."""
    for batch in batches:
        path = f"{os.urandom(8).hex()}.arrow"
        with storage.open_output(path) as sink, pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield Chunk((), batch.num_rows, batch.nbytes, path=path)


@pytest.fixture(params=["local", "spark"])
def engine(request, spark):
    return LocalEngine() if request.param == "local" else SparkEngine(spark)


def test_run_gives_results_in_the_order_of_the_tasks(engine, tmp_path):
    storage = LocalStorage(tmp_path)
    found = engine.run(partial(squared, storage), [Task(n) for n in (5, 3, 4, 1)], label="square")
    assert found == [(n**2, storage.uri) for n in (5, 3, 4, 1)]


def test_run_of_nothing_is_nothing(engine):
    assert engine.run(partial(fails_at, ()), [], label="nothing") == []


def test_an_error_of_ours_is_raised_as_itself(engine):
    with pytest.raises(KeyFieldError) as caught:
        engine.run(partial(fails_at, (1, 2)), [Task(n) for n in range(4)], label="fail")
    assert str(caught.value) == "no key in task 1"
    assert caught.value.__cause__ is None


def test_an_error_keeps_its_attributes(engine):
    with pytest.raises(CorruptBlockError) as caught:
        engine.run(broken_block, [Task(7)], label="fail")
    assert caught.value.offset == 7


def test_read_has_exactly_the_schema_and_all_rows(engine):
    found = engine.read(rows_of_task, [Task(n) for n in range(3)], SCHEMA)
    table = found.read_all() if isinstance(found, pa.RecordBatchReader) else arrow_of(found)
    assert table.schema.names == SCHEMA.names
    assert table.schema.types == SCHEMA.types
    assert sorted(table.column("n").to_pylist()) == [0, 0, 1, 1, 2, 2]
    assert table.column("text").null_count == 3


def test_read_of_no_tasks_is_empty_with_the_schema(engine):
    found = engine.read(rows_of_task, [], SCHEMA)
    table = found.read_all() if isinstance(found, pa.RecordBatchReader) else arrow_of(found)
    assert table.num_rows == 0
    assert table.schema.names == SCHEMA.names
    assert table.schema.types == SCHEMA.types


def test_stage_keeps_the_order_of_arrival(spark, tmp_path):
    storage = LocalStorage(tmp_path)
    rows = pa.table({"n": pa.array(range(100), pa.int64())})
    frame = spark.range(0, 100, 1, 5).toDF("n")
    for engine, records in ((LocalEngine(), rows), (SparkEngine(spark), frame)):
        chunks = engine.stage(records, partial(staged, storage), label="stage")
        assert sum(chunk.rows for chunk in chunks) == 100
        assert all(chunk.table is None for chunk in chunks)
        assert pa.concat_tables(load_chunk(storage, c) for c in chunks).column("n").to_pylist() == list(range(100))


def test_stage_takes_columns_by_position_and_timestamps_as_utc(spark, tmp_path):
    storage = LocalStorage(tmp_path)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        frame = spark.sql("select timestamp_micros(1) as `at.time`, array(timestamp_micros(2)) as `list`")
        (chunk,) = SparkEngine(spark).stage(frame, partial(staged, storage), label="stage")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    table = load_chunk(storage, chunk)
    assert table.schema.field("at.time").type == pa.timestamp("us", "UTC")
    assert table.column(0).cast(pa.int64()).to_pylist() == [1]
    assert table.column(1).combine_chunks().flatten().cast(pa.int64()).to_pylist() == [2]


def test_stage_raises_the_first_error_of_ours(spark):
    def refuse(number, batches):
        for batch in batches:
            raise KeyFieldError(f"first {batch.column(0)[0].as_py()}")
        yield

    with pytest.raises(KeyFieldError, match=r"^first 0$"):
        SparkEngine(spark).stage(spark.range(0, 10, 1, 3), refuse, label="stage")


def test_a_task_that_failed_once_gives_one_result(spark, tmp_path):
    tasks = [Task(n) for n in range(3)]
    assert SparkEngine(spark).run(partial(fails_once, str(tmp_path)), tasks, label="retry") == [0, 1, 2]
    assert len(list(tmp_path.iterdir())) == 3


@dataclass(frozen=True)
class Weighed:
    size_bytes: int


@pytest.mark.parametrize("heavy", [False, True])
def test_short_tasks_share_a_partition_for_each_core_and_long_ones_have_their_own(spark, heavy):
    cores = spark.sparkContext.defaultParallelism
    count = 3 * cores
    tasks = [Weighed(WORTH_A_GROUP_BYTES if heavy else 1000)] * count
    found = SparkEngine(spark).run(partition_of, tasks, label="spread")
    assert len(set(found)) == (count if heavy else cores)


@pytest.mark.parametrize("heavy", [False, True])
def test_small_slices_of_a_read_share_a_partition_and_keep_their_order(spark, heavy):
    tasks = [Weighed(WORTH_A_GROUP_BYTES if heavy else 1000 + at) for at in range(100)]
    found = SparkEngine(spark).read(size_of, tasks, SIZES)
    assert found.rdd.getNumPartitions() == (100 if heavy else 2)
    assert [row["size"] for row in found.collect()] == [task.size_bytes for task in tasks]


SIZES = pa.schema([("size", pa.int64())])


def size_of(task):
    yield pa.RecordBatch.from_pydict({"size": [task.size_bytes]}, schema=SIZES)


def partition_of(task):
    return TaskContext.get().partitionId()


def test_a_job_says_what_it_is_for_and_the_description_before_comes_back(spark):
    context = spark.sparkContext
    context.setJobDescription("mine")
    SparkEngine(spark).run(partial(fails_at, ()), [Task(1)], label="look up keys")
    assert context.getLocalProperty("spark.job.description") == "mine"
    context.setLocalProperty("spark.job.description", None)


def kept_by_worker(_):
    """Finders that PySpark's next task would make read their archives anew, and objects that no search for garbage looks at."""
    return sum(
        isinstance(each, zipimport.zipimporter) for each in sys.path_importer_cache.values()
    ), gc.get_freeze_count()


def test_a_task_leaves_little_to_do_before_the_next_one(spark):
    """PySpark's workers are used again; without this each task costs them a tenth of a second."""
    engine = SparkEngine(spark)
    engine.run(kept_by_worker, range(8), label="warm up")
    found = engine.run(kept_by_worker, range(8), label="look")
    assert min(finders for finders, _ in found) == 0
    assert max(frozen for _, frozen in found) > 1000
