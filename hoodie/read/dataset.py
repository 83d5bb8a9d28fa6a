"""A table as a pyarrow Dataset: duckdb, polars and others push columns and filters down into scans of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hoodie.errors import OptionError
from hoodie.read.pushdown import NewScan, Query

_NO_ROWS = pa.table({"ask this dataset by its own methods: scanner, to_table, to_batches": pa.nulls(0)})
"""What Arrow finds below: its C++ knows nothing of scans. A column that nobody names is an error there, not an empty answer."""


class TableDataset(ds.InMemoryDataset):
    """Each query of it is a scan of its own: of the columns and rows that the query needs, with files pruned by the filter."""

    def __init__(self, scan: NewScan, failed: list[Exception] | None = None) -> None:
        """`failed` takes the errors that scans end with, of which other libraries keep no more than the text."""
        super().__init__(_NO_ROWS)  # type: ignore[call-arg]
        self._scan: NewScan
        self._failed: list[Exception] | None
        self.__dict__.update(_scan=scan, _failed=failed)  # pyarrow's class takes no attributes

    def __repr__(self) -> str:
        return f"<TableDataset of columns {', '.join(self.schema.names)}>"

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
        *_: Any,
        **__: Any,
    ) -> TableScanner:
        """`columns` are names; the arguments of pyarrow that follow say how it reads files, and have no meaning here."""
        if isinstance(columns, Mapping):
            raise OptionError(
                f"columns={columns!r:.80} makes columns of others: give names, and compute with the result"
            )
        return TableScanner(self._scan(None if columns is None else list(columns), filter), self._failed)

    def to_table(self, *query: Any, **more: Any) -> pa.Table:
        return self.scanner(*query, **more).to_table()

    def to_batches(self, *query: Any, **more: Any) -> Iterator[pa.RecordBatch]:
        return self.scanner(*query, **more).to_batches()

    def count_rows(self, filter: pc.Expression | None = None, **_: Any) -> int:  # type: ignore[override]
        return self.scanner(None, filter).count_rows()

    def head(self, num_rows: int, *query: Any, **more: Any) -> pa.Table:
        return self.scanner(*query, **more).head(num_rows)

    def filter(self, expression: pc.Expression) -> TableDataset:
        """The same of fewer rows."""

        def scan(columns: Sequence[str] | None, where: Any) -> Query:
            return self._scan(columns, expression if where is None else expression & where)

        return TableDataset(scan, self._failed)

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[TableDataset]:
        """One, which is planned when it is read."""
        part = self if filter is None else self.filter(filter)
        return iter([_Fragment(part._scan, part._failed)])

    # -- What Arrow does with rows that are held in memory.

    def take(self, indices: Any, **more: Any) -> pa.Table:  # type: ignore[override]
        return self.to_table(**more).take(indices)

    def sort_by(self, sorting: Any, **more: Any) -> Any:
        return _in_memory(self).sort_by(sorting, **more)

    def join(self, right_dataset: ds.Dataset, *how: Any, **more: Any) -> Any:
        return _in_memory(self).join(_in_memory(right_dataset), *how, **more)

    def join_asof(self, right_dataset: ds.Dataset, *how: Any, **more: Any) -> Any:
        return _in_memory(self).join_asof(_in_memory(right_dataset), *how, **more)

    def replace_schema(self, schema: pa.Schema) -> Any:
        return _in_memory(self).replace_schema(schema)


class _Fragment(TableDataset):
    def scanner(  # type: ignore[override]
        self, schema: pa.Schema | None = None, *query: Any, **more: Any
    ) -> TableScanner:
        """As pyarrow's fragments take their arguments."""
        return super().scanner(*query, **more)


def _in_memory(dataset: ds.Dataset) -> Any:
    return ds.dataset(dataset.to_table()) if isinstance(dataset, TableDataset) else dataset


class TableScanner:
    """What takes the place of a pyarrow Scanner."""

    def __init__(self, scan: Query, failed: list[Exception] | None = None) -> None:
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

    def take(self, indices: Any) -> pa.Table:
        return self.to_table().take(indices)
