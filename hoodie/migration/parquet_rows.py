"""Rows of one Parquet file of a source, with the columns that its folder or its log says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import TableChangedError
from hoodie.filegroup.slice_reader import base_batches
from hoodie.format.parquet_file import open_parquet, stored_schema
from hoodie.keygen.virtual_columns import repeated
from hoodie.migration.source import Piece
from hoodie.storage.base import Storage


def open_piece(storage: Storage, path: str) -> pq.ParquetFile:
    """The file, which its caller closes.

    Raises:
        TableChangedError: it is gone. CorruptFileError: it is no Parquet file.
    """
    where = f"{path} of the source {storage.uri}"
    try:
        return open_parquet(storage.open_input(path), path=where)
    except FileNotFoundError as exc:
        raise TableChangedError(
            f"{where} is gone, and was there when the migration was planned: keep writers and cleaning jobs away from the source, and "
            "run it again"
        ) from exc


def footer(storage: Storage, path: str) -> tuple[pa.Schema, int]:
    """The columns and the number of rows of a file."""
    with open_piece(storage, path) as file:
        return stored_schema(file), file.metadata.num_rows


def rows_of_file(
    storage: Storage, piece: Piece, columns: Sequence[str], *, keep: np.ndarray | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a piece, with those of the columns that the file or its partition has.

    Args:
        keep: for each of the first rows of the file, whether it is kept; all rows after them are.

    Raises:
        TableChangedError: the file has another number of rows than it had.
    """
    at = 0
    where = f"{piece.path} of the source {storage.uri}"
    with open_piece(storage, piece.path) as file:
        rows = file.metadata.num_rows if keep is None else int(file.metadata.num_rows - np.count_nonzero(~keep))
        if piece.rows is not None and rows != piece.rows:
            raise TableChangedError(
                f"{where} has {rows} rows, and had {piece.rows} when the migration was planned: keep writers away from the "
                "source, and run it again"
            )
        zoned = stored_schema(file)
        for batch in base_batches(file, columns, size_bytes=piece.size_bytes, batch_rows=1 << 20, path=where):
            part_of_rows = _with_zones(batch, zoned)
            if keep is not None:
                flags = np.ones(batch.num_rows, bool)
                part = keep[at : at + batch.num_rows]
                flags[: len(part)] = part
                at += batch.num_rows
                part_of_rows = part_of_rows.filter(pa.array(flags))
            yield _with_constants(part_of_rows, piece, columns)


def _with_zones(batch: pa.RecordBatch, stored: pa.Schema) -> pa.RecordBatch:
    """With the moments of INT96 as such."""
    for at, field in enumerate(batch.schema):
        kind = stored.field(field.name).type
        if pa.types.is_timestamp(field.type) and pa.types.is_timestamp(kind) and field.type.tz is None and kind.tz:
            batch = batch.set_column(at, field.with_type(kind), batch.column(at).cast(kind))
    return batch


def _with_constants(batch: pa.RecordBatch, piece: Piece, columns: Sequence[str]) -> pa.RecordBatch:
    there = set(batch.schema.names)
    for name, value in piece.partition.items():
        if name in columns and name not in there:
            batch = batch.append_column(name, repeated(value, batch.num_rows))
    return batch
