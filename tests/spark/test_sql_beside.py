"""SQL beside others: sessions whose own catalog is another format's, several sessions, and several statements at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import functions as F

import pyspark_hoodie
from hoodie.errors import CommitConflictError, OptionError
from pyspark_hoodie import java_code
from tests.effort import long_but
from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark

OTHER = """package other_format;

public class Catalog extends org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension {}
"""


@pytest.fixture(scope="module")
def other(spark):
    """A class that stands where that of Delta Lake or Apache Iceberg does."""
    java_code._compile_into(java_code._folder_of_classes(spark._jvm), spark._jvm, OTHER)
    return "other_format.Catalog"


@pytest.fixture
def session(enabled, other):
    session = enabled.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", other)
    yield session
    for name in ("default.plain", "hoodie.default.t", "hoodie.default.saved"):
        session.sql(f"drop table if exists {name}")


def rows(session, query):
    return sorted(map(tuple, session.sql(query).collect()))


def test_statements_about_the_catalog_beside(session):
    name = "hoodie.default.t"
    session.sql(f"create table {name} (id int, v string) tblproperties (primaryKey = 'id')")
    session.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    session.sql(
        f"merge into {name} t using (select 2 as id) s on t.id = s.id "
        "when matched then delete when not matched by source then update set v = 'c'"
    )
    assert rows(session, f"select * from {name}") == [(1, "c")]
    assert session.sql(f"call show_commits(table => '{name}')").count() == 2
    session.sql(f"create or replace table {name} using hoodie as select id + 1L as id, v from {name}")
    session.sql(f"alter table {name} add columns (w int)")
    session.range(1).selectExpr("id", "'d' as v", "7 as w").writeTo(name).append()
    session.sql(f"create table plain using parquet as select id, w from {name}")
    assert rows(session, "select * from plain") == rows(session, f"select id, w from {name}") == [(0, 7), (2, None)]
    session.sql("use hoodie.default")
    assert session.table("t").count() == 2
    session.sql("drop table t")
    assert not session.catalog.tableExists(name)
    session.sql("use spark_catalog.default")


def test_names_by_methods_and_paths_beside_another_catalog(session, tmp_path):
    df = session.createDataFrame([("k", "a", 1, 1)], "id string, part string, qty int, ts long")
    df.write.format("hoodie").options(**options_of()).saveAsTable("hoodie.default.saved")
    assert rows(session, "select id, part from hoodie.default.saved") == [("k", "a")]
    df.write.format("hoodie").options(**options_of()).save(str(tmp_path / "t"))
    session.sql(f"update hoodie.`{tmp_path / 't'}` set qty = 9, ts = 2")
    assert session.table(f"hoodie.`{tmp_path / 't'}`").select("qty").collect() == [(9,)]


MADE = {
    "sql": lambda session: session.sql("create table t (id int) using hoodie"),
    "saveAsTable": lambda session: session.range(1).write.saveAsTable("t", format="hoodie"),
    "writeTo": lambda session: session.range(1).writeTo("t").using("hoodie").create(),
    "createTable": lambda session: session.catalog.createTable("t", source="hoodie", schema=session.range(1).schema),
}


@pytest.mark.parametrize("way", MADE)
def test_the_other_catalog_is_not_given_tables_of_ours(session, way):
    with pytest.raises(OptionError, match=r"catalog is other_format\.Catalog.*hoodie\.database\.table"):
        MADE[way](session)
    assert not session.catalog.tableExists("t")


def test_the_catalog_beside_is_gone_after_disable(session):
    session.sql("create table hoodie.default.t as select 1 as v")
    pyspark_hoodie.disable()
    with pytest.raises(Exception, match=r"enable|NOT_FOUND"):
        session.sql("select * from hoodie.default.t")
    pyspark_hoodie.enable(session)
    assert session.table("hoodie.default.t").select(F.sum("v")).collect() == [(1,)]


def test_sessions_of_one_application_know_the_tables_and_have_their_own_names_and_settings(enabled):
    first, second = enabled, enabled.newSession()
    first.sql("create database of_second")
    try:
        first.sql("create table first_one using hoodie as select 1 as v")
        second.sql("use of_second")
        second.sql("set hoodie.spark.sql.insert.into.operation = upsert")
        made = "using hoodie tblproperties (primaryKey = 'id') as select 1 as id, 2 as v"
        second.sql(f"create table t {made}")
        assert rows(second, "select v from default.first_one") == [(1,)]
        assert rows(first, "select v from of_second.t") == [(2,)]
        assert second.catalog.tableExists("t")
        assert not first.catalog.tableExists("t")
        assert not second.catalog.tableExists("first_one")
        second.sql("insert into t values (1, 3)")
        first.sql("insert into of_second.t values (1, 4)")
        assert rows(second, "select id, v from t") == [(1, 3), (1, 4)]
    finally:
        first.sql("drop database of_second cascade")
        first.sql("drop table if exists first_one")


@pytest.fixture
def counted(enabled):
    """Makes a table of ids, counts and ordering values, and gives its folder."""

    def make(table_type):
        enabled.sql(
            f"create table counted using hoodie tblproperties (type = '{table_type}', primaryKey = 'id', orderingFields = 'ts') "
            "as select id, 0 as n, 1 as ts from range(4)"
        )
        return enabled.conf.get("spark.sql.warehouse.dir").removeprefix("file:") + "/counted"

    yield make
    enabled.sql("drop table if exists counted")


MERGE = (
    "merge into counted t using (select id from range({}, {})) s on t.id = s.id "
    "when matched then update set n = n + {}, ts = ts + 1 when not matched then insert (id, n, ts) values (s.id, {}, 1)"
)


@pytest.mark.parametrize("table_type", long_but(["mor"], ["cow", "mor"]))
def test_two_merges_at_once_lose_nothing(enabled, counted, table_type):
    counted(table_type)

    def merge(count):
        try:
            enabled.sql(MERGE.format(2, 4 + count, count, count))
        except CommitConflictError:
            return 0
        return count

    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(merge, (1, 2)))
    found = dict(rows(enabled, "select id, n from counted"))
    assert done > 0
    assert found == {0: 0, 1: 0, 2: done, 3: done, 4: done, **({5: 2} if done >= 2 else {})}


def test_merges_beside_a_compaction(enabled, counted):
    table = pyspark_hoodie.HoodieTable.for_path(enabled, counted("mor"))
    enabled.sql("update counted set n = 1, ts = 2")
    instant = table.schedule_compaction()
    enabled.sql(MERGE.format(0, 2, 10, 0))
    table.run_compaction(instant)
    enabled.sql("delete from counted where id = 3")
    assert rows(enabled, "select id, n from counted") == [(0, 11), (1, 11), (2, 1)]


def test_merges_before_and_after_a_clustering(enabled, counted):
    table = pyspark_hoodie.HoodieTable.for_path(enabled, counted("cow"))
    instant = table.schedule_clustering(["id"])
    with pytest.raises(CommitConflictError, match=r"clustering \d+ is going to move"):
        enabled.sql(MERGE.format(0, 2, 10, 0))
    assert rows(enabled, "select sum(n) from counted") == [(0,)]
    table.run_clustering(instant)
    enabled.sql(MERGE.format(0, 2, 10, 0))
    assert rows(enabled, "select id, n from counted") == [(0, 10), (1, 10), (2, 0), (3, 0)]
