"""New base files of a few rows each, many at a time: what does not depend on the bytes of one file is worked out once for all.

Each file is as `BaseFileWriter` makes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hoodie.filegroup.base_writer import columns_of, new_parquet
from hoodie.filegroup.new_base_file import avro_of, create_result
from hoodie.filegroup.staging import stage_all
from hoodie.format.avro_schema import schema_text
from hoodie.format.base_file import entries_for, footer_entries, key_ranges
from hoodie.format.bloom import blooms_of_chains
from hoodie.format.column_stats import ranges_of_parts
from hoodie.format.parquet_file import FEW_ROWS
from hoodie.format.parquet_footer import floating_leaves
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.names import join
from hoodie.model.plans import CreateTask, WriteContext, WriteResult
from hoodie.storage.base import Storage


def write_small_base_files(
    storage: Storage,
    context: WriteContext,
    tasks: Sequence[CreateTask],
    names: Sequence[str],
    rows: pa.Table,
    starts: Sequence[int],
    chains: np.ndarray | None,
) -> list[WriteResult | None]:
    """The results of the tasks, of which `rows` has one after the other, with all meta columns; None where the file is left to be
    written by itself, or has no rows.

    `names`: those of the files. `chains`: the `footer_chains` of all rows.
    """
    columns, options = columns_of(context), context.files
    results: list[WriteResult | None] = [None] * len(tasks)
    # A NaN is worth an edit of the footer.
    if chains is None or options.key_map or not columns.as_rows or (columns.has_floats and floating_leaves(rows).nan):
        return results
    keys = rows.column(RECORD_KEY).combine_chunks()
    entries = options.bloom_num_entries or entries_for(1, options.bloom_fpp)
    avro = schema_text(avro_of(context))
    blooms = blooms_of_chains(options.bloom_type, chains, starts, num_entries=entries, fpp=options.bloom_fpp)
    bounds = key_ranges(keys, starts)
    ranges = ranges_of_parts(rows, starts, commit_time=context.instant, texts=True)
    row_bytes = rows.nbytes // max(1, rows.num_rows)
    files: list[tuple[str, memoryview]] = []
    for n, task in enumerate(tasks):
        start, count = starts[n], starts[n + 1] - starts[n]
        if not 0 < count <= min(FEW_ROWS, entries):
            continue
        sink = pa.BufferOutputStream()
        writer = new_parquet(sink, rows.schema, options, rows_bytes=count * row_bytes)
        writer.write_table(rows.slice(start, count))
        writer.add_key_value_metadata(footer_entries(blooms[n], bounds[n], avro))
        writer.close()
        data = sink.getvalue()
        files.append((join(context.staging, names[n]), memoryview(data)))
        held = keys.slice(start, count)
        # Copied: a slice would keep the keys of all these files in memory.
        held_keys = pa.concat_arrays([held]) if held.nbytes < context.held_key_bytes else None
        results[n] = create_result(context, task, names[n], count, data.size, ranges[n], held_keys)
    stage_all(storage, files, folder=context.staging)
    return results
