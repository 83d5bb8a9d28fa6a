"""A compaction of logs that are much larger than what it may hold, measured in a process of its own."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import hoodie

MB = 1024 * 1024
ROWS, ROUNDS, LIMIT_MB = 250_000, 4, 64

RUN = """
import json, resource, sys
import pyarrow as pa
import hoodie

table = hoodie.open_table(sys.argv[1])
table.scan(columns=["id"])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
table.compact(memory_mb=int(sys.argv[2]))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"pool": pa.default_memory_pool().max_memory(), "rss": (after - before) * 1024}))
"""


def rows(numbers, ts):
    rng = np.random.default_rng(ts)
    columns = {"id": pa.array([f"key-{n:012d}" for n in numbers]), "ts": np.full(len(numbers), ts)}
    for at in range(6):
        columns[f"text{at}"] = pa.array([f"{value:030d}" for value in rng.integers(0, 1 << 40, len(numbers))])
        columns[f"number{at}"] = rng.random(len(numbers))
    return pa.table(columns)


@pytest.mark.long
def test_memory_stays_within_its_bound_however_large_the_logs_are(tmp_path):
    path = tmp_path / "t"
    one_file = {"hoodie.parquet.max.file.size": str(10**12)}
    table = hoodie.create_table(path, table_type="MERGE_ON_READ", record_key="id", ordering="ts", options=one_file)
    table.bulk_insert(rows(range(ROWS), 0))
    decoded = 0
    for ts in range(1, ROUNDS + 1):
        batch = rows(np.random.default_rng(ts).permutation(ROWS)[: ROWS * 4 // 5], ts)
        decoded += batch.nbytes
        table.upsert(batch)
    assert decoded > 3 * LIMIT_MB * MB
    block = max(log.size_bytes for file_slice in table.files() for log in file_slice.logs)
    before = table.scan().to_arrow().sort_by("id")
    command = [sys.executable, "-c", RUN, str(path), str(LIMIT_MB)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["pool"] < LIMIT_MB * MB
    assert found["rss"] < 2 * LIMIT_MB * MB + 2 * block
    after = hoodie.open_table(path).scan().to_arrow().sort_by("id")
    assert after.equals(before)
