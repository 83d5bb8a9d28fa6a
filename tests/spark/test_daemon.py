"""Workers forked from our daemon: what tasks import is there when they begin; other tasks, and writes, run as ever."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import HUNG_S
from tests.spark.conftest import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.long]

JOB = """
import sys

import pyspark_hoodie
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.python.daemon.module", "pyspark_hoodie.daemon")
    .getOrCreate()
)
pyspark_hoodie.enable(spark)


def loaded(batches):
    import sys

    # Read off before this task imports anything.
    there = all(name in sys.modules for name in ("hoodie.filegroup.run", "pyarrow.parquet")) and "pandas" not in sys.modules
    for batch in batches:
        yield batch.set_column(0, "id", [int(there)] * batch.num_rows)


assert {row.id for row in spark.range(8).mapInArrow(loaded, "id long").collect()} == {1}
plain = spark.sparkContext.parallelize(range(10), 2).map(lambda number: number * 2).sum()
assert plain == 90

options = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.python.driver.max.bytes": "0",
}
for turn in range(2):
    rows = spark.range(1000).selectExpr("id", f"id * {turn} AS n")
    rows.write.format("hoodie").options(**options).mode("append").save(sys.argv[1])
table = pyspark_hoodie.HoodieTable.for_path(spark, sys.argv[1])
table.compact()
assert spark.read.format("hoodie").load(sys.argv[1]).selectExpr("sum(n)").collect()[0][0] == sum(range(1000))

# Nothing of ours imported pandas meanwhile. Where others do, pyarrow knows their series: its NaN is a null.
assert {row.id for row in spark.range(8).mapInArrow(loaded, "id long").collect()} == {1}


def nulls(batches):
    import pandas as pd
    import pyarrow as pa

    for batch in batches:
        yield batch.set_column(0, "id", [pa.array(pd.Series([1.0, float("nan")])).null_count] * batch.num_rows)


assert {row.id for row in spark.range(8).mapInArrow(nulls, "id long").collect()} == {1}
print("all well")
"""


def test_tasks_begin_with_what_they_import(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path / "t")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "all well"
