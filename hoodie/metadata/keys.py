"""Partitions of a metadata table, the keys of their records, and the file group that holds a key.

| partition      | file ids             | key of a record                                               |
|----------------|----------------------|---------------------------------------------------------------|
| files          | `files-0000-0`       | a partition path; `__all_partitions__`                        |
| column_stats   | `col-stats-NNNN-0`   | hash of the column, of the partition path, of the file's name |
| partition_stats | `partition-stats-NNNN-0` | hash of the column, of the partition path                |
| bloom_filters  | `bloom-filters-NNNN-0` | hash of the partition path, of the file's name              |
| record_index   | `record-index-NNNN-0`; one by partitions: `data_groups.py` | a record key            |
| expr_index_X   | `expr-index-X-NNNN-0` | as of column_stats or bloom_filters; for a partition: `expression_partition_key` |
| secondary_index_X | `secondary-index-X-NNNN-0` | a value of its column and a record key, as `secondary_keys.py` has it |

Hashes stand as base64: xxHash64 of a column and of a partition path, MD5 of a file's name. The path of a table without
partitions is `.`. A key lies in the file group that its Java hash code chooses.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.hashes.of_buckets import text_hashes
from hoodie.hashes.xxhash64 import xxhash64
from hoodie.model.names import folder_of, name_of

FILES = "files"
COLUMN_STATS = "column_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"
PARTITION_STATS = "partition_stats"
SECONDARY_INDEX = "secondary_index_"
"""In front of the name that a user gave to an index of a column's values."""
EXPRESSION_INDEX = "expr_index_"
"""In front of the name that a user gave to an index of an expression."""
PARTITIONS = (FILES, COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX)
"""Those that version 6 has, and that are read."""
ALL_PARTITIONS = "__all_partitions__"
_UNPARTITIONED = "."
_OF_PARTITION = "__partition_stat__"
_FILE_ID = {
    FILES: "files",
    COLUMN_STATS: "col-stats",
    BLOOM_FILTERS: "bloom-filters",
    RECORD_INDEX: "record-index",
    PARTITION_STATS: "partition-stats",
}
_HASHES_KEPT = 1 << 16


def identifier_of(partition_path: str) -> str:
    """What stands in the metadata table for a partition path."""
    return partition_path or _UNPARTITIONED


def partition_of(identifier: str) -> str:
    """The inverse of `identifier_of`."""
    return "" if identifier == _UNPARTITIONED else identifier


def stats_keys(paths: Sequence[str], column: str) -> pa.Array[Any]:
    """The keys of a column's statistics in these files, whose paths are relative to the table."""
    head = _short_hash(column)
    return pa.array([head + key for key in _file_keys(paths)], pa.string())


def partition_keys(partition_path: str, columns: Sequence[str]) -> list[str]:
    """The keys of the statistics of these columns in a partition."""
    return [_short_hash(column) + _short_hash(identifier_of(partition_path)) for column in columns]


def expression_partition_key(partition_path: str, column: str) -> str:
    """The key of what an expression index with bounds says of a partition."""
    return _short_hash(column) + _short_hash(_OF_PARTITION) + _short_hash(identifier_of(partition_path))


def bloom_keys(paths: Sequence[str]) -> pa.Array[Any]:
    """The keys of the bloom filters of these base files, whose paths are relative to the table."""
    return pa.array(_file_keys(paths), pa.string())


def group_numbers(keys: pa.Array[Any], count: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each key the number of its file group, of `count`, which may differ from key to key."""
    if isinstance(count, int) and count == 1:
        return np.zeros(len(keys), np.int64)
    counts: npt.NDArray[np.int64] = np.asarray(count, np.int64)
    numbers: npt.NDArray[np.int64] = np.abs(text_hashes(keys).view(np.int32).astype(np.int64)) % counts
    return numbers


def group_number(file_id: str, partition: str) -> int | None:
    """The number in the file id of a partition's file group; None where it is not of the form that version 6 has."""
    match = re.fullmatch(rf"{re.escape(_file_id(partition))}-([0-9]{{4,9}})(-0)?", file_id)
    return int(match[1]) if match else None


def file_id_of(partition: str, number: int) -> str:
    """The file id of a partition's file group."""
    return f"{_file_id(partition)}-{number:04d}-0"


def file_ids(partition: str, count: int) -> list[str]:
    """The file ids of all file groups of a partition that has so many."""
    return [file_id_of(partition, number) for number in range(count)]


def _file_id(partition: str) -> str:
    return _FILE_ID.get(partition) or partition.replace("_", "-")


def _file_keys(paths: Sequence[str]) -> list[str]:
    return [_short_hash(identifier_of(folder_of(path))) + _name_hash(name_of(path)) for path in paths]


@lru_cache(_HASHES_KEPT)
def _short_hash(text: str) -> str:
    return b64encode(xxhash64(text).to_bytes(8, "big")).decode()


def _name_hash(name: str) -> str:
    return b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()
