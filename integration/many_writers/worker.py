"""One process of the soak: a writer, the compactor, the cleaner or the reader; its one argument is the file with its `Job`."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from zlib import crc32

import hoodie
from hoodie.cli.__main__ import main as command
from hoodie.lock import holder
from integration.many_writers.history import Kind, Outcome
from integration.many_writers.journal import Journal
from integration.many_writers.table import read_changes, read_now, read_pull
from integration.many_writers.waits import Waits

NOTE = "_soak.op"
"""The entry of a commit's metadata that says which op it is."""
PARTITIONS = 3
_SHARED_KEYS = 40
_OWN_KEYS = 15
CLEAN_TO, ARCHIVE_TO = 40, 50
"""Commits that a run with services keeps: more than happen while the reader is at work once."""


@dataclass(frozen=True)
class Job:
    role: str
    name: str
    """Of this process: no other of the run has it."""
    slot: int
    """Of its keys: a process that is killed has a successor."""
    seed: int
    uri: str
    storage_options: dict[str, str]
    options: dict[str, str]
    by_ordering: bool
    pause_s: float
    services: bool
    """Whether the cleaner cleans and archives, besides rolling back."""
    other_machine: bool
    """It knows of no process of the others whether it lives, as if it were on a machine of its own."""
    journal: str
    stop: str
    """The process ends its work when this file is there."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def main(path: str) -> None:
    job = Job(**json.loads(Path(path).read_text()))
    if job.other_machine:
        holder._machine = lambda: f"machine of {job.name}"
    _ROLES[job.role](job, Journal(Path(job.journal)), random.Random(job.seed))


def _turns(job: Job, chance: random.Random) -> Iterator[None]:
    while not Path(job.stop).exists():
        yield
        time.sleep(job.pause_s * chance.uniform(0.2, 1.8))


def _open(job: Job) -> hoodie.HoodieTable:
    while True:
        try:
            return hoodie.open_table(job.uri, storage_options=job.storage_options, options=job.options)
        except OSError:  # its connection may be cut
            if Path(job.stop).exists():
                sys.exit(0)
            time.sleep(0.5)


def _write(job: Job, journal: Journal, chance: random.Random) -> None:
    table = _open(job)
    waits = Waits(table)
    for number, _ in enumerate(_turns(job, chance)):
        op = f"{job.name}-{number}"
        kind = Kind.DELETE if chance.random() < 0.2 else Kind.UPSERT
        rows = dict(_rows(job, kind, chance))
        journal.note("began", op=op, kind=kind, rows=rows)
        try:
            instant = _run(table, op, kind, rows)
        except hoodie.CommitOutcomeUnknownError as error:
            journal.note(Outcome.UNKNOWN, error=type(error).__name__, message=str(error))
        except (hoodie.HoodieError, OSError) as error:
            journal.note(Outcome.FAILED, error=type(error).__name__, message=str(error))
        else:
            journal.note(Outcome.OK, instant=instant)
        journal.note("waited", **waits.taken())


def _run(table: hoodie.HoodieTable, op: str, kind: Kind, rows: dict[str, int]) -> str | None:
    if kind is Kind.DELETE:
        return table.delete([{"key": key, "part": part_of(key)} for key in rows], options={NOTE: op}).instant
    data = [{"key": key, "part": part_of(key), "op": op, "ts": ts} for key, ts in rows.items()]
    return table.upsert(data, options={NOTE: op}).instant


def part_of(key: str) -> str:
    return f"p{crc32(key.encode()) % PARTITIONS}"


def _rows(job: Job, kind: Kind, chance: random.Random) -> Iterator[tuple[str, int]]:
    """A few keys. With an ordering column the shared ones may come late, and only own ones are deleted.

    For on merge-on-read an old row of a deleted key comes back when a later write has a smaller ordering value.
    """
    now = int(time.monotonic() * 1000)
    own = [f"own-{job.slot}-{n}" for n in range(_OWN_KEYS)]
    shared = [f"shared-{n}" for n in range(_SHARED_KEYS)]
    keys = own if kind is Kind.DELETE and job.by_ordering else own + shared
    for key in chance.sample(keys, chance.randint(1, 5)):
        late = chance.choice((0, 0, 50, 3000)) if key.startswith("shared") and job.by_ordering else 0
        yield key, now - late


def _compact(job: Job, journal: Journal, chance: random.Random) -> None:
    _repeat(job, journal, chance, lambda table: [each.instant for each in table.compact()])


def _serve(job: Job, journal: Journal, chance: random.Random) -> None:
    """The command itself, in this process; told to end as a service manager does it."""

    def end() -> None:
        while not Path(job.stop).exists():
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=end, daemon=True).start()
    asked = {
        **job.storage_options,
        **job.options,
        "hoodie.compact.inline.max.delta.commits": "4",
        "hoodie.clean.commits.retained": str(CLEAN_TO),
        "hoodie.keep.min.commits": str(ARCHIVE_TO),
        "hoodie.keep.max.commits": str(ARCHIVE_TO + 5),
    }
    given = [part for name, value in asked.items() for part in ("-o", f"{name}={value}")]
    journal.note("began")
    sys.exit(command(["services", job.uri, "--every", f"{job.pause_s}s", "--budget", "10s", "--json", *given]))


def _clean(job: Job, journal: Journal, chance: random.Random) -> None:
    def act(table: hoodie.HoodieTable) -> list[str | None]:
        done: list[str | None] = [*table.rollback()]
        if job.services:
            done += [table.clean(retain_commits=CLEAN_TO).instant, *table.archive(min_commits=ARCHIVE_TO).instants]
        return done

    _repeat(job, journal, chance, act)


def _repeat(
    job: Job, journal: Journal, chance: random.Random, act: Callable[[hoodie.HoodieTable], list[str | None]]
) -> None:
    table = _open(job)
    for _ in _turns(job, chance):
        try:
            journal.note("done", instants=act(table))
        except (hoodie.HoodieError, OSError) as error:
            journal.note("error", error=type(error).__name__, message=str(error))


def _read(job: Job, journal: Journal, chance: random.Random) -> None:
    """Nobody disturbs it, so that it must meet no error."""
    table = _open(job)
    pulled = fed = None
    for number, _ in enumerate(_turns(job, chance)):
        try:
            if number % 2:
                table = _open(job)  # a reader that knows nothing of what it saw before
            began_s = time.monotonic()
            visible, start, rows = read_now(table)
            journal.note("read", began_s=began_s, visible=sorted(visible), start=start, rows=rows)
            until, rows = read_pull(table, pulled)
            journal.note("pull", since=pulled, until=until, rows=rows)
            pulled = until
            until, changes = read_changes(table, fed)
            journal.note("feed", since=fed, until=until, changes=changes)
            fed = until
        except (hoodie.HoodieError, OSError) as error:
            journal.note("error", error=type(error).__name__, message=str(error))


_ROLES = {"writer": _write, "services": _serve, "compactor": _compact, "cleaner": _clean, "reader": _read}
if __name__ == "__main__":
    main(sys.argv[1])
