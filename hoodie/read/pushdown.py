"""How others ask a table for some columns and rows of it: by a function that makes the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa

from hoodie.model.plans import ReadPlan
from hoodie.read.where import Where


class Query(Protocol):
    """What others need of a scan."""

    @property
    def plan(self) -> ReadPlan: ...
    @property
    def schema(self) -> pa.Schema: ...
    def to_reader(self) -> pa.RecordBatchReader: ...
    def to_batches(self) -> Iterator[pa.RecordBatch]: ...
    def to_arrow(self) -> pa.Table: ...
    def count(self) -> int: ...
    def limit(self, rows: int) -> Query: ...
    def explain(self, *, merging: bool = True) -> str: ...


NewScan: TypeAlias = Callable[[Sequence[str] | None, Where | None], Query]
"""(columns, where) -> a scan, as `HoodieTable.scan` makes it."""
