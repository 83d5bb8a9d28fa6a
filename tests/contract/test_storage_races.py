"""What every Storage promises to threads and processes that use it at the same time."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hoodie.storage.base import ConditionalStorage, Storage
from hoodie.storage.local import LocalStorage
from tests.storages import CONDITIONAL, EVERY, RENAMING, write

RACERS = 16
ATOMIC = sorted(EVERY.keys() - {"s3"})
"""moto, the server behind "s3", looks first and puts then: under load two may win."""


@pytest.fixture(params=sorted(EVERY))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return EVERY[request.param](tmp_path)


@pytest.mark.parametrize("storage", ATOMIC, indirect=True)
def test_of_racing_create_new_exactly_one_wins(storage: Storage) -> None:
    for turn in range(4):
        path = f"a/{turn}"

        def act(racer: int, path: str = path) -> None:
            storage.create_new(path, b"%d" % racer)

        winners = race(act)
        assert len(winners) == 1
        assert storage.read(path) == b"%d" % winners[0]


@pytest.mark.parametrize("storage", sorted(RENAMING), indirect=True)
def test_of_racing_move_new_exactly_one_wins(storage: Storage) -> None:
    for turn in range(4):
        for racer in range(RACERS):
            write(storage, f"staging/{turn}.{racer}", b"%d" % racer)

        def act(racer: int, turn: int = turn) -> None:
            storage.move_new(f"staging/{turn}.{racer}", f"final/{turn}")

        winners = race(act)
        assert len(winners) == 1
        assert storage.read(f"final/{turn}") == b"%d" % winners[0]
        left = [info for info in storage.list("staging") if info.path.startswith(f"staging/{turn}.")]
        assert len(left) == RACERS - 1


@pytest.mark.parametrize("storage", ATOMIC, indirect=True)
def test_of_racing_outputs_exactly_one_opens(storage: Storage) -> None:
    winners = race(lambda racer: write(storage, "f", b"%d" % racer))
    assert len(winners) == 1
    assert storage.read("f") == b"%d" % winners[0]


@pytest.fixture(params=sorted(CONDITIONAL.keys() - {"s3"}))
def conditional(request: pytest.FixtureRequest, tmp_path: Path) -> ConditionalStorage:
    return CONDITIONAL[request.param](tmp_path)


def test_of_racing_swaps_of_one_tag_exactly_one_wins(conditional: ConditionalStorage) -> None:
    assert isinstance(conditional, ConditionalStorage)
    conditional.create_new("a/f", b"first")
    for _turn in range(4):
        _, tag = conditional.read_tagged("a/f")

        def act(racer: int, tag: Hashable = tag) -> None:
            conditional.swap("a/f", b"%d %s" % (racer, secrets.token_bytes(8)), tag)

        winners = race(act)
        assert len(winners) == 1
        assert conditional.read("a/f").startswith(b"%d " % winners[0])


def test_a_swap_gives_the_tag_that_a_read_gives_and_refuses_every_older_one(conditional: ConditionalStorage) -> None:
    conditional.create_new("f", b"1")
    first, tag = conditional.read_tagged("f")
    swapped = conditional.swap("f", b"2", tag)
    assert first == b"1"
    assert conditional.read_tagged("f") == (b"2", swapped)
    with pytest.raises(FileExistsError):
        conditional.swap("f", b"3", tag)
    assert conditional.read_tagged("f") == (b"2", swapped)
    conditional.swap("f", b"4", swapped)
    conditional.replace("f", b"5")
    with pytest.raises(FileExistsError):
        conditional.swap("f", b"6", swapped)
    assert conditional.read("f") == b"5"


def test_what_is_gone_cannot_be_swapped_and_does_not_come_back(conditional: ConditionalStorage) -> None:
    with pytest.raises(FileNotFoundError):
        conditional.read_tagged("f")
    conditional.create_new("f", b"1")
    _, tag = conditional.read_tagged("f")
    conditional.delete("f")
    with pytest.raises(FileNotFoundError):
        conditional.swap("f", b"2", tag)
    assert not conditional.exists("f")


def race(act: Callable[[int], None]) -> list[int]:
    """Run `act` in all racers at once; who was not told FileExistsError."""
    barrier = threading.Barrier(RACERS)

    def run(racer: int) -> bool:
        barrier.wait()
        try:
            act(racer)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(RACERS) as pool:
        won = list(pool.map(run, range(RACERS)))
    return [racer for racer in range(RACERS) if won[racer]]


def test_readers_meet_whole_files_only_while_one_is_replaced(storage: Storage) -> None:
    contents = [bytes([n]) * 50_000 for n in range(8)]
    storage.replace("f", contents[0])
    done = threading.Event()

    def look() -> set[bytes]:
        seen = set()
        while not done.is_set():
            seen.add(storage.read("f"))
        return seen

    with ThreadPoolExecutor(2) as pool:
        looks = [pool.submit(look) for _ in range(2)]
        try:
            for content in contents * 4:
                storage.replace("f", content)
        finally:
            done.set()
        seen = set().union(*(look.result() for look in looks))
    assert seen
    assert seen <= set(contents)


def test_replaces_and_deletes_of_one_name_are_never_refused(storage: Storage) -> None:
    def act(racer: int) -> None:
        for _ in range(10):
            storage.replace("a/f", b"%d" % racer)
            storage.delete("a/f")

    assert race(act) == list(range(RACERS))
    assert not storage.exists("a/f")


def test_folders_can_be_deleted_by_several_at_once(storage: Storage) -> None:
    for n in range(40):
        storage.create_new(f"a/{n % 4}/{n}", b"x")
    assert race(lambda _: storage.delete_folder("a")) == list(range(RACERS))
    assert storage.list("a", recursive=True) == [] if storage.exists("a") else True


@pytest.mark.parametrize("kind", sorted(EVERY))
def test_the_clock_can_be_asked_by_several_at_once(kind: str, tmp_path: Path) -> None:
    for turn in range(4):
        storage = EVERY[kind](tmp_path / str(turn))
        storage.create_new("f", b"x")
        assert race(lambda _, storage=storage: storage.now_s()) == list(range(RACERS))
        assert [info.path for info in storage.list("", recursive=True)] == ["f"]


CREATE_ON_REQUEST = """
import sys
from hoodie.storage.local import LocalStorage
storage = LocalStorage(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    try:
        storage.create_new(line.strip(), sys.argv[2].encode())
    except FileExistsError:
        print("lost", flush=True)
    else:
        print("won", flush=True)
"""


def test_of_two_processes_that_create_one_file_exactly_one_wins(tmp_path: Path) -> None:
    def start(name: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", CREATE_ON_REQUEST, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    with start("one") as one, start("two") as two:
        assert [process.stdout.readline() for process in (one, two)] == ["ready\n"] * 2
        for turn in range(10):
            for process in (one, two):
                process.stdin.write(f"a/{turn}\n")
                process.stdin.flush()
            answers = [process.stdout.readline().strip() for process in (one, two)]
            assert sorted(answers) == ["lost", "won"]
            assert LocalStorage(tmp_path).read(f"a/{turn}") == (b"one" if answers[0] == "won" else b"two")
