"""Payloads of data blocks: Avro records, or one Parquet file."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.format.avro_codec import decode_records
from hoodie.format.avro_encode import encode_batches, frame_heads
from hoodie.format.avro_schema import AvroType, record_type
from hoodie.format.avro_wire import Column, Ints, data_of, join, offsets_in
from hoodie.format.base_file import AVRO_SCHEMA
from hoodie.format.cursor import Cursor, i32
from hoodie.format.delete_codec import decode_deletes, encode_deletes
from hoodie.format.parquet_file import open_parquet, parquet_writer, read_batches, row_bytes
from hoodie.format.vectors import stored

__all__ = [
    "avro_data_pieces",
    "decode_avro_data",
    "decode_deletes",
    "decode_parquet_data",
    "encode_avro_contents",
    "encode_avro_data",
    "encode_deletes",
    "encode_parquet_data",
    "field_names",
    "parquet_data_pieces",
    "record_bounds",
    "record_count",
]

VERSION = 3
"""Of data and delete blocks, as Hudi writes them since 0.14."""
_READABLE = (1, 2, 3)
_PARQUET_MAGIC = b"PAR1"
_BATCH_ROWS = 1 << 20
_FIRST_RECORD = 8
"""Behind version and record count."""


def encode_avro_data(table: pa.Table, record: AvroType) -> bytes:
    """The content of an Avro data block.

    Layout (big-endian): version i32 = 3 | record count i32 | for each record: length i32, Avro binary.

    Raises:
        SchemaError: the columns do not fit the schema; see `encode_records`.
    """
    if table.num_rows >= 1 << 31:
        raise SchemaError(f"{table.num_rows} records are too many for one log block; split them")
    content: list[bytes | memoryview] = [i32(VERSION), i32(table.num_rows)]
    for records in encode_batches(table, record, framed=True):
        bounds = offsets_in(records)
        content.append(memoryview(data_of(records))[bounds[0] : bounds[-1]])
    return b"".join(content)


def framed_avro_data(records: Column) -> bytes:
    """The content of an Avro data block of records that are encoded."""
    framed = join([frame_heads([records]), records])
    bounds = offsets_in(framed)
    return b"".join((i32(VERSION), i32(len(records)), memoryview(data_of(framed))[bounds[0] : bounds[-1]]))


def encode_avro_contents(table: pa.Table, record: AvroType, counts: Sequence[int]) -> list[bytes]:
    """`encode_avro_data` of so many rows after each other; one that has none is empty."""
    parts: list[memoryview] = []
    ends: list[Ints] = [np.zeros(1, np.int64)]
    for records in encode_batches(table, record, framed=True):
        bounds = offsets_in(records)
        parts.append(memoryview(data_of(records))[bounds[0] : bounds[-1]])
        ends.append(bounds[1:] - bounds[0] + ends[-1][-1])
    data = memoryview(b"".join(parts))
    cuts = np.concatenate(ends)[np.cumsum([0, *counts])].tolist()
    return [
        b"".join((i32(VERSION), i32(count), data[start:end])) if count else b""
        for count, (start, end) in zip(counts, pairwise(cuts), strict=True)
    ]


def field_names(schema_text: str) -> list[str]:
    """The columns of a data block, by its SCHEMA header."""
    return [name for name, _ in record_type(schema_text).fields]


def decode_avro_data(content: memoryview | bytes, schema_text: str, columns: Collection[str] | None = None) -> pa.Table:
    """The records of an Avro data block; `schema_text` is the block's SCHEMA header.

    Columns and types are those of the writer's schema (`arrow_from_avro`), only `columns` where they are given.
    Block versions 1 to 3 share one layout.

    Raises:
        CorruptFileError: the content is not whole records of that schema, to its last byte.
        UnsupportedTableError: another block version, or a schema that is not read.
    """
    (table,) = avro_data_pieces(content, schema_text, columns)
    return table


def avro_data_pieces(
    content: memoryview | bytes,
    schema_text: str,
    columns: Collection[str] | None = None,
    *,
    piece_bytes: int | None = None,
) -> Iterator[pa.Table]:
    """As `decode_avro_data`, in pieces of about so many bytes; one piece where it is None."""
    record = record_type(schema_text)
    if piece_bytes is None:
        starts, ends = record_bounds(content)
        yield decode_records(content, starts, ends, record, columns)
        return
    count = record_count(content)
    view, at = memoryview(content).cast("B"), _FIRST_RECORD
    while count:
        starts, ends, after = _frames(view, count, at=at, most_bytes=piece_bytes)
        count, at = count - len(starts), after
        yield decode_records(view, starts, ends, record, columns)
    _check_end(view, at)


def record_bounds(content: memoryview | bytes) -> tuple[Ints, Ints]:
    """Start and end of each record in the content of an Avro data block.

    Raises:
        CorruptFileError, UnsupportedTableError: as `decode_avro_data`.
    """
    count = record_count(content)
    view = memoryview(content).cast("B")
    starts, ends, after = _frames(view, count)
    _check_end(view, after)
    return starts, ends


def record_count(content: memoryview | bytes) -> int:
    """How many records an Avro data block has, by its own word.

    Raises:
        CorruptFileError, UnsupportedTableError: as `decode_avro_data`.
    """
    cursor = Cursor(content)
    version = cursor.i32("version of an Avro data block")
    if version not in _READABLE:
        raise UnsupportedTableError(f"Avro data block of version {version}; versions 1 to {VERSION} are read")
    count = cursor.i32("record count of an Avro data block")
    if not 0 <= count <= cursor.remaining // 4:
        raise CorruptFileError(f"an Avro data block of {len(content)} bytes claims {count} records")
    return count


def _frames(
    content: memoryview, count: int, *, at: int = _FIRST_RECORD, most_bytes: int | None = None
) -> tuple[Ints, Ints, int]:
    """Start and end of each record from `at` on, and where the next one begins; no more records once there are so many bytes.

    A row loop: only a record's length says where the next begins (0.1 µs each).
    """
    length_at = struct.Struct(">i").unpack_from
    stop = None if most_bytes is None else at + most_bytes
    starts = []
    try:
        for _ in range(count):
            (length,) = length_at(content, at)
            at += 4
            starts.append(at)
            at += length
            if stop is not None and at >= stop:
                break
    except struct.error as exc:
        raise CorruptFileError(f"an Avro data block of {len(content)} bytes ends within its {count} records") from exc
    begin = np.array(starts, dtype=np.int64)
    end = np.append(begin[1:] - 4, at)[: len(begin)]
    if (end < begin).any():
        raise CorruptFileError("an Avro data block has a record of negative length")
    if at > len(content):
        raise CorruptFileError(f"an Avro data block of {len(content)} bytes ends within its {count} records")
    return begin, end, at


def _check_end(content: memoryview, at: int) -> None:
    if at != len(content):
        raise CorruptFileError(f"the records of an Avro data block end at byte {at} of {len(content)}")


def encode_parquet_data(
    table: pa.Table, avro: Mapping[str, Any], *, compression: str, dictionaries: Sequence[str]
) -> memoryview:
    """The content of a Parquet data block: one whole Parquet file with the table's rows.

    Its footer has the Avro schema, as the files of Hudi's writers do: their readers take the names and logical types of
    records from it. `dictionaries`: leaf paths of the columns that get one.
    """
    sink = pa.BufferOutputStream()
    table = stored(table)
    writer = parquet_writer(
        sink,
        table.schema,
        compression=compression,
        store_schema=False,
        use_dictionary=list(dictionaries),
        write_statistics=False,  # nobody skips row groups of a log: the newest row of a key decides
        write_page_checksum=True,  # zstd by itself does not notice a flipped bit
    )
    writer.write_table(table, row_group_size=_BATCH_ROWS)
    writer.add_key_value_metadata({AVRO_SCHEMA: json.dumps(avro, separators=(",", ":"))})
    writer.close()
    return memoryview(sink.getvalue())


def decode_parquet_data(
    content: memoryview | bytes, schema_text: str | None = None, columns: Collection[str] | None = None
) -> pa.Table:
    """The records of a Parquet data block: one whole Parquet file, meta columns included.

    Args:
        schema_text: the block's SCHEMA header; its columns must be those of the file.
        columns: only these are decoded, those of them that the file has.

    Raises:
        CorruptFileError: it is not a whole Parquet file, or its columns are not those that the header says.
    """
    (table,) = parquet_data_pieces(content, schema_text, columns)
    return table


def parquet_data_pieces(
    content: memoryview | bytes,
    schema_text: str | None = None,
    columns: Collection[str] | None = None,
    *,
    piece_bytes: int | None = None,
) -> Iterator[pa.Table]:
    """As `decode_parquet_data`, in pieces of about so many decoded bytes; one piece where it is None."""
    view = memoryview(content)
    if view[:4] != _PARQUET_MAGIC or view[-4:] != _PARQUET_MAGIC:
        raise CorruptFileError(f"a Parquet data block of {len(view)} bytes is not a whole Parquet file")
    what = f"a Parquet data block of {len(view)} bytes"
    with open_parquet(pa.BufferReader(pa.py_buffer(content)), path=what) as file:
        stored = file.schema_arrow
        if schema_text is not None:
            apart = sorted(set(field_names(schema_text)).symmetric_difference(stored.names))
            if apart:
                raise CorruptFileError(f"{what} has other columns than its header says ({', '.join(apart[:4])})")
        part = pa.schema([field for field in stored if columns is None or field.name in columns])
        rows = _BATCH_ROWS
        if piece_bytes is not None:
            rows = max(1, min(rows, int(piece_bytes / row_bytes(file, path=what))))
        batches = read_batches(file, part.names, batch_rows=rows, path=what, threads=piece_bytes is None)
        if piece_bytes is None:
            yield pa.Table.from_batches(list(batches), part).replace_schema_metadata(None)
            return
        yield from (pa.Table.from_batches([batch]).replace_schema_metadata(None) for batch in batches)
