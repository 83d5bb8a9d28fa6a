"""State of a stream in a key-value store: the rows of a batch go to the buckets of their keys, each written by one task.

A batch is a window. A bucket that has committed it does nothing when it comes again, whether a task is tried once more, Spark starts
a second attempt, or the whole stream begins anew from its checkpoint: so state counts every batch once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from hoodie.engine.late_pandas import put_pandas_off
from hoodie.errors import KeyFieldError, OptionError, TableChangedError
from hoodie.kv import BucketReader, BucketWriter, KeyValueStore, open_store
from hoodie.kv.binary import KEYS
from pyspark_hoodie.kv_streams import WAIT_S, first_window, query_of
from pyspark_hoodie.reach import session_options

KEY, BUCKET = "_hoodie_kv_key", "_hoodie_kv_bucket"
RESULT = "bucket int, rows bigint, committed boolean"

Update = Callable[[BucketWriter, pa.Table], None]
"""Gets the writer of a bucket, and some rows of it, with their keys in the column `key` (binary). Called once or more for a window."""


class BucketWindow(NamedTuple):
    """What became of a window in one bucket."""

    bucket: int
    rows: int
    committed: bool
    """False: the bucket had committed the window before."""


class Codec(NamedTuple):
    """How rows become keys and values: names of columns, or expressions. Keys and values are text or binary; `cast` makes them."""

    key: str | Column
    value: str | Column | None = None
    """What `put_rows` puts."""
    bucket: str | Column | None = None
    """The number of a row's bucket, by a rule of yours; all rows of a key have to have the same. None: by the hash of the key, as
    `KeyValueStore.bucket_of` says it."""


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
    flush: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **store: Any,
) -> list[BucketWindow]:
    """Write rows into the store, as one window of each bucket that has some of them; on the executors, a task for a bucket.

    Args:
        df: the rows. `update` gets its columns; it should have only those that are needed.
        uri: of the store, which is made where there is none.
        window_id: a number that grows, such as the id of a micro-batch.
        flush: readers see the window when this returns. Otherwise they see it after the next flush, which is due after many windows.
        store: arguments of `hoodie.kv.open_store`.

    Raises:
        OptionError: the store has other buckets than was said, or keys are neither text nor binary. As the jobs of Spark; nothing of
            the window counts in a bucket whose task failed.
    """
    place = _Place.of(df.sparkSession, uri, storage_options, store)
    return _written(df, place, codec, window_id, update, flush=flush)


def foreach_batch(
    uri: str,
    codec: Codec,
    update: Update = put_rows,
    *,
    flush: bool = False,
    new_stream: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **store: Any,
) -> Callable[[DataFrame, int], None]:
    """For `df.writeStream.foreachBatch`: each batch is a window, as `write_window` writes it.

    A store belongs to the stream that wrote to it first; windows that it had before stay before those of the stream. A stream with a
    new checkpoint is another one: its batches count from 0 again, and would be taken for batches that came again.

    Args:
        new_stream: a stream that the store does not know goes on with it, behind the last window that is there.

    Raises:
        OptionError: (in the batch) the store belongs to another stream.

    Example:
        >>> words.writeStream.foreachBatch(kv.foreach_batch("/data/counts", Codec("word"), count)).start()
    """

    def write(df: DataFrame, batch_id: int) -> None:
        place = _Place.of(df.sparkSession, uri, storage_options, store)
        first = first_window(place.open(), query_of(df.sparkSession), place.options, may_be_new=new_stream)
        _written(df, place, codec, first + batch_id, update, flush=flush, is_stream=True)

    return write


def lookup(
    df: DataFrame,
    uri: str,
    codec: Codec,
    *,
    into: str = "value",
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows with the value of their key in one more column (binary; null where there is none), found on the executors, without a
    shuffle. Data files are looked into, in their state when a task begins.

    Raises:
        TableNotFoundError: there is no store. OptionError: keys are neither text nor binary, or there is a column of that name.
    """
    if into in df.columns:
        raise OptionError(f"there is a column {into!r} already: name another one for the values by into=")
    place = _Place.of(df.sparkSession, uri, storage_options, {"create": False})
    schema = StructType([*df.schema.fields, StructField(into, BinaryType())])
    return _keyed(df, codec, place.buckets).mapInArrow(_Lookup(place, into), schema)


def read(spark: SparkSession, uri: str, *, storage_options: Mapping[str, str] | None = None) -> DataFrame:
    """All rows in data files: columns `key` and `value`, binary; a task for a bucket.

    Raises:
        TableNotFoundError: there is no store.
    """
    place = _Place.of(spark, uri, storage_options, {"create": False})
    numbers = spark.range(0, place.buckets, 1, place.buckets)
    return numbers.mapInArrow(_StoreRead(place), "key binary, value binary")


@dataclass(frozen=True)
class _Place:
    """The store as the driver found it. A task that finds another one must not go by it."""

    uri: str
    options: Mapping[str, str]
    how: Mapping[str, Any]
    buckets: int

    @classmethod
    def of(
        cls, spark: SparkSession, uri: str, storage_options: Mapping[str, str] | None, store: Mapping[str, Any]
    ) -> _Place:
        options = {**session_options(spark, uri), **(storage_options or {})}
        buckets = open_store(uri, storage_options=options, **store).buckets
        how = {name: value for name, value in store.items() if name not in ("buckets", "create")}
        return cls(uri, options, how, buckets)

    def open(self) -> KeyValueStore:
        """Raises: TableNotFoundError, TableChangedError: it was deleted or given other buckets meanwhile."""
        store = open_store(self.uri, storage_options=self.options, create=False, **self.how)
        if store.buckets != self.buckets:
            raise TableChangedError(
                f"store {self.uri} was given {store.buckets} buckets while rows went to {self.buckets}: nothing of this task counts, "
                "run it again"
            )
        return store


@dataclass(frozen=True)
class _Write:
    place: _Place
    window_id: int
    update: Update
    flush: bool
    is_stream: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        put_pandas_off()
        store = self.place.open()
        wait_s = max(WAIT_S, 4 * float(self.place.how.get("heartbeat_s", 0.0)))
        counts: dict[int, int] = {}
        writers: dict[int, BucketWriter] = {}
        with ExitStack() as stack:
            for batch in batches:
                for number, rows in _by_bucket(batch):
                    if number not in writers:
                        writers[number] = stack.enter_context(store.writer(number, wait_s=wait_s))
                        counts[number] = 0
                        self._check(writers[number].last_window, number)
                    counts[number] += rows.num_rows
                    last = writers[number].last_window
                    if last is None or self.window_id > last:
                        self.update(writers[number], _with_key_name(rows))
            committed = {number: writer.end_window(self.window_id) for number, writer in writers.items()}
            if self.flush:
                for writer in writers.values():
                    writer.flush()  # also where an attempt before has committed, and died before it flushed
        if counts:
            yield pa.record_batch(
                [
                    pa.array(list(counts), pa.int32()),
                    pa.array(list(counts.values()), pa.int64()),
                    pa.array([committed[number] for number in counts], pa.bool_()),
                ],
                ["bucket", "rows", "committed"],
            )

    def _check(self, last: int | None, number: int) -> None:
        """A stream gives its last batch again, and none before that."""
        if self.is_stream and last is not None and last > self.window_id:
            raise OptionError(
                f"bucket {number} of store {self.place.uri} stands at window {last}, and the stream gives window {self.window_id}: "
                "its checkpoint is older than the store, or somebody else writes to the store. Nothing of the window counts here. "
                "With new_stream=True a stream with a new checkpoint continues after the windows of the store"
            )


@dataclass(frozen=True)
class _Lookup:
    place: _Place
    into: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        put_pandas_off()
        store = self.place.open()
        readers: dict[int, BucketReader] = {}
        for batch in batches:
            table = pa.Table.from_batches([batch])
            arrays: list[pa.Array] = [pa.nulls(1, pa.binary())]  # for rows whose key is null
            places = np.zeros(len(batch), np.int64)
            keys, numbers = batch[KEY].cast(KEYS), batch[BUCKET]
            for number in np.unique(np.asarray(numbers.drop_null())).tolist():
                if number not in readers:
                    readers[number] = store.reader(number, max_age_s=None)
                mask = pc.fill_null(pc.equal(numbers, number), False)
                values = readers[number].get_many(keys.filter(mask)).cast(pa.binary())
                begins = sum(map(len, arrays))
                places[np.asarray(mask)] = np.arange(begins, begins + len(values))
                arrays.append(values)
            values = pa.concat_arrays(arrays).take(pa.array(places))
            yield from table.drop_columns([KEY, BUCKET]).append_column(self.into, values).to_batches()


@dataclass(frozen=True)
class _StoreRead:
    place: _Place

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        put_pandas_off()
        store = self.place.open()
        for batch in batches:
            for number in np.asarray(batch["id"]).tolist():
                for rows in store.reader(number, max_age_s=None).scan():
                    yield pa.record_batch([column.cast(pa.binary()) for column in rows.columns], ["key", "value"])


def _written(
    df: DataFrame,
    place: _Place,
    codec: Codec,
    window_id: int,
    update: Update,
    *,
    flush: bool,
    is_stream: bool = False,
) -> list[BucketWindow]:
    rows = _keyed(df, codec, place.buckets)
    if codec.value is not None:
        rows = rows.withColumn("value", _binary(df, codec.value, "value"))
    places = F.array(*[F.lit(number) for number in _places(place.buckets)])
    spread = rows.repartition(place.buckets, F.get(places, F.col(BUCKET)))
    result_rows = spread.mapInArrow(_Write(place, window_id, update, flush, is_stream), RESULT).collect()
    return sorted(BucketWindow(row.bucket, row.rows, row.committed) for row in result_rows)


def _keyed(df: DataFrame, codec: Codec, buckets: int) -> DataFrame:
    """With the columns `KEY` and `BUCKET`, both null where a key is."""
    rows = df.withColumn(KEY, _binary(df, codec.key, "key"))
    if codec.bucket is None:
        return rows.withColumn(BUCKET, F.pmod(F.crc32(KEY), F.lit(buckets)).cast("int"))
    number = F.col(codec.bucket) if isinstance(codec.bucket, str) else codec.bucket
    return rows.withColumn(BUCKET, F.when(F.col(KEY).isNotNull(), number.cast("int")))


def _binary(df: DataFrame, column: str | Column, what: str) -> Column:
    """Numbers are refused: whether and how Spark casts them depends on settings of the session, and bytes of keys must not."""
    chosen = F.col(column) if isinstance(column, str) else column
    kind = df.select(chosen).schema.fields[0].dataType
    if not isinstance(kind, BinaryType | StringType):
        raise OptionError(
            f"the {what} of rows is {kind.simpleString()}, neither text nor binary: say how it is written, such as "
            f'Codec({what}=F.col("{df.select(chosen).columns[0]}").cast("string"))'
        )
    return chosen.cast("binary")


def _by_bucket(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Table]]:
    """Raises: KeyFieldError: a key is null, or has no bucket."""
    table = pa.Table.from_batches([batch])
    for name, what, advice in (
        (KEY, "a key that is null", "such rows out"),
        (BUCKET, "no bucket by the rule of the codec", "such rows out, or mend the rule"),
    ):
        if nulls := table[name].null_count:
            raise KeyFieldError(
                f"{nulls} of {len(table)} rows have {what}: filter {advice}. Nothing of this task counts"
            )
    for number in pc.unique(table[BUCKET]).to_pylist():
        yield number, table.filter(pc.equal(table[BUCKET], number)).drop_columns([BUCKET])


def _with_key_name(rows: pa.Table) -> pa.Table:
    key = rows[KEY]
    rest = rows.drop_columns([name for name in (KEY, "key") if name in rows.column_names])
    return rest.append_column("key", key)


def _places(buckets: int) -> list[int]:
    """For each bucket a number whose hash, as Spark partitions by it, leads to a partition of its own."""
    number_of: dict[int, int] = {}
    number = 0
    while len(number_of) < buckets:
        number_of.setdefault(_murmur3(number) % buckets, number)
        number += 1
    return [number_of[bucket] for bucket in range(buckets)]


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
