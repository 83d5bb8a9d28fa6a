"""A new base file: its names, and its entry in the commit."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hoodie.filegroup.base_writer import BaseFileWriter, RowGroups
from hoodie.filegroup.change_log import ChangeLog
from hoodie.filegroup.log_blocks import counted_logs
from hoodie.filegroup.slice_reader import MAPPED_BYTES
from hoodie.format.avro_schema import avro_from_arrow, with_meta_columns
from hoodie.model.files import FileSlice
from hoodie.model.late import for_the_same
from hoodie.model.meta_fields import without_meta_fields
from hoodie.model.names import BaseFileName, LogFileName, WriteToken, format_base_file, format_log_file, join
from hoodie.model.payloads import WriteStat
from hoodie.model.plans import CreateTask, StagedFile, WriteContext, WriteResult
from hoodie.model.statistics import ValueRange
from hoodie.storage.base import Storage

STAGE = 0
"""In write tokens: there is one stage."""


def new_attempt() -> int:
    """Different for every run of a task, also in other processes: a retried or speculative run writes other names."""
    return secrets.randbits(31)


class NewBaseFile:
    """A `BaseFileWriter` with the names of a base file: the next one of `file_slice`, else the first of a new group."""

    def __init__(
        self,
        storage: Storage,
        context: WriteContext,
        attempt: int,
        *,
        number: int,
        file_slice: FileSlice | None = None,
        partition_path: str = "",
        file_id: str = "",
        more_rows: int = 0,
    ) -> None:
        self.partition_path = file_slice.group.partition_path if file_slice else partition_path
        self.file_id = file_slice.group.file_id if file_slice else file_id
        token = str(WriteToken(number, STAGE, attempt))
        self.name = base_file_name(context, attempt, number=number, file_id=self.file_id)
        self.final = join(self.partition_path, self.name)
        log = format_log_file(LogFileName(self.file_id, context.instant, 1, token, ".cdc"))
        self.change_log = join(self.partition_path, log)
        large = file_slice is not None and file_slice.base is not None and file_slice.base.size_bytes > MAPPED_BYTES
        self.out = BaseFileWriter(
            storage,
            context,
            self.name,
            avro=avro_of(context),
            more_rows=more_rows + (_entries_of(file_slice, context) if file_slice else 0),
            row_groups=RowGroups.of(large=large, memory_bytes=context.memory_bytes),
        )

    def __enter__(self) -> NewBaseFile:
        self.out.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.out.__exit__(*exc)


def base_file_name(context: WriteContext, attempt: int, *, number: int, file_id: str) -> str:
    return format_base_file(BaseFileName(file_id, str(WriteToken(number, STAGE, attempt)), context.instant))


def _entries_of(file_slice: FileSlice, context: WriteContext) -> int:
    """As many as commits say that the logs of the slice hold."""
    logs = counted_logs(file_slice.logs, context.visible).logs
    return sum(count for log in logs for _, count in log.committed_entries)


def base_result(
    writer: NewBaseFile, marker: str, file_slice: FileSlice | None, *, changes: ChangeLog | None = None, **counts: Any
) -> WriteResult:
    """What a finished file comes to, with its finished change log; `counts` are fields of its `WriteStat`."""
    stat = WriteStat(
        file_id=writer.file_id,
        partition_path=writer.partition_path,
        path=writer.final,
        prev_commit=file_slice.base_instant if file_slice else None,
        total_bytes=writer.out.size_bytes,
        file_size_bytes=writer.out.size_bytes,
        prev_base_file=file_slice.base.name if file_slice and file_slice.base else None,
        change_logs={} if changes is None else changes.sizes,
        **counts,
    )
    file = StagedFile(writer.out.staged, writer.final, marker)
    return WriteResult(stat, file, writer.out.ranges, change_log=None if changes is None else changes.file)


def create_result(
    context: WriteContext,
    task: CreateTask,
    name: str,
    rows: int,
    size_bytes: int,
    ranges: Mapping[str, ValueRange],
    keys: pa.Array | None,
) -> WriteResult:
    """What the first base file of a file group comes to."""
    final = join(task.partition_path, name)
    stat = WriteStat(
        file_id=task.file_id,
        partition_path=task.partition_path,
        path=final,
        num_writes=rows,
        num_inserts=rows,
        total_bytes=size_bytes,
        file_size_bytes=size_bytes,
    )
    return WriteResult(stat, StagedFile(join(context.staging, name), final, "CREATE"), ranges, keys=keys)


@for_the_same
def avro_of(context: WriteContext) -> dict[str, Any]:
    """The Avro schema of the rows that are written, with the meta columns."""
    schema = without_meta_fields(context.schema)
    if context.unstored is not None:
        schema = context.unstored.stored_schema(schema)
    return with_meta_columns(avro_from_arrow(schema, table_name=context.table_name))
