"""Wall time, CPU time and peak memory of a whole process tree, exited children included (Linux)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_S = 0.02
_UTIME = 11
"""Place of utime, stime, cutime, cstime in /proc/PID/stat behind the command's closing bracket."""


@dataclass(frozen=True)
class Cost:
    wall_s: float
    cpu_s: float
    peak_bytes: int
    """Greatest sum of resident memory of all processes of the tree; shared pages count in each of them."""

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


class Meter:
    """`with Meter() as meter: …`, then `meter.cost`: what this process and its descendants spent inside the block.

    A child that ended counts through its parent's "waited-for children" times, so nothing is lost however short it lived,
    as long as its parent waits for it; the JVM and PySpark's worker daemon do. The tick of these clocks is 10 ms; the
    CPU time of this very process is taken from its own, finer clock.
    """

    cost: Cost

    def __enter__(self) -> Meter:
        self._peak = 0
        self._stop = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._others = _cpu_of_others()
        self._sampler.start()
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        self._stop.set()
        self._sampler.join()
        self._peak = max(self._peak, _resident_bytes())
        self.cost = Cost(wall, cpu + _cpu_of_others() - self._others, self._peak)

    def _sample(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            self._peak = max(self._peak, _resident_bytes())


def process_tree(pid: int) -> Iterator[int]:
    """The process and all its living descendants."""
    yield pid
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    yield from process_tree(int(child))


def _cpu_of_others() -> float:
    """CPU seconds of the living descendants and of everything that was waited for, this process itself left out."""
    ticks = 0
    me = os.getpid()
    for pid in process_tree(me):
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat") as file:
            times = [int(field) for field in file.read().rpartition(")")[2].split()[_UTIME : _UTIME + 4]]
            ticks += sum(times[2:] if pid == me else times)
    return ticks / _TICKS


def _resident_bytes() -> int:
    total = 0
    for pid in process_tree(os.getpid()):
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/statm") as file:
            total += int(file.read().split()[1]) * _PAGE
    return total
