"""New base files of a few rows each, many at a time: what does not depend on the bytes of one file is worked out once for all.

Each file is as `BaseFileWriter` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.filegroup.base_writer import close_parquet, columns_of, new_parquet
from hoodie.filegroup.new_base_file import avro_of
from hoodie.filegroup.staging import stage_all
from hoodie.format.avro_schema import schema_text
from hoodie.format.base_file import entries_for, footer_entries, key_ranges
from hoodie.format.bloom import blooms_of_chains, builds_by_row
from hoodie.format.column_stats import ranges_of_parts
from hoodie.format.parquet_file import FEW_ROWS
from hoodie.format.parquet_footer import floating_leaves
from hoodie.model.instant import InstantTime
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.names import join
from hoodie.model.plans import WriteContext, WriteResult
from hoodie.model.statistics import ValueRange
from hoodie.storage.base import Storage


class ResultOf(Protocol):
    """What becomes of file number `n`."""

    def __call__(
        self,
        n: int,
        staged: str,
        count: int,
        *,
        size_bytes: int,
        ranges: Mapping[str, ValueRange],
        keys: pa.Array | None,
    ) -> WriteResult: ...


def can_make_together(context: WriteContext) -> bool:
    """Whether base files of the write can be made together at all: they have the rows as they are, and a filter of their own."""
    options = context.files
    return columns_of(context).as_rows and builds_by_row(options.bloom_type) and not options.key_map


def most_rows(context: WriteContext) -> int:
    """Of a file that can be made with others: it has no dictionaries, and a filter of the least size."""
    return min(FEW_ROWS, _entries(context))


def _entries(context: WriteContext) -> int:
    return context.files.bloom_num_entries or entries_for(1, context.files.bloom_fpp)


def write_small_base_files(
    storage: Storage,
    context: WriteContext,
    names: Sequence[str],
    rows: pa.Table,
    starts: Sequence[int],
    chains: np.ndarray | None,
    result_of: ResultOf,
    *,
    wanted: np.ndarray | None = None,
    commit_time: InstantTime | None,
) -> list[WriteResult | None]:
    """The results of the files with these names, of which `rows` has one after the other, with all meta columns; None where the file
    is left to be written by itself, is not wanted, or has no rows.

    `chains`: the `footer_chains` of all rows. `commit_time`: that of all rows, where they share one.
    """
    columns, options = columns_of(context), context.files
    results: list[WriteResult | None] = [None] * len(names)
    if chains is None or not can_make_together(context):
        return results
    may_have_nan = columns.has_floats and bool(floating_leaves(rows).nan)
    keys = rows.column(RECORD_KEY).combine_chunks()
    entries, most = _entries(context), most_rows(context)
    avro = schema_text(avro_of(context))
    blooms = blooms_of_chains(options.bloom_type, chains, starts, num_entries=entries, fpp=options.bloom_fpp)
    bounds = key_ranges(keys, starts)
    ranges = ranges_of_parts(rows, starts, commit_time=commit_time, texts=True)
    row_bytes = rows.nbytes // max(1, rows.num_rows)
    files: list[tuple[str, memoryview]] = []
    for n, name in enumerate(names):
        start, count = starts[n], starts[n + 1] - starts[n]
        if not 0 < count <= most or (wanted is not None and not wanted[n]):
            continue
        part, sink = rows.slice(start, count), pa.BufferOutputStream()
        footers: list[pq.FileMetaData] = []
        nan = floating_leaves(part).nan if may_have_nan else frozenset()
        writer = new_parquet(sink, rows.schema, options, rows_bytes=count * row_bytes, footers=footers)
        writer.write_table(part)
        said = footer_entries(blooms[n], bounds[n], avro)
        close_parquet(writer, sink, footers, nan={(0, leaf) for leaf in nan}, edits=bool(nan), entries=said)
        data = sink.getvalue()
        files.append((join(context.staging, name), memoryview(data)))
        held = keys.slice(start, count)
        # Copied: a slice would keep the keys of all these files in memory.
        held_keys = pa.concat_arrays([held]) if held.nbytes < context.held_key_bytes else None
        results[n] = result_of(n, files[-1][0], count, size_bytes=data.size, ranges=ranges[n], keys=held_keys)
    stage_all(storage, files, folder=context.staging)
    return results
