"""Values of records as rows: JSON, Avro and text. What cannot be read is set apart.

Values of a round are joined and read by Arrow, or by our vectorised decoder of Avro, and never one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.format.avro_codec import decode_records
from hoodie.format.avro_schema import AvroType, record_type
from hoodie.ingestion.connect_json import unwrapped
from hoodie.ingestion.formats import inferred_types, read_json, shown, with_types
from hoodie.ingestion.kafka_settings import KafkaSettings
from hoodie.ingestion.registry import Registry
from hoodie.ingestion.salvage import Salvaged, salvage, with_columns_of, with_known_types
from hoodie.ingestion.source import BadRecord

OFFSET, PARTITION = "_hoodie_kafka_source_offset", "_hoodie_kafka_source_partition"
TIMESTAMP, KEY = "_hoodie_kafka_source_timestamp", "_hoodie_kafka_source_key"
_COLUMNS = (OFFSET, PARTITION, TIMESTAMP, KEY)
TEXT = "value"
"""The column of values that are texts."""
_HEAD = 5
"""Bytes before a value whose schema is in a registry: a zero, and the schema's number."""


class Reading:
    """How values become rows."""

    def __init__(self, settings: KafkaSettings) -> None:
        self.adds_columns = settings.adds_columns
        self._settings = settings
        self._registry = Registry(settings.registry, settings.registry_user) if settings.registry else None
        self._schema = record_type(settings.schema) if settings.schema is not None else None

    def read(self, values: Sequence[bytes], known: pa.Schema | None) -> Salvaged:
        if self._settings.values == "json":
            return _read_json_values(values, known, unwraps=self._settings.unwraps)
        if self._settings.values == "text":
            return salvage(values, _texts)
        if self._registry is None:
            assert self._schema is not None
            return salvage(values, _avro_reader(self._schema, 0, known))
        return _read_registered(values, self._registry, known)


def rows_of(
    messages: Sequence[Any], reading: Reading, known: pa.Schema | None
) -> tuple[pa.Table, tuple[BadRecord, ...]]:
    """Rows of messages. One without a value, a tombstone, is none, as with Apache Hudi."""
    messages = [message for message in messages if message.value()]
    of_values = None if known is None else pa.schema([each for each in known if each.name not in _COLUMNS])
    found = reading.read([message.value() for message in messages], of_values)
    rows = with_known_types(found.rows)
    if reading.adds_columns:
        rows = _with_columns(rows, [messages[number] for number in found.kept])
    return with_columns_of(rows, known), tuple(_bad(messages[number], reason) for number, reason in found.bad)


def _with_columns(rows: pa.Table, messages: Sequence[Any]) -> pa.Table:
    """And of which record each row is."""
    keys = [None if message.key() is None else message.key().decode(errors="replace") for message in messages]
    times = [message.timestamp()[1] for message in messages]
    columns: dict[str, pa.Array] = {
        OFFSET: pa.array([message.offset() for message in messages], pa.int64()),
        PARTITION: pa.array([message.partition() for message in messages], pa.int32()),
        TIMESTAMP: pa.array(times, pa.int64()),
        KEY: pa.array(keys, pa.string()),
    }
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


def _bad(message: Any, reason: str) -> BadRecord:
    where = f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}"
    return BadRecord(where, reason, shown(message.value()))


def _read_json_values(values: Sequence[bytes], known: pa.Schema | None, *, unwraps: bool) -> Salvaged:
    values = [value[_HEAD:] if value[0] == 0 else value for value in values]
    if unwraps:
        values = unwrapped(values)
    joined = b"\n".join(values)
    if joined.count(b"\n") >= len(values) or b"\r" in joined:  # within a text both are escaped: here they are space
        values = [value.replace(b"\n", b" ").replace(b"\r", b" ") for value in values]
        joined = b"\n".join(values)
    types = inferred_types(joined, known)
    return salvage(values, lambda part: with_types(read_json(b"\n".join(part), types), known))


def _texts(values: Sequence[bytes]) -> pa.Table:
    return pa.table({TEXT: pa.array(values, pa.binary()).cast(pa.string())})


def _avro_reader(schema: AvroType, head: int, known: pa.Schema | None) -> Callable[[Sequence[bytes]], pa.Table]:
    def read(values: Sequence[bytes]) -> pa.Table:
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        ends = np.cumsum(lengths)
        return with_types(decode_records(b"".join(values), ends - lengths + head, ends, schema), known)

    return read


def _read_registered(values: Sequence[bytes], registry: Registry, known: pa.Schema | None) -> Salvaged:
    """Each by its own schema, those of one schema together."""
    numbers = np.array([int.from_bytes(value[1:_HEAD]) if _has_head(value) else -1 for value in values], np.int64)
    bad: list[tuple[int, str]] = []
    tables, kept = [pa.table({})], [np.empty(0, np.int64)]
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
        found = salvage([values[place] for place in places.tolist()], _avro_reader(schema, _HEAD, known))
        bad += [(int(places[place]), reason) for place, reason in found.bad]
        try:
            tables = [pa.concat_tables([*tables, found.rows], promote_options="permissive")]
            kept.append(places[found.kept])
        except pa.ArrowException as exc:
            bad += [(int(places[place]), f"schema {number} does not fit: {exc}") for place in found.kept]
    order = np.concatenate(kept)
    return Salvaged(tables[0].take(np.argsort(order)), np.sort(order), tuple(sorted(bad)))


def _has_head(value: bytes) -> bool:
    return len(value) >= _HEAD and value[0] == 0
