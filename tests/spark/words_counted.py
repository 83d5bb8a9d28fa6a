"""Words that are counted in a key-value store by Spark, and their counts as they have to be."""

from collections import Counter

import pyarrow as pa

import hoodie.kv

TEXT = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "the",
    "lazy",
    "dog",
    "and",
    "the",
    "dog",
    "does",
    "not",
    "mind",
]


def count(writer, rows):
    """One more for each word."""
    found = rows.group_by("key").aggregate([([], "count_all")])
    keys = found["key"].combine_chunks()
    before = [int(value or b"0") for value in writer.lookup_many(keys).to_pylist()]
    after = [b"%d" % (old + new) for old, new in zip(before, found["count_all"].to_pylist(), strict=True)]
    writer.put_many(keys, pa.array(after, pa.binary()))


def words(spark, numbers):
    return spark.createDataFrame([(TEXT[n % len(TEXT)],) for n in numbers], "word string")


def counts(uri):
    store = hoodie.kv.open_store(str(uri))
    found = {}
    for bucket in range(store.buckets):
        with store.writer(bucket) as writer:
            writer.flush()
        found |= {key.decode(): int(value) for key, value in store.reader(bucket)}
    return found


def expected(*windows):
    return Counter(TEXT[n % len(TEXT)] for numbers in windows for n in numbers)
