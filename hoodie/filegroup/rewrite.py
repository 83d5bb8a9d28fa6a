"""Rows of a file slice on their way into the next base file of their group: for compaction and copy-on-write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from hoodie.filegroup.column_names import renames_for
from hoodie.filegroup.conform import conform
from hoodie.filegroup.log_entries import BoundedEntries
from hoodie.filegroup.log_scan import collect
from hoodie.filegroup.slice_reader import (
    MIN_BATCH_ROWS,
    SliceMerge,
    log_records,
    merge_columns,
    open_base_file,
    stored_batches,
    with_encoded,
)
from hoodie.filegroup.spill import KeySet, SpilledRows
from hoodie.filegroup.unused_memory import release_unused_memory
from hoodie.format.base_file import BaseFileFooter
from hoodie.format.parquet_file import plain_columns, row_bytes
from hoodie.hashes.of_keys import key_hash
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import ReadContext, Room
from hoodie.storage.base import Storage

REWRITE_BYTES = 16 * 1024 * 1024
"""Bytes of a base file's batches: large, for each costs a look at the newer records' keys."""


class MergedRows(NamedTuple):
    """Merged rows, and what the writer of the next base file wants to know of the one before."""

    rows: pa.RecordBatch
    before: BaseFileFooter | None = None
    """With the first batch the footer of the base file; later None, so that a large file's filter is not held until the end."""
    plain: Collection[str] = ()
    """Leaf paths of the columns that have no dictionary in it."""
    new: bool = False
    """The rows have keys that the base file has not."""
    sheds: bool = False
    """With the first batch: rows of the base file may be gone."""


def read_for_rewrite(
    storage: Storage,
    context: ReadContext,
    file_slice: FileSlice,
    schema: pa.Schema,
    *,
    encode: Collection[str] = (),
    room: Room | None = None,
) -> Iterator[MergedRows]:
    """Merged rows of a slice with the columns of `schema`, as `slice_reader.read_slice` has them.

    Args:
        encode: columns that may come as dictionary arrays: those whose values nobody looks at on the way.
        room: what may be held in memory, however large the logs are; None: all of them.
    """
    if not file_slice.logs:
        yield from _merged(storage, context, file_slice.base, schema, None, encode, _batch_bytes(room))
        return
    columns = merge_columns(schema, context.rule, context.schema)
    if room is None:
        merge = SliceMerge(log_records(storage, context, file_slice, columns), context.rule)
        pieces = _merged(storage, context, file_slice.base, columns, merge, encode)
    else:
        pieces = _merged_within(storage, context, file_slice, columns, encode, room)
    for carried in pieces:
        yield carried if columns.names == schema.names else carried._replace(rows=carried.rows.select(schema.names))


def _batch_bytes(room: Room | None) -> int:
    return REWRITE_BYTES if room is None else min(REWRITE_BYTES, max(1, room.memory_bytes // 16))


def _merged(
    storage: Storage,
    context: ReadContext,
    base: BaseFile | None,
    schema: pa.Schema,
    merge: SliceMerge | None,
    encode: Collection[str],
    batch_bytes: int = REWRITE_BYTES,
) -> Iterator[MergedRows]:
    if base is not None:
        at_least = MIN_BATCH_ROWS if merge is None else merge.batch_rows
        if batch_bytes < REWRITE_BYTES:
            at_least = 1
        for whole, before, plain, *_ in _stored(storage, context, base, schema, encode, batch_bytes, at_least):
            for part in (whole,) if merge is None else merge.replaced(whole):
                yield MergedRows(part, before, plain, sheds=merge is not None and merge.deletes)
                before = None
    if merge is not None:
        for part in merge.fresh():
            yield MergedRows(part, new=True)


def _stored(
    storage: Storage,
    context: ReadContext,
    base: BaseFile,
    schema: pa.Schema,
    encode: Collection[str],
    batch_bytes: int,
    at_least: int,
) -> Iterator[MergedRows]:
    """The rows of a base file as they are."""
    where = f"{base.path} of table {storage.uri}"
    unstored, history = context.unstored, context.history
    renames = None if history is None else renames_for(history, base.instant, path=base.path)
    opened = open_base_file(storage, base, encode=encode)
    with opened as (file, metadata):
        before: BaseFileFooter | None = opened.footer(metadata)
        plain = plain_columns(metadata)
        stored = with_encoded(schema if unstored is None else unstored.decoded(schema), file.schema_arrow)
        rows = max(at_least, int(batch_bytes / row_bytes(file, path=where)))
        names = stored.names if renames is None else renames.sources(stored.names)
        for batch in stored_batches(storage, file, base, stored, names, batch_rows=rows, path=where):
            fitted = conform(batch if renames is None else renames.apply(batch), stored, path=where)
            yield MergedRows(
                fitted if unstored is None else unstored.completed(fitted, schema, base.path), before, plain
            )
            before = None


def _merged_within(
    storage: Storage,
    context: ReadContext,
    file_slice: FileSlice,
    schema: pa.Schema,
    encode: Collection[str],
    room: Room,
) -> Iterator[MergedRows]:
    encoded_bytes = sum(log.size_bytes for log in file_slice.logs)
    batch_bytes = _batch_bytes(room)
    expected = sum(count for log in file_slice.logs for _, count in log.committed_entries)
    entries = BoundedEntries(
        schema, context.rule, room, expected=expected, history=context.history, unstored=context.unstored
    )
    with entries as logs:
        # What is small is read at once: several calls of the storage are made for a block else.
        piece_bytes = None if encoded_bytes <= room.memory_bytes // 8 else max(1, room.memory_bytes // 32)
        collect(storage, file_slice.logs, logs, visible=context.visible, piece_bytes=piece_bytes)
        logs.finished()
        if logs.keys_there is None:
            merge = SliceMerge(logs.reduced(), context.rule)
            logs.forget()
            yield from _merged(storage, context, file_slice.base, schema, merge, encode, batch_bytes)
        else:
            yield from _merged_by_parts(storage, file_slice.base, logs, logs.keys_there, context, batch_bytes, room)


def _merged_by_parts(
    storage: Storage,
    base: BaseFile | None,
    logs: BoundedEntries,
    keys_there: KeySet,
    context: ReadContext,
    batch_bytes: int,
    room: Room,
) -> Iterator[MergedRows]:
    """Stored rows that no log speaks of, as they come; then part by part the others, and what is new."""
    with SpilledRows(logs.schema, logs.parts, folder=room.folder) as waiting:
        # Not as dictionary arrays: a file of batches has one dictionary of each column.
        for rows, before, plain, *_ in (
            _stored(storage, context, base, logs.schema, (), batch_bytes, 1) if base is not None else ()
        ):
            hashes = key_hash(rows.column(RECORD_KEY))
            waits = keys_there.may_have(hashes)
            yield MergedRows(rows.filter(pa.array(~waits)), before, plain, sheds=True)
            waiting.add(pa.Table.from_batches([rows.filter(pa.array(waits))]), hashes[waits])
        for part in range(logs.parts):
            merge = SliceMerge(logs.of_part(part), context.rule)
            for batch in gathered(waiting.read(part), batch_bytes):
                for merged in merge.replaced(batch):
                    yield MergedRows(merged)
            for merged in merge.fresh():
                yield MergedRows(merged, new=True)
            del merge
            release_unused_memory()


def gathered(batches: Iterable[pa.RecordBatch], size_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batches as fewer ones of about this size: for each the keys of newer records are hashed."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= size_bytes:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, size = [], 0
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
