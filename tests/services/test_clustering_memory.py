"""A clustering holds about as much memory as a compaction may, however large its groups are."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import hoodie
from hoodie.filegroup import cluster as work
from hoodie.model.tuning import Tuning
from hoodie.services.clustering import sorted_bytes_of
from tests.memory_tables import Input, batch, new_table, opened, snapshot_of

MB = 1024 * 1024
LIMIT_MB = 64
SMALL = {"hoodie.memory.compaction.max.size": str(LIMIT_MB * MB)}

RUN = """
import json, resource, sys
import pyarrow as pa
import hoodie

table = hoodie.open_table(sys.argv[1])
table.scan(columns=["id"])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
table.cluster(sort_by=["number0"], options=json.loads(sys.argv[2]))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"pool": pa.default_memory_pool().max_memory(), "rss": (after - before) * 1024, "rows": table.scan().count()}))
"""


def rows(numbers, ts):
    rng = np.random.default_rng(ts)
    columns = {"id": pa.array([f"key-{n:012d}" for n in numbers]), "ts": np.full(len(numbers), ts)}
    for at in range(6):
        columns[f"text{at}"] = pa.array([f"{value:030d}" for value in rng.integers(0, 1 << 40, len(numbers))])
        columns[f"number{at}"] = rng.random(len(numbers))
    return pa.table(columns)


@pytest.mark.long
def test_groups_with_logs_that_are_larger_than_memory(tmp_path):
    one_file = {"hoodie.parquet.max.file.size": str(10**12)}
    table = hoodie.create_table(
        tmp_path / "t", table_type="MERGE_ON_READ", record_key="id", ordering="ts", options=one_file
    )
    table.bulk_insert(rows(range(250_000), 0))
    decoded = 0
    for ts in range(1, 5):
        changes = rows(np.random.default_rng(ts).permutation(250_000)[:200_000], ts)
        decoded += changes.nbytes
        table.upsert(changes)
    assert decoded > 3 * LIMIT_MB * MB
    block = max(log.size_bytes for file_slice in table.files() for log in file_slice.logs)
    before = table.scan().to_arrow().sort_by("id")
    command = [sys.executable, "-c", RUN, str(tmp_path / "t"), json.dumps(SMALL)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["rows"] == 250_000
    assert found["pool"] < 2 * LIMIT_MB * MB
    assert found["rss"] < 3 * LIMIT_MB * MB + 2 * block
    assert hoodie.open_table(tmp_path / "t").scan().to_arrow().sort_by("id").equals(before)


def test_what_may_be_held_decides_how_much_is_sorted_at_once_and_what_goes_to_disk(monkeypatch):
    contexts = []

    def watch(name):
        run = getattr(work, name)

        def watched(storage, context, task):
            contexts.append((name, context))
            return run(storage, context, task)

        monkeypatch.setattr(f"hoodie.services.clustering.{name}", watched)

    for name in ("run_cluster", "run_split", "run_join"):
        watch(name)
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock, {"hoodie.parquet.small.file.limit": "0"}, tuning=Tuning(least_room_bytes=1))
    for turn in range(3):
        table.insert(batch(Input(f"k{4 * turn + n}", "a", n, turn) for n in range(4)))
    table.upsert(batch(Input(f"k{n}", "a", 50 - n, 9) for n in range(6)))
    before = [row[:-1] for row in snapshot_of(table)]
    table.cluster(sort_by="val")
    assert [name for name, _ in contexts] == ["run_cluster"]
    contexts.clear()
    table.upsert(batch(Input(f"k{n}", "a", 50 - n, 10) for n in range(6)))
    table.cluster(sort_by="val", options={"hoodie.memory.compaction.max.size": "1000"})
    assert {name for name, _ in contexts} == {"run_split", "run_join"}
    assert {context.memory_bytes for _, context in contexts} == {1000}
    assert {sorted_bytes_of(context) for _, context in contexts} == {200}
    assert [row[:3] for row in snapshot_of(table)] == [row[:3] for row in before]
