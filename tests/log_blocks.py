"""Blocks of log files, as tests write them."""

import json

import pyarrow as pa

from hoodie.format.avro_schema import avro_from_arrow, resolve_record, with_meta_columns
from hoodie.format.log_block import encode_block
from hoodie.format.log_content import encode_avro_data, encode_deletes, encode_parquet_data
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.instant import InstantTime
from hoodie.model.meta_fields import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY, with_meta_fields

COLUMNS = pa.schema([("ts", pa.int64()), ("val", pa.string()), ("_hoodie_is_deleted", pa.bool_())])


def t(number):
    return InstantTime(f"20260101000000{number:03d}")


def data(number, *rows, schema=COLUMNS, of=(), partial=False, kind=BlockKind.AVRO_DATA, partition=""):
    """A data block of instant `number`; rows are (key, ts, val[, deleted]), or (key, values of the schema)."""
    full = with_meta_fields(schema)
    values = [
        {
            **dict.fromkeys(META_COLUMNS, ""),
            COMMIT_TIME: t(number),
            RECORD_KEY: row[0],
            PARTITION_PATH: partition,
            **dict(zip(schema.names, (*row[1:], None))),
        }
        for row in rows
    ]
    avro = with_meta_columns(avro_from_arrow(schema, table_name="t"))
    header = {HeaderKey.INSTANT_TIME: t(number), HeaderKey.SCHEMA: json.dumps(avro)}
    if of:
        header[HeaderKey.COMPACTED_BLOCK_TIMES] = ",".join(map(t, of))
    if partial:
        header[HeaderKey.IS_PARTIAL] = "true"
    table = pa.Table.from_pylist(values, schema=full)
    if kind is BlockKind.PARQUET_DATA:
        return encode_block(kind, header, encode_parquet_data(table, avro, compression="none", dictionaries=[]))
    return encode_block(kind, header, encode_avro_data(table, resolve_record(avro)))


def deletes(number, *rows, partition=""):
    """A delete block; rows are (key, ts or None)."""
    keys = pa.array([key for key, _ in rows])
    ordering = pa.array([ts for _, ts in rows], pa.int64())
    content = encode_deletes(keys, pa.array([partition] * len(rows)), ordering)
    return encode_block(BlockKind.DELETE, {HeaderKey.INSTANT_TIME: t(number)}, content)
