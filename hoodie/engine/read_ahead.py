"""Batches of several tasks in order, read ahead by threads that end with whoever takes them.

A reader may be left at any batch: by a `break`, an exception, the end of the program. So nothing here waits for its consumer
without being told when that goes, and nothing keeps the process alive. The threads are daemons; they are told to stop when the
iterator is closed or collected, and waited for, a while, when the interpreter ends.

Both sides meet in `SimpleQueue`s only: these are of one piece. An interrupt inside a `Condition` or `Event` can leave its lock
taken for good.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import pyarrow as pa

from hoodie.engine.gather import gathered
from hoodie.errors import HoodieError

T = TypeVar("T")

AHEAD_BYTES = 32 * 1024 * 1024
"""Arrow bytes of batches that a task which reads holds for its consumer."""
_EXIT_S = 10.0
"""So long the end of the interpreter waits for threads that are in the middle of a batch."""


class Batches(Generic[T]):
    """The batches of all tasks, in task order; at most `threads` tasks run ahead of the consumer, each by `ahead_bytes`."""

    def __init__(
        self,
        fn: Callable[[T], Iterator[pa.RecordBatch]],
        tasks: Sequence[T],
        threads: int,
        *,
        ahead_bytes: int = AHEAD_BYTES,
    ) -> None:
        batches = _in_turn(fn, tasks) if len(tasks) <= 1 or threads == 1 else _ahead(fn, tasks, threads, ahead_bytes)
        self._inner = gathered(batches)
        self._failure: str | None = None

    def __iter__(self) -> Batches[T]:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._failure is not None:
            # A generator that has failed looks like one that is through: the rest would be missing without a word.
            raise HoodieError(f"this reader failed earlier ({self._failure}), so it has no more rows; scan again")
        try:
            return next(self._inner)
        except StopIteration:
            raise
        except BaseException as error:
            self._failure = f"{type(error).__name__}: {error}"
            raise


def _in_turn(fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T]) -> Iterator[pa.RecordBatch]:
    for task in tasks:
        yield from fn(task)


def _ahead(
    fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], threads: int, ahead_bytes: int
) -> Iterator[pa.RecordBatch]:
    crew: _Crew[T] = _Crew(fn, threads, ahead_bytes)
    try:
        waiting = iter(tasks)
        for task in islice(waiting, threads + 1):
            crew.begin(task)
        while crew.shares:
            yield from crew.shares[0].batches()
            crew.shares.popleft()
            for task in islice(waiting, 1):
                crew.begin(task)
    finally:
        crew.stop()


class _Crew(Generic[T]):
    """The threads of one reader. They know their orders and not the crew, so that it goes when its reader does."""

    def __init__(self, fn: Callable[[T], Iterator[pa.RecordBatch]], threads: int, ahead_bytes: int) -> None:
        self._fn = fn
        self._ahead_bytes = ahead_bytes
        self._most = threads
        self._started = 0
        self._orders: SimpleQueue[_Share[T] | None] = SimpleQueue()
        self.shares: deque[_Share[T]] = deque()
        """Tasks that were begun, in order; the consumer is at the first."""
        _crews.add(self)

    def begin(self, task: T) -> None:
        share = _Share(self._fn, task, self._ahead_bytes)
        self.shares.append(share)
        if self._started < self._most:
            self._started += 1
            try:
                threading.Thread(target=_work, args=(self._orders,), name="hoodie-read", daemon=True).start()
            except RuntimeError:
                # The system has no more threads for us: those that there are do it, or the consumer's own.
                self._started -= 1
                self._most = self._started
        if self._started:
            self._orders.put(share)
        else:
            share.left_to_consumer = True

    def stop(self) -> None:
        """Nobody takes the rest: end soon."""
        for share in list(self.shares):
            share.stop()
        for _ in range(self._started):
            self._orders.put(None)

    def __del__(self) -> None:
        self.stop()


_crews: weakref.WeakSet[_Crew[Any]] = weakref.WeakSet()
_working: set[threading.Thread] = set()


def _work(orders: SimpleQueue[_Share[T] | None]) -> None:
    me = threading.current_thread()
    _working.add(me)
    try:
        while (share := orders.get()) is not None:
            share.run()
    finally:
        _working.discard(me)


def _stop_all() -> None:
    for crew in list(_crews):
        crew.stop()
    until = time.monotonic() + _EXIT_S
    for thread in list(_working):
        thread.join(max(0.0, until - time.monotonic()))


atexit.register(_stop_all)


class _Share(Generic[T]):
    """One task, whose thread waits when its batches are not taken: a file slice may be larger than memory.

    Tasks are begun in the order in which they are consumed, so the one that is waited for always has a thread.
    """

    def __init__(self, fn: Callable[[T], Iterator[pa.RecordBatch]], task: T, ahead_bytes: int) -> None:
        self._fn = fn
        self._task = task
        self._ahead_bytes = ahead_bytes
        self._ready: SimpleQueue[tuple[pa.RecordBatch, int] | _End] = SimpleQueue()
        self._freed_bytes: SimpleQueue[int] = SimpleQueue()
        self._stopped = False
        self._process = os.getpid()
        self.left_to_consumer = False

    def run(self) -> None:
        error: BaseException | None = None
        try:
            buffer_bytes = 0
            for batch in () if self.is_stopped() else self._fn(self._task):
                size = batch.nbytes
                self._ready.put((batch, size))
                buffer_bytes += size
                while buffer_bytes > self._ahead_bytes and not self.is_stopped():
                    buffer_bytes -= self._freed_bytes.get()
                if self.is_stopped():
                    break
        except BaseException as exc:  # noqa: BLE001 - the consumer raises it
            error = exc
        finally:
            self._ready.put(_End(error))

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self.left_to_consumer:
            yield from self._fn(self._task)
            return
        while True:
            if os.getpid() != self._process:
                raise HoodieError(
                    "a reader that was opened before a fork has no threads in the child; scan again there"
                )
            item = self._ready.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            batch, size = item
            self._freed_bytes.put(size)
            yield batch

    def is_stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        self._stopped = True
        self._freed_bytes.put(0)


class _End:
    """Behind the last batch of a task, with the error that ended it."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error
