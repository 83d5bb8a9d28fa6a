"""Rows of a source in the types that the table has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import SchemaError
from hoodie.migration.source import MigrationSource, Piece, described
from hoodie.write.fit import fit


@dataclass(frozen=True)
class Rows:
    """Of a source, for a table with these columns."""

    source: MigrationSource
    schema: pa.Schema

    def of(self, piece: Piece, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Those of one piece, with these columns or all.

        Raises:
            SchemaError: the table cannot hold a value as it is.
        """
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        for batch in self.source.read(piece, schema.names):
            try:
                rows = fit(pa.Table.from_batches([batch]), schema, table=self.source.uri)
            except SchemaError as exc:
                raise SchemaError(f"{piece.path} of the {described(self.source)}: {exc}") from exc
            yield from rows.combine_chunks().to_batches()

    def reader(self, pieces: Iterable[Piece]) -> pa.RecordBatchReader:
        """Those of several pieces."""
        return pa.RecordBatchReader.from_batches(self.schema, (batch for piece in pieces for batch in self.of(piece)))
