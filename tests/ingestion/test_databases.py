"""Rows of a database: what is new by a column, ties and late commits, all rows each time, and deaths in the middle."""

from __future__ import annotations

import secrets
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("adbc_driver_sqlite")

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import HoodieError, OptionError
from hoodie.ingestion.database_options import database_source
from hoodie.ingestion.run import Plan, run_round
from hoodie.ingestion.source import NO_BOUNDS, Bounds, Checkpoint
from hoodie.model.enums import WriteOperation
from hoodie.options.parse import parse_write_options
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.memory import MemoryStorage
from hoodie.write.create import create_at
from tests.ingestion.shops import Shop
from tests.memory_tables import opened

TRIPS = {"table": "trips", "column": "at"}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop.db")


def target() -> str:
    return f"memory://{secrets.token_hex(8)}"


def ids(table: str) -> list[int]:
    return sorted(hoodie.open_table(table).scan(["id"]).to_arrow().column("id").to_pylist())


# -- by a column that grows --------------------------------------------------------------------------------------------


def test_rows_after_the_last_value_are_read_and_rows_of_one_value_stay_together(shop: Shop) -> None:
    shop.insert(*((n, n // 3) for n in range(10)))
    t = target()
    done = hoodie.ingest(shop.uri, t, record_key="id", operation="insert", source_options=TRIPS, max_rows=4)
    assert [(each.rows, each.checkpoint) for each in done.rounds] == [(6, "1"), (4, "3")]
    assert hoodie.ingest(shop.uri, t, operation="insert", source_options=TRIPS).rounds == ()
    assert ids(t) == list(range(10))


def test_rows_at_the_border_that_are_committed_later_are_told_apart_from_those_that_were_read(shop: Shop) -> None:
    shop.insert((1, 5), (2, 5))
    t = target()
    hoodie.ingest(shop.uri, t, record_key="id", operation="insert", source_options=TRIPS)
    shop.insert((3, 5))
    assert hoodie.ingest(shop.uri, t, operation="insert", source_options=TRIPS).rows == 1
    shop.run("UPDATE trips SET v = 'new' WHERE id = 1")
    assert hoodie.ingest(shop.uri, t, source_options=TRIPS).rows == 1
    assert {row["id"]: row["v"] for row in hoodie.open_table(t).scan().to_arrow().to_pylist()}[1] == "new"
    assert ids(t) == [1, 2, 3]


def test_strict_is_as_apache_hudi_has_it_rows_at_the_border_are_not_looked_at_again(shop: Shop) -> None:
    strict = {**TRIPS, "strict": "true"}
    shop.insert((1, 5))
    t = target()
    hoodie.ingest(shop.uri, t, record_key="id", source_options=strict)
    shop.insert((2, 5), (3, 6))
    assert hoodie.ingest(shop.uri, t, source_options=strict).rows == 1
    assert ids(t) == [1, 3]


def test_a_row_that_is_committed_late_is_found_as_far_as_look_back_goes(shop: Shop) -> None:
    late = {**TRIPS, "look_back": "10"}
    shop.insert((1, 100), (2, 95))
    t = target()
    hoodie.ingest(shop.uri, t, record_key="id", operation="insert", source_options=late)
    shop.insert((3, 90), (4, 89), (5, 101))
    assert hoodie.ingest(shop.uri, t, operation="insert", source_options=late).rows == 2
    assert hoodie.ingest(shop.uri, t, operation="insert", source_options=late).rounds == ()
    assert ids(t) == [1, 2, 3, 5]


def test_bounds_make_progress_where_the_rows_that_are_looked_at_again_are_more_than_the_bound(shop: Shop) -> None:
    late = {**TRIPS, "look_back": "100"}
    shop.insert(*((n, n) for n in range(20)))
    t = target()
    done = hoodie.ingest(shop.uri, t, record_key="id", operation="insert", source_options=late, max_rows=3)
    assert [each.rows for each in done.rounds] == [3, 3, 3, 3, 3, 3, 2]
    assert ids(t) == list(range(20))


def test_of_many_rows_at_the_border_a_new_one_is_found_by_an_upsert(shop: Shop) -> None:
    shop.insert(*((n, 1) for n in range(5000)))
    t = target()
    hoodie.ingest(shop.uri, t, record_key="id", source_options=TRIPS)
    assert hoodie.ingest(shop.uri, t, source_options=TRIPS).rounds == ()
    shop.insert((5000, 1))
    with pytest.raises(OptionError, match="has already, and insert would write them twice: use upsert"):
        hoodie.ingest(shop.uri, t, operation="insert", source_options=TRIPS)
    assert hoodie.ingest(shop.uri, t, source_options=TRIPS).rows == 5001
    assert ids(t) == list(range(5001))


def test_a_longer_look_back_than_before_repeats_rows_so_it_is_for_upserts(shop: Shop) -> None:
    shop.insert((1, 90), (2, 100))
    t = target()
    hoodie.ingest(shop.uri, t, record_key="id", source_options=TRIPS)
    late = {**TRIPS, "look_back": "10"}
    with pytest.raises(OptionError, match="would write them twice"):
        hoodie.ingest(shop.uri, t, operation="insert", source_options=late)
    hoodie.ingest(shop.uri, t, source_options=late)
    assert ids(t) == [1, 2]


def test_a_new_column_of_the_database_repeats_no_row(shop: Shop) -> None:
    shop.insert((1, 5))
    t = target()
    hoodie.ingest(shop.uri, t, record_key="id", operation="insert", source_options=TRIPS)
    shop.run("ALTER TABLE trips ADD COLUMN more TEXT")
    assert hoodie.ingest(shop.uri, t, operation="insert", source_options=TRIPS).rounds == ()
    shop.run("INSERT INTO trips (id, at, more) VALUES (2, 6, 'x')")
    hoodie.ingest(shop.uri, t, operation="insert", source_options=TRIPS)
    assert [row["more"] for row in hoodie.open_table(t).scan().to_arrow().sort_by("id").to_pylist()] == [None, "x"]


@pytest.mark.parametrize(
    ("values", "back", "checkpoint"),
    [
        ([1, 2, 3], "1", "3"),
        ([0.1, 0.2, 1e20], "1", "100000000000000000000"),
        (["2024-01-01 00:00:00", "2024-01-02", "2024-1-3 it's"], None, "2024-1-3 it's"),
    ],
)
def test_numbers_and_texts_are_columns_that_grow(
    shop: Shop, values: list[Any], back: str | None, checkpoint: str
) -> None:
    shop.run("CREATE TABLE grows (id INTEGER, c)")
    shop.run("INSERT INTO grows VALUES (1, ?), (2, ?), (3, ?)", *values)
    options = {"table": "grows", "column": "c", **({"look_back": back} if back else {})}
    t = target()
    done = hoodie.ingest(shop.uri, t, record_key="id", operation="insert", source_options=options, max_rows=2)
    assert done.rounds[-1].checkpoint == checkpoint
    assert hoodie.ingest(shop.uri, t, operation="insert", source_options=options).rounds == ()
    shop.run("INSERT INTO grows VALUES (4, ?)", values[-1])
    assert hoodie.ingest(shop.uri, t, operation="insert", source_options=options).rows == 1
    assert ids(t) == [1, 2, 3, 4]


def test_rows_without_the_value_are_not_read_and_that_is_said(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.insert((1, 5), (2, None))
    assert hoodie.ingest(shop.uri, target(), record_key="id", source_options=TRIPS).rows == 1
    assert "1 row of table trips of sqlite:///" in caplog.text
    assert "whose at is null, are not read" in caplog.text


def test_it_goes_on_where_hudis_jdbc_source_ended(shop: Shop) -> None:
    shop.insert((1, 5), (2, 6), (3, 7))
    source = database_source("database", shop.uri, {**TRIPS, "strict": "true"})
    found = source.next(Checkpoint("5"), NO_BOUNDS, None)
    assert found is not None
    assert isinstance(found.rows, pa.Table)
    assert found.rows.column("id").to_pylist() == [2, 3]
    for other in (Checkpoint("topic,0:3"), Checkpoint("5", {"taken": {}})):
        with pytest.raises(OptionError, match=r"another source.* has been written to this table under the same name"):
            source.next(other, NO_BOUNDS, None)


def test_a_query_may_make_the_column_and_is_transformed_as_any_source(shop: Shop) -> None:
    shop.insert((1, 5), (2, 6))
    query = "SELECT id, v, at * 10 AS tens FROM trips;"
    options = {"query": query, "column": "tens"}
    t = target()
    sql = "SELECT id, tens + 1 AS more FROM source"
    assert hoodie.ingest(shop.uri, t, record_key="id", source_options=options, sql=sql).rounds[0].checkpoint == "60"
    shop.insert((3, 7))
    assert hoodie.ingest(shop.uri, t, source_options=options, sql=sql).rows == 1
    assert hoodie.open_table(t).scan(["more"]).to_arrow().column("more").to_pylist() == [51, 61, 71]


# -- all rows each time ------------------------------------------------------------------------------------------------


def test_all_rows_each_time_as_upsert_or_in_place_of_what_is_there(shop: Shop) -> None:
    whole = {"table": "trips"}
    shop.insert((1, 1), (2, 1))
    upserted, replaced = target(), target()
    hoodie.ingest(shop.uri, upserted, record_key="id", operation="bulk_insert", source_options=whole)
    hoodie.ingest(shop.uri, replaced, record_key="id", operation="insert_overwrite_table", source_options=whole)
    shop.run("DELETE FROM trips WHERE id = 1")
    shop.insert((3, 1))
    with pytest.raises(OptionError, match="use upsert or insert_overwrite_table"):
        hoodie.ingest(shop.uri, upserted, operation="bulk_insert", source_options=whole)
    hoodie.ingest(shop.uri, upserted, source_options=whole)
    hoodie.ingest(shop.uri, replaced, operation="insert_overwrite_table", source_options=whole)
    assert (ids(upserted), ids(replaced)) == ([1, 2, 3], [2, 3])
    shop.run("DELETE FROM trips")
    hoodie.ingest(shop.uri, replaced, operation="insert_overwrite_table", source_options=whole)
    assert ids(replaced) == []


def test_what_gives_news_only_does_not_replace_the_table(shop: Shop) -> None:
    shop.insert((1, 1))
    with pytest.raises(OptionError, match="insert_overwrite_table would drop all other rows"):
        hoodie.ingest(shop.uri, target(), record_key="id", operation="insert_overwrite_table", source_options=TRIPS)


# -- types -------------------------------------------------------------------------------------------------------------


def test_values_get_the_types_of_the_table_and_columns_of_nulls_wait_for_one(shop: Shop) -> None:
    shop.run("CREATE TABLE typed (id INTEGER, n, d, gone, raw BLOB)")
    shop.run("INSERT INTO typed VALUES (1, 1, '1.50', NULL, x'00ff')")
    t = hoodie.create_table(target(), {"id": "int64", "n": "double", "d": "decimal(10,2)"}, record_key="id")
    hoodie.ingest(shop.uri, t, source_options={"table": "typed"})
    assert "gone" not in hoodie.open_table(t.uri).schema.names
    shop.run("INSERT INTO typed VALUES (2, 1.5, NULL, 'text', NULL)")
    hoodie.ingest(shop.uri, t, source_options={"table": "typed"})
    rows = hoodie.open_table(t.uri).scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [
        {"id": 1, "n": 1.0, "d": Decimal("1.50"), "gone": None, "raw": b"\x00\xff"},
        {"id": 2, "n": 1.5, "d": None, "gone": "text", "raw": None},
    ]
    shop.run("UPDATE typed SET gone = NULL, raw = NULL")
    assert hoodie.ingest(shop.uri, t, source_options={"table": "typed"}).rows == 2


def test_a_type_that_comes_after_many_rows_is_read(shop: Shop) -> None:
    shop.run("CREATE TABLE typed (id INTEGER, v)")
    shop.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO typed SELECT i, NULL FROM n"
    )
    shop.run("INSERT INTO typed VALUES (3001, 'text')")
    t = target()
    hoodie.ingest(shop.uri, t, record_key="id", source_options={"table": "typed"})
    assert hoodie.open_table(t).scan(where="v = 'text'").count() == 1


# -- deaths ------------------------------------------------------------------------------------------------------------


def test_whatever_dies_at_any_call_of_the_storage_each_row_is_there_once(shop: Shop) -> None:
    shop.insert(*((n, n) for n in range(9)))
    source = database_source("database", shop.uri, {**TRIPS, "look_back": "2"})
    plan = Plan(source, operation=WriteOperation.INSERT, bounds=Bounds(rows=3))
    start = MemoryStorage()
    named = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    create_at(start, parse_write_options(named).to_create(), schema=pa.schema([("id", pa.int64())]))
    run_round(opened(start), plan)
    traced = FaultStorage(start.copy())
    run_round(opened(traced), plan)
    assert len(traced.trace) > 5
    for call in traced.trace:
        storage = start.copy()
        with pytest.raises(InjectedFault):
            run_round(opened(FaultStorage(storage, [Fault(call.n, "after")])), plan)
        table = opened(storage.copy())  # the locks of the dead are not copied
        while run_round(table, plan) is not None:
            pass
        assert sorted(table.scan(["id"]).to_arrow().column("id").to_pylist()) == list(range(9)), call


def test_a_process_that_is_killed_in_the_middle_loses_and_doubles_nothing(shop: Shop, tmp_path: Path) -> None:
    shop.insert(*((n, n) for n in range(200)))
    path = tmp_path / "t"
    command = ["ingest", shop.uri, str(path), "--key", "id", "--operation", "insert", "--max-rows", "10"]
    command += ["--source-option", "table=trips", "--source-option", "column=at"]
    for told in (1, 3, 4):
        with subprocess.Popen([sys.executable, "-m", "hoodie", *command], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(told):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
    assert main(command) == 0
    assert ids(str(path)) == list(range(200))
    assert hoodie.open_table(path).doctor().findings == ()


# -- what a user says --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "options", "match"),
    [
        ("sqlite:///nope.db", {"table": "t"}, r"database sqlite:///nope\.db is no file"),
        (None, {"table": "nope"}, r"table nope of database sqlite:///.* cannot be read: .*no such table: nope"),
        (None, {"table": "trips", "column": "nope"}, "no such column: nope"),
        (None, {}, "needs one of the source's options table and query, not none"),
        (None, {"table": "trips", "query": "SELECT 1"}, "not table and query"),
        (None, {"tabel": "trips"}, "'tabel' is no option of a database as a source; there are table, query"),
        (None, {**TRIPS, "look_back": "soon"}, "look_back='soon' is no number"),
        (None, {**TRIPS, "strict": "maybe"}, "strict='maybe' is neither"),
        (None, {**TRIPS, "strict": "true", "look_back": "1"}, "both strict and with look_back"),
        (None, {"table": "trips", "look_back": "1"}, "need column"),
        (None, {"table": "trips", "column": "v", "look_back": "1"}, "no meaning for a column of texts"),
        (None, {"table": "trips", "column": "raw"}, "an incremental column has finite numbers, times or texts"),
        (None, {**TRIPS, "adbc.nope": "1"}, "cannot be read: .*nope"),
        ("nope://host/db", {"table": "t", "driver": "adbc_driver_nope"}, "adbc-driver-nope is not installed"),
    ],
)
def test_what_makes_no_sense_is_named(shop: Shop, address: str | None, options: dict[str, str], match: str) -> None:
    shop.run("INSERT INTO trips (id, at, v, raw) VALUES (1, 1, 'x', x'00')")
    t = target()

    def twice() -> None:
        for _ in range(2):
            hoodie.ingest(address or shop.uri, t, format="database", record_key="id", source_options=options)

    with pytest.raises(HoodieError, match=match):
        twice()


@pytest.mark.parametrize(
    ("address", "options"),
    [
        ("postgresql://bob:s3%cret@127.0.0.1:1/x", {}),
        ("postgresql://127.0.0.1:1/x?user=bob&password=s3%25cret&nope=1", {}),
        ("jdbc:postgresql://127.0.0.1:1/x", {"user": "bob", "password": "s3%cret"}),
    ],
)
def test_errors_name_the_database_and_the_table_and_not_the_password(address: str, options: dict[str, str]) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(HoodieError) as raised:
        hoodie.ingest(address, target(), record_key="id", source_options={"table": "public.t", **options})
    told = f"{raised.value} {raised.value!r} {raised.value.__cause__} {database_source('', address, {'table': 't', **options})!r}"
    assert "table public.t of database postgresql://127.0.0.1:1/x cannot be read" in told
    assert "s3%" not in told


def test_the_password_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3 cret\n")
    options = {"table": "t", "user": "bob", "password_file": str(tmp_path / "password")}
    assert database_source("", "postgres://h/x", options).database.uri == "postgres://bob:s3%20cret@h/x"
    with pytest.raises(OptionError, match=r"password_file=.*nope' cannot be read: No such file"):
        database_source("", "postgres://h/x", {**options, "password_file": str(tmp_path / "nope")})


def test_the_database_is_not_written(shop: Shop) -> None:
    with pytest.raises(HoodieError, match="cannot be read"):
        hoodie.ingest(shop.uri, target(), record_key="id", source_options={"query": "DELETE FROM trips RETURNING id"})


def test_sqlite_is_read_while_another_connection_has_written_and_not_committed(shop: Shop) -> None:
    shop.insert((1, 1))
    with closing(sqlite3.connect(shop.path)) as other:
        other.execute("INSERT INTO trips (id, at) VALUES (2, 2)")
        t = target()
        hoodie.ingest(shop.uri, t, record_key="id", operation="insert", source_options=TRIPS)
        assert ids(t) == [1]
        other.commit()
    hoodie.ingest(shop.uri, t, operation="insert", source_options=TRIPS)
    assert ids(t) == [1, 2]
