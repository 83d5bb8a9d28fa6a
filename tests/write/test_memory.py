"""Embedded writes keep to a limit: what is more than that of a batch waits in files, and the table is the same."""

import errno
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine.local import TASK_BYTES, LocalEngine
from hoodie.errors import StorageFullError
from hoodie.filegroup.chunks import load_chunk, make_chunk, sorted_chunks
from hoodie.filegroup.unused_memory import release_maps
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.storage.base import Storage
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.write.prepare import run_prepare
from hoodie.write.row_memory import RowMemory
from tests.write.preparing import preparation, rows


@pytest.fixture(params=["disk", "elsewhere"])
def storage(request, tmp_path) -> Storage:
    return LocalStorage(str(tmp_path / "t")) if request.param == "disk" else MemoryStorage()


def chunk_of(count):
    return make_chunk(pa.table({RECORD_KEY: ["k"] * count, PARTITION_PATH: ["p"] * count}))


def test_chunks_go_to_files_once_half_of_the_limit_is_taken(storage):
    size = chunk_of(100).size_bytes
    memory = RowMemory(5 * size, storage)
    held = [memory.keep(chunk_of(100)) for _ in range(4)]
    assert [chunk.mapped for chunk in held] == [False, False, True, True]
    assert not memory.keep(chunk_of(50)).mapped
    assert all(load_chunk(storage, chunk) == chunk_of(100).table for chunk in held)


def test_a_mapped_chunk_leaves_no_file(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    chunk = RowMemory(0, storage).keep(chunk_of(1000))
    assert chunk.mapped
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert storage.list("", recursive=True) == []
    assert chunk.table.num_rows == 1000


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_says_which_and_what_to_do(storage, monkeypatch, number):
    def refuse(**_):
        raise OSError(number, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    fix = "make room there" if isinstance(storage, LocalStorage) else "set TMPDIR"
    with pytest.raises(StorageFullError, match=f"do not fit into memory wait in .*{fix}.*memory.limit.mb"):
        RowMemory(0, storage).keep(chunk_of(10))


def test_another_error_is_not_taken_for_a_full_disk(storage, monkeypatch):
    def refuse(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(PermissionError):
        RowMemory(0, storage).keep(chunk_of(10))


@pytest.mark.parametrize(
    ("limit", "chunk_bytes", "least"), [(40_000, 1 << 40, 4), (1 << 40, 5_000, 4), (1 << 40, 1 << 40, 1)]
)
def test_chunks_are_as_small_as_the_limit_or_the_tuning_says(limit, chunk_bytes, least):
    table = rows(*((f"{i:05}", "p", i) for i in range(2000)))
    prepared = replace(preparation(), chunk_bytes=chunk_bytes)
    memory = RowMemory(limit, MemoryStorage())
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
def test_rows_of_one_large_batch_and_of_many_small_ones_come_in_order(storage, limit, batch_rows):
    table = rows(*((f"{i:05}", "p", i) for i in range(2000)))
    memory = RowMemory(limit, storage)
    chunks = list(run_prepare(preparation(), None, None, table.to_batches(max_chunksize=batch_rows), memory=memory))
    assert [value for chunk in chunks for value in load_chunk(storage, chunk)["v"].to_pylist()] == list(range(2000))
    assert any(chunk.mapped for chunk in chunks) is (limit < 1 << 40)
    assert (len(chunks) > 1) is (limit < 1 << 40)


def test_chunks_in_files_are_not_brought_back_to_be_sorted(storage):
    memory = RowMemory(2 * chunk_of(100).size_bytes, storage)
    chunks = [memory.keep(chunk_of(100)) for _ in range(3)]
    assert [chunk.mapped for chunk in chunks] == [False, True, True]
    assert sorted_chunks(chunks) == chunks


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
                made = RowMemory.__init__
                patch.setattr(RowMemory, "__init__", lambda self, _, *rest, made=made: made(self, 100_000, *rest))
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


def file_pages_mb():
    """How many MB of mapped files count as memory of this process."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["RssFile"].split()[0]) // 1024


on_linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say it")


@on_linux
def test_pages_of_rows_in_files_are_let_go(storage):
    before = file_pages_mb()
    text = "x" * 1_000_000
    chunk = RowMemory(0, storage).keep(make_chunk(pa.table({RECORD_KEY: [text] * 32, PARTITION_PATH: ["p"] * 32})))
    assert chunk.table.column(RECORD_KEY).to_pylist() == [text] * 32
    assert file_pages_mb() - before > 24
    release_maps()
    assert file_pages_mb() - before < 8
    assert chunk.table.column(RECORD_KEY)[31].as_py() == text


class Watching(LocalEngine):
    """Notes what mapped files take after each task."""

    def __init__(self):
        super().__init__(1)
        self.seen = []

    def run(self, fn, tasks, *, label, at_once=1):
        def noted(task):
            result = fn(task)
            self.seen.append(file_pages_mb())
            return result

        return super().run(noted, tasks, label=label)


@on_linux
@pytest.mark.long
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_that_wait_in_files_do_not_stay_in_memory_once_they_are_written(tmp_path, kind):
    engine = Watching()
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="p", table_type=kind, engine=engine)
    table.upsert({"id": [0], "p": ["0"], "v": ["x"]})
    before = file_pages_mb()
    batches = (
        pa.table({"id": range(n, n + 8), "p": list("01234567"), "v": ["x" * 1_000_000] * 8}) for n in range(0, 160, 8)
    )
    table.upsert(batches, {"hoodie.python.memory.limit.mb": "64"})
    assert table.scan().count() == 160
    assert max(engine.seen) - before < 48
