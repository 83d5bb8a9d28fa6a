"""Marks in a storage that no system locks: of this machine's processes, of others', of writers that were paused."""

from __future__ import annotations

import errno
import json
from dataclasses import replace

import pytest

from hoodie.errors import LockError
from hoodie.lock.holder import this_process
from hoodie.lock.liveness import live_path
from hoodie.lock.storage_liveness import StorageLiveness
from hoodie.model.names import heartbeat_path
from hoodie.options.concurrency import CONCURRENCY
from hoodie.storage.faults import Fault, FaultStorage
from hoodie.storage.memory import MemoryStorage
from tests.memory_tables import FakeClock

T = "20260101093000000"
OPTIONS = replace(CONCURRENCY, heartbeat_interval_s=10.0, heartbeat_misses=2)
EXPIRY_S = 25.0
ELSEWHERE = this_process()._replace(host="elsewhere", pid=7)
DEAD_HERE = this_process()._replace(started="1")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def storage(clock: FakeClock) -> MemoryStorage:
    return MemoryStorage(clock=clock)


def mark(storage: MemoryStorage, **fields: object) -> None:
    note = {"nonce": "theirs", "abandoned": False, **ELSEWHERE.note()} | fields
    storage.replace(live_path(T), json.dumps(note).encode())


def test_a_writer_of_another_machine_lives_while_its_heartbeat_is_fresh(
    storage: MemoryStorage, clock: FakeClock
) -> None:
    liveness = StorageLiveness(storage, OPTIONS)
    assert liveness.expiry_s == EXPIRY_S
    mark(storage)
    clock.sleep(20)
    storage.touch(heartbeat_path(T))
    clock.sleep(EXPIRY_S - 0.1)
    assert liveness.is_alive(T) is True
    with pytest.raises(LockError, match=f"{T} .* process 7 on elsewhere since"):
        liveness.hold(T)
    clock.sleep(0.2)
    assert liveness.is_alive(T) is False
    liveness.hold(T)
    assert liveness.is_alive(T) is True


def test_a_writer_that_has_not_beaten_yet_lives_by_its_mark(storage: MemoryStorage, clock: FakeClock) -> None:
    mark(storage)
    assert StorageLiveness(storage, OPTIONS).is_alive(T) is True
    clock.sleep(EXPIRY_S)
    assert StorageLiveness(storage, OPTIONS).is_alive(T) is False


def test_a_process_of_this_machine_that_is_gone_is_dead_however_fresh_its_heartbeat(storage: MemoryStorage) -> None:
    mark(storage, **DEAD_HERE.note())
    storage.touch(heartbeat_path(T))
    assert StorageLiveness(storage, OPTIONS).is_alive(T) is False


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"nonce": 1}'])
def test_a_mark_that_names_nobody_is_of_a_dead_writer(storage: MemoryStorage, content: bytes) -> None:
    storage.replace(live_path(T), content)
    liveness = StorageLiveness(storage, OPTIONS)
    assert liveness.is_alive(T) is False
    liveness.hold(T)
    assert liveness.is_alive(T) is True


def test_a_mark_that_another_took_over_meanwhile_is_neither_released_nor_abandoned(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for act in ("release", "abandon"):
        liveness = StorageLiveness(storage, OPTIONS)
        liveness.hold(T)
        mark(storage)
        monkeypatch.setattr(StorageLiveness, "_is_recent", lambda self, held: False)
        getattr(liveness, act)(T)
        assert json.loads(storage.read(live_path(T)))["nonce"] == "theirs"
        storage.delete(live_path(T))


@pytest.mark.parametrize("before", [None, b"torn"])
def test_a_mark_that_was_put_though_the_storage_said_no_holds_nobody_up(
    storage: MemoryStorage, before: bytes | None
) -> None:
    """A compaction is run under the same instant again and again."""
    if before is not None:
        storage.create_new(live_path(T), before)
    last = 1 if before is None else 2  # what is torn is deleted first
    failing = StorageLiveness(FaultStorage(storage, [Fault(last, "after", errno.EIO)]), OPTIONS)
    with pytest.raises(OSError, match="Input/output error"):
        failing.hold(T)
    assert storage.exists(live_path(T))
    liveness = StorageLiveness(storage, OPTIONS)
    assert liveness.is_alive(T) is False
    liveness.hold(T)
    assert liveness.is_alive(T) is True
