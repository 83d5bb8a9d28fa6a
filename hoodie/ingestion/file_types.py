"""New files that tasks decode: first what types their columns have, then their rows in the types that fit all of them.

Embedded ingestion finds types as it reads one file after the other (`folders.py`). Tasks of an engine read each for itself, so the
types are found before. The rows, and what is set apart, come out the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import pyarrow as pa

from hoodie.ingestion.folders import FolderSource, not_fitting
from hoodie.ingestion.formats import DecodedRows, wider, with_types
from hoodie.ingestion.salvage import with_known_types
from hoodie.ingestion.source import BadRecord
from hoodie.storage.base import FileInfo


class FileContent(NamedTuple):
    """What a file has."""

    schema: pa.Schema
    bad: tuple[BadRecord, ...] = ()

    def differs_from(self, types: pa.Schema) -> bool:
        """Whether a column has another type than it gets: values of it may not fit."""
        return any(field.type != types.field(field.name).type for field in self.schema if field.name in types.names)


def look(source: FolderSource, schema: pa.Schema | None, info: FileInfo) -> FileContent:
    """The columns of a file, and its records that do not fit them."""
    decoded = source.decoded(info, schema)
    return FileContent(decoded.rows.schema, decoded.bad)


def columns_of(looked: Sequence[FileContent]) -> pa.Schema:
    """Columns of all files: where their types do not meet, that of the first file counts."""
    schema = reduce(wider, (each.schema for each in looked), pa.schema([]))
    return with_known_types(schema.empty_table()).schema


def looked_again(source: FolderSource, types: pa.Schema, info: FileInfo) -> FileContent:
    """What of a file cannot be a row of these columns."""
    return FileContent(types, _decoded(source, types, info).bad)


def rows_of_file(source: FolderSource, types: pa.Schema, info: FileInfo) -> Iterator[pa.RecordBatch]:
    """The rows that can be."""
    yield from _decoded(source, types, info).rows.to_batches()


def _decoded(source: FolderSource, types: pa.Schema, info: FileInfo) -> DecodedRows:
    decoded = source.decoded(info, types)
    try:
        return decoded._replace(rows=with_types(decoded.rows, types))
    except pa.ArrowException as exc:
        return DecodedRows(pa.table({}), (*decoded.bad, not_fitting(info, exc)))
