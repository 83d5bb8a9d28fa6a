"""Ranges of offsets: each task reads one with its own consumer, as batches of records whose values are bytes.

The driver fixes the end of a range before a task reads it, so a task that reads it again gets the same records. An offset need not
have a record: transactions leave marks, and compaction leaves holes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie import errors
from hoodie.errors import HoodieError, StorageError
from hoodie.ingestion.kafka_consumer import AT_ONCE, POLL_S, consumer_of, is_end, place_of, silence
from hoodie.ingestion.kafka_offsets import Offsets, Partition
from hoodie.ingestion.kafka_settings import KafkaSettings

TOPIC, PARTITION, OFFSET, TIMESTAMP, KEY, VALUE, FAILURE = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "value",
    "failure",
)
_FIELDS: list[pa.Field[Any]] = [
    pa.field(TOPIC, pa.string()),
    pa.field(PARTITION, pa.int32()),
    pa.field(OFFSET, pa.int64()),
    pa.field(TIMESTAMP, pa.int64()),
    pa.field(KEY, pa.binary()),
    pa.field(VALUE, pa.binary()),
    pa.field(FAILURE, pa.binary()),  # an error of ours, instead of a record
]
RAW_SCHEMA = pa.schema(_FIELDS)
MOST_OFFSETS = 200_000
"""Of a range: a retry reads as many again, and cores end at about the same time."""
_RECORD_COSTS_BYTES = 320
"""Reading a record takes a task as long as so many bytes of a file."""

OpenConsumer = Callable[[KafkaSettings], Any]


@dataclass(frozen=True)
class OffsetRange:
    partition: Partition
    begin: int
    end: int
    """The first offset that is not read."""

    @property
    def size_bytes(self) -> int:
        """For the engine, which gives tasks of about the same weight to each core."""
        return (self.end - self.begin) * _RECORD_COSTS_BYTES


def ranges_of(begin: Offsets, ends: Offsets, most: int = MOST_OFFSETS) -> list[OffsetRange]:
    """Those of a partition stand together and ascend: the last record of a key is the last one that is written."""
    return [
        OffsetRange(each, first, min(first + most, ends[each]))
        for each in sorted(ends)
        for first in range(begin[each], ends[each], most)
    ]


def read_range(
    settings: KafkaSettings, offsets: OffsetRange, open_consumer: OpenConsumer = consumer_of
) -> Iterator[pa.RecordBatch]:
    """The records of a range, by `RAW_SCHEMA`. An error of ours is a row at the end: the engine would try the task again."""
    try:
        yield from _records(settings, offsets, open_consumer)
    except HoodieError as error:
        row = {**dict.fromkeys(RAW_SCHEMA.names), FAILURE: _failure(error)}
        yield pa.RecordBatch.from_pylist([row], RAW_SCHEMA)


def _records(settings: KafkaSettings, offsets: OffsetRange, open_consumer: OpenConsumer) -> Iterator[pa.RecordBatch]:
    consumer = open_consumer(settings)
    try:
        consumer.assign([place_of(offsets.partition, offsets.begin)])
        position, silent_since_s = offsets.begin, time.monotonic()
        while position < offsets.end:
            before, records = position, []
            for message in consumer.consume(min(AT_ONCE, offsets.end - position), POLL_S):
                error = message.error()
                if error is None:
                    position = message.offset() + 1
                    if position <= offsets.end:
                        records.append(message)
                elif is_end(error, offsets.partition, settings):
                    position = max(position, message.offset())
            if records:
                yield _batch(offsets.partition, records)
            if position > before:
                silent_since_s = time.monotonic()
            elif time.monotonic() - silent_since_s > settings.timeout_s:
                raise silence(settings)
    finally:
        consumer.close()


def _batch(partition: Partition, messages: Sequence[Any]) -> pa.RecordBatch:
    """The client hands records over one by one."""
    count = len(messages)
    columns: list[pa.Array[Any]] = [
        pa.repeat(pa.scalar(partition.topic, pa.string()), count),
        pa.repeat(pa.scalar(partition.number, pa.int32()), count),
        pa.array([each.offset() for each in messages], pa.int64()),
        pa.array([each.timestamp()[1] for each in messages], pa.int64()),
        pa.array([each.key() for each in messages], pa.binary()),
        pa.array([each.value() for each in messages], pa.binary()),
        pa.nulls(count, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RAW_SCHEMA)


def checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches. Raises the error that reading ended with."""
    for batch in batches:
        if batch.column(FAILURE).null_count < batch.num_rows:
            raise _error_of(batch.column(FAILURE).drop_null()[0].as_py())
        yield batch


def _failure(error: HoodieError) -> bytes:
    return json.dumps([type(error).__name__, str(error)]).encode()


def _error_of(failure: bytes) -> HoodieError:
    name, message = json.loads(failure)
    kind = getattr(errors, name, None)
    return kind(message) if isinstance(kind, type) and issubclass(kind, HoodieError) else StorageError(message)
