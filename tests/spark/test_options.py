"""Options that are not Apache Hudi's, by every door of Spark: honoured where they mean the same, an error otherwise."""

import logging
from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException

import hoodie
import pyspark_hoodie
from hoodie.errors import OptionError
from pyspark_hoodie.dataframe import session_zone
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.small_batch import DriverEngine
from tests.spark.conftest import SPARK, options_of

pytestmark = pytest.mark.spark

OVERWRITE = "spark.sql.sources.partitionOverwriteMode"
ZONE = "spark.sql.session.timeZone"
ROWS = [("k", "a", 1, 1), ("l", "b", 2, 1)]
COLUMNS = "id string, part string, qty int, ts long"
REFUSED = (OptionError, PySparkException)
"""Without `enable` Spark has the error in one of its own."""


@pytest.fixture
def path(door, tmp_path):
    rows = door.createDataFrame(ROWS, COLUMNS)
    rows.write.format("hoodie").options(**options_of()).mode("append").save(str(tmp_path / "t"))
    return str(tmp_path / "t")


@pytest.fixture
def settings(door):
    """Sets a setting of the session; it is as it was afterwards."""
    before = {name: door.conf.get(name) for name in (OVERWRITE, ZONE)}
    yield door.conf.set
    for name, value in before.items():
        door.conf.set(name, value)


def rows_of(path):
    return sorted(hoodie.open_table(path).scan(columns=["id", "qty"]).to_arrow().to_pylist(), key=lambda row: row["id"])


def overwrite(spark, path, **options):
    newer = spark.createDataFrame([("m", "a", 7, 2)], COLUMNS)
    newer.write.format("hoodie").options(**options).mode("overwrite").save(path)
    return [row["id"] for row in rows_of(path)]


def test_an_overwrite_by_partitions_as_spark_calls_it(door, path):
    assert overwrite(door, path, partitionOverwriteMode="dynamic") == ["l", "m"]
    assert overwrite(door, path, partitionOverwriteMode="static") == ["m"]


def test_an_overwrite_by_partitions_as_the_session_says(door, path, settings):
    settings(OVERWRITE, "dynamic")
    if door.read.format("hoodie").load(path).count() and isinstance(door.read, pyspark_hoodie.hook.Remembers):
        assert overwrite(door, path) == ["l", "m"]
        assert overwrite(door, path, partitionOverwriteMode="STATIC") == ["m"]
    else:
        assert overwrite(door, path) == ["m"]  # the session is not seen there, as by Spark's own second API


def test_a_table_without_partitions_is_replaced_as_a_whole(door, tmp_path, settings):
    settings(OVERWRITE, "dynamic")
    target = str(tmp_path / "flat")
    rows = door.createDataFrame(ROWS, COLUMNS)
    flat = {key: value for key, value in options_of().items() if "partition" not in key}
    rows.write.format("hoodie").options(**flat).mode("append").save(target)
    assert overwrite(door, target, partitionOverwriteMode="dynamic") == ["m"]
    rows.limit(0).write.format("hoodie").options(partitionOverwriteMode="dynamic").mode("overwrite").save(target)
    assert rows_of(target) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("replaceWhere", "insert_overwrite"),
        ("overwriteSchema", "make a new table"),
        ("compression", "hoodie.parquet.compression.codec"),
        ("partitionOverwriteMod", "did you mean 'partitionOverwriteMode'"),
        ("fare", "unknown option 'fare'"),
    ],
)
def test_a_write_with_an_option_that_means_nothing_here_changes_nothing(door, path, name, said):
    for mode in ("append", "overwrite"):
        with pytest.raises(REFUSED, match=said.replace("'", ".")):
            door.createDataFrame(ROWS, COLUMNS).write.format("hoodie").option(name, "x").mode(mode).save(path)
    assert len(hoodie.open_table(path).timeline.commits) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("versionAsOf", "as.of.instant", marks=pytest.mark.long),
        ("as.of.instnt", "did you mean .as.of.instant"),
        ("readChangeFeed", "hoodie.datasource.query.incremental.format"),
        pytest.param("pathGlobFilter", "where", marks=pytest.mark.long),
        ("fare", "unknown option .fare"),
    ],
)
def test_a_read_with_an_option_that_means_nothing_here(door, path, name, said):
    with pytest.raises(REFUSED, match=said):
        door.read.format("hoodie").option(name, "1").load(path)
    if SPARK >= (4, 0):
        with pytest.raises(REFUSED, match=said):
            door.sql(f"create or replace temporary view v using hoodie options (path '{path}', `{name}` '1')")
        with pytest.raises(REFUSED, match=said):
            door.readStream.format("hoodie").option(name, "1").load(path)


@pytest.mark.long
def test_a_stream_with_an_option_that_means_nothing_here(door, sink_door, path, tmp_path):
    if SPARK < (4, 0):
        pytest.skip("Spark 3.5 has no streams out of the format")
    rows = door.readStream.format("hoodie").load(path).select("id", "part", "qty", "ts")
    writer = rows.writeStream.format("hoodie").option("checkpointLocation", str(tmp_path / "cp"))
    with pytest.raises(Exception, match="unknown option"):
        writer.queryName("refused").option("fare", "x").trigger(availableNow=True).start(path).awaitTermination(60)
    assert len(hoodie.open_table(path).timeline.commits) == 1
    query = rows.writeStream.format("hoodie").options(**options_of()).queryName("taken")
    query = query.option("checkpointLocation", str(tmp_path / "cp2")).trigger(availableNow=True)
    query.start(str(tmp_path / "copy")).awaitTermination(60)
    assert rows_of(tmp_path / "copy") == rows_of(path)


def test_a_session_that_sets_no_time_zone_has_that_of_its_jvm(spark, settings):
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    spark.conf.unset(ZONE)
    try:
        zones.setDefault(zones.getTimeZone("Asia/Tokyo"))
        engine = SparkEngine(spark)
        assert str(session_zone(spark)) == engine.zone == DriverEngine(engine).zone == "Asia/Tokyo"
    finally:
        zones.setDefault(before)


def test_a_time_to_read_as_of_is_of_the_session(door, path, settings):
    settings(ZONE, "Asia/Tokyo")
    overwrite(door, path)
    first, second = (
        datetime.strptime(i.time, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC) for i in hoodie.open_table(path).timeline
    )
    between = first + (second - first) / 2
    there = between.astimezone(session_zone(door)).replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    read = door.read.format("hoodie")
    assert read.option("timestampAsOf", between.isoformat()).load(path).count() == 2
    if isinstance(read, pyspark_hoodie.hook.Remembers):
        assert door.read.format("hoodie").option("timestampAsOf", there).load(path).count() == 2
    else:
        with pytest.raises(REFUSED, match="has no offset"):
            door.read.format("hoodie").option("timestampAsOf", there).load(path).count()


@pytest.mark.parametrize(
    ("name", "hours"), [("Asia/Tokyo", 9), ("+08:00", 8), ("GMT+8", 8), ("UTC-03:30", -3.5), ("UTC", 0), ("Z", 0)]
)
def test_time_zones_as_a_session_names_them(door, settings, name, hours):
    settings(ZONE, name)
    offset = session_zone(door).utcoffset(datetime(2026, 1, 1))
    assert offset.total_seconds() == hours * 3600


def test_what_is_asked_for_and_not_done_is_said_at_each_write(spark, tmp_path, caplog):
    pyspark_hoodie.enable(spark)
    rows = spark.createDataFrame(ROWS, COLUMNS)
    asking = {"hoodie.metrics.on": "true", "hoodie.clustering.inline": "false"}
    for _ in range(2):
        with caplog.at_level(logging.WARNING, logger="hoodie"):
            rows.write.format("hoodie").options(**options_of(), **asking).mode("append").save(str(tmp_path / "t"))
        (record,) = [r for r in caplog.records if "not done" in r.getMessage()]
        assert "hoodie.metrics.on" in record.getMessage()
        assert "clustering" not in caplog.text
        caplog.clear()
    with pytest.raises(OptionError, match="not supported by this release: validators written in Java"):
        rows.write.format("hoodie").option("hoodie.precommit.validators", "a.B").mode("append").save(
            str(tmp_path / "t")
        )
    with pytest.raises(OptionError, match="unknown option 'fare'"):
        pyspark_hoodie.HoodieTable.for_path(spark, str(tmp_path / "t"), {"fare": "x"})
    pyspark_hoodie.disable()


def test_a_table_is_opened_by_for_path_only(tmp_path):
    for arguments in ((str(tmp_path),), (None, str(tmp_path))):
        with pytest.raises(OptionError, match=r"use pyspark_hoodie.HoodieTable.for_path\(spark, path\)"):
            pyspark_hoodie.HoodieTable(*arguments)
