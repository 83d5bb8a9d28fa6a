"""Publishing the files of a write, and what its commit says."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hoodie.format.properties import parse_properties
from hoodie.model.enums import WriteOperation
from hoodie.model.names import marker_path
from hoodie.model.payloads import WriteStat
from hoodie.model.plans import StagedFile, WriteResult
from hoodie.publish.renaming import RenamingPublisher
from hoodie.storage.faults import FaultStorage
from hoodie.write.publish import commit_metadata, ensure_partitions, publish_files
from tests.memory_tables import FakeClock, Input, batch, create, new_storage, opened
from tests.placed import in_memory

T = "20260101000000001"


def result(partition, name, kind="CREATE"):
    final = f"{partition}/{name}" if partition else name
    return WriteResult(WriteStat(name, partition, final), StagedFile(f"stage/{final}", final, kind))


def publishing(storage):
    """What of an open table publishing goes by."""
    return SimpleNamespace(storage=storage, publisher=RenamingPublisher(storage))


def staged(*results):
    storage = new_storage(FakeClock())
    for found in results:
        storage.create_new(found.file.staged, found.file.final.encode())
    return storage


@pytest.mark.parametrize(("partition", "depth"), [("", 0), ("a", 1), ("a/b", 2), ("y=1/m=2/d=3", 3)])
def test_partition_metadata_say_how_deep_the_folder_lies(partition, depth):
    storage = new_storage(FakeClock())
    ensure_partitions(storage, [partition], T)
    path = f"{partition}/.hoodie_partition_metadata".lstrip("/")
    assert parse_properties(storage.read(path).decode(), path=path) == {"commitTime": T, "partitionDepth": str(depth)}


def test_partition_metadata_are_written_once():
    storage = new_storage(FakeClock())
    storage.create_new("a/.hoodie_partition_metadata", b"theirs")
    ensure_partitions(storage, ["a"], T)
    assert storage.read("a/.hoodie_partition_metadata") == b"theirs"


class Overtaken(FaultStorage):
    """Another writer makes every file between the look and the creation."""

    def create_new(self, path, data, *, via=None, durable=True):
        self._inner.create_new(path, b"theirs")
        super().create_new(path, data, via=via, durable=durable)


def test_another_writer_may_be_first():
    storage = new_storage(FakeClock())
    ensure_partitions(Overtaken(storage), ["a"], T)
    assert storage.read("a/.hoodie_partition_metadata") == b"theirs"


class Recorder:
    """Notes the calls that change the storage, in order."""

    def __init__(self, storage):
        self._storage = storage
        self.calls = []

    def __getattr__(self, name):
        call = getattr(self._storage, name)
        if name == "move_all_new":
            return lambda moves: [self.move_new(*move) for move in moves]
        if name == "create_missing":
            return lambda files: [self.create_new(*file) for file in files]
        if name not in {"create_new", "touch", "move_new"}:
            return call

        def noted(*args):
            self.calls.append((name, *(arg for arg in args if isinstance(arg, str))))
            return call(*args)

        return noted


@in_memory("publishes by renaming")
def test_partition_metadata_come_first_then_all_markers_then_the_files():
    results = [result("b", "f1"), result("a/x", ".l1", "APPEND"), result("a/x", "f2", "MERGE")]
    storage = Recorder(staged(*results))
    publish_files(publishing(storage), T, results)
    assert storage.calls == [
        ("create_new", "a/x/.hoodie_partition_metadata"),
        ("create_new", "b/.hoodie_partition_metadata"),
        ("touch", marker_path(T, "b", "f1", "CREATE")),
        ("touch", marker_path(T, "a/x", ".l1", "APPEND")),
        ("touch", marker_path(T, "a/x", "f2", "MERGE")),
        ("move_new", "stage/b/f1", "b/f1"),
        ("move_new", "stage/a/x/.l1", "a/x/.l1"),
        ("move_new", "stage/a/x/f2", "a/x/f2"),
    ]
    assert storage.read("a/x/f2") == b"a/x/f2"
    assert not storage.exists("stage/b/f1")


@pytest.mark.parametrize(
    ("stat", "is_asked"),
    [
        ({"prev_commit": "20250101000000001"}, False),
        ({"prev_commit": None}, True),
        ({"prev_commit": T, "log_version": 1, "base_file": "", "log_files": (".l1",)}, True),
        ({"prev_commit": T, "log_version": 1, "base_file": "b", "log_files": (".l1",)}, False),
        ({"prev_commit": T, "log_version": 2, "base_file": "", "log_files": (".l1", ".l2")}, False),
    ],
    ids=["base file goes on", "new", "log of a new group", "log on a base file", "log on a log"],
)
@in_memory("publishes by renaming")
def test_only_a_folder_where_nothing_but_new_file_groups_go_is_made_a_partition(stat, is_asked):
    found = result("a", "f2")
    found = replace(found, stat=replace(found.stat, **stat))
    storage = staged(found)
    publish_files(publishing(storage), T, [found])
    assert storage.exists("a/.hoodie_partition_metadata") == is_asked


@in_memory("publishes by renaming")
def test_a_folder_with_new_file_groups_too_is_a_partition():
    goes_on = result("a", "f2")
    goes_on = replace(goes_on, stat=replace(goes_on.stat, prev_commit="20250101000000001"))
    results = [goes_on, result("b", "f3")]
    storage = staged(*results)
    publish_files(publishing(storage), T, results)
    assert storage.exists("b/.hoodie_partition_metadata")


@in_memory("publishes by renaming")
def test_files_of_a_table_without_partitions():
    results = [result("", "f1")]
    storage = staged(*results)
    publish_files(publishing(storage), T, results)
    assert storage.exists(f".hoodie/.temp/{T}/f1.marker.CREATE")
    assert storage.exists(".hoodie_partition_metadata")
    assert storage.read("f1") == b"f1"


@in_memory("publishes by renaming")
def test_no_file_is_replaced():
    results = [result("a", "f1")]
    storage = staged(*results)
    storage.create_new("a/f1", b"theirs")
    with pytest.raises(FileExistsError):
        publish_files(publishing(storage), T, results)
    assert storage.read("a/f1") == b"theirs"


@in_memory("publishes by renaming")
def test_nothing_written_publishes_nothing():
    storage = Recorder(new_storage(FakeClock()))
    publish_files(publishing(storage), T, [])
    assert storage.calls == []


def test_what_a_commit_says():
    results = [result("b", "f1"), result("a", "f2"), result("b", "f3")]
    schema = pa.schema([pa.field("id", pa.string(), False), ("v", pa.int64())])
    found = commit_metadata(
        results, operation=WriteOperation.UPSERT, schema=schema, table_name="t", compacted=True, extra={"k": "v"}
    )
    assert {part: [stat.path for stat in stats] for part, stats in found.write_stats.items()} == {
        "b": ["b/f1", "b/f3"],
        "a": ["a/f2"],
    }
    assert (found.operation, found.compacted, found.extra) == (WriteOperation.UPSERT, True, {"k": "v"})
    stated = json.loads(found.schema_json)
    assert [field["name"] for field in stated["fields"]] == ["id", "v"]
    assert ": " not in found.schema_json
    plain = commit_metadata([], operation=WriteOperation.DELETE, schema=schema, table_name="t")
    assert (plain.write_stats, plain.extra, plain.compacted) == ({}, {}, False)


@pytest.mark.parametrize(("files", "folders"), [(100, 100), (101, 0)])
def test_many_markers_are_lines_of_one_file(files, folders):
    clock = FakeClock()
    storage = Touched(new_storage(clock))
    create(storage, table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch(Input(str(n), f"p{n:03d}") for n in range(files)))
    assert sum("/.temp/" in path for path in storage.touched) == folders


class Touched(FaultStorage):
    def __init__(self, inner):
        super().__init__(inner)
        self.touched = []

    def touch(self, path):
        self.touched.append(path)
        super().touch(path)
