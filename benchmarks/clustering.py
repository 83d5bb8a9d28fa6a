"""How many files a filter opens before and after a clustering, and what that costs: 2 million rows in one partition.

`python -m benchmarks.clustering FOLDER [ROWS]` prints a line for each layout. FOLDER must not be there.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import hoodie

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
    size_mb = sum(info.stat().st_size for info in folder.rglob("*.parquet")) / 2**20
    _say("as written", table, 0.0, 0.0)
    for columns, layout in ((["city"], "linear"), (["city", "fare"], "z-order"), (["city", "fare"], "hilbert")):
        began, cpu = time.monotonic(), _cpu_s()
        table.cluster(sort_by=columns, layout=layout, target_file_mb=size_mb / 40)
        _say(f"{layout} by {', '.join(columns)}", table, time.monotonic() - began, _cpu_s() - cpu)
    print(
        f"{rows:,} rows, {size_mb:.0f} MB; at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB of memory"
    )


def _say(what: str, table: hoodie.HoodieTable, seconds: float, cpu_s: float) -> None:
    found = [f"{where}: {kept} of {total}" for where in FILTERS for kept, total in (opened(table, where),)]
    print(f"{what}: {seconds:.1f} s, {cpu_s:.1f} CPU s; files opened for {'; '.join(found)}", flush=True)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
