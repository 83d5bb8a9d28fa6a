"""Each line of docs/SPARK.md, "Saving, tables and SQL": it works, or one sentence says what to do instead."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.errors import OptionError, TableExistsError
from hoodie.filegroup.log_scan import is_partial
from hoodie.format.log_block import scan_blocks
from pyspark_hoodie import sql_create, sql_merge, sql_table
from pyspark_hoodie.small_batch import collected
from tests.effort import long_but
from tests.spark.changes_by_methods import EXPECTED, TWO_LEVELS, play, refusals, two_levels
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


def test_other_formats_keep_their_tables(sql, df):
    df.write.format("parquet").mode("overwrite").saveAsTable("plain")
    df.write.insertInto("plain")
    df.writeTo("plain2").using("parquet").create()
    sql.sql("create table plain3 using parquet as select 'create table t using hoodie' as qty")
    assert sql.table("plain").count() == 4
    assert sql.sql("select qty from plain3 -- using hoodie").collect()[0][0] == "create table t using hoodie"
    for name in ("plain", "plain2", "plain3"):
        sql.sql(f"drop table {name}")


@pytest.mark.parametrize(
    "name", ["hudi_query('{path}', 'snapshot')", "hudi_table_changes('{path}', 'latest_state', 'earliest')"]
)
def test_functions_take_paths_and_leave_with_disable(sql, path, name):
    query = f"select sum(qty), min(_hoodie_record_key) from {name.format(path=path)}"
    assert sql.sql(query).collect() == [(3, "k")]
    pyspark_hoodie.disable()
    with pytest.raises(PySparkException):
        sql.sql(query)


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


WAYS = {
    "table": lambda spark, name: spark.table(name),
    "reader": lambda spark, name: spark.read.table(name),
    "sql": lambda spark, name: spark.sql(f"select * from {name}"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["hoodie", "hudi", "`org.apache.hudi`"])
def test_a_path_as_a_name(sql, df, path, way, form):
    found = WAYS[way](sql, f"{form}.`{path}`")
    df.withColumn("qty", df.qty + 10).writeTo(f"hoodie.`{path}`").append()
    assert found.columns == ["id", "qty", "ts", "part"], "partition columns are the last ones"
    assert sorted(row[1] for row in found.collect()) == [1, 2], "the snapshot is that of the call"
    assert WAYS[way](sql, f"{form}.`{path}`").selectExpr("sum(qty)", "min(_hoodie_record_key)").collect() == [(23, "k")]


SAVED = {
    "errorifexists": lambda df: df.write.saveAsTable("saved", format="hoodie", partitionBy="part", **options_of()),
    "append": lambda df: df.write.mode("append").saveAsTable("saved"),
    "ignore": lambda df: df.write.format("hoodie").mode("ignore").saveAsTable("saved"),
    "insertInto": lambda df: df.select("id", "qty", "ts", "part").write.insertInto("saved"),
    "overwritePartitions": lambda df: (
        df.where("part = 'a'").withColumn("qty", df.qty + 5).writeTo("saved").overwritePartitions()
    ),
    "overwrite": lambda df: (
        df.limit(1).write.format("hoodie").options(**options_of()).mode("overwrite").saveAsTable("saved")
    ),
}
SUMS = {"errorifexists": 3, "append": 3, "ignore": 3, "insertInto": 3, "overwritePartitions": 8, "overwrite": 1}


def test_tables_that_dataframes_make_by_name(sql, df):
    try:
        for case, save in SAVED.items():
            save(df)
            assert total(sql, "saved") == SUMS[case], case
        with pytest.raises(PySparkException, match="already exists"):
            df.write.format("hoodie").saveAsTable("saved")
    finally:
        sql.sql("drop table if exists saved")


COPIES = {
    "saved": lambda rows: rows.write.format("hoodie").options(**options_of()).saveAsTable("copied"),
    "appended": lambda rows: rows.write.format("hoodie").mode("append").saveAsTable("copied"),
    "appended without a format": lambda rows: rows.write.mode("append").saveAsTable("copied"),
    "inserted": lambda rows: rows.write.insertInto("copied"),
    "insert overwrite": lambda rows: rows.write.mode("overwrite").insertInto("copied"),
    "writeTo append": lambda rows: rows.writeTo("copied").append(),
    "writeTo overwritePartitions": lambda rows: rows.writeTo("copied").overwritePartitions(),
    "writeTo createOrReplace": lambda rows: (
        rows.writeTo("copied")
        .using("hoodie")
        .tableProperty("primaryKey", "id")
        .tableProperty("preCombineField", "ts")
        .createOrReplace()
    ),
    "INSERT": lambda rows: rows.sparkSession.sql("INSERT INTO copied SELECT * FROM native"),
    "INSERT BY NAME": lambda rows: rows.sparkSession.sql("INSERT INTO copied BY NAME SELECT * FROM native"),
    "INSERT OVERWRITE": lambda rows: rows.sparkSession.sql(
        "WITH q AS (SELECT * FROM native) INSERT OVERWRITE copied SELECT * FROM q"
    ),
    "RTAS": lambda rows: rows.sparkSession.sql(
        "CREATE OR REPLACE TABLE copied USING hoodie TBLPROPERTIES (primaryKey = 'id') AS SELECT * FROM native"
    ),
    "overwritten": lambda rows: (
        rows.write.format("hoodie").options(**options_of()).mode("overwrite").saveAsTable("copied")
    ),
}


def test_frames_that_were_read_from_a_table_fill_a_table_by_name(sql, path):
    """They have the meta columns of the table that they were read from."""
    stored = sql.read.format("hoodie").load(path)
    try:
        for step, (case, copy) in enumerate(COPIES.items()):
            columns = sql.table("copied").columns if step else ["id", "part", "qty", "ts"]
            rows = stored.withColumn("qty", stored.qty + step).select(*stored.columns[:5], *columns)
            rows.createOrReplaceTempView("native")
            copy(rows)
            assert total(sql, "copied") == 3 + 2 * step, case
            assert sorted(sql.table("copied").columns) == ["id", "part", "qty", "ts"], case
    finally:
        sql.sql("drop table if exists copied")


def test_meta_columns_are_values_for_columns_of_other_names(sql, path):
    stored = sql.read.format("hoodie").load(path)
    sql.sql("create table audit (t string, s string, k string, p string, f string) using hoodie")
    try:
        stored.select(*stored.columns[:5]).write.insertInto("audit")
        stored.select(*stored.columns[:5]).createOrReplaceTempView("native")
        sql.sql("insert into audit select * from native")
        assert [row.k for row in sql.sql("select k from audit order by k").collect()] == ["k", "k", "l", "l"]
    finally:
        sql.sql("drop table audit")


@pytest.mark.parametrize(("mode", "sum_of_rows"), [("append", 43), ("overwrite", 41)])
def test_a_job_of_a_new_session_saves_into_its_table_again(sql, df, tmp_path, mode, sum_of_rows):
    """The files are there, and a catalog in memory has forgotten the name."""
    writer = df.write.format("hoodie").options(**options_of()).option("path", f"{tmp_path}/again")
    try:
        writer.saveAsTable("again")
        sql.sql("drop table again")
        rows = df.limit(1).withColumn("qty", df.qty + 40)
        with pytest.raises(TableExistsError):
            rows.write.format("hoodie").options(**options_of()).option("path", f"{tmp_path}/again").saveAsTable("again")
        rows.write.format("hoodie").options(**options_of()).option("path", f"{tmp_path}/again").mode(mode).saveAsTable(
            "again"
        )
        assert total(sql, "again") == sum_of_rows
        assert len(hoodie.open_table(tmp_path / "again").timeline.commits) == 2
    finally:
        sql.sql("drop table if exists again")


def test_rows_of_a_query_become_the_table_in_a_folder(sql, tmp_path):
    """Its options may have the short names that tables by name have."""
    path = str(tmp_path / "d")
    options = "primaryKey 'id', preCombineField 'ts', type 'mor', 'hoodie.table.name' 'd'"
    sql.sql(f"insert overwrite directory '{path}' using hudi options ({options}) select 1 as id, 2L as ts")
    config = hoodie.open_table(path).config
    assert (*config.record_key_fields, *config.ordering_fields) == ("id", "ts")
    assert (config.name, config.table_type.value) == ("d", "MERGE_ON_READ")
    sql.sql(
        f"insert overwrite local directory using hoodie options (path '{path}', {options}) select 3 as id, 4L as ts"
    )
    assert hoodie.open_table(path).scan(["id", "ts"]).to_arrow().to_pylist() == [{"id": 3, "ts": 4}]


def test_a_reader_by_name_takes_a_moment_as_a_reader_by_path_does(sql, df, path):
    first = pyspark_hoodie.last_commit(path).instant
    df.withColumn("qty", df.qty + 10).write.format("hoodie").mode("append").save(path)
    at = datetime.strptime(first, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC).isoformat(" ")
    sql.sql(f"create table travelled using hoodie location '{path}'")
    try:
        for option, text in {"as.of.instant": first, "timestampAsOf": at, "TIMESTAMPASOF": at}.items():
            reader = sql.read.format("hoodie").option(option, text)
            assert reader.load(path).agg({"qty": "sum"}).collect() == [(3,)], option
            assert reader.table("travelled").agg({"qty": "sum"}).collect() == [(3,)], option
    finally:
        sql.sql("drop table travelled")


def test_an_existing_table_gets_a_name_by_its_location(sql, path):
    sql.sql(f"create table named using hudi location '{path}'")
    try:
        sql.sql("update named set qty = 7, ts = 2 where id = 'k'")
        assert hoodie.open_table(path).scan(["qty"], "id = 'k'").to_arrow()["qty"].to_pylist() == [7]
        again = f"create or replace table named using hudi location '{path}' as select id, qty + {{}} as qty, ts, part from named"
        with pytest.raises(Exception, match="boom"):
            sql.sql(again.format("cast(raise_error('boom') as int)"))
        assert total(sql, "named") == 9
        sql.sql(again.format(1))
        assert total(sql, "named") == 11
    finally:
        sql.sql("drop table named")
    assert hoodie.is_table(path)
    with pytest.raises(OptionError, match=r"record key is .*id.* in the table, .*qty.* in your options"):
        sql.sql(f"create table named using hudi tblproperties (primaryKey = 'qty') location '{path}'")
    with pytest.raises(OptionError, match="is partitioned by part"):
        sql.sql(f"create table named (id string, part string) using hudi partitioned by (id) location '{path}'")


@pytest.fixture
def folder(sql):
    """That of a table `left` without LOCATION."""
    yield sql.conf.get("spark.sql.warehouse.dir").removeprefix("file:") + "/left"
    sql.sql("drop table if exists left")


LEFT = {"as it will be": {"id": "int64", "v": "int32"}, "another one": {"other": "string"}}
MADE = "using hoodie tblproperties (primaryKey = 'id', 'hoodie.write.table.version' = 6)"


@pytest.mark.parametrize("schema", LEFT)
def test_files_that_a_killed_statement_left_are_in_nobodys_way(sql, folder, schema):
    hoodie.create_table(folder, LEFT[schema], record_key=next(iter(LEFT[schema])))
    pending = Path(folder, ".hoodie", "20240101000000000.commit.requested")
    pending.touch()
    sql.sql(f"create table if not exists left {MADE} as select id, 1 as v from range(3)")
    assert sorted(map(tuple, sql.table("left").collect())) == [(0, 1), (1, 1), (2, 1)]
    assert not pending.exists()


def test_a_statement_that_died_before_its_table_came_in_the_place_of_another_one_leaves_no_folder(
    sql, folder, monkeypatch
):
    again = f"replace table left {MADE} as select id, {{}} as v from range(2)"
    sql.sql(f"create table left {MADE} as select id, 1 as v from range(3)")
    held, undone = [], sql_create.NewTable._answers
    with monkeypatch.context() as dies:
        dies.setattr(
            sql_create.NewTable,
            "_answers",
            lambda self, what, given: held.append(self) if what == "undo" else undone(self, what, given),
        )
        with pytest.raises(Exception, match="boom"):
            sql.sql(again.format("cast(raise_error('boom') as string)"))

    def folders():
        return {path.name for path in Path(folder).parent.glob("left_*")}

    (table,) = held
    dead = folders()
    sql.sql(again.format("'other'"))
    assert dead < folders(), "its statement may still run"
    table._core.writer.context.liveness.abandon(sql_create._REPLACING)
    sql.sql(again.format("2.5D"))
    assert not dead & folders()
    assert sorted(map(tuple, sql.table("left").collect())) == [(0, 2.5), (1, 2.5)]


def test_a_query_that_fails_leaves_no_files(sql, folder):
    with pytest.raises(Exception, match="boom"):
        sql.sql(f"create table left {MADE} as select id, if(id > 1, raise_error('boom'), 'x') as v from range(3)")
    assert not Path(folder).exists()


def test_rows_without_a_name_are_not_added_to(sql, folder):
    hoodie.create_table(folder, LEFT["as it will be"], record_key="id").insert({"id": [1], "v": [1]})
    with pytest.raises(TableExistsError, match=r"table with rows .*LOCATION"):
        sql.sql(f"create table left {MADE} as select 1L as id, 1 as v")
    sql.sql(f"create table left (id bigint, v int) {MADE}")
    assert sql.table("left").count() == 1


def test_a_query_does_not_fill_a_folder_of_other_files(sql, folder, tmp_path):
    sql.range(1).write.parquet(folder)
    with pytest.raises(OptionError, match="there are files"):
        sql.sql("create table left using hoodie as select 1 as v")
    with pytest.raises(OptionError, match="there are files"):
        sql.sql("create table left (v int) using hoodie")
    assert sql.read.parquet(folder).count() == 1
    shutil.rmtree(folder)


def test_a_table_that_gets_no_name_takes_no_files_of_others_with_it(sql, tmp_path):
    place = str(tmp_path / "shared")
    rows = sql.range(2)
    rows.write.parquet(place)
    given = {"location": place, "primaryKey": "id"}
    made = sql_create.new_table(sql, "left", "default", place, rows.schema.json(), [], given, None, False)
    made._answers("undo", [])
    assert sql.read.parquet(place).count() == 2


@pytest.mark.parametrize(
    ("dropped", "left"),
    [
        ("p = '*', q = '*'", []),
        ("p = 'x*', q = 'b'", [1, 3, 4]),
        ("p = 'x1', q = '*'", [3, 4]),
        ("p = '*.*', q = 'a'", [1, 2, 4]),
        ("p = '?1', q = 'a'", None),
    ],
)
def test_partitions_are_dropped_by_what_they_begin_with(sql, tmp_path, dropped, left):
    made = f"partitioned by (p, q) location '{tmp_path / 't'}'"
    sql.sql(f"create or replace table t (id bigint, p string, q string) {MADE} {made}")
    sql.sql("insert into t values (1, 'x1', 'a'), (2, 'x1', 'b'), (3, 'y.z', 'a'), (4, 'y', null)")
    if left is None:
        with pytest.raises(PySparkException, match="PARTITIONS_NOT_FOUND"):
            sql.sql(f"alter table t drop partition ({dropped})")
        left = [1, 2, 3, 4]
    else:
        sql.sql(f"alter table t drop partition ({dropped})")
    assert [row.id for row in sql.sql("select id from t order by id").collect()] == left
    sql.sql("drop table t")


STAR = "when matched then update set * when not matched then insert *"
MERGES = {  # clauses -> whether they need stored rows, the table then
    STAR: (False, {0: 0, 1: 1, 2: 10, 3: 10}),
    "when matched and s.v > 9 then delete when matched then update set * when not matched and s.v < 10 then insert *": (
        False,
        {0: 0, 1: 1},
    ),
    "when matched then delete": (False, {0: 0, 1: 1}),
    "when matched then update set v = whole.v + s.v when not matched then insert *": (True, {0: 0, 1: 1, 2: 12, 3: 10}),
    "when matched and whole.v < 2 then delete when not matched then insert *": (True, {0: 0, 1: 1, 2: 2, 3: 10}),
    "when matched then update set v = whole.v + s.v": (True, {0: 0, 1: 1, 2: 12}),
    "when matched and whole.v > 1 then update set v = s.v when not matched and s.v > 10 then insert *": (
        True,
        {0: 0, 1: 1, 2: 10},
    ),
    "when matched then update set v = s.v when not matched then insert (id) values (s.id)": (
        True,
        {0: 0, 1: 1, 2: 10, 3: None},
    ),
    "when matched then update set *": (False, {0: 0, 1: 1, 2: 10}),
    "when matched then update set * when not matched and s.v > 10 then insert *": (False, {0: 0, 1: 1, 2: 10}),
}


@pytest.mark.parametrize("clauses", MERGES)
def test_a_merge_by_key_reads_few_stored_rows_or_none(sql, tmp_path, monkeypatch, clauses):
    read, made = [], []
    monkeypatch.setattr(sql_table, "small_merge", lambda *given: made.append(sql_merge.small_merge(*given)) or made[-1])
    stored = sql_table.CatalogTable._stored
    monkeypatch.setattr(sql_table.CatalogTable, "_stored", lambda *given: read.append(stored(*given)) or read[-1])
    sql.sql(f"create or replace table whole (id bigint, v bigint) {MADE} location '{tmp_path / 'whole'}'")
    sql.sql("insert into whole select id, id as v from range(3)")
    sql.sql("create or replace temporary view v as select id, 10L as v from range(2, 4)")
    sql.sql(f"merge into whole using v s on whole.id = s.id {clauses}")
    needs_stored, rows = MERGES[clauses]
    assert [each is not None for each in made] == [True]
    assert [each.num_rows for each in read] == [1] * bool(needs_stored)
    assert dict(sql.sql("select id, v from whole").collect()) == rows
    sql.sql("drop table whole")


MATCHED = ("update set *", "update set w = s.w", "update set w = concat(t.w, s.w), v = s.v")


@pytest.mark.parametrize("clause", MATCHED)
def test_a_merge_of_stored_rows_alone_brings_no_deleted_ones_back(sql, tmp_path, clause):
    """The bloom index finds keys in base files that logs delete."""
    made = MADE.replace("(", "(type = 'mor', ", 1)
    sql.sql(f"create or replace table t (id bigint, v bigint, w string) {made} location '{tmp_path / 't'}'")
    sql.sql("insert into t select id, id, 'a' from range(100)")
    sql.sql("delete from t where id < 3")
    sql.sql(
        f"merge into t using (select id, 7L as v, 'b' as w from range(2, 4)) s on t.id = s.id when matched then {clause}"
    )
    found = {"update set *": (7, "b"), "update set w = s.w": (3, "b")}.get(clause, (7, "ab"))
    assert sql.sql("select count(*), min(id) from t").collect() == [(97, 3)]
    assert sql.sql("select v, w from t where id = 3").collect() == [found]
    sql.sql("drop table t")


@pytest.mark.parametrize(
    ("in_session", "of_table", "partial"),
    [(None, None, False), ("true", None, True), (None, "true", True), ("false", "true", False)],
)
def test_a_merge_writes_some_columns_where_apache_hudis_setting_says_so(sql, tmp_path, in_session, of_table, partial):
    properties = {"type": "mor", "primaryKey": "id", "preCombineField": "ts", "hoodie.write.table.version": "9"}
    if of_table is not None:
        properties[sql_table.MERGE_PARTIAL] = of_table
    made = f"using hoodie tblproperties ({', '.join(f'{name!r} = {text!r}' for name, text in properties.items())})"
    sql.sql(f"create or replace table t (id bigint, v bigint, w string, ts bigint) {made} location '{tmp_path / 't'}'")
    sql.sql("insert into t select id, id, concat('w', id), 1L from range(100)")
    if in_session is not None:
        sql.conf.set(sql_table.MERGE_PARTIAL, in_session)
    source = "(select id, 7L as v, 2L as ts from range(3, 5)) s"
    try:
        sql.sql(f"merge into t using {source} on t.id = s.id when matched then update set v = s.v, ts = s.ts")
    finally:
        sql.conf.unset(sql_table.MERGE_PARTIAL)
    (log,) = (tmp_path / "t").glob(".*.log.*")
    assert [is_partial(block) for block in scan_blocks(log.read_bytes())] == [partial]
    assert sql.sql("select v, w, ts from t where id between 2 and 4 order by id").collect() == [
        (2, "w2", 1), (7, "w3", 2), (7, "w4", 2),
    ]  # fmt: skip
    sql.sql("drop table t")


KEPT = {  # clauses on rows 0 to 5 without 4, and a source of 3 to 7 -> v of the rows then
    "when matched and s.v % 50 = 0 then delete when matched then update set v = s.v": {0: 0, 1: 1, 2: 2, 3: 30},
    "when matched and s.v > 40 then update set v = s.v": {0: 0, 1: 1, 2: 2, 3: 3, 5: 50},
    "when matched and s.v > 40 then delete when matched then update set v = s.v, p = s.p "
    "when not matched and s.v < 70 then insert (id, v, p) values (s.id, s.v, s.p)": {
        0: 0, 1: 1, 2: 2, 3: 30, 4: 40, 6: 60,
    },
    "when matched then update set v = s.v when not matched and s.v > 60 then insert (id, v, p) values (s.id, s.v, s.p)": {
        0: 0, 1: 1, 2: 2, 3: 30, 5: 50, 7: 70,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_merge_that_the_source_decides_keeps_other_columns(sql, tmp_path, monkeypatch, kind, partitioned):
    brought = []
    monkeypatch.setattr(sql_merge, "collected", lambda df: brought.append(collected(df)) or brought[-1])
    on = "t.id = s.id and t.p = s.p" if partitioned else "t.id = s.id"
    source = "(select id, id * 10 as v, if(id % 2 = 0, 'a', 'b') as p from range(3, 8)) s"
    made = MADE.replace("(", f"(type = {kind!r}, ", 1) + (" partitioned by (p)" if partitioned else "")
    for number, (clauses, rows) in enumerate(KEPT.items()):
        at = f"location '{tmp_path / str(number)}'"
        sql.sql(f"create or replace table t (id bigint, v bigint, w string, p string) {made} {at}")
        sql.sql("insert into t select id, id, concat('w', id), if(id % 2 = 0, 'a', 'b') from range(6)")
        sql.sql("delete from t where id = 4")
        brought.clear()
        sql.sql(f"merge into t using {source} on {on} {clauses}")
        assert len(brought) == 1
        stored = {0, 1, 2, 3, 5}
        assert sql.sql("select id, v, w, p from t order by id").collect() == [
            (n, v, f"w{n}" if n in stored else None, "ab"[n % 2]) for n, v in rows.items()
        ]
    sql.sql("drop table t")


FAILING = {  # clauses -> v of the rows then
    "when matched and s.n <> 0 then update set v = cast(100 / s.n as bigint)": {1: 1, 3: 33},
    "when matched and s.n <> 0 and 100 / s.n > 30 then update set v = s.n": {1: 1, 3: 3},
    "when not matched and s.n <> 0 then insert (id, v) values (s.id, cast(90 / s.n as bigint))": {1: 1, 3: 0, 9: 10},
}


@pytest.mark.parametrize("clauses", FAILING)
def test_a_merge_computes_values_of_the_rows_to_which_a_clause_applies(sql, tmp_path, clauses):
    """Others may be such that they end in an error."""
    ansi = sql.conf.get("spark.sql.ansi.enabled")
    sql.conf.set("spark.sql.ansi.enabled", "true")
    sql.sql(f"create or replace table t (id bigint, v bigint) {MADE} location '{tmp_path / 't'}'")
    sql.sql("insert into t values (1, 1), (3, 0)")
    source = "select id, if(id in (1, 8), 0, id) as n from range(1, 10) where id in (1, 3, 8, 9)"
    sql.sql(f"merge into t using ({source}) s on t.id = s.id {clauses}")
    assert dict(sql.sql("select id, v from t").collect()) == FAILING[clauses]
    sql.conf.set("spark.sql.ansi.enabled", ansi)
    sql.sql("drop table t")


def test_a_merge_by_a_computed_key_takes_each_value_where_it_is(sql, tmp_path):
    sql.sql(f"create or replace table t (id string, v string, w string) {MADE} location '{tmp_path / 't'}'")
    sql.sql("insert into t values ('A', 'a', '1'), ('B', 'b', '2')")
    source = "(select 'a' as id, 'x' as v union all select 'b', 'y') s"
    sql.sql(f"merge into t using {source} on t.id = upper(s.id) when matched then update set v = concat(t.v, s.v)")
    sql.sql(
        f"merge into t using {source} on t.id = upper(s.id) when matched and t.w = '2' then update set w = upper(s.v)"
    )
    assert sql.sql("select * from t order by id").collect() == [("A", "ax", "1"), ("B", "by", "Y")]
    sql.sql("drop table t")


@pytest.mark.parametrize(("on", "clause"), [("t.id = s.id", "p = s.id"), ("t.id = lower(s.id)", "p = upper(s.w)")])
def test_a_row_that_a_merge_moves_keeps_its_other_columns(sql, tmp_path, on, clause):
    at = f"partitioned by (p) location '{tmp_path / 't'}'"
    sql.sql(f"create or replace table t (id string, v bigint, w string, p string) {MADE} {at}")
    sql.sql("insert into t values ('0', 1, 'x', 'a'), ('1', 2, 'y', 'a')")
    sql.sql(
        "create or replace temporary view v as select cast(id as string) as id, cast(id + 7 as string) as w from range(2)"
    )
    sql.sql(f"merge into t using v s on {on} when matched then update set {clause}")
    moved = ("7", "8") if "upper" in clause else ("0", "1")
    assert sql.sql("select * from t order by id").collect() == [("0", 1, "x", moved[0]), ("1", 2, "y", moved[1])]
    sql.sql("drop table t")


@pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has none")
def test_merge_into_by_a_dataframe(sql, df, path):
    given = df.limit(1).selectExpr("id as key", "9 as n", "3L as moment")
    change = given.mergeInto(f"hoodie.`{path}`", F.expr("key = id")).whenMatched()
    change.update({"qty": F.col("n"), "ts": F.col("moment")}).merge()
    assert total(sql, f"hoodie.`{path}`") == 11


@pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has no mergeInto")
@pytest.mark.parametrize("kind", long_but(["cow 6"], ["cow 6", "mor 9"]))
def test_changes_by_methods(sql, kind):
    database = f"methods_{kind.replace(' ', '_')}"
    try:
        assert play(sql, database, *kind.split()) == EXPECTED
        assert two_levels(sql, database) == TWO_LEVELS
        assert refusals(sql, database, "no clause", "no row of the source") == []
    finally:
        sql.sql(f"drop database if exists {database} cascade")


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
        "call show_commits(table => 'nowhere')",
    ],
)
def test_sql_of_other_engines_is_sparks_own_refusal_and_changes_nothing(sql, path, query):
    sql.read.format("hoodie").load(path).createOrReplaceTempView("native")
    with pytest.raises((PySparkException, Py4JJavaError)):
        sql.sql(query)
    assert len(hoodie.open_table(path).timeline.instants) == 1


def test_spark_itself_is_asked_again_after_disable(spark, path):
    pyspark_hoodie.enable(spark)
    assert spark.sql(f"select * from hoodie.`{path}`").count() == 2
    pyspark_hoodie.disable()
    with pytest.raises(PySparkException):
        spark.sql(f"select * from hoodie.`{path}`")


def test_writers_by_name_add_columns_where_an_option_says_so(sql, tmp_path):
    sql.sql(
        "CREATE TABLE wider (id INT, part STRING) USING hoodie PARTITIONED BY (part) "
        f"LOCATION '{tmp_path}/wider' TBLPROPERTIES (primaryKey = 'id')"
    )
    try:
        with pytest.raises(PySparkException, match="too many data columns"):
            sql.sql("SELECT 1 AS id, 'a' AS part, 5 AS n").writeTo("wider").append()
        sql.sql("SELECT 1 AS id, 'a' AS part, 5 AS n").writeTo("wider").option("mergeSchema", "true").append()
        named = sql.sql("SELECT 2 AS id, 'a' AS part, 6 AS n, 'x' AS m").write.mode("append")
        named.option("mergeSchema", "true").saveAsTable("wider")
        replacing = sql.sql("SELECT 3 AS id, 'b' AS part, 7 AS n, 'y' AS m, true AS b").writeTo("wider")
        replacing.option("mergeSchema", "true").overwritePartitions()
        rows = sql.sql("SELECT id, n, m, b, part FROM wider ORDER BY id").collect()
        assert [tuple(row) for row in rows] == [(1, 5, None, None, "a"), (2, 6, "x", None, "a"), (3, 7, "y", True, "b")]
        assert len(hoodie.open_table(tmp_path / "wider").timeline.commits) == 3
    finally:
        sql.sql("DROP TABLE wider")


def test_that_option_lets_tables_be_made_and_replaced(sql):
    try:
        for mode, columns in {"append": ["id", "v"], "overwrite": ["w", "id"], "ignore": ["id"]}.items():
            frame = sql.range(1).selectExpr(*[f"CAST(id AS STRING) AS {name}" for name in columns])
            writer = frame.write.format("hoodie").option("hoodie.datasource.write.recordkey.field", "id")
            writer.option("mergeSchema", "true").mode(mode).saveAsTable("made")
            assert sql.table("made").columns == (columns if mode != "ignore" else ["w", "id"])
    finally:
        sql.sql("DROP TABLE IF EXISTS made")


def test_writers_by_name_take_short_names_of_properties(sql, df):
    short = {"primaryKey": "id", "preCombineField": "ts", "type": "mor"}
    try:
        df.write.format("hoodie").options(**short).partitionBy("part").saveAsTable("short")
        df.withColumn("qty", df.qty + 10).write.mode("append").options(**short).saveAsTable("short")
        assert total(sql, "short") == 23
        (place,) = [row[1] for row in sql.sql("DESCRIBE EXTENDED short").collect() if row[0] == "Location"]
        config = hoodie.open_table(place.removeprefix("file:")).config
        assert (config.table_type.value, config.record_key_fields, config.ordering_fields) == (
            "MERGE_ON_READ",
            ("id",),
            ("ts",),
        )
        for other in ({"primaryKey": "qty"}, {"type": "cow"}, options_of(hoodie_datasource_write_recordkey_field="ts")):
            with pytest.raises(OptionError, match="options contradict table 'short'"):
                df.write.mode("append").options(**other).saveAsTable("short")
        assert total(sql, "short") == 23
    finally:
        sql.sql("DROP TABLE IF EXISTS short")
