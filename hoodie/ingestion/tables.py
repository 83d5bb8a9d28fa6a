"""Another table as a source: the rows that changed since the last round, as an incremental query gives them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hoodie.consumers import safe_end
from hoodie.ingestion.source import Bounds, Checkpoint, Round
from hoodie.table import HoodieTable


@dataclass(frozen=True)
class TableSource:
    """`Source` of the latest state of changed rows; deletes are not among them. Bounds do not cut a range."""

    table: HoodieTable

    def __str__(self) -> str:
        return f"the table {self.table.uri}"

    def next(self, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        end = safe_end(self.table._context)
        since = after.text if after is not None else None
        if end is None or (since is not None and end <= since):
            return None
        rows = self.table.changes(since=since, until=end).to_reader()
        return Round(rows, Checkpoint(str(end)), pieces=1)
