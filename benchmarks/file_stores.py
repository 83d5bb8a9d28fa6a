"""How long the file stores of a followed table take to be filled and asked, and how much memory: a million files by default.

`python -m benchmarks.file_stores` prints a table; each store has a process of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from typing import NamedTuple

from hoodie.options.values import ViewStore
from hoodie.options.view import ViewOptions
from hoodie.view.file_store import Files
from hoodie.view.stores import STORES

_ASKED = 10_000
_CHANGED = 1000


class Measured(NamedTuple):
    build_s: float
    ask_us: float
    """A partition, in random order."""
    change_us: float
    """Asked, with one file more put back."""
    memory_mb: float
    """That the process has more than before."""


def measure(store: ViewStore, partitions: int, files: int, folder: str, *, spill_mb: int) -> Measured:
    """Fill a store, ask for partitions, and change some."""
    rng = random.Random(1)
    spill_bytes = spill_mb * 1024 * 1024
    made = STORES[store](
        ViewOptions(follows=True, type=store, spill_bytes=spill_bytes, spill_folder=folder, rocksdb_folder=folder)
    )
    for number in range(min(100, partitions)):  # what the store itself takes is no part of the measure
        made.put(f"warm={number}", _files(rng, 1))
        made.drop(f"warm={number}")
    before_mb, started = _resident_mb(), time.perf_counter()
    inputs = 0.0
    for number in range(partitions):
        begun = time.perf_counter()
        found = _files(rng, files)
        inputs += time.perf_counter() - begun
        made.put(_partition(number), found)
    build_s = time.perf_counter() - started - inputs
    asked = [rng.randrange(partitions) for _ in range(_ASKED)]
    started = time.perf_counter()
    for number in asked:
        assert made.get(_partition(number))
    ask_us = (time.perf_counter() - started) / _ASKED * 1e6
    started = time.perf_counter()
    for number in asked[:_CHANGED]:
        known = made.get(_partition(number)) or {}
        made.put(_partition(number), {**known, "one-more_0-0-0_20261125000000000.parquet": 1})
    change_us = (time.perf_counter() - started) / _CHANGED * 1e6
    memory_mb = _resident_mb() - before_mb
    made.close()
    return Measured(build_s, ask_us, change_us, memory_mb)


def _partition(number: int) -> str:
    return f"year=2026/month={number % 12:02}/day={number:06}"


def _files(rng: random.Random, count: int) -> Files:
    return {
        f"{uuid.UUID(int=rng.getrandbits(128))}-0_{number}-10-100_20261125{number % 86400:05}0000.parquet": 10**7
        + number
        for number in range(count)
    }


def _resident_mb() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=100, help="of each partition")
    parser.add_argument("--spill-mb", type=int, default=20, help="memory of SPILLABLE_DISK")
    parser.add_argument("--only", choices=[store.value for store in STORES], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        with tempfile.TemporaryDirectory() as folder:
            print(*measure(ViewStore(args.only), args.partitions, args.files, folder, spill_mb=args.spill_mb))
        return
    print(f"{args.partitions:,} partitions, {args.partitions * args.files:,} files")
    print("| store | build | a partition | a change | memory |", "|---|---|---|---|---|", sep="\n")
    for store in STORES:
        size = ["--partitions", str(args.partitions), "--files", str(args.files), "--spill-mb", str(args.spill_mb)]
        line = [sys.executable, "-m", "benchmarks.file_stores", *size, "--only", store.value]
        told = subprocess.run(line, capture_output=True, text=True, check=True).stdout
        found = Measured(*map(float, told.split()))
        print(
            f"| `{store}` | {found.build_s:.1f} s | {found.ask_us:.0f} µs | {found.change_us:.0f} µs | {found.memory_mb:.0f} MB |"
        )


if __name__ == "__main__":
    main()
