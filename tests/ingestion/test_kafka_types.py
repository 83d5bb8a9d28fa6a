"""Records that tasks decode a batch at a time become the rows that all of them at once become, and the same are set apart."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hoodie.errors import StorageError
from hoodie.ingestion.change_logs import ChangeLog, Changes
from hoodie.ingestion.kafka import KafkaSource
from hoodie.ingestion.kafka_ranges import RAW_SCHEMA, ranges_of, read_range
from hoodie.ingestion.kafka_types import Decoding, check, common_types, look, merged, rows_of_records, together
from hoodie.ingestion.source import NO_BOUNDS, BadRecord, Round

pytest.importorskip("confluent_kafka")
from tests.ingestion.schema_registry import schemas_served
from tests.ingestion.stand_in_kafka import Kafka, Topic

Answer = tuple[list[dict[str, Any]], dict[str, pa.DataType], list[tuple[str, str]]]
KNOWN = pa.schema([("n", pa.float64()), ("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("other", pa.string())])


def at_once(source: KafkaSource, known: pa.Schema | None, changes: Changes | None) -> Answer:
    found = (source if changes is None else ChangeLog(source, changes)).next(None, NO_BOUNDS, known)
    assert isinstance(found, Round)
    return answer(found.rows, found.bad)


def by_parts(kafka: Kafka, source: KafkaSource, known: pa.Schema | None, changes: Changes | None, size: int) -> Answer:
    """As an engine does it: each range is a part, and of one batch."""
    planned = source.planned(None, NO_BOUNDS)
    ranges = ranges_of(planned.begin, source.ends(planned), most=size)
    parts = [list(read_range(source.settings, each, lambda _: kafka)) for each in ranges]
    decoding = Decoding(source.settings, known, changes)

    def stage(fn: Callable[..., Iterator[Any]]) -> list[Any]:
        sent = pickle.dumps(decoding)
        return [value for number, part in enumerate(parts) for value in fn(pickle.loads(sent), number, iter(part))]

    looked = together(stage(look))
    assert looked.records == sum(batch.num_rows for part in parts for batch in part)
    decoding = replace(decoding, types=common_types(decoding, looked))
    schema, bad = merged(stage(check))
    tables = [pa.Table.from_batches([batch]) for part in parts for batch in rows_of_records(decoding, iter(part))]
    rows = pa.concat_tables([schema.empty_table(), *tables], promote_options="permissive")
    assert rows.schema.equals(schema)
    return answer(rows, bad)


def answer(rows: pa.Table, bad: Any) -> Answer:
    names = sorted(rows.column_names)
    kinds = {name: rows.schema.field(name).type for name in names}
    return rows.select(names).to_pylist(), kinds, sorted(map(place_of, bad))


def place_of(record: BadRecord) -> tuple[str, str]:
    return record.origin, record.reason.partition(":")[0] if record.origin != "events" else record.reason


def same(kafka: Kafka, source: KafkaSource, known: pa.Schema | None = None, changes: Changes | None = None) -> Answer:
    expected = at_once(source, known, changes)
    for size in (1, 2, 3, 100):
        rows, kinds, bad = by_parts(kafka, source, known, changes, size)
        assert kinds == expected[1], size
        assert by_id(rows) == by_id(expected[0]), size
        assert bad == expected[2], size
    return expected


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row.get("id") or 0)  # those of one id stay in order


JSON: Mapping[str, list[Any]] = {
    "numbers": [{"id": 1}, {"id": 2, "n": 1}, {"id": 3, "n": 1.5}, {"id": 4, "n": None}],
    "bad ones": [{"id": 1}, b"nonsense", {"id": 2}, {"id": "x", "more": 1}, [1], b'{"id": 3}{"id": 4}', {"id": 5}],
    "nothing but null": [{"id": 1, "n": None, "s": {"a": 1, "b": None}, "l": []}, {"id": 2, "s": {"c": None}}],
    "values that come late": [{"id": 1, "s": {"a": None}, "l": []}, {"id": 2, "s": {"a": "x"}, "l": [{"c": 1}]}],
    "tombstones": [{"id": 1}, None, b"", {"id": 2}],
    "nothing but tombstones": [None, b""],
    "nothing but bad ones": [b"nonsense", b"1"],
    "moments": [{"id": 1, "at": "2026-01-31T12:00:00Z"}, {"id": 2, "at": "2026-01-31T12:00:01Z"}, {"id": 3}],
    "texts": [{"id": 1, "t": "2026-01-31T12:00:00Z"}, {"id": 2, "t": "x\r\n"}, b'{"id": 3,\r\n"t": "y"}'],
    "of one key": [{"id": 1, "n": n} for n in range(6)],
    "most are numbers": [*({"id": n, "v": n} for n in range(5)), {"id": 6, "v": "x"}, {"id": 7, "v": 7}],
}


def put(kafka: Kafka, rows: list[Any]) -> None:
    for number, row in enumerate(rows):
        value = row if row is None or isinstance(row, bytes) else json.dumps(row).encode()
        kafka.topics["t"].put(0, value, key=b"k" if number % 2 else None)


@pytest.mark.parametrize("known", [None, KNOWN], ids=["new", "known"])
@pytest.mark.parametrize("options", [{}, {"source__kafka__append__offsets": "true"}], ids=["plain", "offsets"])
@pytest.mark.parametrize("rows", JSON.values(), ids=JSON)
def test_values_of_json(rows: list[Any], options: dict[str, str], known: pa.Schema | None) -> None:
    kafka = Kafka(t=Topic())
    put(kafka, rows)
    same(kafka, kafka.source(**options), known)


def test_several_partitions_and_texts() -> None:
    kafka = Kafka(t=Topic(3))
    for partition in range(3):
        kafka.topics["t"].put(partition, *(json.dumps({"id": 10 * partition + n}).encode() for n in range(4)))
    same(kafka, kafka.source())
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, b"a", b"\xff", "ü\n".encode(), None)
    assert same(kafka, kafka.source(kind="text"))[0] == [{"value": "a"}, {"value": "ü\n"}]


ONE = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "int"}]}
TWO = {**ONE, "fields": [*ONE["fields"], {"name": "more", "type": ["null", "string"], "default": None}]}  # type: ignore[misc]
OTHER = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}, {"name": "x", "type": "int"}]}


def avro(schema: Any, row: Mapping[str, Any], head: bytes = b"") -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row)  # type: ignore[arg-type]
    return head + out.getvalue()


@pytest.mark.parametrize("known", [None, KNOWN], ids=["new", "known"])
def test_values_of_avro(known: pa.Schema | None) -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, *(avro(ONE, {"id": n, "n": n}) for n in range(4)), b"\xff" * 11)
    options = {"source__kafka__value__deserializer__schema": json.dumps(ONE)}
    same(kafka, kafka.source(kind="avro", **options), known)


@pytest.mark.parametrize("known", [None, KNOWN], ids=["new", "known"])
def test_values_of_avro_by_a_registry(known: pa.Schema | None) -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(
        0,
        avro(TWO, {"id": 1, "n": 1, "more": "x"}, b"\0\0\0\0\2"),
        avro(ONE, {"id": 2, "n": 2}, b"\0\0\0\0\1"),
        b"\0\0",
        avro(OTHER, {"id": "x", "x": 1}, b"\0\0\0\0\3"),
        b"\0\0\0\0\1\xff",
        avro(ONE, {"id": 3, "n": 3}, b"\0\0\0\0\x09"),
        avro(ONE, {"id": 4, "n": 4}, b"\0\0\0\0\1"),
    )
    told = {f"/schemas/ids/{n}": {"schema": json.dumps(each)} for n, each in enumerate((ONE, TWO, OTHER), 1)}
    with schemas_served(told) as (url, asked):
        rows, _, bad = same(kafka, kafka.source(kind="avro", schema__registry__url=url), known)
        assert sum(each.startswith("/schemas/ids/1 ") for each in asked) == 2  # once at once, once in parts
    assert ([row["id"] for row in rows], len(bad)) == ([1, 2, 4], 4)
    gone = kafka.source(kind="avro", schema__registry__url="http://127.0.0.1:1")
    with pytest.raises(StorageError, match="does not answer"):
        by_parts(kafka, gone, known, None, 1)


def event(op: str | None, at: int, after: Any = None, before: Any = None, **more: Any) -> dict[str, Any]:
    source = {"connector": "postgresql", "name": "shop", "ts_ms": at, "schema": "public", "txId": 7, "lsn": at} | more
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": at}


EVENTS = [
    event("r", 1, {"id": 1, "v": "a", "w": None}),
    event("c", 2, {"id": 2, "v": "b", "new": 1.5}),
    event("u", 3, {"id": 1, "v": "c"}, {"id": 1, "v": "a"}),
    event("d", 4, None, {"id": 2, "v": None}),
    None,
    event("t", 5),
    event("d", 6),
    event("c", 7, {"id": 3, "v": "__debezium_unavailable_value"}),
    event(None, 8, {"id": 9}),
    event("d", 9, None, {"id": 1, "v": 5}),  # its type has changed
    event("c", 10, {"id": 4, "v": "d", "new": 2}),
    event("u", 11, {"id": 4, "v": "e", "new": 3}, connector="mysql"),
    b"nonsense",
]


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "with schema"])
@pytest.mark.parametrize("known", [None, pa.schema([("id", pa.int64()), ("v", pa.string())])], ids=["new", "known"])
@pytest.mark.parametrize("changes", [Changes("postgres"), Changes("postgres", flags_deletes=True, fills=True)])
def test_events_of_change_logs(changes: Changes, known: pa.Schema | None, wrapped: bool) -> None:
    kafka = Kafka(t=Topic())
    is_event = [isinstance(each, dict) for each in EVENTS]
    put(kafka, [{"schema": {"a": 1}, "payload": e} if wrapped and is_one else e for e, is_one in zip(EVENTS, is_event)])
    rows, _, bad = same(kafka, kafka.source().unwrapping(), known, changes)
    assert len(rows) >= 5
    assert len(bad) >= 5


TYPED = [
    {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}, "field": "p"},
    {"type": "int32", "name": "io.debezium.time.Date", "field": "d"},
    {"type": "bytes", "field": "raw"},
]
TYPED_ROWS = [
    {"p": "AJY=", "d": None},
    {"p": "AA==", "d": 19782, "raw": "AP8="},
    {"p": None, "d": 1},
    {"p": "?", "raw": ""},
    {"p": "Af8=", "d": 2**40},
]


@pytest.mark.parametrize(
    "known",
    [None, pa.schema([("id", pa.int64()), ("d", pa.int64()), ("p", pa.decimal128(9, 3))])],
    ids=["new", "known"],
)
def test_values_that_a_schema_gives_types(known: pa.Schema | None) -> None:
    kafka, schema = Kafka(t=Topic()), {"fields": [{"field": "after", "fields": TYPED}]}
    events = [event("c", number, {"id": number, **row}) for number, row in enumerate(TYPED_ROWS, 1)]
    put(kafka, [{"schema": schema, "payload": each} for each in events])
    rows, kinds, bad = same(kafka, kafka.source().unwrapping(), known, Changes("postgres"))
    is_number = known is not None  # the table has numbers as they are written
    assert kinds["d"] == (pa.int64() if is_number else pa.date32())
    assert kinds["p"] == (pa.decimal128(9, 3) if is_number else pa.decimal128(38, 2))
    assert [row["id"] for row in by_id(rows)] == ([1, 2, 3, 5] if is_number else [1, 2, 3])
    assert len(bad) == (1 if is_number else 2)
    assert "raw" in kinds


def test_an_error_of_reading_is_raised_by_whoever_uses_the_records() -> None:
    settings = Kafka(t=Topic()).source().settings
    failed = {**dict.fromkeys(RAW_SCHEMA.names), "failure": b'["StorageError", "gone"]'}
    batch = pa.RecordBatch.from_pylist([failed], RAW_SCHEMA)
    decoding = Decoding(settings, None)
    for found in (look(decoding, 0, iter([batch])), check(decoding, 0, iter([batch]))):
        with pytest.raises(StorageError, match="gone"):
            list(found)
    with pytest.raises(StorageError, match="gone"):
        list(rows_of_records(decoding, iter([batch])))
