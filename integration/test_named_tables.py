"""Tables by name in Spark without jars: with `enable`, where the session's catalog is a Hive metastore."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import hoodie
import pyspark_hoodie
from hoodie.errors import OptionError
from hoodie.metastore.interface import connected
from hoodie.options.hive import servers_of
from tests.metastore_tables import Catalog
from tests.servers.hive import HiveMetastore

PREFIX = "hoodie.datasource.hive_sync."


@pytest.fixture(scope="module")
def spark(metastore: HiveMetastore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("warehouse")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": metastore.uri,
        "spark.sql.warehouse.dir": str(folder),
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    pyspark_hoodie.enable(session)
    yield session
    pyspark_hoodie.disable()
    session.stop()


@pytest.fixture(scope="module")
def trips(spark: SparkSession, metastore: HiveMetastore, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a merge-on-read table that a DataFrame writer has registered after its commits, with a log."""
    path = str(tmp_path_factory.mktemp("lake") / "trips")
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        f"{PREFIX}enable": "true",
        f"{PREFIX}metastore.uris": metastore.uri,
        f"{PREFIX}database": "by_name",
    }
    for rows in ([("a", "rome", 1), ("b", "oslo", 1), ("c", "bern", 1)], [("a", "rome", 2)]):
        frame = spark.createDataFrame(rows, "id string, city string, ts long")
        frame.write.format("hoodie").options(**options).mode("append").save(path)
    return path


def rows_of(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def files_of(frame: DataFrame) -> tuple[str, ...]:
    """What its plan scans, but for the numbers that are new each time."""
    text = frame._jdf.queryExecution().sparkPlan().toString()
    return tuple(sorted(re.findall(r"Location: .*?\]|PartitionFilters: .*?\]", re.sub(r"#\d+L?", "", text))))


def by_path(spark: SparkSession, path: str, query: str) -> DataFrame:
    return spark.read.format("hoodie").option("hoodie.datasource.query.type", query).load(path)


NAMES = {"trips": "snapshot", "trips_rt": "snapshot", "trips_ro": "read_optimized"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["true", "city = 'rome'", "ts > 1"])
def test_a_query_by_name_is_the_query_by_path(spark: SparkSession, trips: str, name: str, where: str) -> None:
    expected = by_path(spark, trips, NAMES[name]).where(where).select("id", "city", "ts")
    frames = [
        spark.table(f"by_name.{name}").where(where).select("id", "city", "ts"),
        spark.sql(f"SELECT id, city, ts FROM by_name.{name} WHERE {where}"),
        spark.read.table(f"spark_catalog.by_name.{name}").where(where).select("id", "city", "ts"),
    ]
    assert {files_of(frame) for frame in frames} == {files_of(expected)}
    assert all(rows_of(frame) == rows_of(expected) for frame in frames)


def test_the_columns_are_those_by_path_and_meta_columns_when_they_are_named(spark: SparkSession, trips: str) -> None:
    assert spark.table("by_name.trips_rt").columns == ["id", "ts", "city"]
    assert spark.table("by_name.trips_rt").select("_hoodie_record_key").count() == 3


def test_names_anywhere_in_a_statement(spark: SparkSession, trips: str) -> None:
    found = spark.sql(
        "WITH late AS (SELECT * FROM by_name.trips_rt WHERE ts > 1) "
        "SELECT l.id, o.ts, (SELECT max(ts) FROM by_name.trips) FROM late l JOIN by_name.trips_ro o ON l.id = o.id "
        "WHERE EXISTS (SELECT 1 FROM by_name.trips_rt x WHERE x.id = l.id)"
    )
    assert rows_of(found) == [("a", 1, 2)]
    spark.sql("CREATE OR REPLACE VIEW by_name.late AS SELECT id FROM by_name.trips_rt WHERE ts > 1")
    assert rows_of(spark.sql("SELECT id FROM by_name.late")) == rows_of(spark.table("by_name.late")) == [("a",)]
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW later AS SELECT id FROM by_name.late")
    assert rows_of(spark.sql("SELECT id FROM later")) == [("a",)]
    spark.sql("USE by_name")
    assert spark.sql("SELECT trips_rt.id FROM trips_rt").count() == spark.table("trips_rt").count() == 3
    spark.sql("USE default")


def test_a_query_sees_the_newest_commit_and_never_an_older_state(
    spark: SparkSession, metastore: HiveMetastore, tmp_path: Path
) -> None:
    t = hoodie.create_table(tmp_path / "t", {"id": "int64"}, record_key="id")
    t.upsert({"id": [1]})
    hoodie.hive.register(t, metastore=metastore.uri, database="by_name", table="growing")
    first = t.timeline.commits[0].time
    pinned = spark.table("by_name.growing")
    t.upsert({"id": [2]})
    assert (pinned.count(), spark.table("by_name.growing").count()) == (1, 2)
    assert spark.sql("SELECT * FROM by_name.growing").count() == 2
    assert spark.read.option("as.of.instant", first).table("by_name.growing").count() == 1


def test_rows_are_changed_by_the_name_of_the_table_itself(
    spark: SparkSession, metastore: HiveMetastore, tmp_path: Path
) -> None:
    spark.sql("CREATE TABLE by_name.made (id INT, n INT) USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id')")
    spark.sql("INSERT INTO by_name.made VALUES (1, 1), (2, 2)")
    spark.sql("UPDATE by_name.made SET n = n * 10 WHERE id = 2")
    spark.sql("MERGE INTO by_name.made t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert rows_of(spark.table("by_name.made")) == [(2, 20)]
    spark.sql(
        "CREATE OR REPLACE TABLE by_name.made USING hudi PARTITIONED BY (v) AS SELECT n, 'x' AS v FROM by_name.made"
    )
    assert rows_of(spark.table("by_name.made")) == [(20, "x")]
    place = spark.sql("DESCRIBE DATABASE by_name").where("info_name = 'Location'").first()[1]
    spark.sql("DROP TABLE by_name.made")
    assert not spark.catalog.tableExists("by_name.made")
    assert not list(Path(place.removeprefix("file:")).glob("made*"))


def test_rows_are_not_changed_by_the_name_of_base_files(spark: SparkSession, trips: str) -> None:
    with pytest.raises(OptionError, match="read-optimized side"):
        spark.sql("DELETE FROM by_name.trips_ro WHERE ts = 1")
    assert spark.table("by_name.trips_rt").count() == 3


def test_a_name_that_is_not_there_is_sparks_own_error(spark: SparkSession, trips: str) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("by_name.nothing")
    with pytest.raises(AnalysisException, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELEC 1")


def test_a_table_of_another_format_is_sparks_own(spark: SparkSession, trips: str) -> None:
    spark.sql("CREATE TABLE IF NOT EXISTS by_name.plain USING parquet AS SELECT 1 AS one")
    joined = spark.sql("SELECT one FROM by_name.plain JOIN by_name.trips_rt ON ts = one + 1")
    assert rows_of(joined) == [(1,)]


def test_the_registration_names_the_spark_that_wrote(
    spark: SparkSession, trips: str, metastore: HiveMetastore, catalog_at: Catalog
) -> None:
    assert catalog_at.table("trips_rt").parameters["spark.sql.create.version"] == spark.version


@pytest.fixture
def catalog_at(metastore: HiveMetastore) -> Catalog:
    servers = servers_of(metastore.uri, option="the server")
    return Catalog("by_name", lambda _, *, patience_s: connected(servers, patience_s=patience_s))
