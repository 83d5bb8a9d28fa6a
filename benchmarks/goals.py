"""What is to be reached, as data, and whether a set of runs reaches it. A ratio is taken inside one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.records import At, Run, newest, pair, typical
from benchmarks.rides import SMALL_ROWS
from benchmarks.systems.base import (
    AGGREGATE,
    BEFORE,
    LOADED,
    PLAIN,
    READ_OPTIMIZED,
    SCAN,
    SNAPSHOT,
    UPSERTED,
    WIDE_AGGREGATE,
    first_three,
)

SIZE = 2_000_000
"""Rows of the table that goals in seconds and megabytes are about."""


class Reached(NamedTuple):
    """One line of the report's first table."""

    measure: str
    goal: str
    figure: str
    """Empty: not measured."""
    met: bool | None
    """None: not measured, or not judged at this size."""


@dataclass(frozen=True)
class Ratio:
    """Ours divided by a floor of the same run, CPU first, wall second; both are to be at most `limit`."""

    measure: str
    ours: At
    floor: At
    limit: float

    def judge(self, runs: Sequence[Run]) -> Reached:
        floor_name = self.floor.system.partition("/")[2]
        same = self.floor.system == self.ours.system
        goal = f"≤ {self.limit:g} × " + ("plain scan" if same else f"{floor_name}: {self.floor.case}")
        found = pair(runs, self.ours, self.floor)
        if found is None:
            return Reached(self.measure, goal, "", None)
        mine, floor = found
        cpu, wall = over(mine.cpu_s, floor.cpu_s), over(mine.wall_s, floor.wall_s)
        figure = f"CPU {cpu:.2f}, wall {wall:.2f} ({mine.cpu_s:.2f} ÷ {floor.cpu_s:.2f}, {mine.wall_s:.2f} ÷ {floor.wall_s:.2f} s)"
        return Reached(self.measure, goal, figure, max(cpu, wall) <= self.limit)


@dataclass(frozen=True)
class Seconds:
    """At most so many seconds of wall and of CPU time, on the table of `SIZE` rows."""

    measure: str
    ours: At
    wall_s: float
    cpu_s: float
    floor: At | None = None
    """What tells how fast the machine is, and"""
    floor_cpu_s: float = 0.0
    """the CPU time that it took on the one that the goal was set on, with that one's data."""

    def judge(self, runs: Sequence[Run]) -> Reached:
        goal = f"≤ {self.wall_s:g} s wall, {self.cpu_s:g} s CPU"
        found = newest(runs, self.ours)
        if found is None:
            return Reached(self.measure, goal, "", None)
        met = found.wall_s <= self.wall_s and found.cpu_s <= self.cpu_s
        figure = f"{found.wall_s:.2f} s wall, {found.cpu_s:.2f} s CPU"
        both = pair(runs, self.ours, self.floor) if self.floor is not None else None
        if self.floor is not None and both is not None:
            here, there = over(both[0].cpu_s, both[1].cpu_s), self.cpu_s / self.floor_cpu_s
            figure += f"; CPU {here:.2f} × {self.floor.case}, and {there:.2f} × where the goal was set"
        return Reached(self.measure, goal, figure, met if runs[-1].rows == SIZE else None)


@dataclass(frozen=True)
class Megabytes:
    """At most so many times the batch's own size as Parquet, which is what the floor's append writes."""

    measure: str
    ours: At
    append: At
    limit: float

    def judge(self, runs: Sequence[Run]) -> Reached:
        goal = f"≤ {self.limit:.1f} × the batch"
        found = pair(runs, self.ours, self.append)
        if found is None:
            return Reached(self.measure, goal, "", None)
        mine, batch = found[0].written_bytes, found[1].written_bytes
        return Reached(
            self.measure,
            goal,
            f"{over(mine, batch):.2f} ({mine / 1e6:.1f} ÷ {batch / 1e6:.1f} MB)",
            mine <= self.limit * batch,
        )


@dataclass(frozen=True)
class Lead:
    """The best peer of each lane takes at least so many times the CPU, and the wall time, that ours takes."""

    measure: str
    ours: Sequence[str]
    """One system for each lane."""
    peers: Sequence[str]
    case: str
    limit: float

    def judge(self, runs: Sequence[Run]) -> Reached:
        goal = f"≥ {self.limit:g} × ahead of the best peer"
        leads = []
        for mine in self.ours:
            for peer in self.peers:
                found = pair(runs, At(mine, self.case), At(peer, self.case)) if _lane(mine) == _lane(peer) else None
                if found is not None:
                    leads.append((over(found[1].cpu_s, found[0].cpu_s), over(found[1].wall_s, found[0].wall_s), peer))
        if not leads:
            return Reached(self.measure, goal, "", None)
        cpu, wall = min(leads), min(leads, key=lambda lead: lead[1])
        figure = f"CPU {cpu[0]:.1f} ({cpu[2]}), wall {wall[1]:.1f} ({wall[2]})"
        return Reached(self.measure, goal, figure, min(cpu[0], wall[1]) >= self.limit)


@dataclass(frozen=True)
class NoPeerAhead:
    """Our ratio to what is plain for us (a scan of our own files, the table before its upserts) is the least of all, in CPU time."""

    measure: str
    ours: str
    peers: Sequence[str]
    case: str
    plain: str

    def judge(self, runs: Sequence[Run]) -> Reached:
        goal = "no peer ahead"
        ratios = {}
        for system in (self.ours, *self.peers):
            found = pair(runs, At(system, self.case), At(system, self.plain))
            if found is not None:
                ratios[system] = over(found[0].cpu_s, found[1].cpu_s)
        if self.ours not in ratios or len(ratios) == 1:
            return Reached(self.measure, goal, "", None)
        figure = ", ".join(f"{name.partition('/')[2]} {ratio:.2f}" for name, ratio in ratios.items())
        return Reached(self.measure, goal, figure, ratios[self.ours] <= min(ratios.values()))


@dataclass(frozen=True)
class Commits:
    """Small commits: the last ten take at most so long, and are not dearer than the first ten."""

    measure: str
    ours: At
    wall_s: float
    cpu_s: float | None
    growth: float = 1.2

    def judge(self, runs: Sequence[Run]) -> Reached:
        goal = f"≤ {self.wall_s:g} s" + (f" / {self.cpu_s:g} s CPU" if self.cpu_s else "") + ", flat"
        run = next((run for run in reversed(runs) if len(run.costs.get(self.ours, ())) >= 20), None)
        if run is None:
            return Reached(self.measure, goal, "", None)
        costs = run.costs[self.ours]
        first, last = typical(costs[:10]), typical(costs[-10:])
        figure = f"first ten {first.wall_s:.3f} / {first.cpu_s:.3f} s, last ten of {len(costs)} {last.wall_s:.3f} / {last.cpu_s:.3f} s"
        small_enough = last.wall_s <= self.wall_s and (self.cpu_s is None or last.cpu_s <= self.cpu_s)
        return Reached(self.measure, goal, figure, small_enough and last.cpu_s <= self.growth * first.cpu_s)


@dataclass(frozen=True)
class Memory:
    """The greatest peak of the process tree in any step is at or below that of every peer of the lane."""

    measure: str
    ours: str
    peers: Sequence[str]

    def judge(self, runs: Sequence[Run]) -> Reached:
        goal = "at or below the peers'"
        for run in reversed(runs):
            peaks = {peer: run.peak(peer) for peer in self.peers if run.peak(peer)}
            if run.peak(self.ours) and peaks:
                shown = ", ".join(f"{peer.partition('/')[2]} {peak / 1e6:,.0f} MB" for peer, peak in peaks.items())
                mine = run.peak(self.ours)
                return Reached(self.measure, goal, f"{mine / 1e6:,.0f} MB; {shown}", mine <= min(peaks.values()))
        return Reached(self.measure, goal, "", None)


Goal = Ratio | Seconds | Megabytes | Lead | NoPeerAhead | Commits | Memory


def over(figure: float, base: float) -> float:
    """A ratio; a base of nothing (less than a tick of the clock) counts as that tick."""
    return figure / max(base, 0.01)


def goals() -> list[Goal]:
    """All of them, in the order of the report."""
    return [*_writing(), *_reading(), *_services(), *_embedded(), *_version_9(), *_memory()]


_SPARK, _MOR, _COW = "spark4/spark", "spark4/hoodie-mor", "spark4/hoodie-cow"
_TASKS, _BLOCKS = "spark4/hoodie-mor-tasks", "embedded/hoodie-mor-parquet"
_PEERS = ("spark4/iceberg", "spark4/delta", "spark3/hudi-bucket", "spark3/hudi-bloom")
_OURS = (_MOR, "spark3/hoodie-mor")


def _writing() -> list[Goal]:
    copy, append = At(_SPARK, "copy"), At(_SPARK, "append")
    return [
        Ratio("bulk load, merge-on-read", At(_MOR, "bulk load"), copy, 1.05),
        Ratio("bulk load, copy-on-write", At(_COW, "bulk load"), copy, 1.05),
        Ratio("merge-on-read upsert, in process", At(_MOR, "upsert"), append, 1.5),
        Ratio("merge-on-read upsert, distributed", At(_TASKS, "upsert"), append, 2.5),
        Lead("merge-on-read upsert, in process", _OURS, _PEERS, "upsert", 4),
        Lead("merge-on-read upsert, distributed", (_TASKS,), _PEERS, "upsert", 2),
        Ratio("copy-on-write upsert", At(_COW, "upsert"), At(_SPARK, "naive rewrite"), 0.4),
        Megabytes("written by a merge-on-read upsert, Avro blocks", At(_MOR, "upsert"), append, 20 / 9.5),
        Megabytes(
            "written by a merge-on-read upsert, Parquet blocks",
            At(_BLOCKS, "upsert"),
            At("embedded/arrow", "append"),
            11 / 9.5,
        ),
    ]


def _reading() -> list[Goal]:
    found: list[Goal] = []
    for query, limit in ((AGGREGATE, 1.25), (SCAN, 1.15)):
        case, plain = f"{query}, {SNAPSHOT}, {BEFORE}", f"{query}, {PLAIN}, {BEFORE}"
        found.append(Ratio(f"realtime {query}, logs on every file", At(_MOR, case), At(_MOR, plain), limit))
        found.append(NoPeerAhead(f"realtime {query} ÷ plain scan", _MOR, _PEERS, case, plain))
    for query, limit in ((WIDE_AGGREGATE, 1.15), (SCAN, 1.1)):
        case, before = first_three(query, UPSERTED), first_three(query, LOADED)
        found.append(Ratio(f"realtime {case} ÷ {LOADED}", At(_MOR, case), At(_MOR, before), limit))
        found.append(NoPeerAhead(f"realtime {case} ÷ {LOADED}", _MOR, _PEERS, case, before))
    for query in (AGGREGATE, SCAN):
        case, plain = f"{query}, {READ_OPTIMIZED}, {BEFORE}", f"{query}, {PLAIN}, {BEFORE}"
        found.append(Ratio(f"read-optimized {query}", At(_MOR, case), At(_MOR, plain), 1.05))
    for query in (AGGREGATE, SCAN):
        case, plain = f"{query}, {SNAPSHOT}, {BEFORE}", f"{query}, {PLAIN}, {BEFORE}"
        found.append(Ratio(f"copy-on-write {query}", At(_COW, case), At(_COW, plain), 1.05))
    return found


def _services() -> list[Goal]:
    return [
        Seconds("incremental pull of the last commit", At(_MOR, "incremental, last commit"), 0.3, 0.4),
        Seconds("compaction, logs on every file", At(_MOR, "compaction"), 2, 3.5, At(_SPARK, "copy"), 7.5),
        Commits(f"commits of {SMALL_ROWS:,} rows on Spark", At(_MOR, "small commit"), 0.5, 0.8),
        Commits(f"commits of {SMALL_ROWS:,} rows, embedded", At("embedded/hoodie-mor", "small commit"), 0.05, None),
    ]


def _embedded() -> list[Goal]:
    arrow, mor, cow, polars = "embedded/arrow", "embedded/hoodie-mor", "embedded/hoodie-cow", "embedded/polars"
    scan = f"{SCAN}, {SNAPSHOT}, {BEFORE}"
    return [
        Seconds("embedded merge-on-read upsert", At(mor, "upsert"), 0.4, 0.5),
        Ratio("embedded copy-on-write upsert", At(cow, "upsert"), At(arrow, "rewrite all"), 1.1),
        Ratio("embedded realtime read, all rows", At(mor, scan), At(polars, scan), 1.3),
    ]


def _version_9() -> list[Goal]:
    """No step costs more than 5 % more than on a table of version 6."""
    found: list[Goal] = []
    scan = f"{SCAN}, {SNAPSHOT}, {BEFORE}"
    for title, system, cases in (
        ("merge-on-read", _MOR, ("bulk load", "upsert", scan, "compaction")),
        ("copy-on-write", _COW, ("bulk load", "upsert", scan)),
        ("embedded merge-on-read", "embedded/hoodie-mor", ("bulk load", "upsert", scan, "compaction")),
        ("embedded copy-on-write", "embedded/hoodie-cow", ("bulk load", "upsert", scan)),
    ):
        found += [Ratio(f"version 9, {title}", At(f"{system}-9", case), At(system, case), 1.05) for case in cases]
    return found


def _memory() -> list[Goal]:
    return [
        Memory("peak memory on Spark 4", _MOR, ("spark4/iceberg", "spark4/delta")),
        Memory("peak memory on Spark 3.5", "spark3/hoodie-mor", ("spark3/hudi-bucket", "spark3/hudi-bloom")),
    ]


def _lane(system: str) -> str:
    return system.partition("/")[0]
