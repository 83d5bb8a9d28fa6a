"""Partition columns whose values Spark may know before it reads, so that a later filter prunes in its own file index.

The values come from elsewhere than the files then. So it is done only where both are sure to be the same: the commits that wrote
the files state that both bounds of the column are that value, and nothing is null. In classic sessions these statements are
enough, whatever the folders are called (`file_index.py`). In Connect, Spark takes the values from the folders of hive-style
tables: there the folder's text must make that value, too, and the value again the text. All other files are read as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from hoodie.keygen.partition_values import ranges_of_paths
from hoodie.model.names import ROW_COPIES
from hoodie.model.statistics import ValueRange
from hoodie.read.dead_rows import FinalFile
from hoodie.read.file_ranges import FileRanges, Known
from hoodie.txn.context import TableContext
from pyspark_hoodie.file_index import can_hold, can_tell

_PLAIN = {"recursiveFileLookup": "true"}
"""No columns from folder names."""


class Grouped(NamedTuple):
    """Files of one scan, and what tells its reader how to take their folders."""

    files: list[FinalFile]
    options: dict[str, str]
    values: dict[str, tuple[object, ...]] | None = None
    """Folder -> what commits state of `columns` in each of its files here."""
    columns: tuple[str, ...] = ()


def by_folders(context: TableContext, schema: pa.Schema, files: Sequence[FinalFile]) -> list[Grouped]:
    """The files in at most two groups: those whose partition columns, all of them in `schema`, folders stand for, and others."""
    config = context.config
    kinds = {field.name: field.type for field in schema if field.name in config.partition_fields}
    root = context.storage.local_path("")
    able = config.hive_style and root is not None and kinds and len(kinds) == len(config.partition_fields)
    if not able or not all(_has_same_text(kind) for kind in kinds.values()) or "%" in "".join(kinds):
        return [Grouped(list(files), _PLAIN)]
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
    groups = [Grouped(sure, {"basePath": f"file:{root}"}), Grouped(others, _PLAIN)]
    return [group for group in groups if group.files]


def by_stated_values(context: TableContext, schema: pa.Schema, files: Sequence[FinalFile]) -> list[Grouped]:
    """The files in at most two groups: those with partition columns of which commits state the one value, and others."""
    names = dict.fromkeys(context.config.partition_fields)
    kinds = {field.name: field.type for field in schema if field.name in names and can_hold(field.type)}
    # Row copies hold rows of several partitions, and so would be a scan of their own: a realtime aggregate took 1.3 times as long.
    copies = not context.config.hive_style and any(file.path.startswith(ROW_COPIES) for file in files)
    if not kinds or copies or context.storage.local_path("") is None:
        return [Grouped(list(files), _PLAIN)]
    stated = FileRanges(context.storage, context.snapshot(), kinds)
    known = [_values(stated.of_file(file.path.rpartition("/")[2], file.instant)) for file in files]
    # Some files may hold one value of one more column by chance.
    often = Counter(tuple(name for name in kinds if name in each) for each in known if each).most_common(1)
    columns = often[0][0] if often else ()
    values: dict[str, tuple[object, ...]] = {}
    sure: list[FinalFile] = []
    others: list[FinalFile] = []
    for file, each in zip(files, known, strict=True):
        folder = file.path.rpartition("/")[0]
        told = tuple(each[name] for name in columns) if columns and each.keys() >= set(columns) else None
        same = told is not None and values.setdefault(folder, told) == told
        (sure if same else others).append(file)
    groups = [Grouped(sure, _PLAIN, values, columns), Grouped(others, _PLAIN)]
    return [group for group in groups if group.files]


def _values(known: Known | None) -> dict[str, object]:
    """The one value of each column that has one, or None where all are null."""
    found: dict[str, object] = {}
    for name, each in (known or {}).items():
        if not each.values:
            found[name] = None
        elif each.low is not None and each.low == each.high and not each.nulls and can_tell(each.low):
            found[name] = each.low
    return found


def _has_same_text(kind: pa.DataType) -> bool:
    """Types that Spark makes of a folder's text as this package and Apache Hudi make the text of them."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_int32(kind) or types.is_int64(kind) or types.is_date32(kind))


def _is_same(path: ValueRange, file: ValueRange) -> bool:
    if not path.values:
        return not file.values  # Spark makes null of the default partition
    return path.low is not None and path.low == path.high == file.low == file.high and not (path.nulls or file.nulls)
