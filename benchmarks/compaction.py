"""What a compaction costs beside pyarrow's own read, merge and write of the same rows. CPU seconds, the median of rounds.

`python -m benchmarks.compaction [ROWS]` makes a table of 2 million rows, 16 base files with logs on each, and a row copy of what is
in the logs as plain Parquet files for pyarrow. The rounds of both alternate in one process.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hoodie

ROWS, FILES, ROUNDS = 2_000_000, 16, 3
KEY = "_hoodie_record_key"


def rows(numbers: np.ndarray, ts: int) -> pa.Table:
    rng = np.random.default_rng(ts)
    count = len(numbers)
    return pa.table(
        {
            "id": pa.array(numbers).cast(pa.string()),
            "part": pa.array(numbers % FILES).cast(pa.string()),
            "ts": np.full(count, ts),
            "city": pa.array(rng.integers(0, 200, count)).cast(pa.string()),
            "fare": rng.random(count),
            "tip": rng.random(count),
            "meters": rng.integers(0, 100_000, count),
        }
    )


def make(path: Path, count: int) -> None:
    table = hoodie.create_table(path, table_type="MERGE_ON_READ", record_key="id", partition_by="part", ordering="ts")
    table.bulk_insert(rows(np.arange(count), 1))
    rng = np.random.default_rng(7)
    for ts in (2, 3):
        table.upsert(rows(rng.choice(count, count // 10, replace=False), ts))


def by_pyarrow(base: str, logs: pa.Table, out: str) -> None:
    """Read a base file, put the newest rows of the logs in their place, and write the result."""
    stored = pq.read_table(base)
    newest = logs.take(pc.sort_indices(logs, [("ts", "descending")]))
    encoded = pc.dictionary_encode(newest[KEY].combine_chunks()).indices.to_numpy()
    newest = newest.take(np.unique(encoded, return_index=True)[1])
    stays = stored.filter(pc.invert(pc.is_in(stored[KEY], value_set=newest[KEY])))
    merged = pa.concat_tables([stays, newest.select(stored.column_names).cast(stored.schema)])
    pq.write_table(merged, out, compression="zstd")


def log_rows(table: hoodie.HoodieTable) -> list[tuple[str, pa.Table]]:
    """The base file of each slice, and the decoded rows of its logs."""
    copies = [
        pq.read_table(each)
        for each in Path(table.uri.removeprefix("file://")).glob(".hoodie/.hoodie_py/rows/*.parquet")
    ]
    written = pa.concat_tables(copies)
    by_part = {}
    for part in pc.unique(written["part"]).to_pylist():
        by_part[part] = written.filter(pc.equal(written["part"], part))
    root = table.uri.removeprefix("file://")
    return [(f"{root}/{s.base.path}", by_part[s.group.partition_path]) for s in table.files() if s.base is not None]


def main(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="compaction-") as folder:
        made = Path(folder) / "made"
        make(made, count)
        ours, theirs = [], []
        for number in range(ROUNDS):
            path = Path(folder) / f"t{number}"
            shutil.copytree(made, path)
            table = hoodie.open_table(path)
            slices = log_rows(table)
            begun = time.process_time()
            for at, (base, logs) in enumerate(slices):
                by_pyarrow(base, logs, str(Path(folder) / f"out{at}.parquet"))
            theirs.append(time.process_time() - begun)
            del slices
            begun = time.process_time()
            table.compact()
            ours.append(time.process_time() - begun)
            shutil.rmtree(path)
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(
        f"{count:,} rows: compact() {mine:.2f} s, pyarrow {other:.2f} s with rows of logs decoded: {mine / other:.2f} times"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
