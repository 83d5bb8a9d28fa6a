"""Wall time, CPU time and peak memory of a whole process tree, exited children included (Linux), and what it left in a folder."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_S = 0.05
_LOOK_AROUND = 10
"""Every so many samples the tree is searched for new processes: each of a JVM's hundred threads has children of its own."""
_GROWN = 1.005
_PARENT = 1
_UTIME = 11
"""Places of the parent and of utime, stime, cutime, cstime in /proc/PID/stat behind the command's closing bracket."""


@dataclass(frozen=True)
class Cost:
    wall_s: float
    cpu_s: float
    peak_bytes: int
    """Greatest sum of the memory of all processes of the tree; a page that several of them share counts once."""
    written_bytes: int = 0
    """Size of the files that are new in the folder, or not what they were; what was there only in between does not count."""
    written_files: int = 0

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


class Meter:
    """`with Meter() as meter: …`, then `meter.cost`: what this process and its descendants spent inside the block.

    A child that ended counts through its parent's "waited-for children" times, so nothing is lost however short it lived,
    as long as its parent waits for it, as the JVM does. PySpark's worker daemon does not: the kernel forgets the times of
    its workers, which Spark ends after a minute without work. They count as they were last seen, half a second earlier at
    most. The tick of these clocks is 10 ms; the CPU time of this very process is taken from its own, finer clock, less
    what the meter itself takes.
    The folder is looked through before and after the block, outside its time.
    """

    cost: Cost

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def __enter__(self) -> Meter:
        self._files = _files_of(self._folder)
        self._peak = self._height = 0
        self._stop = threading.Event()
        self._sampled = 0.0
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._unwaited = _Unwaited()
        self._others = self._unwaited.look(list(process_tree(os.getpid())))
        self._sampler.start()
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        self._stop.set()
        self._sampler.join()
        known = list(process_tree(os.getpid()))
        self._look(known)
        cpu += self._unwaited.look(known) - self._others - self._sampled
        written = [at[0] for path, at in _files_of(self._folder).items() if self._files.get(path) != at]
        self.cost = Cost(wall, cpu, self._peak, sum(written), len(written))

    def _sample(self) -> None:
        number, known = 0, [os.getpid()]
        while not self._stop.wait(_SAMPLE_S):
            if number % _LOOK_AROUND == 0:
                known = list(process_tree(os.getpid()))
                self._unwaited.look(known)
            number += 1
            self._look(known)
        self._sampled = time.thread_time()

    def _look(self, pids: Sequence[int]) -> None:
        """Take the tree's memory where its resident sets have grown: to share pages out among processes takes the kernel longer."""
        resident = _resident_bytes(pids)
        if resident > self._height * _GROWN:
            self._height = resident
            self._peak = max(self._peak, _proportional_bytes(pids))


def process_tree(pid: int) -> Iterator[int]:
    """The process and all its living descendants."""
    yield pid
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    yield from process_tree(int(child))


def _files_of(folder: Path | None) -> dict[str, tuple[int, int, int]]:
    """Size, time of change and inode of every file below the folder."""
    found = {}
    for parent, _, names in os.walk(folder) if folder is not None else ():
        for name in names:
            path = os.path.join(parent, name)
            with suppress(FileNotFoundError):
                at = os.stat(path)
                found[path] = (at.st_size, at.st_mtime_ns, at.st_ino)
    return found


class _Unwaited:
    """CPU time of the descendants, of those whose parent ignores their end among them."""

    def __init__(self) -> None:
        self._lost: dict[int, int] = {}

    def look(self, pids: Iterable[int]) -> float:
        """CPU seconds of the processes and of all that ended before; this process itself left out, its ended children not."""
        ticks, living = 0, set()
        me = os.getpid()
        for pid in pids:
            with suppress(FileNotFoundError, ProcessLookupError):
                fields = _read(pid, "stat").rpartition(")")[2].split()
                times = [int(field) for field in fields[_UTIME : _UTIME + 4]]
                ticks += sum(times[2:] if pid == me else times)
                living.add(pid)
                if pid in self._lost or _ignores_ended_children(int(fields[_PARENT])):
                    self._lost[pid] = sum(times)
        return (ticks + sum(spent for pid, spent in self._lost.items() if pid not in living)) / _TICKS


def _ignores_ended_children(pid: int) -> bool:
    mask = next(line.split()[1] for line in _read(pid, "status").splitlines() if line.startswith("SigIgn:"))
    return bool(int(mask, 16) >> (signal.SIGCHLD - 1) & 1)


def _read(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/{name}") as file:
        return file.read()


def _resident_bytes(pids: Iterable[int]) -> int:
    total = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/statm") as file:
            total += int(file.read().split()[1]) * _PAGE
    return total


def _proportional_bytes(pids: Iterable[int]) -> int:
    """Of a page in several processes each counts its part (`Pss`). Forked workers share what their daemon has loaded."""
    total = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/smaps_rollup") as file:
            total += next((int(line.split()[1]) for line in file if line.startswith("Pss:")), 0) * 1024
    return total
