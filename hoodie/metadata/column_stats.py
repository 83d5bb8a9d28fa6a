"""The partition `column_stats`: a record for each column of a data file, with its bounds (`file_ranges.py`, `stored_bounds.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.errors import UnsupportedTableError
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.bounds import Bounds
from hoodie.metadata.file_ranges import FileRanges
from hoodie.metadata.index_definitions import IndexDefinition, define, place_of_definitions, read_definition
from hoodie.metadata.keys import COLUMN_STATS, PARTITION_STATS, file_ids, stats_keys
from hoodie.metadata.merging import merged
from hoodie.metadata.partition import Scope, Shard, TableFiles, shards_of
from hoodie.metadata.payload import decode_stats, encode_record
from hoodie.metadata.stored_bounds import Ranges, record_of, removed_record, stored_as
from hoodie.metadata.table import MetadataTable
from hoodie.model.change import Change
from hoodie.model.meta_fields import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.model.names import folder_of, join, name_of
from hoodie.options.view import ViewOptions
from hoodie.view.context import TableContext
from hoodie.view.schema import stated_schema, table_schema

_GROUPS = 2
_MOST_COLUMNS = 32
_ALWAYS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_KIND = 3
_TYPED = "V2"


@dataclass(frozen=True)
class ColumnStatsPartition:
    """`MetadataPartition` of `column_stats`."""

    name: str = COLUMN_STATS

    def is_wanted(self, options: ViewOptions) -> bool | None:
        return options.column_stats

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        ranges = ranges_for(scope, change)
        if ranges.has_more:
            _define(ranges)
        keys, values = _records(ranges, change.added)
        for path, names in change.removed.items():
            for name in names:
                keys += _keys(path, name, ranges.columns)
                values += [
                    encode_record(removed_record(name, column, kind=_KIND, typed=ranges.typed), scope.schema)
                    for column in ranges.columns
                ]
        return _shards(keys, values, len(metadata.slices_of(COLUMN_STATS)))

    def first(self, scope: Scope, files: TableFiles) -> tuple[Sequence[str], Iterable[Shard]]:
        ranges = ranges_for(scope)
        return file_ids(self.name, _GROUPS), _first_shards(ranges, *_records(ranges, files))

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return place_of_definitions(scope.properties)

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        return merged(metadata.layers_of(COLUMN_STATS, number), scope.schema, number, stats_flags)


def footer_bounds(scope: Scope, paths: Sequence[str], columns: pa.Schema) -> Mapping[str, pa.Table]:
    """What records of these files would say now, as `MetadataTable.column_stats` has it.

    Raises:
        CorruptFileError, FileNotFoundError: a file is damaged or gone.
    """
    files: dict[str, dict[str, int]] = {}
    for path in paths:
        files.setdefault(folder_of(path), {})[name_of(path)] = scope.context.storage.stat(path).size_bytes
    ranges = replace(ranges_for(scope), columns=tuple(columns.names)).of(files)
    ranges_of_files = [ranges.get((folder_of(path), name_of(path)), {}) for path in paths]
    return {field.name: _bounds_in(scope, field, ranges_of_files) for field in columns}


def _bounds_in(scope: Scope, column: pa.Field[Any], ranges: Sequence[Ranges]) -> pa.Table:
    rows = np.array([number for number, each in enumerate(ranges) if column.name in each], np.int64)
    records = [record_of("", column.name, each[column.name], kind=_KIND) for each in ranges if column.name in each]
    values = pa.array([encode_record(each, scope.schema) for each in records], BINARY)
    bounds = Bounds(column.type, len(ranges))
    for part in decode_stats(values, scope.schema):
        bounds.add(rows[part.rows], part.columns)
    return bounds.table()


def _records(ranges: FileRanges, files: TableFiles) -> tuple[list[str], list[bytes]]:
    """Keys and records of these files. A loop over files and columns."""
    keys: list[str] = []
    values: list[bytes] = []
    for (path, name), ranges_of_file in ranges.of(files).items():
        keys += _keys(path, name, ranges_of_file)
        records = (record_of(name, column, each, kind=_KIND) for column, each in ranges_of_file.items())
        values += [encode_record(each, ranges.scope.schema) for each in records]
    return keys, values


def _keys(path: str, name: str, columns: Iterable[str]) -> list[str]:
    file = [join(path, name)]
    return [stats_keys(file, column)[0].as_py() for column in columns]


def _shards(keys: list[str], values: list[bytes], groups: int) -> Iterator[Shard]:
    return shards_of(pa.array(keys, pa.string()), pa.array(values, pa.binary()), groups)


def _first_shards(ranges: FileRanges, keys: list[str], values: list[bytes]) -> Iterator[Shard]:
    _define(ranges)
    yield from _shards(keys, values, _GROUPS)


def stats_flags(values: Any, schema: str) -> tuple[Any, Any]:
    """Of each record: whether it says that the file is gone, and whether it stands for itself."""
    deleted, tight = [False] * len(values), [False] * len(values)
    for stats in decode_stats(values, schema):
        for row, is_gone, is_tight in zip(
            stats.rows.tolist(), stats.columns["deleted"].to_pylist(), stats.columns["tight"].to_pylist(), strict=True
        ):
            deleted[row], tight[row] = bool(is_gone), bool(is_tight)
    return pa.array(deleted), pa.array(tight)


# -- which columns -----------------------------------------------------------------------------------------------------


def columns_of(context: TableContext, properties: Mapping[str, str]) -> Sequence[str]:
    """As `ranges_for` has them."""
    return ranges_for(Scope(context, properties, "")).columns


def ranges_for(scope: Scope, change: Change | None = None) -> FileRanges:
    """Of the columns that the index has by its definition; without one, those of the option, or the first ones of the table."""
    context = scope.context
    own_schema = None if change is None or change.commit is None else stated_schema(change.instant, change.commit)
    before = table_schema(context.active, context.active.load(), scope.properties)
    schema = before if own_schema is None else own_schema
    if schema is None:
        raise UnsupportedTableError("the table has no columns yet")
    defined = partial(read_definition, context.storage, scope.properties)
    own = defined(COLUMN_STATS) or defined(PARTITION_STATS)
    typed = (context.config.layout.index_version if own is None else own.version or "V1") == _TYPED
    chosen, columns = _chosen(scope, schema, typed=typed), () if own is None else own.columns
    has_more = before is not None and _has_grown(columns, _chosen(scope, before, typed=typed), chosen)
    return FileRanges(scope, chosen if has_more or not columns else columns, schema, typed, has_more)


def _has_grown(defined: Sequence[str], before: Sequence[str], now: Sequence[str]) -> bool:
    """Whether an index of the columns that the table had by itself gets more by an instant, as Apache Hudi's writers have it: files
    have no values of them yet. A column that was renamed has, under another name.
    """
    return set(defined) == set(before) < set(now)


def _chosen(scope: Scope, schema: pa.Schema, *, typed: bool) -> tuple[str, ...]:
    always = _ALWAYS if scope.context.config.populate_meta_fields else ()
    of_option = scope.context.view_options.column_stats_columns
    # Of decimals Apache Hudi has none by itself in V1.
    plain = [field for field in schema if typed or not pa.types.is_decimal(field.type)]
    first = [
        field.name
        for field in plain
        if field.name not in META_COLUMNS and stored_as(field.type, typed=typed) is not None
    ]
    return tuple(dict.fromkeys((*always, *(of_option or first[:_MOST_COLUMNS]))))


def _define(ranges: FileRanges) -> None:
    """Write down which columns there are."""
    definition = IndexDefinition(
        COLUMN_STATS, COLUMN_STATS, COLUMN_STATS, tuple(ranges.columns), _TYPED if ranges.typed else "V1"
    )
    define(ranges.scope.context.storage, ranges.scope.properties, definition)
