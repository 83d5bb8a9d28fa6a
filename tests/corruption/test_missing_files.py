"""A committed file that is gone is an error that names it, in every way of reading and writing; one that was cleaned is none."""

import shutil

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFileError, HoodieError, MissingFileError, TableNotFoundError
from hoodie.model.names import HOODIE
from hoodie.storage.faults import FaultStorage
from hoodie.storage.local import LocalStorage
from tests.effort import long_but
from tests.golden_tables import copy_golden, golden_names, shows_services
from tests.memory_tables import Input, batch, new_table, opened
from tests.rows import rows_of

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
METADATA = ".hoodie_partition_metadata"


def table_of(path, table_type, *, partition_by="p"):
    """Three versions of a row in each of two partitions."""
    table = hoodie.create_table(path, record_key="id", partition_by=partition_by, ordering="ts", table_type=table_type)
    for version in (1, 2, 3):
        table.upsert(rows(version))
    return table


def rows(version, ids=("a", "b"), parts=("x", "y")):
    return pa.table({"id": list(ids), "p": list(parts), "ts": [version] * len(ids), "v": [version] * len(ids)})


def newest(table, partition="x"):
    """The path of the file that was written last into the partition."""
    (file_slice,) = [each for each in table.files() if each.group.partition_path == partition]
    return file_slice.logs[-1].path if file_slice.logs else file_slice.base.path


def read_all(table):
    return sorted((row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist())


def as_another_process(path):
    """Opened without what this process knows of the files that it has written."""
    table = hoodie.open_table(path)
    table._context.kept_view()
    return table


EVERY_WAY = {
    "scan": lambda table: table.scan(),
    "read optimized": lambda table: table.scan(query="read_optimized"),
    "as of now": lambda table: table.scan(as_of=table.timeline.commits[-1].time),
    "changes": lambda table: table.changes(),
    "changes since the first": lambda table: table.changes(since=table.timeline.commits[0].time),
    "feed": lambda table: table.changes(images="before_after"),
    "files": lambda table: table.files(),
    "upsert": lambda table: table.upsert(rows(4)),
    "delete": lambda table: table.delete(rows(4).select(["id", "p"])),
    "delete where": lambda table: table.delete(where="id = 'a'"),
}


@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("partition_by", long_but(["p"], ["p", None]))
def test_the_newest_file_of_a_group(tmp_path, table_type, partition_by, way):
    table = table_of(tmp_path / "t", table_type, partition_by=partition_by)
    path = newest(table, "x" if partition_by else "")
    (tmp_path / "t" / path).unlink()
    with pytest.raises(CorruptFileError) as told:
        EVERY_WAY[way](as_another_process(tmp_path / "t"))
    assert path in str(told.value)
    assert len(table.timeline.commits) == 3


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("way", ["upsert", "delete", "delete where"])
def test_the_process_that_wrote_it_says_the_same(tmp_path, table_type, way):
    table = table_of(tmp_path / "t", table_type)
    if table_type == MOR:
        table.compact()
    (tmp_path / "t" / newest(table)).unlink()
    with pytest.raises(MissingFileError) as scanned:
        table.scan()
    with pytest.raises(MissingFileError) as told:
        EVERY_WAY[way](table)
    assert str(told.value) == str(scanned.value)
    assert not table.timeline.pending_writes


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_what_was_there_before_the_lost_file_can_still_be_read(tmp_path, table_type):
    table = table_of(tmp_path / "t", table_type)
    (tmp_path / "t" / newest(table)).unlink()
    first, second, _ = table.timeline.commits
    assert [row["v"] for row in table.scan(as_of=second.time).to_arrow().to_pylist()] == [2, 2]
    assert [row["v"] for row in table.changes(since=first.time, until=second.time).to_arrow().to_pylist()] == [2, 2]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_an_older_file_is_missed_only_where_it_counts(tmp_path, table_type):
    table = table_of(tmp_path / "t", table_type)
    if table_type == MOR:
        table.compact()
    old = min((tmp_path / "t" / "x").glob("*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    old.unlink()
    assert read_all(table) == [("a", 3), ("b", 3)]
    with pytest.raises(HoodieError, match="were cleaned"):
        table.scan(as_of=table.timeline.commits[0].time)
    table.upsert(rows(4))
    assert read_all(table) == [("a", 4), ("b", 4)]


def test_a_log_in_the_middle_and_the_logs_beside_a_pending_compaction(tmp_path):
    table = table_of(tmp_path / "t", MOR)
    table.schedule_compaction()
    table.upsert(rows(4))
    (file_slice,) = [each for each in table.files() if each.group.partition_path == "x"]
    assert len(file_slice.logs) == 3
    for log in file_slice.logs:
        (tmp_path / "t" / log.path).rename(tmp_path / "away")
        with pytest.raises(MissingFileError) as told:
            hoodie.open_table(tmp_path / "t").scan()
        assert log.path in str(told.value)
        (tmp_path / "away").rename(tmp_path / "t" / log.path)
    (tmp_path / "t" / file_slice.logs[0].path).unlink()
    with pytest.raises(HoodieError):
        table.compact()


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_whole_partition(tmp_path, table_type):
    table = table_of(tmp_path / "t", table_type)
    shutil.rmtree(tmp_path / "t" / "x")
    for act in (table.scan, lambda: as_another_process(tmp_path / "t").upsert(rows(4))):
        with pytest.raises(MissingFileError, match="x/"):
            act()
    table.upsert(rows(4, ["c"], ["y"]))  # who does not look at it is not hindered
    with pytest.raises(MissingFileError, match="x/"):
        table.scan()


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("table_type", [COW, MOR])
def test_an_overwrite_needs_none_of_the_lost_files(tmp_path, table_type, overwrite):
    table_of(tmp_path / "t", table_type)
    shutil.rmtree(tmp_path / "t" / "x")
    table = as_another_process(tmp_path / "t")
    if overwrite:
        table.insert_overwrite(rows(4, ["c"], ["x"]))
        assert read_all(table) == [("b", 3), ("c", 4)]
    else:
        table.delete_partitions(["x"])
        assert read_all(table) == [("b", 3)]
    as_another_process(tmp_path / "t").upsert(rows(5))
    assert ("a", 5) in read_all(table)


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_the_file_that_makes_a_folder_a_partition(tmp_path, table_type):
    table = table_of(tmp_path / "t", table_type)
    (tmp_path / "t" / "x" / METADATA).unlink()
    with pytest.raises(MissingFileError, match=f"x/{METADATA}"):
        table.scan()
    table.upsert(rows(4))  # goes on in its file group, and does not ask
    with pytest.raises(MissingFileError, match="begins a file group"):
        table.scan()
    table.append(rows(5, ["c"], ["x"]))  # brings it back
    assert read_all(table) == [("a", 4), ("b", 4), ("c", 5)]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_files_of_replaced_groups_and_of_dropped_partitions_may_be_gone(tmp_path, table_type):
    table = table_of(tmp_path / "t", table_type)
    replaced = [file_slice.group for file_slice in table.files()]
    table.insert_overwrite(rows(4, ["c"], ["y"]))
    table.delete_partitions(["x"])
    shutil.rmtree(tmp_path / "t" / "x")
    for group in replaced:
        for path in (tmp_path / "t" / "y").glob(f"*{group.file_id}*"):
            path.unlink()
    assert read_all(hoodie.open_table(tmp_path / "t")) == [("c", 4)]
    table.upsert(rows(5, ["d"], ["x"]))
    assert read_all(table) == [("c", 4), ("d", 5)]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_a_handle_of_a_table_that_was_deleted(tmp_path, table_type):
    table = table_of(tmp_path / "t", table_type)
    lazy = table.scan()
    shutil.rmtree(tmp_path / "t")
    for act in (
        *EVERY_WAY.values(),
        lambda _: lazy.to_arrow(),
        lambda _: table.partitions(),
        lambda _: table.history(),
        lambda _: table.rollback(),
        lambda _: table.compact() if table_type == MOR else table.history(),
    ):
        with pytest.raises(TableNotFoundError):
            act(table)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "name", long_but([name for name in golden_names() if not shows_services(name)], golden_names())
)
def test_each_file_of_a_table_of_apache_hudi(tmp_path, name):
    """Whatever file goes, the answer is the same or an error that names it, unless the commit that wrote it was archived."""
    path = copy_golden(name, tmp_path).path
    table = hoodie.open_table(path)
    right = rows_of(table.scan(meta_columns=True).to_arrow())
    view = table._context.snapshot().view
    view.partitions()
    for partition in view.committed.partitions:
        written = view.committed.of(partition).sizes
        for file in [each for each in (path / partition).iterdir() if each.is_file()]:
            relative = str(file.relative_to(path))
            file.rename(tmp_path / "away")
            told = ""
            try:
                found = rows_of(hoodie.open_table(path).scan(meta_columns=True).to_arrow())
            except CorruptFileError as error:
                told = str(error)
            assert relative in told or (not told and (found == right or relative not in written))
            (tmp_path / "away").rename(file)


class Cleaning(FaultStorage):
    """Between the timeline and the files that a reader looks at, somebody writes and cleans."""

    meanwhile = None

    def names(self, folder):
        found = super().names(folder)
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        return found


def test_a_reader_beside_a_writer_and_a_cleaner_looks_again(tmp_path):
    table_of(tmp_path / "t", COW)
    storage = Cleaning(LocalStorage(tmp_path / "t"))
    table = opened(storage)

    def overtaken():
        old = [tmp_path / "t" / file_slice.base.path for file_slice in table.files()]
        hoodie.open_table(tmp_path / "t").upsert(rows(4))
        for path in old:
            path.unlink()

    storage.meanwhile = overtaken
    assert read_all(table) == [("a", 4), ("b", 4)]


class Listings(FaultStorage):
    listed = ()

    def list(self, folder, *, recursive=False):
        self.listed = (*self.listed, folder)
        return super().list(folder, recursive=recursive)


def test_nothing_more_is_listed_for_it():
    storage, clock = new_table(table_type=COW)
    counting = Listings(storage)
    table = opened(counting, clock)
    for version in (1, 2, 3):
        table.upsert(batch([Input("a", "x", version, version), Input("b", "y", version, version)]))
    counting.listed = ()
    table.scan()
    assert sorted(folder for folder in counting.listed if folder != HOODIE) == ["", "x", "y"]
