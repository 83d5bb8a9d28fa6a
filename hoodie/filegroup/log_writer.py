"""Write one log file: data and delete blocks of one instant for one file group."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hoodie.filegroup.ordering import stored_ordering
from hoodie.filegroup.staging import open_staged
from hoodie.format.log_block import encode_block
from hoodie.format.log_content import encode_avro_data, encode_deletes
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import MergeRule
from hoodie.storage.base import Storage


def write_log_file(
    storage: Storage,
    staged: str,
    *,
    folder: str,
    instant: str,
    avro: Mapping[str, Any],
    data: pa.Table,
    deletes: pa.Table,
    rule: MergeRule,
    max_block_bytes: int,
) -> int:
    """Write data blocks, then a delete block, as one file; gives its size in bytes.

    Args:
        avro: writer schema of the data, with the meta columns.
        data: rows with the meta columns.
        deletes: `_hoodie_record_key`, `_hoodie_partition_path` and the ordering fields' columns (null: always wins).
    """
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: json.dumps(avro, separators=(",", ":"))}
    size = 0
    with open_staged(storage, staged, folder=folder) as file:
        for part in _parts(data, max_block_bytes):
            size += file.write(encode_block(BlockKind.AVRO_DATA, header, encode_avro_data(part, avro)))
        if deletes.num_rows:
            content = encode_deletes(
                deletes.column(RECORD_KEY), deletes.column(PARTITION_PATH), stored_ordering(deletes, rule)
            )
            size += file.write(encode_block(BlockKind.DELETE, header, content))
    return size


def _parts(data: pa.Table, max_block_bytes: int) -> Iterator[pa.Table]:
    if not data.num_rows:
        return
    rows = max(1, data.num_rows * max_block_bytes // max(data.nbytes, 1))
    for start in range(0, data.num_rows, rows):
        yield data.slice(start, rows)
