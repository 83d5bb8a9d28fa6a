"""What the locks on a disk promise between processes, through kill -9, forks and deleted files."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hoodie.errors import LockError
from hoodie.lock.base import Waiting
from hoodie.lock.file_lock import LOCK_PATH
from hoodie.lock.liveness import LIVE_FOLDER
from hoodie.lock.providers import coordinate
from hoodie.storage.local import LocalStorage

T = "20260101093000000"

PEER = """
import os, sys
from hoodie.errors import LockError
from hoodie.lock.providers import coordinate
from hoodie.storage.local import LocalStorage
storage = LocalStorage(sys.argv[1])
lock, liveness = coordinate(storage).lock, coordinate(storage).liveness
def say(what):
    print(what, flush=True)
say("ready")
for line in sys.stdin:
    verb, _, argument = line.strip().partition(" ")
    if verb == "acquire":
        lock.acquire(10)
        say("acquired")
    elif verb == "release":
        lock.release()
        say("released")
    elif verb == "hold":
        liveness.hold(argument)
        say("holding")
    elif verb == "is_alive":
        say(liveness.is_alive(argument))
    elif verb == "free":
        liveness.release(argument)
        say("freed")
    elif verb == "count":
        for _ in range(int(argument)):
            with lock.held(60):
                storage.replace("counter", b"%d" % (int(storage.read("counter")) + 1))
        say("counted")
    elif verb == "fork":
        if os.fork() == 0:
            say(os.getpid())
            sys.stdin.read()  # until the test, at the other end of the pipe, is over
            os._exit(0)
"""


class Peer:
    """Another process that does with the table's lock and marks what it is told."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PEER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self.answer() == "ready"

    def tell(self, order: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, order: str) -> str:
        self.tell(order)
        return self.answer()

    def kill(self) -> None:
        """As `kill -9`."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    made = Peer(tmp_path)
    yield made
    made.kill()
    made.process.__exit__(None, None, None)


@pytest.fixture
def table(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def test_processes_exclude_each_other(table: LocalStorage, tmp_path: Path, peer: Peer) -> None:
    other = Peer(tmp_path)
    table.replace("counter", b"0")
    for process in (peer, other):
        process.tell("count 50")
    assert [process.answer() for process in (peer, other)] == ["counted"] * 2
    other.kill()
    other.process.__exit__(None, None, None)
    assert table.read("counter") == b"100"


def test_refused_lock_names_the_process_that_holds_it(table: LocalStorage, peer: Peer) -> None:
    assert peer.ask("acquire") == "acquired"
    with pytest.raises(LockError, match=f"process {peer.process.pid} on .* since 20"):
        coordinate(table).lock.acquire(0)
    assert peer.ask("release") == "released"
    with coordinate(table).lock.held(0):
        assert table.exists(LOCK_PATH)


def test_killed_holder_frees_the_lock(table: LocalStorage, peer: Peer) -> None:
    assert peer.ask("acquire") == "acquired"
    lock = coordinate(table).lock
    with pytest.raises(LockError):
        lock.acquire(0)
    peer.kill()
    with lock.held(0):
        assert lock.is_held()


def test_killed_holder_frees_the_lock_though_a_forked_child_lives_on(table: LocalStorage, peer: Peer) -> None:
    assert peer.ask("acquire") == "acquired"
    assert peer.ask(f"hold {T}") == "holding"
    child = int(peer.ask("fork"))
    with pytest.raises(LockError):
        coordinate(table).lock.acquire(0)
    peer.kill()
    os.kill(child, 0)  # raises if the child were gone
    with coordinate(table).lock.held(0):
        assert coordinate(table).liveness.is_alive(T) is False


def test_killed_writer_is_dead_and_leaves_its_mark(table: LocalStorage, peer: Peer) -> None:
    liveness = coordinate(table).liveness
    impatient = coordinate(table, waiting=Waiting(lambda pause_s: None, itertools.count().__next__)).liveness
    assert liveness.is_alive(T) is None
    assert peer.ask(f"hold {T}") == "holding"
    assert liveness.is_alive(T) is True
    with pytest.raises(LockError, match=f"process {peer.process.pid}"):
        impatient.hold(T)
    impatient.release(T)
    assert liveness.is_alive(T) is True
    peer.kill()
    assert liveness.is_alive(T) is False
    liveness.release(T)
    assert liveness.is_alive(T) is None


def test_mark_released_by_another_process_is_gone_here_too(table: LocalStorage, peer: Peer) -> None:
    liveness = coordinate(table).liveness
    liveness.hold(T)
    assert peer.ask(f"is_alive {T}") == "True"
    liveness.abandon(T)
    assert peer.ask(f"is_alive {T}") == "False"
    assert peer.ask(f"free {T}") == "freed"
    assert liveness.is_alive(T) is None


# -- what a file lock can lose


def test_lock_is_no_longer_held_once_its_file_was_deleted(table: LocalStorage) -> None:
    lock, other = coordinate(table).lock, coordinate(table).lock
    lock.acquire(0)
    table.delete(LOCK_PATH)
    assert not lock.is_held()
    table.touch(LOCK_PATH)
    assert not lock.is_held()
    lock.release()
    with other.held(0):
        assert other.is_held()


def test_lock_is_no_longer_held_once_its_file_names_another(table: LocalStorage) -> None:
    lock = coordinate(table).lock
    with lock.held(0):
        path = table.can.local_path(LOCK_PATH)
        assert path is not None
        Path(path).write_text('{"pid": 1, "host": "elsewhere", "since": "then", "token": "other"}')
        assert not lock.is_held()


def test_lock_file_stays_and_names_nobody_when_the_lock_is_free(table: LocalStorage) -> None:
    with coordinate(table).lock.held(0):
        assert table.stat(LOCK_PATH).size_bytes > 0
    assert table.stat(LOCK_PATH).size_bytes == 0


def test_holder_that_left_no_name_is_called_so(table: LocalStorage, peer: Peer) -> None:
    assert peer.ask("acquire") == "acquired"
    path = table.can.local_path(LOCK_PATH)
    assert path is not None
    for left in (b"", b"{", b"[1]", b'"x"', b"\xff", b'{"pid": 1}'):
        Path(path).write_bytes(left)
        with pytest.raises(LockError, match="a holder who left no name"):
            coordinate(table).lock.acquire(0)


def test_lock_object_that_was_dropped_lets_go(table: LocalStorage) -> None:
    coordinate(table).lock.acquire(0)
    gc.collect()
    with coordinate(table).lock.held(0):
        assert table.exists(LOCK_PATH)


def test_unlocked_mark_of_another_host_proves_nothing(table: LocalStorage) -> None:
    table.replace(f"{LIVE_FOLDER}/{T}", b'{"pid": 1, "host": "not-this-host", "since": "then", "token": "x"}')
    assert coordinate(table).liveness.is_alive(T) is None
    table.replace(f"{LIVE_FOLDER}/{T}", b"")
    assert coordinate(table).liveness.is_alive(T) is False


def test_mark_is_never_seen_unlocked_while_its_writer_takes_and_leaves_it(table: LocalStorage) -> None:
    done = threading.Event()

    def look() -> set[bool | None]:
        seen = set()
        while not done.is_set():
            seen.add(coordinate(table).liveness.is_alive(T))
        return seen

    with ThreadPoolExecutor(2) as pool:
        looks = [pool.submit(look) for _ in range(2)]
        try:
            for _ in range(200):
                coordinate(table).liveness.hold(T)
                coordinate(table).liveness.release(T)
        finally:
            done.set()
        assert set().union(*(look.result() for look in looks)) <= {True, None}


def test_mark_of_a_table_that_was_deleted_meanwhile_is_nobodys(table: LocalStorage) -> None:
    liveness = coordinate(table).liveness
    liveness.hold(T)
    table.delete_folder(".hoodie")
    liveness.hold(T)
    assert liveness.is_alive(T) is True
    table.delete_folder(".hoodie")
    table.touch(f"{LIVE_FOLDER}/{T}")
    liveness.release(T)
    assert liveness.is_alive(T) is False


# -- interleavings: the audit hook acts right before the system call that it is told

INTERLEAVED = """
import os, sys
from hoodie.lock.providers import coordinate
from hoodie.lock.os_lock import is_locked, try_lock
from hoodie.storage.local import LocalStorage
root, event = sys.argv[1], sys.argv[2]
path = root + "/.hoodie/.hoodie_py/live/T"
os.makedirs(os.path.dirname(path))
open(path, "w").close()
armed = True
def act_once(name, args):
    global armed
    if armed and name == event and (name != "open" or args[0] == path):
        armed = False
        os.unlink(path)
        if "again" in sys.argv:
            open(path, "w").close()
sys.addaudithook(act_once)
"""


def run_interleaved(folder: Path, event: str, act: str, *more: str) -> str:
    """What `act` prints when the file `live/T` is deleted (and with `again` made anew) right before `event`."""
    done = subprocess.run(
        [sys.executable, "-c", INTERLEAVED + act, str(folder), event, *more],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.stdout.strip()


def test_lock_on_a_file_that_was_made_anew_meanwhile_is_taken_on_the_new_one(tmp_path: Path) -> None:
    act = "held = try_lock(path, create=False); print(armed, held.is_in_place())"
    assert run_interleaved(tmp_path, "fcntl.flock", act, "again") == "False True"


def test_question_about_a_mark_that_is_released_meanwhile_is_answered_not_known(tmp_path: Path) -> None:
    assert run_interleaved(tmp_path, "fcntl.flock", "print(is_locked(path), armed)") == "None False"


def test_mark_that_is_released_while_it_is_taken_over_is_made_anew(tmp_path: Path) -> None:
    act = "live = coordinate(LocalStorage(root)).liveness; live.hold('T'); print(live.is_alive('T'), armed)"
    assert run_interleaved(tmp_path, "open", act) == "True False"
