"""A new base file: its names, and its entry in the commit."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hoodie.filegroup.base_writer import BaseFileWriter, RowGroups
from hoodie.filegroup.change_log import ChangeLog
from hoodie.filegroup.log_blocks import counted_logs
from hoodie.filegroup.slice_reader import MAPPED_BYTES
from hoodie.format.avro_schema import avro_from_arrow, with_meta_columns
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.late import for_the_same
from hoodie.model.meta_fields import without_meta_fields
from hoodie.model.names import BaseFileName, LogFileName, WriteToken, format_base_file, format_log_file, join, name_of
from hoodie.model.payloads import WriteStat
from hoodie.model.plans import StagedFile, WriteContext, WriteResult
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
    out = writer.out
    if changes is not None:
        counts["change_logs"] = changes.sizes
    group = FileGroupId(writer.partition_path, writer.file_id)
    result = file_result(group, out.staged, marker, file_slice, size_bytes=out.size_bytes, ranges=out.ranges, **counts)
    return result if changes is None else replace(result, change_log=changes.file)


def file_result(
    group: FileGroupId,
    staged: str,
    marker: str,
    file_slice: FileSlice | None,
    *,
    size_bytes: int,
    ranges: Mapping[str, ValueRange],
    keys: pa.Array | None = None,
    **counts: Any,
) -> WriteResult:
    """What a base file of the group comes to that was staged, and follows that of the slice."""
    final = join(group.partition_path, name_of(staged))
    stat = WriteStat(
        file_id=group.file_id,
        partition_path=group.partition_path,
        path=final,
        prev_commit=file_slice.base_instant if file_slice else None,
        total_bytes=size_bytes,
        file_size_bytes=size_bytes,
        prev_base_file=file_slice.base.name if file_slice and file_slice.base else None,
        **counts,
    )
    return WriteResult(stat, StagedFile(staged, final, marker), ranges, keys=keys)


@for_the_same
def avro_of(context: WriteContext) -> dict[str, Any]:
    """The Avro schema of the rows that are written, with the meta columns."""
    schema = without_meta_fields(context.schema)
    if context.unstored is not None:
        schema = context.unstored.stored_schema(schema)
    return with_meta_columns(avro_from_arrow(schema, table_name=context.table_name))
