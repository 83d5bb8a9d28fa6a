"""Batches of a few rows each -> fewer, larger ones: what costs something for each batch would cost more than the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

_FEW_ROWS = 4096
"""A batch of so many rows is worth its cost, and is passed on as it is."""
_FEW_BYTES = 8 * 1024
_GATHERED_ROWS = 64 * 1024
GATHERED_BYTES = 4 * 1024 * 1024


def gathered(batches: Iterable[pa.RecordBatch], *, most_bytes: int = GATHERED_BYTES) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, in batches of one schema; small ones are put together to about `most_bytes`.

    The first is passed on at once, and each one after it gathers at most as many batches as came before: whoever takes a few rows
    and stops does not wait for all.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = batch_count = 0
    most = 1
    for batch in batches:
        if not batch.num_rows:
            continue
        # For small buffers their whole sizes are exact enough: `nbytes`, which follows slices, takes ten times as long.
        batch_bytes = batch.get_total_buffer_size()
        if batch_bytes >= _FEW_BYTES:
            batch_bytes = bytes_of(batch)
        large = batch.num_rows >= _FEW_ROWS or batch_bytes >= most_bytes
        if waiting and (large or len(waiting) >= most or rows >= _GATHERED_ROWS or size >= most_bytes):
            yield from _together(waiting)
            batch_count += len(waiting)
            most = batch_count
            waiting, rows, size = [], 0, 0
        if large:
            yield batch
            continue
        waiting.append(batch)
        rows += batch.num_rows
        size += batch_bytes
    yield from _together(waiting)


def bytes_of(batch: pa.RecordBatch) -> int:
    """Its size; that of its buffers as a whole where Arrow cannot tell which part of them is meant (views of texts, pyarrow 21)."""
    try:
        return batch.nbytes
    except pa.ArrowTypeError:
        return batch.get_total_buffer_size()


def _together(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if len(batches) <= 1:
        yield from batches
        return
    try:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Types that Arrow does not concatenate, and dictionaries whose values have no room in one: slower, but right.
        yield from batches
