"""What is measured of one store, in a process of its own: `python -m benchmarks.key_values.work STORE PLACE CASE JSON`.

Prints one line of JSON a figure. CPU is that of the process with all its threads; bytes written are those that the system
wrote to disks for it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.key_values.stores import KINDS, Rows, Store, forget_files, keys_of, size_of, values_of

BATCH = 5_000
VALUE_BYTES = 1_000
RATE = 110_000
"""Keys a second that come: so many are in a window of so many seconds, for each store."""
RANGE_KEYS = 10_000
RANGE_PUTS = 500_000
"""After so many puts the keys are of another range; in HDHT's benchmark, after a minute."""


@dataclass
class Clock:
    """What was spent inside of `with` blocks: making data is not."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    _began: tuple[float, float] = field(default=(0.0, 0.0))

    def __enter__(self) -> Clock:
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s += time.perf_counter() - self._began[0]
        self.cpu_s += time.process_time() - self._began[1]


class Source:
    """Batches of rows, ready for the store. Values are those of one batch, again and again."""

    def __init__(self, store: Store, value_bytes: int = VALUE_BYTES, seed: int = 1) -> None:
        self._store = store
        self._values = values_of(BATCH, value_bytes, seed)
        self._listed = self._values.to_pylist() if store.takes_lists else []
        self._chance = np.random.default_rng(seed)

    def rows(self, numbers: np.ndarray, stamp: np.ndarray | int = 0) -> Rows:
        rows = Rows(keys_of(numbers, stamp), self._values.slice(0, len(numbers)))
        if self._store.takes_lists:
            rows.listed = (rows.keys.to_pylist(), self._listed[: len(numbers)])
        return rows

    def sequential(self, count: int, start: int = 0) -> Iterator[Rows]:
        for first in range(start, start + count, BATCH):
            yield self.rows(np.arange(first, first + BATCH))

    def ranges(self, count: int) -> Iterator[Rows]:
        for first in range(0, count, BATCH):
            yield self.rows(self._chance.integers(0, RANGE_KEYS, BATCH), stamp=first // RANGE_PUTS)

    def random(self, count: int, of: int) -> Iterator[Rows]:
        for _ in range(0, count, BATCH):
            yield self.rows(self._chance.integers(0, of, BATCH))

    def scattered(self, start: int, stop: int) -> Iterator[Rows]:
        """Each number below 2**27 once, in no order."""
        for first in range(start, stop, BATCH):
            yield self.rows(np.arange(first, min(stop, first + BATCH), dtype=np.uint64) * 0x9E3779B1 % (1 << 27))


def written_bytes() -> int:
    told = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(told["write_bytes"]) - int(told["cancelled_write_bytes"])


def run_windows(
    store: Store, batches: Iterator[Rows], *, window_s: float, reads: bool = False, first_window: int = 1
) -> dict[str, Any]:
    """Puts, in windows of what comes in so many seconds; the last bytes are in files when it ends."""
    clock, keys, window, ended = Clock(), 0, first_window, 0
    before = written_bytes()
    for rows in batches:
        with clock:
            if reads:
                store.look_up(rows)
            store.put_many(rows)
        keys += len(rows.keys)
        if keys - ended >= window_s * RATE:
            with clock:
                store.end_window(window)
            window, ended = window + 1, keys
    with clock:
        if keys > ended:
            store.end_window(window)
            window += 1
        store.settle()
    return {
        "keys": keys,
        "windows": window - first_window,
        "next_window": window,
        "wall_s": clock.wall_s,
        "cpu_s": clock.cpu_s,
        "written": written_bytes() - before,
        "put": (16 + VALUE_BYTES) * keys,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def hdht(store: Store, told: Mapping[str, Any]) -> dict[str, Any]:
    """A row of HDHT's table."""
    source = Source(store)
    batches = source.sequential(told["keys"]) if told["keys_come"] == "sequential" else source.ranges(told["keys"])
    return run_windows(store, batches, window_s=told["window_s"], reads=told["reads"])


def beside(store: Store, told: Mapping[str, Any]) -> dict[str, Any]:
    """Load, overwrite, read and change, single puts, gets, a scan."""
    keys, more = told["keys"], told["more"]
    source = Source(store)
    found: dict[str, Any] = {}
    found["load"] = run_windows(store, source.sequential(keys), window_s=0.5)
    next_window = found["load"]["next_window"]
    found["overwrite"] = run_windows(store, source.random(more, keys), window_s=0.5, first_window=next_window)
    next_window = found["overwrite"]["next_window"]
    found["change"] = run_windows(store, source.random(more, keys), window_s=0.5, reads=True, first_window=next_window)
    next_window = found["change"]["next_window"]
    found["single"] = _single(store, source, min(100_000, more), keys, next_window)
    chance = np.random.default_rng(7)
    asked = keys_of(chance.choice(keys, told["gets"], replace=False)).to_pylist()
    store.reopen()
    if store.folder is not None:
        forget_files(store.folder)
    found["get"] = {"uncached_us": _each_us(store, asked), "cached_us": _each_us(store, asked)}
    clock = Clock()
    with clock:
        rows = store.scan()
    found["scan"] = {"keys": rows, "wall_s": clock.wall_s, "cpu_s": clock.cpu_s}
    found["size"] = None if store.folder is None else size_of(store.folder)
    return found


def _single(store: Store, source: Source, count: int, of: int, window: int) -> dict[str, Any]:
    clock = Clock()
    for rows in source.random(count, of):
        rows.list()
        pairs = list(zip(*rows.listed, strict=True))
        with clock:
            for key, value in pairs:
                store.put(key, value)
    with clock:
        store.end_window(window)
        store.settle()
    return {"keys": count, "wall_s": clock.wall_s, "cpu_s": clock.cpu_s}


def _each_us(store: Store, keys: list[bytes]) -> list[float]:
    """Median, and the 99th of a hundred."""
    took = []
    for key in keys:
        began = time.perf_counter()
        found = store.get(key)
        took.append((time.perf_counter() - began) * 1e6)
        if found is None:
            raise SystemExit(f"{type(store).__name__} has lost {key!r}")
    return [float(np.percentile(took, share)) for share in (50, 99)]


def growth(store: Store, told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Keys in no order, up to more and more."""
    source = Source(store, told["value_bytes"])
    start, window = 0, 1
    for stop in told["steps"]:
        step = run_windows(store, source.scattered(start, stop), window_s=0.5, first_window=window)
        window = step["next_window"]
        chance = np.random.default_rng(stop)
        numbers = chance.integers(0, stop, told["gets"], dtype=np.uint64) * 0x9E3779B1 % (1 << 27)
        asked = keys_of(numbers).to_pylist()
        store.reopen()
        if store.folder is not None:
            forget_files(store.folder)
        yield {
            **step,
            "put": (16 + told["value_bytes"]) * step["keys"],
            "stop": stop,
            "uncached_us": _each_us(store, asked),
            "size": None if store.folder is None else size_of(store.folder),
        }
        start = stop


CASES = {"hdht": hdht, "beside": beside, "growth": growth}


def main(argv: list[str]) -> int:
    name, place, case, told = argv
    store = KINDS[name](place)
    found = CASES[case](store, json.loads(told))
    for line in [found] if isinstance(found, dict) else found:
        print(json.dumps(line), flush=True)
    store.close()
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
