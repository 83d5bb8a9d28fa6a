"""Partition columns whose values Spark has from elsewhere than the files: it prunes by them, also by what a join finds as it runs.

So it is done only where both are sure to be the same: the commits that wrote the files state that both bounds of the column are
that value, and nothing is null. In classic sessions that is enough, whatever the folders are called, if it holds for all files of a
scan. In Connect, Spark takes the values from the folders of hive-style tables: there the folder's text must make that value, too,
and the value again the text; all other files are a scan of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from hoodie.keygen.partition_values import ranges_of_paths
from hoodie.model.names import folder_of, name_of
from hoodie.model.statistics import ValueRange
from hoodie.read.deletion_vectors import ScanFile
from hoodie.read.file_ranges import FileRanges
from hoodie.view.context import TableContext

PLAIN = {"recursiveFileLookup": "true"}
"""No columns from folder names."""


class FileGrouping(NamedTuple):
    """Files of one scan, and what tells its reader how to take their folders."""

    files: list[ScanFile]
    options: dict[str, str]


class PartitionValues(NamedTuple):
    columns: tuple[str, ...]
    folders: dict[str, tuple[object, ...]]
    """Folder -> the values of the columns in all rows of its files."""


_VALUES = (pa.string(), pa.int32(), pa.int64(), pa.date32(), pa.bool_())
"""Types whose bounds, when they are equal, are the one value: not floats, where NaN is outside of any bounds."""


def stated_values(context: TableContext, schema: pa.Schema, files: Sequence[ScanFile]) -> PartitionValues:
    """Partition columns of which commits state the one value in each folder; none unless that is so for all files."""
    names = dict.fromkeys(context.config.partition_fields)
    kinds = {field.name: field.type for field in schema if field.name in names and field.type in _VALUES}
    if not kinds or any(file.copy_of for file in files):  # a row copy has rows of several partitions
        return PartitionValues((), {})
    ranges_of = FileRanges(context.storage, context.snapshot(), kinds)
    columns = list(kinds)
    folders: dict[str, dict[str, object]] = {}
    for file in files:
        folder, _, name = file.path.rpartition("/")
        ranges = ranges_of.of_file(name, file.instant) or {}
        values = {column: _the_value(ranges[column]) for column in columns if column in ranges}
        before = folders.setdefault(folder, values)
        columns = [column for column in columns if values.get(column, _NO_VALUE) is not _NO_VALUE]
        columns = [column for column in columns if before[column] == values[column]]
        if not columns:
            break
    if not columns:
        return PartitionValues((), {})
    return PartitionValues(
        tuple(columns), {folder: tuple(values[column] for column in columns) for folder, values in folders.items()}
    )


_NO_VALUE = object()


def _the_value(value_range: ValueRange) -> object:
    """The one value of all rows, None where all are null."""
    if not value_range.values:
        return None
    same = value_range.low is not None and value_range.low == value_range.high and not value_range.nulls
    return value_range.low if same and not (isinstance(value_range.low, str) and "\0" in value_range.low) else _NO_VALUE


def by_folders(context: TableContext, schema: pa.Schema, files: Sequence[ScanFile]) -> list[FileGrouping]:
    """The files in at most two groups: those whose partition columns, all of them in `schema`, folders stand for, and others."""
    config = context.config
    kinds = {field.name: field.type for field in schema if field.name in config.partition_fields}
    root = context.storage.can.local_root
    able = config.hive_style and root is not None and kinds and len(kinds) == len(config.partition_fields)
    if not able or not all(_has_same_text(kind) for kind in kinds.values()) or "%" in "".join(kinds):
        return [FileGrouping(list(files), PLAIN)]
    folders = [folder_of(file.path) for file in files]
    distinct = list(dict.fromkeys(folders))
    place = {folder: at for at, folder in enumerate(distinct)}
    values = ranges_of_paths(config, kinds, distinct)
    ranges_of = FileRanges(context.storage, context.snapshot(), kinds)
    sure: list[ScanFile] = []
    others: list[ScanFile] = []
    for file, folder in zip(files, folders, strict=True):
        says = {name: each[place[folder]] for name, each in values.items()}
        holds = ranges_of.of_file(name_of(file.path), file.instant)
        # Spark reads %20 as a space, whether the table writes it so or not.
        exact = config.url_encode or "%" not in folder
        is_certain = holds is not None and exact and len(says) == len(kinds)
        same = is_certain and all(_is_same(says[name], each) for name, each in (holds or {}).items())
        (sure if same else others).append(file)
    groups = [FileGrouping(sure, {"basePath": f"file:{root}"}), FileGrouping(others, PLAIN)]
    return [group for group in groups if group.files]


def _has_same_text(kind: pa.DataType) -> bool:
    """Types that Spark makes of a folder's text as this package and Apache Hudi make the text of them."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_int32(kind) or types.is_int64(kind) or types.is_date32(kind))


def _is_same(path: ValueRange, file: ValueRange) -> bool:
    if not path.values:
        return not file.values  # Spark makes null of the default partition
    return path.low is not None and path.low == path.high == file.low == file.high and not (path.nulls or file.nulls)
