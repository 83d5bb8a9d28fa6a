"""The work that every table system is given, in the same order and with the same warm-up, and what comes out of it.

A system says how it does each step; `run` says when, how often, and what is measured around it. Floors that are no tables
(plain Parquet) have a `run` of their own with cases of other names.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from benchmarks.meter import Cost, Meter
from benchmarks.rides import BASE, batches, count_of_small, probe, random_batches, small

LOAD, FIRST, UPSERT, PULL, RANDOM, READ, COMPACT, READ_COMPACTED, SMALL_COMMITS = (
    "load",
    "first",
    "upsert",
    "pull",
    "random",
    "read",
    "compact",
    "read compacted",
    "small",
)
STEPS = (LOAD, FIRST, UPSERT, PULL, RANDOM, READ, COMPACT, READ_COMPACTED, SMALL_COMMITS)
"""In the order in which they are done."""

SNAPSHOT, READ_OPTIMIZED, PLAIN = "snapshot", "read-optimized", "plain scan of its files"
BEFORE, AFTER = "before compaction", "after compaction"
AGGREGATE, SCAN, LOOKUP = "aggregate", "full scan", "point lookup"
LOADED, UPSERTED = "after the load", "after five upserts"
WIDE_AGGREGATE = "aggregate of six columns"
VERSION_9 = MappingProxyType({"hoodie.write.table.version": "9"})


def first_three(query: str, state: str) -> str:
    """The case of the first queries of a state: planning and making code for them count, so they are one measurement."""
    return f"{query}, first three {state}"


NOTHING = Cost(0.0, 0.0, 0)


class Measured(NamedTuple):
    """One measurement, and what of its result all systems must agree on (empty: nothing)."""

    case: str
    cost: Cost
    check: str = ""


@dataclass(frozen=True)
class Effort:
    """How often each thing is measured."""

    loads: int = 3
    pulls: int = 3
    reads: int = 3
    """Rounds over all views and queries before compaction; after it, half as many and one."""


class System(Protocol):
    """What `measure` runs."""

    def run(self, steps: Sequence[str], effort: Effort) -> Iterator[Measured]: ...


class TableSystem(ABC):
    """A table with a way to do each step; `folder` holds the data of `rides.make_rides`, `root` everything that the system writes."""

    views: tuple[str, ...] = (SNAPSHOT,)
    pulls = True
    """Whether the rows of the last commit can be asked for."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.root = root
        self.key, self.day = probe(folder)

    def prepare(self, name: str) -> None:  # noqa: B027 - most have nothing to prepare
        """Whatever is nobody's cost before a step with the rows of that name."""

    def prepare_upserts(self) -> None:  # noqa: B027
        """Whatever is nobody's cost between the load and what comes after it."""

    def prepare_reads(self, state: str) -> None:  # noqa: B027
        """Whatever is nobody's cost before the queries of one state of the table."""

    # -- what a system says ------------------------------------------------------------------------------------------

    @abstractmethod
    def load(self) -> None:
        """Make the table of the rows of `base` in an empty `root`."""

    @abstractmethod
    def upsert(self, name: str) -> None:
        """Upsert a batch of the data by its name."""

    def outcome(self) -> str:
        """How many rows the last upsert found new, where the system tells; nobody's cost."""
        return ""

    def pull(self) -> str:
        """Number of rows and sums of two columns of the last commit; not asked where `pulls` is false."""
        return ""

    @abstractmethod
    def aggregate(self, view: str) -> str:
        """Number of rows and sums of two columns."""

    @abstractmethod
    def scan(self, view: str) -> None:
        """All columns of all rows."""

    @abstractmethod
    def lookup(self, view: str) -> str:
        """The row of the key that `rides.probe` names."""

    def first_queries(self) -> Sequence[tuple[str, Callable[[], str | None]]]:
        """Queries of the snapshot whose first runs after a change are measured."""
        return ()

    @abstractmethod
    def compact(self) -> None:
        """Bring everything into base files."""

    @abstractmethod
    def digest(self) -> str:
        """`rides.digest` of the table's rows."""

    # -- the work ----------------------------------------------------------------------------------------------------

    def run(self, steps: Sequence[str], effort: Effort) -> Iterator[Measured]:
        if LOAD in steps:
            for _ in range(effort.loads):
                self.clear()
                self.prepare(BASE)
                yield self._measured("bulk load", self.load)
            self.prepare_upserts()
        if FIRST in steps:
            yield from self._first(LOADED)
        if UPSERT in steps:
            for name in batches():
                yield self._upsert("upsert", name)
        if FIRST in steps:
            yield from self._first(UPSERTED)
        if PULL in steps and self.pulls:
            for _ in range(effort.pulls):
                yield self._measured("incremental, last commit", self.pull)
        if RANDOM in steps:
            for called, name in random_batches():
                yield self._upsert(f"upsert, {called}", name)
        if UPSERT in steps or RANDOM in steps:
            yield self._rows("rows after the upserts")
        if READ in steps:
            yield from self._reads(BEFORE, effort.reads)
        if COMPACT in steps:
            yield self._measured("compaction", self.compact)
            yield self._rows("rows after compaction")
        if READ_COMPACTED in steps:
            yield from self._reads(AFTER, effort.reads // 2 + 1)
        if SMALL_COMMITS in steps:
            for number in range(count_of_small(self.folder)):
                yield self._upsert("small commit", small(number))
            yield self._rows("rows after the small commits")

    def clear(self) -> None:
        """Remove what is there, before a load."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)

    def _upsert(self, case: str, name: str) -> Measured:
        self.prepare(name)
        found = self._measured(case, lambda: self.upsert(name))
        told = self.outcome()
        return found._replace(check=f"{name}: {told}") if told else found

    def _reads(self, state: str, rounds: int) -> Iterator[Measured]:
        """Every query on every view, in turns, so that no view always comes first; what plain scans find is nobody's answer."""
        self.prepare_reads(state)
        for number in range(rounds):
            turn = number % len(self.views)
            for view in (*self.views[turn:], *self.views[:turn]):
                checked = view == SNAPSHOT or (view == READ_OPTIMIZED and state == AFTER)
                for query, run in ((AGGREGATE, self.aggregate), (SCAN, self.scan), (LOOKUP, self.lookup)):
                    found = self._measured(f"{query}, {view}, {state}", partial(run, view))
                    yield found if checked else found._replace(check="")

    def _first(self, state: str) -> Iterator[Measured]:
        for query, run in self.first_queries():
            yield self._measured(first_three(query, state), lambda run=run: [run() for _ in range(3)][-1])

    def _measured(self, case: str, step: Callable[[], str | None]) -> Measured:
        with Meter(self.root) as meter:
            answer = step()
        return Measured(case, meter.cost, answer or "")

    def _rows(self, case: str) -> Measured:
        """A check that costs nobody anything."""
        return Measured(case, NOTHING, self.digest())
