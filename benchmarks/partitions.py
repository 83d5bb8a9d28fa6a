"""A few rows into each of many partitions of a local disk: hoodie beside delta-rs, which does not wait for the disk.

    python -m benchmarks.partitions --peers .venv-bench-embedded/bin/python

Each round runs every system once, in a process of its own: a first load, an upsert of all rows, and an upsert into ten partitions.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

SYSTEMS = {"hoodie, power_cut": "power_cut", "hoodie, process": "process", "delta-rs": ""}
"""Name -> durability."""
_ROWS = 10
"""Of each partition."""
_FEW = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default=sys.executable, help="the interpreter of an environment with deltalake")
    parser.add_argument("--system", choices=SYSTEMS, help="run this one here")
    given = parser.parse_args()
    if given.system:
        with tempfile.TemporaryDirectory() as folder:
            _run(given.system, given.partitions, folder)
        return 0
    for _ in range(given.rounds):
        for system, durability in SYSTEMS.items():
            python = sys.executable if durability else given.peers
            argv = [python, "-m", "benchmarks.partitions", "--system", system, "--partitions", str(given.partitions)]
            subprocess.run(argv, check=True)
    return 0


def _run(system: str, partitions: int, folder: str) -> None:
    path, durability = os.path.join(folder, "t"), SYSTEMS[system]
    batches = [_rows(partitions, _ROWS * partitions, value) for value in (1, 2)]
    few = _rows(partitions, _FEW, 3)
    if durability:
        hoodie: Any = importlib.import_module("hoodie")
        options = {"hoodie.python.durability": durability}
        table = hoodie.create_table(
            path, record_key="id", partition_by="p", ordering="ts", table_type="MERGE_ON_READ", options=options
        )
        _measure(system, "load", lambda: table.upsert(batches[0]))
        _measure(system, "upsert", lambda: table.upsert(batches[1]))
        _measure(system, "upsert into ten", lambda: table.upsert(few))
        return
    delta: Any = importlib.import_module("deltalake")

    def merge(rows: pa.Table) -> None:
        where = "s.id = t.id and s.p = t.p"
        merged = delta.DeltaTable(path).merge(rows, where, source_alias="s", target_alias="t")
        merged.when_matched_update_all().when_not_matched_insert_all().execute()

    _measure(system, "load", lambda: delta.write_deltalake(path, batches[0], partition_by=["p"]))
    _measure(system, "upsert", lambda: merge(batches[1]))
    _measure(system, "upsert into ten", lambda: merge(few))


def _rows(partitions: int, count: int, value: int) -> pa.Table:
    ids = np.arange(count)
    return pa.table({"id": ids, "p": [f"p{n % partitions:05d}" for n in ids], "ts": np.full(count, value)})


def _measure(system: str, case: str, act: Callable[[], object]) -> None:
    began_s, before = time.monotonic(), os.times()
    act()
    after, wall_s = os.times(), time.monotonic() - began_s
    user_s, system_s = after.user - before.user, after.system - before.system
    print(f"{system:18} {case:16} wall {wall_s:6.2f} s, user {user_s:6.2f} s, system {system_s:6.2f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
