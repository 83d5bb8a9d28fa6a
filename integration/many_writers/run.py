"""Runs the processes on one table, disturbs them, lets the table recover, and gives what happened to the checker."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import hoodie
from hoodie.model.enums import Action
from integration.many_writers.checker import check
from integration.many_writers.history import Change, History, Op, Outcome, Pull, Read, Row, Snapshot
from integration.many_writers.journal import notes, ops_of
from integration.many_writers.nemesis import Nemesis, Place
from integration.many_writers.setups import SETUPS, Setup, Way
from integration.many_writers.table import (
    commits_of,
    leftovers_of,
    pending_of,
    read_as_of,
    read_changes,
    read_now,
    read_pull,
    readable_from,
)
from integration.many_writers.worker import NOTE, Job

WRITERS = 4
ROUND_S = 300.0
"""A table is used for so long: without services nothing archives its timeline."""
_END_S = 120.0
"""A process that was told to end may still wait for the lock, or for a store that does not answer."""
_RECOVERY_S = 60.0
"""Until everybody's lease and heartbeat is over."""
_SNAPSHOTS = 400
"""Of a table; of more instants some are chosen."""


@dataclass
class Report:
    """Of one or of several tables."""

    figures: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    """What writers waited for at most in one write."""

    def add(self, other: Report) -> None:
        self.figures += other.figures
        self.errors += other.errors
        self.violations += other.violations
        self.waits += other.waits

    def __str__(self) -> str:
        lines = [", ".join(f"{count:,} {what}" for what, count in self.figures.items())]
        lines += self.waits
        lines += [f"  {count:5} {error}" for error, count in self.errors.most_common()]
        return "\n".join([*lines, f"{len(self.violations)} violations", *self.violations])


def soak(
    setup: str,
    seconds: float,
    seed: int,
    folder: Path,
    *,
    writers: int = WRITERS,
    services: bool = False,
    jobs: int = 0,
    calm: bool = False,
) -> Report:
    """Table after table, for so long in all: merge-on-read and copy-on-write, with and without an ordering column.

    `services`: old files are cleaned and old commits archived meanwhile, so that less can be compared at the end. `jobs`: so many
    processes of `hoodie services` do all of it, instead of a compactor and a cleaner. `calm`: nobody is disturbed.
    """
    total = Report()
    with SETUPS[setup](folder, seed) as servers:
        rounds = max(1, round(seconds / ROUND_S))
        for number in range(rounds):
            total.add(
                _round(
                    servers, seconds / rounds, seed + number, folder, writers, services=services, jobs=jobs, calm=calm
                )
            )
    return total


def _round(
    servers: Setup, seconds: float, seed: int, folder: Path, writers: int, *, services: bool, jobs: int, calm: bool
) -> Report:
    chance = random.Random(seed)
    name = f"t{seed}"
    table_type = ("MERGE_ON_READ", "COPY_ON_WRITE")[seed % 2]
    by_ordering = bool(seed // 2 % 2)
    notes_folder = folder / f"{name}-notes"
    notes_folder.mkdir()
    safe = servers.way(name, False)
    table = hoodie.create_table(
        safe.uri,
        {"key": "string", "part": "string", "op": "string", "ts": "int64"},
        record_key="key",
        partition_by="part",
        ordering="ts" if by_ordering else None,
        table_type=table_type,
        storage_options=dict(safe.storage_options),
        options=dict(safe.options),
    )
    stop = notes_folder / "stop"

    def place(role: str, number: int, way: Way, pause_s: float) -> Place:
        job = Job(
            role=role,
            name=f"{role}{number}",
            slot=number,
            seed=seed * 100 + number,
            uri=way.uri,
            storage_options=dict(way.storage_options),
            options=dict(way.options),
            by_ordering=by_ordering,
            pause_s=pause_s,
            services=services or jobs > 0,
            other_machine=servers.other_machines,
            journal="",
            stop=str(stop),
        )
        return Place(job, way, notes_folder)

    victims = [place("writer", number, servers.way(name, True), 0.4) for number in range(writers)]
    victims += [place("services", writers + n, servers.way(name, True), 0.5) for n in range(jobs)]
    if not jobs:
        victims.append(place("cleaner", writers, servers.way(name, True), 2))
    if not jobs and table_type == "MERGE_ON_READ":
        victims.append(place("compactor", writers + 1, servers.way(name, True), 4))
    reader = place("reader", writers + 2 + jobs, safe, 1)
    places = [*victims, reader]
    nemesis = Nemesis(servers, victims, chance)
    try:
        for each in places:
            each.start()
        _begun(notes_folder, [victim.job.name for victim in victims[:writers]])
        if calm:
            time.sleep(seconds)
        else:
            nemesis.run_until(time.monotonic() + seconds)
        stop.touch()
        complaints = list(_ended(places))
    finally:
        for each in places:
            if each.is_running():
                each.tell(signal.SIGKILL)
    complaints += [
        f"{error['error']} of the reader: {error['message']}" for error in _of(notes_folder, "reader", "error")
    ]
    complaints += _recover(table)
    history = _history(table, safe, notes_folder, by_ordering=by_ordering, merge_on_read=table_type == "MERGE_ON_READ")
    history.complaints = complaints
    report = Report(nemesis.done, _errors(notes_folder))
    report.figures.update(_figures(history))
    report.figures["rolled back or compacted"] = sum(
        len(note["instants"]) for role in ("cleaner", "compactor") for note in _of(notes_folder, role, "done")
    )
    report.waits = [_longest(notes_folder, what) for what in ("lock_s", "gate_s")]
    report.violations = [f"{name}: {violation}" for violation in check(history)]
    return report


def _begun(folder: Path, names: Sequence[str]) -> None:
    """Wait until each of them works."""
    end_s = time.monotonic() + _END_S
    while time.monotonic() < end_s:
        if all(any(path.stat().st_size for path in folder.glob(f"{name}.*.jsonl")) for name in names):
            return
        time.sleep(0.1)


def _ended(places: Sequence[Place]) -> Iterator[str]:
    """Those that ended otherwise than they were told to."""
    end_s = time.monotonic() + _END_S
    while any(each.is_running() for each in places) and time.monotonic() < end_s:
        time.sleep(0.1)
    for each in places:
        if each.is_running():
            yield f"{each.job.name} did not end within {_END_S:.0f} s"
        if (how := each.died()) is not None:
            yield how


def _recover(table: hoodie.HoodieTable) -> Iterator[str]:
    """What anybody would do who comes to the table later."""
    end_s = time.monotonic() + _RECOVERY_S
    problem: object = None
    while time.monotonic() < end_s:
        try:
            table.rollback()
            if table.timeline.pending(Action.COMPACTION):
                table.run_compaction(budget_s=None)
            problem = pending_of(table) or None
        except (hoodie.HoodieError, OSError) as error:
            problem = error
        if problem is None:
            break
        time.sleep(1)
    else:
        yield f"the table did not recover within {_RECOVERY_S:.0f} s: {problem}"
    # Who could not take its mark away, because its credentials had expired, counts as alive until the mark is old.
    time.sleep(table.writer.context.concurrency.heartbeat_expiry_s + 1)
    table.rollback()


def _history(table: hoodie.HoodieTable, way: Way, folder: Path, *, by_ordering: bool, merge_on_read: bool) -> History:
    """Everything that is known."""
    ops = [op for path in sorted(folder.glob("writer*.jsonl")) for op in ops_of(path)]
    commits = commits_of(table, NOTE)
    instants = [commit.instant for commit in commits]
    kept = [instant for instant in instants if instant >= readable_from(table)]
    chosen = kept[:: max(1, len(kept) // _SNAPSHOTS)]
    snapshots = [Snapshot(instant, read_as_of(table, instant)) for instant in [*chosen, *instants[-1:]]]
    reads = [
        Read(note["began_s"], note["at_s"], _visible(note["visible"], note["start"], instants), _rows(note["rows"]))
        for note in _of(folder, "reader", "read")
    ]
    visible, start, rows = read_now(table)
    reads.append(Read(time.monotonic(), time.monotonic(), _visible(visible, start, instants), rows))
    pulls = [Pull(note["since"], note["until"], _rows(note["rows"])) for note in _of(folder, "reader", "pull")]
    since = pulls[-1].until if pulls else None
    until, rows = read_pull(table, since)
    pulls.append(Pull(since, until, rows))
    feed = [
        Pull(note["since"], note["until"], changes=[Change(*change) for change in note["changes"]])
        for note in _of(folder, "reader", "feed")
    ]
    since = feed[-1].until if feed else None
    until, changes = read_changes(table, since)
    feed.append(Pull(since, until, changes=changes))
    return History(
        by_ordering,
        by_ordering and merge_on_read,
        ops,
        commits,
        snapshots,
        reads,
        pulls,
        feed,
        leftovers_of(table, way.uri, dict(way.storage_options)),
    )


def _visible(seen: Collection[str], start: str | None, instants: Sequence[str]) -> frozenset[str]:
    """The commits that a reader counted who saw these on the active timeline: what is older than that timeline, too.

    It begins with a pending instant where that is the oldest, and a commit of that time came later.
    """
    return frozenset(each for each in instants if each in seen or each < (start or ""))


def _rows(told: Sequence[Sequence[str]]) -> list[Row]:
    return [Row(*row) for row in told]


def _of(folder: Path, role: str, what: str) -> list[dict]:
    paths = sorted(folder.glob(f"{role}*.jsonl"))
    return [dict(note) for path in paths for note in notes(path) if note["what"] == what]


def _longest(folder: Path, what: str) -> str:
    """The middle one, one in a hundred, and the longest of each writer."""
    waits = [
        (note[what], path.name.split(".")[0])
        for path in folder.glob("writer*.jsonl")
        for note in notes(path)
        if what in note
    ]
    if not waits:
        return f"{what}: nobody wrote"
    times = sorted(seconds for seconds, _ in waits)
    each = sorted({name: max(s for s, n in waits if n == name) for _, name in waits}.items())
    told = ", ".join(f"{name} {seconds:.2f}" for name, seconds in each)
    return (
        f"{what} of a write: {times[len(times) // 2]:.3f} in the middle, {times[len(times) * 99 // 100]:.3f} of one in a hundred; "
        f"the longest: {told}"
    )


def _errors(folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for role in ("writer", "cleaner", "compactor", "reader"):
        for what in (Outcome.FAILED, Outcome.UNKNOWN, "error"):
            found.update(f"{role}: {note['error']}" for note in _of(folder, role, what))
    return found


def _figures(history: History) -> Counter[str]:
    def ended(outcome: Outcome) -> list[Op]:
        return [op for op in history.ops if op.outcome is outcome]

    committed = {commit.op for commit in history.commits}
    unknown = ended(Outcome.UNKNOWN)
    return Counter(
        {
            "ops": len(history.ops),
            "ok": len(ended(Outcome.OK)),
            "failed": len(ended(Outcome.FAILED)),
            "unknown": len(unknown),
            "of these committed": sum(op.id in committed for op in unknown),
            "commits": len(history.commits),
            "snapshots": len(history.snapshots),
            "reads": len(history.reads),
            "pulls": len(history.pulls) + len(history.feed),
            "changes": sum(len(pull.changes) for pull in history.feed),
        }
    )
