"""Several writers upsert into one partition of one table at once: what their conflicts cost.

    python -m benchmarks.writers --writers 4 --batches 5

The same batches are written by one process, too, one after the other: no conflict costs that. Each case gives the seconds from the
first start to the last end, the processor time that all writers took, and how many tries were lost (each is rolled back).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import hoodie
from hoodie.model.enums import Action

BASE = 1_000_000
BATCH = 20_000
FILE_MB = 8
"""Target size of a base file: some file groups in the one partition."""


@dataclass(frozen=True)
class Case:
    name: str
    table_type: str
    new: float
    """The share of a batch's rows whose keys are new."""


CASES = (
    Case("merge-on-read, updates only", "MERGE_ON_READ", 0),
    Case("merge-on-read, a tenth new", "MERGE_ON_READ", 0.1),
    Case("copy-on-write, a tenth new", "COPY_ON_WRITE", 0.1),
)


def rows(keys: np.ndarray, seed: int) -> pa.Table:
    """Rides of one city: some measures, some texts."""
    rng = np.random.default_rng(seed)
    count = len(keys)
    return pa.table(
        {
            "id": pa.array(np.char.add("ride-", np.char.zfill(keys.astype(str), 10))),
            "city": pa.repeat("oslo", count),
            "ts": pa.array(np.full(count, seed, np.int64)),
            "fare": rng.random(count),
            "tip": rng.random(count),
            "driver": pa.array(np.char.add("driver-", rng.integers(0, 5000, count).astype(str))),
            "note": pa.array(np.char.add("note-", rng.integers(0, 10**9, count).astype(str))),
        }
    )


def batch(case: Case, writer: int, number: int) -> pa.Table:
    """Old keys by chance, new ones that no other batch has."""
    seed = 1 + 1000 * writer + number
    rng = np.random.default_rng(seed)
    fresh = int(BATCH * case.new)
    first = BASE + seed * BATCH
    return rows(np.concatenate([rng.choice(BASE, BATCH - fresh, replace=False), np.arange(first, first + fresh)]), seed)


def work(case: Case, path: str, writers: Sequence[int], batches: int) -> None:
    """What a process does: say that it is ready, wait for the start, write."""
    table = hoodie.open_table(path)
    todo = [batch(case, writer, number) for number in range(batches) for writer in writers]
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    for data in todo:
        table.upsert(data)
    print(json.dumps(time.process_time() - before), flush=True)


def measure(case: Case, base: Path, writers: int, batches: int, *, at_once: bool) -> tuple[float, float, int]:
    """(seconds, processor seconds, tries that were lost)"""
    with tempfile.TemporaryDirectory(dir=base.parent) as folder:
        path = Path(folder) / "table"
        shutil.copytree(base, path)
        shares = [[writer] for writer in range(writers)] if at_once else [list(range(writers))]
        children = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.writers",
                    "--work",
                    json.dumps([CASES.index(case), str(path), share, batches]),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for share in shares
        ]
        pipes = [(child.stdin, child.stdout) for child in children]
        for _, answers in pipes:
            if answers is None or answers.readline().strip() != "ready":
                raise RuntimeError("a writer did not start")
        started = time.monotonic()
        for orders, _ in pipes:
            print("go", file=orders, flush=True)
        spent = [json.loads(answers.readline()) for _, answers in pipes if answers is not None]
        seconds = time.monotonic() - started
        for child in children:
            child.communicate(timeout=60)
        table = hoodie.open_table(str(path))
        count, expected = (
            table.scan(columns=["id"]).to_arrow().num_rows,
            BASE + writers * batches * int(BATCH * case.new),
        )
        if count != expected:
            raise RuntimeError(f"{case.name}: the table has {count} rows, not {expected}")
        lost = sum(1 for entry in os.scandir(path / ".hoodie") if entry.name.endswith(f".{Action.ROLLBACK.value}"))
    return seconds, sum(spent), lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--batches", type=int, default=5, help="of each writer")
    parser.add_argument("--cases", type=int, nargs="*", default=range(len(CASES)), help="their numbers")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        number, path, writers, batches = json.loads(given.work)
        return work(CASES[number], path, writers, batches)
    print("| case | writers | s | CPU s | tries lost |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for number in given.cases:
            case, base = CASES[number], Path(folder) / f"base{number}"
            table = hoodie.create_table(
                str(base),
                record_key="id",
                partition_by="city",
                ordering="ts",
                table_type=case.table_type,
                options={"hoodie.parquet.max.file.size": str(FILE_MB << 20)},
            )
            table.bulk_insert(rows(np.arange(BASE), 0))
            for at_once in (False, True):
                seconds, cpu, lost = measure(case, base, given.writers, given.batches, at_once=at_once)
                print(
                    f"| {case.name} | {given.writers if at_once else 1} | {seconds:.1f} | {cpu:.1f} | {lost} |",
                    flush=True,
                )
    return None


if __name__ == "__main__":
    main()
