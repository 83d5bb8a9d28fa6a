"""Each line of docs/SPARK.md, "Saving, tables and SQL": it works, or one sentence says what to do instead."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import hoodie
import pyspark_hoodie
from hoodie.errors import OptionError
from tests.effort import long_but
from tests.spark.conftest import SPARK, options_of

pytestmark = pytest.mark.spark

ROWS = [("k", "a", 1, 1), ("l", "b", 2, 1)]
NO_SOURCE = pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has no sources written in Python")


@pytest.fixture
def sql(spark):
    pyspark_hoodie.enable(spark, aliases=("hudi", "org.apache.hudi"))
    yield spark
    for view in ("v", "native"):
        spark.catalog.dropTempView(view)
    pyspark_hoodie.disable()


@pytest.fixture
def df(sql):
    return sql.createDataFrame(ROWS, "id string, part string, qty int, ts long")


@pytest.fixture
def path(df, tmp_path):
    df.write.format("hoodie").options(**options_of()).save(str(tmp_path / "t"))
    return str(tmp_path / "t")


def total(spark, name):
    return spark.sql(f"select sum(qty) from {name}").collect()[0][0]


def test_a_view_of_a_dataframe_keeps_its_snapshot(sql, df, path):
    sql.read.format("hoodie").load(path).createOrReplaceTempView("native")
    df.withColumn("qty", df.qty + 10).write.format("hoodie").mode("append").save(path)
    assert total(sql, "native") == 3
    assert sql.table("native").count() == sql.read.table("native").count() == 2
    assert sql.sql("select sum(qty) from {t}", t=sql.read.format("hoodie").load(path)).collect()[0][0] == 23


@NO_SOURCE
@pytest.mark.parametrize("name", long_but([], ["hoodie", "hudi", "`org.apache.hudi`"]))
def test_a_view_using_the_format_keeps_its_snapshot_until_it_is_made_anew(sql, df, path, name):
    """Spark 4.0 makes the source anew for each query, later ones with the view."""
    view = f"create or replace temporary view v using {name} options (path '{path}')"
    sql.sql(view)
    assert total(sql, "v") == 3
    df.withColumn("qty", df.qty + 10).write.format("hoodie").mode("append").save(path)
    assert total(sql, "v") == (23 if SPARK == (4, 0) else 3)
    sql.sql(view)
    assert total(sql, "v") == 23


@NO_SOURCE
def test_a_view_using_the_format_takes_read_options(sql, df, path):
    first = pyspark_hoodie.last_commit(path).instant
    df.withColumn("qty", df.qty + 10).write.format("hoodie").mode("append").save(path)
    sql.sql(f"create or replace temporary view v using hoodie options (path '{path}', 'as.of.instant' '{first}')")
    assert total(sql, "v") == 3


@pytest.mark.skipif(SPARK >= (4, 0), reason="Spark 4 knows the format in SQL")
def test_a_view_using_the_format_is_explained_on_3_5(sql, path):
    with pytest.raises(OptionError, match=r"Spark 3\.5 has no formats .*createOrReplaceTempView"):
        sql.sql(f"create or replace temporary view v using hoodie options (path '{path}')")


CATALOG = {
    "location": "create table t using hoodie location '{path}'",
    "tblproperties": "create table if not exists t (id string) using hudi tblproperties (primaryKey = 'id')",
    "select": "create table t using `hoodie` as select 1 as id",
    "replace": "create or replace table t using hudi as select 1 as id",
    "external": "CREATE EXTERNAL TABLE t\n  USING Hoodie OPTIONS (path '{path}')",
    "comment": "/* one */ create table t -- two\n using hoodie",
}


@pytest.mark.parametrize("case", CATALOG)
def test_catalog_tables_are_refused_before_they_are_made(sql, path, case):
    with pytest.raises(OptionError, match="would make a catalog table"):
        sql.sql(CATALOG[case].format(path=path))
    assert not sql.catalog.tableExists("t")


WRITERS = {
    "saveAsTable": lambda df: df.write.format("hoodie").saveAsTable("t"),
    "saveAsTable with a path": lambda df: df.write.option("path", "/nowhere").saveAsTable(
        "t", format="hudi", mode="append"
    ),
    "insertInto": lambda df: df.write.format("hoodie").insertInto("t"),
    "writeTo": lambda df: df.writeTo("t").using("hoodie").create(),
    "createTable": lambda df: df.sparkSession.catalog.createTable("t", path="/nowhere", source="hoodie"),
}


@pytest.mark.parametrize("case", WRITERS)
def test_writers_of_catalog_tables_are_refused(sql, df, case):
    with pytest.raises(OptionError, match=r"catalog tables?\b.*path"):
        WRITERS[case](df)


def test_other_formats_keep_their_tables(sql, df):
    df.write.format("parquet").mode("overwrite").saveAsTable("plain")
    df.write.insertInto("plain")
    df.writeTo("plain2").using("parquet").create()
    sql.sql("create table plain3 using parquet as select 'create table t using hoodie' as qty")
    assert sql.table("plain").count() == 4
    assert sql.sql("select qty from plain3 -- using hoodie").collect()[0][0] == "create table t using hoodie"
    for name in ("plain", "plain2", "plain3"):
        sql.sql(f"drop table {name}")


INSTEAD = {
    "path": ("select * from hoodie.`{path}`", "createOrReplaceTempView"),
    "alias": ("select * from `hudi`.`{path}`", "createOrReplaceTempView"),
    "directory": ("insert overwrite directory '{path}' using hoodie select 1", r"mode\('overwrite'\)\.save\(path\)"),
    "changes": ("select * from hudi_table_changes('{path}', 'latest_state', 'earliest')", r"HoodieTable\.for_path"),
}


@pytest.mark.parametrize("case", INSTEAD)
def test_what_spark_refuses_gets_a_sentence(sql, path, case):
    query, text = INSTEAD[case]
    with pytest.raises(OptionError, match=text):
        sql.sql(query.format(path=path))


CHANGES = {
    "update native set qty = 1": "upsert",
    "DELETE FROM native where id = 'k'": "delete",
    "/* one */ delete from `native`": "delete",
    "merge into native using native as s on native.id = s.id when matched then delete": "delete",
    "insert into native values ('m', 'a', 3, 1)": "insert",
    "insert overwrite table native values ('m', 'a', 3, 1)": "insert_overwrite_table",
    "INSERT OVERWRITE native partition (part = 'a') select * from native": "insert_overwrite",
}


@pytest.mark.parametrize("made", ["frame", "columns", pytest.param("using", marks=NO_SOURCE)])
def test_sql_that_changes_rows_of_a_view_is_one_sentence_that_names_the_method(sql, path, made):
    frame = sql.read.format("hoodie").load(path)
    if made == "using":
        sql.sql(f"create or replace temporary view native using hoodie options (path '{path}')")
    else:
        (frame if made == "frame" else frame.select("id", "qty")).createOrReplaceTempView("native")
    for query, verb in CHANGES.items():
        with pytest.raises(OptionError, match=rf"HoodieTable\.for_path\(spark, path\)\.\S*.*{verb}\("):
            sql.sql(query)
    assert sql.table("native").count() == 2
    assert len(hoodie.open_table(path).timeline.instants) == 1


BY_NAME = {
    "insertInto": (lambda df, name: df.write.insertInto(name), "insert"),
    "writeTo": (lambda df, name: df.writeTo(name).append(), "insert"),
    "mergeInto": (lambda df, name: df.mergeInto(name, df.id == "k").whenMatched().updateAll().merge(), "upsert"),
}


@pytest.mark.parametrize("case", BY_NAME)
def test_methods_that_change_rows_of_a_view_are_one_sentence_that_names_the_method(sql, df, path, case):
    if not hasattr(df, case) and case == "mergeInto":
        pytest.skip("Spark 3.5 has none")
    sql.read.format("hoodie").load(path).createOrReplaceTempView("native")
    call, verb = BY_NAME[case]
    with pytest.raises(OptionError, match=rf"HoodieTable\.for_path\(spark, path\)\.{verb}\("):
        call(df, "native")


@pytest.mark.parametrize("way", ["table", "reader", "writeTo"])
def test_a_path_as_a_name_gets_a_sentence(sql, df, path, way):
    ways = {"table": sql.table, "reader": sql.read.table, "writeTo": df.writeTo}
    with pytest.raises(OptionError, match="createOrReplaceTempView"):
        ways[way](f"hoodie.`{path}`")


def test_sql_that_changes_rows_of_others_is_left_to_spark(sql, path, tmp_path):
    plain = str(tmp_path / "plain")
    sql.range(3).write.parquet(plain)
    sql.sql(f"create or replace temporary view native using parquet options (path '{plain}')")
    sql.sql("insert into native values (7)")
    assert sql.table("native").count() == 4
    with pytest.raises((PySparkException, Py4JJavaError)):
        sql.sql("delete from nowhere")


@pytest.mark.parametrize(
    "query",
    [
        "select * from native timestamp as of '2024-01-01'",
        "call show_commits(table => 't')",
    ],
)
def test_sql_of_other_engines_is_sparks_own_refusal_and_changes_nothing(sql, path, query):
    sql.read.format("hoodie").load(path).createOrReplaceTempView("native")
    with pytest.raises((PySparkException, Py4JJavaError)):
        sql.sql(query)
    assert len(hoodie.open_table(path).timeline.instants) == 1


def test_spark_itself_is_asked_again_after_disable(spark, path):
    pyspark_hoodie.disable()
    with pytest.raises(PySparkException):
        spark.sql(f"select * from hoodie.`{path}`")
