"""Writes of DataFrames: with `enable` and without, copy-on-write and merge-on-read, small and large."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.model.enums import WriteOperation
from hoodie.model.meta_fields import META_COLUMNS
from pyspark_hoodie import dataframe
from tests.rows import rows_of
from tests.spark.conftest import arrow_of, options_of

pytestmark = pytest.mark.spark

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
DDL = "id string, part string, qty int, ts long"


def save(df, path, **more):
    df.write.format("hoodie").options(**options_of(**more)).mode("append").save(str(path))


def stored(path):
    """What the embedded engine reads, as {id: (part, qty, ts)}; a key that stands twice fails."""
    rows = hoodie.open_table(path).scan().to_arrow().to_pylist()
    found = {row["id"]: (row["part"], row["qty"], row["ts"]) for row in rows}
    assert len(found) == len(rows)
    return found


def with_empty_batches(batches):
    for batch in batches:
        yield from (batch.slice(0, 0), batch.slice(0, 1), batch.slice(0, 0), batch.slice(1), batch.slice(0, 0))


def test_empty_batches_of_a_frame_hide_no_rows(door, load, tmp_path):
    plain = door.createDataFrame([(f"k{n}", "ab"[n % 2], n, 1) for n in range(6)], DDL)
    save(plain.mapInArrow(with_empty_batches, DDL), tmp_path / "t")
    assert sorted(stored(tmp_path / "t")) == [f"k{n}" for n in range(6)]
    assert load(tmp_path / "t").mapInArrow(with_empty_batches, load(tmp_path / "t").schema).count() == 6


@pytest.mark.parametrize("table_type", TYPES)
def test_upsert_insert_and_delete(door, load, tmp_path, table_type):
    path = tmp_path / "t"
    first = door.createDataFrame([(f"k{n}", "ab"[n % 2], n, 1) for n in range(6)], DDL)
    save(first, path, hoodie_datasource_write_table_type=table_type)
    assert pyspark_hoodie.last_commit(str(path)).inserted == 6
    save(door.createDataFrame([("k0", "a", 100, 2), ("k1", "b", 101, 0), ("k9", "a", 9, 1)], DDL), path)
    save(
        door.createDataFrame([("k2", "a")], "id string, part string"), path, hoodie_datasource_write_operation="delete"
    )
    last = pyspark_hoodie.last_commit(str(path))
    assert (last.operation, last.deleted) == (WriteOperation.DELETE, 1)
    save(door.createDataFrame([("k7", "c", 7, 1)], DDL), path, hoodie_datasource_write_operation="insert")
    expected = {
        "k0": ("a", 100, 2),
        "k1": ("b", 1, 1),  # the late row lost
        "k3": ("b", 3, 1),
        "k4": ("a", 4, 1),
        "k5": ("b", 5, 1),
        "k7": ("c", 7, 1),
        "k9": ("a", 9, 1),
    }
    assert stored(path) == expected
    frame = load(path)
    assert {row["id"]: (row["part"], row["qty"], row["ts"]) for row in frame.collect()} == expected
    assert frame.columns[:5] == list(META_COLUMNS)
    table = hoodie.open_table(path)
    assert table.config.table_type == table_type
    assert [i.action for i in table.timeline.commits] == ["commit" if table_type == TYPES[0] else "deltacommit"] * 4


def test_later_writes_need_nothing_but_the_path(door, tmp_path):
    path = tmp_path / "t"
    df = door.createDataFrame([("k", "a", 1, 1)], DDL)
    save(df, path)
    df.withColumn("qty", F.lit(2)).write.format("hoodie").mode("append").save(str(path))
    assert stored(path) == {"k": ("a", 2, 1)}


def test_what_was_read_can_be_written_back(door, load, tmp_path):
    """Meta columns of the incoming DataFrame are dropped."""
    path = tmp_path / "t"
    save(door.createDataFrame([("k", "a", 1, 1), ("l", "b", 2, 1)], DDL), path)
    save(load(path).withColumn("qty", F.col("qty") + 10), path)
    assert stored(path) == {"k": ("a", 11, 1), "l": ("b", 12, 1)}
    assert hoodie.open_table(path).schema.names == ["id", "part", "qty", "ts"]


def test_an_empty_dataframe_changes_nothing(door, tmp_path):
    path = tmp_path / "t"
    save(door.createDataFrame([("k", "a", 1, 1)], DDL), path)
    save(door.createDataFrame([], DDL), path)
    assert len(hoodie.open_table(path).timeline.commits) == 1


@pytest.mark.parametrize("table_type", TYPES)
def test_few_and_many_rows_take_two_ways_to_one_table(enabled, tmp_path, table_type):
    """Above the bound every step is a job of Spark; below it what follows the staging runs on the driver."""
    tables = {}
    for name, bound in (("driver", 1 << 26), ("jobs", 0)):
        path = tmp_path / name
        for factor in (1, 10):
            df = enabled.range(0, 400 * factor, factor, 3).select(
                F.format_string("k%05d", "id").alias("id"),
                F.concat(F.lit("p"), F.col("id") % 3).alias("part"),
                (F.col("id") * factor).cast("int").alias("qty"),
                F.lit(factor).cast("long").alias("ts"),
            )
            save(
                df,
                path,
                hoodie_datasource_write_table_type=table_type,
                hoodie_python_driver_max_bytes=bound,
                hoodie_table_name="one",
            )
            assert pyspark_hoodie.last_commit(str(path)).engine == ("embedded" if bound else "spark")
        save(
            enabled.createDataFrame([("k00010", "p1")], "id string, part string"),
            path,
            hoodie_datasource_write_operation="delete",
            hoodie_python_driver_max_bytes=bound,
        )
        result = pyspark_hoodie.last_commit(str(path))
        tables[name] = (
            rows_of(hoodie.open_table(path).scan().to_arrow()),
            result.inserted,
            result.updated,
            result.deleted,
        )
    assert tables["driver"] == tables["jobs"]
    assert len(tables["jobs"][0]) == 400 + 360 - 1


def test_no_rows_stay_staged(door, tmp_path):
    path = tmp_path / "t"
    save(door.createDataFrame([("k", "a", 1, 1)], DDL), path)
    assert list((path / ".hoodie").rglob("*.arrow")) == []
    assert [p.name for p in (path / ".hoodie").rglob("rows-*")] == []


def rows_of_chance(folder):
    """Other keys whenever it is evaluated, and a mark for each evaluation of a partition."""

    def body(batches):
        Path(folder, os.urandom(8).hex()).write_text("")
        for batch in batches:
            keys = [os.urandom(8).hex() for _ in range(batch.num_rows)]
            parts = ["ab"[os.urandom(1)[0] % 2] for _ in keys]
            ones = [1] * len(keys)
            yield pa.RecordBatch.from_arrays(
                [pa.array(keys), pa.array(parts), pa.array(ones, pa.int32()), pa.array(ones, pa.int64())],
                names=["id", "part", "qty", "ts"],
            )

    return body


@pytest.mark.parametrize("bound", [0, 1 << 26])
def test_rows_of_chance_are_drawn_once(door, tmp_path, bound):
    """A second evaluation would give other keys: then counts and what is stored would not fit together."""
    path, marks = tmp_path / "t", tmp_path / "marks"
    marks.mkdir()
    df = door.range(0, 200, 1, 4).mapInArrow(rows_of_chance(str(marks)), DDL)
    for _ in range(2):
        save(df, path, hoodie_python_driver_max_bytes=bound)
    assert len(list(marks.iterdir())) == 2 * 4
    assert [result.inserted for result in hoodie.open_table(path).history()] == [200, 200]
    assert len(stored(path)) == 400


def fail_first_attempt(folder):
    """Rows pass, but the first attempt of each partition ends with an error behind its last row."""

    def body(batches):
        context = TaskContext.get()
        yield from batches
        Path(folder, f"{context.partitionId()}-{context.taskAttemptId()}").write_text("")
        if context.attemptNumber() == 0:
            raise OSError("lost executor")

    return body


@pytest.mark.parametrize("table_type", TYPES)
def test_a_task_that_is_tried_again_leaves_one_copy(door, tmp_path, table_type):
    path, marks = tmp_path / "t", tmp_path / "marks"
    marks.mkdir()
    rows = door.range(0, 60, 1, 2).select(
        F.col("id").cast("string"), F.lit("a").alias("part"), F.lit(1).alias("qty"), F.lit(1).cast("long").alias("ts")
    )
    save(
        rows.mapInArrow(fail_first_attempt(str(marks)), rows.schema),
        path,
        hoodie_datasource_write_table_type=table_type,
    )
    assert len(list(marks.iterdir())) == 4  # two partitions, two attempts each
    assert set(stored(path)) == {str(n) for n in range(60)}
    assert [p.name for p in (path / ".hoodie").rglob("rows-*")] == []


def test_a_schema_that_grew_and_widened(door, load, tmp_path):
    """Files of three schemas: a column more, and an int that became a long and then a double."""
    path = tmp_path / "t"
    save(door.createDataFrame([("a", "p", 1, 1)], DDL), path)
    save(door.createDataFrame([("b", "q", 2**40, 1)], "id string, part string, qty long, ts long"), path)
    save(
        door.createDataFrame([("c", "r", 0.5, 1, "new")], "id string, part string, qty double, ts long, note string"),
        path,
        hoodie_python_write_integers_to_floating="true",
    )
    found = {row["id"]: (row["qty"], row["note"]) for row in load(path).collect()}
    assert found == {"a": (1.0, None), "b": (float(2**40), None), "c": (0.5, "new")}
    assert load(path, columns="note,qty", where="qty > 0.7").orderBy("qty").collect() == [
        (None, 1.0),
        (None, float(2**40)),
    ]


def test_values_of_all_types_come_back(door, load, tmp_path):
    path = tmp_path / "t"
    df = door.sql(
        """select 'k' id, 'a' part, 1L ts, cast(1 as tinyint) tiny, cast(2 as smallint) small, 1.5f f, true flag,
        cast('12.30' as decimal(10,2)) amount, date'1970-01-02' day, timestamp_micros(1234567890123456) at,
        timestamp_ntz'2024-05-06 07:08:09.123456' wall, X'00ff' raw, array(1, null) items, map('x', 1) pairs,
        named_struct('a', 1, 'b', array('y')) nested"""
    )
    save(df, path)
    stored_row, given = load(path).drop(*META_COLUMNS).collect()[0], df.collect()[0]
    assert stored_row.asDict(recursive=True) == given.asDict(recursive=True)


def test_the_zone_of_the_session_shifts_nothing(door, load, tmp_path):
    path = tmp_path / "t"
    zone = door.conf.get("spark.sql.session.timeZone")
    select = (
        "select 'k' id, 'a' part, 1L ts, timestamp_micros(1234567890123456) at, timestamp_ntz'2024-05-06 07:08:09' wall"
    )
    try:
        door.conf.set("spark.sql.session.timeZone", "America/New_York")
        save(door.sql(select), path, hoodie_datasource_write_table_type="MERGE_ON_READ")
        save(door.sql(select), path)
        door.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
        (row,) = (
            load(path, where="at = '2009-02-13 23:31:30.123456' and wall > '2024-05-06 07:08:08'")
            .selectExpr("unix_micros(at) at", "cast(wall as string) wall")
            .collect()
        )
    finally:
        door.conf.set("spark.sql.session.timeZone", zone)
    assert row == (1234567890123456, "2024-05-06 07:08:09")


def test_the_facade_takes_and_gives_dataframes(spark, tmp_path):
    path = str(tmp_path / "t")
    df = spark.createDataFrame([(f"k{n}", "ab"[n % 2], n, 1) for n in range(6)], DDL)
    dataframe.write(df, path, options_of(hoodie_datasource_write_table_type="MERGE_ON_READ"))
    table = pyspark_hoodie.HoodieTable.for_path(spark, path)
    first = table.timeline.latest_commit.time
    assert table.upsert(df.limit(2).withColumn("qty", F.lit(50)).withColumn("ts", F.lit(2).cast("long"))).updated == 2
    assert table.delete(where="id = 'k5'").deleted == 1
    assert table.delete(df.where("id = 'k4'")).deleted == 1
    assert table.insert(spark.createDataFrame([("k8", "b", 8, 1)], DDL)).inserted == 1
    assert table.bulk_insert(spark.createDataFrame([("k9", "b", 9, 1)], DDL)).inserted == 1
    assert sorted(row["id"] for row in table.read(columns=["id"]).collect()) == ["k0", "k1", "k2", "k3", "k8", "k9"]
    assert table.read(as_of=first).count() == 6
    assert {r["id"] for r in table.changes(since=first).collect()} == {"k0", "k1", "k8", "k9"}
    assert table.read(where="qty = 50").columns == ["id", "part", "qty", "ts"]
    before = rows_of(arrow_of(table.read(meta_columns=False)))
    assert table.schedule_compaction() is not None
    assert len(table.pending_compactions()) == 1
    (done,) = table.run_compaction()
    assert done.operation is WriteOperation.COMPACT
    assert rows_of(arrow_of(table.scan(query="read_optimized"))) == before
    assert pyspark_hoodie.last_commit(path).operation is WriteOperation.BULK_INSERT
    assert table.partitions() == ("a", "b")
    assert table.history()[0].inserted == 6


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("small", [True, False])
def test_null_structs_of_fields_that_are_not_null(door, load, tmp_path, table_type, small):
    """Spark makes such fields of every expression that is never null itself."""
    df = door.sql(
        """select cast(id as string) id, 'a' part, 1L ts, if(id = 1, null, named_struct('a', id)) one,
        array(named_struct('a', cast(id as string)), null) items, map('a', named_struct('a', id), 'b', null) pairs,
        if(id = 1, null, named_struct('a', timestamp'2020-01-01 00:00:00')) at from range(3)"""
    )
    path = tmp_path / "t"
    more = {"hoodie_datasource_write_table_type": table_type} | (
        {} if small else {"hoodie_python_driver_max_bytes": "0"}
    )
    save(df, path, **more)
    save(df.where("id <> '2'").withColumn("ts", F.lit(2).cast("long")), path, **more)
    columns = ["id", "one", "items", "pairs", "at"]

    def found():
        return [row.asDict(recursive=True) for row in load(path).select(columns).orderBy("id").collect()]

    expected = [row.asDict(recursive=True) for row in df.select(columns).orderBy("id").collect()]
    assert found() == expected
    if table_type == "MERGE_ON_READ":
        hoodie.open_table(path).compact()
        assert found() == expected


def test_a_column_that_is_never_null_is_stored_nullable(door, load, tmp_path):
    path = tmp_path / "t"
    df = door.createDataFrame([("k", "a", 1, 1)], DDL)
    save(df.withColumn("n", F.lit(1)), path)
    save(df.withColumn("n", F.lit(2)).withColumn("country", F.lit("NO")), path)
    save(df.withColumn("n", F.expr("cast(null as int)")).withColumn("country", F.expr("cast(null as string)")), path)
    assert load(path).select("n", "country").collect() == [(None, None)]


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("interval '1' year", "interval year"),
        ("interval '1' second", "interval second"),
    ],
)
def test_types_that_no_table_has_are_one_sentence(door, tmp_path, expression, told):
    df = door.sql(f"select 'k' id, 'a' part, 1L ts, {expression} x")
    with pytest.raises(Exception, match=f"column 'x.*' has Spark's type {told}, which a table cannot store"):
        save(df, tmp_path / "t")
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_a_batch_of_other_types_or_with_less_columns(door, tmp_path):
    path = tmp_path / "t"
    save(door.createDataFrame([("k", "a", 1, 1)], DDL), path)
    floats = door.createDataFrame([("k", "a", 2.0, 2)], "id string, part string, qty double, ts long")
    save(floats, path)
    assert stored(path) == {"k": ("a", 2, 2)}
    with pytest.raises(Exception, match=r"column 'qty' of table .* is int32, and the batch .double. holds 0.5, which"):
        save(floats.withColumn("qty", F.lit(0.5).cast("double")), path)
    with pytest.raises(Exception, match="MISSING   qty  table int32, not in the batch"):
        save(floats.drop("qty"), path)
    save(floats.drop("qty"), path, hoodie_write_set_null_for_missing_columns="true")
    assert stored(path) == {"k": ("a", None, 2)}


def test_an_expression_index_goes_by_the_clock_of_the_session(door, tmp_path):
    """Whatever that of the process is; by another one it would be dropped. Without `enable` an option has to say it."""
    path, zone, name = str(tmp_path / "t"), "Asia/Tokyo", "hoodie.python.index.expression.timezone"
    save(door.createDataFrame([("k", "a", 1, 1)], DDL), path, hoodie_write_table_version="9")
    before = door.conf.get("spark.sql.session.timeZone")
    door.conf.set("spark.sql.session.timeZone", zone)
    try:
        if isinstance(door.read, pyspark_hoodie.hook.Remembers):
            made, said = "USING column_stats (ts) OPTIONS (expr = 'from_unixtime', format = 'HH')", {}
            door.sql(f"CREATE INDEX by_hour ON hoodie.`{path}` {made}")
        else:
            said = {name: zone, "hoodie.metadata.index.expression.column": "ts"}
            said["hoodie.metadata.index.expression.options"] = "expr=from_unixtime,format=HH"
            hoodie.open_table(path, options=said).build_index("expr_index_by_hour", said)
        save(door.createDataFrame([("k", "a", 2, 7200)], DDL), path, **{name.replace(".", "_"): zone} if said else {})
    finally:
        door.conf.set("spark.sql.session.timeZone", before)
    assert hoodie.open_table(path, options={name: zone}).index("expr_index_by_hour").check()
    assert not hoodie.open_table(path, options={name: "America/New_York"}).index("expr_index_by_hour").check()
