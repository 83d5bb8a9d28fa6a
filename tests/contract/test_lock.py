"""What every Lock and every Liveness promises, held against each provider and each storage that it serves."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hoodie.errors import LockError, OptionError, UnsupportedTableError
from hoodie.lock.base import Coordination, Liveness, Lock, Waiting
from hoodie.lock.file_lock import FileLock
from hoodie.lock.in_process import InProcessLock
from hoodie.lock.liveness import LIVE_FOLDER, FileLiveness
from hoodie.lock.providers import BY_STORAGE, PROVIDERS, coordinate
from hoodie.lock.registry import held_by_this_thread
from hoodie.lock.storage_liveness import StorageLiveness
from hoodie.lock.storage_lock import StorageLock
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.option import key_of
from hoodie.options.values import LOCK_PROVIDER_CLASSES, LockProvider
from hoodie.storage.base import ConditionalStorage, Storage
from hoodie.storage.faults import Fault, FaultStorage
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from tests.servers.s3 import AWS, shared_moto
from tests.servers.zookeeper import ZooKeeper
from tests.storages import EVERY

HIVE_SERVER = "HOODIE_TEST_HIVE"
"""Names a running metastore (`integration/test_contracts_on_servers.py`)."""
T = "20260101093000000"

Coordinated = Callable[..., Coordination]


class Clock:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.pauses_s: list[float] = []

    def sleep(self, pause_s: float) -> None:
        self.pauses_s.append(pause_s)

    def now_s(self) -> float:
        return sum(self.pauses_s)


@pytest.fixture(params=sorted(EVERY))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return EVERY[request.param](tmp_path)


@pytest.fixture(params=sorted(PROVIDERS))
def coordinated(request: pytest.FixtureRequest, storage: Storage) -> Coordinated:
    """`coordinate` by each provider that serves the storage."""
    options = ConcurrencyOptions(lock_provider=request.param)
    if request.param is LockProvider.STORAGE and not isinstance(storage.lock_root, ConditionalStorage):
        pytest.skip("this storage cannot compare and swap")
    if request.param in (LockProvider.ZOOKEEPER, LockProvider.ZOOKEEPER_IMPLICIT):
        if not isinstance(storage, MemoryStorage):
            pytest.skip("a lock elsewhere is the same wherever the table lies")
        server: ZooKeeper = request.getfixturevalue("zookeeper_server")
        options = replace(
            options,
            zookeeper_url=server.address,
            zookeeper_base_path=f"/{uuid.uuid4()}",
            zookeeper_lock_key="trips",
            zookeeper_session_s=4.0,
        )
    if request.param in (LockProvider.DYNAMODB, LockProvider.DYNAMODB_IMPLICIT):
        if not isinstance(storage, MemoryStorage):
            pytest.skip("a lock elsewhere is the same wherever the table lies")
        options = replace(
            options,
            dynamodb_table="locks",
            dynamodb_key=uuid.uuid4().hex,
            dynamodb_endpoint=shared_moto().endpoint,
            aws=AWS,
        )
    if request.param is LockProvider.HIVE_METASTORE:
        uris = os.environ.get(HIVE_SERVER)
        if uris is None or not isinstance(storage, MemoryStorage):
            pytest.skip(f"{HIVE_SERVER} names no metastore, or another storage has it")
        options = replace(options, hive_uris=uris, hive_database="lake", hive_table=f"t{uuid.uuid4().hex}")
    return partial(coordinate, options=options)


@pytest.fixture
def longest_pause_s(storage: Storage, coordinated: Coordinated) -> float:
    """A look at a lock that is elsewhere costs a request."""
    return 0.05 if isinstance(coordinated(storage).lock, FileLock | InProcessLock) else 0.5


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lock(storage: Storage, coordinated: Coordinated, clock: Clock) -> Iterator[Lock]:
    made = coordinated(storage, waiting=Waiting(clock.sleep, clock.now_s)).lock
    yield made
    made.release()


@pytest.fixture
def liveness(storage: Storage, coordinated: Coordinated, clock: Clock) -> Iterator[Liveness]:
    made = coordinated(storage, waiting=Waiting(clock.sleep, clock.now_s)).liveness
    yield made
    made.release(T)


@contextmanager
def held_elsewhere(storage: Storage, coordinated: Coordinated) -> Iterator[None]:
    """The lock in the hands of another thread, through another object."""
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with coordinated(storage).lock.held(0):
            taken.set()
            over.wait()

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        assert taken.wait(10)
        try:
            yield
        finally:
            over.set()
            holding.result()


# -- the lock


def test_implementation_satisfies_the_protocol(lock: Lock) -> None:
    assert isinstance(lock, Lock)


def test_lock_is_held_from_acquire_to_release(lock: Lock) -> None:
    assert not lock.is_held()
    lock.acquire(0)
    assert lock.is_held()
    lock.release()
    assert not lock.is_held()
    lock.acquire(0)
    assert lock.is_held()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_child_neither_holds_the_lock_nor_releases_it(lock: Lock) -> None:
    with lock.held(0):
        child = os.fork()
        if child == 0:
            held = lock.is_held() or bool(held_by_this_thread())
            lock.release()
            os._exit(held)
        assert os.waitpid(child, 0)[1] == 0
        assert lock.is_held()


def test_block_releases_also_after_an_exception(lock: Lock) -> None:
    def fail() -> None:
        with lock.held(0):
            assert lock.is_held()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not lock.is_held()
    lock.acquire(0)


def test_release_without_the_lock_takes_it_from_nobody(storage: Storage, coordinated: Coordinated, lock: Lock) -> None:
    lock.release()
    with held_elsewhere(storage, coordinated):
        lock.release()
        with pytest.raises(LockError):
            lock.acquire(0)


def test_refused_lock_names_the_table_and_its_holder(storage: Storage, coordinated: Coordinated, lock: Lock) -> None:
    with held_elsewhere(storage, coordinated), pytest.raises(LockError, match="this process") as caught:
        lock.acquire(0)
    assert storage.uri in str(caught.value)
    assert not lock.is_held()


def test_acquire_waits_with_growing_pauses_until_the_time_is_over(
    storage: Storage, coordinated: Coordinated, lock: Lock, clock: Clock, longest_pause_s: float
) -> None:
    with held_elsewhere(storage, coordinated), pytest.raises(LockError, match=r"2\.0 s"):
        lock.acquire(2.0)
    assert clock.now_s() == pytest.approx(2.0)
    assert clock.pauses_s[:3] == [0.001, 0.002, 0.004]
    assert max(clock.pauses_s) == longest_pause_s


def test_acquire_gets_the_lock_when_it_is_released_meanwhile(storage: Storage, coordinated: Coordinated) -> None:
    holding = held_elsewhere(storage, coordinated)
    holding.__enter__()
    pauses = itertools.count(1)

    def release_at_the_third_pause(pause_s: float) -> None:
        if next(pauses) == 3:
            holding.__exit__(None, None, None)

    lock = coordinated(storage, waiting=Waiting(release_at_the_third_pause, lambda: 0.0)).lock
    with lock.held(1.0):
        assert next(pauses) == 4


def test_zero_timeout_tries_once_without_sleeping(
    storage: Storage, coordinated: Coordinated, lock: Lock, clock: Clock
) -> None:
    with held_elsewhere(storage, coordinated), pytest.raises(LockError):
        lock.acquire(0)
    assert clock.pauses_s == []


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan"), float("inf")])
def test_senseless_timeout_is_an_option_error(lock: Lock, timeout_s: float) -> None:
    with pytest.raises(OptionError, match=str(timeout_s)):
        lock.acquire(timeout_s)
    assert not lock.is_held()


def test_thread_that_holds_the_lock_is_refused_at_once(
    storage: Storage, coordinated: Coordinated, lock: Lock, clock: Clock
) -> None:
    with lock.held(0):
        for again in (lock, coordinated(storage, waiting=Waiting(clock.sleep, clock.now_s)).lock):
            with pytest.raises(LockError, match="by this thread"):
                again.acquire(60)
        assert lock.is_held()
    assert clock.pauses_s == []


@pytest.fixture
def answers_one(request: pytest.FixtureRequest) -> None:
    """moto, the server behind "s3", looks first and puts then: under load two may win."""
    if request.node.callspec.params["storage"] == "s3":
        pytest.skip("moto does not compare and swap in one step")


@pytest.mark.usefixtures("answers_one")
def test_threads_that_share_one_lock_object_exclude_each_other(storage: Storage, coordinated: Coordinated) -> None:
    assert count_up(storage, [coordinated(storage).lock] * 4) == 40


@pytest.mark.usefixtures("answers_one")
def test_threads_with_a_lock_object_each_exclude_each_other(storage: Storage, coordinated: Coordinated) -> None:
    assert count_up(storage, [coordinated(storage).lock for _ in range(4)]) == 40


def count_up(storage: Storage, locks: list[Lock]) -> int:
    """What a counter file shows after each lock's thread has added 1 ten times, reading it first."""
    storage.replace("counter", b"0")

    def add(lock: Lock) -> None:
        for _ in range(10):
            with lock.held(30):
                storage.replace("counter", b"%d" % (int(storage.read("counter")) + 1))

    with ThreadPoolExecutor(len(locks)) as pool:
        list(pool.map(add, locks))
    return int(storage.read("counter"))


def test_locks_of_two_tables_do_not_meet(tmp_path: Path) -> None:
    tables = [LocalStorage(tmp_path / "a"), LocalStorage(tmp_path / "b"), MemoryStorage(), MemoryStorage()]
    locks = [coordinate(table).lock for table in tables]
    for lock in locks:
        lock.acquire(0)
    assert all(lock.is_held() for lock in locks)
    for lock in locks:
        lock.release()


def test_locking_is_no_call_that_faults_count(storage: Storage, coordinated: Coordinated) -> None:
    faulty = FaultStorage(storage, [Fault(1)])
    with coordinated(faulty).lock.held(0):
        coordinated(faulty).liveness.hold(T)
        coordinated(faulty).liveness.release(T)
    assert faulty.trace == ()


def test_storage_that_nothing_can_lock_is_refused() -> None:
    remote = MemoryStorage("s3://bucket/table")
    for make in (FileLock, FileLiveness):
        with pytest.raises(UnsupportedTableError, match="s3://bucket/table"):
            make(remote)


def test_memory_gets_the_lock_of_this_process_and_a_disk_the_file_lock(tmp_path: Path) -> None:
    assert isinstance(coordinate(MemoryStorage()).lock, InProcessLock)
    assert isinstance(coordinate(LocalStorage(tmp_path)).lock, FileLock)


def test_a_wrapped_storage_is_locked_as_the_one_inside(tmp_path: Path) -> None:
    for inner in (LocalStorage(tmp_path), MemoryStorage()):
        assert FaultStorage(FaultStorage(inner)).lock_root is inner
        with coordinate(FaultStorage(inner)).lock.held(0), pytest.raises(LockError):
            coordinate(inner).lock.acquire(0)


def test_a_storage_that_brings_no_lock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(BY_STORAGE, LocalStorage)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedTableError, match="no lock for tables in /"):
        coordinate(LocalStorage("/nowhere"))


def test_a_storage_that_compares_and_swaps_needs_no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(BY_STORAGE, MemoryStorage)  # type: ignore[arg-type]
    made = coordinate(MemoryStorage())
    assert isinstance(made.lock, StorageLock)
    assert isinstance(made.liveness, StorageLiveness)


def test_every_provider_has_its_maker() -> None:
    named = {key_of(ConcurrencyOptions, "lock_provider").parse(name) for name in [*PROVIDERS, *LOCK_PROVIDER_CLASSES]}
    assert named == set(PROVIDERS) == set(LockProvider)


# -- liveness


def test_nothing_is_known_of_an_instant_without_a_mark(liveness: Liveness) -> None:
    assert isinstance(liveness, Liveness)
    assert liveness.is_alive(T) is None


def test_writer_is_alive_from_hold_to_release_and_leaves_nothing(
    storage: Storage, coordinated: Coordinated, liveness: Liveness
) -> None:
    liveness.hold(T)
    assert liveness.is_alive(T) is True
    assert coordinated(storage).liveness.is_alive(T) is True
    assert liveness.is_alive("20260101093000001") is None
    liveness.release(T)
    assert liveness.is_alive(T) is None
    assert storage.list("", recursive=True) == []


def test_abandoned_writer_is_dead_and_can_be_tidied_up(storage: Storage, liveness: Liveness) -> None:
    liveness.hold(T)
    liveness.abandon(T)
    assert liveness.is_alive(T) is False
    assert [info.path for info in storage.list(LIVE_FOLDER)] == [f"{LIVE_FOLDER}/{T}"]
    liveness.release(T)
    assert liveness.is_alive(T) is None
    assert storage.list(LIVE_FOLDER) == []


def test_mark_of_a_dead_writer_is_taken_over(liveness: Liveness) -> None:
    liveness.hold(T)
    liveness.abandon(T)
    liveness.hold(T)
    assert liveness.is_alive(T) is True


def test_instant_in_living_hands_is_refused(storage: Storage, coordinated: Coordinated, liveness: Liveness) -> None:
    liveness.hold(T)
    for other in (liveness, coordinated(storage).liveness):
        with pytest.raises(LockError, match=T):
            other.hold(T)
    assert liveness.is_alive(T) is True


def test_a_mark_names_its_holder(storage: Storage, coordinated: Coordinated, liveness: Liveness) -> None:
    assert liveness.holder(T) is None
    liveness.hold(T)
    assert "this process" in str(coordinated(storage).liveness.holder(T))


def test_marks_are_those_of_the_living_and_of_the_dead(
    storage: Storage, coordinated: Coordinated, liveness: Liveness
) -> None:
    assert liveness.marks() == frozenset()
    liveness.hold(T)
    liveness.hold("20260101093000001")
    liveness.abandon("20260101093000001")
    assert coordinated(storage).liveness.marks() == {T, "20260101093000001"}
    liveness.release("20260101093000001")
    assert liveness.marks() == {T}


def test_another_object_of_this_process_may_release(
    storage: Storage, coordinated: Coordinated, liveness: Liveness
) -> None:
    coordinated(storage).liveness.hold(T)
    liveness.release(T)
    assert liveness.is_alive(T) is None


def test_release_and_abandon_without_a_mark_do_nothing(storage: Storage, liveness: Liveness) -> None:
    liveness.release(T)
    liveness.abandon(T)
    assert not storage.exists(LIVE_FOLDER)


def test_instants_are_independent(liveness: Liveness) -> None:
    liveness.hold(T)
    liveness.hold("20260101093000001")
    liveness.abandon("20260101093000001")
    assert liveness.is_alive(T) is True
    assert liveness.is_alive("20260101093000001") is False


@pytest.mark.parametrize("instant", ["", "../x", "a/b", ".", "..", "a\0b"])
def test_what_cannot_name_a_mark_is_no_instant(liveness: Liveness, instant: str) -> None:
    for act in (liveness.hold, liveness.release, liveness.is_alive):
        with pytest.raises(ValueError, match="not an instant"):
            act(instant)


def test_copies_of_a_table_in_memory_share_neither_lock_nor_life() -> None:
    table = MemoryStorage()
    coordinate(table).liveness.hold(T)
    with coordinate(table).lock.held(0):
        copy = table.copy()
        assert coordinate(copy).liveness.is_alive(T) is False
        with coordinate(copy).lock.held(0):
            assert coordinate(copy).lock.is_held() is False


def test_locking_does_not_keep_a_table_in_memory_alive() -> None:
    table = MemoryStorage()
    with coordinate(table).lock.held(0):
        coordinate(table).liveness.hold(T)
    gone = weakref.ref(table)
    del table
    gc.collect()
    assert gone() is None
