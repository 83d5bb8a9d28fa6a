"""Values of Debezium's JSON become what Kafka Connect's schema says, and a table that has them as they are written goes on so."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.ingestion.connect_json import unwrapped
from hoodie.ingestion.connect_types import TYPES, described

MARKER = "__debezium_unavailable_value"


def base64_of(value: bytes) -> str:
    return base64.b64encode(value).decode()


def unscaled(number: int) -> str:
    """As Java's BigInteger gives its bytes."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64_of(number.to_bytes(length, signed=True))


def named(kind: str, name: str, **parameters: str) -> dict[str, Any]:
    more = {"parameters": {each.replace("__", "."): value for each, value in parameters.items()}} if parameters else {}
    return {"type": kind, "optional": True, "name": name, "version": 1, **more}


def decimal(scale: int, precision: int = 12) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect__decimal__precision": str(precision)}
    return named("bytes", "org.apache.kafka.connect.data.Decimal", **parameters)


def time(kind: str, name: str) -> dict[str, Any]:
    return named(kind, f"io.debezium.time.{name}")


def connect(kind: str, name: str) -> dict[str, Any]:
    return named(kind, f"org.apache.kafka.connect.data.{name}")


VARIABLE = {
    **named("struct", "io.debezium.data.VariableScaleDecimal"),
    "fields": [
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    ],
}
SMALL = f"0.{'0' * 59}1"
LATE, OF_NOON = datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 1, 1, 12, 0, 0, 123456, UTC)
UUID = "00000000-0000-0000-0000-00000000000a"


class Case(NamedTuple):
    schema: Mapping[str, Any]
    written: Sequence[Any]
    kind: pa.DataType
    values: Sequence[Any]


MOMENT, IN_UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
NOON = datetime(2024, 1, 1, 12, 0, 0, 123456)
NOON_US = int(NOON.replace(tzinfo=UTC).timestamp()) * 10**6 + 123456
MILLIS = NOON.replace(microsecond=123000)
CASES: Mapping[str, Case] = {
    "numeric": Case(
        decimal(2),
        [unscaled(each) for each in (150, -999999999999, 0, 128, -128)],
        pa.decimal128(38, 2),
        [Decimal(each) for each in ("1.50", "-9999999999.99", "0.00", "1.28", "-1.28")],
    ),
    "money": Case(decimal(0, 38), [unscaled(10**38 - 1)], pa.decimal128(38, 0), [Decimal(10**38 - 1)]),
    "beyond all decimals": Case(decimal(2, 60), [unscaled(150)], pa.string(), [unscaled(150)]),
    "numeric without a scale": Case(
        VARIABLE,
        [{"scale": scale, "value": unscaled(number)} for scale, number in ((3, -1500), (0, 7), (60, 1), (-2, 3))],
        pa.string(),
        ["-1.500", "7", SMALL, "300"],
    ),
    "bytea": Case(
        {"type": "bytes", "optional": True},
        [base64_of(each) for each in (b"\x00\xff", b"", b"abc", b"abcd")],
        pa.binary(),
        [b"\x00\xff", b"", b"abc", b"abcd"],
    ),
    "bit(9)": Case(named("bytes", "io.debezium.data.Bits", length="9"), ["AQE="], pa.binary(), [b"\x01\x01"]),
    "date": Case(time("int32", "Date"), [19782, -1], pa.date32(), [date(2024, 2, 29), date(1969, 12, 31)]),
    "date of Connect": Case(connect("int32", "Date"), [19782], pa.date32(), [date(2024, 2, 29)]),
    "timestamp": Case(time("int64", "MicroTimestamp"), [NOON_US, -1], MOMENT, [NOON, LATE]),
    "timestamp(3)": Case(time("int64", "Timestamp"), [NOON_US // 1000], MOMENT, [MILLIS]),
    "timestamp of Connect": Case(connect("int64", "Timestamp"), [NOON_US // 1000], MOMENT, [MILLIS]),
    "timestamp in nanoseconds": Case(time("int64", "NanoTimestamp"), [NOON_US * 1000, -1000], MOMENT, [NOON, LATE]),
    "timestamptz": Case(
        time("string", "ZonedTimestamp"),
        ["2024-01-01T12:00:00.123456Z", "2024-01-01T12:00:00Z", "2024-01-01T12:00:00.5+02:00"],
        IN_UTC,
        [OF_NOON, OF_NOON.replace(microsecond=0), OF_NOON.replace(hour=10, microsecond=500000)],
    ),
    "time": Case(time("int64", "MicroTime"), [86399999999], pa.int64(), [86399999999]),
    "time of Connect": Case(connect("int32", "Time"), [1000], pa.int64(), [1000]),
    "timetz": Case(time("string", "ZonedTime"), ["12:00:00Z"], pa.string(), ["12:00:00Z"]),
    "interval": Case(time("int64", "MicroDuration"), [5], pa.int64(), [5]),
    "year": Case(time("int32", "Year"), [2024], pa.int64(), [2024]),
    "json": Case(named("string", "io.debezium.data.Json"), ['{"a": 1}'], pa.string(), ['{"a": 1}']),
    "uuid": Case(named("string", "io.debezium.data.Uuid"), [UUID], pa.string(), [UUID]),
    "double": Case({"type": "double", "optional": True}, [0.5, "NaN"], pa.float64(), [0.5, float("nan")]),
}  # fmt: skip


class Log:
    """A folder of events, each with the schema of its row, as Debezium writes them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._count = 0

    def put(self, columns: Mapping[str, Mapping[str, Any]], *rows: Mapping[str, Any], op: str = "u") -> None:
        id_ = {"type": "int64", "optional": False, "field": "id"}
        fields = [id_, *({**schema, "field": name} for name, schema in columns.items())]
        row = {"type": "struct", "fields": fields, "optional": True, "name": "shop.public.t.Value"}
        text = {"type": "string", "optional": False}
        place = {
            "type": "struct",
            "name": "io.debezium.connector.postgresql.Source",
            "fields": [{**text, "field": "name"}],
        }
        schema = {
            "type": "struct",
            "fields": [
                {**part, "field": name}
                for name, part in (("before", row), ("after", row), ("source", place), ("op", text))
            ],
            "optional": False,
            "name": "shop.public.t.Envelope",
            "version": 2,
        }
        with (self.folder / f"{self._count}.json").open("w") as file:
            for one in rows:
                self._count += 1
                source = {"connector": "postgresql", "name": "shop", "ts_ms": 1, "lsn": self._count}
                images = {"before": one if op == "d" else None, "after": None if op == "d" else one}
                payload = {**images, "source": source, "op": op, "ts_ms": 2}
                file.write(json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")) + "\n")

    def into(self, t: str, **more: Any) -> hoodie.IngestResult:
        return hoodie.ingest(self.folder, t, changes="postgres", record_key="id", **more)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


def target() -> str:
    return f"memory://{secrets.token_hex(8)}"


def column(t: str, name: str = "v") -> pa.Array:
    rows = hoodie.open_table(t).scan(["id", name]).to_arrow()
    found: pa.Array = rows.sort_by("id").column(name).combine_chunks()
    return found


def numbered(values: Sequence[Any], first: int = 0) -> Iterator[dict[str, Any]]:
    return ({"id": first + number, "v": value} for number, value in enumerate(values))


@pytest.mark.parametrize("name", CASES)
def test_a_new_column_has_the_type_of_its_schema(log: Log, name: str) -> None:
    case, t = CASES[name], target()
    log.put({"v": case.schema}, *numbered([*case.written, None]))
    log.put({"v": case.schema}, {"id": 99, "v": case.written[0]}, op="d")
    log.put({"v": case.schema}, *numbered(case.written, 100))
    assert log.into(t).bad == 0
    log.put({"v": case.schema}, *numbered(case.written, 200))
    assert log.into(t).bad == 0
    expected = pa.array([*case.values, None, *case.values, *case.values], case.kind)
    assert column(t).type == case.kind
    assert column(t).equals(expected) or str(column(t)) == str(expected)  # NaN is none


@pytest.mark.parametrize("name", CASES)
def test_a_table_that_has_values_as_they_are_written_goes_on_with_them(log: Log, name: str) -> None:
    """As tables have them that were begun before the schemas were read, or without them."""
    case, t = CASES[name], target()
    as_written = pa.array(list(case.written)) if name != "double" else pa.array(list(case.values))
    hoodie.create_table(t, {"id": "int64", "v": as_written.type}, record_key="id").upsert(
        pa.table({"id": range(len(as_written)), "v": as_written})
    )
    log.put({"v": case.schema, "w": case.schema}, *({**one, "w": one["v"]} for one in numbered(case.written, 100)))
    assert log.into(t).bad == 0
    assert str(column(t)) == str(pa.concat_arrays([as_written, as_written]))
    assert column(t, "w").type == case.kind  # new in the table
    assert str(column(t, "w").drop_null()) == str(pa.array(case.values, case.kind))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("numeric", pa.decimal128(14, 4)),
        ("numeric", pa.float64()),
        ("numeric without a scale", pa.decimal128(38, 3)),
        ("timestamp(3)", IN_UTC),
        ("timestamptz", MOMENT),
        ("date", MOMENT),
    ],
)
def test_a_column_that_a_user_declared_has_the_values(log: Log, name: str, kind: pa.DataType) -> None:
    case, t = CASES[name], target()
    few = slice(2)
    hoodie.create_table(t, {"id": "int64", "v": kind}, record_key="id")
    log.put({"v": case.schema}, *numbered(case.written[few]))
    assert log.into(t).bad == 0
    expected = pa.array(case.values[few], case.kind)
    assert column(t).equals(pc.cast(expected, kind))


def test_large_bytes_that_are_not_in_the_log_stay_what_they_were(log: Log) -> None:
    columns = {"raw": {"type": "bytes", "optional": True}, "n": {"type": "int32", "optional": True}}
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        t = target()
        log.put(columns, {"id": 1, "raw": base64_of(b"long"), "n": 1}, op="c")
        log.into(t, table_type=table_type)
        log.put(columns, {"id": 1, "raw": base64_of(MARKER.encode()), "n": 2})
        assert log.into(t).bad == 0
        assert (column(t, "raw").to_pylist(), column(t, "n").to_pylist()) == ([b"long"], [2])
    plain = hoodie.create_table(target(), {"id": "int64"}, record_key="id").uri
    (done,) = log.into(plain).rounds
    assert done.bad == 2


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        (decimal(2), "no Base64!"),
        (decimal(2), ""),
        (decimal(0, 38), unscaled(10**38)),
        (decimal(0, 38), unscaled(2**200)),
        ({"type": "bytes"}, "AAA"),
        (time("int32", "Date"), 2**31),
        (time("int64", "Timestamp"), 2**62),
        (time("int64", "NanoTimestamp"), 1),
        (time("string", "ZonedTimestamp"), "2024-13-01T00:00:00Z"),
        (time("string", "ZonedTimestamp"), "soon"),
    ],
)
def test_a_value_that_its_schema_cannot_mean_is_set_apart(log: Log, schema: Mapping[str, Any], wrong: Any) -> None:
    t = target()
    good = next(case.written[0] for case in CASES.values() if case.schema.get("name") == schema.get("name"))
    log.put({"v": schema}, {"id": 1, "v": good}, {"id": 2, "v": wrong}, {"id": 3, "v": None})
    (done,) = log.into(t).rounds
    assert (done.rows, done.bad) == (2, 1)
    told = json.loads(hoodie.open_table(t)._context.storage.read(str(done.quarantine)))
    assert "is not of the type that the schema in its event says" in told["reason"]
    assert json.loads(told["content"])["v"] == wrong


def test_days_and_moments_that_python_has_not_are_values_and_can_be_told(log: Log) -> None:
    t, infinity = target(), 9223372036825200000
    columns = {"d": time("int32", "Date"), "v": time("int64", "MicroTimestamp"), "z": time("string", "ZonedTimestamp")}
    far = {"d": -735600, "v": infinity, "z": "+294247-01-10T04:00:25.200Z"}
    log.put(columns, {"id": 1, **far}, {"id": None, **far}, {"id": 2, **far, "z": "infinity"})
    log.put(columns, {"id": 3, **far, "z": "-0043-03-15T00:00:00Z"}, {"id": 4, **far, "z": "-infinity"})
    (done,) = log.into(t).rounds
    assert (done.rows, done.bad) == (4, 1)  # the bad one has no key
    assert column(t).cast(pa.int64()).to_pylist() == [infinity] * 4
    assert column(t, "d").cast(pa.int32()).to_pylist() == [-735600] * 4
    assert column(t, "z").cast(pa.int64()).to_pylist() == [infinity, infinity, -63517824000000000, -9223372036832400000]


def test_a_column_whose_schema_changes_keeps_its_type_and_values_that_do_not_fit_are_set_apart(log: Log) -> None:
    rounds = [
        ({"v": decimal(2), "n": decimal(1)}, [{"id": 1, "v": unscaled(150), "n": unscaled(5)}]),
        ({"v": decimal(3)}, [{"id": 2, "v": unscaled(1500)}, {"id": 3, "v": unscaled(1501)}]),
        ({"v": decimal(2), "w": {"type": "bytes"}}, [{"id": 4, "v": unscaled(1), "w": "AA=="}]),
    ]
    one, each_alone = target(), target()
    for columns, rows in rounds:
        log.put(columns, *rows)
        log.into(each_alone)
    assert log.into(one).bad == 1
    for t in (one, each_alone):
        assert column(t).to_pylist() == [Decimal("1.50"), Decimal("1.50"), Decimal("0.01")]
        assert column(t, "n").to_pylist() == [Decimal("0.5"), None, None]
        assert column(t, "w").to_pylist() == [None, None, b"\x00"]


def test_values_as_they_are_written_and_by_a_schema_are_not_mixed(log: Log) -> None:
    """Connect began to write schemas, or ceased to."""
    columns = {"v": time("int64", "MicroTimestamp"), "b": {"type": "bytes"}}
    by_schema, as_written = target(), target()
    log.put(columns, {"id": 1, "v": 1, "b": "AAAA"})
    log.put({}, {"id": 2, "v": 2, "b": "BBBB"}, {"id": 3})
    assert log.into(by_schema).bad == 1
    assert column(by_schema).cast(pa.int64()).to_pylist() == [1, None]
    assert column(by_schema, "b").to_pylist() == [b"\0\0\0", None]
    later = Log(log.folder.parent / "later")
    later.put({}, {"id": 2, "v": 2, "b": "BBBB"}, {"id": 3})
    later.put(columns, {"id": 1, "v": 1, "b": "AAAA"})
    later.into(as_written)
    assert column(as_written).to_pylist() == [1, 2, None]
    assert column(as_written, "b").to_pylist() == ["AAAA", "BBBB", None]


def test_sql_gets_values_as_they_are_written(log: Log) -> None:
    pytest.importorskip("duckdb")
    t = target()
    log.put({"v": time("int64", "MicroTimestamp")}, {"id": 1, "v": NOON_US})
    log.into(t, sql="SELECT * REPLACE (make_timestamp(v) AS v) FROM source")
    assert column(t).to_pylist() == [NOON]


def test_decimals_that_connect_writes_as_numbers_are_numbers(log: Log) -> None:
    t = target()
    log.put({"v": decimal(2)}, {"id": 1, "v": 1.5})
    assert log.into(t).bad == 0
    assert column(t).to_pylist() == [1.5]


@pytest.mark.parametrize(
    "schema",
    [None, 1, {}, {"fields": 1}, {"fields": [1, {"field": "after"}]}, {"fields": [{"field": "after", "fields": [3, {}]}]},
     {"fields": [{"field": "after", "fields": [{"field": "v", "name": ["x"], "type": {}}]}]},
     {"fields": [{"field": "after", "fields": [{**decimal(2), "field": "v", "parameters": None}]}]}],
)  # fmt: skip
def test_a_schema_that_is_none_of_debezium_says_nothing(schema: Any) -> None:
    assert described(schema) == ""
    payload = {"after": {"v": 1}}
    assert json.loads(unwrapped([json.dumps({"schema": schema, "payload": payload}).encode()])[0]) == payload


def test_what_a_schema_says_goes_with_the_payload_however_it_is_spaced() -> None:
    schema = {"fields": [{"field": "after", "fields": [{**decimal(2), "field": "v"}]}]}
    payload = {"after": {"v": "AA=="}}
    for value in ({"schema": schema, "payload": payload}, {"payload": payload, "schema": schema}):
        for separators in ((",", ":"), (", ", ": ")):
            (found,) = unwrapped([json.dumps(value, separators=separators).encode()])
            assert json.loads(found) == {TYPES: '{"v":"decimal:2"}', **payload}
