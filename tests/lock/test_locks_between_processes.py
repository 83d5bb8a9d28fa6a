"""Locks at their worst moments, between real processes: a holder that is paused, killed or cut off, and writers in such a state."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from hoodie.table import open_at
from tests.lock.processes import COUNTER, HOLDER, WRITER, Process, storage_of
from tests.memory_tables import create
from tests.servers.proxy import Proxy
from tests.servers.zookeeper import ZooKeeper

LEASE_S = 1
STORAGE = {"hoodie.write.lock.provider": "storage", "hoodie.write.lock.storage.validity.timeout.secs": str(LEASE_S)}
FILESYSTEM = {"hoodie.write.lock.provider": "filesystem"}

pytestmark = pytest.mark.long


def zookeeper_options(address: str, **more: str) -> dict[str, str]:
    prefix = "hoodie.write.lock.zookeeper"
    given = {"url": address, "base_path": f"/{uuid.uuid4()}", "lock_key": "t", "session_timeout_ms": "1000", **more}
    return {"hoodie.write.lock.provider": "zookeeper"} | {f"{prefix}.{key}": value for key, value in given.items()}


@pytest.fixture(params=["storage", "zookeeper", "filesystem"])
def options(request: pytest.FixtureRequest) -> Mapping[str, str]:
    if request.param == "zookeeper":
        server: ZooKeeper = request.getfixturevalue("zookeeper_server")
        return zookeeper_options(server.address)
    return STORAGE if request.param == "storage" else FILESYSTEM


@pytest.fixture
def path(tmp_path: Path) -> str:
    return f"swap:{tmp_path / 'table'}"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as processes:
        yield processes


def test_processes_exclude_each_other(path: str, options: Mapping[str, str], stack: ExitStack) -> None:
    storage = storage_of(path)
    storage.replace("counter", b"0")
    counters = [stack.enter_context(Process(COUNTER, path, options)) for _ in range(2)]
    for counter in counters:
        counter.tell("15")
    assert [counter.answer() for counter in counters] == ["done"] * 2
    assert storage.read("counter") == b"30"


def test_a_refusal_names_the_process_that_holds_the_lock(
    path: str, options: Mapping[str, str], stack: ExitStack
) -> None:
    one, two = (stack.enter_context(Process(HOLDER, path, options)) for _ in range(2))
    assert one.ask("acquire 0") == "None"
    refused = two.ask("acquire 0")
    assert refused.startswith("LockError")
    assert f"process {one.pid} on " in refused
    assert one.ask("is_held") == "True"
    assert one.ask("release") == "None"
    assert two.ask("acquire 0") == "None"


def test_the_lock_of_a_killed_process_is_granted_to_the_next(
    path: str, options: Mapping[str, str], stack: ExitStack
) -> None:
    one, two = (stack.enter_context(Process(HOLDER, path, options)) for _ in range(2))
    assert one.ask("acquire 0") == "None"
    one.kill()
    began_s = time.monotonic()
    assert two.ask("acquire 20") == "None"
    at_once = "zookeeper" not in options["hoodie.write.lock.provider"]
    assert time.monotonic() - began_s < (0.5 if at_once else 10)  # the session has to end first
    assert two.ask("is_held") == "True"


def test_a_holder_that_was_paused_for_too_long_has_lost_the_lock_and_disturbs_nobody(
    path: str, options: Mapping[str, str], stack: ExitStack
) -> None:
    if options is FILESYSTEM:
        pytest.skip("has no lease: a paused process keeps it")
    one, two = (stack.enter_context(Process(HOLDER, path, options)) for _ in range(2))
    assert one.ask("acquire 0") == "None"
    one.stop()
    assert two.ask("acquire 20") == "None"
    one.go_on()
    assert one.ask("is_held") == "False"
    assert one.ask("release") == "None"
    assert two.ask("is_held") == "True"
    assert one.ask("acquire 0").startswith("LockError")
    assert two.ask("release") == "None"
    assert one.ask("acquire 5") == "None"
    assert one.ask("is_held") == "True"


def test_a_paused_holder_keeps_a_lock_file_without_expiry(path: str, stack: ExitStack) -> None:
    one, two = (stack.enter_context(Process(HOLDER, path, FILESYSTEM)) for _ in range(2))
    assert one.ask("acquire 0") == "None"
    one.stop()
    assert two.ask("acquire 1").startswith("LockError")
    one.go_on()
    assert one.ask("is_held") == "True"


# -- ZooKeeper behind a connection that breaks


def test_a_connection_that_comes_back_within_the_session_keeps_the_lock(
    zookeeper_server: ZooKeeper, path: str, stack: ExitStack
) -> None:
    proxy = stack.enter_context(Proxy(zookeeper_server.port))
    options = zookeeper_options(proxy.address, session_timeout_ms="4000")
    one = stack.enter_context(Process(HOLDER, path, options))
    two = stack.enter_context(
        Process(HOLDER, path, options | {"hoodie.write.lock.zookeeper.url": zookeeper_server.address})
    )
    assert one.ask("acquire 0") == "None"
    proxy.cut()
    proxy.mend()
    assert one.ask("is_held") == "True"
    assert two.ask("acquire 0").startswith("LockError")
    assert one.ask("release") == "None"
    assert two.ask("acquire 5") == "None"


def test_a_connection_that_is_gone_for_longer_loses_the_lock(
    zookeeper_server: ZooKeeper, path: str, stack: ExitStack
) -> None:
    proxy = stack.enter_context(Proxy(zookeeper_server.port))
    options = zookeeper_options(proxy.address, connection_timeout_ms="1500")
    one = stack.enter_context(Process(HOLDER, path, options))
    two = stack.enter_context(
        Process(HOLDER, path, options | {"hoodie.write.lock.zookeeper.url": zookeeper_server.address})
    )
    assert one.ask("acquire 0") == "None"
    proxy.cut()
    assert two.ask("acquire 20") == "None"
    assert one.ask("is_held") == "False"
    refused = one.ask("acquire 0")
    assert refused.startswith("LockError")
    proxy.mend()
    assert one.ask("is_held") == "False"
    assert two.ask("is_held") == "True"
    assert two.ask("release") == "None"
    assert one.ask("acquire 10") == "None"


def test_a_zookeeper_that_is_not_there_is_told_with_its_address(path: str, stack: ExitStack) -> None:
    options = zookeeper_options("127.0.0.1:1", connection_timeout_ms="300")
    one = stack.enter_context(Process(HOLDER, path, options))
    refused = one.ask("acquire 0")
    assert refused.startswith("LockError")
    assert "127.0.0.1:1" in refused


# -- writers


BEATS = {"hoodie.client.heartbeat.interval_in_ms": "500", "hoodie.client.heartbeat.tolerable.misses": "1"}
EXPIRY_S = 0.5 + 5


@pytest.fixture
def table(path: str, options: Mapping[str, str], stack: ExitStack) -> tuple[str, Process, Process]:
    create(storage_of(path), table_type="COPY_ON_WRITE")
    one, two = (stack.enter_context(Process(WRITER, path, {**options, **BEATS})) for _ in range(2))
    assert one.ask("k 1 -")[:2] == "20"
    return path, one, two


def rows(path: str) -> list[tuple[str, int]]:
    found = open_at(storage_of(path)).scan().to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["val"].to_pylist(), strict=True))


def test_a_writer_that_was_paused_under_the_lock_beyond_its_lease_does_not_publish(
    table: tuple[str, Process, Process], options: Mapping[str, str]
) -> None:
    if options is FILESYSTEM:
        pytest.skip("has no lease: a paused process keeps it")
    path, one, two = table
    one.tell("k 2 _check")
    one.wait_until_stopped()
    assert two.ask("k 3 -")[:2] == "20"
    one.go_on()
    refused = one.answer()
    assert refused.startswith("LockError"), refused
    assert "run this write again" in refused
    assert rows(path) == [("k", 3)]
    assert one.ask("k 4 -")[:2] == "20"
    assert rows(path) == [("k", 4)]


def test_a_writer_that_was_paused_after_its_last_look_at_the_lock_does_not_publish_either(
    table: tuple[str, Process, Process], options: Mapping[str, str]
) -> None:
    if options is FILESYSTEM:
        pytest.skip("has no lease: a paused process keeps it")
    path, one, two = table
    one.tell("k 2 _publish")
    one.wait_until_stopped()
    late = pending(path)
    assert two.ask("k 3 -")[:2] == "20"
    one.go_on()
    assert one.answer()[:2] == "20"  # a conflict like others: the rows were written again, behind those of the other
    assert not [name for name in storage_of(path).names(".hoodie") if name.startswith(late)]
    assert rows(path) == [("k", 3)]


@pytest.mark.long
def test_a_writer_that_was_taken_for_dead_does_not_publish_what_was_rolled_back(
    table: tuple[str, Process, Process],
) -> None:
    path, one, two = table
    one.tell("k 2 commit")
    one.wait_until_stopped()
    dead = pending(path)
    time.sleep(EXPIRY_S + 0.5)
    assert two.ask("k 3 -")[:2] == "20"
    one.go_on()
    assert (
        one.answer()[:2] == "20"
    )  # rolled back, so it was a conflict: the rows were written again, behind those of the other
    assert not [name for name in storage_of(path).names(".hoodie") if name.startswith(dead)]
    assert rows(path) == [("k", 3)]


def pending(path: str) -> str:
    """The instant in work."""
    names = storage_of(path).names(".hoodie")
    begun = {name.partition(".")[0] for name in names if name.endswith(".inflight")}
    (instant,) = begun - {name.partition(".")[0] for name in names if name.endswith(".commit")}
    return instant


@pytest.mark.long
def test_a_killed_writer_of_this_machine_is_rolled_back_at_once(
    table: tuple[str, Process, Process], options: Mapping[str, str]
) -> None:
    path, one, two = table
    one.tell("k 2 commit")
    one.wait_until_stopped()
    one.kill()
    began_s = time.monotonic()
    assert two.ask("k 3 -")[:2] == "20"
    assert time.monotonic() - began_s < 4
    assert rows(path) == [("k", 3)]
    assert "rollback" in " ".join(storage_of(path).names(".hoodie"))
