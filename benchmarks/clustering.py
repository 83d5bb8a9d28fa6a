"""How many files a filter opens before and after a clustering, and what that costs: 2 million rows in one partition.

`python -m benchmarks.clustering FOLDER [ROWS]` prints a line for each layout. FOLDER must not be there. At the end Spark sorts the
same files by one column into new ones, three times in a session that did so before: the CPU of all its processes.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import hoodie
from benchmarks.meter import Meter

ROWS, BATCHES = 2_000_000, 20
FILTERS = ("city = 'c01234'", "fare > 99.95")


def filled(folder: Path, rows: int) -> hoodie.HoodieTable:
    """Rows in no order, over as many files as there are batches."""
    chance = np.random.default_rng(7)
    table = hoodie.create_table(folder, record_key="id", ordering="ts")
    each = rows // BATCHES
    for number in range(BATCHES):
        cities = pa.array([f"c{n:05d}" for n in range(5000)])
        table.bulk_insert(
            pa.table(
                {
                    "id": pa.array(np.arange(number * each, (number + 1) * each)),
                    "city": cities.take(pa.array(chance.integers(0, 5000, each))),
                    "fare": chance.random(each) * 100,
                    "note": pa.array(chance.integers(0, 1 << 62, each)).cast(pa.string()),
                    "ts": pa.array(np.full(each, number)),
                }
            )
        )
    return table


def opened(table: hoodie.HoodieTable, where: str) -> tuple[int, int]:
    """(files that a filter opens, files)"""
    pruning = table.scan(where=where).plan.pruning
    return pruning.after_statistics, pruning.total


def main(folder: Path, rows: int) -> None:
    table = filled(folder, rows)
    files = [str(path) for path in folder.rglob("*.parquet")]
    size_mb = sum(Path(path).stat().st_size for path in files) / 2**20
    _say("as written", table, 0.0, 0.0)
    for columns, layout in ((["city"], "linear"), (["city", "fare"], "z-order"), (["city", "fare"], "hilbert")):
        began, cpu = time.monotonic(), _cpu_s()
        table.cluster(sort_by=columns, layout=layout, target_file_mb=size_mb / 40)
        _say(f"{layout} by {', '.join(columns)}", table, time.monotonic() - began, _cpu_s() - cpu)
    print(f"sorted by city by Spark: {sorted_by_spark(files, folder / 'sorted'):.1f} CPU s")
    print(
        f"{rows:,} rows, {size_mb:.0f} MB; at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB of memory"
    )


def sorted_by_spark(files: list[str], to: Path) -> float:
    """CPU seconds of a sorted rewrite; the median of three, after one that is not counted."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spent = []
    for number in range(4):
        with Meter() as meter:
            spark.read.parquet(*files).sort("city").write.option("compression", "zstd").parquet(str(to / str(number)))
        spent.append(meter.cost.cpu_s)
    spark.stop()
    return statistics.median(spent[1:])


def _say(what: str, table: hoodie.HoodieTable, seconds: float, cpu_s: float) -> None:
    found = [f"{where}: {kept} of {total}" for where in FILTERS for kept, total in (opened(table, where),)]
    print(f"{what}: {seconds:.1f} s, {cpu_s:.1f} CPU s; files opened for {'; '.join(found)}", flush=True)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
