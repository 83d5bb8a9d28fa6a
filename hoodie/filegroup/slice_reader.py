"""One file slice -> record batches: base file merged with its logs, projected and filtered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError
from hoodie.filegroup.conform import conform
from hoodie.filegroup.log_scan import LogRecords, read_log_records
from hoodie.filegroup.merge import beats_stored, positions_in
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.instant import InstantRange, VisibleInstants, sort_key
from hoodie.model.meta_fields import COMMIT_TIME, RECORD_KEY
from hoodie.model.plans import MergeRule, ReadContext, ReadTask, RowFilter
from hoodie.storage.base import Storage

MIN_BATCH_ROWS = 64 * 1024
MAX_BATCH_ROWS = 1024 * 1024


def read_task(storage: Storage, context: ReadContext, task: ReadTask) -> Iterator[pa.RecordBatch]:
    """Batches with exactly `task.columns` of `context.schema`."""
    output = pa.schema([context.schema.field(name) for name in task.columns])
    extra = [*(context.filter.columns if context.filter else ()), *((COMMIT_TIME,) if task.span else ())]
    needed = tuple(dict.fromkeys([*task.columns, *extra]))
    schema = pa.schema([context.schema.field(name) for name in needed])
    batches = read_slice(
        storage, task.slice, schema, rule=context.rule, visible=context.visible, full=context.schema, span=task.span
    )
    for batch in batches:
        kept = keep_rows(batch, context.filter, task.span)
        if kept.num_rows:
            yield kept if needed == task.columns else kept.select(output.names)


def keep_rows(batch: pa.RecordBatch, row_filter: RowFilter | None, span: InstantRange | None) -> pa.RecordBatch:
    """Rows that the filter accepts and that were committed in the span. Only for whole, merged rows."""
    if row_filter is not None:
        batch = batch.filter(row_filter.expression)
    if span is not None:
        times = _sort_keys(batch.column(COMMIT_TIME))
        keep = pa.array(np.ones(batch.num_rows, dtype=bool))
        if span.begin is not None:
            keep = pc.and_(keep, pc.greater(times, sort_key(span.begin)))
        if span.end is not None:
            keep = pc.and_(keep, pc.less_equal(times, sort_key(span.end)))
        batch = batch.filter(keep)
    return batch


def _sort_keys(times: pa.Array) -> pa.Array:
    """`sort_key` of a column of instant times."""
    short = pc.equal(pc.binary_length(times), 14)
    if not pc.any(short).as_py():
        return times
    padded: pa.Array = pc.if_else(short, pc.binary_join_element_wise(times, "999", ""), times)
    return padded


def read_slice(
    storage: Storage,
    piece: FileSlice,
    schema: pa.Schema,
    *,
    rule: MergeRule,
    visible: VisibleInstants,
    full: pa.Schema,
    span: InstantRange | None = None,
) -> Iterator[pa.RecordBatch]:
    """Merged rows of a slice with the columns of `schema`; `full` is the table's schema with meta columns.

    With a `span` (then `schema` has the commit time) stored rows that were committed outside of it do not take part in
    the merge: a late row that lost against one is pulled, as Apache Hudi does.
    """
    if not piece.logs:
        if piece.base is not None:
            yield from read_base_file(storage, piece.base, schema)
        return
    wanted = merge_columns(schema, rule, full)
    logs = read_log_records(storage, piece, wanted, rule=rule, visible=visible)
    for batch in merge_with_base(storage, piece.base, logs, wanted, rule=rule, span=span):
        yield batch if wanted.names == schema.names else batch.select(schema.names)


def merge_columns(schema: pa.Schema, rule: MergeRule, full: pa.Schema) -> pa.Schema:
    """The schema plus what merging looks at: the record key and the ordering field."""
    extra = [RECORD_KEY, *([rule.ordering_field] if rule.ordering_field in full.names else [])]
    missing = [full.field(name) for name in extra if name not in schema.names]
    return pa.schema([*schema, *missing])


def merge_with_base(
    storage: Storage,
    base: BaseFile | None,
    logs: LogRecords,
    schema: pa.Schema,
    *,
    rule: MergeRule,
    span: InstantRange | None = None,
) -> Iterator[pa.RecordBatch]:
    """Stream the base file past the reduced log records: kept rows, then the winners, batch by batch; new keys last."""
    met = np.zeros(len(logs.keys), dtype=bool)
    if base is not None:
        # Each batch rebuilds a hash table of the log keys, so batches grow with them.
        rows = int(min(MAX_BATCH_ROWS, max(MIN_BATCH_ROWS, 2 * len(logs.keys))))
        for batch in read_base_file(storage, base, schema, batch_rows=rows):
            yield from _merge_batch(keep_rows(batch, None, span), logs, met, rule)
    fresh = np.flatnonzero(~met[: logs.live])
    if len(fresh):
        inserted = logs.data if len(fresh) == logs.live else logs.data.take(pa.array(fresh))
        yield from inserted.combine_chunks().to_batches()


def _merge_batch(batch: pa.RecordBatch, logs: LogRecords, met: np.ndarray, rule: MergeRule) -> Iterator[pa.RecordBatch]:
    at = positions_in(batch.column(RECORD_KEY), logs.keys)
    rows = np.flatnonzero(at >= 0)
    if not len(rows):
        yield batch
        return
    entries = at[rows]
    met[entries] = True
    ordering = stored = None
    if logs.ordering is not None and rule.ordering_field is not None:
        ordering = logs.ordering.take(pa.array(entries))
        stored = batch.column(rule.ordering_field).take(pa.array(rows))
        wins = beats_stored(ordering, logs.commit_time_deletes[entries], stored, rule)
    else:
        wins = np.ones(len(rows), dtype=bool)
    keep = np.ones(batch.num_rows, dtype=bool)
    keep[rows[wins]] = False
    yield batch.filter(pa.array(keep))
    winners = entries[wins]
    winners = winners[winners < logs.live]
    if len(winners):
        yield from logs.data.take(pa.array(winners)).combine_chunks().to_batches()


def read_base_file(
    storage: Storage, base: BaseFile, schema: pa.Schema, *, batch_rows: int = MIN_BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Rows of a base file, conformed to the schema: columns that the file lacks are null.

    Raises:
        CorruptFileError: the file is missing, truncated or does not decode.
    """
    where = f"{base.path} of table {storage.uri}"
    with open_base_file(storage, base) as (file, _):
        present = set(file.schema_arrow.names)
        columns = [name for name in schema.names if name in present]
        try:
            for batch in _batches(file, columns, batch_rows):
                yield conform(batch, schema, path=where)
        except (pa.ArrowInvalid, OSError) as exc:
            raise CorruptFileError(f"{where} does not decode: {exc}; restore the file from a copy") from exc


def _batches(file: pq.ParquetFile, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    if columns:
        yield from file.iter_batches(batch_size=batch_rows, columns=list(columns))
        return
    # Nothing of this file is asked for but its number of rows (all columns were added later).
    for start in range(0, file.metadata.num_rows, batch_rows):
        count = min(batch_rows, file.metadata.num_rows - start)
        rows: Any = pa.array([{}] * count, pa.struct([]))
        yield pa.RecordBatch.from_struct_array(rows)


class open_base_file:
    """`with open_base_file(storage, base) as (parquet_file, footer_metadata)`; foreign errors are translated."""

    def __init__(self, storage: Storage, base: BaseFile) -> None:
        self._where = f"{base.path} of table {storage.uri}"
        try:
            self._input = storage.open_input(base.path)
        except FileNotFoundError as exc:
            raise CorruptFileError(
                f"{self._where} is gone: it was removed while it was still needed; run the operation again"
            ) from exc
        except (pa.ArrowInvalid, OSError) as exc:
            raise CorruptFileError(f"{self._where} cannot be opened: {exc}") from exc

    def __enter__(self) -> tuple[pq.ParquetFile, pq.FileMetaData]:
        try:
            file = pq.ParquetFile(self._input)
        except (pa.ArrowInvalid, OSError) as exc:
            self._input.close()
            raise CorruptFileError(
                f"{self._where} is no whole Parquet file ({exc}); restore the file from a copy"
            ) from exc
        return file, file.metadata

    def __exit__(self, *_: object) -> None:
        self._input.close()
