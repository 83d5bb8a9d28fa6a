"""Erased rows are in no file any more."""

import json
import shutil

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CommitConflictError
from tests.held_texts import holding

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
KEY, SECRET = "zoe@example.org", "+39 06 555"


def filled(root, kind, **more):
    table = hoodie.create_table(root, record_key="email", partition_by="part", table_type=kind, **more)
    table.upsert({"email": ["ann", KEY, "bob"], "part": ["a", "a", "b"], "phone": ["1", SECRET, "2"], "n": [1, 2, 3]})
    table.upsert({"email": [KEY, "carl"], "part": ["a", "b"], "phone": [SECRET, "4"], "n": [5, 4]})
    table.upsert({"email": ["zz"], "part": ["a"], "phone": ["9"], "n": [9]})
    return table


@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize(("kind", "copies"), [(KINDS[0], "true"), (KINDS[1], "true"), (KINDS[1], "false")])
def test_no_file_holds_an_erased_row(tmp_path, kind, copies, version):
    root = tmp_path / "t"
    of_kind = {"hoodie.python.mor.row.copies": copies} if kind == KINDS[1] else {}
    table = filled(root, kind, options={**of_kind, "hoodie.write.table.version": version})
    table.cluster(sort_by="n")
    table.upsert({"email": [KEY], "part": ["a"], "phone": [SECRET], "n": [6]})
    assert holding(root, KEY, SECRET)
    before = sorted(table.scan(where=f"email <> '{KEY}'").to_arrow().to_pylist(), key=str)
    done = table.erase([KEY])
    assert done, str(done)
    assert (done.deleted, done.remaining) == (1, ())
    assert holding(root, KEY, SECRET) == []
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == before
    assert table.validate(deep=True)
    table.upsert({"email": ["new"], "part": ["a"], "phone": ["0"], "n": [0]})
    assert table.erase(["unknown"])
    assert holding(root, KEY, SECRET) == []


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_were_deleted_before_are_erased_too(tmp_path, kind):
    root = tmp_path / "t"
    table = filled(root, kind)
    table.delete([KEY])
    assert holding(root, KEY, SECRET)
    done = table.erase([KEY])
    assert done
    assert done.instant is None
    assert holding(root, KEY, SECRET) == []


def test_what_keeps_older_files_is_named(tmp_path):
    table = filled(tmp_path / "t", "COPY_ON_WRITE")
    saved = table.savepoint()
    with pytest.raises(CommitConflictError, match=f"savepoints of table .* {saved}; nothing was done, drop them first"):
        table.erase([KEY])
    table.drop_savepoint(saved)
    beside = iter(table.scan().to_batches())
    next(beside)
    done = table.erase([KEY])
    assert not done
    assert "an older version" in str(done)
    list(beside)
    assert table.erase([KEY])
    assert holding(tmp_path / "t", KEY, SECRET) == []


def test_keys_of_other_types_and_rows_with_partitions(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="part")
    table.upsert(pa.table({"id": [1, 2, 3], "part": ["a", "b", "a"], "v": ["x1", "secret-2", "x3"]}))
    assert table.erase([{"id": 2, "part": "b"}])
    assert holding(tmp_path / "t", "secret-2") == []
    assert table.scan().count() == 2


@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("one_by_one", [False, True])
def test_all_rows_of_a_key_are_erased(tmp_path, kind, index, one_by_one):
    """A delete takes one row of each file, as Apache Hudi's does."""
    table = hoodie.create_table(
        tmp_path / "t", record_key="email", table_type=kind, options={"hoodie.index.type": index}
    )
    table.insert({"email": [KEY, "ann", KEY, KEY], "phone": [SECRET, "1", SECRET, SECRET]})
    table.bulk_insert({"email": [KEY], "phone": [SECRET]}) if index != "BUCKET" else None
    done = table.erase(pa.table({"email": [KEY]}).to_reader() if one_by_one else [KEY])
    assert done
    assert done.deleted == (1 if index == "BUCKET" else 4)
    assert table.scan(["email"]).to_arrow()["email"].to_pylist() == ["ann"]
    assert holding(tmp_path / "t", KEY, SECRET) == []


@pytest.mark.parametrize("version", ["6", "9"])
def test_what_stands_beside_the_data_is_named_until_it_is_gone(tmp_path, version):
    """Metadata for other engines, and records that an ingestion set apart."""
    root, landing = tmp_path / "t", tmp_path / "landing"
    table = filled(root, "COPY_ON_WRITE", options={"hoodie.write.table.version": version})
    landing.mkdir()
    (landing / "1.jsonl").write_text(json.dumps({"email": KEY, "part": "a", "phone": SECRET, "n": "many"}))
    assert hoodie.ingest(landing, table).bad == 1
    for name in ("delta", "iceberg"):
        table.publish(name)
    done = table.erase([KEY])
    assert [each.partition(":")[0] for each in done.remaining] == [
        "_delta_log",
        "metadata",
        ".hoodie/.hoodie_py/quarantine",
    ]
    assert {path.partition("/")[0] for path in holding(root, KEY, SECRET)} >= {"_delta_log", ".hoodie"}
    for folder in ("_delta_log", "metadata", ".hoodie/.hoodie_py/quarantine"):
        shutil.rmtree(root / folder)
    for name in ("delta", "iceberg"):
        table.publish(name)
    assert table.erase([KEY])
    assert holding(root, KEY, SECRET) == []


@pytest.mark.parametrize("version", ["6", "9"])
def test_indexes_are_named_until_they_are_built_again(tmp_path, version):
    root = tmp_path / "t"
    table = filled(root, "COPY_ON_WRITE", options={"hoodie.write.table.version": version})
    indexes = ["column_stats", "record_index"]
    for name in indexes:
        table.build_index(name)
    table.upsert({"email": [KEY], "part": ["a"], "phone": [SECRET], "n": [7]})

    def named():
        return [each.split(":")[0].rpartition("/")[2] for each in table.erase([KEY]).remaining if "index" in each]

    assert named() == indexes
    assert named() == indexes
    for name in indexes:
        table.drop_index(name)
        table.build_index(name)
    assert named() == []
    assert not [path for path in holding(root, KEY, SECRET) if "metadata" in path]
