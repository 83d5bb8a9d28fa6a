"""The rows of a write on their way into the table."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa

from hoodie.engine.base import Engine
from hoodie.engine.local import LocalEngine
from hoodie.errors import OptionError
from hoodie.model.enums import WriteOperation
from hoodie.model.plans import Chunk
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext


@dataclass(frozen=True)
class Batch:
    """Rows on their way into the table: evaluated once, kept until the write is decided."""

    operation: WriteOperation
    chunks: tuple[Chunk, ...]
    schema: pa.Schema
    """Columns of the prepared rows: the table's after this write, as the table was when they were prepared."""
    input_schema: pa.Schema
    """The input's columns, in the types that a table stores."""
    engine: Engine
    """Runs the tasks; where the chunks live in memory it is the embedded one, and also where they are few."""
    folder: str | None
    """Where tasks stage what they find for other processes; None when all of them run in this one."""
    started_s: float
    found_on: Timeline | None = None
    """Where the rows, or partitions, are those that a condition found in the table: the timeline of then. They must still be as they
    were."""
    prepared_for: pa.Schema | None = None
    """The table's columns when the rows were prepared."""
    partitions: frozenset[str] = frozenset()
    """Partition paths that it replaces besides those of its rows."""

    @property
    def in_process(self) -> bool:
        """Whether all tasks run in this process."""
        return self.folder is None

    @property
    def has_rows(self) -> bool:
        return any(chunk.rows for chunk in self.chunks)

    @property
    def size_bytes(self) -> int:
        return sum(chunk.size_bytes for chunk in self.chunks)


def batch_of_no_rows(context: TableContext, operation: WriteOperation) -> Batch:
    """For an operation that needs none: one that deletes the partitions that it is told.

    Raises:
        OptionError: the table is empty.
    """
    schema = context.snapshot().schema
    if schema is None:
        raise OptionError(f"table {context.config.name!r} is empty: there is nothing to delete")
    return Batch(operation, (), schema, schema, LocalEngine(), None, time.monotonic())
