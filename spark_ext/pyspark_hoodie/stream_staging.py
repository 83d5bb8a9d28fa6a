"""The streaming sink without `enable`: tasks stage the rows of a batch, a worker beside the driver commits them once.

Spark makes the writer anew for each of the two, so that what they share is named by the query: the folder of staged rows.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource
from pyspark.sql.datasource import WriterCommitMessage

from hoodie.engine.late_pandas import put_pandas_off
from hoodie.engine.local import LocalEngine
from hoodie.errors import HoodieError, OptionError
from hoodie.model.names import join, name_of, staging_folder
from hoodie.model.results import CommitResult
from hoodie.model.streams import StreamBatch
from hoodie.storage.base import Storage
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext
from pyspark_hoodie.dataframe import in_mode, open_for_write
from pyspark_hoodie.engine import conformed
from pyspark_hoodie.short_errors import short_errors
from pyspark_hoodie.stream_sink import APPEND, COMPLETE, mode_of, query_id_of, retried, stream_writer

log = logging.getLogger("hoodie")

_ArrowWriter: Any = getattr(pyspark.sql.datasource, "DataSourceStreamArrowWriter", None)
"""There from Spark 4.1 on."""
_new_ipc_file: Any = pa.ipc.new_file
"""Takes any binary file object; its stubs know Python's own classes only."""


@dataclass
class StagedRows(WriterCommitMessage):
    """The file that one task staged, or the error of ours that it ended with."""

    path: str | None = None
    error: HoodieError | None = None


class BatchStager(_ArrowWriter or object):  # type: ignore[misc]
    """Made on the driver's machine when the query starts, and again for each commit."""

    def __init__(self, path: str, options: Mapping[str, str], schema: pa.Schema, *, complete: bool) -> None:
        if _ArrowWriter is None:
            raise OptionError(
                "before Spark 4.1 a stream into format 'hoodie' needs pyspark_hoodie.enable(spark), or stream_writer with foreachBatch"
            )
        self._sink = stream_writer(path, options, output_mode=COMPLETE if complete else APPEND)
        self._storage = self._sink.open_storage()
        self._schema = schema
        self._stream = self._sink.stream or query_id_of(self._sink.checkpoint)
        # One run of a query at a time uses it, and each batch clears it: what a crash left there goes with the next batch.
        self._folder = staging_folder(f"rows-{uuid.uuid5(uuid.NAMESPACE_OID, self._stream).hex}")
        self._open()

    def _open(self) -> HoodieTable:
        mode = mode_of(self._sink.output_mode)
        table = open_for_write(self._storage, self._sink.request, self._schema, mode=mode, engine=LocalEngine())
        return table if table is not None else HoodieTable(TableContext.open(self._storage, LocalEngine()))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        path = join(self._folder, f"{uuid.uuid4().hex}.arrow")
        rows = 0
        try:
            with self._storage.open_output(path, durable=False) as sink, _new_ipc_file(sink, self._schema) as writer:
                for batch in conformed(iterator, self._schema):
                    rows += batch.num_rows
                    writer.write_batch(batch)
        except HoodieError as error:
            return StagedRows(error=error)
        return StagedRows(path if rows else None)

    @short_errors
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Runs with the message of the one attempt of each task that counts; again for a batch that Spark repeats."""
        put_pandas_off()
        staged = [each for each in messages if isinstance(each, StagedRows)]
        for each in staged:
            if each.error is not None:
                raise each.error
        paths = [each.path for each in staged if each.path is not None]
        batch = StreamBatch(self._stream, batchId, self._sink.identifier)
        concurrency = self._sink.request.write.concurrency
        liveness = TableContext.open(self._storage, LocalEngine(), concurrency).liveness
        mark = name_of(self._folder)
        liveness.hold(mark)
        try:
            result = retried(lambda: self._write(paths, batch), self._sink.request, sleep=self._sink.sleep)
        finally:
            self._storage.delete_folder(self._folder)
            liveness.release(mark)
        log.info("batch %d of stream %s: %s", batchId, self._stream, result)

    def _write(self, paths: Sequence[str], batch: StreamBatch) -> CommitResult:
        table = self._open()
        request = in_mode(mode_of(self._sink.output_mode), self._sink.request, table)
        options = replace(request.write, stream=batch)
        rows = pa.RecordBatchReader.from_batches(self._schema, _rows(self._storage, paths))
        return table.writer.write(rows, self._schema, options.operation, options, engine=LocalEngine())

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._storage.delete_folder(self._folder)


def _rows(storage: Storage, paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        with storage.open_input(path) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
