"""What following the timeline saves on a disk, on S3 and on HDFS: storage calls and seconds of writers, services and readers.

    python -m benchmarks.followed_storages disk s3 hdfs

prints the figures of docs/TIMELINE_SERVICE.md. On S3 (versitygw behind a proxy) each request takes 20 ms more, and requests are
counted; on a disk and on HDFS (a NameNode and a DataNode of this machine) calls of the storage are. A round is an upsert, a compaction
and a clean. Each case has a table of its own, and they take their rounds in turns, so that a busy machine is as busy for all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.followed_rounds import ALONE, FOLLOWS, LISTS, TABLE, rows
from hoodie.options.parse import parse_write_options
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache
from hoodie.storage.hdfs import HdfsStorage
from hoodie.storage.local import LocalStorage
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable, open_at
from hoodie.write.create import create_at
from tests.servers.hdfs import COMES_TOO_SOON, hdfs
from tests.servers.proxy import Proxy

CHECKPOINT = "hoodie.python.view.checkpoint.path"
STORAGES = ("disk", "s3", "hdfs")
DELAY_S = 0.02
_KINDS = {
    "list": "LIST",
    "names": "LIST",
    "stat": "STAT",
    "exists": "STAT",
    "read": "READ",
    "open_input": "READ",
    "create_new": "WRITE",
    "replace": "WRITE",
    "open_output": "WRITE",
    "touch": "WRITE",
    "move_new": "MOVE",
    "move_all_new": "MOVE",
    "rename_folder": "MOVE",
    "delete": "DELETE",
    "delete_folder": "DELETE",
    "mkdirs": "MKDIR",
}


class Place(NamedTuple):
    """Where tables of a run are."""

    new: Callable[[str], Callable[[], Storage]]
    """By a table's name: what opens its storage, for a process anew."""
    counted: Callable[[], Counter[str]]
    """Calls by kind since it was asked last."""
    checkpoints: str
    is_late: Callable[[bool], None] = lambda late: None
    """Whether requests take their time; while tables are filled they need not."""


class Cost(NamedTuple):
    calls: Counter[str]
    seconds: float


@dataclass
class Case:
    """One table, and who writes and reads it. `lives_on`: one process takes all rounds; else each has one of its own."""

    name: str
    options: Mapping[str, str]
    lives_on: bool
    reads: bool = False
    """A reader that lives on looks at the table after each round."""
    rounds: list[dict[str, Cost]] = field(default_factory=list)

    def begin(self, storage: Callable[[], Storage], partitions: int) -> None:
        self._storage, self._partitions = storage, partitions
        self._writer, self._reader = Cache(), Cache()
        create_at(storage(), parse_write_options(TABLE).to_create(), schema=rows([0], 1, 1).schema)
        open_at(storage(), options=ALONE, cache=Cache()).upsert(rows(range(partitions), partitions, 1))

    def take_round(self, touched: int, counted: Callable[[], Counter[str]]) -> None:
        number = len(self.rounds)
        ids = [(number * touched + each) % self._partitions for each in range(touched)]
        if not self.lives_on:
            self._writer = Cache()
        costs = {
            "ingest": self._measured(
                counted, self._writer, lambda t: t.upsert(rows(ids, self._partitions, 2 + number))
            ),
            "compact": self._measured(counted, self._writer, lambda t: t.compact()),
            "clean": self._measured(counted, self._writer, lambda t: t.clean(retain_commits=2)),
        }
        if self.reads:
            costs["read"] = self._measured(counted, self._reader, lambda t: t.scan().plan)
        self.rounds.append(costs)

    def _measured(
        self, counted: Callable[[], Counter[str]], cache: Cache, act: Callable[[HoodieTable], object]
    ) -> Cost:
        counted()
        began = time.perf_counter()
        act(open_at(self._storage(), options={**ALONE, **self.options}, cache=cache))
        return Cost(counted(), time.perf_counter() - began)


def cases(checkpoints: str) -> list[Case]:
    place = {CHECKPOINT: checkpoints}
    return [
        Case("one process, listing", LISTS, lives_on=True, reads=True),
        Case("one process, nothing said", {}, lives_on=True, reads=True),
        Case("one process, followed", FOLLOWS, lives_on=True, reads=True),
        Case("a process for each round, listing", LISTS, lives_on=False),
        Case("a process for each round, nothing said", {}, lives_on=False),
        Case("a process for each round, followed", FOLLOWS, lives_on=False),
        Case("a process for each round, followed from a checkpoint", FOLLOWS | place, lives_on=False),
    ]


def measure(place: Place, partitions: int, rounds: int, touched: int) -> list[Case]:
    """Every case after its rounds; the first one of a process that lives on is the one in which it looks at the table."""
    found = cases(place.checkpoints)
    place.is_late(False)
    for number, case in enumerate(found):
        case.begin(place.new(f"{partitions}-{number}"), partitions)
    place.is_late(True)
    for _ in range(rounds):
        for case in found:
            case.take_round(min(touched, partitions), place.counted)
    return found


# -- places ------------------------------------------------------------------------------------------------------------


class Calls:
    """Calls of storages by kind. Thread-safe."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()
        self._lock = threading.Lock()

    def of(self, storage: Any) -> Storage:
        """The same storage, which counts here from now on. It is not wrapped: its class decides how files are published."""
        for name in filter(lambda each: hasattr(storage, each), _KINDS):
            setattr(storage, name, self._counting(getattr(storage, name), _KINDS[name]))
        counted: Storage = storage
        return counted

    def _counting(self, call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def made(*args: Any, **how: Any) -> Any:
            with self._lock:
                self._made[kind] += 1
            return call(*args, **how)

        return made

    def counted(self) -> Counter[str]:
        with self._lock:
            made, self._made = self._made, Counter()
        return made


@contextmanager
def on_disk(folder: Path) -> Iterator[Place]:
    calls = Calls()

    def new(name: str) -> Callable[[], Storage]:
        return lambda: calls.of(LocalStorage(folder / name))

    yield Place(new, calls.counted, str(folder / "checkpoints"))


@contextmanager
def on_s3(folder: Path) -> Iterator[Place]:
    # boto3 makes the bucket, and not every environment has it.
    from tests.servers.http_proxy import HttpProxy  # noqa: PLC0415
    from tests.servers.versitygw import versitygw  # noqa: PLC0415

    with versitygw(folder) as server, HttpProxy(server.endpoint) as proxy:
        options = {**server.options, "aws_endpoint": proxy.endpoint}
        # The checkpoint is opened by its address alone.
        os.environ.update({name.upper(): value for name, value in options.items()}, AWS_ALLOW_HTTP="true")
        base = server.new_uri()

        def new(name: str) -> Callable[[], Storage]:
            return lambda: open_storage(f"{base}/{name}", options)

        def is_late(late: bool) -> None:
            proxy.delay_s = DELAY_S if late else 0.0

        yield Place(new, lambda: Counter(proxy.counted()), f"{base}/checkpoints", is_late)


@contextmanager
def on_hdfs(folder: Path) -> Iterator[Place]:
    folder.mkdir(parents=True)
    calls = Calls()
    with hdfs(folder) as server, Proxy(int(server.uri.rpartition(":")[2])) as proxy:
        proxy.later = COMES_TOO_SOON

        def new(name: str) -> Callable[[], Storage]:
            return lambda: calls.of(HdfsStorage(proxy.address, f"/tables/{name}"))

        yield Place(new, calls.counted, f"hdfs://{proxy.address}/checkpoints")


PLACES = {"disk": on_disk, "s3": on_s3, "hdfs": on_hdfs}


# -- figures -----------------------------------------------------------------------------------------------------------


class Figures(NamedTuple):
    lists: int
    calls: int
    seconds: float

    @classmethod
    def of(cls, rounds: Sequence[Mapping[str, Cost]], steps: Sequence[str]) -> Figures:
        """Of one round: the calls of the last, and the seconds of the quickest: what others do on the machine only makes it slower."""
        last = sum((rounds[-1][step].calls for step in steps), Counter[str]())
        seconds = min(sum(each[step].seconds for step in steps) for each in rounds)
        return cls(last["LIST"], last.total(), seconds)

    def __str__(self) -> str:
        return f"{self.lists:,} | {self.calls:,} | {self.seconds:.2f}"


WRITER = ("ingest", "compact", "clean")


def lines(found: Sequence[Case]) -> Iterator[tuple[str, Figures]]:
    """The first round of a process that lives on is left out: it is that of a process for each round."""
    for case in found:
        rounds = case.rounds[1:] if case.lives_on else case.rounds
        yield f"round, {case.name}", Figures.of(rounds, WRITER)
        if case.reads:
            yield f"query, {case.name}", Figures.of(rounds, ("read",))
        else:
            yield f"upsert, {case.name}", Figures.of(rounds, ("ingest",))


def kinds(found: Sequence[Case]) -> Iterator[str]:
    """The calls of each step's last round, by kind, as JSON."""
    for case in found:
        steps = {step: dict(sorted(cost.calls.items())) for step, cost in case.rounds[-1].items()}
        yield json.dumps({"case": case.name, **steps})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("storages", nargs="*", default=STORAGES, choices=STORAGES)
    parser.add_argument("--partitions", type=int, nargs="*", default=[1, 100, 1000])
    parser.add_argument("--touched", type=int, default=20, help="partitions that each round writes into")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--kinds", action="store_true", help="also the calls of each step by kind")
    parser.add_argument("--folder", type=Path, help="on the disk to measure; default: a temporary folder")
    args = parser.parse_args()
    given = nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory()
    with given as folder:
        for storage in args.storages:
            with PLACES[storage](Path(folder) / storage) as place:
                for partitions in args.partitions:
                    found = measure(place, partitions, args.rounds, args.touched)
                    print(
                        f"\n| {storage}, {partitions:,} partitions | listings | all calls | seconds |\n|---|---|---|---|"
                    )
                    for name, figures in lines(found):
                        print(f"| {name} | {figures} |", flush=True)
                    for line in kinds(found) if args.kinds else ():
                        print(line)


if __name__ == "__main__":
    main()
