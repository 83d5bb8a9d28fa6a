"""A table as a pyarrow Dataset: duckdb, polars and others push columns and filters down into scans of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hoodie.read.scan import Scan

NewScan = Callable[[Sequence[str] | None, pc.Expression | None], Scan]
"""(columns, where) -> a scan, as `HoodieTable.scan` makes it."""


class TableDataset(ds.Dataset):
    """Each query of it is a scan of its own: of the columns and rows that the query needs, with files pruned by the filter."""

    def __new__(cls, scan: NewScan, failed: list[Exception] | None = None) -> TableDataset:
        return ds.Dataset.__new__(cls)

    def __init__(self, scan: NewScan, failed: list[Exception] | None = None) -> None:
        """`failed` takes the errors that scans end with, of which other libraries keep no more than the text."""
        self._scan: NewScan
        self._failed: list[Exception] | None
        self.__dict__.update(_scan=scan, _failed=failed)  # pyarrow's class takes no attributes

    def noting(self, failed: list[Exception]) -> TableDataset:
        """The same for one query, which keeps errors there."""
        return TableDataset(self._scan, failed)

    @property
    def schema(self) -> pa.Schema:
        return self._scan(None, None).schema

    def scanner(  # type: ignore[override]
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_: Any,
    ) -> TableScanner:
        """`columns` are names; the other arguments of pyarrow's own datasets have no meaning here."""
        return TableScanner(self._scan(None if columns is None else list(columns), filter), self._failed)

    def to_table(self, **query: Any) -> pa.Table:  # type: ignore[override]
        return self.scanner(**query).to_table()

    def to_batches(self, **query: Any) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        return self.scanner(**query).to_batches()

    def count_rows(self, **query: Any) -> int:  # type: ignore[override]
        return self.scanner(**query).count_rows()

    def head(self, num_rows: int, **query: Any) -> pa.Table:  # type: ignore[override]
        return self.scanner(**query).head(num_rows)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[TableDataset]:
        return iter([self])


class TableScanner:
    """What takes the place of a pyarrow Scanner."""

    def __init__(self, scan: Scan, failed: list[Exception] | None = None) -> None:
        self._scan = scan
        self._failed = failed

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scan.schema

    dataset_schema = projected_schema

    def to_reader(self) -> pa.RecordBatchReader:
        if self._failed is None:
            return self._scan.to_reader()
        return pa.RecordBatchReader.from_batches(self._scan.schema, self._noted(self._failed))

    def _noted(self, failed: list[Exception]) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scan.to_batches()
        except Exception as exc:
            failed.append(exc)
            raise

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return self._scan.to_batches()

    def to_table(self) -> pa.Table:
        return self._scan.to_arrow()

    def count_rows(self) -> int:
        return self._scan.count()

    def head(self, num_rows: int) -> pa.Table:
        return self._scan.limit(num_rows).to_arrow()
