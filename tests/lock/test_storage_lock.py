"""The lock in a storage: what Apache Hudi sees of it, leases, pauses, lost answers, dead holders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from hoodie.errors import LockError, UnsupportedTableError
from hoodie.lock.holder import this_process
from hoodie.lock.storage_lock import DRIFT_S, LOCK_PATH, StorageLock
from hoodie.options.concurrency import CONCURRENCY
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from tests.clocks import Times

OPTIONS = replace(CONCURRENCY, storage_lease_s=10.0)
ELSEWHERE = this_process()._replace(host="elsewhere", pid=7)


@pytest.fixture
def times() -> Times:
    return Times()


def lock_of(storage: MemoryStorage, times: Times) -> StorageLock:
    return StorageLock(storage, OPTIONS, times.waiting, times.clocks)


def note(storage: MemoryStorage) -> dict[str, object]:
    found: dict[str, object] = json.loads(storage.read(LOCK_PATH))
    return found


def by_another(storage: MemoryStorage, times: Times, **fields: object) -> None:
    """What somebody on another machine would write."""
    until_ms = int((times.wall_s + 10) * 1000)
    held = {"expired": False, "validUntil": until_ms, "owner": "0000", **ELSEWHERE.note()} | fields
    storage.replace(LOCK_PATH, json.dumps(held).encode())


def test_the_file_has_the_fields_of_apache_hudi_and_says_who_holds_it(times: Times) -> None:
    storage = MemoryStorage()
    lock = lock_of(storage, times)
    with lock.held(0):
        held = note(storage)
        assert LOCK_PATH == ".hoodie/.locks/table_lock.json"
        assert held["expired"] is False
        assert held["validUntil"] == int((times.wall_s + 10) * 1000)
        assert held["pid"] == os.getpid()
    assert note(storage)["expired"] is True
    assert note(storage)["owner"] == held["owner"]


def test_a_lock_of_apache_hudi_is_respected_until_its_lease_and_the_drift_of_clocks_are_over(times: Times) -> None:
    storage = MemoryStorage()
    until_ms = int((times.wall_s + 30) * 1000)
    storage.replace(LOCK_PATH, b'{"expired":false,"validUntil":%d,"owner":"a-uuid"}' % until_ms)
    lock = lock_of(storage, times)
    with pytest.raises(LockError, match="owner a-uuid, another program"):
        lock.acquire(0)
    times.pass_by(30 + DRIFT_S)
    with pytest.raises(LockError):
        lock.acquire(0)
    times.pass_by(0.01)
    lock.acquire(0)
    lock.release()
    storage.replace(LOCK_PATH, b'{"expired":true,"validUntil":%d,"owner":"a-uuid"}' % (until_ms * 2))
    lock.acquire(0)


def test_no_two_writes_of_the_file_have_the_same_bytes(times: Times) -> None:
    storage = MemoryStorage()
    lock = lock_of(storage, times)
    seen = set()
    for _ in range(5):
        with lock.held(0):
            seen.add(storage.read(LOCK_PATH))
        seen.add(storage.read(LOCK_PATH))
    assert len(seen) == 10


def test_a_holder_that_was_paused_beyond_its_lease_knows_it_and_stays_without_the_lock(times: Times) -> None:
    storage = MemoryStorage()
    lock = lock_of(storage, times)
    lock.acquire(0)
    times.pass_by(9.9)
    assert lock.is_held()
    assert not lock.is_known_lost()
    times.pass_by(0.1)
    assert lock.is_known_lost()
    assert not lock.is_held()
    times.pass_by(-5)  # a clock that is set back makes nothing good again
    assert not lock.is_held()
    before = storage.read(LOCK_PATH)
    lock.release()
    assert storage.read(LOCK_PATH) == before


@pytest.mark.parametrize("clock", ["wall_s", "monotonic_s"])
def test_one_clock_that_ran_on_is_enough_to_lose_the_lock(times: Times, clock: str) -> None:
    lock = lock_of(MemoryStorage(), times)
    lock.acquire(0)
    setattr(times, clock, getattr(times, clock) + 10)
    assert lock.is_known_lost()


def test_a_lock_that_another_took_is_neither_held_nor_released(times: Times) -> None:
    storage = MemoryStorage()
    lock = lock_of(storage, times)
    lock.acquire(0)
    by_another(storage, times)
    assert not lock.is_held()
    lock.release()
    assert note(storage)["owner"] == "0000"
    with pytest.raises(LockError, match="process 7 on elsewhere since"):
        lock.acquire(0)


def test_a_dead_process_of_this_machine_holds_up_nobody(times: Times) -> None:
    storage = MemoryStorage()
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "import json; from hoodie.lock.holder import this_process; print(json.dumps(this_process().note()))",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    by_another(storage, times, **json.loads(child.stdout))
    with lock_of(storage, times).held(0):
        pass
    by_another(storage, times, **this_process()._replace(started="1").note())  # its id is another's now
    lock_of(storage, times).acquire(0)


class Deaf(MemoryStorage):
    """The next write takes effect, and its answer is lost."""

    deaf = False

    def create_new(self, path: str, data: bytes, *, via: str | None = None, durable: bool = True) -> None:
        super().create_new(path, data, via=via, durable=durable)
        self._answer()

    def swap(self, path: str, data: bytes, tag: Hashable) -> Hashable:
        new = super().swap(path, data, tag)
        self._answer()
        return new

    def _answer(self) -> None:
        if self.deaf:
            self.deaf = False
            raise TimeoutError("no answer")


@pytest.mark.parametrize("turns_before", [0, 1])
def test_a_lock_whose_grant_was_not_heard_of_is_taken_at_the_next_look(times: Times, turns_before: int) -> None:
    storage = Deaf()
    lock = lock_of(storage, times)
    for _ in range(turns_before):
        with lock.held(0):
            pass
    storage.deaf = True
    lock.acquire(1)
    assert lock.is_held()
    lock.release()
    assert note(storage)["expired"] is True


def test_a_release_whose_answer_was_lost_is_a_release(times: Times) -> None:
    storage = Deaf()
    lock = lock_of(storage, times)
    lock.acquire(0)
    storage.deaf = True
    lock.release()
    lock_of(storage, times).acquire(0)


def test_the_lock_is_renewed_while_it_is_held_also_after_a_lost_answer() -> None:
    storage = Deaf()
    lock = StorageLock(storage, replace(CONCURRENCY, storage_lease_s=0.5))
    lock.acquire(0)
    first = note(storage)["validUntil"]
    storage.deaf = True
    waiter = StorageLock(storage, replace(CONCURRENCY, storage_lease_s=0.5))
    with pytest.raises(LockError):
        _from_another_thread(waiter, 1.5)
    assert lock.is_held()
    assert note(storage)["validUntil"] > first  # type: ignore[operator]
    lock.release()


def _from_another_thread(lock: StorageLock, timeout_s: float) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lock.acquire, timeout_s).result()


def test_a_file_that_is_no_lock_is_an_error_that_names_it(times: Times) -> None:
    storage = MemoryStorage()
    for content in (b"", b"[]", b'{"expired": 1}', b'{"expired": "no", "validUntil": 1, "owner": "x"}'):
        storage.replace(LOCK_PATH, content)
        with pytest.raises(LockError, match="is no lock file"):
            lock_of(storage, times).acquire(0)


def test_a_storage_that_cannot_compare_and_swap_is_refused(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(UnsupportedTableError, match="name another provider"):
        StorageLock(LocalStorage(tmp_path))
