"""Tasks decode records of topics: first the types of their columns, then the records to quarantine, then the rows.

Embedded ingestion has all values of a round at once (`kafka.py`). A task has one batch, so hoodie finds the types that
fit all batches first. Rows and quarantined records are the same either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.ingestion.change_logs import Changes
from hoodie.ingestion.formats import wider
from hoodie.ingestion.kafka_ranges import KEY, OFFSET, PARTITION, TIMESTAMP, TOPIC, VALUE, checked
from hoodie.ingestion.kafka_settings import KafkaSettings
from hoodie.ingestion.kafka_values import Columns, Reading, Record, columns_of_values, rows_of_values
from hoodie.ingestion.source import BadRecord


@dataclass(frozen=True)
class Decoding:
    """How records become rows of a table; tasks have it."""

    settings: KafkaSettings
    schema: pa.Schema | None
    """Types of the rows' columns, as far as they are known."""
    changes: Changes | None = None
    """Values are events of a change log."""
    types: pa.Schema | None = None
    """Of the columns of all values."""

    @property
    def schema_of_values(self) -> pa.Schema | None:
        return self.schema if self.changes is None else self.changes.schema_of_events(self.schema)


class RecordTypes(NamedTuple):
    """What some records are."""

    records: int
    bytes: int
    columns: tuple[Columns, ...]


class RecordCheck(NamedTuple):
    """What becomes of some records."""

    schema: pa.Schema
    """Of the rows."""
    bad: tuple[BadRecord, ...]


def look(decoding: Decoding, number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[RecordTypes]:
    """What the records of a part are."""
    yield together([_looked(decoding, batch) for batch in checked(batches)])


def together(looked: Sequence[RecordTypes]) -> RecordTypes:
    """The sum of all, with columns of one kind once."""
    values: dict[tuple[int, pa.Schema], int] = {}
    for each in looked:
        for columns in each.columns:
            kind = (columns.number, columns.schema)
            values[kind] = values.get(kind, 0) + columns.values
    columns_of_all = tuple(Columns(schema, count, number) for (number, schema), count in values.items())
    return RecordTypes(sum(each.records for each in looked), sum(each.bytes for each in looked), columns_of_all)


def _looked(decoding: Decoding, batch: pa.RecordBatch) -> RecordTypes:
    values = _values(_with_values(batch))
    columns = _reading(decoding).columns(values, columns_of_values(decoding.schema_of_values))
    return RecordTypes(batch.num_rows, sum(map(len, values)), tuple(columns))


def common_types(decoding: Decoding, looked: RecordTypes) -> pa.Schema | None:
    """Types of the columns of all values."""
    return _reading(decoding).common_types(looked.columns, columns_of_values(decoding.schema_of_values))


def check(decoding: Decoding, number: int, batches: Iterator[pa.RecordBatch]) -> Iterator[RecordCheck]:
    """What becomes of the records of a part."""
    decoded = (_decoded(decoding, batch) for batch in checked(batches))
    yield merged([RecordCheck(rows.schema, tuple(bad)) for rows, bad in decoded])


def merged(parts: Sequence[RecordCheck]) -> RecordCheck:
    schema = reduce(wider, dict.fromkeys(each.schema for each in parts), pa.schema([]))
    return RecordCheck(schema, tuple(record for each in parts for record in each.bad))


def rows_of_records(decoding: Decoding, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that can be."""
    for batch in checked(batches):
        yield from _decoded(decoding, batch)[0].to_batches()


def _decoded(decoding: Decoding, batch: pa.RecordBatch) -> tuple[pa.Table, Sequence[BadRecord]]:
    batch = _with_values(batch)

    @cache
    def places() -> list[list[Any]]:
        return [batch.column(name).to_pylist() for name in (TOPIC, PARTITION, OFFSET, TIMESTAMP, KEY)]

    def record(number: int) -> Record:
        return Record(*(each[number] for each in places()))

    reading, schema = _reading(decoding), decoding.schema_of_values
    rows, bad = rows_of_values(_values(batch), record, reading, schema, decoding.types)
    if decoding.changes is None:
        return rows, bad
    rows, bad_events = decoding.changes.rows_of(rows, decoding.schema)
    return rows, (*bad, *bad_events)


def _with_values(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without tombstones."""
    return batch.filter(pc.greater(pc.fill_null(pc.binary_length(batch.column(VALUE)), 0), 0))


def _values(batch: pa.RecordBatch) -> list[bytes]:
    values: list[Any] = batch.column(VALUE).to_pylist()
    return values


def _reading(decoding: Decoding) -> Reading:
    s = decoding.settings
    return _cached_reading(s.values, s.unwraps, s.adds_columns, s.schema, s.registry, s.registry_user)


@lru_cache(maxsize=8)
def _cached_reading(
    values: str, unwraps: bool, adds_columns: bool, schema: str | None, registry: str | None, registry_user: str | None
) -> Reading:
    """One for all tasks of a process: a registry is asked for a schema once."""
    settings = KafkaSettings("", (), values, unwraps=unwraps, adds_columns=adds_columns, schema=schema)
    return Reading(replace(settings, registry=registry, registry_user=registry_user))
