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

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows. pyarrow's `write_dataset` takes them so, for its C++ knows nothing of scans."""
        return self.scanner().__arrow_c_stream__(requested_schema)

    def scanner(  # type: ignore[override]
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,
        *_: Any,
        **__: Any,
    ) -> TableScanner:
        """`columns` are names, or expressions by the names of their results. The arguments of pyarrow that follow say how it reads
        files, and have no meaning here.
        """
        if isinstance(columns, Mapping):
            names = _columns_of(columns, self.schema)
            return TableScanner(self._scan(names, filter), self._failed, columns)
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


def _columns_of(computed: Mapping[str, pc.Expression], schema: pa.Schema) -> list[str]:
    """The columns that the expressions cannot do without: they do not tell them.

    Raises:
        OptionError: there is no such column, or the types do not fit.
    """
    rows = schema.empty_table()
    try:
        _computed(rows, computed)
    except (pa.ArrowException, KeyError, TypeError) as exc:
        raise OptionError(f"columns={computed!r:.200} does not fit the table: {exc}") from exc
    return [name for name in schema.names if not _is_computed(rows.drop_columns([name]), computed)]


def _is_computed(rows: pa.Table, computed: Mapping[str, pc.Expression]) -> bool:
    try:
        _computed(rows, computed)
    except (pa.ArrowException, KeyError):
        return False
    return True


def _computed(rows: pa.Table, computed: Mapping[str, pc.Expression]) -> pa.Table:
    return ds.dataset(rows).to_table(columns=dict(computed))


class TableScanner:
    """What takes the place of a pyarrow Scanner."""

    def __init__(
        self,
        scan: Query,
        failed: list[Exception] | None = None,
        computed: Mapping[str, pc.Expression] | None = None,
    ) -> None:
        self._scan = scan
        self._failed = failed
        self._expressions = computed

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader: Any = self.to_reader()
        return reader.__arrow_c_stream__(requested_schema)

    @property
    def projected_schema(self) -> pa.Schema:
        schema = self._scan.schema
        return schema if self._expressions is None else _computed(schema.empty_table(), self._expressions).schema

    @property
    def dataset_schema(self) -> pa.Schema:
        return self._scan.schema

    def to_reader(self) -> pa.RecordBatchReader:
        if self._failed is None and self._expressions is None:
            return self._scan.to_reader()
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._noted())

    def _noted(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.to_batches()
        except Exception as exc:
            if self._failed is not None:
                self._failed.append(exc)
            raise

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        if self._expressions is None:
            return self._scan.to_batches()
        return self._of_expressions(self._scan.to_batches(), self._expressions)

    def _of_expressions(
        self, batches: Iterator[pa.RecordBatch], computed: Mapping[str, pc.Expression]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _computed(pa.Table.from_batches([batch]), computed).to_batches()

    def to_table(self) -> pa.Table:
        rows = self._scan.to_arrow()
        return rows if self._expressions is None else _computed(rows, self._expressions)

    def count_rows(self) -> int:
        return self._scan.count()

    def head(self, num_rows: int) -> pa.Table:
        rows = self._scan.limit(num_rows).to_arrow()
        return rows if self._expressions is None else _computed(rows, self._expressions)

    def take(self, indices: Any) -> pa.Table:
        return self.to_table().take(indices)
