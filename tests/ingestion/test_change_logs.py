"""Change logs of Debezium and of AWS DMS: the table is what the database was, whatever comes late, twice or half."""

from __future__ import annotations

import base64
import io
import json
import secrets
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import OptionError
from hoodie.ingestion.source import Bounds, Checkpoint, Round

Row = Mapping[str, Any]


def target() -> str:
    return f"memory://{secrets.token_hex(8)}"


def event(op: str | None, at: int, after: Row | None = None, before: Row | None = None, **more: Any) -> dict[str, Any]:
    """Of PostgreSQL."""
    place = {"schema": "public", "table": "trips", "txId": 7, "lsn": at, "xmin": None}
    source = {"connector": "postgresql", "name": "shop", "ts_ms": 1000 + at, **place} | more
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 2000 + at, "transaction": None}


def of_mysql(op: str, file: str, pos: int, after: Row | None = None, before: Row | None = None) -> dict[str, Any]:
    source = {"connector": "mysql", "name": "shop", "ts_ms": 1, "db": "d", "file": file, "pos": pos, "row": 0}
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 2}


class Landing:
    """A folder of files of events."""

    def __init__(self, folder: Path, *, with_schema: bool = False) -> None:
        self.folder, self.with_schema, self.count = folder, with_schema, 0

    def put(self, *events: Mapping[str, Any] | None) -> None:
        schema = {"type": "struct", "fields": [{"field": "a", "default": 0}, {"field": "b", "default": "x"}]}
        lines = [
            json.dumps({"schema": schema, "payload": each} if self.with_schema else each, separators=(",", ":"))
            for each in events
        ]
        self.count += 1
        (self.folder / f"{self.count}.json").write_text("".join(line + "\n" for line in lines))


@pytest.fixture(params=[False, True], ids=["plain", "with schema"])
def landing(request: pytest.FixtureRequest, tmp_path: Path) -> Landing:
    (tmp_path / "landing").mkdir()
    return Landing(tmp_path / "landing", with_schema=request.param)


@pytest.fixture
def plain(tmp_path: Path) -> Landing:
    (tmp_path / "landing").mkdir()
    return Landing(tmp_path / "landing")


def rows(t: str, *names: str) -> list[tuple[Any, ...]]:
    found = hoodie.open_table(t).scan(list(names)).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_table_is_what_postgres_was(landing: Landing, version: str, table_type: str) -> None:
    t = target()
    created = {"record_key": "id", "table_type": table_type, "options": {"hoodie.write.table.version": version}}
    landing.put(*(event("r", 10, {"id": n, "v": "a", "w": None}) for n in range(4)))
    done = hoodie.ingest(landing.folder, t, changes="postgres", **created)
    assert (done.rows, done.bad) == (4, 0)
    landing.put(
        event("u", 20, {"id": 0, "v": "b"}, {"id": 0, "v": "a"}),
        event("d", 21, None, {"id": 1, "v": None}),
        event("c", 22, {"id": 5, "v": "c"}),
        event("d", 23, None, {"id": 2, "v": "a"}),  # the key 2 becomes 6
        event("c", 23, {"id": 6, "v": "a"}),
        event("u", 24, {"id": 5, "v": "d", "new": 1.5}),
        event("d", 25, None, {"id": 5, "v": "d"}),
        event("c", 26, {"id": 5, "v": "e", "new": 2.5}),
    )
    assert hoodie.ingest(landing.folder, t, changes="postgres").bad == 0
    assert rows(t, "id", "v", "new") == [(0, "b", None), (3, "a", None), (5, "e", 2.5), (6, "a", None)]
    landing.put(event("u", 15, {"id": 0, "v": "late"}), event("u", 26, {"id": 3, "v": "x"}))
    hoodie.ingest(landing.folder, t, changes="postgres")
    assert rows(t, "id", "v", "_event_lsn") == [(0, "b", 20), (3, "x", 26), (5, "e", 26), (6, "a", 23)]
    one = hoodie.open_table(t).scan(where="id = 0").to_arrow().to_pylist()[0]
    assert one["_change_operation_type"] == "u"
    assert (one["_upstream_event_processed_ts_ms"], one["_event_origin_ts_ms"], one["_event_tx_id"]) == (2020, 1020, 7)
    assert (one["db_shard_source_partition"], one["db_schema_source_partition"]) == ("shop", "public")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_table_is_what_mysql_was(landing: Landing, version: str) -> None:
    t = target()
    landing.put(*(of_mysql("r", "mysql-bin.000009", 150, {"id": n, "v": "a"}) for n in range(3)))
    options = {"hoodie.write.table.version": version}
    hoodie.ingest(landing.folder, t, changes="mysql", record_key="id", options=options)
    landing.put(
        of_mysql("u", "mysql-bin.000010", 90, {"id": 0, "v": "b"}, {"id": 0, "v": "a"}),
        of_mysql("u", "mysql-bin.000009", 900, {"id": 0, "v": "late"}, {"id": 0, "v": "a"}),
        of_mysql("d", "mysql-bin.000010", 95, None, {"id": 1, "v": "a"}),
    )
    assert hoodie.ingest(landing.folder, t, changes="mysql").bad == 0
    assert rows(t, "id", "v", "_event_seq") == [(0, "b", "000010.90"), (2, "a", "000009.150")]


def test_a_table_that_was_made_without_changes_takes_deletes_too(plain: Landing) -> None:
    t = hoodie.create_table(target(), {"id": "int64", "v": "string"}, record_key="id")
    plain.put(event("c", 1, {"id": 1, "v": "a"}), event("c", 2, {"id": 2, "v": "a"}))
    hoodie.ingest(plain.folder, t, changes="postgres")
    plain.put(event("d", 3, None, {"id": 1}), event("u", 4, {"id": 2, "v": "__debezium_unavailable_value"}))
    assert hoodie.ingest(plain.folder, t, changes="postgres").bad == 1
    assert rows(t.uri, "id", "v") == [(2, "a")]
    plain.put(event("c", 5, {"id": 3, "v": "a"}), event("d", 6, None, {"id": 3}), event("c", 7, {"id": 3, "v": "b"}))
    assert hoodie.ingest(plain.folder, t, changes="postgres").bad == 0
    assert rows(t.uri, "id", "v") == [(2, "a"), (3, "b")]  # nothing orders its rows but the log


def test_a_value_that_is_not_in_the_log_stays_what_it_was(plain: Landing) -> None:
    t = target()
    plain.put(event("c", 1, {"id": 1, "v": "long", "n": 1}))
    hoodie.ingest(plain.folder, t, changes="postgres", record_key="id")
    plain.put(event("u", 2, {"id": 1, "v": "__debezium_unavailable_value", "n": 2}))
    assert hoodie.ingest(plain.folder, t, changes="postgres").bad == 0
    assert rows(t, "id", "v", "n") == [(1, "long", 2)]


MARKER = "__debezium_unavailable_value"
FORMS: Mapping[str, Any] = {
    "text": MARKER,
    "bytes": base64.b64encode(MARKER.encode()).decode(),
    "hstore": json.dumps({MARKER: MARKER}, separators=(",", ":")),
    "texts": [MARKER],
    "numbers": list(MARKER.encode()),
    "uuids": ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
    "chunks": [base64.b64encode(MARKER.encode()).decode()],
}
"""As Debezium writes it into columns of these types."""


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_value_of_any_type_that_is_not_in_the_log_stays_what_it_was(
    plain: Landing, version: str, table_type: str, rounds: int
) -> None:
    """Also if both events of a row come in one round."""
    t = target()
    stored = {
        name: [1, 2] if name == "numbers" else ["a"] if isinstance(form, list) else "a" for name, form in FORMS.items()
    }
    events = [event("c", 1, {"id": 1, "n": 1, **stored}), event("u", 2, {"id": 1, "n": 2, **FORMS})]
    created = {"record_key": "id", "table_type": table_type, "options": {"hoodie.write.table.version": version}}
    for some in [events] if rounds == 1 else [events[:1], events[1:]]:
        plain.put(*some)
        hoodie.ingest(plain.folder, t, changes="postgres", **created)
    assert rows(t, "id", "n", *FORMS) == [(1, 2, *stored.values())]


@pytest.mark.parametrize("column", sorted(FORMS))
def test_a_table_that_does_not_merge_so_refuses_a_value_of_any_type_that_is_not_in_the_log(
    plain: Landing, column: str
) -> None:
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    plain.put(event("c", 1, {"id": 1}), event("u", 2, {"id": 2, column: FORMS[column]}))
    assert hoodie.ingest(plain.folder, t, changes="postgres").bad == 1
    assert rows(t.uri, "id") == [(1,)]


def test_a_row_whose_key_changed_and_that_is_not_whole_is_told(
    plain: Landing, caplog: pytest.LogCaptureFixture
) -> None:
    t = target()
    plain.put(
        event("c", 1, {"id": 1, "v": "long"}), event("d", 2, None, {"id": 1}), event("c", 2, {"id": 2, "v": MARKER})
    )
    hoodie.ingest(plain.folder, t, changes="postgres", record_key="id")
    assert rows(t, "id", "v") == [(2, MARKER)]
    assert "1 row whose key changed: the log lacks the unchanged value of column v" in caplog.text


def test_empty_lists_and_numbers_that_are_not_finite_are_values(plain: Landing) -> None:
    t = target()
    plain.put(event("c", 1, {"id": 1, "tags": ["a"], "f": 0.5}), event("c", 2, {"id": 2, "f": "NaN", "s": "NaN"}))
    assert hoodie.ingest(plain.folder, t, changes="postgres", record_key="id").bad == 0
    plain.put(event("u", 3, {"id": 1, "tags": [], "f": "-Infinity"}))
    assert hoodie.ingest(plain.folder, t, changes="postgres").bad == 0
    plain.put(
        event("c", 4, {"id": 3, "f": "NaN"}),
        event("c", 5, {"id": 4, "f": "Infinity"}),
        event("c", 6, {"id": 5, "f": 1.0}),
    )
    assert hoodie.ingest(plain.folder, t, changes="postgres").bad == 0
    found = [tuple(map(str, row)) for row in rows(t, "id", "f", "s", "tags")]
    assert found == [
        ("1", "-inf", "None", "[]"),
        ("2", "nan", "NaN", "None"),
        ("3", "nan", "None", "None"),
        ("4", "inf", "None", "None"),
        ("5", "1.0", "None", "None"),
    ]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (event("t", 5), "a truncate: the rows stay in the table"),
        (event("m", 5), "is not c, r, u or d"),
        (event(None, 5, {"id": 9}), "it is no event of Debezium"),
        (event("d", 5), "a delete without the row before"),
        (event("c", 5), "it has no row after the change"),
        (event("c", 5, {"id": 9}, connector="mysql"), "is not of a connector of postgres"),
        (event("c", 5, {"id": 9}, lsn=None), "it has no place in the log (source.lsn)"),
        (event("c", 5, {"id": 9, "v": 1.5}), "a value is not of its column's type"),
        (event("d", 5, None, {"id": None, "v": 1}), "the record key (id) is null or empty"),
    ],
)
def test_an_event_that_cannot_be_taken_is_set_apart_with_a_sentence(plain: Landing, wrong: Row, reason: str) -> None:
    t = hoodie.create_table(target(), {"id": "int64", "v": "int64"}, record_key="id")
    plain.put(event("c", 1, {"id": 1, "v": 1}), wrong, event("c", 6, {"id": 2, "v": 2}))
    (done,) = hoodie.ingest(plain.folder, t, changes="postgres").rounds
    assert (done.rows, done.bad) == (2, 1)
    assert reason in json.loads(t._context.storage.read(str(done.quarantine)))["reason"]
    assert rows(t.uri, "id", "v") == [(1, 1), (2, 2)]
    with pytest.raises(OptionError, match="1 record that cannot be rows"):
        hoodie.ingest(plain.folder, t, changes="postgres", quarantine=False, name="again")


def test_a_delete_that_does_not_say_its_partition_is_set_apart_and_with_a_global_index_it_is_taken(
    plain: Landing,
) -> None:
    def ingest(t: str, **more: Any) -> hoodie.IngestRound:
        created = {"record_key": "id", "partition_by": "city", **more}
        return hoodie.ingest(plain.folder, t, changes="postgres", **created).rounds[-1]

    t, whole = target(), target()
    plain.put(event("c", 1, {"id": 1, "city": "oslo"}), event("c", 2, {"id": 2, "city": "rome"}))
    ingest(t)
    ingest(whole, options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    plain.put(event("d", 3, None, {"id": 1, "city": None}), event("d", 4, None, {"id": 2, "city": "rome"}))
    done = ingest(t)
    assert (done.rows, done.bad) == (1, 1)
    assert "REPLICA IDENTITY FULL" in hoodie.open_table(t)._context.storage.read(str(done.quarantine)).decode()
    assert rows(t, "id") == [(1,)]
    assert ingest(whole, options={"hoodie.index.type": "GLOBAL_SIMPLE"}).bad == 0
    assert rows(whole, "id") == []


def test_events_that_were_decoded_from_avro_are_taken(plain: Landing) -> None:
    row = pa.struct([("id", pa.int32()), ("at", pa.timestamp("us", "UTC"))])
    source = pa.struct([("connector", pa.string()), ("name", pa.string()), ("ts_ms", pa.int64()), ("lsn", pa.int64())])
    schema = pa.schema(
        [("before", row), ("after", row), ("source", source), ("op", pa.string()), ("ts_ms", pa.int64())]
    )

    class Events:
        def next(self, after: Checkpoint | None, bounds: Bounds, known: pa.Schema | None) -> Round | None:
            at = {"connector": "postgresql", "name": "s", "ts_ms": 1}
            found = [
                {"after": {"id": 1, "at": 5}, "source": {**at, "lsn": 1}, "op": "c"},
                {"after": {"id": 2, "at": 6}, "source": {**at, "lsn": 2}, "op": "c"},
                {"before": {"id": 1}, "source": {**at, "lsn": 3}, "op": "d"},
            ]
            return None if after else Round(pa.Table.from_pylist(found, schema), Checkpoint("1"))

    t = target()
    hoodie.ingest(Events(), t, changes="postgres", record_key="id")
    opened = hoodie.open_table(t)
    assert opened.schema is not None
    assert opened.schema.field("at").type == pa.timestamp("us", "UTC")
    assert rows(t, "id") == [(2,)]


ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": {"type": "int", "connect.default": 0}, "default": 0},
        {"name": "at", "type": ["null", {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}]},
        {"name": "fare", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}]},
        {"name": "tags", "type": ["null", {"type": "array", "items": ["null", "string"]}]},
    ],
    "connect.name": "shop.public.trips.Value",
}
SOURCE = [("connector", "string"), ("name", "string"), ("ts_ms", "long"), ("schema", "string"), ("txId", "long")]
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.trips",
    "fields": [
        {"name": "before", "type": ["null", ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "namespace": "io.debezium.connector.postgresql",
                "fields": [
                    *({"name": name, "type": kind} for name, kind in SOURCE),
                    {
                        "name": "snapshot",
                        "type": [{"type": "string", "connect.default": "false"}, "null"],
                        "default": "false",
                    },
                    {"name": "lsn", "type": ["null", "long"], "default": None},
                    {"name": "xmin", "type": ["null", "long"], "default": None},
                ],
            },
        },
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}


def test_events_of_a_topic_in_avro_are_taken_and_their_tombstones_passed_over() -> None:
    pytest.importorskip("confluent_kafka")
    from tests.ingestion.stand_in_kafka import Kafka, Topic  # noqa: PLC0415 - needs the extra

    def value(op: str, lsn: int, after: Row | None, before: Row | None = None) -> bytes:
        out = io.BytesIO()
        place = {"connector": "postgresql", "name": "shop", "ts_ms": 1, "schema": "public", "txId": 5, "lsn": lsn}
        fastavro.schemaless_writer(out, ENVELOPE, {"op": op, "after": after, "before": before, "source": place})
        return out.getvalue()

    one = {"id": 1, "at": 7, "fare": Decimal("1.50"), "tags": ["a", None]}
    kafka, t = Kafka(t=Topic()), target()
    kafka.topics["t"].put(0, value("r", 1, one), value("c", 2, {**one, "id": 2}), b"\xff")
    kafka.topics["t"].put(0, value("d", 3, None, {"id": 2}), None)
    source = kafka.source(kind="avro", source__kafka__value__deserializer__schema=json.dumps(ENVELOPE))
    (done,) = hoodie.ingest(source, t, changes="postgres", record_key="id").rounds
    assert (done.rows, done.bad, done.pieces) == (3, 1, 5)
    assert rows(t, "id", "at", "fare", "tags", "_event_lsn") == [(*one.values(), 1)]
    kafka.topics["t"].put(0, value("u", 4, {**one, "at": None}, one))
    assert hoodie.ingest(source, t, changes="postgres").bad == 0
    assert rows(t, "id", "at", "_event_lsn") == [(1, None, 4)]


def test_files_of_dms_are_taken_a_full_load_first(tmp_path: Path) -> None:
    t, landing = target(), tmp_path / "landing"
    landing.mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3], "v": ["a", "a", "a"]}), landing / "LOAD1.parquet")
    hoodie.ingest(landing, t, changes="dms", record_key="id")
    assert rows(t, "id", "v", "Op") == [(1, "a", ""), (2, "a", ""), (3, "a", "")]
    changes = pa.table({"Op": ["I", "U", "D", "U", "X"], "id": [4, 1, 2, 1, 3], "v": ["n", "b", "a", "c", "x"]})
    pq.write_table(changes, landing / "20260101.parquet")
    (done,) = hoodie.ingest(landing, t, changes="dms").rounds
    assert (done.rows, done.bad) == (4, 1)
    assert rows(t, "id", "v") == [(1, "c"), (3, "a"), (4, "n")]


def test_changes_are_upserts_of_a_log_that_is_known(plain: Landing) -> None:
    with pytest.raises(OptionError, match="changes='oracle' is not one of postgres, mysql, dms"):
        hoodie.ingest(plain.folder, target(), changes="oracle", record_key="id")
    with pytest.raises(OptionError, match="changes='mysql' needs operation='upsert', not 'insert'"):
        hoodie.ingest(plain.folder, target(), changes="mysql", record_key="id", operation="insert")


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("one_round", [False, True])
def test_a_row_whose_partition_changes_moves_as_far_as_the_log_says_where_it_was(
    landing: Landing, table_type: str, one_round: bool
) -> None:
    t = target()
    at = iter(range(10, 100))
    first = [event("r", next(at), {"id": n, "c": "x", "k": 1}) for n in range(4)]
    later = [
        event("u", next(at), {"id": 0, "c": "y", "k": 1}, {"id": 0, "c": "x", "k": 1}),
        event("u", next(at), {"id": 1, "c": "x", "k": 2}, {"id": 1, "c": "x", "k": 1}),
        event("u", next(at), {"id": 2, "c": None, "k": 1}, {"id": 2, "c": "x", "k": 1}),
        event("u", next(at), {"id": 2, "c": "z", "k": 1}, {"id": 2, "c": None, "k": 1}),  # null may be left out
        event("u", next(at), {"id": 3, "c": "y", "k": 1}),
        event("u", next(at), {"id": 0, "c": "x", "k": 3}, {"id": 0, "c": "y", "k": 1}),
    ]
    for events in [[*first, *later]] if one_round else [first, later]:
        landing.put(*events)
        hoodie.ingest(landing.folder, t, changes="postgres", record_key="id", partition_by="c", table_type=table_type)
    found = hoodie.open_table(t).scan(["id", "c", "k"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["c"] or "", row["k"]) for row in found) == [
        (0, "x", 3),
        (1, "x", 2),
        (2, "", 1),
        (2, "z", 1),
        (3, "x", 1),
        (3, "y", 1),
    ]


def test_tombstones_in_files_are_skipped(landing: Landing) -> None:
    t = target()
    landing.put(event("c", 10, {"id": 1}), event("c", 11, {"id": 2}))
    hoodie.ingest(landing.folder, t, changes="postgres", record_key="id")
    (landing.folder / "tombstones.json").write_text("null\n")
    landing.put(event("d", 12, None, {"id": 1}))
    with (landing.folder / "2.json").open("a") as file:
        file.write("null\n")
    done = hoodie.ingest(landing.folder, t, changes="postgres")
    assert (done.rows, done.bad) == (1, 0)
    assert rows(t, "id") == [(2,)]
