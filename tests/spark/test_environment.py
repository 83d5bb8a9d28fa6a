"""A virtual environment that is not activated: `python3` on the path is another one, and no variable of Spark's is set."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import HUNG_S
from tests.spark.conftest import ROOT, SPARK

pytestmark = [pytest.mark.spark, pytest.mark.long]

JOB = """
import sys

import pyarrow as pa
from pyspark.sql import SparkSession

import hoodie
import pyspark_hoodie

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
pyspark_hoodie.enable(spark)
path, streams = sys.argv[1], sys.argv[2] == "streams"
keys = {"hoodie.datasource.write.recordkey.field": "id"}

rows = spark.range(100).selectExpr("cast(id as string) id", "id n").repartition(2)
for mode in ("append", "append"):
    rows.write.format("hoodie").options(**keys).option("hoodie.python.driver.max.bytes", "0").mode(mode).save(path)
assert spark.read.format("hoodie").load(path).where("n >= 50").count() == 50

if streams:
    spark.sql(f"CREATE TEMPORARY VIEW v USING hoodie OPTIONS (path '{path}')")
    assert spark.sql("SELECT sum(n) FROM v").collect()[0][0] == sum(range(100))

    def run(stream, into):
        writer = stream.select("id", "n").writeStream.format("hoodie").options(**keys)
        query = writer.option("checkpointLocation", into + "-checkpoint").trigger(availableNow=True).start(into)
        query.awaitTermination()
        return hoodie.open_table(into).scan().to_arrow().num_rows

    assert run(spark.readStream.format("hoodie").load(path), path + "-2") == 100
    pyspark_hoodie.disable()
    assert run(spark.readStream.format("hoodie").load(path), path + "-3") == 100
print("all well")
"""
OTHER_PYTHON = """#!/bin/sh
# A Python that knows Spark, but none of the packages of this environment.
PYTHONPATH=$(printf %s "$PYTHONPATH" | tr : '\\n' | grep -E 'pyspark|py4j' | paste -sd : -)
export PYTHONPATH
exec {python} -S "$@"
"""


def test_enable_needs_neither_an_activated_environment_nor_a_variable(tmp_path: Path) -> None:
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text(OTHER_PYTHON.format(python=sys.executable))
    other.chmod(0o755)
    taken = ("PYSPARK_", "SPARK_", "VIRTUAL_ENV", "CONDA")
    env = {name: text for name, text in os.environ.items() if not name.startswith(taken)}
    env["PATH"] = os.pathsep.join([str(other.parent), env["PATH"]])
    env["SPARK_CONF_DIR"] = str(ROOT / "conf")
    streams = "streams" if SPARK >= (4, 1) else "none"
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path / "t"), streams],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "all well"
    assert "replaced a previously registered data source" not in done.stderr
