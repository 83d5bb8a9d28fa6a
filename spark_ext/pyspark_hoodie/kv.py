"""State of a stream in a key-value store: the rows of a batch go to the buckets of their keys, each written by one task.

A batch is a window. A bucket that has committed it does nothing when it comes again, whether a task is tried once more, Spark starts
a second attempt, or the whole stream begins anew from its checkpoint: so state counts every batch once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hoodie.kv import BucketWriter, open_store
from pyspark_hoodie.reach import told

KEY, BUCKET = "_hoodie_kv_key", "_hoodie_kv_bucket"
RESULT = "bucket int, rows bigint, committed boolean"

_WAIT_S = 300.0
"""For a writer of an earlier attempt, which may be at its end, or have died on another machine without a word."""

Update = Callable[[BucketWriter, pa.Table], None]
"""Gets the writer of a bucket, and some rows of it, with their keys in the column `key` (binary). Called once or more for a window."""


class BucketWindow(NamedTuple):
    """What became of a window in one bucket."""

    bucket: int
    rows: int
    committed: bool
    """False: the bucket had committed the window before."""


class Codec(NamedTuple):
    """How rows become keys and values: names of columns, or expressions, that are binary or become it by a cast."""

    key: str | Column
    value: str | Column | None = None
    """What `put_rows` puts."""


def put_rows(writer: BucketWriter, rows: pa.Table) -> None:
    """An `Update`: the value of each key is that of its last row."""
    writer.put_many(rows["key"].combine_chunks(), rows["value"].combine_chunks())


def write_window(
    df: DataFrame,
    uri: str,
    codec: Codec,
    window_id: int,
    update: Update = put_rows,
    *,
    storage_options: Mapping[str, str] | None = None,
    **store: Any,
) -> list[BucketWindow]:
    """Write rows into the store, as one window of each bucket that has some of them; on the executors, a task for a bucket.

    Args:
        df: the rows. `update` gets its columns; it should have only those that are needed.
        uri: of the store, which is made where there is none.
        window_id: a number that grows, such as the id of a micro-batch.
        store: arguments of `hoodie.kv.open_store`.

    Raises:
        As the jobs of Spark; nothing of the window counts in a bucket whose task failed.
    """
    options = {**told(df.sparkSession, uri), **(storage_options or {})}
    opened = open_store(uri, storage_options=options, **store)
    key = F.col(codec.key) if isinstance(codec.key, str) else codec.key
    rows = df.withColumn(KEY, key.cast("binary"))
    if codec.value is not None:
        value = F.col(codec.value) if isinstance(codec.value, str) else codec.value
        rows = rows.withColumn("value", value.cast("binary"))
    bucket = F.pmod(F.crc32(KEY), F.lit(opened.buckets)).cast("int")
    places = F.array(*[F.lit(place) for place in _places(opened.buckets)])
    spread = rows.withColumn(BUCKET, bucket).repartition(opened.buckets, F.element_at(places, F.col(BUCKET) + 1))
    store = {name: given for name, given in store.items() if name not in ("buckets", "file_format", "order")}
    run = partial(_run, uri, options, store, window_id, update)
    found = spread.mapInArrow(run, RESULT).collect()
    return sorted(BucketWindow(row.bucket, row.rows, row.committed) for row in found)


def foreach_batch(uri: str, codec: Codec, update: Update = put_rows, **how: Any) -> Callable[[DataFrame, int], None]:
    """For `df.writeStream.foreachBatch`: each batch is a window, as `write_window` writes it.

    Example:
        >>> words.writeStream.foreachBatch(kv.foreach_batch("/data/counts", Codec("word"), count)).start()
    """

    def write(df: DataFrame, batch_id: int) -> None:
        write_window(df, uri, codec, batch_id, update, **how)

    return write


def _run(
    uri: str,
    options: Mapping[str, str],
    how: Mapping[str, Any],
    window_id: int,
    update: Update,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    store = open_store(uri, storage_options=options, **how)
    counts: dict[int, int] = {}
    writers: dict[int, BucketWriter] = {}
    with ExitStack() as stack:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for number in pc.unique(table[BUCKET]).to_pylist():
                rows = table.filter(pc.equal(table[BUCKET], number)).drop_columns([BUCKET])
                if number not in writers:
                    writers[number] = stack.enter_context(store.writer(number, wait_s=_WAIT_S))
                    counts[number] = 0
                counts[number] += rows.num_rows
                last = writers[number].last_window
                if last is None or window_id > last:
                    update(writers[number], _named(rows))
        committed = {number: writer.end_window(window_id) for number, writer in writers.items()}
    if counts:
        yield pa.record_batch(
            [
                pa.array(list(counts), pa.int32()),
                pa.array(list(counts.values()), pa.int64()),
                pa.array([committed[number] for number in counts], pa.bool_()),
            ],
            ["bucket", "rows", "committed"],
        )


def _named(rows: pa.Table) -> pa.Table:
    key = rows[KEY]
    rest = rows.drop_columns([name for name in (KEY, "key") if name in rows.column_names])
    return rest.append_column("key", key)


def _places(buckets: int) -> list[int]:
    """For each bucket a number whose hash, as Spark partitions by it, leads to a partition of its own."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < buckets:
        found.setdefault(_murmur3(number) % buckets, number)
        number += 1
    return [found[bucket] for bucket in range(buckets)]


def _murmur3(number: int, seed: int = 42) -> int:
    """Of a 32-bit integer, signed, as Spark's `hash` gives it."""
    mask = 0xFFFFFFFF

    def turned(value: int, by: int) -> int:
        return ((value << by) | (value >> (32 - by))) & mask

    mixed = turned((number & mask) * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    state = (turned(seed ^ mixed, 13) * 5 + 0xE6546B64) & mask
    state ^= 4
    state = (state ^ (state >> 16)) * 0x85EBCA6B & mask
    state = (state ^ (state >> 13)) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state
