"""What a query costs on a file slice with many logs, before and after a log compaction: calls of the storage, and CPU seconds.

`python -m benchmarks.log_compaction [LOGS]` makes a slice of 200,000 rows with 50 logs of 2,000 updates each, without row copies, as
other writers leave them, and with them. Each query is one of a new process' cache; the median of rounds.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.storage.cache import Cache
from hoodie.storage.local import LocalStorage
from hoodie.table import HoodieTable, create_table, open_at

LOGS, ROWS, UPDATES, ROUNDS = 50, 200_000, 2_000, 5
KEEP = {"hoodie.archive.automatic": "false", "hoodie.clean.automatic": "false"}
READS = ("read", "open_input")


class Counting(LocalStorage):
    """A disk that counts the files that are read."""

    calls = 0


def _counted(name: str) -> Callable[..., Any]:
    inner = getattr(LocalStorage, name)

    def call(self: Counting, *args: Any, **more: Any) -> Any:
        Counting.calls += 1
        return inner(self, *args, **more)

    return call


for _name in READS:
    setattr(Counting, _name, _counted(_name))


def opened(path: Path) -> HoodieTable:
    return open_at(Counting(path), engine=LocalEngine(1), options={}, cache=Cache())


def rows(numbers: np.ndarray, ts: int) -> pa.Table:
    rng = np.random.default_rng(ts)
    return pa.table(
        {
            "id": pa.array(numbers).cast(pa.string()),
            "ts": np.full(len(numbers), ts),
            "city": pa.array(rng.integers(0, 200, len(numbers))).cast(pa.string()),
            "fare": rng.random(len(numbers)),
        }
    )


def make(path: Path, logs: int, *, copies: bool) -> None:
    options = {**KEEP, "hoodie.python.mor.row.copies": str(copies).lower()}
    table = create_table(path, table_type="MERGE_ON_READ", record_key="id", ordering="ts", options=options)
    table.bulk_insert(rows(np.arange(ROWS), 1), options)
    rng = np.random.default_rng(7)
    for ts in range(2, logs + 2):
        table.upsert(rows(rng.choice(ROWS, UPDATES, replace=False), ts), options)


def query(path: Path) -> tuple[int, float]:
    """(files that were read, CPU seconds), the median of each."""
    calls, seconds = [], []
    for _ in range(ROUNDS + 1):
        Counting.calls, started = 0, time.process_time()
        assert opened(path).scan().to_arrow().num_rows == ROWS
        calls.append(Counting.calls)
        seconds.append(time.process_time() - started)
    return int(statistics.median(calls[1:])), statistics.median(seconds[1:])


def main(logs: int) -> None:
    for copies in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "t"
            make(path, logs, copies=copies)
            before = query(path)
            started = time.process_time()
            options = {"hoodie.python.mor.row.copies": str(copies).lower()}
            assert opened(path).compact_logs(options)
            took_s = time.process_time() - started
            after = query(path)
        print(
            f"{logs} logs, {'with' if copies else 'without'} row copies: {before[0]} files read and {before[1]:.3f} s of CPU before, "
            f"{after[0]} and {after[1]:.3f} s after; the log compaction took {took_s:.3f} s"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else LOGS)
