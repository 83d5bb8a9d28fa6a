"""Our lock in a Hive metastore: what is special about it. The contract of all locks is held in `test_contracts_on_servers.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.errors import LockError
from hoodie.lock import hive
from hoodie.lock.providers import coordinate
from hoodie.metastore.interface import interface
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.options.values import LockProvider
from hoodie.storage.memory import MemoryStorage
from tests.lock.interrupted import held_twice, is_interrupted_everywhere
from tests.servers.hive import HiveMetastore, hive_metastore


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as started:
        yield started


@pytest.fixture
def options(server: HiveMetastore, request: pytest.FixtureRequest) -> ConcurrencyOptions:
    """Of a table of the test's own; before the server that runs one is named that does not."""
    given = replace(
        CONCURRENCY, lock_provider=LockProvider.HIVE_METASTORE, hive_uris=f"thrift://127.0.0.1:1,{server.uri}"
    )
    return replace(given, hive_database="lake", hive_table=request.node.name[:100])


@pytest.fixture
def other(options: ConcurrencyOptions) -> Any:
    """Another program's connection to the metastore."""
    client = hive._connected(hive.place_of(MemoryStorage(), options))
    yield client
    client.close()


def entries(client: Any, options: ConcurrencyOptions) -> list[Any]:
    wanted = interface().ShowLocksRequest(dbname=options.hive_database, tablename=options.hive_table)
    return list(client.show_locks(wanted).locks)


def test_an_interrupt_at_any_line_leaves_no_entry(options: ConcurrencyOptions, other: Any) -> None:
    quick = replace(options, hive_uris=(options.hive_uris or "").rpartition(",")[2])

    def make() -> tuple[Any, Callable[[], bool]]:
        return coordinate(MemoryStorage(), quick).lock, lambda: not entries(other, quick)

    is_interrupted_everywhere(make, held_twice, least=60)


def test_a_lock_of_another_program_is_waited_for(options: ConcurrencyOptions, other: Any) -> None:
    api = interface()
    component = api.LockComponent(type=3, level=2, dbname="lake", tablename=options.hive_table, operationType=6)
    theirs = other.lock(api.LockRequest(component=[component], user="hudi", hostname="far"))
    lock = coordinate(MemoryStorage(), options).lock
    with pytest.raises(LockError, match="another program of hudi on far holds"):
        lock.acquire(0)
    assert len(entries(other, options)) == 1
    other.unlock(api.UnlockRequest(lockid=theirs.lockid))
    with lock.held(5):
        assert [entry.state for entry in entries(other, options)] == [1]
    assert entries(other, options) == []


@pytest.mark.parametrize("call", ["lock", "unlock"])
def test_an_answer_that_is_lost_leaves_no_lock_behind(
    options: ConcurrencyOptions, other: Any, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    lost = []

    class Losing:
        def __init__(self, client: Any) -> None:
            self._client = client

        def __getattr__(self, name: str) -> Any:
            def ask(*args: Any) -> Any:
                answer = getattr(self._client, name)(*args)
                if name == call and not lost:
                    lost.append(name)
                    raise ConnectionResetError
                return answer

            return ask

    connected = hive._connected
    monkeypatch.setattr(hive, "_connected", lambda place: Losing(connected(place)))
    lock = coordinate(MemoryStorage(), options).lock
    with lock.held(5):
        assert lock.is_held()
        assert len(entries(other, options)) == 1
    assert lost == [call]
    assert entries(other, options) == []


def test_a_lock_that_the_metastore_took_away_publishes_nothing(
    options: ConcurrencyOptions, other: Any, server: HiveMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "hoodie.write.lock.provider": "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        "hoodie.write.lock.hivemetastore.uris": server.uri,
        "hoodie.write.lock.hivemetastore.database": "lake",
        "hoodie.write.lock.hivemetastore.table": str(options.hive_table),
    }
    hoodie.create_table(tmp_path / "t", {"id": "int64"}, record_key="id")
    table = hoodie.open_table(tmp_path / "t", options=given)
    table.upsert({"id": [1]})
    stands, asked = hive._Request.stands, []

    def taken_away_first(request: Any) -> bool:
        asked.append(request)
        for entry in entries(other, options):
            other.unlock(interface().UnlockRequest(lockid=entry.lockid))
        return stands(request)

    monkeypatch.setattr(hive._Request, "stands", taken_away_first)
    with pytest.raises(LockError, match="lost the table lock"):
        table.upsert({"id": [2]})
    assert asked
    monkeypatch.undo()
    assert table.scan().to_arrow()["id"].to_pylist() == [1]
    table.upsert({"id": [3]})
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
