"""Overwrites, deleted partitions, partial upserts, inserts that look keys up and sorted bulk inserts: with `enable` and without."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
import pyspark_hoodie
from hoodie.errors import KeyFieldError, MissingFileError, OptionError, SchemaError
from hoodie.model.enums import TableType, WriteOperation
from tests.effort import long_but
from tests.held_texts import holding
from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
DDL = "id string, part string, qty int, ts long"
FIRST = [("k0", "a", 1, 10), ("k1", "a", 1, 10), ("k2", "b", 1, 10), ("k3", "c/d", 1, 10)]


def stored(path):
    rows = hoodie.open_table(path).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["part"], row["qty"], row["ts"]) for row in rows)


def save(df, path, mode="append", **options):
    df.write.format("hoodie").options(**{name.replace("__", "."): str(v) for name, v in options.items()}).mode(
        mode
    ).save(path)


@pytest.fixture(params=TYPES)
def path(request, spark, tmp_path):
    target = str(tmp_path / "t")
    first = spark.createDataFrame(FIRST, DDL)
    first.write.format("hoodie").options(**options_of(hoodie_datasource_write_table_type=request.param)).mode(
        "append"
    ).save(target)
    return target


def test_mode_overwrite_replaces_all_rows(door, load, path):
    """Of two rows of a key the one that counts stays, for the operation is upsert."""
    rows = [("n", "a", 1, 20), ("n", "a", 2, 10), ("m", "z", 1, 1)]
    save(door.createDataFrame(rows, DDL), path, "overwrite")
    assert stored(path) == [("m", "z", 1, 1), ("n", "a", 1, 20)]
    assert load(path).count() == 2
    last = pyspark_hoodie.last_commit(path)
    assert (last.operation, last.replaced) == (WriteOperation.INSERT_OVERWRITE_TABLE, 3)
    save(door.createDataFrame([], DDL), path, "overwrite")
    assert stored(path) == []
    save(door.createDataFrame(rows[2:], DDL), path)
    assert stored(path) == [("m", "z", 1, 1)]


def test_appends_look_no_key_up(enabled, path):
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path)
    result = table.append(enabled.createDataFrame([("k0", "a", 5, 5)], DDL))
    assert (result.operation, result.inserted) == (WriteOperation.BULK_INSERT, 1)
    assert [row[2] for row in stored(path) if row[0] == "k0"] == [1, 5]


def test_erased_rows_are_in_no_file(enabled, load, path):
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path)
    save(enabled.createDataFrame([("k0", "a", 2, 20), ("secret", "b", 1, 1)], DDL), path)
    before = load(path)
    done = table.erase(load(path).where("id = 'secret'").select("id"))
    assert done, done
    assert (done.deleted, holding(Path(path), "secret")) == (1, [])
    assert table.erase(["k3", "unknown"])
    assert holding(Path(path), "k3") == []
    assert stored(path) == [("k0", "a", 2, 20), ("k1", "a", 1, 10), ("k2", "b", 1, 10)]
    assert load(path).count() == 3
    # The first erasure's clean is archived by now, and tells no more; which file is missed first is chance.
    with pytest.raises(MissingFileError, match=r"deleted by the clean|one that is archived by now did"):
        before.collect()


def test_moments_count_from_the_newest_commit(enabled, load, path):
    save(enabled.createDataFrame([("k0", "a", 2, 20)], DDL), path)
    assert load(path, **{"as.of.instant": "-2"}).where("id = 'k0'").collect()[0].qty == 1
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path)
    assert table.read(as_of=-1).where("id = 'k0'").collect()[0].qty == 2
    assert table.restore(-2, dry_run=True).undone == (table.history()[-1].instant,)
    assert table.savepoint("now") == table.history()[-1].instant


@pytest.mark.parametrize("most_bytes", ["0", "100000"])  # a join, and keys that come to the driver
def test_deletes_by_keys_alone(enabled, path, most_bytes):
    limit = {"hoodie.python.driver.max.bytes": most_bytes}
    save(enabled.createDataFrame([("k0", "b", 5, 10)], DDL), path)
    keys = enabled.createDataFrame([("k0",), ("k3",), ("unknown",), ("k3",)], "id string")
    save(keys, path, hoodie__datasource__write__operation="delete", hoodie__python__driver__max__bytes=most_bytes)
    assert stored(path) == [("k1", "a", 1, 10), ("k2", "b", 1, 10)]
    assert pyspark_hoodie.last_commit(path).deleted == 3
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path, limit)
    assert table.delete(["k1"]).deleted == 1
    with pytest.raises(SchemaError, match="MISMATCH  id  table string, batch int64"):
        table.delete([1])
    with pytest.raises(KeyFieldError, match="record key column 'id' is not in the data"):
        table.delete(enabled.createDataFrame([("a",)], "part string"))
    assert stored(path) == [("k2", "b", 1, 10)]
    # Older than the deleted row, of which nothing comes back.
    save(enabled.createDataFrame([("k1", "a", 7, 5)], DDL), path, hoodie__python__driver__max__bytes=most_bytes)
    assert stored(path) == [("k1", "a", 7, 5), ("k2", "b", 1, 10)]


def test_overwrites_of_partitions(door, path):
    save(
        door.createDataFrame([("n", "a", 1, 1)], DDL), path, "overwrite", hoodie__datasource__overwrite__mode="DYNAMIC"
    )
    assert stored(path) == [("k2", "b", 1, 10), ("k3", "c/d", 1, 10), ("n", "a", 1, 1)]
    operation = {"hoodie__datasource__write__operation": "insert_overwrite"}
    for mode, qty in (("append", 5), ("overwrite", 6)):
        save(door.createDataFrame([("k2", "b", qty, 1)], DDL), path, mode, **operation)
        assert stored(path) == [("k2", "b", qty, 1), ("k3", "c/d", 1, 10), ("n", "a", 1, 1)]
    save(door.createDataFrame([], DDL), path, **operation)
    assert len(stored(path)) == 3


def test_partitions_are_deleted_by_option_and_by_rows(door, path):
    operation = {"hoodie__datasource__write__operation": "delete_partition"}
    nothing = door.createDataFrame([], "x int")
    save(nothing, path, **operation, hoodie__datasource__write__partitions__to__delete="c/*,b,nowhere")
    assert [row[1] for row in stored(path)] == ["a", "a"]
    last = pyspark_hoodie.last_commit(path)
    assert (last.operation, last.replaced) == (WriteOperation.DELETE_PARTITION, 2)
    save(door.createDataFrame([("whatever", "a")], "id string, part string"), path, **operation)
    assert stored(path) == []


def test_an_insert_drops_or_keeps_what_is_stored(door, path):
    again = door.createDataFrame([("k0", "a", 2, 20), ("n", "a", 2, 20)], DDL)
    save(again, path, hoodie__datasource__insert__dup__policy="drop")
    assert stored(path) == sorted([*FIRST, ("n", "a", 2, 20)])
    assert pyspark_hoodie.last_commit(path).operation is WriteOperation.INSERT
    with pytest.raises(Exception, match=r"2 rows of the insert .* have keys that are stored already"):
        save(again, path, hoodie__datasource__insert__dup__policy="fail")
    save(again, path, hoodie__datasource__write__operation="insert")
    assert len(stored(path)) == 7


def test_a_partial_upsert_of_a_dataframe(door, path):
    some = door.createDataFrame([("k0", "a", 7), ("n", "b", 8)], "id string, part string, qty int")
    save(some, path, hoodie__python__upsert__partial="true")
    assert stored(path)[0] == ("k0", "a", 7, 10)
    rows = hoodie.open_table(path).scan(where="id = 'n'").to_arrow().to_pylist()
    assert [(row["qty"], row["ts"]) for row in rows] == [(8, None)]


@pytest.mark.parametrize("mode", ["GLOBAL_SORT", "PARTITION_SORT"])
def test_a_bulk_insert_is_sorted(door, tmp_path, mode):
    path = str(tmp_path / "t")
    rows = door.createDataFrame([(f"k{n * 7919 % 300:03}", "ab"[n % 2], n, 1) for n in range(300)], DDL).repartition(3)
    options = {**options_of(), "hoodie.datasource.write.operation": "bulk_insert", "hoodie.bulkinsert.sort.mode": mode}
    options["hoodie.parquet.max.file.size"] = "700"
    rows.write.format("hoodie").options(**options).mode("append").save(path)
    names = ["_hoodie_partition_path", "_hoodie_file_name", "_hoodie_record_key"]
    files = {}
    found = hoodie.open_table(path).scan(names).to_arrow().to_pydict()
    for partition, file, key in zip(*(found[name] for name in names), strict=True):
        files.setdefault((partition, file), []).append(key)
    assert sum(map(len, files.values())) == 300
    assert len(files) > 4
    assert all(keys == sorted(keys) for keys in files.values())
    if mode == "GLOBAL_SORT" and hasattr(rows.write, "_hoodie"):  # without it Spark hands the rows over as they come
        for part in "ab":
            spans = sorted((keys[0], keys[-1]) for (partition, _), keys in files.items() if partition == part)
            assert all(one[1] < two[0] for one, two in pairwise(spans))


def test_the_table_object_has_the_same_operations(enabled, tmp_path):
    path = str(tmp_path / "t")
    enabled.createDataFrame(FIRST, DDL).write.format("hoodie").options(**options_of()).save(path)
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path)
    assert table.insert_overwrite(enabled.createDataFrame([("n", "a", 1, 1)], DDL)).replaced == 1
    assert table.delete_partitions(["c/*"]).replaced == 1
    assert pyspark_hoodie.last_commit(path).operation is WriteOperation.DELETE_PARTITION
    table.upsert(enabled.createDataFrame([("n", "a", 9)], "id string, part string, qty int"), partial=True)
    assert stored(path) == [("k2", "b", 1, 10), ("n", "a", 9, 1)]
    assert table.insert_overwrite_table(enabled.createDataFrame([("z", "z", 1, 1)], DDL)).replaced == 2
    assert stored(path) == [("z", "z", 1, 1)]
    with pytest.raises(OptionError, match="takes a list of partition paths"):
        table.delete_partitions("z")


def test_a_table_is_overwritten_by_what_was_read_of_it(enabled, path):
    frame = enabled.read.format("hoodie").load(path).where("part = 'a'")
    save(frame.selectExpr("id", "part", "qty + 1 as qty", "ts"), path, "overwrite")
    assert stored(path) == [("k0", "a", 2, 10), ("k1", "a", 2, 10)]


@pytest.mark.parametrize("driver_max_bytes", long_but(["0"], ["0", "10000000"]), ids=["executors", "driver"])
def test_a_row_that_another_writer_renews_during_delete_where_stays(enabled, path, driver_max_bytes, monkeypatch):
    """The condition is evaluated anew: at first it finds k0 and k2, then k2 alone."""
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path)
    was, evaluated = table.read, []

    def read(**more):
        found = was(**more)
        evaluated.append(sorted(row.id for row in found.collect()))
        if len(evaluated) == 1:
            renewed = [{"id": "k0", "part": "a", "qty": 7, "ts": 20}]
            hoodie.open_table(path).upsert(pa.Table.from_pylist(renewed))
        return found

    monkeypatch.setattr(table, "read", read)
    options = {"hoodie.python.driver.max.bytes": driver_max_bytes}
    result = table.delete(options=options, where="id IN ('k0', 'k2') AND qty = 1")
    assert evaluated == [["k0", "k2"], ["k2"]]
    assert result.deleted == 1
    assert stored(path) == [("k0", "a", 7, 20), ("k1", "a", 1, 10), ("k3", "c/d", 1, 10)]


def test_old_versions_of_files_are_cleaned_by_the_table_and_by_an_option_of_writes(enabled, path):
    table = pyspark_hoodie.HoodieTable.for_path(enabled, path)
    for turn in range(2, 6):
        save(enabled.createDataFrame([(k, p, turn, turn * 10) for k, p, *_ in FIRST], DDL), path)
        table.compact() if table.config.table_type is TableType.MERGE_ON_READ else None
    expected = stored(path)
    before = files(path)
    would = table.clean(retain_commits=1, dry_run=True)
    assert (files(path), would.instant) == (before, None)
    done = table.clean(retain_commits=1)
    assert (len(before) - len(files(path)), done.files) == (would.files, would.files)
    assert would.files > 0
    assert stored(path) == expected
    again = enabled.createDataFrame([("k0", "a", 9, 90)], DDL)
    save(again, path, hoodie__clean__automatic="true", hoodie__clean__commits__retained="1")
    save(again, path, hoodie__clean__automatic="true", hoodie__clean__commits__retained="1")
    assert stored(path)[0] == ("k0", "a", 9, 90)
    assert len(files(path)) <= len(before) - would.files + 2


def files(path):
    return [file for file in Path(path).rglob("*.*") if ".hoodie/" not in str(file) and "metadata" not in file.name]
