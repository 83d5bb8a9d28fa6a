"""What a run measured: a file of JSON lines, the first about the run, then one for each measurement.

A ratio is taken inside one run only; several runs can make up a report because each says which systems it measured.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.meter import Cost


class At(NamedTuple):
    """Which figure: of which system, in which case."""

    system: str
    case: str


@dataclass
class Run:
    """Measurements of one run, all on the same data on the same machine."""

    name: str
    about: Mapping[str, Any]
    """rows, batch, small, and what the machine and the versions are."""
    costs: dict[At, list[Cost]] = field(default_factory=dict)
    checks: dict[At, list[str]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    """What each system ran on."""

    @property
    def rows(self) -> int:
        return int(self.about["rows"])

    @property
    def size(self) -> tuple[int, int]:
        """Rows of the table and of a batch: runs of one size can stand on one page."""
        return self.rows, int(self.about["batch"])

    def typical(self, at: At) -> Cost | None:
        """Medians; of the peaks the greatest."""
        found = self.costs.get(at)
        return None if not found else typical(found)

    def differences(self) -> list[str]:
        """Cases in which two systems have different answers; where an answer is empty there is nothing to compare."""
        by_case: dict[str, dict[tuple[str, ...], list[str]]] = {}
        for at, checks in self.checks.items():
            answers = tuple(sorted(set(checks)))
            if any(answers):
                by_case.setdefault(at.case, {}).setdefault(answers, []).append(at.system)
        return [
            f"{case}: " + "; ".join(f"{', '.join(systems)} say {_short(answers)}" for answers, systems in found.items())
            for case, found in by_case.items()
            if len(found) > 1
        ]

    def peak(self, system: str) -> int:
        """Greatest peak of all that a system was measured at."""
        return max(
            (cost.peak_bytes for at, costs in self.costs.items() if at.system == system for cost in costs), default=0
        )


def typical(costs: Sequence[Cost]) -> Cost:
    """Medians; of the peaks the greatest."""
    return Cost(
        statistics.median(c.wall_s for c in costs),
        statistics.median(c.cpu_s for c in costs),
        max(c.peak_bytes for c in costs),
        round(statistics.median(c.written_bytes for c in costs)),
        round(statistics.median(c.written_files for c in costs)),
    )


def begin(path: Path, about: Mapping[str, Any]) -> None:
    """Start a run's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about) + "\n", encoding="utf-8")


def note(path: Path, **what: Any) -> None:
    """Add a line that is no measurement."""
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(what) + "\n")


def read(path: Path) -> Run:
    """A run from its file."""
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    run = Run(path.stem, json.loads(first))
    for line in lines:
        found = json.loads(line)
        if "failed" in found:
            run.failed.append(found["failed"])
            continue
        if "versions" in found:
            run.versions[found["system"]] = found["versions"]
            continue
        if "load" in found:
            continue
        at = At(found.pop("system"), found.pop("case"))
        run.checks.setdefault(at, []).append(found.pop("check"))
        run.costs.setdefault(at, []).append(Cost(**found))
    return run


def pair(runs: Iterable[Run], ours: At, other: At) -> tuple[Cost, Cost] | None:
    """Both figures from the newest run that has both; runs are given oldest first."""
    found = None
    for run in runs:
        mine, theirs = run.typical(ours), run.typical(other)
        if mine is not None and theirs is not None:
            found = mine, theirs
    return found


def newest(runs: Iterable[Run], at: At) -> Cost | None:
    """The figure of the newest run that has it."""
    found = None
    for run in runs:
        found = run.typical(at) or found
    return found


def _short(answers: Sequence[str]) -> str:
    return " | ".join(answers)[:200]
