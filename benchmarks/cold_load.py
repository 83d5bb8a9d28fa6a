"""What the first load of a new Spark session costs, beside plain Parquet: a process for each, in which nothing has run before.

`python -m benchmarks.cold_load FOLDER [ROWS]` prints a line for each way, with wall time and CPU time of the whole process tree.
FOLDER must not be there. Python workers are Spark's own; the last line is with the daemon of ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import pyspark_hoodie
from benchmarks.meter import Meter
from benchmarks.rides import BASE, CODEC, KEY, ORDERING, PARTITION, make_rides, make_sources

ROWS = 2_000_000
DAEMON = "merge-on-read, daemon"
CASES = ("copy into partitions", "copy-on-write", "merge-on-read", DAEMON)


def main(folder: Path, rows: int) -> None:
    make_rides(folder, rows=rows, batch_rows=1000, small_count=0)
    make_sources(folder)
    for case in CASES:
        subprocess.run([sys.executable, "-m", "benchmarks.cold_load", str(folder), case], check=True)


def run(folder: Path, case: str) -> None:
    """One load, in this process."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 3g pyspark-shell"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.parquet.compression.codec", CODEC)
    if case == DAEMON:
        builder = builder.config("spark.python.daemon.module", "pyspark_hoodie.daemon")
    spark = builder.getOrCreate()
    with Meter(folder / case) as meter:
        _load(spark.read.parquet(str(folder / "source" / BASE)), case, str(folder / case))
    spark.stop()
    cost = meter.cost
    print(f"{case}: {cost.wall_s:.1f} s, {cost.cpu_s:.1f} CPU s, {cost.written_files} files", flush=True)


def _load(rows: DataFrame, case: str, path: str) -> None:
    if case == CASES[0]:
        rows.write.partitionBy(PARTITION).parquet(path)
        return
    pyspark_hoodie.enable(rows.sparkSession)
    options = {
        "hoodie.datasource.write.recordkey.field": KEY,
        "hoodie.datasource.write.partitionpath.field": PARTITION,
        "hoodie.datasource.write.precombine.field": ORDERING,
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE" if case == "copy-on-write" else "MERGE_ON_READ",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.parquet.compression.codec": CODEC,
    }
    rows.write.format("hoodie").options(**options).mode("append").save(path)


if __name__ == "__main__":
    if sys.argv[2:3] and sys.argv[2] in CASES:
        run(Path(sys.argv[1]), sys.argv[2])
    else:
        main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
