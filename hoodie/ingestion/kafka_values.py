"""Values of records as rows: JSON, Avro and text. What cannot be read is set apart.

Values of a round are joined and read by Arrow, or by our vectorised decoder of Avro, and never one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.avro_codec import decode_records
from hoodie.format.avro_schema import AvroType, record_type
from hoodie.ingestion.connect_json import unwrapped
from hoodie.ingestion.formats import (
    inferred_types,
    of_most_lines,
    shown,
    types_of_lines,
    with_types,
)
from hoodie.ingestion.json_reader import json_types, read_json
from hoodie.ingestion.kafka_settings import KafkaSettings
from hoodie.ingestion.registry import Registry
from hoodie.ingestion.salvage import GoodRecords, salvage, with_columns_of, with_known_types
from hoodie.ingestion.source import BadRecord

OFFSET, PARTITION = "_hoodie_kafka_source_offset", "_hoodie_kafka_source_partition"
TIMESTAMP, KEY = "_hoodie_kafka_source_timestamp", "_hoodie_kafka_source_key"
_COLUMNS = (OFFSET, PARTITION, TIMESTAMP, KEY)
TEXT = "value"
"""The column of values that are texts."""
_HEAD = 5
"""Bytes before a value whose schema is in a registry: a zero, and the schema's number."""


class Columns(NamedTuple):
    """What some values have."""

    schema: pa.Schema
    values: int
    number: int = 0
    """Of their schema in a registry."""


class Record(NamedTuple):
    """What is told of a record beside its value."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None


class Reading:
    """How values become rows."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.adds_columns = settings.adds_columns
        self._settings = settings
        self._registry = Registry(settings.registry, settings.registry_user) if settings.registry else None
        self._schema = record_type(settings.schema) if settings.schema is not None else None

    def read(self, values: Sequence[bytes], schema: pa.Schema | None, types: pa.Schema | None = None) -> GoodRecords:
        """`types`: those of the columns of more values than these, as `common_types` gives them."""
        if self._settings.values == "json":
            return _read_json_values(values, schema, types, unwraps=self._settings.unwraps)
        if self._settings.values == "text":
            return salvage(values, _texts)
        if self._registry is None:
            assert self._schema is not None
            return salvage(values, _avro_reader(self._schema, 0, schema))
        return _read_registered(values, self._registry, schema, types)

    def columns(self, values: Sequence[bytes], table_schema: pa.Schema | None) -> Iterator[Columns]:
        """The columns of these values, for `common_types`; none if all values have one schema."""
        if self._settings.values == "json":
            _, joined = _json_lines(values, unwraps=self._settings.unwraps)
            for lines, schema in types_of_lines(joined, json_types(table_schema)):
                yield Columns(schema, lines)
        elif self._settings.values == "avro" and self._registry is not None:
            yield from _registered_columns(values, self._registry, table_schema)

    def common_types(self, columns: Iterable[Columns], table_schema: pa.Schema | None) -> pa.Schema | None:
        """The types for reading all parts, so that their rows are those of one whole."""
        if self._settings.values == "json":
            return of_most_lines(((each.values, each.schema) for each in columns), json_types(table_schema))
        types = None
        for each in sorted(columns, key=lambda each: each.number):
            with suppress(pa.ArrowException):  # records of this schema are bad ones
                parts = [each.schema] if types is None else [types, each.schema]
                types = pa.unify_schemas(parts, promote_options="permissive")
        return types


def rows_of(
    messages: Sequence[Any], reading: Reading, schema: pa.Schema | None
) -> tuple[pa.Table, tuple[BadRecord, ...]]:
    """Rows of messages. One without a value, a tombstone, is none, as with Apache Hudi."""
    messages = [message for message in messages if message.value()]

    def record(number: int) -> Record:
        it = messages[number]
        return Record(it.topic(), it.partition(), it.offset(), it.timestamp()[1], it.key())

    return rows_of_values([message.value() for message in messages], record, reading, schema)


def rows_of_values(
    values: Sequence[bytes],
    record: Callable[[int], Record],
    reading: Reading,
    schema: pa.Schema | None,
    types: pa.Schema | None = None,
) -> tuple[pa.Table, tuple[BadRecord, ...]]:
    """Rows of values that are not empty. `record`: of the value at a position; `types`: as `Reading.read` takes them."""
    salvaged = reading.read(values, columns_of_values(schema), types)
    rows = with_known_types(salvaged.rows)
    if reading.adds_columns:
        rows = _with_columns(rows, [record(number) for number in salvaged.positions.tolist()])
    bad = tuple(_bad(record(number), values[number], reason) for number, reason in salvaged.bad)
    return with_columns_of(rows, schema), bad


def columns_of_values(schema: pa.Schema | None) -> pa.Schema | None:
    """The columns that come from values: all but those with the place of a record."""
    return None if schema is None else pa.schema([each for each in schema if each.name not in _COLUMNS])


def _with_columns(rows: pa.Table, records: Sequence[Record]) -> pa.Table:
    """And of which record each row is."""
    keys = [None if each.key is None else each.key.decode(errors="replace") for each in records]
    columns: dict[str, pa.Array] = {
        OFFSET: pa.array([each.offset for each in records], pa.int64()),
        PARTITION: pa.array([each.partition for each in records], pa.int32()),
        TIMESTAMP: pa.array([each.timestamp_ms for each in records], pa.int64()),
        KEY: pa.array(keys, pa.string()),
    }
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


def _bad(record: Record, value: bytes, reason: str) -> BadRecord:
    where = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
    return BadRecord(where, reason, shown(value))


def _json_lines(values: Sequence[bytes], *, unwraps: bool) -> tuple[Sequence[bytes], bytes]:
    """Each value as a line, and all of them joined."""
    values = [value[_HEAD:] if value[0] == 0 else value for value in values]
    if unwraps:
        values = unwrapped(values)
    joined = b"\n".join(values)
    if joined.count(b"\n") >= len(values) or b"\r" in joined:  # within a text both are escaped: here they are space
        values = [value.replace(b"\n", b" ").replace(b"\r", b" ") for value in values]
        joined = b"\n".join(values)
    return values, joined


def _read_json_values(
    values: Sequence[bytes], schema: pa.Schema | None, types: pa.Schema | None, *, unwraps: bool
) -> GoodRecords:
    lines, joined = _json_lines(values, unwraps=unwraps)
    chosen = inferred_types(joined, schema) if types is None else types
    return salvage(lines, lambda part: with_types(read_json(b"\n".join(part), chosen), schema))


def _texts(values: Sequence[bytes]) -> pa.Table:
    return pa.table({TEXT: pa.array(values, pa.binary()).cast(pa.string())})


def _avro_reader(schema: AvroType, head: int, table_schema: pa.Schema | None) -> Callable[[Sequence[bytes]], pa.Table]:
    def read(values: Sequence[bytes]) -> pa.Table:
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        ends = np.cumsum(lengths)
        return with_types(decode_records(b"".join(values), ends - lengths + head, ends, schema), table_schema)

    return read


def _read_registered(
    values: Sequence[bytes], registry: Registry, table_schema: pa.Schema | None, types: pa.Schema | None
) -> GoodRecords:
    """Rows of the values, each decoded by its own registered schema, those of one schema together."""
    bad: list[tuple[int, str]] = []
    tables, positions = [pa.table({}) if types is None else types.empty_table()], [np.empty(0, np.int64)]
    for number, places, salvaged in _by_schema(values, registry, table_schema, bad):
        try:
            tables = [pa.concat_tables([*tables, salvaged.rows], promote_options="permissive")]
            positions.append(places[salvaged.positions])
        except pa.ArrowException as exc:
            bad += [(int(places[place]), f"schema {number} does not fit: {exc}") for place in salvaged.positions]
    order = np.concatenate(positions)
    return GoodRecords(tables[0].take(np.argsort(order)), np.sort(order), tuple(sorted(bad)))


def _registered_columns(
    values: Sequence[bytes], registry: Registry, table_schema: pa.Schema | None
) -> Iterator[Columns]:
    for number, _, salvaged in _by_schema(values, registry, table_schema, []):
        if salvaged.rows.num_rows:
            yield Columns(salvaged.rows.schema, salvaged.rows.num_rows, number)


def _by_schema(
    values: Sequence[bytes], registry: Registry, table_schema: pa.Schema | None, bad: list[tuple[int, str]]
) -> Iterator[tuple[int, np.ndarray, GoodRecords]]:
    """The number of each schema, the positions of its values, and their rows."""
    numbers = np.array([int.from_bytes(value[1:_HEAD]) if _has_head(value) else -1 for value in values], np.int64)
    for number in np.unique(numbers):
        places = np.flatnonzero(numbers == number)
        try:
            schema = registry.schema(int(number)) if number >= 0 else None
        except CorruptFileError as exc:
            bad += [(int(place), str(exc)) for place in places]
            continue
        if schema is None:
            bad += [(int(place), "it has no number of a schema in front") for place in places]
            continue
        salvaged = salvage([values[place] for place in places.tolist()], _avro_reader(schema, _HEAD, table_schema))
        bad += [(int(places[place]), reason) for place, reason in salvaged.bad]
        yield int(number), places, salvaged


def _has_head(value: bytes) -> bool:
    return len(value) >= _HEAD and value[0] == 0
