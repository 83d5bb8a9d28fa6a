"""Embedded writes keep to a limit: what is more than that of a batch waits in files, and the table is the same."""

from dataclasses import replace

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine.local import TASK_BYTES, LocalEngine
from hoodie.filegroup.chunks import load_chunk
from hoodie.storage.memory import MemoryStorage
from hoodie.write.prepare import Memory, run_prepare
from tests.write.preparing import preparation, rows


def test_chunks_are_staged_once_half_of_the_limit_is_taken():
    asked = []

    def folder():
        asked.append("rows")
        return "rows"

    memory = Memory(1000, MemoryStorage(), folder)
    places = [memory.place(200)[1] for _ in range(4)]
    assert places == [None, None, "rows", "rows"]
    assert memory.place(100)[1] is None
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("limit", "chunk_bytes", "least"), [(40_000, 1 << 40, 4), (1 << 40, 5_000, 4), (1 << 40, 1 << 40, 1)]
)
def test_chunks_are_as_small_as_the_limit_or_the_tuning_says(limit, chunk_bytes, least):
    table = rows(*((f"{i:05}", "p", i) for i in range(2000)))
    prepared = replace(preparation(), chunk_bytes=chunk_bytes)
    storage = MemoryStorage()
    storage.mkdirs("rows")
    memory = Memory(limit, storage, lambda: "rows")
    chunks = list(run_prepare(prepared, None, None, table.to_batches(), memory=memory))
    assert (len(chunks) == 1) is (least == 1)
    assert len(chunks) >= least
    assert sum(chunk.rows for chunk in chunks) == 2000


def test_as_many_tasks_at_once_as_fit_at_least_one():
    engine = LocalEngine(4)
    assert engine.within(0)._threads == 1
    assert engine.within(2 * TASK_BYTES)._threads == 2
    assert engine.within(100 * TASK_BYTES)._threads == 4


@pytest.mark.parametrize("limit", [40_000, 1 << 40])
@pytest.mark.parametrize("batch_rows", [70, 2000])
def test_rows_of_one_large_batch_and_of_many_small_ones_come_in_order(limit, batch_rows):
    storage = MemoryStorage()
    storage.mkdirs("rows")
    table = rows(*((f"{i:05}", "p", i) for i in range(2000)))
    memory = Memory(limit, storage, lambda: "rows")
    chunks = list(run_prepare(preparation(), None, None, table.to_batches(max_chunksize=batch_rows), memory=memory))
    assert [value for chunk in chunks for value in load_chunk(storage, chunk)["v"].to_pylist()] == list(range(2000))
    assert any(chunk.path for chunk in chunks) is (limit < 1 << 40)
    assert (len(chunks) > 1) is (limit < 1 << 40)


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert", "insert_overwrite_table", "delete"])
def test_a_batch_larger_than_the_limit_gives_the_same_table(tmp_path, monkeypatch, operation):
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("n", pa.int64())])
    count = 5000
    ids, parts = [f"{i:05}" for i in range(count)], [f"p{i % 3}" for i in range(count)]

    def batches(n):
        table = pa.table({"id": ids, "part": parts, "n": [n] * count}, schema=schema)
        return pa.RecordBatchReader.from_batches(schema, table.to_batches(max_chunksize=600))

    found = []
    for name in ("small", "large"):
        table = hoodie.create_table(tmp_path / name, schema, record_key="id", partition_by="part")
        table.upsert(batches(0))
        with monkeypatch.context() as patch:
            if name == "small":
                made = Memory.__init__
                patch.setattr(Memory, "__init__", lambda self, _, *rest, made=made: made(self, 100_000, *rest))
            getattr(table, operation)(batches(1))
        found.append(sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (row["id"], row["n"])))
        assert [path.name for path in (tmp_path / name / ".hoodie/.hoodie_py/staging").glob("*")] == []
    assert found[0] == found[1]


def test_the_limit_is_an_option_of_each_write(tmp_path):
    schema = pa.schema([("id", pa.string())])
    table = hoodie.create_table(tmp_path, schema, record_key="id")
    assert table.upsert(pa.table({"id": ["a"]}), {"hoodie.python.memory.limit.mb": "128"}).inserted == 1
    with pytest.raises(hoodie.OptionError, match="memory"):
        table.upsert(pa.table({"id": ["a"]}), {"hoodie.python.memory.limit.mb": "1"})
