"""Skeleton files of bootstrapped tables, which have only the `_hoodie_` columns: a file elsewhere has the other columns of their rows.

The row groups of the two do not align, so both are read from their first row on. Which columns are needed is pushed down to both;
a filter is applied to whole rows. Witness: integration/test_bootstrap_with_hudi.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.format.parquet_file import open_parquet
from hoodie.keygen.virtual_columns import FolderValues, repeated
from hoodie.model.files import SourceFile
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.object_store import ObjectStorage
from hoodie.storage.uri import open_storage, scheme_of

HAS_COLUMNS = ", which has the columns of "
"""In each error about a source: its address stands before it."""


def source_folder(table: Storage, folder: str) -> Storage:
    """A folder of files that a table was bootstrapped from, as the index calls it."""
    # Nothing is encoded in what Hadoop makes of a path: %20 is part of a name, and so it is in a path of this machine.
    is_local = folder.startswith("file:")
    place = "/" + folder.removeprefix("file:").lstrip("/") if is_local else folder.replace("%", "%25")
    alike = isinstance(table, ObjectStorage) and scheme_of(place) == scheme_of(table.uri)
    return open_storage(place, table.how if alike and isinstance(table, ObjectStorage) else None)


def require_source(source: SourceFile, info: FileInfo | None, *, skeleton: str) -> None:
    """See that the file that has the other columns of a skeleton is there, and as large as it was.

    Raises:
        MissingFileError: it is gone. CorruptFileError: it is not the file that was bootstrapped.
    """
    where = f"{source.uri}{HAS_COLUMNS}{skeleton}"
    if info is None or info.is_folder:
        raise MissingFileError(f"{where}, is gone: {_ADVICE}")
    if info.size_bytes != source.size_bytes:
        raise CorruptFileError(
            f"{where}, was changed: it had {source.size_bytes} bytes, and has {info.size_bytes}; {_ADVICE}"
        )


_ADVICE = "put the file back that the table was bootstrapped from"


def source_of(table: Storage, source: SourceFile, *, skeleton: str, rows: int) -> pq.ParquetFile:
    """The file that has the other columns of a skeleton with so many rows; its caller closes it.

    Raises:
        MissingFileError, CorruptFileError: as `require_source`; or it has other rows.
    """
    folder, _, name = source.uri.rpartition("/")
    storage = source_folder(table, folder)
    where = f"{source.uri}{HAS_COLUMNS}{skeleton}"
    try:
        require_source(source, storage.stat(name), skeleton=skeleton)
        stream = storage.open_input(name)
    except FileNotFoundError as exc:
        raise MissingFileError(f"{where}, is gone: {_ADVICE}") from exc
    try:
        file = open_parquet(stream, path=where)
        if file.metadata.num_rows != rows:
            raise CorruptFileError(
                f"{where}, was changed: {rows} rows are known, and it has {file.metadata.num_rows}; {_ADVICE}"
            )
    except CorruptFileError:
        stream.close()
        raise
    return file


def skeleton_batches(
    storage: Storage,
    skeleton: pq.ParquetFile,
    source: SourceFile,
    names: Sequence[str],
    schema: pa.Schema,
    partition_path: str,
    *,
    read: Callable[..., Iterator[pa.RecordBatch]],
    path: str,
) -> Iterator[pa.RecordBatch]:
    """Rows of both files together, with those of the columns that one of them has, or the folder: that in the type of the schema.

    `read`: gives batches of one file, as `slice_reader.base_batches` does.
    """
    meta = [name for name in names if name in META_COLUMNS]
    with source_of(storage, source, skeleton=path, rows=skeleton.metadata.num_rows) as file:
        stored = set(file.schema_arrow.names)
        data = [name for name in names if name in stored and name not in META_COLUMNS]
        left = read(skeleton, meta, size_bytes=0, path=path)
        right = read(file, data, size_bytes=source.size_bytes, path=f"{source.uri}{HAS_COLUMNS}{path}")
        folders = _folder_columns(source, names, schema, stored, partition_path)
        all_names = [*meta, *data, *folders]
        for one, other in _aligned(left, right):
            columns = [*one.columns, *other.columns, *(repeated(value, one.num_rows) for value in folders.values())]
            if all_names:
                yield pa.RecordBatch.from_arrays(columns, names=all_names)
            else:
                yield one


def _folder_columns(
    source: SourceFile, names: Sequence[str], schema: pa.Schema, stored: set[str], partition_path: str
) -> dict[str, pa.Scalar]:
    """Values of partition columns that the source file lacks."""
    missing = [name for name in source.partition_fields if name in names and name not in stored]
    if not missing:
        return {}
    fields = tuple(
        schema.field(name) if name in missing and name in schema.names else pa.field(name, pa.string())
        for name in source.partition_fields
    )
    values = FolderValues(fields, source.hive_style, source.url_encode, source.slash_dates).of(partition_path)
    return {name: values[name] for name in missing}


def _aligned(
    left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Batches of as many rows; each side has as many in all."""
    one, other = _next(left), _next(right)
    while one is not None and other is not None:
        rows = min(one.num_rows, other.num_rows)
        yield one.slice(0, rows), other.slice(0, rows)
        one = one.slice(rows) if rows < one.num_rows else _next(left)
        other = other.slice(rows) if rows < other.num_rows else _next(right)


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return next((batch for batch in batches if batch.num_rows), None)
