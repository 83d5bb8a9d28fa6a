"""Partition columns whose values Spark takes from the folders of hive-style tables in Connect, so that a later filter prunes.

The values come from elsewhere than the files then. So it is done only where both are sure to be the same: the commits that wrote
the files state that both bounds of the column are that value, and nothing is null; and the folder's text must make that value,
and the value again the text. All other files are read as ever. Classic sessions have better (`file_index.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from hoodie.keygen.partition_values import ranges_of_paths
from hoodie.model.statistics import ValueRange
from hoodie.read.dead_rows import FinalFile
from hoodie.read.file_ranges import FileRanges
from hoodie.txn.context import TableContext

PLAIN = {"recursiveFileLookup": "true"}
"""No columns from folder names."""


class Grouped(NamedTuple):
    """Files of one scan, and what tells its reader how to take their folders."""

    files: list[FinalFile]
    options: dict[str, str]


def by_folders(context: TableContext, schema: pa.Schema, files: Sequence[FinalFile]) -> list[Grouped]:
    """The files in at most two groups: those whose partition columns, all of them in `schema`, folders stand for, and others."""
    config = context.config
    kinds = {field.name: field.type for field in schema if field.name in config.partition_fields}
    root = context.storage.local_path("")
    able = config.hive_style and root is not None and kinds and len(kinds) == len(config.partition_fields)
    if not able or not all(_has_same_text(kind) for kind in kinds.values()) or "%" in "".join(kinds):
        return [Grouped(list(files), PLAIN)]
    folders = [file.path.rpartition("/")[0] for file in files]
    distinct = list(dict.fromkeys(folders))
    place = {folder: at for at, folder in enumerate(distinct)}
    values = ranges_of_paths(config, kinds, distinct)
    stated = FileRanges(context.storage, context.snapshot(), kinds)
    sure: list[FinalFile] = []
    others: list[FinalFile] = []
    for file, folder in zip(files, folders, strict=True):
        says = {name: each[place[folder]] for name, each in values.items()}
        holds = stated.of_file(file.path.rpartition("/")[2], file.instant)
        # Spark reads %20 as a space, whether the table writes it so or not.
        exact = config.url_encode or "%" not in folder
        known = holds is not None and exact and len(says) == len(kinds)
        same = known and all(_is_same(says[name], each) for name, each in (holds or {}).items())
        (sure if same else others).append(file)
    groups = [Grouped(sure, {"basePath": f"file:{root}"}), Grouped(others, PLAIN)]
    return [group for group in groups if group.files]


def _has_same_text(kind: pa.DataType) -> bool:
    """Types that Spark makes of a folder's text as this package and Apache Hudi make the text of them."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_int32(kind) or types.is_int64(kind) or types.is_date32(kind))


def _is_same(path: ValueRange, file: ValueRange) -> bool:
    if not path.values:
        return not file.values  # Spark makes null of the default partition
    return path.low is not None and path.low == path.high == file.low == file.high and not (path.nulls or file.nulls)
