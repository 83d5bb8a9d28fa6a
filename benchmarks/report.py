"""Runs -> the results page: goals first, then what each system took, and ours beside each peer."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.goals import SIZE, Ratio, Reached, goals, over
from benchmarks.meter import Cost
from benchmarks.plan import SYSTEMS, Kind, Lane, Planned
from benchmarks.records import At, Run, newest, pair, typical
from benchmarks.rides import PARTITIONS, RANDOM_PERCENTS, RECENT, SMALL_ROWS, UPDATES
from benchmarks.systems.base import (
    AFTER,
    AGGREGATE,
    BEFORE,
    LOADED,
    LOOKUP,
    PLAIN,
    READ_OPTIMIZED,
    SCAN,
    SNAPSHOT,
    UPSERTED,
    WIDE_AGGREGATE,
    first_three,
)

_TITLES = {
    Lane.SPARK4: "Spark 4",
    Lane.SPARK3: "Spark 3.5, the newest that Apache Hudi's bundle is made for",
    Lane.EMBEDDED: "Embedded, no Spark",
}
_RANDOM = tuple(f"random {percent} %" for percent in RANDOM_PERCENTS)
_WRITES = ("bulk load", "upsert", *(f"upsert, {called}" for called in _RANDOM), "compaction", "small commit")
_OTHERS = ("incremental, last commit",)
_FLOORS = {
    "bulk load": "copy",
    "upsert": "append",
    **{f"upsert, {called}": f"append, {called}" for called in _RANDOM},
    "small commit": "small append",
    "incremental, last commit": "incremental, last commit",
}
"""Our case -> the floor's."""


def report(runs: Sequence[Run]) -> str:
    """The page of runs, oldest first.

    It is about tables of `goals.SIZE` rows, or of the newest run's where there is none; of runs of other sizes upserts are shown.
    """
    newest_run = max(runs, key=lambda run: (run.rows == SIZE, run.name))
    mine = [run for run in runs if run.size == newest_run.size]
    lines = [*_head(mine), *_goals(mine, [run for run in runs if run.rows != newest_run.rows])]
    there = {at.system for run in mine for at in run.costs}
    for lane, title in _TITLES.items():
        systems = [system for system in SYSTEMS if system.lane is lane and system.name in there]
        if systems:
            lines += ["", f"## {title}", *_lane(mine, systems)]
    lines += _commits(mine)
    return "\n".join(lines) + "\n"


def _head(runs: Sequence[Run]) -> list[str]:
    about = runs[-1].about
    failed = [failure for run in runs for failure in run.failed]
    return [
        "# Benchmark results",
        "",
        "Made by `make bench` (`benchmarks/run.py`); do not edit.",
        *[f"**Failed: {failure}.**" for failure in failed],
        "",
        f"Machine: {about['machine']}, {about['versions']}. Runs:",
        "",
        *[f"- {run.about['started']}, load average {run.about['load']} when it began" for run in runs],
        "",
        "## What is measured",
        "",
        f"The data are rides of 15 columns in {PARTITIONS} partitions: {about['rows']:,} rows of about 180 bytes as Parquet, in the",
        "order of their days, with random keys of 24 characters.",
        "",
        "1. Bulk load.",
        f"2. Five upserts of {about['batch']:,} rows each: {UPDATES:.0%} updates in the {RECENT} newest partitions, the rest new.",
        "   Then a pull of the last one.",
        f"3. Upserts of random keys of all partitions: {' and '.join(map(str, RANDOM_PERCENTS))} per cent of the table's rows.",
        "4. Reads, with logs on every file.",
        "5. Compaction, and the reads once more.",
        f"6. Commits of {SMALL_ROWS:,} rows like the first upserts.",
        "",
        "- Every system runs alone, in processes of its own, on `local[2]`, with the same heap and the same source files. All",
        "  files are compressed with zstd. On Spark, each system first does the same work on a small table.",
        "- Each has the settings that its own pages recommend; hoodie has",
        "  `spark.python.daemon.module=pyspark_hoodie.daemon`. All merge by key and partition. Only hoodie and Apache Hudi also",
        "  compare times of update.",
        "- Time and memory are those of the whole process tree; pages that processes share count once. Figures are medians, a",
        "  peak is the greatest.",
        "- All systems gave the same rows. A ratio is taken inside one run. Ratios of two runs differ by a tenth to a fifth.",
    ]


# -- goals -------------------------------------------------------------------------------------------------------------


def _goals(runs: Sequence[Run], others: Sequence[Run]) -> list[str]:
    lines = ["", "## Goals", "", "| measure | goal | reached | |", "|---|---|---|---|"]
    lines += [_goal(goal.judge(runs)) for goal in goals()]
    for rows in sorted({run.rows for run in others}):
        of_size = [run for run in others if run.rows == rows]
        for goal in goals():
            if isinstance(goal, Ratio) and goal.floor.case == "append":
                found = goal.judge(of_size)
                lines.append(_goal(found._replace(measure=f"{found.measure}, {rows:,} rows")))
    return lines


def _goal(reached: Reached) -> str:
    verdict = "" if reached.met is None else "met" if reached.met else "**not met**"
    return f"| {reached.measure} | {reached.goal} | {reached.figure or 'not measured'} | {verdict} |"


# -- what each system took ---------------------------------------------------------------------------------------------


def _lane(runs: Sequence[Run], systems: Sequence[Planned]) -> list[str]:
    versions = {part for run in runs for s in systems for part in run.versions.get(s.name, "").split(", ") if part}
    floor = next((s.name for s in systems if s.kind is Kind.FLOOR), "")
    others = [s for s in systems if s.kind is not Kind.FLOOR]
    lines = [
        "",
        ", ".join(sorted(versions)) + ".",
        "",
        "Wall / CPU seconds; in brackets CPU ÷ the floor's CPU.",
        "",
        "| | floor | " + " | ".join(s.title for s in others) + " |",
        "|---|---|" + "---|" * len(others),
    ]
    for case in (*_WRITES, *_OTHERS):
        base = At(floor, _FLOORS.get(case, ""))
        cells = [_cell(runs, At(s.name, case), base) for s in others]
        if any(cells):
            lines.append(f"| {case} | {_floor_cell(runs, base)} | {' | '.join(cells)} |")
    lines += [
        f"| floor: {case} | {_floor_cell(runs, At(floor, case))} |" + " |" * len(others)
        for case in _more_floors(runs, floor)
    ]
    lines += ["", "Written, MB / files:", "", "| | floor | " + " | ".join(s.title for s in others) + " |"]
    lines.append("|---|---|" + "---|" * len(others))
    for case in _WRITES:
        cells = [_written(newest(runs, At(s.name, case))) for s in others]
        if any(cells):
            lines.append(
                f"| {case} | {_written(newest(runs, At(floor, _FLOORS.get(case, ''))))} | {' | '.join(cells)} |"
            )
    peaks = [
        f"{max(run.peak(s.name) for run in runs) / 1e6:,.0f}"
        for s in (*[s for s in systems if s.kind is Kind.FLOOR], *others)
    ]
    if floor:
        lines.append(f"| peak memory of all steps, MB | {' | '.join(peaks)} |")
    return lines + _reads(runs, others) + _pairs(runs, systems)


def _more_floors(runs: Sequence[Run], floor: str) -> list[str]:
    """Cases of the floor that stand beside no case of a table."""
    shown = set(_FLOORS.values())
    cases = dict.fromkeys(at.case for run in runs for at in run.costs if at.system == floor)
    return [case for case in cases if case not in shown and not case.startswith("rows after")]


def _reads(runs: Sequence[Run], systems: Sequence[Planned]) -> list[str]:
    lines = []
    for state in (BEFORE, AFTER):
        for query in (AGGREGATE, SCAN, LOOKUP):
            for view in (PLAIN, SNAPSHOT, READ_OPTIMIZED):
                plain = f"{query}, {PLAIN}, {state}"
                cells = [
                    _cell(runs, at := At(s.name, f"{query}, {view}, {state}"), at._replace(case=plain)) for s in systems
                ]
                if any(cells):
                    lines.append(f"| {query}, {view}, {state} | {' | '.join(cells)} |")
    for query in (WIDE_AGGREGATE, SCAN):
        plain = first_three(query, LOADED)
        for case in (plain, first_three(query, UPSERTED)):
            cells = [_cell(runs, at := At(s.name, case), at._replace(case=plain)) for s in systems]
            if any(cells):
                lines.append(f"| {case} | {' | '.join(cells)} |")
    if not lines:
        return []
    return [
        "",
        "Reads. The ratio is to a plain scan of the system's own base files in the same session: those of the load, where",
        "upserts leave them in place. First queries are of the snapshot, three as one measurement; there it is to those after the",
        "load.",
        "",
        "| | " + " | ".join(s.title for s in systems) + " |",
        "|---|" + "---|" * len(systems),
        *lines,
    ]


def _pairs(runs: Sequence[Run], systems: Sequence[Planned]) -> list[str]:
    """Each peer ÷ ours, in wall and in CPU time."""
    ours = next((s for s in systems if s.kind is Kind.OURS), None)
    peers = [s for s in systems if s.kind is Kind.PEER]
    if ours is None or not peers:
        return []
    reads = [f"{query}, {SNAPSHOT}, {state}" for state in (BEFORE, AFTER) for query in (AGGREGATE, SCAN, LOOKUP)]
    reads += [first_three(query, state) for query in (WIDE_AGGREGATE, SCAN) for state in (LOADED, UPSERTED)]
    lines = []
    for case in (*_WRITES, *_OTHERS, *reads):
        found = [pair(runs, At(ours.name, case), At(peer.name, case)) for peer in peers]
        if any(found):
            lines.append(f"| {case} | {' | '.join(_lead(both) for both in found)} |")
    return [
        "",
        f"How many times what {ours.title} takes, wall / CPU (below 1 the peer is ahead):",
        "",
        "| | " + " | ".join(s.title for s in peers) + " |",
        "|---|" + "---|" * len(peers),
        *lines,
    ]


def _commits(runs: Sequence[Run]) -> list[str]:
    lines = []
    for system in SYSTEMS:
        for case in ("small commit", "small append"):
            costs = next(
                (c for run in reversed(runs) if len(c := run.costs.get(At(system.name, case), [])) >= 20), None
            )
            if costs:
                first, last = typical(costs[:10]), typical(costs[-10:])
                lines.append(
                    f"| {system.lane}: {system.title} | {len(costs)} | {first.wall_s:.3f} / {first.cpu_s:.3f} "
                    f"| {last.wall_s:.3f} / {last.cpu_s:.3f} |"
                )
    if not lines:
        return []
    head = ["", f"## Commits of {SMALL_ROWS:,} rows", "", "Wall / CPU seconds. Those of the floor are appends.", ""]
    return [*head, "| | commits | first ten | last ten |", "|---|---|---|---|", *lines]


# -- cells -------------------------------------------------------------------------------------------------------------


def _cell(runs: Sequence[Run], at: At, base: At) -> str:
    """The figure beside its base where one run has both; else the newest figure alone."""
    found = pair(runs, at, base) if base != at else None
    if found is not None:
        return f"{_times(found[0])} ({over(found[0].cpu_s, found[1].cpu_s):.2f}×)"
    alone = newest(runs, at)
    return _times(alone) if alone else ""


def _floor_cell(runs: Sequence[Run], at: At) -> str:
    found = newest(runs, at)
    return _times(found) if found else ""


def _times(cost: Cost) -> str:
    digits = 2 if cost.wall_s >= 0.1 else 3
    return f"{cost.wall_s:.{digits}f} / {cost.cpu_s:.{digits}f}"


def _written(cost: Cost | None) -> str:
    return f"{cost.written_bytes / 1e6:,.1f} / {cost.written_files:,}" if cost else ""


def _lead(both: tuple[Cost, Cost] | None) -> str:
    if both is None:
        return ""
    mine, theirs = both
    return f"{over(theirs.wall_s, mine.wall_s):.1f} / {over(theirs.cpu_s, mine.cpu_s):.1f}"
