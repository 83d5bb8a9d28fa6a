"""What knows its partitions on a local disk does not list all of them: CPU of questions about a few of 10,000 partitions.

    python -m benchmarks.one_partition DIR
    python -m benchmarks.one_partition DIR --files 10 --rows 10

The table is made once: a file of `--rows` rows for each partition, or `--files` of them. Each question is put by a process of its own,
to a table that it opens; it says what opening, planning and running took, and how many folders were listed.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import hoodie
from hoodie import HoodieTable
from hoodie.storage.local import LocalStorage

_LISTED: Counter[str] = Counter()


def _scan(**how: Any) -> tuple[Callable[[HoodieTable], Any], Callable[[Any], object]]:
    return lambda t: t.scan(**how), lambda scan: scan.to_arrow()


def _now(ask: Callable[[HoodieTable], object]) -> tuple[Callable[[HoodieTable], Any], Callable[[Any], object]]:
    return lambda t: t, ask


QUESTIONS: dict[str, tuple[Callable[[HoodieTable], Any], Callable[[Any], object]]] = {
    "one partition": _scan(where="p = 'p0001'"),
    "isin of ten": _scan(where=f"p IN ({', '.join(repr(f'p000{n}') for n in range(10))})"),
    "a range of ten": _scan(where="p >= 'p0010' and p < 'p0020'"),
    "a filter of a column": _scan(where="id = 500", columns=["v"]),
    "plan of all": (lambda t: t.scan(), lambda scan: len(scan.plan.tasks)),
    "count": _now(lambda t: t.scan().count()),
    "count of one partition": _now(lambda t: t.scan(where="p = 'p0001'").count()),
    "look-up of a key": _now(lambda t: t.lookup({"id": [4_321]})),
    "head": _now(lambda t: t.scan().limit(5).to_arrow()),
    "partitions": _now(lambda t: t.partitions()),
    "files of one partition": _now(lambda t: t.files("p0001")),
    "changes since the last commit": _now(lambda t: t.changes(since=t.timeline.commits[-1].time).to_arrow()),
    "changes of the last commit": _now(lambda t: t.changes(since=t.timeline.commits[-2].time).to_arrow()),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", help="where it is, or is made")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=1, help="of each partition")
    parser.add_argument("--rows", type=int, default=100, help="of each file")
    parser.add_argument("--only", nargs="*", default=[], help="these questions")
    parser.add_argument("--ask", choices=QUESTIONS, help="put this one here")
    parser.add_argument("--profile", help="a file for cProfile of it")
    given = parser.parse_args()
    if given.ask:
        _ask(given.table, given.ask, given.profile)
        return 0
    if not os.path.exists(given.table):
        _make(given.table, given.partitions, given.files, given.rows)
    for question in given.only or QUESTIONS:
        subprocess.run([sys.executable, "-m", "benchmarks.one_partition", given.table, "--ask", question], check=True)
    return 0


def _make(path: str, partitions: int, files: int, rows: int) -> None:
    options = {"hoodie.python.durability": "process"}
    table = hoodie.create_table(path, record_key="id", partition_by="p", ordering="ts", options=options)
    of_round = partitions * rows
    for n in range(files):
        table.append(_rows(np.arange(n * of_round, (n + 1) * of_round), partitions))
    table.upsert(_rows(np.arange(10), partitions))


def _rows(ids: Any, partitions: int) -> pa.Table:
    width = len(str(partitions - 1))
    names = np.array([f"p{n:0{width}d}" for n in range(partitions)])
    return pa.table({"id": ids, "p": names[ids % partitions], "ts": np.full(len(ids), 1), "v": ids * 0.5})


def _ask(path: str, name: str, profile: str | None) -> None:
    plan, run = QUESTIONS[name]
    with tempfile.TemporaryDirectory() as folder:  # imports are not what is measured
        small = os.path.join(folder, "t")
        _make(small, 10, 1, 2)
        run(plan(hoodie.open_table(small)))
    _count_listings()
    began = time.process_time()
    table = hoodie.open_table(path)
    opened = time.process_time()
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    planned = plan(table)
    between = time.process_time()
    run(planned)
    end = time.process_time()
    if profile:
        profiler.disable()
        profiler.dump_stats(profile)
    print(
        f"{name:30} open {opened - began:6.3f}  plan {between - opened:6.3f}  run {end - between:6.3f} s of CPU, "
        f"{_LISTED['list']:6} listings, {_LISTED['open_input']:6} files opened",
        flush=True,
    )


def _count_listings() -> None:
    for method in ("list", "names", "open_input"):
        _counted(method)


def _counted(method: str) -> None:
    asked = getattr(LocalStorage, method)

    def counting(storage: LocalStorage, *args: Any, **how: Any) -> Any:
        _LISTED[method] += 1
        return asked(storage, *args, **how)

    setattr(LocalStorage, method, counting)


if __name__ == "__main__":
    sys.exit(main())
