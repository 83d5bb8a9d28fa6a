"""The change feed through Spark: by the data source, by options of Apache Hudi, and by the facade."""

import json
import shutil

import pyarrow as pa
import pytest

import hoodie
import pyspark_hoodie
from tests.change_feed import apply, by_key
from tests.effort import long_but
from tests.golden_tables import FOLDER
from tests.memory_tables import Input, batch, keys
from tests.rows import rows_of
from tests.spark.conftest import arrow_of, options_of

pytestmark = pytest.mark.spark

CDC = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.read.begin.instanttime": "000",
    "hoodie.datasource.query.incremental.format": "cdc",
}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path):
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="part", ordering="ts", table_type=request.param
    )
    table.upsert(batch([Input("a", "p", 1, 1), Input("b", "q", 2, 1)]))
    table.upsert(batch([Input("a", "p", 10, 2), Input("c", "p", 3, 2)]))
    table.delete(keys([Input("b", "q")]))
    return table


def test_the_option_gives_what_the_embedded_feed_gives(load, table):
    found = load(table.uri.removeprefix("file://"), **CDC)
    assert found.columns == ["op", "ts_ms", "before", "after"]
    rows = [row.asDict() for row in found.collect()]
    assert sorted(rows, key=repr) == sorted(table.changes(images="cdc").to_arrow().to_pylist(), key=repr)
    assert [row.op for row in found.select("op").collect()].count("u") == 1
    assert {json.loads(row.before)["id"] for row in found.where("op = 'd'").collect()} == {"b"}


def test_the_facade_gives_structs(enabled, table):
    frame = pyspark_hoodie.HoodieTable.for_path(enabled, table.uri.removeprefix("file://"))
    feed = frame.changes(images="before_after", columns=["id", "val"])
    found = {(r.op, r.before and r.before.val, r.after and r.after.val) for r in feed.collect()}
    assert found == {("i", None, 1), ("i", None, 2), ("i", None, 3), ("u", 1, 10), ("d", 2, None)}
    assert feed.where("after.val > 2").count() == 2


@pytest.mark.parametrize("collected", long_but(["arrow"], ["collect", "arrow"]))
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_collected_feed_can_be_applied_in_its_order(load, tmp_path, table_type, collected):
    """Keys change places among partitions, in one upsert and by an overwrite; many tasks run side by side."""
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="part", ordering="ts", table_type=table_type
    )
    places = [{f"k{n}": f"p{(n * (turn + 1) + turn) % 5}" for n in range(15)} for turn in range(4)]
    first = table.upsert(batch([Input(name, part, 0, 0) for name, part in places[0].items()]))
    for turn in range(1, 4):
        gone = [
            Input(name, part, 0, None, True) for name, part in places[turn - 1].items() if places[turn][name] != part
        ]
        table.upsert(batch([*(Input(name, part, turn, turn) for name, part in places[turn].items()), *gone]))
    table.insert_overwrite_table(batch([Input(name, part, 9, 9) for name, part in places[2].items()]))
    begin = {"hoodie.datasource.read.begin.instanttime": first.position}
    feed = load(tmp_path / "t", **CDC | begin | {"hoodie.datasource.query.incremental.format": "before_after"})
    changes = arrow_of(feed).to_pylist() if collected == "arrow" else [row.asDict(True) for row in feed.collect()]
    rows = by_key(table.scan(as_of=first, meta_columns=True).to_arrow().to_pylist(), lambda row: row["id"])
    apply(changes, rows, lambda row: row["id"])
    now = table.scan(meta_columns=True).to_arrow().to_pylist()
    assert rows == by_key(now, lambda row: row["id"])
    assert {name: row["part"] for name, row in rows.items()} == places[2]


@pytest.mark.parametrize("name", ["v6_cow", "v6_mor"])
def test_renamed_columns_read_as_apache_hudi_reads_them(load, name):
    folder = FOLDER / "schema_on_read" / name
    expected = json.loads((folder / "expected.json").read_text())
    assert rows_of(arrow_of(load(folder / "table"))) == expected["snapshot"]


@pytest.mark.parametrize("name", ["v9_cow", "v9_mor"])
def test_vectors_are_arrays(door, load, tmp_path, name):
    folder = FOLDER / "with_vectors" / name
    expected = json.loads((folder / "expected.json").read_text())
    path = shutil.copytree(folder / "table", tmp_path / name)
    frame = load(path).select("id", "name", "f", "d", "i", "ts")
    assert [field.dataType.simpleString() for field in frame.schema.fields[2:5]] == [
        "array<float>",
        "array<double>",
        "array<tinyint>",
    ]
    assert [row.asDict() for row in frame.orderBy("id").collect()] == expected
    changed = frame.where("id = 'a'").selectExpr("id", "name", "f", "d", "reverse(i) i", "ts + 1 ts")
    pyspark_hoodie.HoodieTable.for_path(door, str(path)).upsert(changed)
    assert load(path).where("id = 'a'").select("i").collect()[0].i == expected[0]["i"][::-1]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_columns_that_were_changed_on_request_are_read_and_written(door, load, tmp_path, kind):
    path = str(tmp_path / "t")
    rows = door.createDataFrame([("a", 1, 1.5, 1), ("b", 2, 2.5, 1)], "id string, n int, f double, ts long")
    names = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    how = {**names, "hoodie.datasource.write.precombine.field": "ts", "hoodie.datasource.write.table.type": kind}
    rows.write.format("hoodie").options(**how).mode("append").save(path)
    table = pyspark_hoodie.HoodieTable.for_path(door, path)
    assert table.alter.rename_column("n", "m").instant
    table.alter.drop_column("f")
    table.alter.add_column("f", "string", after="id")
    door.createDataFrame([("b", "new", 5, 2)], "id string, f string, m int, ts long").write.format("hoodie").options(
        **how
    ).mode("append").save(path)
    assert load(path).columns[5:] == ["id", "f", "m", "ts"]
    found = {row.id: (row.f, row.m) for row in load(path).select("id", "f", "m").collect()}
    assert found == {"a": (None, 1), "b": ("new", 5)}
    assert [row.id for row in load(path).where("m = 1").collect()] == ["a"]
    assert load(path).where("f is null").count() == 1


def test_columns_that_were_added_inside_a_struct_and_floats_that_widened_are_read_from_older_files(load, tmp_path):
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id")
    table.upsert(pa.table({"id": ["a", "b"], "f": pa.array([0.1, 0.2], "float32"), "s": [{"x": 1}, {"x": 2}]}))
    table.insert(
        pa.table({"id": ["c"], "f": [0.3], "s": [{"y": "new", "x": 3}]}), {"hoodie.parquet.small.file.limit": "0"}
    )
    rows = {row.id: (row.f, row.s and tuple(row.s)) for row in load(path).select("id", "f", "s").collect()}
    assert rows == {"a": (0.1, (1, None)), "b": (0.2, (2, None)), "c": (0.3, (3, "new"))}


def test_the_columns_of_an_empty_first_dataframe_are_kept(door, tmp_path):
    frame = door.createDataFrame([], "id string, part string, ts long, extra array<int>")
    frame.write.format("hoodie").options(**options_of()).mode("append").save(str(tmp_path / "t"))
    assert hoodie.open_table(tmp_path / "t").schema.names == ["id", "part", "ts", "extra"]
    found = door.read.format("hoodie").load(str(tmp_path / "t"))
    assert found.columns[5:] == ["id", "part", "ts", "extra"]
    assert found.count() == 0
