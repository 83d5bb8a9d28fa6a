"""Batches that are half written, come again, come from another stream, or cannot be written; and what readers see of them."""

import json
import shutil
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hoodie.kv
from hoodie.errors import CorruptFileError, HoodieError, OptionError, TableChangedError
from pyspark_hoodie.kv import BUCKET, KEY, Codec, _Place, _Write, foreach_batch, write_window
from pyspark_hoodie.kv_streams import first_window
from tests.spark.words_counted import count, counts, expected, words

pytestmark = pytest.mark.spark


def fails_in(bucket_key, flag):
    """`count`, which puts its rows and then fails in the bucket of that key as long as the file is there."""

    def update(writer, rows):
        count(writer, rows)
        if Path(flag).exists() and bucket_key in rows["key"].to_pylist():
            raise RuntimeError("no luck in this bucket")

    return update


def shown(uri):
    """What readers see, without a flush."""
    return {key.decode(): int(value) for key, value in dict(rows_of(uri)).items()}


def rows_of(uri):
    store = hoodie.kv.open_store(str(uri), create=False)
    return [row for bucket in range(store.buckets) for row in store.reader(bucket)]


def test_a_batch_that_half_of_the_buckets_have_is_completed_when_it_comes_again(spark, tmp_path):
    uri, flag = str(tmp_path / "s"), tmp_path / "flag"
    batches = range(40), range(17, 90)
    write = partial(write_window, uri=uri, codec=Codec("word"), update=fails_in(b"the", flag), flush=True)
    write(words(spark, batches[0]), window_id=0, buckets=2)
    flag.touch()
    with pytest.raises(Exception, match="no luck in this bucket"):
        write(words(spark, batches[1]), window_id=1)
    store = hoodie.kv.open_store(uri)
    failing = store.bucket_of(b"the")
    assert {bucket: store.reader(bucket).window for bucket in range(2)} == {failing: 0, 1 - failing: 1}
    flag.unlink()
    again = write(words(spark, batches[1]), window_id=1)
    assert {each.bucket: each.committed for each in again} == {failing: True, 1 - failing: False}
    assert shown(uri) == expected(*batches)


def test_readers_see_a_batch_that_an_attempt_committed_and_did_not_flush(spark, tmp_path):
    uri = str(tmp_path / "s")
    write_window(words(spark, range(40)), uri, Codec("word"), 1, count, buckets=2)
    assert shown(uri) == {}
    done = write_window(words(spark, range(40)), uri, Codec("word"), 1, count, flush=True)
    assert not any(each.committed for each in done)
    assert shown(uri) == expected(range(40))


def stream(spark, source, checkpoint, write):
    started = (
        spark.readStream.text(str(source))
        .select(F.explode(F.split("value", " ")).alias("word"))
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    started.awaitTermination()


def test_a_stream_with_a_new_checkpoint_is_not_taken_for_one_that_comes_again(spark, tmp_path):
    source, store = tmp_path / "in", str(tmp_path / "s")
    source.mkdir()
    (source / "1.txt").write_text("a b a")
    write = partial(foreach_batch, store, Codec("word"), count)
    stream(spark, source, tmp_path / "c1", write(buckets=2))
    (source / "2.txt").write_text("b c")
    with pytest.raises(Exception, match="belongs to another stream"):
        stream(spark, source, tmp_path / "c2", write())
    assert counts(store) == Counter("aab")
    stream(spark, source, tmp_path / "c1", write())
    assert counts(store) == Counter("aabbc")
    for number, text in enumerate(("d a", "a a"), 3):  # again with a checkpoint of its own, and then on with it
        shutil.rmtree(source)
        source.mkdir()
        (source / f"{number}.txt").write_text(text)
        stream(spark, source, tmp_path / "c3", write(new_stream=True))
    assert counts(store) == Counter("aabbcdaaa")
    with pytest.raises(Exception, match="belongs to another stream"):
        stream(spark, source, tmp_path / "c1", write())


def test_a_store_says_whose_windows_it_keeps(tmp_path):
    store = hoodie.kv.open_store(str(tmp_path / "s"), buckets=2)
    assert first_window(store, None, {}, may_be_new=False) == 0
    assert not list((tmp_path / "s").glob("stream*"))
    assert first_window(store, "one", {}, may_be_new=False) == 0
    with store.writer(1) as writer:
        writer.end_window(7)
    assert first_window(store, "one", {}, may_be_new=True) == 0
    with pytest.raises(OptionError, match="query one: this one is two"):
        first_window(store, "two", {}, may_be_new=False)
    assert first_window(store, "two", {}, may_be_new=True) == 8
    assert first_window(store, "two", {}, may_be_new=False) == 8
    store.rebucket(3, window=7)
    filled = hoodie.kv.open_store(str(tmp_path / "filled"), buckets=2)
    filled.import_rows([pa.record_batch([pa.array([b"a"]), pa.array([b"1"], pa.large_binary())], ["key", "value"])], 4)
    assert first_window(filled, "one", {}, may_be_new=False) == 5
    assert first_window(hoodie.kv.open_store(store.uri), "two", {}, may_be_new=False) == 8
    (tmp_path / "s" / "stream-00000003.json").write_text("{}")
    with pytest.raises(CorruptFileError, match="stream-00000003"):
        first_window(store, "two", {}, may_be_new=True)


def test_a_batch_before_the_last_one_is_an_older_checkpoint(spark, tmp_path):
    uri = str(tmp_path / "s")
    write = foreach_batch(uri, Codec("word"), count, buckets=1)
    for batch in (0, 1, 1):
        write(words(spark, range(10)), batch)
    with pytest.raises(Exception, match="stands at window 1, and the stream gives window 0"):
        write(words(spark, range(10)), 0)
    assert counts(uri) == expected(range(10), range(10))


def test_other_buckets_than_the_store_has_are_told_before_anything_runs(spark, tmp_path):
    uri = str(tmp_path / "s")
    hoodie.kv.open_store(uri, buckets=3)
    with pytest.raises(OptionError, match="buckets=3, not 2"):
        foreach_batch(uri, Codec("word"), count, buckets=2)(words(spark, range(5)), 0)


def test_rows_do_not_go_to_buckets_of_before(spark, tmp_path):
    """The store is given others between the driver's look at it and a task."""
    uri = str(tmp_path / "s")
    store = hoodie.kv.open_store(uri, buckets=2)
    place = _Place.of(spark, uri, None, {})
    store.rebucket(4)
    batch = pa.record_batch([pa.array([b"a"]), pa.array([0], pa.int32())], [KEY, BUCKET])
    with pytest.raises(TableChangedError, match="given 4 buckets"):
        list(_Write(place, 1, count, False, False)(iter([batch])))
    shutil.rmtree(uri)
    with pytest.raises(HoodieError, match="no key-value store"):
        place.open()
    assert not Path(uri).exists()


def test_keys_that_are_null_are_told(spark, tmp_path):
    df = spark.createDataFrame([("a",), (None,), (None,)], "word string").coalesce(1)
    with pytest.raises(Exception, match="2 of 2 rows have a key that is null: filter such rows out"):
        write_window(df, str(tmp_path / "s"), Codec("word"), 1, count, buckets=1 + 3)


@pytest.mark.parametrize("codec", [Codec("n"), Codec("word", "n"), Codec("word", "both")])
def test_what_is_no_bytes_is_told_with_what_to_do(spark, tmp_path, codec):
    df = spark.createDataFrame([("a", 1, (1, 2))], "word string, n int, both struct<x int, y int>")
    with pytest.raises(OptionError, match=r"neither text nor binary.*\.cast\(\"string\"\)"):
        write_window(df, str(tmp_path / "s"), codec, 1)


def test_rows_go_to_buckets_by_a_rule_of_the_user(spark, tmp_path):
    uri = str(tmp_path / "s")
    df = spark.range(60).select(
        F.concat(F.lit("k"), F.col("id").cast("string")).alias("key"),
        F.to_json(F.struct("id")).alias("row"),
        (F.col("id") % 3).alias("region"),
    )
    done = write_window(df, uri, Codec("key", "row", "region"), 1, flush=True, buckets=4)
    assert [(each.bucket, each.rows) for each in done] == [(0, 20), (1, 20), (2, 20)]
    store = hoodie.kv.open_store(uri)
    assert json.loads(store.reader(2).get(b"k5")) == {"id": 5}
    wrong = (4, "there is no bucket 4"), (-1, "there is no bucket -1"), (None, "60 of 60 rows have no bucket")
    for number, what in wrong:
        with pytest.raises(Exception, match=what):
            write_window(df.coalesce(1), uri, Codec("key", "row", F.lit(number)), 2)
