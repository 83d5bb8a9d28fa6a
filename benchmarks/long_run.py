"""A table that lives long: thousands of small commits with all services on, a second writer, a reader and a puller beside them.

    python -m benchmarks.long_run --commits 10000 --out build/disk.json
    python -m benchmarks.long_run --commits 1000 --s3 build/bin/versitygw --out build/s3.json
    python -m benchmarks.long_run --draw build/disk.json            # docs/long-run.svg

Each commit updates rows of a fixed set of keys, so that what grows is not the data. The others work a fifth of the time. Sums are
taken of each hundred commits. At the end the table, what the puller put together, and what the writers wrote have to agree.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hoodie
from benchmarks.picture import curves
from hoodie.errors import MissingFileError
from hoodie.read.scan import Scan
from hoodie.storage.local import LocalStorage

KEYS = 50_000
"""Of each writer."""
BATCH = 1_000
PARTITIONS = 4
OPTIONS = {
    "hoodie.compact.inline": "true",
    "hoodie.log.compaction.inline": "true",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "20",
    "hoodie.clustering.plan.strategy.sort.columns": "v",
    # Of the two writers one may change rows that the other one clusters just then.
    "hoodie.clustering.updates.strategy": "allow",
}
"""Cleaning and archiving are on by themselves."""
WINDOW = 100
_SHARE = 5
"""The others rest four times as long as they work."""
_PULLED_AGAIN = 20
_CALLS = (
    "read", "open_input", "open_output", "create_new", "replace", "move_new", "move_all_new", "rename_folder",
    "list", "names", "stat", "exists", "delete", "delete_folder", "mkdirs", "touch",
)  # fmt: skip


@dataclass(frozen=True)
class Window:
    """A hundred commits. Times, calls and requests are means of a commit; the rest is how it was at their end."""

    commits: int
    wall_s: float
    cpu_s: float
    slowest_s: float
    requests: float
    memory_mb: float
    instants: int
    files: int
    size_mb: float
    read_s: float
    pull_s: float


def rows(keys: np.ndarray, value: int) -> pa.Table:
    return pa.table(
        {"id": keys, "part": (keys % PARTITIONS).astype(str), "v": keys * value, "ts": np.full(len(keys), value)}
    )


def batch(first: int, number: int) -> pa.Table:
    """The rows of a commit, of the writer whose keys begin at `first`."""
    keys = np.random.default_rng(first + number).choice(KEYS, BATCH, replace=False) + first
    return rows(keys, number + 1)


# -- those beside the writer, each a process ---------------------------------------------------------------------------


def _by_turns(stop: Any, act: Callable[[int], None]) -> Iterator[tuple[float, float]]:
    """(when it ended, how long it took) of each turn."""
    number = 0
    while not stop.is_set():
        started = time.monotonic()
        act(number)
        took = time.monotonic() - started
        yield time.time(), took
        number += 1
        stop.wait(took * (_SHARE - 1))


def second_writer(uri: str, how: Mapping[str, str], stop: Any, told: Any) -> None:
    table = hoodie.open_table(uri, storage_options=how)
    mine = np.zeros(KEYS, np.int64)

    def act(number: int) -> None:
        data = batch(KEYS, number)
        table.upsert(data, OPTIONS)
        mine[data["id"].to_numpy() - KEYS] = data["v"].to_numpy()

    took = list(_by_turns(stop, act))
    told.put(("writer", took, mine))


def reader(uri: str, how: Mapping[str, str], stop: Any, told: Any) -> None:
    table = hoodie.open_table(uri, storage_options=how)

    def act(_: int) -> None:
        found = table.scan(columns=["id"]).to_arrow()["id"].to_numpy()
        if len(found) != 2 * KEYS or len(np.unique(found)) != 2 * KEYS:
            raise RuntimeError(f"{len(found)} rows of {len(np.unique(found))} keys were read, not {2 * KEYS}")

    told.put(("reader", list(_by_turns(stop, act)), None))


def _pulled(table: hoodie.HoodieTable, position: str | None) -> tuple[Scan, pa.Table]:
    """Again where a clean took a file: fifteen commits a second come, of which ten are retained."""
    for _ in range(_PULLED_AGAIN):
        changes = table.changes(since=position)
        with suppress(MissingFileError):
            return changes, changes.to_arrow()
    changes = table.changes(since=position)
    return changes, changes.to_arrow()


def puller(uri: str, how: Mapping[str, str], stop: Any, told: Any) -> None:
    table = hoodie.open_table(uri, storage_options=how)
    replica = np.full(2 * KEYS, -1, np.int64)
    position = None

    def act(_: int) -> None:
        nonlocal position
        changes, found = _pulled(table, position)
        replica[found["id"].to_numpy()] = found["v"].to_numpy()
        position = changes.position

    took = list(_by_turns(stop, act))
    act(0)
    told.put(("puller", took, replica))


# -- the run -----------------------------------------------------------------------------------------------------------


def run(uri: str, how: Mapping[str, str], requests: Callable[[], int], commits: int) -> Iterator[Window]:
    """Raises: RuntimeError: the rows of the table, of the puller and of the writers are not the same."""
    processes = multiprocessing.get_context("spawn")
    told, stop, pulled = processes.Queue(), processes.Event(), processes.Event()
    table = hoodie.create_table(
        uri, rows(np.arange(1), 0).schema, record_key="id", partition_by="part", ordering="ts",
        table_type="MERGE_ON_READ", storage_options=how,
    )  # fmt: skip
    table.upsert(rows(np.arange(2 * KEYS), 0), OPTIONS)
    others = {
        each.__name__: processes.Process(target=each, args=(uri, how, end, told))
        for each, end in ((second_writer, stop), (reader, stop), (puller, pulled))
    }
    for each in others.values():
        each.start()
    expected = np.zeros(KEYS, np.int64)
    windows = []
    try:
        for start in range(0, commits, WINDOW):
            measured = []
            before = requests()
            for number in range(start, min(start + WINDOW, commits)):
                data = batch(0, number)
                wall, cpu = time.monotonic(), time.process_time()
                table.upsert(data, OPTIONS)
                measured.append((time.monotonic() - wall, time.process_time() - cpu))
                expected[data["id"].to_numpy()] = data["v"].to_numpy()
            calls = (requests() - before) / len(measured)
            windows.append((time.time(), _window(table, number + 1, measured, calls)))
            if dead := [name for name, each in others.items() if not each.is_alive()]:
                raise RuntimeError(f"{', '.join(dead)} ended with an error; it stands above")
            print(windows[-1][1], file=sys.stderr, flush=True)
        stop.set()
        answers = {name: (took, found) for name, took, found in (told.get(timeout=600) for _ in range(2))}
        pulled.set()
        name, took, replica = told.get(timeout=600)
        answers[name] = (took, replica)
    finally:
        for end in (stop, pulled):
            end.set()
        for each in others.values():
            each.join(60)
            each.kill()
    _check(table, np.concatenate([expected, answers["writer"][1]]), replica)
    since = 0.0
    for until, window in windows:
        read, pull = (_mean(answers[name][0], since, until) for name in ("reader", "puller"))
        yield Window(**{**asdict(window), "read_s": read, "pull_s": pull})
        since = until


def _window(table: hoodie.HoodieTable, commits: int, measured: list[tuple[float, float]], calls: float) -> Window:
    walls, cpus = zip(*measured, strict=True)
    files = [info for info in table._context.storage.list("", recursive=True) if not info.is_folder]
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Window(
        commits,
        wall_s=statistics.fmean(walls),
        cpu_s=statistics.fmean(cpus),
        slowest_s=max(walls),
        requests=calls,
        memory_mb=pages * 4096 / 1e6,
        instants=len(table.timeline),
        files=len(files),
        size_mb=sum(info.size_bytes for info in files) / 1e6,
        read_s=0,
        pull_s=0,
    )


def _mean(took: list[tuple[float, float]], since: float, until: float) -> float:
    found = [seconds for ended, seconds in took if since < ended <= until]
    return statistics.fmean(found) if found else float("nan")


def _check(table: hoodie.HoodieTable, expected: np.ndarray, replica: np.ndarray) -> None:
    found = table.scan(columns=["id", "v"]).to_arrow().sort_by("id")
    if found["id"].to_pylist() != list(range(2 * KEYS)):
        raise RuntimeError("the keys of the table are not those that were written")
    for name, values in (("table", found["v"].to_numpy()), ("puller", replica)):
        if not np.array_equal(values, expected):
            raise RuntimeError(f"the {name} has {np.count_nonzero(values != expected)} wrong rows")


# -- where -------------------------------------------------------------------------------------------------------------


@contextmanager
def on_disk(folder: Path) -> Iterator[tuple[str, dict[str, str], Callable[[], int]]]:
    """Calls of the storage are counted as requests."""
    count = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **how: Any) -> Any:
            nonlocal count
            count += 1
            return function(*args, **how)

        return call

    originals = {name: getattr(LocalStorage, name) for name in _CALLS}
    for name, function in originals.items():
        setattr(LocalStorage, name, counted(function))
    try:
        yield str(folder / "table"), {}, lambda: count
    finally:
        for name, function in originals.items():
            setattr(LocalStorage, name, function)


@contextmanager
def on_s3(folder: Path, program: Path) -> Iterator[tuple[str, dict[str, str], Callable[[], int]]]:
    """The writer goes through a proxy that counts; what the others ask it for is in its figures, too."""
    from tests.servers import versitygw as server  # noqa: PLC0415 - needs pytest
    from tests.servers.http_proxy import HttpProxy  # noqa: PLC0415
    from tests.servers.s3 import BUCKET  # noqa: PLC0415

    server.BINARY = program
    with server.versitygw(folder) as started, HttpProxy(started.endpoint) as proxy:
        count = 0

        def requests() -> int:
            nonlocal count
            count += sum(proxy.counted().values())
            return count

        yield f"s3://{BUCKET}/table", {**started.options, "aws_endpoint": proxy.endpoint}, requests


def picture(windows: list[Window]) -> str:
    x = [window.commits for window in windows]
    return curves(
        x,
        "commits",
        {
            "CPU of a commit, ms": [1000 * window.cpu_s for window in windows],
            "Calls of the storage, a commit": [window.requests for window in windows],
            "Active instants": [window.instants for window in windows],
            "Files": [window.files for window in windows],
            "Size, MB": [window.size_mb for window in windows],
            "A read of all rows, ms": [1000 * window.read_s for window in windows],
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--s3", type=Path, help="versitygw: the table lies in a bucket of it")
    parser.add_argument("--out", type=Path, help="the sums, as JSON")
    parser.add_argument("--draw", type=Path, help="nothing is run; these sums become docs/long-run.svg")
    given = parser.parse_args()
    if given.draw:
        windows = [Window(**each) for each in json.loads(given.draw.read_text())]
        Path("docs/long-run.svg").write_text(picture(windows), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory(prefix="hoodie-long-run-") as folder, ExitStack() as started:
        place = on_s3(Path(folder), given.s3) if given.s3 else on_disk(Path(folder))
        windows = list(run(*started.enter_context(place), given.commits))
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps([asdict(each) for each in windows]))
    first, last = windows[0], windows[-1]
    print("| | first hundred | last hundred | |\n|---|---|---|---|")
    for name in Window.__dataclass_fields__:
        old, new = getattr(first, name), getattr(last, name)
        print(f"| {name} | {old:.3f} | {new:.3f} | {new / old if old else float('nan'):.2f} |")


if __name__ == "__main__":
    main()
