"""The embedded engine: threads of this process. Arrow and numpy release the interpreter lock where the work is."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hoodie.engine.base import StageBatches
from hoodie.engine.progress import Progress
from hoodie.engine.read_ahead import AHEAD_BYTES, Batches

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

TASK_BYTES = 256 * 1024 * 1024
"""What a task that writes is taken to need: a row group and its columns as they are written, its share of the batch, and keys."""
ALONE_S = 0.06
"""Work that has no longer to go is left to the calling thread: tasks of milliseconds are mostly Python, in which threads only
hinder each other."""
LOOK_S = 0.01
"""So often it is looked at how long it has to go."""
_FILES_AT_ONCE = 8
"""So many files are read ahead from a storage far away; each takes memory."""


class LocalEngine:
    """The reference engine: `Records` is a `pyarrow.RecordBatchReader` (in: a table or batches, too)."""

    name = "embedded"
    shares_memory = True
    zone: str | None = None

    def __init__(
        self,
        threads: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        look_s: float = LOOK_S,
        alone_s: float = ALONE_S,
        ahead_bytes: int = AHEAD_BYTES,
    ) -> None:
        self._threads = threads or min(32, os.cpu_count() or 1)
        self._clock = clock
        self._look_s = look_s
        self._alone_s = alone_s
        self._ahead_bytes = ahead_bytes

    def within(self, memory_bytes: int) -> LocalEngine:
        threads = max(1, min(self._threads, memory_bytes // TASK_BYTES))
        if threads == self._threads:
            return self
        fewer = copy(self)
        fewer._threads = threads
        return fewer

    def run(self, fn: Callable[[T], R], tasks: Sequence[T], *, label: str, at_once: int = 1) -> list[R]:
        if len(tasks) <= 1:
            return [fn(task) for task in tasks]
        with Progress(label, len(tasks), clock=self._clock) as progress:

            def counted(task: T) -> R:
                result = fn(task)
                progress.add()
                return result

            threads = max(self._threads, at_once)
            if threads == 1:
                return [counted(task) for task in tasks]
            look_s = self._look_s if at_once == 1 else 0
            return _TaskPool(counted, tasks, look_s=look_s, alone_s=self._alone_s).run(threads)

    def stage(self, records: Any, fn: StageBatches[S], *, label: str) -> list[S]:
        with Progress(label, None, unit="rows", clock=self._clock) as progress:

            def counted() -> Iterator[pa.RecordBatch]:
                for batch in _batches(records):
                    yield batch
                    progress.add(batch.num_rows)

            return list(fn(0, counted()))

    def read(
        self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], schema: pa.Schema, *, at_once: int = 1
    ) -> pa.RecordBatchReader:
        threads = max(self._threads, min(at_once, _FILES_AT_ONCE))
        return pa.RecordBatchReader.from_batches(schema, Batches(fn, tasks, threads, ahead_bytes=self._ahead_bytes))


def _batches(records: Any) -> Iterable[pa.RecordBatch]:
    return records.to_batches() if isinstance(records, pa.Table) else records


class _TaskPool(Generic[T, R]):
    """Tasks that the calling thread begins with, and others come to help with when that takes long."""

    def __init__(self, fn: Callable[[T], R], tasks: Sequence[T], *, look_s: float, alone_s: float) -> None:
        self._fn = fn
        self._tasks = tasks
        self._look_s = look_s
        self._alone_s = alone_s
        self._remaining = iter(range(len(tasks)))
        self._results: dict[int, R] = {}
        self._errors: dict[int, BaseException] = {}
        self._ended = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        """Tells the helper that the work has ended. No `Event`: an interrupt while it is set can leave its lock taken."""
        self._mutex = threading.Lock()

    def run(self, threads: int) -> list[R]:
        """The results in the order of the tasks; the first error is raised once no task runs any more.

        An interrupt of the calling thread goes before errors of tasks.
        """
        helper = threading.Thread(target=self._help, args=(min(threads, len(self._tasks)) - 1,), name="hoodie")
        try:
            _started(helper)
            self._work()
        finally:
            self._ended = True
            self._wake.put(None)
            _joined(helper)
        for number in sorted(self._errors, key=lambda number: (isinstance(self._errors[number], Exception), number)):
            raise self._errors[number]
        return [self._results[number] for number in range(len(self._tasks))]

    def _help(self, helpers: int) -> None:
        began = time.monotonic()
        while not self._ends_within(self._look_s):
            count = len(self._results)
            if self._errors or count == len(self._tasks):
                return  # an interrupt may keep the caller from setting `_ended`
            left_s = (time.monotonic() - began) / count * (len(self._tasks) - count) if count else math.inf
            if left_s > self._alone_s:
                break
        else:
            return
        others = [threading.Thread(target=self._work, name=f"hoodie-{number}") for number in range(1, helpers)]
        others = [other for other in others if _started(other)]
        self._work()
        for other in others:
            other.join()

    def _ends_within(self, seconds: float) -> bool:
        try:
            self._wake.get(timeout=seconds)
        except Empty:
            return False
        return True

    def _work(self) -> None:
        while (number := self._next()) is not None:
            try:
                self._results[number] = self._fn(self._tasks[number])
            except BaseException as error:  # noqa: BLE001 - `run` raises it
                with self._mutex:
                    self._errors[number] = error

    def _next(self) -> int | None:
        """None when no task is left, or one has failed."""
        with self._mutex:
            return None if self._errors or self._ended else next(self._remaining, None)


def _started(thread: threading.Thread) -> bool:
    """Start a thread that is welcome and not needed: the system may have no more of them."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def _joined(thread: threading.Thread) -> None:
    """Wait for a thread that has been told to end, also when an interrupt comes meanwhile."""
    if not thread.is_alive():
        return
    try:
        thread.join()
    except BaseException:
        thread.join()
        raise
