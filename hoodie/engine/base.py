"""The engine seam: three verbs, and what they run on. An engine moves records to functions and results back; it decides nothing.

`Records` is whatever the engine's users hold: Arrow data here, a DataFrame in Spark. Only engines look inside.
Functions are composed in `write/` and `read/` from lower rooms, so every engine runs the same ones; they are
picklable (module-level functions and `functools.partial` of them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

Records = Any
StageBatches = Callable[[int, Iterator[pa.RecordBatch]], Iterable[S]]
"""Takes the number of a part of the records, from 0, and its batches; gives small values: chunks, names of files."""


class Engine(Protocol):
    @property
    def name(self) -> str:
        """What a commit's result calls it."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether tasks see the memory of the calling process: nothing need be staged for them then."""
        ...

    @property
    def zone(self) -> str | None:
        """The time zone of its session; None: that of this process."""
        ...

    def within(self, memory_bytes: int) -> Engine:
        """This engine, with no more tasks at once than fit into so much of the calling process's memory; at least one."""
        ...

    def run(self, fn: Callable[[T], R], tasks: Sequence[T], *, label: str, at_once: int = 1) -> list[R]:
        """Call `fn` on every task, spread over workers; results in the order of the tasks.

        `at_once`: the tasks need little memory and mostly wait for a storage, so that it is worth having so many of them under
        way; an engine of many processes need not care.

        Results are small (statistics, file names). When a task is run more than once (retries, speculation) the
        result of exactly one run is returned. The first error is raised, after running tasks have ended.
        """
        ...

    def stage(self, records: Records, fn: StageBatches[S], *, label: str) -> list[S]:
        """Evaluate `records` once, hand the batches of each part to `fn` where they are, and return all that it gives, in
        arrival order. When a part is run more than once (retries, speculation) the values of exactly one run are returned.
        """
        ...

    def read(
        self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], schema: pa.Schema, *, at_once: int = 1
    ) -> Records:
        """The batches of all tasks, spread over workers, as this engine's kind of records with exactly this schema."""
        ...
