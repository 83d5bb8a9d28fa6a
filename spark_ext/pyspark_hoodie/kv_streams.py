"""Whose windows a store keeps. Batches of each stream count from 0: those of another one would be taken for batches that came again.

A file of the store says it, `stream-N.json`; the newest counts. They are numbered, and none is replaced: of two streams that come at
the same time, one is the store's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from pyspark.sql import SparkSession

from hoodie.errors import CorruptFileError, OptionError
from hoodie.kv import KeyValueStore
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage

_QUERY_ID = "sql.streaming.queryId"
_FILE = re.compile(r"stream-(\d{8})\.json")
_ASKED_AGAIN = 8
WAIT_S = 300.0
"""For a writer of an earlier attempt, which may be at its end, or have died on another machine without a word."""


class Stream(NamedTuple):
    query: str
    """The id of its query, which its checkpoint keeps."""
    first_window: int
    """Of its batch 0."""


def query_of(spark: SparkSession) -> str | None:
    """The id of the query whose batch this is; None: the session does not say it, as with Spark Connect."""
    with suppress(AttributeError):  # what Spark Connect raises is one
        result: str | None = spark.sparkContext.getLocalProperty(_QUERY_ID)
        return result
    return None


def first_window(store: KeyValueStore, query: str | None, options: Mapping[str, str], *, may_be_new: bool) -> int:
    """The window of the query's batch 0. A store that belongs to nobody is the query's from now on, behind what is there.

    Args:
        may_be_new: and one of another query is, too.

    Raises:
        OptionError: the store belongs to another query.
    """
    if query is None:
        return 0
    storage = open_storage(store.uri, options)
    for _ in range(_ASKED_AGAIN):
        number, stream = _newest(storage)
        if stream is not None and stream.query == query:
            return stream.first_window
        if stream is not None and not may_be_new:
            raise OptionError(
                f"store {store.uri} belongs to another stream, query {stream.query}: this one is {query}, which has a checkpoint of "
                "its own, and its batches would count as repeated ones. Bring the checkpoint of that stream back, name "
                "another store, or let this stream go on with what is there by new_stream=True"
            )
        new = Stream(query, _after_all(store))
        with suppress(FileExistsError):
            storage.create_new(f"stream-{number + 1:08d}.json", json.dumps(new._asdict()).encode())
            return new.first_window
    raise OptionError(f"several streams keep taking over store {store.uri}: stop all but one")


def _newest(storage: Storage) -> tuple[int, Stream | None]:
    numbers = [int(match[1]) for name in storage.names("") if (match := _FILE.fullmatch(name))]
    if not numbers:
        return 0, None
    name = f"stream-{max(numbers):08d}.json"
    content = storage.read(name)
    try:
        fields = json.loads(content)
        return max(numbers), Stream(str(fields["query"]), int(fields["first_window"]))
    except (ValueError, KeyError, TypeError) as exc:
        raise CorruptFileError(
            f"{storage.uri.rstrip('/')}/{name} does not say whose windows the store keeps ({exc}): {content[:80]!r}"
        ) from exc


def _after_all(store: KeyValueStore) -> int:
    """The window after the last one of all buckets."""
    last = -1
    for bucket in range(store.buckets):
        with store.writer(bucket, wait_s=WAIT_S) as writer:
            last = max(last, -1 if writer.last_window is None else writer.last_window)
    return last + 1
