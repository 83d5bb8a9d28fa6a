"""Slices with small logs that no row copies have: their logs are decoded here, and merged as row copies are (`log_merge.py`).

For logs of other writers, and of tables that keep no copies. The rows are few, so they are handed over as they are; the base
files stay with whoever reads Parquet natively.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.filegroup.log_blocks import counted_logs
from hoodie.filegroup.log_scan import LogRecords, read_log_records
from hoodie.filegroup.row_copies import DELETED_KEY, ROW, UNKNOWN
from hoodie.filegroup.slice_reader import merge_columns
from hoodie.model.instant import VisibleInstants
from hoodie.model.plans import ReadContext, ReadTask
from hoodie.read.deletion_vectors import ScanFile, base_files
from hoodie.read.log_merge import LoggedSlice, LogRows, Part, Values, resolve
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache

MAX_LOG_BYTES = 32 * 1024 * 1024
"""Of all slices of a query together; the logs of the others are decoded where their rows are read."""


@dataclass(frozen=True, eq=False)
class DecodedRows(LogRows):
    """The records of a slice's logs, one of each key, as what logs say."""

    records: LogRecords

    @cached_property
    def kinds(self) -> np.ndarray:
        deletes = len(self.records.keys) - self.records.live
        return np.repeat(np.array([ROW, DELETED_KEY], np.int8), [self.records.live, deletes])

    @cached_property
    def positions(self) -> np.ndarray:
        return np.full(len(self.records.keys), UNKNOWN, np.int32)

    def values(self, storage: Storage, context: ReadContext, *, keys: bool, ordering: bool) -> Values:
        return Values(self.records.keys if keys else None, self.records.ordering if ordering else None)


class Decoded(NamedTuple):
    files: Sequence[ScanFile]
    rows: pa.Table
    """What logs add: final, as those of the files are."""
    others: Sequence[ReadTask]
    """Slices whose log records hold some columns only."""


def split_by_size(tasks: Sequence[ReadTask], visible: VisibleInstants) -> tuple[list[ReadTask], list[ReadTask]]:
    """(slices whose logs are small in sum, the others)"""
    small: list[ReadTask] = []
    large: list[ReadTask] = []
    room = MAX_LOG_BYTES
    sizes = {id(task): _log_bytes(task, visible) for task in tasks}
    for task in sorted(tasks, key=lambda task: sizes[id(task)]):
        room -= sizes[id(task)]
        (small if room >= 0 else large).append(task)
    return small, large


def _log_bytes(task: ReadTask, visible: VisibleInstants) -> int:
    return sum(log.size_bytes for log in counted_logs(task.slice.logs, visible).logs)


def decode_slices(
    storage: Storage, cache: Cache, context: ReadContext, tasks: Sequence[ReadTask], schema: pa.Schema
) -> Decoded:
    """The base files of the slices, and their log rows with the columns of `schema`.

    Raises:
        CorruptFileError, UnsupportedTableError: as `slice_reader` does.
    """
    columns = merge_columns(schema, context.rule, context.schema)
    logs = LocalEngine().run(
        partial(_decode, storage, context, columns), tasks, label="decode logs", at_once=storage.can.at_once
    )
    whole = [(task, DecodedRows(records)) for task, records in zip(tasks, logs, strict=True) if records.present is None]
    others = [task for task, records in zip(tasks, logs, strict=True) if records.present is not None]
    sources = [rows for _, rows in whole]
    slices = [_slice_of(task, rows) for task, rows in whole]
    resolution = resolve(storage, cache, context, slices, sources)
    row_numbers = [] if resolution is None else resolution.rows_of_source
    tables = [
        rows.records.data.take(pa.array(numbers)).select(schema.names)
        for rows, numbers in zip(sources, row_numbers, strict=True)
    ]
    files = [] if resolution is None else base_files(storage, cache, context, slices, resolution.dead)
    return Decoded(files, pa.concat_tables(tables) if tables else schema.empty_table(), others)


def _decode(storage: Storage, context: ReadContext, schema: pa.Schema, task: ReadTask) -> LogRecords:
    return read_log_records(storage, task.slice, schema, rule=context.rule, visible=context.visible)


def _slice_of(task: ReadTask, rows: DecodedRows) -> LoggedSlice:
    # A pull: stored rows of other commits take no part.
    base = task.slice.base if task.span is None else None
    return LoggedSlice(base, (Part(rows, 0, len(rows.kinds), ""),), base_counts=base is not None)
