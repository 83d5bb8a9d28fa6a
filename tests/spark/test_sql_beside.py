"""SQL beside others: sessions whose own catalog is another format's, several sessions, and several statements at once."""

import pytest
from pyspark.sql import functions as F

import pyspark_hoodie
from hoodie.errors import OptionError
from pyspark_hoodie import java_code
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
