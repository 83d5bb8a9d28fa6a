"""The embedded engine: threads of this process. Arrow and numpy release the interpreter lock where the work is."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from itertools import islice
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hoodie.engine.base import StageBatches
from hoodie.engine.inputs import batches_of
from hoodie.engine.progress import Progress

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

AHEAD_BYTES = 32 * 1024 * 1024
"""Arrow bytes of batches that a task which reads holds for its consumer."""
TASK_BYTES = 256 * 1024 * 1024
"""What a task that writes is taken to need: a row group and its columns as they are written, its share of the batch, and keys."""
ALONE_S = 0.06
"""Work that has no longer to go is left to the calling thread: tasks of milliseconds are mostly Python, in which threads only
hinder each other."""
LOOK_S = 0.01
"""So often it is looked at how long it has to go."""


class LocalEngine:
    """The reference engine: `Records` is a `pyarrow.RecordBatchReader` (in: anything Arrow-like)."""

    def __init__(self, threads: int | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._threads = threads or min(32, os.cpu_count() or 1)
        self._clock = clock

    def within(self, memory_bytes: int) -> LocalEngine:
        """This engine, running as many tasks at once as fit into the memory, at least one."""
        threads = max(1, min(self._threads, memory_bytes // TASK_BYTES))
        if threads == self._threads:
            return self
        fewer = copy(self)
        fewer._threads = threads
        return fewer

    def run(self, fn: Callable[[T], R], tasks: Sequence[T], *, label: str) -> list[R]:
        if len(tasks) <= 1:
            return [fn(task) for task in tasks]
        progress = Progress(label, len(tasks), clock=self._clock)

        def counted(task: T) -> R:
            result = fn(task)
            progress.add()
            return result

        if self._threads == 1:
            return [counted(task) for task in tasks]
        return _Shared(counted, tasks).run(self._threads)

    def stage(self, records: Any, fn: StageBatches[S], *, label: str) -> list[S]:
        return list(fn(0, iter(batches_of(records))))

    def read(
        self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], schema: pa.Schema
    ) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, self._batches(fn, tasks))

    def _batches(self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T]) -> Iterator[pa.RecordBatch]:
        """Batches in task order; as many tasks run ahead of the consumer as there are threads, each by so many bytes."""
        if len(tasks) <= 1 or self._threads == 1:
            for task in tasks:
                yield from fn(task)
            return
        with ThreadPoolExecutor(self._threads, thread_name_prefix="hoodie") as pool:
            waiting = iter(tasks)
            running = deque(_Ahead(pool, fn, task) for task in islice(waiting, self._threads + 1))
            try:
                while running:
                    yield from running[0].batches()
                    running.popleft()
                    following = next(waiting, None)
                    if following is not None:
                        running.append(_Ahead(pool, fn, following))
            finally:
                for ahead in running:
                    ahead.stop()


class _Shared(Generic[T, R]):
    """Tasks that the calling thread begins with, and others come to help with when that takes long."""

    def __init__(self, fn: Callable[[T], R], tasks: Sequence[T]) -> None:
        self._fn = fn
        self._tasks = tasks
        self._left = iter(range(len(tasks)))
        self._results: dict[int, R] = {}
        self._errors: dict[int, BaseException] = {}
        self._ended = threading.Event()
        self._mutex = threading.Lock()

    def run(self, threads: int) -> list[R]:
        """The results in the order of the tasks; the first error is raised once no task runs any more."""
        helper = threading.Thread(target=self._help, args=(min(threads, len(self._tasks)) - 1,), name="hoodie")
        helper.start()
        try:
            self._work()
        finally:
            self._ended.set()
            helper.join()
        for number in sorted(self._errors):
            raise self._errors[number]
        return [self._results[number] for number in range(len(self._tasks))]

    def _help(self, helpers: int) -> None:
        began = time.monotonic()
        while not self._ended.wait(LOOK_S):
            done = len(self._results)
            left_s = (time.monotonic() - began) / done * (len(self._tasks) - done) if done else math.inf
            if left_s > ALONE_S:
                break
        else:
            return
        others = [threading.Thread(target=self._work, name=f"hoodie-{number}") for number in range(1, helpers)]
        for other in others:
            other.start()
        self._work()
        for other in others:
            other.join()

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
            return None if self._errors or self._ended.is_set() else next(self._left, None)


class _Ahead:
    """One task in a thread of its own, which waits when its batches are not taken: a file slice may be larger than memory.

    Tasks are started in the order in which they are consumed, so the one that is waited for always has a thread.
    """

    def __init__(self, pool: ThreadPoolExecutor, fn: Callable[[T], Iterator[pa.RecordBatch]], task: T) -> None:
        self._ready: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ended = self._stopped = False
        self._future: Future[None] = pool.submit(self._run, fn, task)

    def _run(self, fn: Callable[[T], Iterator[pa.RecordBatch]], task: T) -> None:
        try:
            for batch in fn(task):
                with self._changed:
                    self._ready.append(batch)
                    self._bytes += batch.nbytes
                    self._changed.notify_all()
                    while self._bytes > AHEAD_BYTES and not self._stopped:
                        self._changed.wait()
                    if self._stopped:
                        return
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._changed:
                while not self._ready and not self._ended:
                    self._changed.wait()
                if not self._ready:
                    break
                batch = self._ready.popleft()
                self._bytes -= batch.nbytes
                self._changed.notify_all()
            yield batch
        self._future.result()

    def stop(self) -> None:
        """Nobody takes the rest: end soon."""
        self._future.cancel()
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
