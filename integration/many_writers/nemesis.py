"""Disturbs the writers: kills them, pauses them beyond lease and session, cuts their connections, kills a server that votes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from integration.many_writers.setups import Link, Setup, Way
from integration.many_writers.worker import Job

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Place:
    """Where one process of the run works: one after the other, each the successor of one that was killed."""

    job: Job
    way: Way
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    started: int = 0
    paused: bool = False

    def start(self) -> None:
        name = f"{self.job.name}.{self.started}"
        job = replace(
            self.job, name=name, seed=self.job.seed * 1000 + self.started, journal=str(self.folder / f"{name}.jsonl")
        )
        job.write(self.folder / f"{name}.job.json")
        with (self.folder / f"{name}.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "integration.many_writers.worker", str(self.folder / f"{name}.job.json")],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.started += 1
        self.paused = False

    def tell(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)  # does nothing where it has ended
        if number is signal.SIGKILL:
            self.process.wait()

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def died(self) -> str | None:
        """How, if it ended by itself."""
        if self.process is None or self.process.poll() in (None, 0, -signal.SIGKILL):
            return None
        log = self.folder / f"{self.job.name}.{self.started - 1}.log"
        return f"{self.job.name} ended with {self.process.returncode}: {log.read_text(errors='replace')[-1500:]}"


class Nemesis:
    """Each turn does one thing; what it undoes later stands in `_later`."""

    def __init__(self, setup: Setup, victims: Sequence[Place], chance: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._victims = victims
        self._nodes = setup.nodes
        self._chance = chance
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._busy: set[int] = set()
        """Numbers of places, and of servers below 0, that something is being done to."""

    def run_until(self, end_s: float) -> None:
        next_s = time.monotonic() + 2
        while time.monotonic() < end_s:
            self._undo(time.monotonic())
            if time.monotonic() >= next_s:
                self._turn()
                next_s = time.monotonic() + self._chance.uniform(0.5, 3.5)
            time.sleep(0.05)
        self._undo(float("inf"))

    def _undo(self, now_s: float) -> None:
        due = [each for each in self._later if each[0] <= now_s]
        self._later = [each for each in self._later if each[0] > now_s]
        for _, undo in due:
            undo()

    def _turn(self) -> None:
        acts = [self._kill, self._pause, self._pause, self._cut, self._cut]
        if self._nodes:
            acts.append(self._kill_node)
        self._chance.choice(acts)()

    def _free(self) -> int | None:
        free = [number for number in range(len(self._victims)) if number not in self._busy]
        # Two at a time are left alone, so that there is always somebody who goes on.
        return self._chance.choice(free) if len(free) > 2 else None

    def _kill(self) -> None:
        number = self._free()
        if number is None:
            return
        self._victims[number].tell(signal.SIGKILL)
        self.done["kills"] += 1
        self._for(number, self._chance.uniform(0, 3), self._victims[number].start)

    def _pause(self) -> None:
        number = self._free()
        if number is None:
            return
        place = self._victims[number]
        place.tell(signal.SIGSTOP)
        self.done["pauses"] += 1
        # Shorter than everything; beyond the session; beyond the lease; beyond what others take for death.
        seconds = self._chance.choice((0.5, 3.5, 7, 11))
        self._for(number, seconds, lambda: place.tell(signal.SIGCONT))

    def _cut(self) -> None:
        number = self._free()
        links = self._victims[number].way.links if number is not None else ()
        if number is None or not links:
            return
        # One of several is enough to lose a session that goes through it; all of them, to be alone.
        chosen: Sequence[Link] = links if self._chance.random() < 0.5 else [self._chance.choice(links)]
        for link in chosen:
            link.cut()
        self.done["cuts"] += 1
        self._for(number, self._chance.choice((0.1, 1, 4)), lambda: [link.mend() for link in chosen])

    def _kill_node(self) -> None:
        if -1 in self._busy:
            return
        node = self._chance.choice(self._nodes)
        node.stop()
        self.done["servers killed"] += 1
        self._for(-1, self._chance.uniform(0.5, 6), node.start)

    def _for(self, number: int, seconds: float, undo: Callable[[], object]) -> None:
        def over() -> None:
            undo()
            self._busy.discard(number)

        self._busy.add(number)
        self._later.append((time.monotonic() + seconds, over))
