"""Values of records as rows, each in its place; what cannot be read is set apart, wherever it stands."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hoodie.errors import StorageError
from hoodie.ingestion.connect_json import unwrapped
from hoodie.ingestion.kafka_settings import parse_settings
from hoodie.ingestion.kafka_values import KEY, OFFSET, PARTITION, TIMESTAMP, Reading, rows_of
from hoodie.ingestion.source import BadRecord

pytest.importorskip("confluent_kafka")
from tests.ingestion.schema_registry import schemas_served
from tests.ingestion.stand_in_kafka import Message

APPEND = "hoodie.streamer.source.kafka.append.offsets"
SCHEMA = "hoodie.streamer.source.kafka.value.deserializer.schema"
ONE = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "at", "type": "int"}]}
TWO = {**ONE, "fields": [*ONE["fields"], {"name": "more", "type": ["null", "string"], "default": None}]}  # type: ignore[misc]


def read(
    *values: bytes | None, kind: str = "json", known: pa.Schema | None = None, **options: str
) -> tuple[pa.Table, tuple[BadRecord, ...]]:
    settings = parse_settings("kafka://h:1/t", kind, {name.replace("__", "."): each for name, each in options.items()})
    messages = [Message("t", 3, n, value, b"k%d" % n, n * 1000) for n, value in enumerate(values)]
    return rows_of(messages, Reading(settings), known)


def avro(schema: Any, row: dict[str, Any], head: bytes = b"") -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row)
    return head + out.getvalue()


def test_columns_say_which_record_a_row_is() -> None:
    settings = parse_settings("kafka://h:1/t", None, {APPEND: "true"})
    messages = [Message("t", 3, n, b'{"id": %d}' % n, b"k" if n else None, n * 1000) for n in range(3)]
    messages.insert(1, Message("t", 3, 9, b"x", None, 0))
    rows, bad = rows_of(messages, Reading(settings), None)
    assert rows.select([OFFSET, PARTITION, TIMESTAMP, KEY]).to_pylist()[1:] == [
        {OFFSET: n, PARTITION: 3, TIMESTAMP: n * 1000, KEY: "k"} for n in (1, 2)
    ]
    assert rows.column(KEY).to_pylist()[0] is None
    assert [each.origin for each in bad] == ["topic t, partition 3, offset 9"]
    known = rows.schema
    assert rows_of(messages, Reading(settings), known)[0].schema == known


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("wrong", [b"x", b'{"id": 1}{"id": 2}', b'{"id": "x"}', b"1", b" \n ", b'{"id": 1', b"\xff"])
def test_a_value_that_is_not_one_object_takes_no_other_with_it(wrong: bytes, at: int) -> None:
    values = [b'{"id":\r\n %d}' % n for n in range(4)]
    rows, bad = read(*values[:at], wrong, *values[at:])
    assert rows.to_pylist() == [{"id": n} for n in range(4)]
    assert [each.origin.rpartition(" ")[2] for each in bad] == [str(at)]


def test_values_of_json_may_have_the_number_of_a_schema_in_front() -> None:
    assert read(b'\0\0\0\0\x07{"id": 1}', b'{"id": 2}')[0].to_pylist() == [{"id": 1}, {"id": 2}]


def test_columns_of_which_nothing_is_known_come_with_their_first_value() -> None:
    rows, _ = read(b'{"id": 1, "n": null, "s": {"a": 1, "b": null}, "l": [], "m": [{"c": null}]}')
    assert rows.to_pylist() == [{"id": 1, "s": {"a": 1}}]
    rows, _ = read(b'{"id": 1}', known=pa.schema([("id", pa.int64()), ("n", pa.string())]))
    assert rows.to_pylist() == [{"id": 1, "n": None}]


def test_texts_are_a_column_and_other_bytes_are_set_apart() -> None:
    rows, bad = read(b"a", b"\xff", "ü\n".encode(), kind="text")
    assert rows.to_pylist() == [{"value": "a"}, {"value": "ü\n"}]
    assert [each.origin.rpartition(" ")[2] for each in bad] == ["1"]


@pytest.mark.parametrize("wrong", [b"\xff" * 11, b"\x02", b"\x02\x04\x06"])
def test_values_of_avro_by_a_schema_that_is_given(wrong: bytes) -> None:
    values = [avro(ONE, {"id": n, "at": n}) for n in range(4)]
    rows, bad = read(*values[:2], wrong, *values[2:], kind="avro", **{SCHEMA: json.dumps(ONE)})
    assert rows.to_pylist() == [{"id": n, "at": n} for n in range(4)]
    assert [each.origin.rpartition(" ")[2] for each in bad] == ["2"]


@pytest.fixture
def registry() -> Iterator[tuple[str, list[str]]]:
    told = {
        "/schemas/ids/1": {"schema": json.dumps(ONE)},
        "/schemas/ids/2": {"schema": json.dumps(TWO)},
        "/schemas/ids/3": {"schema": "{}", "schemaType": "PROTOBUF"},
        "/schemas/ids/4": {"schema": '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}'},
    }
    with schemas_served(told) as found:
        yield found


def test_each_value_is_read_by_the_schema_whose_number_it_has(registry: tuple[str, list[str]]) -> None:
    url, asked = registry
    values = [
        avro(TWO, {"id": 1, "at": 1, "more": "x"}, b"\0\0\0\0\2"),
        avro(ONE, {"id": 2, "at": 2}, b"\0\0\0\0\1"),
        avro(ONE, {"id": 3, "at": 3}, b"\0\0\0\0\1"),
        avro(ONE, {"id": 0, "at": 0}, b"\0\0\0\0\3"),
        avro(ONE, {"id": 0, "at": 0}, b"\0\0\0\0\x09"),
        b"\0\0",
        avro(ONE, {"id": 0, "at": 0}),
        b"\0\0\0\0\1\xff",
        b"\0\0\0\0\4\2x",
        avro(TWO, {"id": 4, "at": 4, "more": None}, b"\0\0\0\0\2"),
    ]
    options = {"schema.registry.url": url, "schema.registry.basic.auth.user.info": "me:s3cr3t"}
    rows, bad = read(*values, kind="avro", **options)
    assert [(row["id"], row["more"]) for row in rows.to_pylist()] == [(1, "x"), (2, None), (3, None), (4, None)]
    assert [int(each.origin.rpartition(" ")[2]) for each in bad] == [3, 4, 5, 6, 7, 8]
    reasons = [each.reason for each in bad]
    assert reasons[0].endswith("is not an Avro schema without references to others")
    assert reasons[1].endswith("has no schema 9")
    assert reasons[2] == "it has no number of a schema in front"
    assert sorted(asked)[0] == "/schemas/ids/1 Basic bWU6czNjcjN0"
    known = pa.schema([("id", pa.int64()), ("at", pa.float64()), ("other", pa.string())])
    again = read(*values[:3], kind="avro", known=known, **options)[0]
    assert again.schema.field("at").type == pa.float64()
    assert again.column("other").null_count == 3


def test_a_registry_that_does_not_answer_is_an_error_and_makes_no_record_a_bad_one() -> None:
    with pytest.raises(StorageError, match=r"the schema registry 127\.0\.0\.1 does not answer"):
        read(b"\0\0\0\0\1xx", kind="avro", **{"schema.registry.url": "http://127.0.0.1:1"})


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        (b'{"schema":{"fields":[{"default":1},{"default":"x"}]},"payload":{"id":1}}', {"id": 1}),
        (b' { "payload": {"id": 1}, "schema": {"a": {}} }', {"id": 1}),
        (b'{"schema":{"parameters":{"a":1,"payload":{}}},"payload":{"id":1}}\n', {"id": 1}),
        (b'{"schema":null,"payload":{"a":"{,\\"payload\\":"}}', {"a": '{,"payload":'}),
        (b'{"schema":1,"payload":2,"id":1}', {"schema": 1, "payload": 2, "id": 1}),
        (b'{"id":1,"payload":{}}', {"id": 1, "payload": {}}),
    ],
)
def test_the_payload_of_kafka_connects_json_counts(value: bytes, payload: dict[str, Any]) -> None:
    assert json.loads(unwrapped([value])[0]) == payload


def test_what_is_no_such_json_stays_as_it_is() -> None:
    assert unwrapped([b'{"schema":', b"x"]) == [b'{"schema":', b"x"]
