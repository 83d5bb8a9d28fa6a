"""Micro-batches of a stream into a table, each of them once: what `writeStream.format("hoodie")` runs as its `foreachBatch`.

Spark writes a batch down before it runs, and repeats the last one when it does not know that it ended. The commit that
holds a batch says so in its metadata (`hoodie.model.streams`), by the query's id, which stays with its checkpoint.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hoodie.engine.base import Engine
from hoodie.errors import CommitConflictError, HoodieError, LockError, OptionError
from hoodie.model.enums import WriteOperation
from hoodie.model.results import CommitResult
from hoodie.model.streams import StreamBatch
from hoodie.options.streams import STREAM_ID, STREAM_IDENTIFIER
from hoodie.options.values import OverwriteMode
from hoodie.options.write import WriteRequest
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage, scheme_of
from pyspark_hoodie import dataframe
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.reach import reached, split_options
from pyspark_hoodie.schema import given_schema

log = logging.getLogger("hoodie")

APPEND, UPDATE, COMPLETE = "append", "update", "complete"
CHECKPOINT = "checkpointLocation"
SPARKS_OWN = (
    *(CHECKPOINT, "queryName", "asyncProgressTrackingEnabled", "asyncProgressTrackingCheckpointIntervalMs"),
    "asyncProgressTrackingOverrideSinkSupportCheck",
)
"""Options of a stream's writer that Spark itself reads, or adds to those of a source written in Python."""
_QUERY_ID = "sql.streaming.queryId"
"""Local property of the thread that runs a batch."""
_APPENDING = (WriteOperation.UPSERT, WriteOperation.INSERT, WriteOperation.BULK_INSERT, WriteOperation.DELETE)
_COMPLETE = (
    WriteOperation.UPSERT,
    WriteOperation.INSERT,
    WriteOperation.BULK_INSERT,
    WriteOperation.INSERT_OVERWRITE_TABLE,
)


@dataclass(frozen=True)
class StreamSink:
    """Writes the micro-batches of one query. Picklable: with Spark Connect it runs in a worker of the server."""

    path: str
    request: WriteRequest
    output_mode: str = APPEND
    stream: str | None = None
    """Name of the stream; None: the id of the query."""
    identifier: str | None = None
    """Name by which Apache Hudi knows it."""
    checkpoint: str | None = None
    """Where a query's id is found when the session does not say it."""
    reached_by: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Options of the storage; some are secrets."""
    sleep: Callable[[float], None] = time.sleep

    def open_storage(self, spark: SparkSession | None = None) -> Storage:
        return reached(self.path, self.reached_by, spark)[0]

    def __call__(self, df: DataFrame, batch_id: int) -> None:
        """Write one batch; nothing is written when the table holds it already.

        Raises:
            OptionError: neither session nor checkpoint say which query this is. Whatever a write raises.
        """
        batch = StreamBatch(self.stream or self._query_id(df), batch_id, self.identifier)
        result = retried(lambda: self._write(df, batch), self.request, sleep=self.sleep)
        log.info("batch %d of stream %s: %s", batch_id, batch.stream, result)

    def _write(self, df: DataFrame, batch: StreamBatch) -> CommitResult | None:
        request = replace(self.request, write=replace(self.request.write, stream=batch))
        mode = mode_of(self.output_mode)
        schema = given_schema(df.schema)
        storage = self.open_storage(df.sparkSession)
        engine: Engine = SparkEngine(df.sparkSession, storage)
        table = dataframe.open_for_write(storage, request, schema, mode=mode, engine=engine)
        if table is None:
            return None
        return dataframe.write_records(table, df, schema, dataframe.in_mode(mode, request, table))

    def _query_id(self, df: DataFrame) -> str:
        query_id = None
        try:
            query_id = df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        except AttributeError:  # what Spark Connect raises is one
            query_id = None
        return query_id or query_id_of(self.checkpoint)


def stream_writer(
    path: str,
    options: Mapping[str, str] | None = None,
    *,
    output_mode: str = APPEND,
    partition_by: Sequence[str] = (),
) -> StreamSink:
    """A function for `df.writeStream.foreachBatch(…)` that writes each batch of a query to the table at `path` once.

    Args:
        path: the table's folder; the first batch creates the table.
        options: Hudi's write options. `checkpointLocation` among them, the same as the query's, is needed with Spark Connect only;
            hoodie.python.stream.id names the stream where one query's batches are written to several tables by several names.
        output_mode: the query's: append, update, or complete, which replaces the table's rows by those of the batch.
        partition_by: the partition columns of a table that is created.

    Returns:
        The function; it can be sent to another process.

    Raises:
        OptionError: options that are unknown, or an operation that does not go with streams.

    Example:
        >>> df.writeStream.foreachBatch(pyspark_hoodie.stream_writer("/data/trips", options)).start()
    """
    all_options = dict(options or {})
    by_lower_name = {key.lower(): value for key, value in all_options.items()}
    checkpoint, stream = by_lower_name.get(CHECKPOINT.lower()), by_lower_name.get(STREAM_ID.name.lower())
    others = {name.lower() for name in (*SPARKS_OWN, STREAM_ID.name)}
    how, all_options = split_options(scheme_of(path), all_options)
    rest = {key: value for key, value in all_options.items() if key.lower() not in others}
    request = dataframe.parse_request(rest, partition_by)
    mode = _known_mode(output_mode)
    check_operation(request, mode)
    return StreamSink(path, request, mode, stream, by_lower_name.get(STREAM_IDENTIFIER.name.lower()), checkpoint, how)


def mode_of(output_mode: str) -> str:
    """The save mode of each batch."""
    return dataframe.OVERWRITE if output_mode == COMPLETE else dataframe.APPEND


def _known_mode(text: str) -> str:
    mode = text.lower()
    if mode not in (APPEND, UPDATE, COMPLETE):
        raise OptionError(f"output mode {text!r} is none of append, update, complete")
    return mode


def check_operation(request: WriteRequest, output_mode: str) -> None:
    """Raises OptionError for an operation by which a later batch would take away the rows of an earlier one, or would leave some."""
    operation = request.write.operation
    if output_mode == COMPLETE and request.write.overwrite_mode is OverwriteMode.DYNAMIC:
        raise OptionError(
            "output mode complete replaces the whole table by each batch, and partition overwrite mode DYNAMIC would leave the "
            "partitions that a batch has no rows of: drop the option"
        )
    if operation in (_COMPLETE if output_mode == COMPLETE else _APPENDING):
        return
    name = operation.value.lower()
    if output_mode == COMPLETE:
        raise OptionError(
            f"operation {name} does not go with output mode complete, where each batch has all rows and replaces the table's: "
            "leave the operation out"
        )
    raise OptionError(
        f"operation {name} does not go with a stream: each batch would replace what the ones before it wrote. Use upsert, insert, "
        "bulk_insert or delete; output mode complete to replace the table by each batch; or foreachBatch and HoodieTable"
    )


def query_id_of(checkpoint: str | None) -> str:
    """The id of the query with this checkpoint, which Spark writes there before the first batch.

    Raises:
        OptionError: there is no checkpoint, or no id in it.
    """
    if checkpoint is None:
        raise OptionError(
            f"each batch is written once by the id of its query, which stands in the checkpoint: set option {CHECKPOINT!r}"
        )
    try:
        query_id = json.loads(open_storage(checkpoint).read("metadata"))["id"]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise OptionError(
            f"the id of the query is not in checkpoint {checkpoint} (file metadata: {exc}); give one that this machine can read, or "
            f"name the stream by option {STREAM_ID.name}"
        ) from exc
    return str(query_id)


def retried(write: Callable[[], Any], request: WriteRequest, *, sleep: Callable[[float], None] = time.sleep) -> Any:
    """Try a batch again after failures that may pass, as often as the options say; what landed is not written again."""
    retries = request.write.stream_retries
    for tries in range(1, retries.tries + 1):
        try:
            return write()
        except (CommitConflictError, LockError, OSError) as error:
            passes = isinstance(error, CommitConflictError | LockError) or not isinstance(error, HoodieError)
            if tries == retries.tries or not passes:
                raise
            log.warning("try %d of %d to write a batch failed: %s", tries, retries.tries, error)
            sleep(retries.interval_s * 2 ** (tries - 1))
    raise AssertionError("unreachable")
