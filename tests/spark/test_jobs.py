"""What a write is on the cluster: how many jobs, what they are called, what a second attempt of a task leaves."""

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.model.tuning import TUNING
from pyspark_hoodie import dataframe
from tests.effort import long_but
from tests.spark.conftest import options_of
from tests.spark.jobs import described, few

pytestmark = pytest.mark.spark

BULK = {"hoodie_datasource_write_operation": "bulk_insert"}
DDL = "id string, part string, note string, ts long"
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def test_each_write_is_few_jobs_and_each_says_which_step_of_how_many_it_is(spark, tmp_path):
    path = str(tmp_path / "flights")
    mor = options_of(hoodie_datasource_write_table_type="MERGE_ON_READ")
    load = {**mor, **options_of(**BULK)}
    of_python = few(spark).mapInArrow(lambda batches: batches, few(spark).schema)
    names, loaded = described(spark, lambda: dataframe.write(of_python, path, load, "append"))
    assert names == ["hoodie bulk_insert flights: write new files 1/3"]
    assert (loaded.jobs, loaded.inserted) == (1, 40)
    of_python = few(spark, ts=2).mapInArrow(lambda batches: batches, few(spark).schema)
    names, small = described(spark, lambda: dataframe.write(of_python, path, mor, "append"))
    assert names == ["hoodie upsert flights: read the batch 1/4"]
    assert (small.jobs, small.updated, small.opened, small.engine) == (1, 40, 2, "embedded")
    large = {**mor, **options_of(hoodie_python_driver_max_bytes=0)}
    names, spread = described(spark, lambda: dataframe.write(few(spark, ts=3), path, large, "append"))
    assert names == [
        "hoodie upsert flights: read the batch 1/4",
        "hoodie upsert flights: look up keys 2/4",
        "hoodie upsert flights: write files 3/4",
    ]
    assert (spread.jobs, spread.updated, spread.engine) == (3, 40, "spark")
    assert "; spark, 3 jobs" in repr(spread)


def wide(count, marks):
    """Rows of about 150 bytes with keys of chance; each attempt leaves a mark, and the first one ends with an error."""

    def body(batches):
        context = TaskContext.get()
        for batch in batches:
            keys = [uuid.uuid4().hex for _ in range(batch.num_rows)]
            yield pa.RecordBatch.from_pydict(
                {
                    "id": keys,
                    "part": [f"p{context.partitionId()}"] * len(keys),
                    "note": pc.binary_repeat(pa.array(keys), 3),
                    "ts": pa.array([1] * len(keys), pa.int64()),
                }
            )
        Path(marks, f"{context.partitionId()}-{context.taskAttemptId()}").write_text("")
        if context.attemptNumber() == 0:
            raise OSError("lost executor")

    return lambda spark: spark.range(0, count, 1, 2).mapInArrow(body, DDL)


@pytest.mark.parametrize("table_type", long_but(["MERGE_ON_READ"], TYPES))
def test_a_load_in_one_pass_stores_one_attempt_of_each_task(spark, tmp_path, table_type):
    """Both attempts of both tasks write files: 9 MB each are worth one; the keys of the first attempts are lost with them."""
    path, marks = tmp_path / "t", tmp_path / "marks"
    marks.mkdir()
    count = 150_000
    kind = {"hoodie_datasource_write_table_type": table_type}
    df = wide(count, str(marks))(spark)
    result = dataframe.write(df, str(path), options_of(**kind, **BULK), "append")
    assert len(list(marks.iterdir())) == 4
    assert (result.inserted, result.files, result.jobs, result.engine) == (count, 2, 1, "spark")
    rows = hoodie.open_table(path).scan(meta_columns=True).to_arrow()
    assert rows.nbytes > 2 * TUNING.worth_bytes
    assert rows.num_rows == count
    for unique in ("_hoodie_record_key", "_hoodie_commit_seqno"):
        assert pc.count_distinct(rows.column(unique)).as_py() == count
    assert pc.all(pc.equal(rows.column("note"), pc.binary_repeat(rows.column("id"), 3))).as_py()
    assert len(list(path.rglob("*.parquet"))) == 2
    assert not list((path / ".hoodie" / ".hoodie_py" / "staging").iterdir())


@pytest.mark.parametrize("bound", long_but([0], [0, 1 << 26]))
@pytest.mark.parametrize("table_type", long_but(["COPY_ON_WRITE"], TYPES))
def test_an_upsert_of_rows_of_chance_stores_one_attempt_of_each_task(spark, tmp_path, table_type, bound):
    path, marks = tmp_path / "t", tmp_path / "marks"
    marks.mkdir()
    options = options_of(hoodie_datasource_write_table_type=table_type, hoodie_python_driver_max_bytes=bound)
    for number in (1, 2):
        result = dataframe.write(wide(600, str(marks))(spark), str(path), options, "append")
        assert result.inserted == 600
        assert len(list(marks.iterdir())) == 4 * number
    rows = hoodie.open_table(path).scan().to_arrow()
    assert rows.num_rows == pc.count_distinct(rows.column("id")).as_py() == 1200
    assert pc.all(pc.equal(rows.column("note"), pc.binary_repeat(rows.column("id"), 3))).as_py()


def test_a_load_that_fails_leaves_no_file_and_the_next_one_works(enabled, tmp_path):
    path = str(tmp_path / "t")
    bad = few(enabled).withColumn("id", F.when(F.col("id") != "k7", F.col("id")))
    writer = bad.write.format("hoodie").options(**options_of(**BULK)).mode("append")
    with pytest.raises(hoodie.KeyFieldError):
        writer.save(path)
    assert not list(Path(path).rglob("*.parquet"))
    few(enabled).write.format("hoodie").options(**options_of(**BULK)).mode("append").save(path)
    assert pyspark_hoodie.last_commit(path).inserted == 40
