"""The functions that engines map over the tasks of a plan. Results are small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.change_log import ChangeLog, change_log_of, marker_of_logs
from hoodie.filegroup.changes import read_changes
from hoodie.filegroup.chunks import matched_rows, new_rows
from hoodie.filegroup.conform import as_given, conform
from hoodie.filegroup.deleted_rows import revives, still_stored, without_lost
from hoodie.filegroup.equal_texts import refuse_equal_texts
from hoodie.filegroup.fold import Entries, fold, folded_rows, usable_values
from hoodie.filegroup.log_writer import write_log_file
from hoodie.filegroup.merge import fills_by_event_time, latest_of_each, unconditional, within_batch
from hoodie.filegroup.merger import reduce_by_merger
from hoodie.filegroup.new_base_file import STAGE, NewBaseFile, avro_of, base_result, new_attempt
from hoodie.filegroup.ordering import bools, ordering_of
from hoodie.filegroup.partial import block_columns, completed_rows, filled, kept_columns, met_in_rewrite, require_whole
from hoodie.filegroup.picks import rows_at
from hoodie.filegroup.positions import Positions, by_place
from hoodie.filegroup.rewrite import REWRITE_BYTES, MergedRows, read_for_rewrite
from hoodie.filegroup.row_copies import copied_rows, write_row_copy
from hoodie.filegroup.slice_reader import read_task
from hoodie.filegroup.stored_merge import Newer, merge_with_stored
from hoodie.filegroup.unused_memory import release_maps
from hoodie.format.column_stats import ranges_of_rows
from hoodie.model.enums import RowCopies
from hoodie.model.files import FileSlice
from hoodie.model.instant import InstantTime
from hoodie.model.meta_fields import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
    without_meta_fields,
)
from hoodie.model.names import (
    LogFileName,
    WriteToken,
    format_log_file,
    join,
)
from hoodie.model.payloads import WriteStat
from hoodie.model.plans import (
    DELETED,
    PLACE,
    AppendTask,
    ChangeTask,
    CompactTask,
    CreateTask,
    MergeTask,
    ReadContext,
    ReadTask,
    Room,
    RowsTask,
    StagedFile,
    WriteContext,
    WriteResult,
    WriteTask,
)
from hoodie.model.statistics import ValueRange
from hoodie.storage.base import Storage


def run_read(storage: Storage, context: ReadContext, task: ReadTask | ChangeTask) -> Iterator[pa.RecordBatch]:
    """Rows of one file slice, or what one commit changed in a file group."""
    if isinstance(task, ChangeTask):
        return read_changes(storage, context, task)
    return read_task(storage, context, task)


def run_write(storage: Storage, context: WriteContext, task: WriteTask) -> WriteResult | None:
    """Write the task's file under a staging name. None when nothing is left to write (deletes of unknown keys only)."""
    attempt = new_attempt()
    try:
        match task:
            case AppendTask():
                return _append(storage, context, attempt, task)
            case MergeTask():
                return _merge(storage, context, attempt, task)
            case CreateTask():
                return _create(storage, context, attempt, task)
    finally:
        release_maps()  # rows of a batch that did not fit into memory


def run_compact(storage: Storage, context: WriteContext, task: CompactTask) -> WriteResult:
    """Merge a slice into a new base file. Rows keep their commit times and sequence numbers."""
    attempt = new_attempt()
    file_slice = task.slice
    with NewBaseFile(storage, context, attempt, number=task.number, file_slice=file_slice) as writer:
        for rows, before, plain, new, sheds in _carried(storage, context, file_slice):
            writer.out.write(rows, before=before, plain=plain, new=new, sheds=sheds)
    return base_result(
        writer,
        "MERGE",
        file_slice,
        num_writes=writer.out.rows,
        total_log_files_compacted=len(file_slice.logs),
        total_log_bytes_compacted=sum(log.size_bytes for log in file_slice.logs),
    )


def _append(storage: Storage, context: WriteContext, attempt: int, task: AppendTask) -> WriteResult | None:
    rows = _rows_of(storage, context, task, task.slice)
    if rows is None or not rows.num_rows:
        return None
    columns = block_columns(storage, context, task.slice, rows)
    if columns is None:
        rows = completed_rows(storage, context, task.slice, rows)
    live, deleted = (by_place(each, context) for each in split(rows))
    rows = stamp(live, context, task.number, file_name=task.file_id)
    if context.unstored is not None:
        rows = context.unstored.stored(rows)
    if columns is not None:
        rows = rows.select([*META_COLUMNS, *columns])
    return write_append(storage, context, attempt, task, LogRows(rows, live, deleted))


def stated_time(context: WriteContext) -> InstantTime | None:
    """The commit time that the rows of a write have, where they are stored with it."""
    return None if context.unstored is not None else context.instant


class LogRows(NamedTuple):
    """What goes into one log file."""

    stamped: pa.Table
    """With meta columns, as they are stored."""
    live: pa.Table
    """The same rows as prepared."""
    deleted: pa.Table
    content: bytes | None = None
    """Of the data block, where it is encoded already."""
    ranges: Mapping[str, ValueRange] | None = None
    """Bounds of their columns, where they are known."""
    copied: pa.Table | None = None
    """What a row copy has of them, where that is made already."""


def write_append(
    storage: Storage,
    context: WriteContext,
    attempt: int,
    task: AppendTask,
    rows: LogRows,
    later: list[tuple[str, bytes | memoryview]] | None = None,
) -> WriteResult:
    """Write the log file of a task; `later` as `write_log_file` takes it."""
    file_slice = task.slice
    token = str(WriteToken(task.number, STAGE, attempt))
    in_name = context.instant if context.own_logs else file_slice.base_instant
    names_slice = not context.own_logs or context.change_logs is not None  # readers of changes look it up in the commit
    name = format_log_file(LogFileName(task.file_id, in_name, task.log_version, token))
    final = join(task.partition_path, name)
    avro = avro_of(context)
    partial = rows.stamped.num_columns < len(avro["fields"])
    if partial:
        avro = {**avro, "fields": [each for each in avro["fields"] if each["name"] in rows.stamped.column_names]}
    is_new = file_slice.base is None and not file_slice.logs
    size = write_log_file(
        storage,
        context,
        name,
        avro=avro,
        data=rows.stamped,
        deletes=rows.deleted,
        content=rows.content,
        partial=partial,
        positions=Positions.of(context, file_slice, rows.live, rows.deleted),
        later=later,
    )
    stat = WriteStat(
        file_id=task.file_id,
        partition_path=task.partition_path,
        path=final,
        prev_commit=file_slice.base_instant if names_slice else in_name,
        num_writes=rows.live.num_rows,
        num_updates=0 if is_new else rows.live.num_rows,
        num_inserts=rows.live.num_rows if is_new else 0,
        num_deletes=rows.deleted.num_rows,
        total_bytes=size,
        file_size_bytes=size,
        log_version=task.log_version,
        base_file=file_slice.base.name if file_slice.base else "",
        log_files=(*(log.name for log in file_slice.logs), name) if names_slice else (name,),
    )
    result = WriteResult(
        stat,
        StagedFile(join(context.staging, name), final, marker_of_logs(context)),
        ranges_of_rows(rows.stamped, commit_time=stated_time(context)) if rows.ranges is None else rows.ranges,
        revives=bool(task.deletes) and revives(storage, context, file_slice, task.deletes, rows.live),
    )
    if context.row_copies is RowCopies.NONE or partial:
        return result
    copied = rows.copied
    if copied is None:
        copied = copied_rows(rows.stamped, rows.live, rows.deleted, context.rule)
    if context.row_copies is RowCopies.HELD:
        return replace(result, rows=copied)
    return replace(result, copy=write_row_copy(storage, context, 1 + task.number, [(stat, copied)], attempt=attempt))


def _merge(storage: Storage, context: WriteContext, attempt: int, task: MergeTask) -> WriteResult | None:
    file_slice = task.slice
    if file_slice.logs:  # in which rows of one key would be merged
        context = replace(context, combine=True)
    rows = _rows_of(storage, context, task, file_slice)
    if rows is None or not rows.num_rows:
        return None
    if not met_in_rewrite(context):
        rows, context = completed_rows(storage, context, file_slice, rows), replace(context, set_columns=None)
    incoming = _Incoming.of(without_lost(storage, context, file_slice, rows), context, task.number)
    with (
        NewBaseFile(
            storage, context, attempt, number=task.number, file_slice=file_slice, more_rows=rows.num_rows
        ) as writer,
        change_log_of(storage, context, writer.change_log) as incoming.changes,
    ):
        deletes = bool(incoming.newer.is_delete.any())
        for stored, before, plain, new, sheds in _carried(storage, context, file_slice):
            for batch in (stored,) if task.concat else incoming.replace_in(stored, context):
                writer.out.write(batch, before=before, plain=plain, new=new, sheds=sheds or deletes)
        inserted = incoming.unmet()
        require_whole(inserted, context)
        writer.out.write(inserted)
        if incoming.changes is not None:
            incoming.changes.inserted(inserted)
    result = base_result(
        writer,
        "MERGE",
        file_slice,
        num_writes=writer.out.rows,
        num_inserts=inserted.num_rows,
        num_updates=incoming.updated,
        num_deletes=incoming.deleted,
        changes=incoming.changes,
    )
    return replace(result, keys=writer.out.held_keys(context.held_key_bytes))


def _carried(storage: Storage, context: WriteContext, file_slice: FileSlice) -> Iterator[MergedRows]:
    """Rows of a slice for its next base file; without the file name, which the writer gives them."""
    full = context.full_schema
    schema = full.remove(full.get_field_index(FILE_NAME))
    reading = context.reading()
    room = room_of(storage, context)
    return read_for_rewrite(storage, reading, file_slice, schema, encode=encodable(context, file_slice), room=room)


def room_of(storage: Storage, context: WriteContext) -> Room | None:
    """What a task of a service may hold in memory, and where it puts what is more; None: there is no bound."""
    return None if context.memory_bytes is None else Room(context.memory_bytes, storage.can.local_path(context.staging))


def encodable(context: WriteContext, file_slice: FileSlice) -> frozenset[str]:
    """Columns that may stay dictionary arrays on the way."""
    rule = context.rule
    merges_values = rule.fill is not None or rule.merger is not None
    if merges_values or context.history is not None or context.change_logs is not None:
        return frozenset()  # every value may be looked at
    if file_slice.base is not None and file_slice.base.size_bytes < context.tuning.encoded_bytes:
        return frozenset()
    marker = (rule.delete_marker.field,) if rule.delete_marker is not None else ()
    made_of = context.unstored.looked_at if context.unstored is not None else ()
    looked_at = {RECORD_KEY, *rule.ordering_columns, *marker, *made_of}
    return frozenset(context.full_schema.names) - looked_at


def _create(storage: Storage, context: WriteContext, attempt: int, task: CreateTask) -> WriteResult | None:
    rows = _rows_of(storage, context, task, None)
    if rows is None:
        return None
    live, _ = split(completed_rows(storage, context, None, rows))
    if not live.num_rows:
        return None
    if context.sort_by_key:
        live = rows_at(live, pc.sort_indices(live.column(RECORD_KEY)).to_numpy())
    # Meta columns are nearly as large as the rows of a narrow table: a part at a time.
    parts = (stamp(part, context, task.number, file_name="", first=first) for first, part in _slices(live))
    return write_create(storage, context, attempt, task, parts)


def write_create(
    storage: Storage,
    context: WriteContext,
    attempt: int,
    task: CreateTask,
    stamped_rows: Iterable[pa.Table],
    chains: np.ndarray | None = None,
) -> WriteResult:
    """Write the base file of a task; `chains`: see `FooterKeys.add`."""
    with NewBaseFile(
        storage, context, attempt, number=task.number, partition_path=task.partition_path, file_id=task.file_id
    ) as writer:
        for part in stamped_rows:
            writer.out.write(part, chains=chains)
    out = writer.out
    keys = out.held_keys(context.held_key_bytes)
    return replace(base_result(writer, "CREATE", None, num_writes=out.rows, num_inserts=out.rows), keys=keys)


def _slices(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    step = max(1, int(rows.num_rows * REWRITE_BYTES / max(1, rows.nbytes)))
    for start in range(0, rows.num_rows, step):
        yield start, rows.slice(start, step)


def _rows_of(storage: Storage, context: WriteContext, task: RowsTask, file_slice: FileSlice | None) -> pa.Table | None:
    """The rows that the task writes, as the batch has them: those of its updates and its inserts; None when it has none."""
    matched, fresh = task_rows(storage, context, task)
    if context.key_texts is not None and (context.combine or matched):
        # Rows of an insert that are not combined meet nobody: they stand beside each other.
        stored_slice = file_slice if matched else None
        refuse_equal_texts(storage, context, [*matched, *fresh], task.partition_path, stored_slice)
    rows = combined([*matched, *fresh], context)
    if rows is None or file_slice is None or not context.only_stored:
        return rows
    return still_stored(storage, context, file_slice, rows)


def task_rows(storage: Storage, context: WriteContext, task: RowsTask) -> tuple[list[pa.Table], list[pa.Table]]:
    """(rows whose keys are stored, new ones), as prepared: a table for each chunk, in arrival order."""
    matched = matched_rows(
        storage,
        task.pieces,
        task.updates,
        places=isinstance(task, AppendTask) and takes_places(context),
        by_place=context.positions,
        share=task.share if isinstance(task, AppendTask) else 0,
        of=task.of if isinstance(task, AppendTask) else 1,
    )
    if task.inserts is None:
        return matched, []
    # A row's number in its chunk is what is known of a generated key before the instant is.
    return matched, new_rows(storage, task.inserts, key_prefix=context.instant if context.generates_keys else None)


def takes_places(context: WriteContext) -> bool:
    """Whether the places of stored rows are of use to whoever writes logs."""
    return context.positions or context.row_copies is not RowCopies.NONE


def combined(tables: Sequence[pa.Table], context: WriteContext) -> pa.Table | None:
    """The rows as one table; several of one key are reduced to the one that counts, where the write asks for that."""
    if not tables:
        return None
    rows = as_one(tables, context)
    if not context.combine:
        return rows
    if context.rule.merger is not None:
        return reduce_by_merger(rows, context.rule.merger)
    ordering, is_delete, always = deletes_of(rows, context, batch=True)
    rule = within_batch(context.rule)
    usable = usable_values(rows, rule)
    if not usable and not fills_by_event_time(context.rule):
        winners = latest_of_each(rows.column(RECORD_KEY), ordering, always, rule)
        return rows if len(winners) == rows.num_rows else rows_at(rows, winners)
    entries = Entries(
        keys=rows.column(RECORD_KEY),
        ordering=ordering,
        is_delete=is_delete,
        wins=always,
        yields=is_delete,
        block_deletes=None,
        row_of=np.arange(rows.num_rows),
    )
    folded = fold(entries, usable, rule)
    return rows if len(folded.rows) == rows.num_rows else folded_rows(rows, folded, np.arange(len(folded.rows)))


def as_one(tables: Sequence[pa.Table], context: WriteContext) -> pa.Table:
    """Rows of several chunks, with the columns that the table has now; only some of the chunks may have marks of deletes."""
    if any(table.schema != tables[0].schema for table in tables):
        marked = any(DELETED in table.column_names for table in tables)
        tables = [in_schema(_with_marks(table) if marked else table, context) for table in tables]
    return in_schema(pa.concat_tables(tables), context)


def _with_marks(rows: pa.Table) -> pa.Table:
    if DELETED in rows.column_names:
        return rows
    return rows.append_column(pa.field(DELETED, pa.bool_()), pa.repeat(pa.scalar(False), rows.num_rows))


def in_schema(rows: pa.Table, context: WriteContext) -> pa.Table:
    """The rows with the columns that the table has now; it may have got more, or wider ones, since they were prepared."""
    prepared = (RECORD_KEY, PARTITION_PATH, DELETED, PLACE)
    fields = [rows.schema.field(name) for name in prepared if name in rows.column_names]
    fields += [field.with_nullable(True) for field in without_meta_fields(context.schema)]
    return conform(rows, pa.schema(fields), path=f"the batch for table {context.table_name!r}", leaf=as_given)


def deletes_of(
    rows: pa.Table, context: WriteContext, *, batch: bool = False
) -> tuple[pa.Array | None, np.ndarray, np.ndarray]:
    """The ordering column, which rows are deletes, and which of these win whatever they meet."""
    ordering = ordering_of(rows, context.rule)
    if DELETED not in rows.column_names:
        none = np.zeros(rows.num_rows, dtype=bool)
        return ordering, none, none
    deleted = bools(rows.column(DELETED))
    return ordering, deleted, unconditional(deleted, ordering, within_batch(context.rule) if batch else context.rule)


def split(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(rows to store, rows to delete)"""
    if DELETED not in rows.column_names:
        return rows, rows.slice(0, 0)
    deleted = rows.column(DELETED)
    return rows.filter(pc.invert(deleted)), rows.filter(deleted)


def stamp(rows: pa.Table, context: WriteContext, number: int, *, file_name: str, first: int = 0) -> pa.Table:
    """The rows with meta columns and in the table's schema; `first` counts the rows before them that have this number."""
    count = rows.num_rows
    prefixes = pa.repeat(pa.scalar(f"{context.instant}_{number}"), count)
    return stamped(rows, context, prefixes, np.arange(first, first + count), pa.repeat(pa.scalar(file_name), count))


def stamped(
    rows: pa.Table, context: WriteContext, prefixes: pa.Array, numbers: np.ndarray, file_names: pa.Array
) -> pa.Table:
    """The rows with meta columns; a sequence number is a prefix and a number."""
    meta = {
        COMMIT_TIME: pa.repeat(pa.scalar(context.instant), rows.num_rows),
        COMMIT_SEQNO: pc.binary_join_element_wise(prefixes, pa.array(numbers).cast(pa.string()), "_"),
        RECORD_KEY: rows.column(RECORD_KEY),
        PARTITION_PATH: rows.column(PARTITION_PATH),
        FILE_NAME: file_names,
    }
    schema = context.full_schema
    columns = [meta[name] if name in meta else rows.column(name) for name in schema.names]
    return pa.table(columns, schema=schema)


@dataclass
class _Incoming:
    """Rows of the batch that meet the stored rows of one file group."""

    newer: Newer
    is_stored: np.ndarray
    """Bool for each of them: its key was there."""
    updated: int = 0
    deleted: int = 0
    changes: ChangeLog | None = None

    @classmethod
    def of(cls, rows: pa.Table, context: WriteContext, number: int) -> _Incoming:
        ordering, is_delete, always = deletes_of(rows, context)
        if set(context.rule.ordering_columns) & set(kept_columns(context)):
            ordering = None  # that of the stored row, which the later record of such a tie replaces
        keys = rows.column(RECORD_KEY).combine_chunks()
        stamped = stamp(rows, context, number, file_name="").drop_columns([FILE_NAME])
        return cls(Newer(keys, stamped, ordering, is_delete, always), np.zeros(rows.num_rows, dtype=bool))

    def replace_in(self, batch: pa.RecordBatch, context: WriteContext) -> Iterator[pa.RecordBatch | pa.Table]:
        """The batch without the rows that lose, then the rows that take their place."""
        merge = merge_with_stored(batch, self.newer, context.rule, self.is_stored)
        if merge.merged.num_rows and (columns := kept_columns(context)):
            older = pa.Table.from_batches([batch.select(columns).take(pa.array(merge.older))])
            older = older.cast(merge.merged.select(columns).schema)
            merged = filled(merge.merged, older, np.arange(len(merge.older)), columns)
            merge = replace(merge, merged=merged)
        self.is_stored[merge.first_matches] = True
        self.updated += merge.merged.num_rows
        self.deleted += len(merge.deleted_rows)
        if self.changes is not None:
            self.changes.merged(batch, merge)
        yield merge.unchanged
        if merge.merged.num_rows:
            yield merge.merged

    def unmet(self) -> pa.Table:
        """Rows whose key the file group did not hold: inserts."""
        fresh = ~self.is_stored & ~self.newer.is_delete
        return self.newer.rows if fresh.all() else self.newer.rows.filter(pa.array(fresh))
