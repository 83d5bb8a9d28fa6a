"""The schema in a table's files, for tables whose commits and properties state none: some writers leave it out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from hoodie.errors import MissingFileError
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.format.avro_schema import avro_from_arrow
from hoodie.format.base_file import read_footer
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.parquet_file import stored_schema
from hoodie.model.enums import HeaderKey
from hoodie.model.meta_fields import without_meta_fields
from hoodie.model.payloads import WriteStat
from hoodie.storage.base import Storage


class _StoredFile(NamedTuple):
    path: str
    size_bytes: int
    instant: str = ""


def schema_json_of_files(storage: Storage, stats: Iterable[WriteStat]) -> str | None:
    """The Avro schema of a file that a commit wrote: of a base file, else of a log; None where none is there any more."""
    written = sorted(stats, key=lambda stat: stat.log_version is not None)
    for stat in written:
        try:
            result = _of_base_file(storage, stat) if stat.log_version is None else _of_log(storage, stat)
        except (MissingFileError, FileNotFoundError):
            continue  # cleaned
        if result is not None:
            return result
    return None


def _of_base_file(storage: Storage, stat: WriteStat) -> str:
    with open_base_file(storage, _StoredFile(stat.path, stat.file_size_bytes)) as (file, metadata):
        schema_json = read_footer(metadata, path=stat.path).avro_schema_json
        if schema_json is not None:
            return schema_json
        return json.dumps(avro_from_arrow(without_meta_fields(stored_schema(file)), table_name="table"))


def _of_log(storage: Storage, stat: WriteStat) -> str | None:
    """Of the newest data block with all columns."""
    result = None
    for block in scan_blocks(storage.read(stat.path)):
        if isinstance(block, LogBlock) and block.header.get(HeaderKey.IS_PARTIAL, "").lower() != "true":
            result = block.header.get(HeaderKey.SCHEMA) or result
    return result
