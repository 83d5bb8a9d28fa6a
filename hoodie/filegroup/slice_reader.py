"""One file slice -> record batches: base file merged with its logs, projected and filtered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hoodie.format
from hoodie.errors import CorruptFileError, OptionError
from hoodie.filegroup.column_names import renames_for
from hoodie.filegroup.conform import conform
from hoodie.filegroup.log_scan import LogRecords, read_log_records
from hoodie.filegroup.missing_file import missing_file_error
from hoodie.filegroup.picks import in_few_batches, rows_at
from hoodie.filegroup.skeleton import HAS_COLUMNS, skeleton_batches
from hoodie.filegroup.sought_rows import can_seek, sought_rows
from hoodie.filegroup.stored_merge import Newer, merge_with_stored
from hoodie.format.base_file import BaseFileFooter, parted_footer, read_footer
from hoodie.format.parquet_file import check_meta_columns, open_parquet, read_batches, row_bytes
from hoodie.model.columns import ColumnHistory
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.instant import InstantRange
from hoodie.model.meta_fields import COMMIT_TIME, RECORD_KEY
from hoodie.model.names import folder_of
from hoodie.model.plans import (
    MergeRule,
    ReadContext,
    ReadTask,
    RowFilter,
    UnstoredColumns,
    WholeSlice,
)
from hoodie.model.sought import KnownPlaces, SoughtKeys
from hoodie.storage.base import Storage
from hoodie.storage.refusals import is_of_storage

if TYPE_CHECKING:
    import hoodie.format.parquet_pages

MIN_BATCH_ROWS = 64 * 1024
MAX_BATCH_ROWS = 1024 * 1024
MAPPED_BYTES = 128 * 1024 * 1024
"""Larger base files are read and not mapped: all of a file would count as memory of the process before the end."""
BATCH_BYTES = 64 * 1024 * 1024
"""Bytes of a batch at most, a quarter of a large file: several copies of it are in memory while it is merged."""
_KEPT_FOOTER_BYTES = 8 * 1024
"""A larger footer, of many columns, is decoded for each look-up."""
_FEWEST_ROWS = 16
"""Of a batch, whatever a footer says of the sizes of its columns."""


def read_task(storage: Storage, context: ReadContext, task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Batches with exactly `task.columns` of `context.schema`."""
    schema = needed_columns(context, task.columns, task.span)
    key_filter = None if context.filter is None else context.filter.key_filter
    for batch in read_slice(
        storage, context, task.slice, schema, span=task.span, whole=task.whole, key_filter=key_filter
    ):
        with filter_errors(context):
            rows = keep_rows(batch, context.filter, task.span)
        if rows.num_rows:
            rows = rows if len(schema) == len(task.columns) else rows.select(task.columns)
            yield rows if context.unstored is None or not context.unstored.keys else _without_key(rows)


def _without_key(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as they are stored: what merging made of their columns is no column of theirs."""
    at = rows.schema.get_field_index(RECORD_KEY)
    return rows if at < 0 else rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, pa.string()))


def needed_columns(context: ReadContext, columns: Sequence[str], span: InstantRange | None) -> pa.Schema:
    """The columns of a query's output, then those that `keep_rows` looks at; at least one, for rows of none are not counted."""
    extra = [*(context.filter.columns if context.filter else ()), *((COMMIT_TIME,) if span else ())]
    names = dict.fromkeys([*columns, *extra]) or context.schema.names[:1]
    return pa.schema([context.schema.field(name) for name in names])


@contextmanager
def filter_errors(context: ReadContext) -> Iterator[None]:
    """Says that it is the filter, where Arrow cannot evaluate it on some rows: a text only where an integer is too large."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as exc:
        if context.filter is None:
            raise
        raise OptionError(
            f"Arrow cannot evaluate the filter {context.filter.expression} on rows of table {context.table}: {exc}. If an integer is "
            "too large, make one of the numbers a decimal, such as 2.0 for 2. Else cast one side of the comparison, or give the "
            "filter as text, which compares values of different types exactly"
        ) from exc


def keep_rows(batch: pa.RecordBatch, row_filter: RowFilter | None, span: InstantRange | None) -> pa.RecordBatch:
    """Rows that the filter accepts and that were committed in the span. Only for whole, merged rows.

    Raises:
        CorruptFileError: a row does not say when it was committed.
    """
    if row_filter is not None:
        batch = _kept(batch, row_filter)
    if span is not None:
        if batch.column(COMMIT_TIME).null_count:
            raise CorruptFileError(
                f"rows of the table have no {COMMIT_TIME}, so it is not known which of them belong to the range; another writer has "
                "left it out of a file: read the whole table"
            )
        times = _padded(batch.column(COMMIT_TIME))
        keep = pa.array(np.ones(batch.num_rows, dtype=bool))
        if span.only is not None:
            keep = pc.is_in(batch.column(COMMIT_TIME), value_set=pa.array(sorted(span.only), pa.string()))
        if span.begin is not None:
            keep = pc.and_(keep, pc.greater(times, span.begin.padded))
        if span.end is not None:
            keep = pc.and_(keep, pc.less_equal(times, span.end.padded))
        batch = batch.filter(keep)
    return batch


def _kept(batch: pa.RecordBatch, row_filter: RowFilter) -> pa.RecordBatch:
    sought = row_filter.key_filter
    if sought is None or not row_filter.keys_alone:
        return batch.filter(row_filter.expression)
    # To set up the evaluation of an expression of a thousand keys takes longer than to find a few rows of a file.
    has_key = pc.is_in(batch.column(RECORD_KEY), value_set=sought.keys)
    return batch if has_key.true_count == batch.num_rows else batch.filter(has_key)


def _padded(times: pa.Array) -> pa.Array:
    """`InstantTime.padded` of a column of instant times."""
    short = pc.equal(pc.binary_length(times), 14)
    if not pc.any(short).as_py():
        return times
    padded: pa.Array = pc.if_else(short, pc.binary_join_element_wise(times, "999", ""), times)
    return padded


def read_slice(
    storage: Storage,
    context: ReadContext,
    file_slice: FileSlice,
    schema: pa.Schema,
    *,
    span: InstantRange | None = None,
    whole: WholeSlice | None = None,
    key_filter: SoughtKeys | None = None,
) -> Iterator[pa.RecordBatch]:
    """Merged rows of a slice with the columns of `schema`; the context's filter is the caller's to apply.

    `key_filter`: rows with other keys need not be among them.

    With a `span` (then `schema` has the commit time) stored rows that were committed outside of it do not take part in
    the merge: a late row that lost against one is pulled, as Apache Hudi does.
    Where log records of the span have some columns only, rows are made of the `whole` slice: rows of other commits are
    among them then. (Apache Hudi 1.2.0 fails: golden table v9_partial_updates.)
    """
    if not file_slice.logs:
        if file_slice.base is not None:
            yield from read_base_file(
                storage,
                file_slice.base,
                schema,
                history=context.history,
                unstored=context.unstored,
                key_filter=key_filter,
            )
        return
    columns = merge_columns(schema, context.rule, context.schema)
    keys = None if key_filter is None else key_filter.keys
    logs = log_records(storage, context, file_slice, columns, keys)
    if logs.present is not None and whole is not None:
        file_slice, span = whole.slice, None
        logs = log_records(storage, replace(context, visible=whole.visible), file_slice, columns, keys)
    merge = SliceMerge(logs, context.rule, span)
    for batch in _merged(storage, context, file_slice, columns, merge, key_filter):
        yield batch if columns.names == schema.names else batch.select(schema.names)


def _merged(
    storage: Storage,
    context: ReadContext,
    file_slice: FileSlice,
    schema: pa.Schema,
    merge: SliceMerge,
    key_filter: SoughtKeys | None,
) -> Iterator[pa.RecordBatch]:
    base = file_slice.base
    if base is not None:
        for batch in read_base_file(
            storage,
            base,
            schema,
            batch_rows=merge.batch_rows,
            history=context.history,
            unstored=context.unstored,
            key_filter=key_filter,
        ):
            yield from merge.replaced(batch)
    yield from merge.fresh()


def log_records(
    storage: Storage, context: ReadContext, file_slice: FileSlice, schema: pa.Schema, keys: pa.Array | None = None
) -> LogRecords:
    return read_log_records(
        storage,
        file_slice,
        schema,
        rule=context.rule,
        visible=context.visible,
        history=context.history,
        unstored=context.unstored,
        keys=keys,
    )


def merge_columns(schema: pa.Schema, rule: MergeRule, full: pa.Schema) -> pa.Schema:
    """The schema plus what merging looks at: the record key and the ordering fields."""
    extra = [RECORD_KEY, *(name for name in rule.ordering_columns if name in full.names)]
    missing = [full.field(name) for name in extra if name not in schema.names]
    return pa.schema([*schema, *missing])


class SliceMerge:
    """The rows of a base file stream past the reduced log records: `replaced` for each batch, at the end `fresh`."""

    def __init__(self, logs: LogRecords, rule: MergeRule, span: InstantRange | None = None) -> None:
        self._logs, self._rule, self._span = logs, rule, span
        is_delete = np.arange(len(logs.keys)) >= logs.live
        self._newer = Newer(logs.keys, logs.data, logs.ordering, is_delete, logs.commit_time_deletes, logs.present)
        self._is_stored = np.zeros(len(logs.keys), dtype=bool)

    @property
    def deletes(self) -> bool:
        """Whether stored rows may be gone afterwards."""
        return bool(self._newer.is_delete.any())

    @property
    def batch_rows(self) -> int:
        """Each batch rebuilds a hash table of the log keys, so batches grow with them."""
        return int(min(MAX_BATCH_ROWS, max(MIN_BATCH_ROWS, 2 * len(self._logs.keys))))

    def replaced(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows of the batch that stay, then the merged ones."""
        merge = merge_with_stored(keep_rows(batch, None, self._span), self._newer, self._rule, self._is_stored)
        self._is_stored[merge.first_matches] = True
        yield merge.unchanged
        yield from in_few_batches(merge.merged)

    def fresh(self) -> Iterator[pa.RecordBatch]:
        """Records whose keys no batch had."""
        new = np.flatnonzero(~self._is_stored[: self._logs.live])
        if len(new):
            data = self._logs.data
            inserted = data if len(new) == self._logs.live else rows_at(data, new)
            yield from in_few_batches(inserted)


class StoredRows(Protocol):
    """A Parquet file with rows of the table: a base file, or one that holds such rows once more."""

    @property
    def path(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def instant(self) -> str: ...


def read_base_file(
    storage: Storage,
    base: StoredRows,
    schema: pa.Schema,
    *,
    batch_rows: int = MIN_BATCH_ROWS,
    history: ColumnHistory | None = None,
    unstored: UnstoredColumns | None = None,
    key_filter: SoughtKeys | None = None,
) -> Iterator[pa.RecordBatch]:
    """Rows of a base file, conformed to the schema: columns that the file lacks are null. `key_filter`: rows with other keys may be
    missing.

    Raises:
        CorruptFileError: the file is missing, truncated or does not decode.
    """
    if key_filter is not None and history is None and unstored is None:
        for _, batch in read_sought_rows(storage, base, schema, key_filter, batch_rows=batch_rows):
            yield batch
        return
    renames = None if history is None else renames_for(history, base.instant, path=base.path)
    where = f"{base.path} of table {storage.uri}"
    uri = base.source_uri if isinstance(base, BaseFile) else None
    columns_of = where if uri is None else f"{uri}{HAS_COLUMNS}{where}"
    stored = schema if unstored is None else unstored.decoded(schema)
    names = stored.names if renames is None else renames.sources(stored.names)
    with open_base_file(storage, base) as (file, _):
        for batch in stored_batches(storage, file, base, stored, names, batch_rows=batch_rows, path=where):
            rows = conform(batch if renames is None else renames.apply(batch), stored, path=columns_of)
            yield rows if unstored is None else unstored.completed(rows, schema, base.path)


def stored_batches(
    storage: Storage,
    file: pq.ParquetFile,
    base: StoredRows,
    schema: pa.Schema,
    names: Sequence[str],
    *,
    batch_rows: int,
    path: str,
) -> Iterator[pa.RecordBatch]:
    """`base_batches` of a file that was opened; of a skeleton with the columns of the schema that its source has."""
    source = base.source if isinstance(base, BaseFile) else None
    if source is None:
        return base_batches(file, names, size_bytes=base.size_bytes, batch_rows=batch_rows, path=path)
    folder, read = folder_of(base.path), partial(base_batches, batch_rows=batch_rows)
    return skeleton_batches(storage, file, source, names, schema, folder, read=read, path=path)


def read_sought_rows(
    storage: Storage, base: StoredRows, schema: pa.Schema, key_filter: SoughtKeys, *, batch_rows: int = MIN_BATCH_ROWS
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """The numbers of the rows of a base file that have one of the keys, and these rows; of files that do not store keys all rows.

    Raises:
        CorruptFileError: as `read_base_file`.
    """
    path = f"{base.path} of table {storage.uri}"
    is_stored = not (isinstance(base, BaseFile) and base.source)
    places = None if key_filter.places is None else key_filter.places.get(base.path)
    there = None if key_filter.rows is None else key_filter.rows.get(base.path)
    known = None if places is None else places.known
    base_file = open_base_file(storage, base, encode=schema.names, known=known)
    with base_file as (file, _):
        if is_stored and can_seek(file):
            data = base_file.data()
            pages = None
            if data is not None:
                pages = hoodie.format.parquet_pages.PageReader(file, data, path=path, known=known)

            def read(names: Sequence[str], group: int) -> Iterator[pa.RecordBatch]:
                return base_batches(
                    file, names, size_bytes=base.size_bytes, batch_rows=batch_rows, path=path, group=group
                )

            for numbers, batch in sought_rows(
                file, schema.names, key_filter, read, path=path, pages=pages, places=places, there=there
            ):
                yield numbers, conform(batch, schema, path=path)
            return
    begin = 0
    for batch in read_base_file(storage, base, schema, batch_rows=batch_rows):
        yield np.arange(begin, begin + batch.num_rows), batch
        begin += batch.num_rows


def base_batches(
    file: pq.ParquetFile,
    names: Sequence[str],
    *,
    size_bytes: int,
    batch_rows: int,
    path: str,
    group: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Those of the columns that a base file has, in batches of about so many rows, fewer where these are large."""
    present = set(file.schema_arrow.names)
    columns = [name for name in names if name in present]
    large = size_bytes > MAPPED_BYTES
    most_bytes = BATCH_BYTES // 4 if large else BATCH_BYTES
    batch_rows = min(batch_rows, MAX_BATCH_ROWS)
    # To look at each column takes long where there are many, so it is done only where a batch may be too large.
    if batch_rows * row_bytes(file, path=path) > most_bytes:
        batch_rows = min(batch_rows, max(_FEWEST_ROWS, int(most_bytes / row_bytes(file, columns, path=path))))
    yield from read_batches(file, columns, batch_rows=batch_rows, path=path, threads=not large, group=group)


def with_encoded(schema: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """The schema with the types of those text columns that `stored` has as dictionary arrays."""
    fields = []
    for field in schema:
        at = stored.get_field_index(field.name)
        kind = stored.field(at).type if at >= 0 else field.type
        encoded = pa.types.is_dictionary(kind) and pa.types.is_string(field.type)
        fields.append(field.with_type(kind) if encoded else field)
    return pa.schema(fields)


def open_input(storage: Storage, base: StoredRows) -> pa.NativeFile:
    """The bytes of a base file.

    Raises:
        CorruptFileError: it is missing, or cannot be opened.
    """
    try:
        return storage.open_input(base.path, mapped=base.size_bytes <= MAPPED_BYTES)
    except FileNotFoundError as exc:
        raise missing_file_error(storage, base.path) from exc
    except (pa.ArrowInvalid, OSError) as exc:
        if is_of_storage(exc):
            raise
        where = f"{base.path} of table {storage.uri}"
        raise CorruptFileError(f"{where} cannot be opened: {exc}; restore the file from a copy") from exc


def in_memory(source: pa.NativeFile) -> memoryview | None:
    """All of what was opened, if it is in memory or mapped."""
    if not isinstance(source, (pa.MemoryMappedFile, pa.BufferReader)):
        return None
    source.seek(0)
    return memoryview(source.read_buffer()).cast("B")


class open_base_file:
    """`with open_base_file(storage, base) as (parquet_file, footer_metadata)`; foreign errors are translated.

    The text of the bloom filter may be empty in the metadata, unless `whole`; `footer` has it.
    """

    def __init__(
        self,
        storage: Storage,
        base: StoredRows,
        *,
        encode: Collection[str] = (),
        whole: bool = False,
        known: KnownPlaces | None = None,
    ) -> None:
        self._encode = encode
        self._known = known or KnownPlaces()
        self._is_whole = whole
        self._bloom_base64: bytes | None = None
        self._folder = base.partition_path if isinstance(base, BaseFile) else None
        self._where = f"{base.path} of table {storage.uri}"
        self._input = open_input(storage, base)

    def data(self) -> memoryview | None:
        """All of the file, if it is in memory or mapped."""
        return in_memory(self._input)

    def footer(self, metadata: pq.FileMetaData) -> BaseFileFooter:
        """What the metadata says, with the bloom filter."""
        return read_footer(metadata, path=self._where, bloom_base64=self._bloom_base64)

    def __enter__(self) -> tuple[pq.ParquetFile, pq.FileMetaData]:
        try:
            metadata = self._known.metadata
            data = None if self._is_whole or metadata is not None else self.data()
            parted = None if data is None else parted_footer(data)
            if parted is not None:
                metadata, self._bloom_base64 = parted
            file = open_parquet(self._input, path=self._where, encode=self._encode, metadata=metadata)
            if data is not None and file.metadata.serialized_size <= _KEPT_FOOTER_BYTES:
                self._known.metadata = file.metadata
            check_meta_columns(file, path=self._where, folder=self._folder)
        except CorruptFileError:
            self._input.close()
            raise
        return file, file.metadata

    def __exit__(self, *_: object) -> None:
        self._input.close()
