"""Public jobs from Spark: their options unchanged, their rows as Apache Hudi means them, and all refusals of a job at once."""

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import hoodie
import pyspark_hoodie
from hoodie.errors import OptionError
from tests.public_jobs import in_order, public_jobs

pytestmark = pytest.mark.spark

JOBS = [job for job in public_jobs() if not job.refused and not job.server]
REFUSED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "className": "org.apache.hudi",
    "hoodie.index.type": "FLINK_STATE",
    "hoodie.write.lock.provider": "org.apache.hudi.example.LockProvider",
    "hoodie.precommit.validators": "a.B",
    "fare": "x",
}


def frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    return spark.createDataFrame(
        [tuple(row.values()) for row in rows.to_pylist()], from_arrow_schema(rows.schema)
    ).coalesce(1)


@pytest.fixture
def jobs(spark):
    pyspark_hoodie.enable(spark, aliases=("hudi", "org.apache.hudi"))
    yield spark
    pyspark_hoodie.disable()


@pytest.mark.parametrize("job", [
    pytest.param(job, id=job.name, marks=() if job.in_spark else pytest.mark.long) for job in JOBS
])  # fmt: skip
def test_a_public_job_writes_what_it_means(jobs, tmp_path, job):
    first, second = (frame(jobs, rows) for rows in job.rows())
    first.write.format("hudi").options(**job.load_options).mode("overwrite").save(str(tmp_path))
    second.write.format("org.apache.hudi").options(**job.options).mode("append").save(str(tmp_path))
    rows = hoodie.open_table(tmp_path).scan().to_arrow().to_pylist()
    assert in_order(rows) == in_order(job.expected())


def test_a_job_learns_of_all_that_stops_it_at_once(door, tmp_path):
    rows = door.createDataFrame([(1,)], "id long")
    with pytest.raises((OptionError, PySparkException)) as caught:
        rows.write.format("hoodie").options(**REFUSED).mode("append").save(str(tmp_path / "t"))
    message = str(caught.value)
    assert [name for name in REFUSED if name not in message] == [*REFUSED][:2]
    wrong = {name for name in REFUSED if name in message}
    rest = {name: text for name, text in REFUSED.items() if name not in wrong}
    rows.write.format("hoodie").options(**rest).mode("append").save(str(tmp_path / "t"))
    assert hoodie.open_table(tmp_path / "t").scan().count() == 1
