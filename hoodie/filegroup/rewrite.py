"""Rows of a file slice on their way into the next base file of their group: for compaction and copy-on-write."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import pyarrow as pa

from hoodie.filegroup.conform import conform
from hoodie.filegroup.slice_reader import (
    MIN_BATCH_ROWS,
    SliceMerge,
    base_batches,
    log_records,
    merge_columns,
    open_base_file,
    with_encoded,
)
from hoodie.format.base_file import BaseFileFooter, read_footer
from hoodie.format.parquet_file import plain_columns, row_bytes
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.plans import ReadContext
from hoodie.storage.base import Storage

REWRITE_BYTES = 16 * 1024 * 1024
"""Bytes of a base file's batches: large, for each costs a look at the newer records' keys."""


class Carried(NamedTuple):
    """Merged rows, and what the writer of the next base file wants to know of the one before."""

    rows: pa.RecordBatch
    before: BaseFileFooter | None = None
    """With the first batch the footer of the base file; later None, so that a large file's filter is not held until the end."""
    plain: Collection[str] = ()
    """Leaf paths of the columns that have no dictionary in it."""
    new: bool = False
    """The rows have keys that the base file has not."""


def read_for_rewrite(
    storage: Storage, context: ReadContext, file_slice: FileSlice, schema: pa.Schema, *, encode: Collection[str] = ()
) -> Iterator[Carried]:
    """Merged rows of a slice with the columns of `schema`, as `slice_reader.read_slice` has them.

    Args:
        encode: columns that may come as dictionary arrays: those whose values nobody looks at on the way.
    """
    merge, wanted = None, schema
    if file_slice.logs:
        wanted = merge_columns(schema, context.rule, context.schema)
        merge = SliceMerge(log_records(storage, context, file_slice, wanted), context.rule)
    for carried in _merged(storage, file_slice.base, wanted, merge, encode):
        yield carried if wanted.names == schema.names else carried._replace(rows=carried.rows.select(schema.names))


def _merged(
    storage: Storage, base: BaseFile | None, schema: pa.Schema, merge: SliceMerge | None, encode: Collection[str]
) -> Iterator[Carried]:
    if base is not None:
        where = f"{base.path} of table {storage.uri}"
        with open_base_file(storage, base, encode=encode) as (file, metadata):
            before: BaseFileFooter | None = read_footer(metadata, path=where)
            plain = plain_columns(metadata)
            encoded = with_encoded(schema, file.schema_arrow)
            at_least = MIN_BATCH_ROWS if merge is None else merge.batch_rows
            rows = max(at_least, int(REWRITE_BYTES / row_bytes(file, path=where)))
            for batch in base_batches(file, schema.names, size_bytes=base.size_bytes, batch_rows=rows, path=where):
                whole = conform(batch, encoded, path=where)
                for part in (whole,) if merge is None else merge.replaced(whole):
                    yield Carried(part, before, plain)
                before = None
    if merge is not None:
        for part in merge.fresh():
            yield Carried(part, new=True)
