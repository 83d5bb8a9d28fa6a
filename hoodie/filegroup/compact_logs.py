"""The task of a log compaction: the logs of a slice become one log file, whose blocks stand for theirs.

What logs say of a key is reduced to one record or one delete, as readers do it before they look at the base file. All logs that were
there come together, from the first on: so what is added later, and the base file, meet the same record as they would have met
without it. Rows keep their commit times and sequence numbers; deletes keep their ordering values.

The blocks name the instants that they stand for in their headers (COMPACTED_BLOCK_TIMES). Readers put them at the place of the newest
of these, so that a write which has overtaken the log compaction counts after them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hoodie.filegroup.log_entries import BoundedEntries
from hoodie.filegroup.log_scan import LogRecords, collect
from hoodie.filegroup.log_writer import Deletes, encode_blocks
from hoodie.filegroup.merge import positions_in
from hoodie.filegroup.new_base_file import STAGE, avro_of, new_attempt
from hoodie.filegroup.ordering import columns_of, whole
from hoodie.filegroup.row_copies import UNKNOWN, copied_rows, write_row_copy
from hoodie.filegroup.slice_reader import read_base_file
from hoodie.filegroup.staging import open_staged
from hoodie.format.column_stats import ranges_of_rows
from hoodie.model.enums import HeaderKey, RowCopies
from hoodie.model.files import BaseFile
from hoodie.model.meta_fields import FILE_NAME, PARTITION_PATH, RECORD_KEY
from hoodie.model.names import LogFileName, WriteToken, format_log_file, join, name_of
from hoodie.model.payloads import WriteStat
from hoodie.model.plans import PLACE, LogCompactTask, Room, StagedFile, WriteContext, WriteResult
from hoodie.storage.base import Storage

_SHARE = 8
"""Logs whose bytes are more than this part of the memory are read a piece at a time."""


@dataclass(frozen=True)
class LogCompacted:
    """What became of one slice."""

    result: WriteResult
    others: tuple[str, ...]
    """Names of older log files of the slice that hold more than what the new one stands for."""


def run_compact_logs(storage: Storage, context: WriteContext, task: LogCompactTask) -> LogCompacted | None:
    """Merge the logs of a slice into one log file.

    None where no block of them counts, and where blocks hold some columns only: a compaction completes such rows.
    """
    file_slice, attempt = task.slice, new_attempt()
    full = context.full_schema
    avro = avro_of(context)
    name = format_log_file(
        LogFileName(
            file_slice.group.file_id,
            context.instant if context.own_logs else file_slice.base_instant,
            task.log_version,
            str(WriteToken(task.number, STAGE, attempt)),
        )
    )
    staged = join(context.staging, name)
    expected = sum(count for log in file_slice.logs for _, count in log.committed_entries)
    encoded_bytes = sum(log.size_bytes for log in file_slice.logs)
    room = Room(context.memory_bytes or encoded_bytes * _SHARE * _SHARE + 1, storage.can.local_path(context.staging))
    piece_bytes = None if encoded_bytes <= room.memory_bytes // _SHARE else max(1, room.memory_bytes // (4 * _SHARE))
    same = (FILE_NAME,) if context.unstored is None else ()
    entries = BoundedEntries(
        full, context.rule, room, expected=expected, history=context.history, unstored=context.unstored
    )
    with entries as logs:
        live = collect(storage, file_slice.logs, logs, visible=context.visible, piece_bytes=piece_bytes)
        logs.finished()
        inputs = dict.fromkeys(block.header[HeaderKey.INSTANT_TIME] for block, _ in live.blocks)
        if not inputs or logs.missing:
            return None
        header = {
            HeaderKey.INSTANT_TIME: context.instant,
            HeaderKey.SCHEMA: json.dumps(avro, separators=(",", ":")),
            HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(sorted(inputs)),
        }
        written = _LogOutput(context, file_slice.group.partition_path, file_slice.group.file_id)
        with open_staged(storage, staged, folder=context.staging) as file:
            for records in _parts(logs):
                rows, deletes = written.add(records, full)
                size = 0
                for block in encode_blocks(rows, deletes, header=header, avro=avro, options=context.files, same=same):
                    size += file.write(block)
                written.size += size
    result = written.result(storage, task, name=name, staged=staged, number=task.number, attempt=attempt)
    return LogCompacted(result, tuple(name_of(path) for path in live.odd))


def _parts(logs: BoundedEntries) -> Iterator[LogRecords]:
    if logs.keys_there is None:
        yield logs.reduced()
    else:
        yield from (logs.of_part(part) for part in range(logs.parts))


class _LogOutput:
    """What goes to the new log file, and, while that is one part, to a row copy."""

    def __init__(self, context: WriteContext, partition_path: str, file_id: str) -> None:
        self.size = 0
        self._context, self._partition_path, self._file_id = context, partition_path, file_id
        self._rows = self._deletes = 0
        self._parts: list[tuple[pa.Table, Deletes]] = []

    def add(self, records: LogRecords, schema: pa.Schema) -> tuple[pa.Table, Deletes]:
        names = pa.repeat(pa.scalar(self._file_id), records.live)
        columns = [names if field.name == FILE_NAME else records.data.column(field.name) for field in schema]
        rows = pa.table(columns, schema=schema)
        if self._context.unstored is not None:
            rows = self._context.unstored.stored(rows)
        delete_count = len(records.keys) - records.live
        paths = pa.repeat(pa.scalar(self._partition_path), delete_count)
        ordering = None if records.ordering is None else records.ordering.slice(records.live)
        deletes = Deletes(records.keys.slice(records.live), paths, ordering)
        self._rows, self._deletes = self._rows + rows.num_rows, self._deletes + delete_count
        self._parts = [*self._parts[:1], (rows, deletes)][:2]
        return rows, deletes

    def result(
        self, storage: Storage, task: LogCompactTask, *, name: str, staged: str, number: int, attempt: int
    ) -> WriteResult:
        context, file_slice = self._context, task.slice
        final = join(self._partition_path, name)
        stat = WriteStat(
            file_id=self._file_id,
            partition_path=self._partition_path,
            path=final,
            prev_commit=context.instant if context.own_logs else file_slice.base_instant,
            num_writes=self._rows,
            num_updates=self._rows,
            num_deletes=self._deletes,
            total_bytes=self.size,
            file_size_bytes=self.size,
            log_version=task.log_version,
            base_file=file_slice.base.name if file_slice.base else "",
            log_files=(*task.there, name),
            total_log_records=sum(count for log in file_slice.logs for _, count in log.committed_entries),
            total_log_files_compacted=len(file_slice.logs),
            total_log_bytes_compacted=sum(log.size_bytes for log in file_slice.logs),
        )
        result = WriteResult(stat, StagedFile(staged, final, "CREATE" if context.own_logs else "APPEND"))
        if len(self._parts) != 1:
            return result
        ((rows, deletes),) = self._parts
        result = replace(result, ranges=ranges_of_rows(rows))
        if context.row_copies is RowCopies.NONE:
            return result
        copied = self._copied(storage, file_slice.base, rows, deletes)
        if context.row_copies is RowCopies.HELD:
            return replace(result, rows=copied)
        return replace(result, copy=write_row_copy(storage, context, 1 + number, [(stat, copied)], attempt=attempt))

    def _copied(self, storage: Storage, base: BaseFile | None, rows: pa.Table, deletes: Deletes) -> pa.Table:
        keys = pa.concat_arrays([*rows.column(RECORD_KEY).chunks, whole(deletes.keys)])
        places = pa.array(_places(storage, base, keys), pa.int32())
        live = pa.table({PLACE: places.slice(0, rows.num_rows)})
        columns = {
            RECORD_KEY: deletes.keys,
            PARTITION_PATH: deletes.partition_paths,
            PLACE: places.slice(rows.num_rows),
        }
        if deletes.ordering is not None:
            columns |= columns_of(deletes.ordering, self._context.schema, self._context.rule)
        return copied_rows(rows, live, pa.table(columns), self._context.rule)


def _places(storage: Storage, base: BaseFile | None, keys: pa.Array) -> np.ndarray:
    """Row numbers in the base file of the rows with these keys, each the first; -1 where there is none."""
    places = np.full(len(keys), UNKNOWN, dtype=np.int32)
    if base is None:
        return places
    start = 0
    for batch in read_base_file(storage, base, pa.schema([(RECORD_KEY, pa.string())])):
        at = positions_in(batch.column(RECORD_KEY), keys)
        rows = np.flatnonzero(at >= 0)
        first = np.full(len(keys), UNKNOWN, dtype=np.int32)
        first[at[rows][::-1]] = rows[::-1] + start  # of repeated indices numpy keeps the last assignment
        places = np.where(places == UNKNOWN, first, places)
        start += batch.num_rows
    return places
