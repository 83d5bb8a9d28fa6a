"""What users of 0.1 have stored (two tables and a key-value store, as that release wrote them) is read and gone on with."""

import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
import hoodie.kv

STORED = Path(__file__).parent / "stored_by_0_1.zip"
ROWS = {"a": 10, "b": 2, "d": 4, "e": 5}


@pytest.fixture
def folder(tmp_path):
    with zipfile.ZipFile(STORED) as archive:
        archive.extractall(tmp_path)
    for path in tmp_path.glob("*/.hoodie/2*"):  # a zip keeps no times, by which Apache Hudi orders logs of version 6
        written = datetime.strptime(path.name[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
        os.utime(path, (written, written))
    return tmp_path


def rows_by_id(scan):
    return {row["id"]: row["n"] for row in scan.to_arrow().to_pylist()}


@pytest.mark.parametrize(("name", "b"), [("copy_on_write", 2), ("merge_on_read", 20)])
def test_tables_are_read_and_gone_on_with(folder, name, b):
    table = hoodie.open_table(folder / name)
    rows = ROWS | {"b": b}
    assert rows_by_id(table.scan()) == rows
    (saved,) = table.savepoints()
    assert rows_by_id(table.scan(as_of=saved.instant)) == {"a": 1, "b": 2, "c": 3, "e": 5}
    with table.consumer("job") as consumer:
        assert rows_by_id(consumer.changes()) == {key: n for key, n in rows.items() if key != "e" and n != 2}
    if name == "merge_on_read":
        assert len(table.compact()) == 1  # one was pending
    assert rows_by_id(table.scan(query="read_optimized")) == rows
    table.upsert(pa.table({"id": ["e", "f"], "part": ["z", "z"], "n": [6, 7], "ts": [9, 9]}))
    table.delete(pa.table({"id": ["a"], "part": ["x"]}))
    assert rows_by_id(table.scan()) == {"b": b, "d": 4, "e": 6, "f": 7}
    assert table.validate().problems == ()
    table.upgrade(9)
    assert rows_by_id(hoodie.open_table(folder / name).scan()) == {"b": b, "d": 4, "e": 6, "f": 7}


def test_a_key_value_store_is_gone_on_with(folder):
    store = hoodie.kv.open_store(folder / "state", buckets=2)
    for bucket in (0, 1):
        with store.writer(bucket) as writer:
            assert writer.last_window == 2
            keys = pa.array([f"k{number}".encode() for number in range(5)])
            assert writer.lookup_many(keys).to_pylist() == [b"v0", b"new", None, b"v3", b"v4"]
            writer.put(b"k2", b"again")
            writer.end_window(3)
            writer.flush()
        assert store.reader(bucket).get(b"k2") == b"again"
