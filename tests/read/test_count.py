"""Rows are counted by commits and footers where these tell, and are as many as a scan has."""

import json

import pyarrow as pa
import pytest

from hoodie.storage.cache import Cache
from hoodie.txn.heartbeat import WRITER
from tests.memory_tables import Input, batch, keys, new_table, opened, reads

ROWS = [Input(f"k{n}", f"p{n % 3}", n, n) for n in range(9)]


def of_another_writer(storage):
    content = storage.snapshot()
    for path, (data, mtime) in content.files.items():
        if WRITER.encode() in data:
            commit = json.loads(data)
            del commit["extraMetadata"][WRITER]
            for stats in commit["partitionToWriteStats"].values():
                for stat in stats:
                    stat["numWrites"] = 77 if (stat["path"] or "").endswith(".parquet") else stat["numWrites"]
            content.files[path] = (json.dumps(commit).encode(), mtime)
    storage.restore(content)


def counted(storage, clock, **query):
    table = opened(storage, clock, cache=Cache())
    return table.scan(**query).count(), table.scan(**query).to_arrow().num_rows


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("ours", [True, False], ids=["ours", "others"])
def test_a_count_is_that_of_the_rows(table_type, ours):
    storage, clock = new_table(table_type=table_type)
    table = opened(storage, clock)
    table.insert(batch(ROWS))
    table.upsert(batch([Input("k0", "p0", 20, 1), Input("new", "p1", 20, 1)]))
    table.delete(keys([ROWS[4]]))
    instants = [each.time for each in table.timeline.commits]
    if not ours:
        of_another_writer(storage)
    queries = [{}, {"where": "val > 3"}, {"query": "read_optimized"}, {"columns": ["val"]}, {"as_of": instants[0]}]
    for query in queries:
        found, there = counted(storage, clock, **query)
        assert found == there, query
    table = opened(storage, clock, cache=Cache())
    assert [table.scan().limit(n).count() for n in (0, 4, 9, 50)] == [0, 4, 9, 9]
    changes = table.changes(since=instants[0])
    assert changes.count() == changes.to_arrow().num_rows
    assert table.dataset().count_rows() == 9


def test_files_of_our_commits_are_not_opened_to_be_counted(monkeypatch):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).insert(batch(ROWS))
    opened_files = reads(storage, monkeypatch)
    assert opened(storage, clock, cache=Cache()).scan().count() == 9
    assert opened_files() == []


def test_of_files_of_others_the_footers_are_read(monkeypatch):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    opened(storage, clock).insert(batch(ROWS))
    of_another_writer(storage)
    decoded = []
    iter_batches = pa.parquet.ParquetFile.iter_batches
    monkeypatch.setattr(
        pa.parquet.ParquetFile, "iter_batches", lambda *a, **k: (decoded.append(a), iter_batches(*a, **k))[1]
    )
    opened_files = reads(storage, monkeypatch)
    assert opened(storage, clock, cache=Cache()).scan().count() == 9
    assert len(opened_files()) == 3
    assert decoded == []
