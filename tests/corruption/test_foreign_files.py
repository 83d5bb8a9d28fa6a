"""Whole files in the wrong place, and folders that lost the file that makes them partitions: nothing is read in silence."""

import re

import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.model.names import PARTITION_METADATA, ROW_COPIES, name_of
from tests.damaged_tables import AGE_S, logs
from tests.memory_tables import FakeClock, Input, batch, create, keys, new_storage, opened, snapshot_of
from tests.metadata_tables import BY_FOLDERS
from tests.public_tables import public_table

FOLDERS = ("a", "b")


def two_folders(format_of_blocks):
    """The same keys in two folders, with logs of one size."""
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type="MERGE_ON_READ", more={"hoodie.logfile.data.block.format": format_of_blocks})
    for version in range(2):
        opened(storage, clock).upsert(batch([Input(f"k{n}", p, version, version) for p in FOLDERS for n in range(4)]))
    storage.delete_folder(ROW_COPIES)
    return storage, clock


def put_in_place(storage, folder, other):
    (mine,), (theirs,) = ([path for path in logs(storage) if path.startswith(each)] for each in (folder, other))
    storage.replace(mine, storage.read(theirs))
    return mine


@pytest.mark.parametrize("columns", [None, ["id", "val"]], ids=["all", "some"])
@pytest.mark.parametrize("format_of_blocks", ["avro", "parquet"])
def test_a_log_of_another_folder_is_refused_with_its_name(format_of_blocks, columns):
    storage, clock = two_folders(format_of_blocks)
    assert len(snapshot_of(opened(storage, clock))) == 8
    path = put_in_place(storage, "a", "b")
    for query in ({}, {"where": "part = 'a'"}):
        with pytest.raises(CorruptFileError, match=r"partition 'b'; the file is that of another folder") as caught:
            opened(storage, clock).scan(columns=columns, **query).to_arrow()
        assert path in str(caught.value)
    assert not opened(storage, clock).validate(deep=True)


def test_deletes_of_another_folder_are_refused():
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type="MERGE_ON_READ")
    opened(storage, clock).upsert(batch([Input(f"k{n}", p) for p in FOLDERS for n in range(4)]))
    opened(storage, clock).delete(keys([Input("k1", "a"), Input("k2", "b")]))
    storage.delete_folder(ROW_COPIES)
    assert len(snapshot_of(opened(storage, clock))) == 6
    path = put_in_place(storage, "b", "a")
    with pytest.raises(CorruptFileError, match="another folder") as caught:
        opened(storage, clock).scan().to_arrow()
    assert path in str(caught.value)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("query", [{}, {"columns": ["val"]}, {"where": "part = 'a' and id = 'k1'"}], ids=str)
def test_a_base_file_of_another_folder_is_refused_with_its_name(query, table_type):
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type=table_type)
    opened(storage, clock).upsert(batch([Input(f"k{n}", p) for p in FOLDERS for n in range(4)]))
    mine, theirs = sorted(info.path for p in FOLDERS for info in storage.list(p) if info.path.endswith(".parquet"))
    own, content = len(storage.read(mine)), storage.read(theirs)
    (commit,) = (info.path for info in storage.list(".hoodie") if info.path.endswith("commit"))
    stated = re.sub(rb"(: ?)%d\b" % own, rb"\g<1>%d" % len(content), storage.read(commit))  # names make sizes differ
    storage.replace(commit, stated)
    storage.replace(mine, content)
    with pytest.raises(CorruptFileError, match="rows of partition 'b': it is the file of another folder") as caught:
        opened(storage, clock).scan(**query).to_arrow()
    assert mine in str(caught.value)
    with pytest.raises(CorruptFileError, match="another folder"):
        opened(storage, clock).upsert(batch([Input("k1", "a", 9, 9)]))


def test_a_base_file_that_was_restored_is_read_by_the_process_that_read_the_damaged_one(tmp_path):
    options = {"hoodie.metadata.enable": "true"}
    table = hoodie.create_table(tmp_path, record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=options)
    for version in range(2):
        table.upsert([{"id": n, "ts": version} for n in range(3 - version)])
    (path,) = tmp_path.glob("*.parquet")
    whole, size = path.read_bytes(), path.stat().st_size
    rows = pq.read_table(path)
    pad = {b"pad": b"x" * size}
    pq.write_table(rows.slice(2).replace_schema_metadata({**(rows.schema.metadata or {}), **pad}), path)
    with pytest.raises(CorruptFileError, match="it is not the file that was written"):
        hoodie.open_table(tmp_path).scan().to_arrow()
    path.write_bytes(whole)
    assert hoodie.open_table(tmp_path).scan().count() == 3
    assert hoodie.open_table(tmp_path).scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_folder_of_archived_commits_without_partition_metadata_is_not_passed_over(table_type):
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type=table_type)
    opened(storage, clock).upsert(batch([Input("k0", "a")]))
    for version in range(6):
        opened(storage, clock).upsert(batch([Input("k1", "b", version, version)]))
    opened(storage, clock).archive(min_commits=2)
    whole = snapshot_of(opened(storage, clock))
    newest = opened(storage, clock).timeline.commits[-1].time
    storage.delete(f"a/{PARTITION_METADATA}")
    with pytest.raises(MissingFileError, match=rf"a/{PARTITION_METADATA}"):
        opened(storage, clock).scan().to_arrow()
    (problem,) = opened(storage, clock).validate().problems
    assert f"a/{PARTITION_METADATA}" in problem.what
    clock.sleep(AGE_S)
    opened(storage, clock).repair("partition-metadata", dry_run=False)
    assert snapshot_of(opened(storage, clock)) == whole
    assert opened(storage, clock).scan(as_of=newest).count() == 2


def test_files_of_nobody_in_a_folder_are_no_rows():
    """A writer that died before it made its folder a partition."""
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch([Input("k0", "a")]))
    (path,) = [info.path for info in storage.list("a") if info.path.endswith(".parquet")]
    name = name_of(path).replace(opened(storage, clock).timeline.commits[-1].time, "20991231235959999")
    storage.create_new(f"c/{name}", storage.read(path))
    storage.create_new("notes/readme.txt", b"nothing")
    assert len(snapshot_of(opened(storage, clock))) == 1


@pytest.mark.parametrize("name", ["hudi-v8-table-mor", "hudi-v9-table-mor"])
def test_a_folder_of_apache_hudi_without_partition_metadata_is_not_passed_over(name, tmp_path):
    table = public_table(name, tmp_path)
    folders = sorted(path for path in table.path.glob(f"*/{PARTITION_METADATA}") if path.parent.name != ".hoodie")
    rows = hoodie.open_table(table.path).scan().count()
    for marker in folders:
        data = marker.read_bytes()
        marker.unlink()
        with pytest.raises(MissingFileError, match=PARTITION_METADATA):
            hoodie.open_table(table.path, options=BY_FOLDERS).scan().to_arrow()
        assert hoodie.open_table(table.path).scan().count() == rows  # by the metadata table
        assert not hoodie.open_table(table.path).validate()
        marker.write_bytes(data)
    assert len(folders) > 1
    assert hoodie.open_table(table.path).validate(deep=True)
