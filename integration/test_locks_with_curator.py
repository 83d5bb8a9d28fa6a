"""Our lock in ZooKeeper beside Curator's, which is the one of Apache Hudi; and servers of which one is killed."""

from __future__ import annotations

import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie.errors import LockError
from hoodie.lock.providers import coordinate
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.options.values import LockProvider
from hoodie.storage.memory import MemoryStorage
from tests.servers.zookeeper import ZooKeeper, ensemble, jars_folder, zookeeper

ROUNDS = 100
CURATOR = """
import java.nio.file.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class Counting {
  public static void main(String[] given) throws Exception {
    CuratorFramework client = CuratorFrameworkFactory.newClient(given[0], 10000, 10000, new RetryOneTime(100));
    client.start();
    InterProcessMutex lock = new InterProcessMutex(client, given[1]);
    Path file = Paths.get(given[2]);
    System.out.println("ready");
    System.in.read();
    for (int n = 0; n < Integer.parseInt(given[3]); n++) {
      lock.acquire();
      Files.writeString(file, "" + (Integer.parseInt(Files.readString(file)) + 1));
      lock.release();
    }
    client.close();
  }
}
"""


def options_of(address: str, path: str, **more: float) -> ConcurrencyOptions:
    base_path, _, key = path.rpartition("/")
    given = replace(CONCURRENCY, lock_provider=LockProvider.ZOOKEEPER, zookeeper_url=address, **more)  # type: ignore[arg-type]
    return replace(given, zookeeper_base_path=base_path, zookeeper_lock_key=key)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeper]:
    with zookeeper(tmp_path / "zookeeper") as started:
        yield started


def test_curators_mutex_and_ours_exclude_each_other(server: ZooKeeper, tmp_path: Path) -> None:
    (tmp_path / "Counting.java").write_text(CURATOR)
    classes = f"{tmp_path}:{jars_folder()}/*"
    subprocess.run(["javac", "-cp", classes, "-d", str(tmp_path), str(tmp_path / "Counting.java")], check=True)
    path, counter = f"/{uuid.uuid4()}/trips", tmp_path / "counter"
    counter.write_text("0")
    lock = coordinate(MemoryStorage(), options_of(server.address, path)).lock
    command = ["java", "-cp", classes, "Counting", server.address, path, str(counter), str(ROUNDS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as curator:
        assert curator.stdin is not None
        assert curator.stdout is not None
        assert curator.stdout.readline() == b"ready\n"
        curator.stdin.write(b"\n")
        curator.stdin.flush()
        for _ in range(ROUNDS):
            with lock.held(60):
                counter.write_text(str(int(counter.read_text()) + 1))
        assert curator.wait(60) == 0
    assert counter.read_text() == str(2 * ROUNDS)


def test_the_lock_outlives_the_leader_of_three_servers(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = stack.enter_context(ensemble(tmp_path))
        address = ",".join(server.address for server in servers)
        storage = MemoryStorage()
        options = options_of(address, f"/{uuid.uuid4()}/trips", zookeeper_session_s=8.0)
        lock, other = coordinate(storage, options).lock, coordinate(storage, options).lock
        lock.acquire(10)
        leader = next(server for server in servers if server.is_leader())
        leader.stop()
        assert lock.is_held()
        with ThreadPoolExecutor(1) as pool, pytest.raises(LockError):
            pool.submit(other.acquire, 1.0).result()
        lock.release()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(other.acquire, 20.0).result()
        assert other.is_held()
        other.release()


def test_counters_go_on_when_the_leader_is_killed(tmp_path: Path) -> None:
    """Two of three always serve; nobody counts twice what another has counted."""
    with ensemble(tmp_path) as servers:
        address = ",".join(server.address for server in servers)
        storage = MemoryStorage()
        storage.replace("counter", b"0")
        options = options_of(address, f"/{uuid.uuid4()}/trips", zookeeper_session_s=4.0)
        done, counted = threading.Event(), [0, 0, 0]

        def count(me: int) -> None:
            lock = coordinate(storage, options).lock
            while not done.is_set():
                with lock.held(60):
                    before, tag = storage.read_tagged("counter")
                    if lock.is_held():
                        with suppress(FileExistsError):  # the session ended this moment, and another one has counted
                            storage.swap("counter", b"%d" % (int(before) + 1), tag)
                            counted[me] += 1

        with ThreadPoolExecutor(3) as pool:
            counting = [pool.submit(count, me) for me in range(3)]
            try:
                _wait_until(lambda: sum(counted) > 5)
                next(server for server in servers if server.is_leader()).stop()
                so_far = sum(counted)
                _wait_until(lambda: sum(counted) > so_far + 20)
            finally:
                done.set()
            for each in counting:
                each.result()
        assert int(storage.read("counter")) == sum(counted)


def _wait_until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline_s, "nobody counts any more"
        time.sleep(0.05)
