"""What one worker does in a load in one pass: base files straight from its batches (`load.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.gather import gathered
from hoodie.errors import CommitConflictError
from hoodie.filegroup.chunks import make_chunk
from hoodie.filegroup.new_groups import NewGroups
from hoodie.model.arrow_bytes import pieces_of, rows_bytes
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import DELETED, Chunk, WriteContext, WriteResult
from hoodie.storage.base import Storage
from hoodie.write.prepare import Preparation, prepare_rows


def run_load_part(
    preparation: Preparation,
    storage: Storage,
    context: WriteContext,
    max_file_bytes: int,
    number: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, WriteResult | Chunk]]:
    """What one worker does with its batches: files that it finished, and chunks of the rows that it leaves to others."""
    counted = 0
    with NewGroups(storage, context, number=number, max_file_bytes=max_file_bytes) as groups:
        for raw in _fed(batches, context.tuning.feed_bytes):
            rows = prepare_rows(raw, preparation)
            if not (preparation.keygen.record_key_fields or preparation.keys_given):
                rows = _completed_keys(rows, f"{context.instant}_{number}", counted)
            counted += rows.num_rows
            for part in groups.add(_live(rows)):
                yield number, _result_of(part, storage, context)
        for part in groups.finish():
            yield number, _result_of(part, storage, context)


def _result_of(part: WriteResult | pa.Table, storage: Storage, context: WriteContext) -> WriteResult | Chunk:
    """A file as it is; rows as a chunk in the instant's staging folder, which goes with it.

    Raises:
        CommitConflictError: the folder is gone: another process rolled the instant back.
    """
    if not isinstance(part, pa.Table):
        return part
    try:
        return make_chunk(part, storage=storage, stage_to=context.staging)
    except FileNotFoundError as exc:
        raise CommitConflictError(
            f"instant {context.instant} of table {storage.uri} was rolled back by another process while its rows were read; "
            "nothing of it is visible, run it again"
        ) from exc


def _fed(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in gathered(batches):
        for piece in pieces_of(batch, most_bytes):
            waiting.append(piece)
            size += rows_bytes(piece)
            if size >= most_bytes:
                yield pa.Table.from_batches(waiting)
                waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _live(rows: pa.Table) -> pa.Table:
    """Rows to store: an insert of a row that is marked as deleted inserts nothing."""
    if DELETED not in rows.column_names:
        return rows
    return rows.filter(pc.invert(rows.column(DELETED))).drop_columns([DELETED])


def _completed_keys(rows: pa.Table, prefix: str, first: int) -> pa.Table:
    """Generated keys, which are the rows' numbers within this piece so far: instant, worker, number within the worker."""
    join_texts: Any = pc.binary_join_element_wise  # its stubs know no mix of texts and columns
    numbers = pa.array(np.arange(first, first + rows.num_rows)).cast(pa.string())
    return rows.set_column(rows.schema.get_field_index(RECORD_KEY), RECORD_KEY, join_texts(prefix, numbers, "_"))
