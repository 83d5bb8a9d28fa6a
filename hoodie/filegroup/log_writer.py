"""Write one log file: data and delete blocks of one instant for one file group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.filegroup.base_writer import dictionary_columns
from hoodie.filegroup.conform import conform
from hoodie.filegroup.ordering import stored_ordering
from hoodie.filegroup.positions import Positions
from hoodie.filegroup.staging import open_staged
from hoodie.format.avro_schema import record_type, schema_text
from hoodie.format.log_block import encode_block
from hoodie.format.log_content import encode_avro_contents, encode_avro_data, encode_deletes, encode_parquet_data
from hoodie.format.variants import STORED_VARIANT, schema_with
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.meta_fields import COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from hoodie.model.names import join
from hoodie.model.plans import FileOptions, WriteContext
from hoodie.storage.base import Storage

_SAMPLE_ROWS = 1024
"""Rows by which a log's columns get dictionaries: logs are small, and the count of different values costs as much as writing them."""


def write_log_file(
    storage: Storage,
    context: WriteContext,
    name: str,
    *,
    avro: Mapping[str, Any],
    data: pa.Table,
    deletes: pa.Table,
    content: bytes | None = None,
    partial: bool = False,
    positions: Positions | None = None,
    later: list[tuple[str, bytes | memoryview]] | None = None,
) -> int:
    """Write data blocks, then a delete block, as one file in the staging folder; gives its size in bytes.

    Args:
        avro: writer schema of the data, with the meta columns.
        data: rows with the meta columns, all of this instant and with one file name.
        deletes: `_hoodie_record_key`, `_hoodie_partition_path` and the ordering fields' columns (null: always wins).
        content: of the one block that has the data, where it is encoded already.
        partial: the data have some of the table's columns only.
        positions: of data and deletes, which are in the order of their places then.
        later: gets the file in place of the staging folder; who gives it writes many at once.
    """
    header = {HeaderKey.INSTANT_TIME: context.instant, HeaderKey.SCHEMA: schema_text(avro)}
    if partial:
        header[HeaderKey.IS_PARTIAL] = "true"
    # Most logs have none, and most logs are small.
    ordering = stored_ordering(deletes, context.rule) if deletes.num_rows else None
    delete_records = Deletes(deletes.column(RECORD_KEY), deletes.column(PARTITION_PATH), ordering)
    same = _OF_ONE_WRITE if context.unstored is None else ()  # null, without `_hoodie_` columns
    blocks = encode_blocks(
        data,
        delete_records,
        header=header,
        avro=avro,
        options=context.files,
        same=same,
        content=content,
        positions=positions,
    )
    staged = join(context.staging, name)
    if later is not None:
        later.append((staged, b"".join(blocks)))
        return len(later[-1][1])
    with open_staged(storage, staged, folder=context.staging) as file:
        return sum(map(file.write, blocks))


_OF_ONE_WRITE = (COMMIT_TIME, FILE_NAME)


class Deletes(NamedTuple):
    """Keys that a delete block takes away."""

    keys: pa.Array | pa.ChunkedArray
    partition_paths: pa.Array | pa.ChunkedArray
    ordering: pa.Array | None
    """As `ordering.stored_ordering` has it."""


def encode_blocks(
    data: pa.Table,
    deletes: Deletes,
    *,
    header: Mapping[HeaderKey, str],
    avro: Mapping[str, Any],
    options: FileOptions,
    same: Sequence[str],
    content: bytes | None = None,
    positions: Positions | None = None,
) -> Iterator[bytes]:
    """Data blocks, then a delete block; without those that would be empty. `same`: columns that have one value in all rows."""
    encoded: Iterable[tuple[bytes | memoryview, int]] = ((content, data.num_rows),) if content else ()
    if content is None:
        encoded = _contents(data, avro, header[HeaderKey.SCHEMA], options, same)
    start = 0
    for each, rows in encoded:
        places = {} if positions is None else positions.of_data(start, rows)
        yield encode_block(options.block_kind, {**header, **places}, each)
        start += rows
    if len(deletes.keys):
        places = {} if positions is None else positions.of_deletes()
        yield encode_block(BlockKind.DELETE, {**header, **places}, encode_deletes(*deletes))


def encode_contents(
    context: WriteContext, avro: Mapping[str, Any], data: pa.Table, counts: Sequence[int]
) -> list[bytes] | None:
    """Of the data blocks of several logs, of so many rows each; None where they are not encoded together."""
    if context.files.block_kind is not BlockKind.AVRO_DATA or data.nbytes > context.files.max_block_bytes:
        return None
    return encode_avro_contents(data, record_type(schema_text(avro)), counts)


def _contents(
    data: pa.Table, avro: Mapping[str, Any], schema_text: str, options: FileOptions, same: Sequence[str]
) -> Iterator[tuple[bytes | memoryview, int]]:
    """The contents of the data blocks, and how many rows each has. They are cut by what rows take in memory, as Hudi does."""
    if options.block_kind is BlockKind.AVRO_DATA:
        record = record_type(schema_text)
        for part in _parts(data, options.max_block_bytes):
            yield encode_avro_data(part, record), part.num_rows
        return
    data = conform(data, schema_with(data.schema, STORED_VARIANT), path="a log")
    dictionaries = dictionary_columns(data.slice(0, _SAMPLE_ROWS))
    for part in _parts(data, options.max_block_bytes):
        for name in same:
            part = _with_one_value(part, name)
        yield encode_parquet_data(part, avro, compression=options.compression, dictionaries=dictionaries), part.num_rows


def _parts(data: pa.Table, max_block_bytes: int) -> Iterator[pa.Table]:
    if not data.num_rows:
        return
    rows = max(1, data.num_rows * max_block_bytes // max(data.nbytes, 1))
    for start in range(0, data.num_rows, rows):
        yield data.slice(start, rows)


def _with_one_value(rows: pa.Table, name: str) -> pa.Table:
    """The rows with a column that has the same value in all of them as a dictionary array: that is not hashed again."""
    at = rows.schema.get_field_index(name)
    value = rows.column(name).slice(0, 1).combine_chunks()
    column = pa.DictionaryArray.from_arrays(np.zeros(rows.num_rows, np.int32), value)
    return rows.set_column(at, rows.schema.field(at).with_type(column.type), column)
