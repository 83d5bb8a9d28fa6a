"""What it costs to find keys, by each index: tagging of 50,000 keys, and look-ups of one and of 1,000, in tables of three sizes.

    python -m benchmarks.keys_found DIR
    python -m benchmarks.keys_found DIR --millions 50

Tables are made once, in files of 100,000 rows, ten to a partition, on a local disk. Tagging is an insert that drops all of its rows,
because their keys are stored: nothing is written but an empty commit. Each case runs in a process of its own, with imports warm.
Keys are random ones of the whole table.
"""

from __future__ import annotations

import argparse
import os
import shutil
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
from hoodie.options.table import INDEX
from hoodie.storage.local import LocalStorage

INDEXES = ("BLOOM", "GLOBAL_BLOOM", "RECORD_INDEX")
_FILE_ROWS = 100_000
_FILES = 10
"""Of a partition."""
_TAGGED = 50_000
_LOOKED_UP = 1_000
_CALLS: Counter[str] = Counter()
_DROP = {"hoodie.datasource.insert.dup.policy": "drop"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where the tables are, or are made")
    parser.add_argument("--millions", type=int, nargs="*", default=[2, 8, 50], help="of rows")
    parser.add_argument("--index", choices=INDEXES, help="measure this one here, in tables of the first size")
    given = parser.parse_args()
    if given.index:
        _measure(_table(given.folder, given.millions[0], given.index), given.index, given.millions[0])
        return 0
    for millions in given.millions:
        for index in INDEXES:
            argv = ["-m", "benchmarks.keys_found", given.folder, "--millions", str(millions), "--index", index]
            subprocess.run([sys.executable, *argv], check=True)
    return 0


# -- Tables.


def _table(folder: str, millions: int, index: str) -> str:
    first, path = (os.path.join(folder, f"{millions}m_{kind}") for kind in ("BLOOM", index))
    if not os.path.exists(first):
        _make(first, millions)
    if not os.path.exists(path):
        _twin(first, path, index)
        if index == "RECORD_INDEX":
            _timed(lambda: hoodie.open_table(path).build_index("record_index"), f"{millions} M rows, {index}: build")
    return path


def _make(path: str, millions: int) -> None:
    options = {"hoodie.python.durability": "process"}
    table = hoodie.create_table(path, record_key="id", partition_by="p", ordering="ts", options=options)
    partitions = millions * 1_000_000 // (_FILES * _FILE_ROWS)
    for n in range(_FILES):
        for start in range(0, partitions, _FILES):
            names = np.arange(start, min(start + _FILES, partitions))
            ids = (n + _FILES * names)[:, None] * _FILE_ROWS + np.arange(_FILE_ROWS)
            table.append(_rows(ids.ravel()), options={"hoodie.python.parquet.key.map": "true"})


def _twin(first: str, path: str, index: str) -> None:
    """The same files, by links, as a table with this index."""
    shutil.copytree(first, path, copy_function=os.link)
    file = os.path.join(path, ".hoodie", "hoodie.properties")
    with open(file, "rb") as stream:
        properties = stream.read()
    os.unlink(file)
    with open(file, "wb") as stream:
        stream.write(properties + f"{INDEX}={index}\n".encode())


def _rows(ids: Any) -> pa.Table:
    """Keys look random, and are told by their numbers."""
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    keys = np.char.add(np.char.mod("%016x", mixed), "-a-ride")
    values = (mixed >> np.uint64(40)).astype(np.int64)
    return pa.table(
        {
            "id": pa.array(keys.tolist(), pa.string()),
            "p": [f"day-{n:03d}" for n in ids // (_FILES * _FILE_ROWS)],
            "ts": values,
            "fare": values % 10_000 / 100,
            "distance": values % 977 / 10,
            "city": pa.array([f"city {n}" for n in range(50)]).take(pa.array(values % 50)),
        }
    )


# -- Measuring.


def _measure(path: str, index: str, millions: int) -> None:
    with tempfile.TemporaryDirectory() as folder:  # imports are not what is measured
        warm = hoodie.create_table(os.path.join(folder, "t"), record_key="id", partition_by="p", ordering="ts")
        warm.upsert(_rows(np.arange(2_000)))
        _tag(warm, np.arange(2_000))
        warm.lookup({"id": _rows(np.arange(5))["id"]}).to_arrow()
    for method in ("open_input", "read", "list"):
        _count(method)
    random = np.random.default_rng(millions)
    case = f"{millions} M rows, {index}"
    table = hoodie.open_table(path)
    some = [random.integers(0, millions * 1_000_000, count) for count in (1, *[1] * 9, *[_LOOKED_UP] * 4)]
    _timed(lambda: _look_up(table, some[0]), f"{case}: first look-up of a process")
    for numbers in some[1:10]:
        _timed(lambda numbers=numbers: _look_up(table, numbers), f"{case}: look-up of 1")
    for numbers in some[10:12]:
        _timed(lambda numbers=numbers: _look_up(table, numbers), f"{case}: look-up of {_LOOKED_UP}")
    for numbers in some[12:]:
        _timed(lambda n=numbers: _look_up(table, n, ["fare"]), f"{case}: look-up of {_LOOKED_UP}, one column")
    for _ in range(3):
        numbers = random.choice(millions * 1_000_000, _TAGGED, replace=False)
        _timed(lambda numbers=numbers: _tag(table, numbers), f"{case}: tagging of {_TAGGED}")


def _look_up(table: HoodieTable, numbers: Any, columns: list[str] | None = None) -> None:
    found = table.lookup({"id": _rows(numbers)["id"]}, columns).to_arrow()
    if found.num_rows != len(set(numbers.tolist())):
        raise SystemExit(f"{found.num_rows} rows of {len(numbers)} keys")


def _tag(table: HoodieTable, numbers: Any) -> None:
    result = table.insert(_rows(numbers), options=_DROP)
    if result.inserted:
        raise SystemExit(f"{result.inserted} keys were not found")


def _timed(act: Callable[[], object], case: str) -> None:
    _CALLS.clear()
    began, clock = time.process_time(), time.monotonic()
    act()
    cpu, wall = time.process_time() - began, time.monotonic() - clock
    calls = ", ".join(f"{count} {name}" for name, count in sorted(_CALLS.items()))
    print(f"{case:60} CPU {cpu:7.3f}  wall {wall:7.3f} s  {calls}", flush=True)


def _count(method: str) -> None:
    plain = getattr(LocalStorage, method)

    def counting(storage: LocalStorage, *args: Any, **how: Any) -> Any:
        _CALLS[method] += 1
        return plain(storage, *args, **how)

    setattr(LocalStorage, method, counting)


if __name__ == "__main__":
    sys.exit(main())
