"""Debezium itself reads the log of a PostgreSQL into topics: the table is what the database is, over kills of all three."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import confluent_kafka
import pyarrow as pa
import pytest

import hoodie
from tests.effort import SOAK
from tests.servers.debezium import Connect, connect
from tests.servers.kafka import Kafka, kafka
from tests.servers.postgres import postgres, programs

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[1]
SECONDS = 600 if SOAK else 7
VARIANTS = [("plain", "DEFAULT"), ("wrapped", "FULL"), ("plain", "FULL"), ("wrapped", "DEFAULT")][: 4 if SOAK else 2]
"""Without and with Connect's schema in each value, and what PostgreSQL writes of a row that changes."""
_COLUMNS = """n int, f float8, p numeric(12,2), s text, big text, raw bytea, j jsonb, tags text[], nums int[],
at timestamptz, ts timestamp, d date, t time, u uuid, b boolean, nothing text"""
_LARGE = {"big": "repeat(md5('{0}'), 100)", "raw": "decode(repeat(md5('{0}'), 100), 'hex')"}
_LARGE |= {"j": "to_jsonb(repeat(md5('{0}'), 100))", "tags": "array_fill(md5('{0}'), ARRAY[90])"}
_LARGE |= {"nums": "array_fill({0}, ARRAY[900])"}
_SMALL = {
    "n": ("1", "-2147483648", "NULL"),
    "f": ("0.1", "'NaN'", "'-Infinity'", "1e300", "7", "NULL"),
    "p": ("1.50", "-9999999999.99", "0", "NULL"),
    "s": ("'é\"\\'", "''", "'NaN'", "E'a\\nb'", "NULL"),
    "big": ("'short'",),
    "raw": ("'\\x00ff'", "''", "NULL"),
    "j": ("'{\"a\": [1, 2.50]}'", "'null'", "NULL"),
    "tags": ("'{a,NULL,\"b c\"}'", "'{}'", "NULL"),
    "nums": ("'{1,NULL}'", "'{}'", "NULL"),
    "at": ("'2024-01-01 12:00:00.123456+02'", "'1969-12-31 23:59:59Z'", "'infinity'", "'-infinity'", "NULL"),
    "ts": ("'2024-01-01 12:00:00.123456'", "'0001-01-01'", "'infinity'", "NULL"),
    "d": ("'2024-02-29'", "'0044-03-15 BC'", "NULL"),
    "t": ("'23:59:59.999999'", "NULL"),
    "u": ("'00000000-0000-0000-0000-00000000000a'", "NULL"),
    "b": ("true", "false", "NULL"),
}
_AS_TOLD = {
    "p": "p::text",
    "raw": "replace(encode(raw, 'base64'), E'\\n', '')",
    "j": "j::text",
    "at": "CASE WHEN isfinite(at) THEN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') ELSE at::text END",
    "ts": "CASE WHEN isfinite(ts) THEN (extract(epoch FROM ts) * 1000000)::bigint WHEN ts IS NOT NULL THEN 9223372036825200000 END",
    "d": "d - '1970-01-01'::date",
    "t": "(extract(epoch FROM t) * 1000000)::bigint",
    "u": "u::text",
}
"""How Debezium says a column in JSON, with decimals as texts."""
_BY_SCHEMA = _AS_TOLD | {"raw": "raw"}
_BY_SCHEMA["at"] = """CASE at WHEN 'infinity' THEN 9223372036825200000 WHEN '-infinity' THEN -9223372036832400000
ELSE (extract(epoch FROM at) * 1000000)::bigint END"""
_TYPES = {
    "p": pa.decimal128(38, 2),
    "raw": pa.binary(),
    "at": pa.timestamp("us", "UTC"),
    "ts": pa.timestamp("us"),
    "d": pa.date32(),
}
"""What a table has by Connect's schema."""


class Log(NamedTuple):
    uri: str
    broker: Kafka
    worker: Connect


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    pytest.importorskip("adbc_driver_postgresql")
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL on this machine: initdb is neither in PATH nor in /usr/lib/postgresql")
    with ExitStack() as servers:
        uri = servers.enter_context(postgres(found, wal_level="logical", max_replication_slots="9"))
        broker = servers.enter_context(kafka(tmp_path_factory.mktemp("kafka")))
        yield Log(uri, broker, servers.enter_context(connect(tmp_path_factory.mktemp("connect"), broker.address)))


def connected(uri: str) -> Any:
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - an extra

    return closing(dbapi.connect(uri))


def transaction(connection: Any, *statements: str, ends: str = "commit") -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    getattr(connection, ends)()


def run(uri: str, *statements: str) -> None:
    with connected(uri) as connection:
        transaction(connection, *statements)


def rows_in(uri: str, query: str) -> list[dict[str, Any]]:
    with connected(uri) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        found: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
        return found


def settings(log: Log, name: str, **more: str) -> dict[str, str]:
    """Of a connector that reads all tables of the schema `name`."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(urlsplit(log.uri).port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": "postgres",
        "schema.include.list": name,
        "publication.autocreate.mode": "filtered",
        "publication.name": name,
        "slot.name": name,
        "topic.prefix": name,
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "2",
        "poll.interval.ms": "20",
        "decimal.handling.mode": "string",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def large(column: str, chance: random.Random) -> str:
    return _LARGE[column].format(chance.randrange(1000))


def value(column: str, chance: random.Random) -> str:
    return large(column, chance) if column in _LARGE and chance.random() < 0.5 else chance.choice(_SMALL[column])


class Writing(threading.Thread):
    """Transactions of some statements each, a fourth of them rolled back; half-way the table gets a column."""

    def __init__(self, uri: str, table: str, seconds: float) -> None:
        super().__init__(daemon=True)
        self._uri, self._table, self._until_s = uri, table, time.monotonic() + seconds
        self._grows_s = self._until_s - seconds / 2
        self._chance = random.Random(table)
        self._columns = list(_SMALL)
        self._next = 0
        self.statements = 0
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            with connected(self._uri) as connection:
                while time.monotonic() < self._until_s:
                    ends = "rollback" if self._chance.random() < 0.25 else "commit"
                    some = [self._statement() for _ in range(self._chance.randint(1, 6))]
                    transaction(connection, *some, ends=ends)
                    self.statements += len(some)
                    if time.monotonic() > self._grows_s and "extra" not in self._columns:
                        transaction(connection, f"ALTER TABLE {self._table} ADD COLUMN extra int")
                        self._columns.append("extra")
                    time.sleep(0.05)  # events, not their number
        except Exception as exc:  # noqa: BLE001 - it is raised where the thread is joined
            self.failed = exc

    def _value(self, column: str) -> str:
        return str(self._chance.randrange(9)) if column == "extra" else value(column, self._chance)

    def _statement(self) -> str:
        chance, one = self._chance, f"id = {self._chance.randrange(self._next + 1)}"
        kind = chance.choice(("insert", "insert", "update", "update", "update", "key", "delete", "again"))
        self._next += kind in ("insert", "key")
        if kind in ("insert", "again"):
            key = self._next if kind == "insert" else chance.randrange(self._next + 1)
            values = ", ".join(self._value(each) for each in self._columns)
            names = ", ".join(self._columns)
            return f"INSERT INTO {self._table} (id, {names}) VALUES ({key}, {values}) ON CONFLICT DO NOTHING"
        if kind == "update":
            some = chance.sample(self._columns, chance.randint(1, 4))
            return f"UPDATE {self._table} SET {', '.join(f'{each} = {self._value(each)}' for each in some)} WHERE {one}"
        if kind == "key":  # what is large and stays is not in the log
            values = "".join(f", {each} = {self._value(each)}" for each in _LARGE)
            return f"UPDATE {self._table} SET id = {self._next}{values} WHERE {one}"
        return f"DELETE FROM {self._table} WHERE {one}"


def begun(address: str, table: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hoodie", "ingest", address, str(table), "--changes", "postgres", "--key", "id"]
    command += ["--continuous", "--every", "0s", "--max-rows", "60", "--source-option", "fetch.wait.max.ms=50"]
    return subprocess.Popen([*command, "--quiet"], cwd=ROOT)


def caught_up(log: Log, names: Sequence[str], key: int) -> None:
    """Write a row into each table, and wait until its event is in its topic."""
    for name in names:
        run(log.uri, f"INSERT INTO {name} (id) VALUES ({key})")
    wanted = f'"id":{key},'.encode()
    for name in names:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": log.broker.address, "group.id": "none", "log_level": 0}
        )
        consumer.assign([confluent_kafka.TopicPartition(topic(name), each, 0) for each in (0, 1)])
        end_s = time.monotonic() + 120
        while time.monotonic() < end_s:
            message = consumer.poll(1)
            if message is not None and message.value() and wanted in message.value():
                break
        else:
            raise TimeoutError(f"row {key} of {name} is not in its topic")
        consumer.close()


def topic(name: str) -> str:
    return f"{name.partition('.')[0]}.{name}"


def plain(rows: pa.Table) -> pa.Table:
    """Moments and days as numbers: Python has not all of them."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_temporal(field.type):
            kind = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
            rows = rows.set_column(number, field.name, rows.column(number).cast(kind))
    return rows


def differences(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> list[str]:
    """As texts, since NaN is no NaN."""
    ours, theirs = ({row["id"]: row for row in rows} for rows in (found, expected))
    differing = [f"{key}: only in one" for key in ours.keys() ^ theirs.keys()]
    for key in ours.keys() & theirs.keys():
        pairs = {name: (str(ours[key].get(name))[:99], str(each)[:99]) for name, each in theirs[key].items()}
        differing += [f"{key}.{name}: {one} is not {other}" for name, (one, other) in pairs.items() if one != other]
    return differing


def test_the_table_is_what_the_database_is_over_kills_of_the_ingestion_and_of_debezium(
    log: Log, tmp_path: Path
) -> None:
    tables = {f"{schema}.{identity.lower()}": identity for schema, identity in VARIANTS}
    for name, identity in tables.items():
        run(
            log.uri,
            f"CREATE SCHEMA IF NOT EXISTS {name.partition('.')[0]}",
            f"CREATE TABLE {name} (id bigint PRIMARY KEY, {_COLUMNS})",
            *(f"ALTER TABLE {name} ALTER COLUMN {each} SET STORAGE EXTERNAL" for each in _LARGE),
            f"ALTER TABLE {name} REPLICA IDENTITY {identity}",
            f"INSERT INTO {name} (id, n, f, tags) VALUES (0, 1, 2, '{{}}')",
        )
    for schema in dict(VARIANTS):
        with_schema = str(schema == "wrapped").lower()
        decimals = "precise" if schema == "wrapped" else "string"
        more = {"value__converter__schemas__enable": with_schema, "decimal__handling__mode": decimals}
        log.worker.add(schema, settings(log, schema, **more))
    # A snapshot that a kill cuts short is taken anew, and has no event of a row that was deleted in between.
    for key in (-2, -1):  # the first may be in the snapshot, the second is after it
        caught_up(log, list(tables), key)
    time.sleep(2)  # Connect keeps twice a second how far it is
    writing = [Writing(log.uri, name, SECONDS) for name in tables]
    for each in writing:
        each.start()
    addresses = {name: f"kafka://{log.broker.address}/{topic(name)}" for name in tables}
    chance, end_s, kills = random.Random(3), time.monotonic() + SECONDS, 0
    while time.monotonic() < end_s:
        some = [begun(addresses[name], tmp_path / name) for name in chance.sample(sorted(tables), 2)]
        time.sleep(2 + chance.random())
        for process in some:
            process.send_signal(signal.SIGKILL)
            process.wait()
        kills += 1
        if kills % 3 == 2:
            log.worker.stop()
            log.worker.start()
    for each in writing:
        each.join(120)
        assert each.failed is None
    caught_up(log, list(tables), 1_000_000)
    for name in tables:
        done = hoodie.ingest(addresses[name], tmp_path / name, changes="postgres", record_key="id", max_rows=1000)
        assert sum(each.bad for each in done.rounds) == 0, name
        columns = ["id", *_SMALL, "extra"]
        told = _BY_SCHEMA if name.startswith("wrapped") else _AS_TOLD
        query = ", ".join(f"{told[each]} AS {each}" if each in told else each for each in columns)
        expected = rows_in(log.uri, f"SELECT {query} FROM {name}")
        stored = hoodie.open_table(tmp_path / name).scan(columns).to_arrow()
        if told is _BY_SCHEMA:
            assert {each: stored.schema.field(each).type for each in _TYPES} == _TYPES
        found = plain(stored).to_pylist()
        assert len(found) == len(expected)
        assert not (wrong := differences(found, expected)), f"{name}: {wrong[:30]}"
        assert hoodie.open_table(tmp_path / name).doctor().findings == ()
    assert kills > 1
    print(f"{sum(each.statements for each in writing)} statements, {kills} kills")  # noqa: T201 - a soak says what it did


def test_what_the_log_does_not_say_is_told(log: Log, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A truncate, and large values of a row whose key changes: with REPLICA IDENTITY FULL the log has these."""
    name, large = "told.t", "repeat(md5('x'), 100)"
    run(
        log.uri,
        "CREATE SCHEMA told",
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, big text, n int)",
        f"ALTER TABLE {name} ALTER COLUMN big SET STORAGE EXTERNAL",
        f"INSERT INTO {name} VALUES (1, {large}, 1), (2, {large}, 1)",
    )
    log.worker.add("told", settings(log, "told", skipped__operations="none"))
    run(
        log.uri,
        f"UPDATE {name} SET id = 10 WHERE id = 1",
        f"ALTER TABLE {name} REPLICA IDENTITY FULL",
        f"UPDATE {name} SET id = 20 WHERE id = 2",
    )
    caught_up(log, [name], 99)
    address = f"kafka://{log.broker.address}/{topic(name)}"
    assert hoodie.ingest(address, tmp_path / "t", changes="postgres", record_key="id").rounds[0].bad == 0
    rows = hoodie.open_table(tmp_path / "t").scan(["id", "big"]).to_arrow()
    lengths = {row["id"]: len(row["big"] or "") for row in rows.to_pylist()}
    assert lengths == {10: len("__debezium_unavailable_value"), 20: 3200, 99: 0}
    assert "1 row whose key changed: the log lacks the unchanged value of column big" in caplog.text
    run(log.uri, f"TRUNCATE {name}")
    caught_up(log, [name], 100)
    assert hoodie.ingest(address, tmp_path / "t", changes="postgres").rounds[0].bad == 1
    assert "a truncate: the rows stay in the table" in caplog.text
