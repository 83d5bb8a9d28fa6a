"""Rows by their numbers out of tables of any size.

Arrow puts the chunks of a column together before it takes rows out of them, and of texts one array holds 2 GiB at most. So of larger
tables the rows that are wanted are filtered first, which joins nothing; these get long offsets while they are put in their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from hoodie.filegroup.conform import conform
from hoodie.model import arrow_bytes
from hoodie.model.arrow_bytes import in_one_chunk, pieces_of


def rows_at(rows: pa.Table, numbers: np.ndarray) -> pa.Table:
    """The rows of these numbers, in this order; a number may come several times, and nulls stand for negative ones."""
    none = numbers < 0
    if not _is_large(rows):
        return rows.take(pa.array(numbers, mask=none if none.any() else None))
    is_needed = np.zeros(rows.num_rows, dtype=bool)
    is_needed[numbers[~none]] = True
    needed_rows = in_one_chunk(rows.filter(pa.array(is_needed)))
    places = pa.array((np.cumsum(is_needed) - 1)[numbers], mask=none)
    step = max(1, int(len(numbers) * arrow_bytes.MOST_BYTES / max(1, needed_rows.nbytes)))
    parts = [needed_rows.take(places.slice(at, step)) for at in range(0, len(numbers), step)]
    pieces = [conform(piece, rows.schema, path="picked rows") for part in parts for piece in pieces_of(part)]
    return pa.concat_tables(pieces) if pieces else rows.slice(0, 0)


def column_at(column: pa.ChunkedArray, numbers: np.ndarray) -> pa.ChunkedArray:
    return rows_at(pa.table({"": column}), numbers).column(0)


def in_few_batches(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows as one batch, where arrays hold them."""
    yield from (rows if _is_large(rows) else rows.combine_chunks()).to_batches()


def _is_large(rows: pa.Table) -> bool:
    return rows.nbytes > arrow_bytes.MOST_BYTES and any(column.num_chunks > 1 for column in rows.columns)
