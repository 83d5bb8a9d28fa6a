"""A few rows into each of many partitions of a local disk: hoodie beside delta-rs, which does not wait for the disk.

    python -m benchmarks.partitions --peers .venv-bench-embedded/bin/python

Each round runs every system once, in a process of its own: a first load, an upsert of all rows, and an upsert into ten partitions. The
process has written a small table before, so that its imports are not among the figures.
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
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

SYSTEMS = {
    "hoodie, power_cut": ("MERGE_ON_READ", "power_cut"),
    "hoodie, process": ("MERGE_ON_READ", "process"),
    "hoodie, copy_on_write": ("COPY_ON_WRITE", "power_cut"),
    "delta-rs": ("", ""),
}
"""Name -> type of the table, durability."""
_ROWS = 10
"""Of each partition."""
_FEW = 10
_WARM_UP = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default=sys.executable, help="the interpreter of an environment with deltalake")
    parser.add_argument("--system", choices=SYSTEMS, help="run this one here")
    parser.add_argument("--folder", help="where the tables of --system go")
    given = parser.parse_args()
    if given.system:
        _run(given.system, _WARM_UP, os.path.join(given.folder, "small"), silent=True)
        _run(given.system, given.partitions, os.path.join(given.folder, "t"))
        return 0
    # All tables stay to the end: ext4 passes over inodes that were freed in the last minute, one by one, when it makes a file.
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(given.rounds):
            for number, (system, (table_type, _)) in enumerate(SYSTEMS.items()):
                python = sys.executable if table_type else given.peers
                argv = [python, "-m", "benchmarks.partitions", "--partitions", str(given.partitions)]
                here = ["--system", system, "--folder", os.path.join(folder, f"{turn}-{number}")]
                subprocess.run([*argv, *here], check=True)
    return 0


def _run(system: str, partitions: int, path: str, *, silent: bool = False) -> None:
    table_type, durability = SYSTEMS[system]
    measure = partial(_measure, system, silent=silent)
    batches = [_rows(partitions, _ROWS * partitions, value) for value in (1, 2)]
    few = _rows(partitions, _FEW, 3)
    if table_type:
        hoodie: Any = importlib.import_module("hoodie")
        options = {"hoodie.python.durability": durability}
        table = hoodie.create_table(
            path, record_key="id", partition_by="p", ordering="ts", table_type=table_type, options=options
        )
        measure("load", lambda: table.upsert(batches[0]))
        measure("upsert", lambda: table.upsert(batches[1]))
        measure("upsert into ten", lambda: table.upsert(few))
        return
    delta: Any = importlib.import_module("deltalake")

    def merge(rows: pa.Table) -> None:
        where = "s.id = t.id and s.p = t.p"
        merged = delta.DeltaTable(path).merge(rows, where, source_alias="s", target_alias="t")
        merged.when_matched_update_all().when_not_matched_insert_all().execute()

    measure("load", lambda: delta.write_deltalake(path, batches[0], partition_by=["p"]))
    measure("upsert", lambda: merge(batches[1]))
    measure("upsert into ten", lambda: merge(few))


def _rows(partitions: int, count: int, value: int) -> pa.Table:
    ids = np.arange(count)
    return pa.table({"id": ids, "p": [f"p{n % partitions:05d}" for n in ids], "ts": np.full(count, value)})


def _measure(system: str, case: str, act: Callable[[], object], *, silent: bool) -> None:
    began_s, before = time.monotonic(), os.times()
    act()
    after, wall_s = os.times(), time.monotonic() - began_s
    user_s, system_s = after.user - before.user, after.system - before.system
    if not silent:
        print(f"{system:21} {case:16} wall {wall_s:6.2f} s, user {user_s:6.2f} s, system {system_s:6.2f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
