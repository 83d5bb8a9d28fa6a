"""A running count of words, in a key-value store. Kill it at any moment and start it again: it counts every word once.

    python examples/word_count.py TEXT_FOLDER STORE CHECKPOINT [--once]
    python examples/word_count.py top STORE [WORD ...]

The first line counts the words of the text files that are in TEXT_FOLDER and of those that come, until you stop it; with --once it
ends when it has counted what is there. The second one shows the most frequent words, or the counts of some, while the first one runs
or after it. It needs no Spark.

Put files into TEXT_FOLDER whole, by `mv` from the same disk: Spark takes a file as soon as it sees it.
"""

import sys
from heapq import nlargest

import pyarrow as pa

import hoodie.kv
from hoodie.errors import HoodieError


def count_words(text_folder, store, checkpoint, *, once=False, **how):
    """Run the stream. The checkpoint says which files are counted, and the store how often each word came in them."""
    from pyspark.sql import SparkSession  # here, because who only looks needs no Spark
    from pyspark.sql import functions as F

    from pyspark_hoodie import kv

    spark = SparkSession.builder.appName("word count").getOrCreate()
    lines = spark.readStream.option("maxFilesPerTrigger", 10).text(text_folder)
    words = lines.select(F.explode(F.split("value", r"\s+")).alias("word")).where("word <> ''")

    # Each batch is a window of the store, by its number. Spark may give a batch again: after a kill it does not know how far it came.
    # A bucket that has committed the window does nothing then, and one that has not takes its rows. `flush`: others see each batch.
    write = kv.foreach_batch(store, kv.Codec("word"), add, buckets=4, flush=True, **how)
    stream = words.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    stream = stream.trigger(availableNow=True) if once else stream.trigger(processingTime="1 second")
    stream.start().awaitTermination()


def add(bucket, rows):
    """Add some rows of a batch to the counts of their words. This runs in a worker of Spark that has the bucket for itself.

    Nothing counts before the whole window does, so an attempt that fails half-way leaves nothing behind.
    """
    found = rows.group_by("key").aggregate([([], "count_all")])
    words, new = found["key"].combine_chunks(), found["count_all"].to_pylist()
    old = [number(value) for value in bucket.lookup_many(words).to_pylist()]
    bucket.put_many(words, pa.array([b"%d" % (a + b) for a, b in zip(old, new)], pa.binary()))


def number(value):
    """Of the bytes of a value: digits, which people can read. A word without a value came 0 times."""
    return int(value or b"0")


def top(store, many=20):
    """The most frequent words and their counts, from all rows of the store."""
    state = hoodie.kv.open_store(store, create=False)
    rows = (row for batch in state.scan() for row in zip(batch["key"].to_pylist(), batch["value"].to_pylist()))
    return [(count, word.decode()) for count, word in nlargest(many, ((number(value), key) for key, value in rows))]


def counts_of(store, words):
    """The counts of some words, each by a look-up in its bucket."""
    state = hoodie.kv.open_store(store, create=False)
    keys = [word.encode() for word in words]
    return [(number(state.reader(state.bucket_of(key)).get(key)), key.decode()) for key in keys]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["top", store, *words]:
            try:
                found = counts_of(store, words) if words else top(store)
            except HoodieError as error:  # such as: there is no store yet
                sys.exit(str(error))
            for count, word in found:
                print(f"{count:>10,}  {word}")
        case [text_folder, store, checkpoint]:
            count_words(text_folder, store, checkpoint)
        case [text_folder, store, checkpoint, "--once"]:
            count_words(text_folder, store, checkpoint, once=True)
        case _:
            sys.exit(__doc__)
