"""Queries that go by the metadata table give the rows that they give by the folders, and list none."""

import logging
import shutil

import pytest

import hoodie
from hoodie.errors import InstantNotFoundError
from hoodie.format.log_block import encode_block
from hoodie.metadata.table import MetadataTable
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.names import HOODIE, METADATA_TABLE, PROPERTIES
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage
from hoodie.storage.local import LocalStorage
from hoodie.txn.metadata_table import drop_metadata_table
from tests.followed import Counting
from tests.golden_tables import copy_golden
from tests.memory_tables import opened
from tests.metadata_tables import SCHEMA, files, hfile
from tests.public_tables import public_table
from tests.rows import rows_of

GOLDEN = ("v6_mdt_cow", "v6_mdt_mor", "v9_mdt_mor")
PUBLIC = (
    *("hudi-v6-table-mor", "hudi_comprehensive_types_v6_mor", "trips_logical_types_json_cow_read_v6"),
    *("hudi-v8-table-mor", "hudi-v9-table-mor", "v9_timebasedkeygen_epochmillis"),
)
BY_FOLDERS = {"hoodie.metadata.enable": "false"}


def golden(name, tmp_path):
    return (copy_golden if name in GOLDEN else public_table)(name, tmp_path).path


def rows(path, storage=None, options=None, **query):
    storage = storage or LocalStorage(str(path))
    return rows_of(opened(storage, options=options, cache=Cache()).scan(**query).to_arrow())


def newest(path):
    """The newest rows by their folders."""
    return rows(path, options=BY_FOLDERS)


def queries(path):
    """Kinds of queries of a table."""
    commits = [each.time for each in hoodie.open_table(path).timeline.commits]
    yield {}
    yield {"query": "read_optimized"}
    yield from ({"as_of": time} for time in commits)


@pytest.mark.parametrize("name", [*GOLDEN, *PUBLIC])
def test_no_folder_is_listed_and_the_rows_are_the_same(name, tmp_path):
    path = golden(name, tmp_path)
    for query in queries(path):
        counting = Counting(LocalStorage(str(path)))
        try:
            expected = rows(path, options=BY_FOLDERS, **query)
        except InstantNotFoundError:  # its files were cleaned
            with pytest.raises(InstantNotFoundError):
                rows(path, counting, **query)
        else:
            assert rows(path, counting, **query) == expected
        assert counting.listed == []
    counting = Counting(LocalStorage(str(path)))
    newest = rows(path, counting, BY_FOLDERS)
    assert counting.listed
    assert rows_of(hoodie.open_table(path).scan().to_arrow()) == newest


@pytest.mark.parametrize("name", [*GOLDEN, *PUBLIC])
def test_partitions_and_files_are_those_of_the_folders(name, tmp_path):
    path = golden(name, tmp_path)
    counting = Counting(LocalStorage(str(path)))
    by_table = opened(counting, cache=Cache())
    by_folders = opened(LocalStorage(str(path)), options=BY_FOLDERS, cache=Cache())
    partitions = by_table.partitions()
    assert (partitions, by_table.files()) == (by_folders.partitions(), by_folders.files())
    assert [by_table.files(each) for each in partitions] == [by_folders.files(each) for each in partitions]
    assert counting.listed == []


@pytest.mark.parametrize("name", [*GOLDEN, *PUBLIC])
def test_chosen_partitions_list_no_folder(name, tmp_path):
    path = golden(name, tmp_path)
    for partition in hoodie.open_table(path).partitions():
        where = f"_hoodie_partition_path = '{partition}'"
        counting = Counting(LocalStorage(str(path)))
        assert rows(path, counting, where=where) == rows(path, options=BY_FOLDERS, where=where)
        assert counting.listed == []


@pytest.mark.parametrize("name", GOLDEN)
def test_changes_list_no_folder(name, tmp_path):
    path = golden(name, tmp_path)
    counting = Counting(LocalStorage(str(path)))
    first = hoodie.open_table(path).timeline.commits[0].time

    def pulled(storage, options=None):
        table = opened(storage, options=options, cache=Cache())
        return rows_of(table.changes(since=first).to_arrow())

    assert pulled(counting) == pulled(LocalStorage(str(path)), BY_FOLDERS)
    assert counting.listed == []


class Footers(FaultStorage):
    """Counts the Parquet files that are opened."""

    def __init__(self, inner):
        super().__init__(inner)
        self.opened = 0

    def open_input(self, path, *, mapped=True):
        self.opened += path.endswith(".parquet")
        return super().open_input(path, mapped=mapped)

    def read(self, path, offset=0, length=None):
        self.opened += path.endswith(".parquet")
        return super().read(path, offset, length)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("hudi_comprehensive_types_v6_mor", "col_smallint > 3"),
        ("hudi_comprehensive_types_v6_mor", "col_decimal < 100.5 and col_string is not null"),
        ("trips_logical_types_json_cow_read_v6", "rider = 'rider-A'"),
    ],
)
def test_bounds_of_columns_take_the_place_of_footers(name, where, tmp_path):
    path = golden(name, tmp_path)

    def planned(options):
        storage = Footers(LocalStorage(str(path)))
        scan = opened(storage, options=options, cache=Cache()).scan(where=where, query="read_optimized")
        return scan, storage.opened

    by_table, opened_files = planned({})
    by_footers, _ = planned(BY_FOLDERS)
    assert opened_files == by_table.plan.pruning.footers
    assert by_table.plan.pruning.footers < by_footers.plan.pruning.footers
    assert by_table.plan.pruning.after_statistics == by_footers.plan.pruning.after_statistics
    assert rows_of(by_table.to_arrow()) == rows_of(by_footers.to_arrow())


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("v6_mdt_cow", "files/*.hfile"),
        ("v6_mdt_cow", "files/.*.log.2*"),
        ("v6_mdt_cow", "files/.*.log.4*"),
        ("v6_mdt_cow", ".hoodie/hoodie.properties"),
        ("v9_mdt_mor", "files/*.hfile"),
        ("v9_mdt_mor", "files/.*_20261127191403233.log.1*"),
    ],
)
@pytest.mark.parametrize("damage", ["gone", "cut", "garbled"])
def test_damage_makes_queries_list_and_is_said_once(name, pattern, damage, tmp_path, caplog):
    path = golden(name, tmp_path)
    expected = newest(path)
    (file,) = (path / METADATA_TABLE).glob(pattern)
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(data[: len(data) // 2] if damage == "cut" else data[:40] + bytes(len(data) - 40))
    cache = Cache()
    with caplog.at_level(logging.WARNING, "hoodie"):
        for _ in range(2):
            assert rows_of(opened(LocalStorage(str(path)), cache=cache).scan().to_arrow()) == expected
    (said,) = [each.getMessage() for each in caplog.records]
    assert "the metadata table" in said
    assert "hoodie doctor" in said


@pytest.mark.parametrize("name", ["v6_mdt_cow", "v9_mdt_mor"])
def test_a_stale_one_put_back_from_a_copy_is_not_used(name, tmp_path):
    path = golden(name, tmp_path)
    shutil.copytree(path / HOODIE, tmp_path / "copy")
    table = hoodie.open_table(path, options=BY_FOLDERS)
    old = table.scan().to_arrow()
    table.delete(old.slice(0, 1))
    assert not (path / METADATA_TABLE).exists()
    shutil.copytree(tmp_path / "copy" / "metadata", path / METADATA_TABLE)
    shutil.copy(tmp_path / "copy" / "hoodie.properties", path / PROPERTIES)
    found = rows(path)
    assert found == newest(path)
    assert len(found) == old.num_rows - 1


def test_a_file_that_it_names_and_that_is_not_there_makes_queries_list(tmp_path, caplog):
    path = golden("v6_mdt_cow", tmp_path)
    expected = newest(path)
    # A record that the newest delta commit did not have: a file of an archived instant.
    own = path / METADATA_TABLE
    commit = max((own / HOODIE).glob("*.deltacommit"))
    stated = commit.read_text(encoding="utf-8")
    (log_file,) = (each for each in own.glob("files/.*.log.*") if f'"files/{each.name}"' in stated)
    header = {HeaderKey.INSTANT_TIME: commit.stem, HeaderKey.SCHEMA: SCHEMA}
    wrong = {"a": files({"ffffffff-0000-4000-8000-000000000000-0_0-1-1_20200101000000000.parquet": 9})}
    old_size = log_file.stat().st_size
    log_file.write_bytes(log_file.read_bytes() + encode_block(BlockKind.HFILE_DATA, header, hfile(wrong)))
    commit.write_text(stated.replace(str(old_size), str(log_file.stat().st_size)), encoding="utf-8")
    cache = Cache()
    with caplog.at_level(logging.WARNING, "hoodie"):
        for _ in range(2):
            assert rows_of(opened(LocalStorage(str(path)), cache=cache).scan().to_arrow()) == expected
    (said,) = [each.getMessage() for each in caplog.records]
    assert "does not fit its files" in said


class Interrupted(FaultStorage):
    """At the n-th call another writer does its work."""

    def __init__(self, inner, at, work):
        super().__init__(inner)
        self.at, self.work, self.calls = at, work, 0

    def _next(self):
        self.calls += 1
        if self.calls == self.at:
            self.work()

    def read(self, path, offset=0, length=None):
        self._next()
        return super().read(path, offset, length)

    def list(self, folder, *, recursive=False):
        self._next()
        return super().list(folder, recursive=recursive)

    def names(self, folder):
        self._next()
        return super().names(folder)

    def stat(self, path):
        self._next()
        return super().stat(path)

    def open_input(self, path, *, mapped=True):
        self._next()
        return super().open_input(path, mapped=mapped)


def half_dropped(path):
    """A drop that was stopped in the middle, at its worst: the newest instant and its log are left, and make sense."""
    properties = path / PROPERTIES
    lines = properties.read_text(encoding="utf-8").splitlines()
    properties.write_text("".join(f"{line}\n" for line in lines if "metadata.partitions" not in line), encoding="utf-8")
    own = path / METADATA_TABLE
    for pattern, left in ((".hoodie/*commit*", 3), ("files/.*.log.*", 1)):
        for file in sorted(own.glob(pattern))[:-left]:
            file.unlink()


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("work", [lambda path: drop_metadata_table(LocalStorage(str(path))), half_dropped])
def test_a_writer_drops_it_while_a_query_is_planned(name, work, tmp_path, caplog):
    expected = newest(golden(name, tmp_path / "0"))
    at, is_done = 0, False
    while not is_done:
        at += 1
        path = golden(name, tmp_path / str(at))
        storage = Interrupted(LocalStorage(str(path)), at, lambda path=path: work(path))
        with caplog.at_level(logging.WARNING, "hoodie"):
            assert rows(path, storage) == expected, at
        is_done = storage.calls < at
    assert at > 10
    assert "does not fit" not in caplog.text


def test_one_that_leaves_a_committed_file_out_makes_queries_list(tmp_path, monkeypatch):
    path = golden("v6_mdt_cow", tmp_path)
    expected = newest(path)
    whole = MetadataTable.files

    def short(self, partition_paths):
        found = whole(self, partition_paths)
        return None if found is None else [each[1:] for each in found]

    monkeypatch.setattr(MetadataTable, "files", short)
    monkeypatch.setattr(MetadataTable, "all_files", lambda self: {})
    table = opened(LocalStorage(str(path)), cache=Cache())
    assert rows_of(table.scan().to_arrow()) == expected
