"""A store as a DataFrame, and the values of many keys in one."""

import pytest
from pyspark.sql import functions as F

import hoodie.kv
from hoodie.errors import OptionError, TableNotFoundError
from pyspark_hoodie import kv

pytestmark = pytest.mark.spark


@pytest.fixture
def store(tmp_path):
    made = hoodie.kv.open_store(str(tmp_path / "s"), buckets=3)
    for bucket in range(3):
        with made.writer(bucket) as writer:
            for n in range(0, 200, 2):
                if made.bucket_of(b"k%d" % n) == bucket:
                    writer.put(b"k%d" % n, b"%d" % (n * n))
            writer.end_window(1)
            writer.flush()
    return made


def test_all_rows_of_a_store(spark, store):
    df = kv.read(spark, store.uri)
    assert df.schema.simpleString() == "struct<key:binary,value:binary>"
    rows = {bytes(row.key): bytes(row.value) for row in df.collect()}
    assert rows == {b"k%d" % n: b"%d" % (n * n) for n in range(0, 200, 2)}
    assert df.rdd.getNumPartitions() == 3


def test_the_values_of_many_keys_beside_their_rows(spark, store):
    key = F.when(F.col("id") % 5 != 0, F.concat(F.lit("k"), F.col("id").cast("string")))
    df = spark.range(0, 300, 1, 2).select("id", key.alias("name"), F.array("id").alias("more"))
    found = kv.lookup(df, store.uri, kv.Codec("name"), into="square")
    assert found.columns == ["id", "name", "more", "square"]
    for row in found.withColumn("square", F.col("square").cast("string").cast("int")).collect():
        is_there = row.name is not None and row.id % 2 == 0 and row.id < 200
        assert row.square == (row.id**2 if is_there else None), row
        assert row.more == [row.id]
    assert found.count() == 300
    assert kv.lookup(df.where("id < 0"), store.uri, kv.Codec("name")).collect() == []
    by_rule = kv.lookup(df, store.uri, kv.Codec("name", bucket=F.lit(1)))
    there = {f"k{n}" for n in range(0, 200, 2) if n % 5 and store.bucket_of(b"k%d" % n) == 1}
    assert {row.name for row in by_rule.where("value is not null").collect()} == there


def test_a_store_that_is_not_there_is_not_made_by_who_reads(spark, tmp_path):
    uri = str(tmp_path / "none")
    for read in (lambda: kv.read(spark, uri), lambda: kv.lookup(spark.range(2), uri, kv.Codec("id"))):
        with pytest.raises(TableNotFoundError, match="no key-value store"):
            read()
    assert not (tmp_path / "none").exists()


def test_a_column_is_not_replaced_by_values(spark, store):
    df = spark.createDataFrame([("k2", "v")], "name string, value string")
    with pytest.raises(OptionError, match="column 'value' already"):
        kv.lookup(df, store.uri, kv.Codec("name"))
    assert kv.lookup(df, store.uri, kv.Codec("name"), into="found").first().found == b"4"
