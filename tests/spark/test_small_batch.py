"""Batches whose rows come to the driver: which ones, in how many jobs, and that they are stored as those which executors stage."""

from contextlib import contextmanager

import pytest
from pyspark.sql import functions as F

import hoodie
from pyspark_hoodie import dataframe
from pyspark_hoodie.small_batch import ARROW_GROWTH, is_small
from tests.spark.conftest import options_of
from tests.spark.jobs import described, few

pytestmark = pytest.mark.spark

MB = 1024 * 1024
STAGED = {"hoodie_python_driver_max_bytes": 0}


def rows_of(path):
    return sorted(hoodie.open_table(str(path)).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def of_a_file(spark, folder):
    few(spark).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


SMALL = {
    "a range": lambda spark, folder: few(spark),
    "a file, filtered and sorted": lambda spark, folder: of_a_file(spark, folder).where("ts > 0").orderBy("id"),
    "a union": lambda spark, folder: few(spark).union(few(spark)),
    "groups": lambda spark, folder: few(spark).groupBy("id", "part", "note").agg(F.max("ts").alias("ts")),
}
NOT_SMALL = {
    "many rows": lambda spark, folder: few(spark, 1_000_000),
    "a join, which may multiply rows": lambda spark, folder: few(spark).join(few(spark).select("id"), "id"),
    "an array's elements as rows": lambda spark, folder: few(spark).withColumn("x", F.explode(F.array("ts", "ts"))),
    "rows made by Python": lambda spark, folder: few(spark).mapInArrow(lambda batches: batches, few(spark).schema),
}


@pytest.mark.parametrize("case", SMALL)
def test_plans_that_can_only_give_few_rows_are_small(spark, tmp_path, case):
    df = SMALL[case](spark, tmp_path / "source")
    assert is_small(df, 64 * MB)
    assert not is_small(df, 64)
    assert not is_small(df, 0)


@pytest.mark.parametrize("case", NOT_SMALL)
def test_other_plans_are_not(spark, tmp_path, case):
    assert not is_small(NOT_SMALL[case](spark, tmp_path), 8 * MB)


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_small_write_is_one_job(spark, tmp_path, operation):
    options = options_of(hoodie_datasource_write_operation=operation)
    path = str(tmp_path / "flights")
    names, result = described(spark, lambda: dataframe.write(few(spark), path, options, "append"))
    assert [name.partition(" 1/")[0] for name in names] == [f"hoodie {operation} flights: read the batch"]
    assert (result.jobs, result.engine, result.inserted) == (1, "embedded", 40)


def test_rows_of_chance_are_evaluated_once(spark, tmp_path):
    df = few(spark).withColumn("note", F.expr("uuid()")).withColumn("id", F.concat("id", "note"))
    path = str(tmp_path / "t")
    assert is_small(df, 64 * MB)
    dataframe.write(df, path, options_of(), "append")
    rows = rows_of(path)
    assert len(rows) == 40
    assert all(row["id"].endswith(row["note"]) for row in rows)


@contextmanager
def in_zone(spark, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_values_of_all_types_are_stored_as_executors_store_them(spark, tmp_path):
    kinds = {
        "moment": "timestamp_seconds(ts)",
        "wall": "cast(timestamp_seconds(ts) as timestamp_ntz)",
        "day": "date'2026-03-01'",
        "amount": "cast(1.5 as decimal(10, 2))",
        "raw": "cast(id as binary)",
        "list": "array(ts, null)",
        "pairs": "map(id, ts)",
        "inner": "named_struct('a', id, 'b', named_struct('c', ts))",
        "nothing": "cast(null as int)",
        "tiny": "cast(1 as float)",
    }
    with in_zone(spark, "America/New_York"):
        df = few(spark).select("*", *[F.expr(text).alias(name) for name, text in kinds.items()])
        for folder, more in (("here", {}), ("staged", STAGED)):
            dataframe.write(df, str(tmp_path / folder), options_of(**more), "append")
    assert rows_of(tmp_path / "here") == rows_of(tmp_path / "staged")
    assert hoodie.open_table(str(tmp_path / "here")).schema.equals(hoodie.open_table(str(tmp_path / "staged")).schema)


@contextmanager
def results_of_at_most(spark, size):
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get("spark.driver.maxResultSize", "1g")
    conf.set("spark.driver.maxResultSize", size)
    try:
        yield
    finally:
        conf.set("spark.driver.maxResultSize", before)


def test_rows_that_are_more_than_expected_are_staged_by_executors(spark, tmp_path):
    """The estimate knows nothing of how long a text is."""
    df = few(spark).withColumn("note", F.repeat(F.col("id"), 20_000))
    path = str(tmp_path / "flights")
    assert is_small(df, ARROW_GROWTH * MB)
    with results_of_at_most(spark, "500k"):
        names, result = described(spark, lambda: dataframe.write(df, path, options_of(), "append"))
    assert result.inserted == 40
    assert len(names) == 2
    assert [len(row["note"]) for row in rows_of(path)] == [20_000 * len(row["id"]) for row in rows_of(path)]


def test_what_is_wrong_with_the_columns_is_said_before_any_job(spark, tmp_path):
    path = str(tmp_path / "t")
    dataframe.write(few(spark), path, options_of(), "append")

    def wrong():
        with pytest.raises(hoodie.KeyFieldError, match="id"):
            dataframe.write(few(spark).drop("id"), path, options_of(), "append")

    assert described(spark, wrong)[0] == []
