"""A real PostgreSQL as a source: its types, rows that are committed late, and kills in the middle of a batch."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import OptionError
from integration import rust_peer
from integration.hudi_client import HudiPeer
from tests.effort import SOAK
from tests.servers.postgres import postgres, programs

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    pytest.importorskip("adbc_driver_postgresql")
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL on this machine: initdb is neither in PATH nor in /usr/lib/postgresql")
    with postgres(found) as uri:
        yield uri


def run(database: str, *statements: str) -> None:
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - an extra

    with closing(dbapi.connect(database)) as connection:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        connection.commit()


def test_types_arrive_as_tables_have_them_and_apache_hudi_reads_them(
    database: str, tmp_path: Path, hudi: HudiPeer
) -> None:
    run(
        database,
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        'CREATE TABLE "Types" (id int PRIMARY KEY, n numeric, price numeric(12,2), b boolean, s varchar(9), ts timestamp, '
        "tz timestamptz, d date, t time, u uuid, j jsonb, a int[], prices numeric[], raw bytea, m mood, ip inet, nothing text)",
        """INSERT INTO "Types" VALUES (1, 1.5, 2.25, true, 'é', '2024-01-01 12:00:00.123456', '2024-01-01 12:00:00+02',
        '2024-01-01', '12:30', '00000000-0000-0000-0000-00000000000a', '{"a": [1]}', '{1,2,NULL}', '{1.5,2}', '\\x00ff',
        'sad', '10.0.0.1', NULL)""",
        'INSERT INTO "Types" VALUES (2)',
    )
    path = tmp_path / "t"
    for _ in range(2):  # the second time the table says the types
        hoodie.ingest(database, path, record_key="id", source_options={"table": '"Types"'})
    one, two = hoodie.open_table(path).scan().to_arrow().sort_by("id").to_pylist()
    assert one == {
        **{"id": 1, "n": Decimal("1.5"), "price": Decimal("2.25"), "b": True, "s": "é", "d": date(2024, 1, 1)},
        **{"ts": datetime(2024, 1, 1, 12, 0, 0, 123456), "tz": datetime(2024, 1, 1, 10, tzinfo=UTC), "t": "12:30:00"},
        **{"u": "00000000-0000-0000-0000-00000000000a", "j": '{"a": [1]}', "a": [1, 2, None], "prices": ["1.5", "2"]},
        **{"raw": b"\x00\xff", "m": "sad", "ip": "10.0.0.1/32", "nothing": None},
    }
    assert {name for name, value in two.items() if value is not None} == {"id"}
    assert str(hoodie.open_table(path).schema.field("price").type) == "decimal128(12, 2)"
    assert sorted(row["id"] for row in hudi.read(path).rows) == [1, 2]


def test_each_kind_of_column_grows(database: str) -> None:
    run(
        database,
        "CREATE TABLE grows (id bigint, ts timestamp, tz timestamptz, n numeric, p numeric(10,3), d date, f float8, v text)",
        "INSERT INTO grows SELECT i, '2024-01-01'::timestamp + i * interval '0.25 s', '2024-01-01'::timestamptz + i * interval '1 s', "
        "i / 4.0, i, '2024-01-01'::date + i / 10, i * 0.1, 'v' || i FROM generate_series(0, 99) i",
    )
    for column in ("id", "ts", "tz", "n", "p", "d", "f", "v"):
        options = {"table": "grows", "column": column, **({} if column == "v" else {"look_back": "1"})}
        uri = f"memory://grows-{column}"
        done = hoodie.ingest(database, uri, record_key="id", operation="insert", source_options=options, max_rows=30)
        assert done.rows == 100, column
        assert hoodie.ingest(database, uri, operation="insert", source_options=options).rounds == (), column
        assert hoodie.open_table(uri).scan().count() == 100, column


def test_what_postgresql_refuses_is_named(database: str) -> None:
    run(database, "CREATE TABLE odd (id int, n numeric)", "INSERT INTO odd VALUES (1, 'NaN')")
    for options, match in (
        ({"table": "nowhere"}, r"table nowhere of database postgresql://127\.0\.0\.1:\d+/postgres cannot be read"),
        ({"table": "odd"}, r"column 'n' of table odd of postgresql://.* has a number that is not decimal128\(38, 18\)"),
    ):
        with pytest.raises(OptionError, match=match):
            hoodie.ingest(database, "memory://odd", record_key="id", source_options=options)


def test_kills_in_the_middle_of_rounds_lose_and_double_nothing_while_rows_are_committed_late(
    database: str, tmp_path: Path, hudi: HudiPeer
) -> None:
    """Two writers commit rows whose times are up to half a second old, while the ingestion is killed again and again."""
    run(
        database,
        "CREATE TABLE events (id bigint PRIMARY KEY, at timestamptz NOT NULL, v int)",
        "CREATE INDEX ON events (at)",
    )
    seconds = 600 if SOAK else 8
    end = time.monotonic() + seconds
    counts = [0, 0]

    def write(writer: int) -> None:
        chance = random.Random(writer)
        while time.monotonic() < end:
            first = counts[writer]
            counts[writer] += chance.randint(1, 40)
            values = ", ".join(f"({n * 2 + writer}, clock_timestamp(), {n})" for n in range(first, counts[writer]))
            run(database, f"INSERT INTO events VALUES {values}", f"SELECT pg_sleep({chance.random() / 2})")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in (0, 1)]
    for thread in threads:
        thread.start()
    path = tmp_path / "t"
    command = ["ingest", database, str(path), "--key", "id", "--operation", "insert", "--max-rows", "50"]
    command += ["--source-option", "table=events", "--source-option", "column=at", "--source-option", "look_back=5"]
    chance, kills = random.Random(0), 0
    while time.monotonic() < end:
        ingestion = subprocess.Popen(
            [sys.executable, "-m", "hoodie", *command, "--continuous", "--every", "0.1s"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert ingestion.stdout is not None
        longest = threading.Timer(5, ingestion.kill)  # there may be nothing new any more
        longest.start()
        with ingestion:
            for _ in range(chance.randint(1, 4)):
                ingestion.stdout.readline()
            time.sleep(chance.random() / 5)
            ingestion.send_signal(signal.SIGKILL)
        longest.cancel()
        kills += 1
    for thread in threads:
        thread.join()
    subprocess.run([sys.executable, "-m", "hoodie", *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert kills > 1
    expected = sorted(n * 2 + writer for writer in (0, 1) for n in range(counts[writer]))
    assert sorted(hoodie.open_table(path).scan(["id"]).to_arrow().column("id").to_pylist()) == expected
    assert sorted(row["id"] for row in hudi.read(path).rows) == expected
    assert sorted(row["id"] for row in rust_peer.read(path)) == expected
    assert hoodie.open_table(path).doctor().findings == ()
