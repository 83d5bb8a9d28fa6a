"""Write a change log: what a new base file changed of the rows of the one before it, for Apache Hudi's change queries.

They take what a commit did to a rewritten base file from its change log alone. What logs and new file groups change, they find
out by themselves.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from hoodie.filegroup.changes import AFTER, BEFORE, DELETE, INSERT, OP, TS_MS, UPDATE
from hoodie.filegroup.picks import rows_at
from hoodie.filegroup.staging import open_staged
from hoodie.filegroup.stored_merge import MergedBatch
from hoodie.format.avro_schema import avro_from_arrow, record_type, schema_text
from hoodie.format.log_block import encode_block
from hoodie.format.log_content import encode_avro_data
from hoodie.model.enums import BlockKind, ChangeLogMode, HeaderKey
from hoodie.model.late import for_the_same
from hoodie.model.meta_fields import RECORD_KEY, without_meta_fields
from hoodie.model.names import join, name_of
from hoodie.model.plans import StagedFile, WriteContext
from hoodie.storage.base import Storage

_KEY = "record_key"
_BLOCK_BYTES = 32 * 1024 * 1024
"""Of changes in memory: as many as a rewrite holds of its file."""

Rows = pa.Table | pa.RecordBatch


class ChangeLog:
    """A context manager: the file is whole once it is left. A log without changes has one empty block, for readers want a log."""

    def __init__(self, storage: Storage, context: WriteContext, mode: ChangeLogMode, path: str) -> None:
        self._context, self._mode = context, mode
        self._schema = schema_text(_schema_of(context))
        self._record = record_type(self._schema)
        staged = join(context.staging, name_of(path))
        self._output: AbstractContextManager[BinaryIO] = open_staged(storage, staged, folder=context.staging)
        self.file = StagedFile(staged, path, marker_of_logs(context))
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self.size_bytes = 0

    @property
    def sizes(self) -> dict[str, int]:
        """Of the finished file, as commits have it."""
        return {self.file.final: self.size_bytes}

    def __enter__(self) -> ChangeLog:
        self._file = self._output.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and (self._waiting or not self.size_bytes):
            self._flush()
        self._output.__exit__(kind, error, trace)

    def merged(self, stored: Rows, batch: MergedBatch) -> None:
        """Add the updates and deletes that a merge has made of stored rows."""
        self._add(UPDATE, _picked(stored, batch.older), batch.merged)
        self._add(DELETE, _picked(stored, batch.deleted_rows), None)

    def inserted(self, rows: pa.Table) -> None:
        self._add(INSERT, None, rows)

    def _add(self, op: str, before: pa.Table | None, after: pa.Table | None) -> None:
        rows = after if before is None else before
        if rows is None or not rows.num_rows:
            return
        columns: dict[str, Any] = {OP: pa.repeat(pa.scalar(op), rows.num_rows)}
        if self._mode is ChangeLogMode.DATA_BEFORE_AFTER:
            columns[TS_MS] = pa.repeat(pa.scalar(self._context.instant), rows.num_rows)
        else:
            columns[_KEY] = rows.column(RECORD_KEY)
        if self._mode is not ChangeLogMode.OP_KEY_ONLY:
            columns[BEFORE] = self._image(before, rows.num_rows, BEFORE)
        if self._mode is ChangeLogMode.DATA_BEFORE_AFTER:
            columns[AFTER] = self._image(after, rows.num_rows, AFTER)
        self._waiting.append(pa.table(columns))
        self._waiting_bytes += self._waiting[-1].nbytes
        if self._waiting_bytes >= min(_BLOCK_BYTES, self._context.files.max_block_bytes):
            self._flush()

    def _image(self, rows: pa.Table | None, count: int, name: str) -> pa.Array:
        kind: Any = dict(self._record.fields)[name].arrow
        result: pa.Array
        if rows is None:
            result = pa.nulls(count, kind)
        else:
            columns = [rows.column(field.name).cast(field.type).combine_chunks() for field in kind]
            result = pa.StructArray.from_arrays(columns, fields=list(kind))
        return result

    def _flush(self) -> None:
        empty = pa.schema(self._record.arrow_fields).empty_table()
        rows = pa.concat_tables(self._waiting) if self._waiting else empty
        self._waiting, self._waiting_bytes = [], 0
        header = {HeaderKey.INSTANT_TIME: str(self._context.instant), HeaderKey.SCHEMA: self._schema}
        self.size_bytes += self._file.write(
            encode_block(BlockKind.CDC_DATA, header, encode_avro_data(rows, self._record))
        )


def change_log_of(storage: Storage, context: WriteContext, path: str) -> AbstractContextManager[ChangeLog | None]:
    """The change log at a path, relative to the table; None where the table has none."""
    mode = context.change_logs
    return nullcontext() if mode is None else ChangeLog(storage, context, mode, path)


def marker_of_logs(context: WriteContext) -> str:
    """The kind of marker that Apache Hudi's rollbacks expect of a log file."""
    return "CREATE" if context.own_logs else "APPEND"


def _picked(rows: Rows, numbers: np.ndarray) -> pa.Table:
    return rows_at(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows]), numbers)


@for_the_same
def _schema_of(context: WriteContext) -> dict[str, Any]:
    return change_log_schema(context.change_logs, context)


def change_log_schema(mode: ChangeLogMode | None, context: WriteContext) -> dict[str, Any]:
    """The Avro schema of the records, as Apache Hudi has it: its readers take the columns by their places."""
    if mode is ChangeLogMode.OP_KEY_ONLY:
        fields: list[dict[str, Any]] = [{"name": name, "type": ["string", "null"]} for name in (OP, _KEY)]
        return {"type": "record", "name": "Record", "fields": fields}
    image = avro_from_arrow(without_meta_fields(context.schema), table_name=context.table_name)
    types: dict[str, object] = {OP: "string", _KEY: "string", BEFORE: image}
    if mode is ChangeLogMode.DATA_BEFORE_AFTER:
        types = {OP: "string", TS_MS: "string", BEFORE: image, AFTER: f"{image['namespace']}.{image['name']}"}
    fields = [{"name": name, "type": ["null", kind], "doc": "", "default": None} for name, kind in types.items()]
    return {"type": "record", "name": "CDC", "namespace": image["namespace"], "doc": "", "fields": fields}
