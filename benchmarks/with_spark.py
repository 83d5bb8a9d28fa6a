"""The Spark cases: `format("hoodie")` and plain Parquet through the same session settings.

One process runs all steps of one system and prints a JSON line for each measurement:
`python -m benchmarks.with_spark FOLDER SYSTEM`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.embedded import READS, Measured
from benchmarks.meter import Meter
from benchmarks.rides import BATCHES, KEY, ORDERING, PARTITION, load, moment_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SYSTEMS = ("spark", "spark-mor", "spark-cow")
CONF = Path(__file__).resolve().parent.parent / "conf"
SUMS = "count(*) AS n, sum(cast(round(fare * 100) AS bigint)) AS cents, sum(passengers) AS passengers"
SOURCE_FILES = 4


def main(argv: list[str]) -> int:
    folder, system = Path(argv[0]), argv[1]
    make_sources(folder)
    os.environ.setdefault("SPARK_CONF_DIR", str(CONF))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 3g pyspark-shell")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only now is its environment complete

    spark = SparkSession.builder.appName(f"bench {system}").getOrCreate()
    try:
        spark.range(100_000).selectExpr("sum(id)").collect()  # the JVM's own start is nobody's cost
        steps = _plain(spark, folder) if system == "spark" else _hoodie(spark, folder, system)
        for measured in steps:
            print(json.dumps({"case": measured.case, "check": measured.check, **measured.cost.as_dict()}), flush=True)
    finally:
        spark.stop()
    return 0


def make_sources(folder: Path) -> None:
    """The data as Parquet files, which is where Spark takes it from."""
    for name in ("base", *(f"batch-{i}" for i in range(BATCHES))):
        target = folder / "source" / name
        if target.exists():
            continue
        rows = load(folder, name)
        target.mkdir(parents=True)
        size = -(-rows.num_rows // SOURCE_FILES)
        for i in range(SOURCE_FILES):
            pq.write_table(rows.slice(i * size, size), target / f"{i}.parquet", compression="zstd")


def _hoodie(spark: SparkSession, folder: Path, system: str) -> Iterator[Measured]:
    import pyspark_hoodie  # noqa: PLC0415 - not without Spark

    pyspark_hoodie.enable(spark)
    path = str(folder / system)
    options = {
        "hoodie.datasource.write.recordkey.field": KEY,
        "hoodie.datasource.write.partitionpath.field": PARTITION,
        "hoodie.datasource.write.precombine.field": ORDERING,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if system == "spark-mor" else "COPY_ON_WRITE",
        "hoodie.datasource.write.operation": "bulk_insert",
    }
    with Meter() as meter:
        _source(spark, folder, "base").write.format("hoodie").options(**options).mode("append").save(path)
    yield Measured("bulk load", meter.cost, f"{pyspark_hoodie.last_commit(path).inserted} rows")
    before = ""
    for number in range(BATCHES):
        before = pyspark_hoodie.last_commit(path).instant or ""
        with Meter() as meter:
            _source(spark, folder, f"batch-{number}").write.format("hoodie").mode("append").save(path)
        done = pyspark_hoodie.last_commit(path)
        yield Measured("upsert", meter.cost, f"{number}: {done.inserted} new, {done.updated} updated")

    def read(query: str, **more: str) -> DataFrame:
        reader = spark.read.format("hoodie").option("hoodie.datasource.query.type", query)
        return reader.options(**more).load(path)

    for _ in range(READS):
        yield from _measured_reads(lambda: read("snapshot"), "snapshot")
        if system == "spark-mor":
            yield from _measured_reads(lambda: read("read_optimized"), "read-optimized")
        since = {"hoodie.datasource.read.begin.instanttime": before}
        with Meter() as meter:
            found = read("incremental", **since).selectExpr(*SUMS.split(", ")).collect()[0]
        yield Measured("incremental, last commit", meter.cost, _check(found))
    if system == "spark-mor":
        with Meter() as meter:
            pyspark_hoodie.HoodieTable.for_path(spark, path).compact()
        found = read("read_optimized").selectExpr(*SUMS.split(", ")).collect()[0]
        yield Measured("compaction", meter.cost, _check(found))


def _plain(spark: SparkSession, folder: Path) -> Iterator[Measured]:
    path = str(folder / "spark")
    with Meter() as meter:
        _source(spark, folder, "base").write.parquet(path)
    yield Measured("bulk load", meter.cost, "")
    appended = str(folder / "spark-appended")
    for number in range(BATCHES):
        with Meter() as meter:
            _source(spark, folder, f"batch-{number}").write.mode("append").parquet(appended)
        yield Measured("append", meter.cost, "")
    for number in range(READS):
        with Meter() as meter:
            spark.read.parquet(path).write.parquet(f"{path}-copy-{number}")
        yield Measured("copy of the table", meter.cost, "")
    for _ in range(READS):
        yield from _measured_reads(lambda: spark.read.parquet(path), "snapshot")
        both = spark.read.parquet(path).unionByName(spark.read.parquet(appended))
        with Meter() as meter:
            newest = both.where(f"{ORDERING} >= TIMESTAMP '{moment_of(BATCHES - 1).as_py():%Y-%m-%d %H:%M:%S}'")
            found = newest.selectExpr(*SUMS.split(", ")).collect()[0]
        yield Measured("incremental, last commit", meter.cost, _check(found))


def _measured_reads(read: Callable[[], DataFrame], view: str) -> Iterator[Measured]:
    """An aggregate of two columns and a scan of all; opening the table is part of both."""
    with Meter() as meter:
        found = read().selectExpr(*SUMS.split(", ")).collect()[0]
    yield Measured(f"aggregate, {view}", meter.cost, _check(found) if view == "snapshot" else "")
    with Meter() as meter:
        read().write.format("noop").mode("overwrite").save()
    yield Measured(f"full scan, {view}", meter.cost, "")


def _source(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    return spark.read.parquet(str(folder / "source" / name))


def _check(found: object) -> str:
    return f"{found['n']} rows, {found['cents']} cents, {found['passengers']} passengers"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
