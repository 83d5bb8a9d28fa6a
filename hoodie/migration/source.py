"""The source seam: files of one state of a table elsewhere, and their rows in the table's types.

A new format is a file beside `delta_source.py`, and a case in `sources.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from hoodie.errors import SchemaError
from hoodie.write.casting import fit


@dataclass(frozen=True)
class Piece:
    """Rows that are read together: of one file."""

    path: str
    """Of the file in the source; no other piece has it."""
    size_bytes: int
    rows: int | None = None
    """None: not known before they are read."""
    partition: Mapping[str, pa.Scalar] = field(default_factory=dict)
    """Values of columns that the file lacks."""

    @property
    def order(self) -> tuple[str, str]:
        """Pieces of a partition come together, so that its rows get into few files."""
        return self.path.rpartition("/")[0], self.path


class MigrationSource(Protocol):
    """One state of a table, which does not change. All of it is known when it is opened; rows are read later."""

    @property
    def format(self) -> str:
        """parquet, delta or iceberg."""
        ...

    @property
    def uri(self) -> str: ...

    @property
    def version(self) -> str | None:
        """What opens this very state again, where the format keeps states."""
        ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns that choose the folder of a row."""
        ...

    @property
    def pieces(self) -> Sequence[Piece]:
        """In the order of `Piece.order`."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not taken over."""
        ...

    def read(self, piece: Piece, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a piece; those of the columns that it has, in any order and in the types of its file."""
        ...


def identity_of(source: MigrationSource) -> str:
    """Another one if the source has other files."""
    digest = hashlib.sha256(source.format.encode())
    for piece in source.pieces:
        digest.update(f"\n{piece.path}\t{piece.size_bytes}\t{piece.rows}".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]


def described(source: MigrationSource) -> str:
    """For messages."""
    version = f", version {source.version}" if source.version is not None else ""
    return f"{source.format} source {source.uri}{version}"


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
