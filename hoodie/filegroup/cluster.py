"""Tasks of a clustering: sort rows of several file slices into base files of new file groups.

Rows keep their keys, commit times and sequence numbers. Few rows are sorted in memory. Of many a sample says first where to cut
their order into ranges; each slice is then laid down by range, and each range sorted by itself: so files that follow each other
do not overlap, however large a partition is, and no worker holds more than a range.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.filegroup.base_writer import one_encoding
from hoodie.filegroup.column_names import renames_for
from hoodie.filegroup.conform import conform
from hoodie.filegroup.new_base_file import NewBaseFile, base_result, new_attempt
from hoodie.filegroup.rewrite import read_for_rewrite
from hoodie.filegroup.row_order import range_of_each, sorted_places
from hoodie.filegroup.run import encodable, room_of
from hoodie.filegroup.slice_reader import open_base_file, stored_batches
from hoodie.filegroup.staging import open_staged
from hoodie.format.parquet_file import read_batches
from hoodie.hashes.of_buckets import ring_hashes
from hoodie.model.arrow_bytes import in_one_chunk, pieces_of, rows_bytes
from hoodie.model.buckets import places_on
from hoodie.model.clustering import ClusterTask, JoinTask, NewBuckets, Order, Pieces, Sample, SampleTask, SplitTask
from hoodie.model.files import FileSlice
from hoodie.model.meta_fields import FILE_NAME, RECORD_KEY
from hoodie.model.names import join, new_file_id
from hoodie.model.plans import WriteContext, WriteResult
from hoodie.storage.base import Storage

ARROW_BYTES = 5
"""In memory, of a byte in a base file: about."""
_PIECE_BYTES = 64 * 1024 * 1024
"""Arrow bytes that are taken out of sorted rows, or collected before they are laid down, at once."""
_SAMPLED_ROWS = 1 << 17
"""Looked at together for a sample."""
_SAMPLED_CHARACTERS = 1024
_FIRST_ROWS = 64
_new_ipc_file: Any = pa.ipc.new_file
"""Takes any binary file object; its stubs know Python's own classes only."""


def sorted_bytes_of(context: WriteContext) -> int:
    """Bytes of files whose rows a task sorts in memory, where they are about five times as large."""
    most = context.tuning.sorted_bytes
    return most if context.memory_bytes is None else max(1, min(most, context.memory_bytes // ARROW_BYTES))


def run_cluster(storage: Storage, context: WriteContext, task: ClusterTask) -> list[WriteResult] | None:
    """The new base files of the task's slices. None: the rows are far larger than their files, and have to be cut into ranges;
    nothing was written.
    """
    if task.order is None:
        total = sum(_row_count(storage, file_slice) for file_slice in task.slices)
        batches = (
            rows for file_slice in task.slices for rows in _rows(storage, context, file_slice, None, task.buckets)
        )
        return _written(storage, context, task, batches, total)
    tables: list[pa.Table] = []
    room = 2 * ARROW_BYTES * sorted_bytes_of(context)
    all_batches = (
        b for file_slice in task.slices for b in _rows(storage, context, file_slice, task.order, task.buckets)
    )
    for batch in all_batches:
        room -= batch.nbytes
        if room < 0 and not task.at_any_size:
            return None
        if batch.num_rows:
            tables.append(pa.Table.from_batches([batch]))
    total = sum(table.num_rows for table in tables)
    return _written(storage, context, task, _in_order(tables, task.order, _piece_bytes(context)), total)


def run_sample(storage: Storage, context: WriteContext, task: SampleTask) -> Sample:
    """How many bytes the rows of the base file take in memory, about; and so many of them, of the columns of the order."""
    base, names = task.slice.base, list(task.order.columns)
    if base is None:
        return Sample(0, None)
    where = f"{base.path} of table {storage.uri}"
    renames = None if context.history is None else renames_for(context.history, base.instant, path=base.path)
    stored = names if renames is None else renames.sources(names)
    with open_base_file(storage, base) as (file, metadata):
        count = metadata.num_rows
        size = count * _first_row_bytes(file, path=where) * base.rows_bytes // base.size_bytes
        if base.source is None and not set(stored) & set(file.schema_arrow.names):
            return Sample(size, None)  # columns that came later: they are null here, and come last anyway
        full = context.full_schema
        schema = pa.schema([pa.field(name, full.field(name).type) for name in names])
        # By chance, for rows may come in periods; the same of a file each time.
        chance = np.random.default_rng(zlib.crc32(base.file_id.encode()))
        chosen = np.sort(chance.choice(count, min(count, task.rows), replace=False))
        samples = []
        before = 0
        for batch in stored_batches(storage, file, base, schema, stored, batch_rows=_SAMPLED_ROWS, path=where):
            first, end = np.searchsorted(chosen, (before, before + batch.num_rows))
            fitted = conform(batch if renames is None else renames.apply(batch), schema, path=where)
            samples.append(_cut_texts(fitted.take(pa.array(chosen[first:end] - before))))
            before += batch.num_rows
    return Sample(size, pa.Table.from_batches(samples, schema).combine_chunks())


def _first_row_bytes(file: pq.ParquetFile, *, path: str) -> int:
    """Bytes of a row in memory, going by the first ones: the footer does not say how often its dictionaries are used."""
    batches = read_batches(file, file.schema_arrow.names, batch_rows=_FIRST_ROWS, path=path)
    first = next(iter(batches), None)
    return 0 if first is None or not first.num_rows else -(-rows_bytes(first) // first.num_rows)


def _cut_texts(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Beginnings of long texts: as bounds of ranges these do as well."""
    columns = []
    for column in rows.columns:
        if pa.types.is_string(column.type):
            column = pc.utf8_slice_codeunits(column, 0, _SAMPLED_CHARACTERS)
        elif pa.types.is_binary(column.type):
            column = pc.binary_slice(column, 0, _SAMPLED_CHARACTERS)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def run_split(storage: Storage, context: WriteContext, task: SplitTask) -> Pieces:
    """Lay the rows of a slice down by range."""
    path = join(context.staging, f"{task.name}-{new_attempt()}.arrow")
    ranges: list[int] = []
    tables: dict[int, list[pa.Table]] = {}
    size, piece_bytes = 0, _piece_bytes(context)
    schema = _schema(context)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        open_staged(storage, path, folder=context.staging) as sink,
        _new_ipc_file(sink, schema, options=options) as writer,
    ):

        def flush() -> None:
            for number in sorted(tables):
                for batch in pa.concat_tables(tables[number]).combine_chunks().to_batches():
                    writer.write_batch(batch)
                    ranges.append(number)
            tables.clear()

        whole = _rows(storage, context, task.slice, task.cuts.order, encode=False)
        for rows in (piece for batch in whole for piece in pieces_of(batch, piece_bytes)):
            table = pa.Table.from_batches([rows])
            for number, piece in _by_range(table, range_of_each(table, task.cuts)):
                tables.setdefault(number, []).append(piece)
            size += table.nbytes
            if size >= piece_bytes:
                flush()
                size = 0
        flush()
    return Pieces(path, tuple(ranges))


def run_join(storage: Storage, context: WriteContext, task: JoinTask) -> list[WriteResult]:
    """One file of ranges that follow each other; none where they have no rows."""
    writer: NewBaseFile | None = None
    with ExitStack() as at_work:
        for number in task.ranges:
            tables = [table for pieces in task.pieces for table in _of_range(storage, pieces, number)]
            if not tables:
                continue
            if writer is None:
                more = sum(table.num_rows for table in tables) * len(task.ranges)
                new = _new_file(storage, context, task.number, task.partition_path, rows=more)
                writer = at_work.enter_context(new)
            for part in _in_order(tables, task.order, _piece_bytes(context)):
                writer.out.write(part)
    if writer is None:
        return []
    return [_result(writer)]


def _rows(
    storage: Storage,
    context: WriteContext,
    file_slice: FileSlice,
    order: Order | None,
    buckets: NewBuckets | None = None,
    *,
    encode: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Merged rows of a slice, without the file name, which the writer gives them."""
    reading = context.reading()
    looked_at = {*(order.columns if order else ()), *([RECORD_KEY] if buckets else ())}
    encoded = encodable(context, file_slice) - looked_at if encode else frozenset()
    room, schema = room_of(storage, context), _schema(context)
    for carried in read_for_rewrite(storage, reading, file_slice, schema, encode=encoded, room=room):
        # What was on disk in between does not know which columns have no nulls.
        fields = [field.with_type(column.type) for field, column in zip(schema, carried.rows.schema, strict=True)]
        yield pa.RecordBatch.from_arrays(carried.rows.columns, schema=pa.schema(fields))


def _schema(context: WriteContext) -> pa.Schema:
    full = context.full_schema
    return full.remove(full.get_field_index(FILE_NAME))


def _row_count(storage: Storage, file_slice: FileSlice) -> int:
    """About: of the base file, and of logs what was written to them where there is no base file."""
    if file_slice.base is None:
        return sum(count for log in file_slice.logs for _, count in log.committed_entries)
    with open_base_file(storage, file_slice.base) as (_, metadata):
        return int(metadata.num_rows)


def _piece_bytes(context: WriteContext) -> int:
    return _PIECE_BYTES if context.memory_bytes is None else min(_PIECE_BYTES, max(1, context.memory_bytes // 8))


def _in_order(tables: list[pa.Table], order: Order, piece_bytes: int) -> Iterator[pa.Table]:
    """The rows of all tables, sorted; the list is empty afterwards, so that they are not held twice."""
    if not tables:
        return
    together = one_encoding(tables)
    tables.clear()
    schema, rows = together.schema, in_one_chunk(together)
    del together
    places = sorted_places(rows, order)
    step = max(1, int(rows.num_rows * piece_bytes / max(1, rows.nbytes)))
    for start in range(0, len(places), step):
        for piece in pieces_of(rows.take(pa.array(places[start : start + step])), piece_bytes):
            yield conform(piece, schema, path="sorted rows")


def _written(
    storage: Storage,
    context: WriteContext,
    task: ClusterTask,
    parts: Iterator[pa.Table] | Iterator[pa.RecordBatch],
    total: int,
) -> list[WriteResult]:
    if task.buckets is None:
        return list(_files(storage, context, task, parts, total))
    return _bucket_files(storage, context, task, task.buckets, parts, total)


def _bucket_files(
    storage: Storage,
    context: WriteContext,
    task: ClusterTask,
    buckets: NewBuckets,
    parts: Iterator[pa.Table] | Iterator[pa.RecordBatch],
    total: int,
) -> list[WriteResult]:
    """A file for each bucket that gets rows, all of them open at once: there are two, or one."""
    nodes = sorted(buckets.nodes)
    values = np.array([node.value for node in nodes], dtype=np.uint32)
    writers: dict[int, NewBaseFile] = {}
    with ExitStack() as at_work:
        for part in parts:
            if not part.num_rows:
                continue
            table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
            places = places_on(values, ring_hashes(table.column(RECORD_KEY), buckets.fields))
            for place, rows in _by_range(table, places):
                if place not in writers:
                    new = _new_file(
                        storage,
                        context,
                        task.number,
                        task.partition_path,
                        rows=-(-total // len(nodes)),
                        file_id=nodes[place].file_id,
                    )
                    writers[place] = at_work.enter_context(new)
                writers[place].out.write(rows)
    return [_result(writer) for _, writer in sorted(writers.items())]


def _files(
    storage: Storage,
    context: WriteContext,
    task: ClusterTask,
    parts: Iterator[pa.Table] | Iterator[pa.RecordBatch],
    total: int,
) -> Iterator[WriteResult]:
    """The rows in the order in which they come, cut into files of as many rows."""
    each = max(1, -(-total // task.outputs))
    writer: NewBaseFile | None = None
    with ExitStack() as at_work:  # has the file that is being written; without an error its end is written, too
        for part in parts:
            at = 0
            while at < part.num_rows:
                if writer is None:
                    new = _new_file(storage, context, task.number, task.partition_path, rows=each)
                    writer = at_work.enter_context(new)
                piece = part.slice(at, each - writer.out.rows)
                writer.out.write(piece)
                at += piece.num_rows
                if writer.out.rows >= each:
                    full, writer = writer, None
                    at_work.close()
                    yield _result(full)
        at_work.close()
        if writer is not None:
            yield _result(writer)


def _new_file(
    storage: Storage, context: WriteContext, number: int, partition_path: str, *, rows: int, file_id: str = ""
) -> NewBaseFile:
    return NewBaseFile(
        storage,
        context,
        new_attempt(),
        number=number,
        partition_path=partition_path,
        file_id=file_id or new_file_id(),
        more_rows=rows,
    )


def _result(writer: NewBaseFile) -> WriteResult:
    # As Apache Hudi counts them: rows of a new file are inserts, whoever brought them once.
    return base_result(writer, "CREATE", None, num_writes=writer.out.rows, num_inserts=writer.out.rows)


def _by_range(rows: pa.Table, ranges: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    order = np.argsort(ranges, kind="stable")
    in_order = rows.take(pa.array(order))
    numbers, starts = np.unique(ranges[order], return_index=True)
    for number, start, end in zip(numbers.tolist(), starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        yield number, in_order.slice(start, end - start)


def _of_range(storage: Storage, pieces: Pieces, number: int) -> Iterator[pa.Table]:
    numbers = [at for at, each in enumerate(pieces.ranges) if each == number]
    if numbers:
        with storage.open_input(pieces.path) as source:
            file = pa.ipc.open_file(source)
            for at in numbers:
                yield pa.Table.from_batches([file.get_batch(at)])
