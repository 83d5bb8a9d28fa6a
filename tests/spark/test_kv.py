"""State of batches and streams in a key-value store: every batch counts once, whatever is tried again."""

import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import hoodie.kv
from pyspark_hoodie.kv import BUCKET, Codec, _murmur3, _places, foreach_batch, write_window
from tests.spark.words_counted import TEXT, count, counts, expected, words

pytestmark = pytest.mark.spark


def fails_once(folder):
    """`count`, but the first attempt in each bucket puts rows and dies."""

    def update(writer, rows):
        count(writer, rows)
        bucket = rows["key"][0].as_py().hex()
        try:
            os.close(os.open(Path(folder) / f"{bucket}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        raise RuntimeError("this attempt dies")

    return update


def test_a_window_counts_once_in_every_bucket(spark, tmp_path):
    first, second = range(40), range(17, 90)
    done = write_window(words(spark, first), str(tmp_path / "s"), Codec("word"), 1, count, buckets=3)
    assert sum(each.rows for each in done) == 40
    assert all(each.committed for each in done)
    again = write_window(words(spark, first), str(tmp_path / "s"), Codec("word"), 1, count)
    assert [each.bucket for each in again] == [each.bucket for each in done]
    assert not any(each.committed for each in again)
    write_window(words(spark, second), str(tmp_path / "s"), Codec("word"), 2, count)
    assert counts(tmp_path / "s") == expected(first, second)


def test_attempts_that_die_leave_nothing(spark, tmp_path):
    (tmp_path / "died").mkdir()
    write_window(
        words(spark, range(60)), str(tmp_path / "s"), Codec("word"), 1, fails_once(tmp_path / "died"), buckets=2
    )
    assert len(list((tmp_path / "died").iterdir())) == 2
    assert counts(tmp_path / "s") == expected(range(60))


def test_rows_are_put_by_name_or_expression(spark, tmp_path):
    df = spark.range(50).select(F.col("id"), (F.col("id") * 2).cast("string").alias("twice"))
    codec = Codec(F.concat(F.lit("n"), F.col("id").cast("string")), "twice")
    write_window(df, str(tmp_path / "s"), codec, 1, buckets=2)
    store = hoodie.kv.open_store(str(tmp_path / "s"))
    with store.writer(store.bucket_of(b"n7")) as writer:
        assert writer.lookup(b"n7") == b"14"


@pytest.mark.parametrize("buckets", [1, 2, 3, 8, 13])
def test_each_bucket_has_a_partition_of_its_own(spark, buckets):
    for number in (0, 1, -1, 42, 2**31 - 1):
        assert spark.range(1).select(F.hash(F.lit(number))).first()[0] == _murmur3(number)
    places = _places(buckets)
    df = spark.createDataFrame([(bucket, place) for bucket, place in enumerate(places)], f"{BUCKET} int, place int")
    found = df.repartition(buckets, "place").select(F.spark_partition_id().alias("p"), BUCKET).collect()
    assert len({row.p for row in found}) == buckets
    spread = words(spark, range(500)).withColumn("b", F.pmod(F.crc32(F.col("word").cast("binary")), F.lit(buckets)))
    keys = pa.array([row.word.encode() for row in spread.select("word").distinct().collect()], pa.binary())
    by_spark = {row.word.encode(): row.b for row in spread.distinct().collect()}
    ours = hoodie.kv.store.buckets_of(keys, buckets)
    assert dict(zip(keys.to_pylist(), ours.to_pylist(), strict=True)) == by_spark
    assert pc.max(ours).as_py() < buckets


@pytest.mark.long
def test_a_running_count_goes_on_from_its_checkpoint_and_gives_batches_again(spark, tmp_path):
    source, done = tmp_path / "in", []
    source.mkdir()

    def stream(fails_at=None):
        write = foreach_batch(str(tmp_path / "s"), Codec("value"), count, buckets=2)

        def batch(df, number):
            write(df, number)
            done.append(number)
            if number == fails_at:
                raise RuntimeError("the driver dies before the checkpoint knows")

        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))
        started = (
            lines.select(F.explode(F.split("value", " ")).alias("value"))
            .writeStream.foreachBatch(batch)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            started.awaitTermination()
        except Exception:  # noqa: BLE001 - what Spark raises differs between its versions
            assert fails_at is not None

    texts = [" ".join(TEXT[n % len(TEXT)] for n in range(start, start + 20)) for start in range(0, 80, 20)]
    for number, text in enumerate(texts):
        (source / f"{number}.txt").write_text(text)
    stream(fails_at=1)
    stream(fails_at=2)
    stream()
    assert len(done) > len(texts)
    assert counts(tmp_path / "s") == Counter(" ".join(texts).split())
