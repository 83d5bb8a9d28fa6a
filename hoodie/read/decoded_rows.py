"""Slices with small logs that no row copies have: their logs are decoded here, and the dead rows of base files found by key.

For logs of other writers, and of tables that keep no copies. The rows are few, so they are handed over as they are; the base
files stay with whoever reads Parquet natively, as for `scan_files.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.engine.local import LocalEngine
from hoodie.filegroup.log_scan import LogRecords, read_log_records
from hoodie.filegroup.merge import beats_stored, positions_in
from hoodie.filegroup.ordering import ordering_of, whole
from hoodie.filegroup.slice_reader import merge_columns, read_base_file
from hoodie.model.files import BaseFile
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import ReadContext, ReadTask
from hoodie.read.deletion_vectors import ScanFile
from hoodie.storage.base import Storage

MAX_LOG_BYTES = 32 * 1024 * 1024
"""Of all slices of a query together; the logs of the others are decoded where their rows are read."""


class DecodedSlice(NamedTuple):
    file: ScanFile | None
    rows: pa.Table
    """What its logs add: final, as those of the file are."""


def split_by_size(tasks: Sequence[ReadTask]) -> tuple[list[ReadTask], list[ReadTask]]:
    """(slices whose logs are small in sum, the others)"""
    small: list[ReadTask] = []
    large: list[ReadTask] = []
    room = MAX_LOG_BYTES
    for task in sorted(tasks, key=_log_bytes):
        room -= _log_bytes(task)
        (small if room >= 0 else large).append(task)
    return small, large


def _log_bytes(task: ReadTask) -> int:
    return sum(log.size_bytes for log in task.slice.logs)


def decode_slices(
    storage: Storage, context: ReadContext, tasks: Sequence[ReadTask], schema: pa.Schema
) -> list[DecodedSlice | None]:
    """The slices' files and log rows with the columns of `schema`; None for one whose log records hold some columns only.

    Raises:
        CorruptFileError, UnsupportedTableError: as `slice_reader` does.
    """
    return LocalEngine().run(partial(_decode, storage, context, schema), tasks, label="decode logs")


def _decode(storage: Storage, context: ReadContext, schema: pa.Schema, task: ReadTask) -> DecodedSlice | None:
    wanted = merge_columns(schema, context.rule, context.schema)
    logs = read_log_records(storage, task.slice, wanted, rule=context.rule, visible=context.visible)
    if logs.present is not None:
        return None
    base = task.slice.base
    if base is None or task.span is not None:  # a pull: stored rows of other commits take no part
        return DecodedSlice(None, logs.data.select(schema.names))
    rows, places, beats = _meet(storage, context, base, logs)
    dead = np.sort(places[beats & (places >= 0)])
    file = ScanFile(base.path, base.size_bytes, base.instant, rows, dead if len(dead) else None)
    kept = (beats | (places < 0))[: logs.live]
    data = logs.data if kept.all() else logs.data.filter(pa.array(kept))
    return DecodedSlice(file, data.select(schema.names))


def _meet(
    storage: Storage, context: ReadContext, base: BaseFile, logs: LogRecords
) -> tuple[int, np.ndarray, np.ndarray]:
    """How many stored rows there are; for each log record the row that it meets, -1 for none, and whether it replaces that."""
    narrow = merge_columns(pa.schema([]), context.rule, context.schema)
    stored = pa.Table.from_batches(read_base_file(storage, base, narrow), narrow)
    places = positions_in(logs.keys, whole(stored.column(RECORD_KEY)))
    beats = np.ones(len(places), dtype=bool)
    met = np.flatnonzero(places >= 0)
    ordering = ordering_of(stored, context.rule)
    if len(met) and logs.ordering is not None and ordering is not None:
        theirs = ordering.take(pa.array(places[met]))
        mine = logs.ordering.take(pa.array(met))
        beats[met] = beats_stored(mine, logs.commit_time_deletes[met], theirs, context.rule)
    return stored.num_rows, places, beats
