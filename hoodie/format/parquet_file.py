"""Parquet files of any writer: opened, checked for consistency, and read to the last row that they claim.

Parquet has checksums for pages only (Hudi's writers and ours write them; they are verified), none for page headers and the
footer. A damaged page header can make a reader pass over a page without a word, a damaged footer can lose a column or
rows. So what a file says twice must agree: the row counts of footer and row groups, the column names in the Parquet
schema and in the Avro schema beside it, and the rows that come out.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.format.base_file import AVRO_SCHEMA
from hoodie.model.meta_fields import META_COLUMNS, PARTITION_PATH

_FOREIGN = (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError, IndexError)
"""What pyarrow raises on bytes that are no Parquet file: ValueError for names that are no UTF-8, MemoryError for sizes
that no file of this length can have."""
_NOT_OF_THE_FILE = {errno.EIO, errno.EBUSY, errno.ETIMEDOUT, errno.EACCES, errno.EPERM}
"""Says an error of the storage, or of the way to it, which names the file itself."""
_ADVICE = "restore the file from a copy"
_AHEAD_BYTES = 256 * 1024
"""Of a file that is not in memory each column is read in pieces of so many bytes."""
_WORTH_THREADS_BYTES = 1 << 20
"""Of a row group, uncompressed. Smaller ones take half the time, and half the CPU, in the thread that asks."""
FEW_ROWS = 128
"""Files of so many rows, or fewer, have no dictionaries."""
_CODE_BYTES = 2
_DICTIONARY_BYTES = 64 * 1024
"""A column of texts counts as repeating up to these bytes a row and these for its dictionary."""


def open_parquet(
    source: pa.NativeFile, *, path: str, encode: Collection[str] = (), metadata: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """The file in `source`, its footer checked; `path` is for messages, `metadata` its footer, if it was decoded before.

    Of the columns in `encode` those texts whose values repeat come as they are stored, as dictionary arrays: a rewrite need not
    look at each value then.

    Raises:
        CorruptFileError: it is no whole Parquet file, or its footer contradicts itself.
    """
    opened: Any = pq.ParquetFile  # the stubs do not know page checksums
    # INT96, which Spark stores moments as, holds any day; nanoseconds of 64 bits end in 2262, and 9999-12-31 is common.
    how: dict[str, Any] = {"page_checksum_verification": True, "coerce_int96_timestamp_unit": "us"}
    if hasattr(source, "expect"):
        opened = _FarFile
        how |= {"pre_buffer": False}
    elif isinstance(source, pa.BufferReader):
        how |= {"pre_buffer": False}  # threads would copy what is there
    elif not isinstance(source, pa.MemoryMappedFile):
        # Else all that is asked for of all row groups is fetched before the first row is decoded.
        how |= {"pre_buffer": False, "buffer_size": _AHEAD_BYTES}
    try:
        file: pq.ParquetFile = opened(source, metadata=metadata, **how)
        _check_footer(file, path)
        repeating = _repeating(file, encode) if encode else []
        if repeating:
            file = opened(source, metadata=file.metadata, read_dictionary=repeating, **how)
    except CorruptFileError:
        raise
    except _FOREIGN as exc:
        _pass_on(exc)
        raise CorruptFileError(f"{path} is not a whole Parquet file ({exc}); {_ADVICE}") from exc
    return file


def stored_schema(file: pq.ParquetFile) -> pa.Schema:
    """The file's columns; those of INT96 are moments, which Arrow does not know to be in UTC."""
    columns: Any = file.schema
    leaves = iter([columns.column(i).physical_type == "INT96" for i in range(len(columns))])
    return pa.schema([field.with_type(_with_moments(field.type, leaves)) for field in file.schema_arrow])


def _with_moments(kind: Any, leaves: Iterator[bool]) -> Any:
    """The type, where `leaves` tells of each leaf column whether it is of INT96."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_moments(field.type, leaves)) for field in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_with_moments(key.type, leaves)), item.with_type(_with_moments(item.type, leaves)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_moments(kind.value_type, leaves)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_with_moments(kind.value_type, leaves)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_with_moments(kind.value_type, leaves)), kind.list_size)
    return pa.timestamp("us", "UTC") if next(leaves) else kind


def _pass_on(error: BaseException) -> None:
    """Raises it again if it says nothing about the content of the file: a store that did not answer damages none."""
    if isinstance(error, OSError) and error.errno in _NOT_OF_THE_FILE:
        raise error


@contextmanager
def foreign_errors(path: str) -> Iterator[None]:
    """Errors of Arrow on bytes of the file say which one it is."""
    try:
        yield
    except _FOREIGN as exc:
        _pass_on(exc)
        raise CorruptFileError(f"{path} does not decode: {exc}; {_ADVICE}") from exc


class _FarFile(pq.ParquetFile):
    """Tells its input which column chunks are going to be read, so that they come together."""

    def __init__(self, source: Any, **how: Any) -> None:
        super().__init__(source, **how)
        self._expect = source.expect

    def iter_batches(self, *args: Any, **how: Any) -> Iterator[pa.RecordBatch]:
        self._expect(_column_chunks(self.metadata, how.get("columns"), how.get("row_groups")))
        return super().iter_batches(*args, **how)


def _column_chunks(
    metadata: pq.FileMetaData, columns: Collection[str] | None, groups: Sequence[int] | None
) -> list[tuple[int, int]]:
    """Where the chunks of these columns (None: of all) begin and end in the file, row group by row group (None: all)."""
    names = None if columns is None else frozenset(columns)
    found = []
    for number in range(metadata.num_row_groups) if groups is None else groups:
        group = metadata.row_group(number)
        for i in range(group.num_columns):
            chunk = group.column(i)
            if names is None or chunk.path_in_schema.partition(".")[0] in names or chunk.path_in_schema in names:
                begin = chunk.data_page_offset
                if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                    begin = min(begin, chunk.dictionary_page_offset)
                found.append((begin, begin + chunk.total_compressed_size))
    return found


def _repeating(file: pq.ParquetFile, names: Collection[str]) -> list[str]:
    """Columns of texts that are stored as numbers of a small dictionary, in all row groups."""
    metadata, schema = file.metadata, file.schema_arrow
    texts = {field.name for field in schema if pa.types.is_string(field.type) and field.name in names}
    for number in range(metadata.num_row_groups if texts else 0):
        group = metadata.row_group(number)
        for i in range(group.num_columns):
            column = group.column(i)
            if column.path_in_schema not in texts:
                continue
            encoded = any("DICTIONARY" in str(encoding) for encoding in column.encodings)
            # A writer gives a dictionary up when it grows too large, and says so nowhere but in the size.
            if not encoded or column.total_uncompressed_size > _CODE_BYTES * group.num_rows + _DICTIONARY_BYTES:
                texts.discard(column.path_in_schema)
    return [name for name in schema.names if name in texts]


def plain_columns(metadata: pq.FileMetaData) -> frozenset[str]:
    """Leaf paths of the columns that have values, and no dictionary in any row group; a file of few rows does not tell."""
    if metadata.num_rows <= FEW_ROWS:
        return frozenset()
    plain: dict[str, bool] = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for i in range(group.num_columns):
            column = group.column(i)
            encoded = any("DICTIONARY" in str(encoding) for encoding in column.encodings)
            if column.num_values:
                plain[column.path_in_schema] = not encoded and plain.get(column.path_in_schema, True)
    return frozenset(path for path, without in plain.items() if without)


def row_bytes(file: pq.ParquetFile, columns: Collection[str] | None = None, *, path: str) -> float:
    """Bytes of a row, decompressed but as encoded in the file; 1 for a file without rows. `columns`: of these (None: of all).

    Raises:
        CorruptFileError: the footer names columns that the schema has not.
    """
    metadata = file.metadata
    names = frozenset(columns or ())
    found = 0
    with foreign_errors(path):
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if columns is None:
                found += group.total_byte_size
                continue
            chunks = (group.column(i) for i in range(group.num_columns))
            found += sum(c.total_uncompressed_size for c in chunks if c.path_in_schema.partition(".")[0] in names)
    return max(1.0, found / max(1, metadata.num_rows))


def read_batches(
    file: pq.ParquetFile,
    columns: Sequence[str],
    *,
    batch_rows: int,
    path: str,
    threads: bool = True,
    group: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """All rows with these columns of the file, in their order; without any column, batches that have only a length.

    `threads`: columns are decoded beside each other, each thread with memory of its own, where that is worth the hand-over.
    `group`: the rows of this row group alone.

    Raises:
        CorruptFileError: a page is damaged, or fewer or more rows come out than the footer says.
    """
    rows = file.metadata.num_rows if group is None else file.metadata.row_group(group).num_rows
    threads = threads and _has_a_large_group(file)
    # Never the footer's word for how many rows there are: a few bytes can claim any number of them.
    names = list(columns) or file.schema_arrow.names[:1]
    groups = None if group is None else [group]
    batches = file.iter_batches(batch_size=batch_rows, row_groups=groups, columns=names, use_threads=threads)
    found = 0
    while True:
        with foreign_errors(path):
            batch = next(batches, None)
        if batch is None:
            break
        found += batch.num_rows
        if found > rows:
            break
        yield batch if columns else batch.select([])
    if found != rows:
        raise CorruptFileError(f"{path} gives {found} rows, its footer says {rows}: a page is damaged; {_ADVICE}")


def _has_a_large_group(file: pq.ParquetFile) -> bool:
    metadata = file.metadata
    return any(
        metadata.row_group(number).total_byte_size >= _WORTH_THREADS_BYTES for number in range(metadata.num_row_groups)
    )


def check_meta_columns(file: pq.ParquetFile, *, path: str, folder: str | None = None) -> None:
    """Raises CorruptFileError when a base file has some of Hudi's columns and lacks others, or when its footer says that its rows are
    of another partition than `folder` (None: not known).

    Without its key a row merges with nothing; without its commit time an incremental pull passes over it.
    """
    names = file.schema_arrow.names
    missing = [name for name in META_COLUMNS if name not in names]
    if 0 < len(missing) < len(META_COLUMNS):
        raise CorruptFileError(
            f"{path} has no column {missing[0]}, though others of Hudi's columns are there; {_ADVICE}"
        )
    if folder is not None and not missing:
        with foreign_errors(path):
            other = _another_partition(file, folder)
        if other is not None:
            raise CorruptFileError(
                f"{path} has rows of partition {other!r}: it is the file of another folder; {_ADVICE}"
            )


def _another_partition(file: pq.ParquetFile, folder: str) -> str | None:
    """The partition of the rows of the first row group, where it is one and not that of the folder. An empty one says nothing: a
    bulk_insert of Apache Hudi without meta fields leaves empty texts.
    """
    if not file.metadata.num_row_groups:
        return None
    column = file.metadata.row_group(0).column(file.schema_arrow.names.index(PARTITION_PATH))
    is_it = column.path_in_schema == PARTITION_PATH  # the fields of structs may come before it
    statistics: Any = column.statistics if is_it else None
    if statistics is None or not statistics.has_min_max or statistics.min_raw != statistics.max_raw:
        return None
    stated = str(statistics.min_raw.decode(errors="replace"))
    return None if stated.strip("/") in ("", folder) else stated


def _check_footer(file: pq.ParquetFile, path: str) -> None:
    metadata = file.metadata
    groups = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    if metadata.num_rows < 0 or min(groups, default=0) < 0 or sum(groups) != metadata.num_rows:
        raise CorruptFileError(
            f"{path} says {metadata.num_rows} rows in its footer, its {len(groups)} row groups say {sum(groups)}; {_ADVICE}"
        )
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        raise CorruptFileError(
            f"{path} has a column twice: {sorted({n for n in names if names.count(n) > 1})}; {_ADVICE}"
        )
    avro = (metadata.metadata or {}).get(AVRO_SCHEMA.encode())
    stated = None if avro is None else _avro_columns(avro)
    if stated is None:
        return
    if tuple(stated) != tuple(names):
        apart = sorted(set(stated) ^ set(names))
        raise CorruptFileError(
            f"{path} has other columns in its Parquet schema than in its Avro schema "
            f"({', '.join(apart[:4]) or 'in another order'}); {_ADVICE}"
        )
    # One bit says whether a page begins with which values are null: without it these bytes become values.
    without = [field.name for field in file.schema_arrow if not field.nullable and stated[field.name]]
    if without:
        raise CorruptFileError(
            f"{path} has no nulls in column {without[0]} by its Parquet schema, by its Avro schema it may have; {_ADVICE}"
        )


@lru_cache(maxsize=64)
def _avro_columns(text: bytes) -> dict[str, bool] | None:
    """The columns in the footer's Avro schema and whether each may be null.

    None when that cannot be made out: it is a second opinion only.
    """
    try:
        fields = json.loads(text)["fields"]
        return {str(field["name"]): isinstance(field["type"], list) and "null" in field["type"] for field in fields}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class _ParquetWriter(pq.ParquetWriter):
    def __del__(self) -> None:
        """Nothing: Arrow's would finish the file of a write that failed, into an output that is closed by then, and complain."""


parquet_writer: Any = _ParquetWriter
"""A writer that only `close` finishes. The stubs know neither a codec chosen at run time nor dictionaries by column."""
