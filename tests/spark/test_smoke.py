"""What must work with every Spark that we name: small, and run with the oldest and a middle one beside the newest."""

from dataclasses import replace

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.errors import KeyFieldError, OptionError, SchemaError, TableExistsError, TableNotFoundError
from hoodie.model.meta_fields import META_COLUMNS
from pyspark_hoodie import HoodieTable
from tests.spark.conftest import SPARK, options_of

pytestmark = [pytest.mark.spark, pytest.mark.smoke]

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")


def frame(spark, rows):
    """Rows of id, part, qty and ts; the other columns come of qty."""
    return spark.createDataFrame(rows, "id string, part string, qty int, ts long").select(
        "*",
        (F.col("qty") / 4).cast("decimal(10,2)").alias("price"),
        F.timestamp_seconds(F.col("qty") + 1_000_000).alias("at"),
        F.array(F.col("id"), F.lit(None)).alias("tags"),
    )


def quantities(df):
    rows = df.collect()
    found = {row["id"]: row["qty"] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture(scope="module", params=TYPES)
def told(request, spark, tmp_path_factory):
    """A table of each type after a first write, an upsert and a delete: its path and their instants."""
    pyspark_hoodie.enable(spark)
    path = str(tmp_path_factory.mktemp("smoke") / "t")
    instants = []
    for mode, rows, options in (
        ("errorifexists", [(f"k{n}", "ab"[n % 2], n, 1) for n in range(6)], options_of()),
        ("append", [("k1", "b", 100, 2), ("k2", "a", 102, 0), ("k9", "a", 9, 1)], {}),
        ("append", [("k3", "b", 0, 3)], {"hoodie.datasource.write.operation": "delete"}),
    ):
        made = {"hoodie.datasource.write.table.type": request.param} if len(instants) == 0 else {}
        frame(spark, rows).write.format("hoodie").options(**options, **made).mode(mode).save(path)
        instants.append(pyspark_hoodie.last_commit(path).instant)
    yield path, instants, request.param
    pyspark_hoodie.disable()


NOW = {"k0": 0, "k1": 100, "k2": 2, "k4": 4, "k5": 5, "k9": 9}


def load(spark, path, **options):
    pyspark_hoodie.enable(spark)
    return spark.read.format("hoodie").options(**{k.replace("_", "."): v for k, v in options.items()}).load(path)


def test_snapshot_has_the_newest_row_of_each_key_and_every_type(spark, told):
    path, _, kind = told
    df = load(spark, path)
    assert df.columns == [*META_COLUMNS, "id", "part", "qty", "ts", "price", "at", "tags"]
    assert quantities(df) == NOW
    row = df.where("id = 'k1'").first()
    assert (str(row["price"]), row["at"].timestamp(), row["tags"]) == ("25.00", 1_000_100.0, ["k1", None])
    table = hoodie.open_table(path)
    assert table.config.table_type == kind
    assert {row["id"]: row["qty"] for row in table.scan().to_arrow().to_pylist()} == NOW


def test_filters_and_columns_reach_the_rows_that_logs_changed(spark, told):
    path, _, _ = told
    df = load(spark, path)
    assert quantities(df.select("id", "qty").where("qty >= 100")) == {"k1": 100}
    assert quantities(df.where("qty = 1").select("id", "qty")) == {}
    assert quantities(load(spark, path, where="part = 'b' and qty > 4")) == {"k1": 100, "k5": 5}
    assert [tuple(r) for r in df.groupBy("part").agg(F.sum("qty")).orderBy("part").collect()] == [("a", 15), ("b", 105)]


def test_read_optimized_is_what_base_files_have(spark, told):
    path, _, kind = told
    found = quantities(load(spark, path, hoodie_datasource_query_type="read_optimized"))
    assert found == (NOW if kind == TYPES[0] else {**{f"k{n}": n for n in range(6)}, "k9": 9})


def test_as_of_an_instant(spark, told):
    path, (first, second, _), _ = told
    assert quantities(load(spark, path, as_of_instant=first)) == {f"k{n}": n for n in range(6)}
    assert quantities(load(spark, path, as_of_instant=second)) == {**NOW, "k3": 3}


def test_incremental_pull_is_open_at_its_begin(spark, told):
    path, (first, second, _), _ = told
    span = {
        "hoodie_datasource_read_begin_instanttime": first,
        "hoodie_datasource_read_end_instanttime": second,
    }
    found = quantities(load(spark, path, hoodie_datasource_query_type="incremental", **span))
    assert {key: found[key] for key in ("k1", "k9")} == {"k1": 100, "k9": 9}
    assert "k0" not in found


def test_verbs_of_the_table(spark, tmp_path):
    pyspark_hoodie.enable(spark)
    path = str(tmp_path / "t")
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    frame(spark, [("k0", "a", 0, 1), ("k1", "b", 1, 1)]).write.format("hoodie").options(**options_of(), **kind).save(
        path
    )
    pyspark_hoodie.disable()  # HoodieTable needs no enable
    table = HoodieTable.for_path(spark, path)
    result = table.upsert(frame(spark, [("k0", "a", 10, 2), ("k2", "a", 2, 1)]))
    assert (result.inserted, result.updated) == (1, 1)
    assert table.delete(frame(spark, [("k1", "b", 0, 1)])).deleted == 1
    assert quantities(table.read()) == {"k0": 10, "k2": 2}
    (compacted,) = table.compact()
    assert quantities(table.read(["id", "qty"], "qty > 5")) == {"k0": 10}
    assert quantities(table.read(query="read_optimized")) == {"k0": 10, "k2": 2}
    assert compacted.instant == table.history()[-1].instant


def test_compactions_by_a_strategy_within_a_budget_and_a_bound_of_memory_run_on_executors(spark, tmp_path):
    path = str(tmp_path / "t")
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    numbers = range(400)
    pyspark_hoodie.enable(spark)
    rows = frame(spark, [(f"k{n:05}", "ab"[n % 2], n, 1) for n in numbers])
    rows.write.format("hoodie").options(**options_of(), **kind).save(path)
    table = HoodieTable.for_path(spark, path)
    core = table._core
    core._opened = replace(core._opened, tuning=replace(core._opened.tuning, least_room_bytes=1))
    table.upsert(frame(spark, [(f"k{n:05}", "ab"[n % 2], n + 1, 2) for n in numbers]))
    cramped = {"hoodie.memory.compaction.max.size": "20000"}  # of the 40,000 bytes that the rows of a log take
    (first,) = table.compact(cramped, strategy=lambda slices: slices[:1], budget_s=60)
    (second,) = table.compact(cramped, strategy="log_file_num")
    assert (first.files, second.files) == (1, 1)
    expected = {f"k{n:05}": n + 1 for n in numbers}
    assert quantities(table.read(query="read_optimized")) == quantities(table.read()) == expected


def test_save_modes_and_partition_by(spark, tmp_path):
    pyspark_hoodie.enable(spark)
    path = str(tmp_path / "t")
    key = {"hoodie.datasource.write.recordkey.field": "id"}
    df = frame(spark, [("k0", "a", 0, 1), ("k1", "b", 1, 1)])
    df.write.format("hoodie").options(**key).partitionBy("part").save(path)
    df.withColumn("qty", F.lit(7)).write.format("hoodie").mode("ignore").save(path)
    with pytest.raises(TableExistsError, match="already"):
        df.write.format("hoodie").save(path)
    df.where("id = 'k0'").write.save(path, format="hoodie", mode="overwrite")
    assert quantities(load(spark, path)) == {"k0": 0}
    df.withColumn("qty", F.lit(8)).write.format("hoodie").mode("append").save(path)
    assert quantities(load(spark, path)) == {"k0": 8, "k1": 8}
    assert hoodie.open_table(path).config.partition_fields == ("part",)
    pyspark_hoodie.disable()


@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (
            lambda df, p: df.write.format("hoodie").option("hoodie.nope", "1").mode("append").save(p),
            OptionError,
            "hoodie.nope",
        ),
        (
            lambda df, p: df.withColumn("qty", F.lit("x")).write.format("hoodie").mode("append").save(p),
            SchemaError,
            "table int32, batch string",
        ),
        (
            lambda df, p: df.withColumn("id", F.lit(None).cast("string")).write.format("hoodie").mode("append").save(p),
            KeyFieldError,
            "null",
        ),
        (lambda df, p: df.sparkSession.read.format("hoodie").load(p + "x"), TableNotFoundError, "no table at"),
    ],
    ids=["option", "schema", "null key", "no table"],
)
def test_errors_are_ours_and_short(spark, told, act, kind, text):
    path, instants, _ = told
    pyspark_hoodie.enable(spark)
    with pytest.raises(kind) as caught:
        act(frame(spark, [("k0", "a", 1, 9)]), path)
    assert text in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 8
    assert hoodie.open_table(path).timeline.commits[-1].time == instants[-1]


@pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has no sources written in Python")
def test_spark_finds_the_source_by_itself(spark, tmp_path):
    pyspark_hoodie.disable()
    path = str(tmp_path / "t")
    for rows in ([("k0", "a", 0, 1), ("k1", "b", 1, 1)], [("k0", "a", 10, 2)]):
        frame(spark, rows).write.format("hoodie").options(**options_of()).mode("append").save(path)
    df = spark.read.format("hoodie").load(path)
    assert quantities(df) == {"k0": 10, "k1": 1}
    spark.sql(f"create or replace temporary view smoke using hoodie options (path '{path}')")
    assert spark.sql("select sum(qty) from smoke").first()[0] == 11
    spark.catalog.dropTempView("smoke")
    empty = str(tmp_path / "empty")
    hoodie.create_table(empty, pa.schema([("id", pa.string())]), record_key="id")
    spark.sql(f"create or replace temporary view smoke using hoodie options (path '{empty}')")
    assert spark.sql("select id from smoke").collect() == []
    spark.catalog.dropTempView("smoke")


@pytest.mark.skipif(SPARK >= (4, 0), reason="Spark 4 finds the source by itself")
def test_without_enable_there_is_no_format_and_the_module_says_why(spark, told):
    pyspark_hoodie.disable()
    with pytest.raises(Exception, match="hoodie"):
        spark.read.format("hoodie").load(told[0])
    with pytest.raises(AttributeError, match=r"call pyspark_hoodie\.enable"):
        pyspark_hoodie.DefaultSource  # noqa: B018
    assert pyspark.__version__.startswith("3.5")


def test_views_and_sql(spark, told):
    path, _, _ = told
    load(spark, path).createOrReplaceTempView("smoke")
    assert spark.sql("select count(*), sum(qty) from smoke where part = 'a'").first()[:] == (4, 15)
    spark.catalog.dropTempView("smoke")


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_tables_by_name(spark, table_type):
    pyspark_hoodie.enable(spark)
    try:
        properties = f"type = '{table_type}', primaryKey = 'id', preCombineField = 'ts'"
        columns = "id int, v string, ts bigint, p string"
        spark.sql(f"create table named ({columns}) using hudi partitioned by (p) tblproperties ({properties})")
        spark.sql("insert into named values (1, 'a', 1, 'x'), (2, 'b', 1, 'x'), (3, 'c', 1, 'y')")
        spark.sql(
            "merge into named t using (select 1 id, 'one' v union all select 2, 'two' union all select 9, 'nine') s on t.id = s.id "
            "when matched and t.id = 1 then delete when matched then update set v = concat(t.v, s.v), p = 'z' "
            "when not matched then insert (id, v, ts, p) values (s.id, s.v, 1, 'x')"
        )
        spark.sql("update named set v = 'up' where id = 3")
        rows = spark.sql("select id, v, p from named order by id").collect()
        assert [tuple(row) for row in rows] == [(2, "btwo", "z"), (3, "up", "y"), (9, "nine", "x")]
        spark.sql("cache table named")
        spark.sql("insert into named (p, id) values ('x', 10)")
        spark.sql("with q as (select 11 id, 'x' p) insert into named by name select p, id from q")
        spark.sql("insert into named partition (p = 'w') (id, v) values (12, default)")
        rows = spark.sql("select * from named where id > 9 order by id").collect()
        assert [tuple(row) for row in rows] == [(10, None, None, "x"), (11, None, None, "x"), (12, None, None, "w")]
        with pytest.raises(Exception, match="nope"):
            spark.sql("insert into named (p, nope) values ('x', 10)")
        spark.sql("truncate table named")
        assert spark.table("named").collect() == []
    finally:
        spark.sql("drop table if exists named")
        pyspark_hoodie.disable()
