"""How even the tasks of an upsert are where the keys are not: for each stage the longest task as a share of all of them.

    python -m benchmarks.skew

Upserts of 200,000 rows into a merge-on-read table of two million, by executors alone. Tasks are taken from Spark's event log.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie

_ROWS, _BATCH, _PARTITIONS, _CORES = 2_000_000, 200_000, 20, 8
_FEW_ROWS, _ROW_BYTES = 20, 12
_BY_TASKS = {"hoodie.python.driver.max.bytes": "0"}
_TABLE = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}


class Stage(NamedTuple):
    tasks: int
    longest_s: float
    whole_s: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=5_000, help="of the partition with many files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events")
        events.mkdir()
        spark = (
            SparkSession.builder.master(f"local[{_CORES}]")
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.dir", str(events))
            .config("spark.eventLog.rolling.enabled", "false")
            .config("spark.eventLog.compress", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "16")
            .config("spark.python.daemon.module", "pyspark_hoodie.daemon")
            .getOrCreate()
        )
        pyspark_hoodie.enable(spark)
        _run(spark, folder, given.files)
        spark.stop()
        for case, stages in _stages(next(events.iterdir())):
            for stage in stages:
                share = stage.longest_s / stage.whole_s if stage.whole_s else 0
                print(f"{case:40} {stage.tasks:4} tasks, {stage.whole_s:7.2f} s, the longest {share:4.0%}")
    return 0


def _run(spark: SparkSession, folder: str, files: int) -> None:
    ids = spark.range(_ROWS)
    even = ids.select(
        "id", (F.col("id") % _PARTITIONS).cast("string").alias("p"), F.lit(1).alias("ts"), F.rand(1).alias("v")
    )
    path = f"{folder}/even"
    _write(spark, "load", even, path, {**_TABLE, "hoodie.datasource.write.operation": "bulk_insert"})
    batch = spark.range(_BATCH).withColumn("n", F.when(F.col("id") % 10 == 0, F.col("id") % _PARTITIONS).otherwise(3))
    of_one = batch.select(
        (F.col("id") * _PARTITIONS % _ROWS + F.col("n")).alias("id"), F.col("n").cast("string").alias("p")
    )
    _write(spark, "updates, 90 % in one partition", _changed(of_one), path, {})
    new = batch.select((F.col("id") + 2 * _ROWS).alias("id"), F.col("n").cast("string").alias("p"))
    _write(spark, "inserts, 90 % in one partition", _changed(new), path, {})

    path = f"{folder}/one"
    whole = {**_TABLE, "hoodie.datasource.write.operation": "bulk_insert"}
    one = even.filter("p = '3'").withColumn("p", F.lit("x")).coalesce(1)
    _write(spark, "load", one, path, whole)
    _write(spark, "updates of one file group", _changed(one.select("id", "p")), path, {})

    path = f"{folder}/many"
    many = even.limit(files * _FEW_ROWS).withColumn("p", F.lit("x")).repartition(_CORES)
    small = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.max.file.size": str(_FEW_ROWS * _ROW_BYTES)}
    _write(spark, "load", many, path, {**whole, **small})
    found = len(hoodie.open_table(path).files())
    if found < files:
        raise SystemExit(f"{found} files instead of {files}")
    _write(spark, f"updates in a partition of {files:,} files", _changed(many.select("id", "p")), path, {})


def _changed(keys: DataFrame) -> DataFrame:
    return keys.dropDuplicates(["id"]).select("id", "p", F.lit(2).alias("ts"), F.rand(2).alias("v"))


def _write(spark: SparkSession, case: str, frame: DataFrame, path: str, options: dict[str, str]) -> None:
    spark.sparkContext.setLocalProperty("hoodie.case", case)
    frame.write.format("hoodie").options(**_BY_TASKS, **options).mode("append").save(path)
    spark.sparkContext.setLocalProperty("hoodie.case", None)  # type: ignore[arg-type]


def _stages(log: Path) -> Iterator[tuple[str, list[Stage]]]:
    """The stages of each case in their order."""
    cases: dict[int, str] = {}
    times: dict[int, list[float]] = defaultdict(list)
    for line in log.read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        if event["Event"] == "SparkListenerStageSubmitted":
            case = event.get("Properties", {}).get("hoodie.case")
            if case:
                cases[event["Stage Info"]["Stage ID"]] = case
        elif event["Event"] == "SparkListenerTaskEnd" and "Task Metrics" in event:
            times[event["Stage ID"]].append(event["Task Metrics"]["Executor Run Time"] / 1000)
    for case in dict.fromkeys(cases.values()):
        found = [times[stage] for stage, of in cases.items() if of == case]
        yield case, [Stage(len(each), max(each), sum(each)) for each in found if each]


if __name__ == "__main__":
    sys.exit(main())
