"""`make bench`: hoodie beside plain pyarrow and plain Spark on the same data, into RESULTS.md beside this file.

Every measurement comes from a fresh process (Spark: a fresh session for each system), so that no system warms up
another's memory. All systems must give the same rows; a difference ends the run with status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from benchmarks import embedded, with_spark
from benchmarks.meter import Cost
from benchmarks.rides import BATCHES, PARTITIONS, RECENT, UPDATES, load, make_rides

HERE = Path(__file__).resolve().parent
STEPS = ("load", "upsert", "read", "compact")

# Row of the report -> (case of the floor, what the floor does). Merge-on-read and copy-on-write upserts have
# different floors: one only has to write the batch, the other has to rewrite what it touches.
_SNAPSHOT_FLOORS = {
    f"{read}, {view}": f"{read}, snapshot"
    for read in ("aggregate", "full scan")
    for view in ("snapshot", "read-optimized")
}
_EMBEDDED_FLOORS = {
    **_SNAPSHOT_FLOORS,
    "bulk load": "bulk load",
    "incremental, last commit": "incremental, last commit",
    "compaction": "compaction",
}
_SPARK_FLOORS = _EMBEDDED_FLOORS | {"compaction": "copy of the table"}


@dataclass
class Results:
    """Measurements by system and case."""

    costs: dict[tuple[str, str], list[Cost]] = field(default_factory=dict)
    checks: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, system: str, lines: Iterable[str]) -> None:
        for line in lines:
            found = json.loads(line)
            at = (system, found.pop("case"))
            self.checks.setdefault(at, []).append(found.pop("check"))
            self.costs.setdefault(at, []).append(Cost(**found))

    def typical(self, system: str, case: str) -> Cost | None:
        """Medians of wall and CPU time; the greatest peak."""
        found = self.costs.get((system, case))
        if not found:
            return None
        return Cost(
            statistics.median(c.wall_s for c in found),
            statistics.median(c.cpu_s for c in found),
            max(c.peak_bytes for c in found),
        )

    def differences(self) -> list[str]:
        """Cases in which two systems have different rows; answers that are left empty have nothing to compare."""
        by_case: dict[str, dict[tuple[str, ...], list[str]]] = {}
        for (system, case), checks in self.checks.items():
            answers = tuple(sorted(set(checks)))
            if answers != ("",):
                by_case.setdefault(case, {}).setdefault(answers, []).append(system)
        return [f"{case}: {found}" for case, found in by_case.items() if len(found) > 1]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of the bulk load")
    parser.add_argument("--batch", type=int, default=50_000, help=f"rows of each of the {BATCHES} upserts")
    parser.add_argument(
        "--quick", action="store_true", help="one process for all embedded steps of a system: peaks say less"
    )
    parser.add_argument("--no-spark", action="store_true", help="only the embedded cases")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    parser.add_argument(
        "--folder", type=Path, help="where the tables go, on the disk to measure (default: a temporary folder)"
    )
    args = parser.parse_args(argv)
    if args.folder is not None:
        args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hoodie-bench-", dir=args.folder) as name:
        folder = Path(name)
        make_rides(folder, rows=args.rows, batch_rows=args.batch)
        size = load(folder, "base").nbytes
        results = Results()
        for system in embedded.SYSTEMS:
            steps = [step for step in STEPS if (system, step) != ("cow", "compact")]
            for together in [steps] if args.quick else [[step] for step in steps]:
                results.add(system, measure("benchmarks.embedded", str(folder), system, *together))
        for system in () if args.no_spark else with_spark.SYSTEMS:
            results.add(system, measure("benchmarks.with_spark", str(folder), system))
    differences = [d for d in results.differences() if not d.startswith(("aggregate", "incremental"))]
    differences += _reads_that_differ(results)
    for difference in differences:
        print(f"the systems disagree: {difference}", file=sys.stderr)
    if differences:
        return 1
    args.out.write_text(
        report(results, rows=args.rows, batch=args.batch, size=size, spark=not args.no_spark), encoding="utf-8"
    )
    print(args.out)
    return 0


def _reads_that_differ(results: Results) -> list[str]:
    """Plain Spark appends instead of merging, so its snapshot has other rows; every other system must agree."""
    merged = Results(checks={at: checks for at, checks in results.checks.items() if at[0] != "spark"})
    return [d for d in merged.differences() if d.startswith(("aggregate", "incremental"))]


def measure(module: str, *arguments: str) -> list[str]:
    """The JSON lines of one measuring process; its errors go to our stderr."""
    print(f"{module.rpartition('.')[2]} {' '.join(arguments[1:])}", file=sys.stderr, flush=True)
    paths = [str(HERE.parent), str(HERE.parent / "spark_ext")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH")]))}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True, check=True, env=environment
    )
    return done.stdout.splitlines()


# -- the report ------------------------------------------------------------------------------------------------------


def report(results: Results, *, rows: int, batch: int, size: int, spark: bool) -> str:
    machine = f"{os.cpu_count()} cores, {_memory_gb():.0f} GB, load average {os.getloadavg()[0]:.1f} at the end"
    lines = [
        "# Benchmark results",
        "",
        "Made by `make bench` (`benchmarks/run.py`); do not edit. "
        f"Python {platform.python_version()}, pyarrow {version('pyarrow')}, {machine}.",
        "",
        f"Data: rides of 15 columns in {PARTITIONS} partitions, {rows:,} rows, {size / 1e6:,.0f} MB as Arrow, in the order of their "
        f"days; random keys of 24 characters. {BATCHES} upserts of {batch:,} rows each: {UPDATES:.0%} updates in the {RECENT} newest "
        "partitions, the rest new.",
        "",
        "Each cell is wall seconds / CPU seconds / peak memory of the whole process tree (median; the peak is the greatest). "
        "The ratio in brackets is CPU to the floor's CPU. All systems gave the same rows.",
        "",
        "## Embedded",
        "",
        "The floor is plain pyarrow with the same codec (zstd): no keys looked up, no log, no commit, no fsync. For the upsert of "
        "merge-on-read it only writes the batch beside the table; for copy-on-write it reads, merges and rewrites the touched "
        "partitions; an incremental read is a scan with a filter on the time of update.",
        "",
        *_table(results, "arrow", {"mor": "merge-on-read", "cow": "copy-on-write"}, _EMBEDDED_FLOORS, "upsert"),
    ]
    if spark:
        lines += [
            "",
            "## PySpark",
            "",
            f"PySpark {version('pyspark')}, one local session with `conf/`; starting the JVM is not counted. The floor is plain "
            "Parquet: the write of the same DataFrame, for copy-on-write upserts and the compaction a copy of the table "
            "(`spark.read.parquet(…).write.parquet(…)`).",
            "",
            *_table(
                results,
                "spark",
                {"spark-mor": "merge-on-read", "spark-cow": "copy-on-write"},
                _SPARK_FLOORS,
                "copy of the table",
            ),
        ]
    return "\n".join(lines) + "\n"


def _table(
    results: Results, floor: str, systems: Mapping[str, str], floors: Mapping[str, str], rewrite: str
) -> list[str]:
    lines = ["| case | floor | " + " | ".join(systems.values()) + " |", "|---|---|" + "---|" * len(systems)]
    cases = list(dict.fromkeys(case for system, case in results.costs if system in systems))
    for case in cases:
        if case == "upsert":
            continue
        base = results.typical(floor, floors[case])
        cells = [_cell(results.typical(system, case), base) for system in systems]
        lines.append(f"| {case} | {_cell(base)} | {' | '.join(cells)} |")
    merge, copy = systems
    appended, rewritten = results.typical(floor, "append"), results.typical(floor, rewrite)
    upserts = [
        f"| upsert, floor: write the batch | {_cell(appended)} | {_cell(results.typical(merge, 'upsert'), appended)} | |",
        f"| upsert, floor: {'read, merge, write' if rewrite == 'upsert' else rewrite} | {_cell(rewritten)} | | "
        f"{_cell(results.typical(copy, 'upsert'), rewritten)} |",
    ]
    return lines[:3] + upserts + lines[3:]


def _cell(cost: Cost | None, base: Cost | None = None) -> str:
    if cost is None:
        return ""
    ratio = f" ({cost.cpu_s / base.cpu_s:.1f}×)" if base is not None and base.cpu_s else ""
    return f"{cost.wall_s:.2f} / {cost.cpu_s:.2f}{ratio} / {cost.peak_bytes / 1e6:,.0f} MB"


def _memory_gb() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9


if __name__ == "__main__":
    sys.exit(main())
