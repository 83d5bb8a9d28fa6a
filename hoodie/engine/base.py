"""The engine seam: three verbs. An engine moves records to functions and results back; it decides nothing.

`Records` is whatever the engine's users hold: Arrow data here, a DataFrame in Spark. Only engines look inside.
Functions are composed in `write/` and `read/` from lower rooms, so every engine runs the same ones; they are
picklable (module-level functions and `functools.partial` of them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from hoodie.model.plans import Chunk

T = TypeVar("T")
R = TypeVar("R")

Records = Any
StageBatches = Callable[[Iterator[pa.RecordBatch]], Iterable[Chunk]]


class Engine(Protocol):
    def run(self, fn: Callable[[T], R], tasks: Sequence[T], *, label: str) -> list[R]:
        """Call `fn` on every task, spread over workers; results in the order of the tasks.

        Results are small (statistics, file names). When a task is run more than once (retries, speculation) the
        result of exactly one run is returned. The first error is raised, after running tasks have ended.
        """
        ...

    def stage(self, records: Records, fn: StageBatches, *, label: str) -> list[Chunk]:
        """Evaluate `records` once, hand its batches to `fn` where they are, and return all chunks in arrival order."""
        ...

    def read(self, fn: Callable[[T], Iterator[pa.RecordBatch]], tasks: Sequence[T], schema: pa.Schema) -> Records:
        """The batches of all tasks, spread over workers, as this engine's kind of records with exactly this schema."""
        ...
