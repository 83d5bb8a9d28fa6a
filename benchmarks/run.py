"""`make bench`: hoodie beside plain pyarrow, plain Spark and its peers on the same data, into RESULTS.md beside this file.

Every system is measured in fresh processes of its own environment, one after the other. All systems must give the same rows; a
difference, or a system that fails, ends the run with status 1 and writes no page. The measurements stay in a file of the run
either way (build/bench), and `--report-only` makes the page of all files there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import records
from benchmarks.measure import WARM
from benchmarks.picture import PICTURE, picture
from benchmarks.plan import Kind, Lane, Planned, chosen
from benchmarks.report import report
from benchmarks.rides import make_rides, make_sources
from benchmarks.systems.base import LOAD, STEPS, UPSERT, Effort

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"
ROWS = 2_000_000
EMBEDDED_STEPS = (("load",), ("upsert", "pull", "random"), ("read",), ("compact",), ("read compacted",), ("small",))
"""What goes into one process of an embedded system: peaks of one step are not those of another."""
_PREFIX = "hoodie-bench-"
_OTHER_SIZES = (500_000, 8_000_000)
_STEPS_OF_OTHER_SIZES = (LOAD, UPSERT)
"""An upsert is to cost the same beside a table of any size."""


@dataclass(frozen=True)
class Environments:
    """Interpreters that have the peers."""

    embedded: str
    spark4: str
    spark3: str
    jars: str

    def interpreter(self, system: Planned) -> str:
        own = self.embedded if system.kind is Kind.PEER else sys.executable
        chosen = {Lane.SPARK4: self.spark4, Lane.SPARK3: self.spark3}.get(system.lane, own)
        return str(Path(chosen).absolute())  # not resolved: a link is how an environment's interpreter knows its own


def main(argv: Sequence[str] | None = None) -> int:
    args = _arguments().parse_args(argv)
    if not args.report_only:
        try:
            systems = chosen(args.only, full=args.full, peers=not args.no_peers, spark=not args.no_spark)
        except ValueError as exc:
            print(exc, file=sys.stderr)
            return 2
        homes = Environments(args.embedded_python, args.spark4_python, args.spark3_python, args.jars)
        sizes = [args.rows] if args.rows else [ROWS, *(_OTHER_SIZES if args.full else ())]
        for rows in sizes:
            if rows == sizes[0]:
                path = _run(args, systems, homes, rows, args.steps)
            else:
                mine = [s for s in systems if s.name in _AT_EVERY_SIZE]
                path = _run(args, mine, homes, rows, _STEPS_OF_OTHER_SIZES)
            run = records.read(path)
            if _complain(run) or run.failed:
                print(f"no page is written; the measurements are in {path}", file=sys.stderr)
                return 1
    runs = [records.read(path) for path in sorted(args.records.glob("*.jsonl"))]
    if not runs:
        print(f"no run in {args.records}", file=sys.stderr)
        return 2
    disagreeing = [run for run in runs if _complain(run)]
    if disagreeing:
        print("no page is written: remove the files of the runs in which systems disagree", file=sys.stderr)
        return 1
    page = report(runs)
    # The page of the project is of all systems: some of them get one of their own.
    out = (
        args.records / RESULTS.name
        if (args.only or args.no_peers or args.no_spark) and args.out == RESULTS
        else args.out
    )
    out.write_text(page, encoding="utf-8")
    if out == RESULTS:
        (HERE.parent / PICTURE).write_text(picture(page), encoding="utf-8")
    print(out)
    return 0


def _complain(run: records.Run) -> bool:
    """Say what is wrong with a run; True when its systems disagree about the rows."""
    differences = run.differences()
    for problem in (*(f"the systems disagree: {d}" for d in differences), *(f"failed: {f}" for f in run.failed)):
        print(f"{run.name}: {problem}", file=sys.stderr)
    return bool(differences)


_AT_EVERY_SIZE = {
    "embedded/arrow",
    "embedded/hoodie-mor",
    "spark4/spark",
    "spark4/hoodie-mor",
    "spark4/hoodie-mor-tasks",
}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rows",
        type=int,
        help=f"rows of the bulk load (default: {ROWS:,}; --full: load and upserts with 500,000 and 8,000,000 too)",
    )
    parser.add_argument("--batch", type=int, default=50_000, help="rows of each of the five upserts")
    parser.add_argument("--commits", type=int, default=50, help="number of small commits")
    parser.add_argument(
        "--reads", type=int, default=7, help="how often each read of ours is measured; peers less often"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often all systems are measured, in turns; figures are of all rounds"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="SYSTEM", help="names or patterns, such as 'spark4/*'")
    parser.add_argument(
        "--steps", nargs="+", default=STEPS, choices=STEPS, metavar="STEP", help=f"of {', '.join(STEPS)}; default: all"
    )
    parser.add_argument("--no-peers", action="store_true", help="hoodie and the floors only, in this environment")
    parser.add_argument("--no-spark", action="store_true", help="embedded systems only")
    parser.add_argument("--full", action="store_true", help="everything, at three sizes: hours")
    parser.add_argument(
        "--report-only", action="store_true", help="measure nothing, write the page of the runs that are there"
    )
    parser.add_argument("--records", type=Path, default=Path("build/bench"), help="where the runs' files are kept")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--folder", type=Path, help="where the tables go, on the disk to measure (default: a temporary folder)"
    )
    parser.add_argument("--embedded-python", default=sys.executable, help="has polars and deltalake")
    parser.add_argument("--spark4-python", default=sys.executable, help="has PySpark and Delta of one version")
    parser.add_argument(
        "--spark3-python", default=sys.executable, help="has the PySpark that Apache Hudi's bundle is made for"
    )
    parser.add_argument("--jars", default="build/jars", help="folder with the jars of the peers")
    return parser


def _run(
    args: argparse.Namespace, systems: Sequence[Planned], homes: Environments, rows: int, only: Sequence[str]
) -> Path:
    """Measure the systems on data of so many rows; gives the file with the measurements."""
    started = time.monotonic()
    path: Path = args.records / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{rows}.jsonl"
    records.begin(path, _about(args, rows))
    if args.folder is not None:
        args.folder.mkdir(parents=True, exist_ok=True)
    _remove_left_over(args.folder or Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", dir=args.folder) as name:
        folder = Path(name)
        make_rides(folder, rows=rows, batch_rows=args.batch, small_count=args.commits)
        if any(system.lane is not Lane.EMBEDDED for system in systems):
            make_sources(folder)
            make_rides(
                folder / WARM, rows=max(rows // 100, 2_000), batch_rows=max(args.batch // 100, 50), small_count=0
            )
            make_sources(folder / WARM)
        for system in [*systems] * args.rounds:
            loads = 1 if rows > ROWS else Effort.loads
            effort = Effort(loads=loads, reads=3 if system.kind is Kind.PEER else args.reads)
            steps = [step for step in system.steps_of(full=args.full) or system.steps if step in only]
            together = EMBEDDED_STEPS if system.lane is Lane.EMBEDDED else (steps,)
            for group in together:
                mine = [step for step in group if step in steps]
                if mine and not _measure(path, folder, system, homes, effort, mine):
                    break
            print(f"{time.monotonic() - started:6.0f} s  {system.name}", file=sys.stderr, flush=True)
    records.note(path, load=os.getloadavg()[0], seconds=round(time.monotonic() - started))
    return path


def _remove_left_over(folder: Path) -> None:
    """Remove the tables of runs that were killed: gigabytes each, and a disk that is nearly full makes the next run slow."""
    for left in folder.glob(f"{_PREFIX}*-*"):
        owner = left.name.removeprefix(_PREFIX).partition("-")[0]
        if not owner.isdecimal():
            continue
        try:
            os.kill(int(owner), 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except PermissionError:
            continue  # it runs, as another user


def _measure(
    out: Path, folder: Path, system: Planned, homes: Environments, effort: Effort, steps: Sequence[str]
) -> bool:
    """Run one measuring process; its errors go to our stderr, and that it failed into the run's file."""
    paths = [str(HERE.parent), str(HERE.parent / "spark_ext")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [*paths, os.environ.get("PYTHONPATH")])),
        "HOODIE_BENCH_JARS": str(Path(homes.jars).resolve()),
    }
    command = [homes.interpreter(system), "-m", "benchmarks.measure", str(folder), system.name, str(out.resolve())]
    done = subprocess.run([*command, json.dumps(asdict(effort)), *steps], check=False, env=environment, cwd=folder)
    if done.returncode:
        records.note(out, failed=f"{system.name} in {', '.join(steps)} (status {done.returncode})")
    return done.returncode == 0


def _about(args: argparse.Namespace, rows: int) -> dict[str, object]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    return {
        "rows": rows,
        "batch": args.batch,
        "commits": args.commits,
        "started": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GB",
        "load": round(os.getloadavg()[0], 1),
        "versions": f"Python {platform.python_version()}, pyarrow {version('pyarrow')}",
    }


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the measuring process and removes the tables
    sys.exit(main())
