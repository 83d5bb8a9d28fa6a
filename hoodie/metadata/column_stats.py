"""The partition `column_stats`: a record for each column of a base file, with its bounds by the footer of that.

Types are those that Apache Hudi states in version 6: dates in a wrapper of their own, decimals with 15 digits after the point,
timestamps as whole numbers of microseconds. Others, among them timestamps in other units, get no record. A file of which the
footer does not bound a column that it has gets none at all: readers of Apache Hudi 0.15 take a column without a record for one of
nothing but nulls. Log files get none, so that readers look into each slice that has some.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.bounds import Bounds
from hoodie.metadata.footers import of_footers, read_footers
from hoodie.metadata.keys import COLUMN_STATS, stats_keys
from hoodie.metadata.merging import merged
from hoodie.metadata.partition import Scope, Shard, TableFiles, shards_of
from hoodie.metadata.payload import decode_stats
from hoodie.metadata.records import encode_record
from hoodie.metadata.table import MetadataTable
from hoodie.model.change import Change
from hoodie.model.meta_fields import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.model.names import HOODIE, folder_of, join, name_of
from hoodie.options.view import ViewOptions
from hoodie.storage.base import Storage
from hoodie.view.context import TableContext
from hoodie.view.schema import table_schema

INDEX_DEFINITIONS = "hoodie.table.index.defs.path"
_DEFINITIONS = join(HOODIE, ".index_defs/index.json")
_GROUPS = 2
_MOST_COLUMNS = 32
_ALWAYS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)
_KIND = 3
_UNKNOWN = -1
_SCALE, _PRECISION = 15, 30
_WRAPPERS = {
    **{"BOOLEAN": "BooleanWrapper", "INT32": "IntWrapper", "INT64": "LongWrapper"},
    **{"FLOAT": "FloatWrapper", "DOUBLE": "DoubleWrapper"},
}
_PLAIN = frozenset({"NONE", "UNKNOWN"})


@dataclass(frozen=True)
class ColumnStatsPartition:
    """`KeptPartition` of `column_stats`."""

    name: str = COLUMN_STATS

    def is_wanted(self, options: ViewOptions) -> bool | None:
        return options.column_stats

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        columns = columns_of(scope.context, scope.properties)
        keys, values = _of_files(scope, change.added, columns)
        for path, names in change.removed.items():
            for name in names:
                keys += _keys(path, name, columns)
                values += [encode_record(_removed(name, column), scope.schema) for column in columns]
        return _shards(keys, values, len(metadata.slices_of(COLUMN_STATS)))

    def first(self, scope: Scope, files: TableFiles) -> tuple[int, Iterable[Shard]]:
        columns = columns_of(scope.context, scope.properties)
        return _GROUPS, _first_shards(scope, columns, *_of_files(scope, files, columns))

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return {INDEX_DEFINITIONS: scope.properties.get(INDEX_DEFINITIONS) or _DEFINITIONS}

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        return merged(metadata.layers_of(COLUMN_STATS, number), scope.schema, number, _flags)


def footer_bounds(scope: Scope, paths: Sequence[str], columns: pa.Schema) -> Mapping[str, pa.Table]:
    """What records of the footers of these base files would say, as `MetadataTable.column_stats` has it.

    Raises:
        CorruptFileError, FileNotFoundError: a file is damaged or gone.
    """
    files: dict[str, dict[str, int]] = {}
    for path in paths:
        files.setdefault(folder_of(path), {})[name_of(path)] = scope.context.storage.stat(path).size_bytes
    footers = read_footers(scope.context.storage, files)
    stats = [stats_of_footer(footers[folder_of(path), name_of(path)], columns.names) or {} for path in paths]
    return {field.name: _bounds_in(scope, field, stats) for field in columns}


def _bounds_in(scope: Scope, column: pa.Field[Any], stats: Sequence[Mapping[str, dict[str, Any]]]) -> pa.Table:
    rows = np.array([number for number, each in enumerate(stats) if column.name in each], np.int64)
    records = [_record("", column.name, **each[column.name]) for each in stats if column.name in each]
    values = pa.array([encode_record(each, scope.schema) for each in records], BINARY)
    bounds = Bounds(column.type, len(stats))
    for part in decode_stats(values, scope.schema):
        bounds.add(rows[part.rows], part.columns)
    return bounds.table()


def _of_files(scope: Scope, files: TableFiles, columns: Sequence[str]) -> tuple[list[str], list[bytes]]:
    """Keys and records of the base files among these. A loop over files and columns."""

    def records(path: str, name: str, footer: pq.FileMetaData) -> tuple[list[str], list[bytes]]:
        stats = stats_of_footer(footer, columns) or {}
        encoded = [encode_record(_record(name, column, **each), scope.schema) for column, each in stats.items()]
        return _keys(path, name, stats), encoded

    found = of_footers(scope, files, (COLUMN_STATS, *columns), records)
    return [key for keys, _ in found for key in keys], [value for _, values in found for value in values]


def stats_of_footer(footer: pq.FileMetaData, columns: Sequence[str]) -> dict[str, dict[str, Any]] | None:
    """Column -> what its record says; None where one of them has no bounds in the file that it should have."""
    wanted, found = frozenset(columns), {}
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        wrapper = _wrapper(column)
        if column.path not in wanted or wrapper is None:
            continue
        bounds = _bounds([group.column(number) for group in groups], column, wrapper)
        if bounds is None:
            return None
        found[column.path] = bounds
    return found


def _wrapper(column: Any) -> str | None:
    """How bounds of a column are stored; None where they are not."""
    logical, physical = column.logical_type.type, column.physical_type
    if column.max_repetition_level:
        return None
    if logical == "STRING":
        return "StringWrapper"
    if logical == "DATE":
        return "DateWrapper"
    if logical == "DECIMAL":
        fits = column.scale <= _SCALE and column.precision + _SCALE - column.scale <= _PRECISION
        return "DecimalWrapper" if fits else None
    if logical == "TIMESTAMP":
        return "LongWrapper" if json.loads(column.logical_type.to_json())["timeUnit"] == "microseconds" else None
    if logical == "INT":
        is_signed = json.loads(column.logical_type.to_json())["isSigned"]
        return _WRAPPERS[physical] if is_signed else None
    return _WRAPPERS.get(physical) if logical in _PLAIN else None


def _bounds(chunks: Sequence[Any], column: Any, wrapper: str) -> dict[str, Any] | None:
    lows, highs, nulls, values = [], [], 0, 0
    for chunk in chunks:
        stats = chunk.statistics
        if stats is None or not stats.has_null_count:
            return None
        nulls, values = nulls + stats.null_count, values + chunk.num_values
        if stats.has_min_max:
            low, high = (_value(raw, column, wrapper) for raw in (stats.min_raw, stats.max_raw))
            if low is None or high is None:
                return None
            lows.append(low)
            highs.append(high)
        elif stats.null_count != chunk.num_values:
            return None
    return {
        "low": _wrapped(min(lows), wrapper) if lows else None,
        "high": _wrapped(max(highs), wrapper) if highs else None,
        "nulls": nulls,
        "values": values,
        "size": sum(chunk.total_compressed_size for chunk in chunks),
        "raw_size": sum(chunk.total_uncompressed_size for chunk in chunks),
    }


def _value(raw: Any, column: Any, wrapper: str) -> Any:
    """A bound as Parquet stores it; None where it is none of its type."""
    if wrapper == "StringWrapper":
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None
    if wrapper == "DecimalWrapper":
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        return Decimal(f"{unscaled}E{-column.scale}")
    return raw


def _wrapped(value: Any, wrapper: str) -> tuple[str, dict[str, Any]]:
    return f"org.apache.hudi.avro.model.{wrapper}", {"value": value}


def _record(
    name: str,
    column: str,
    *,
    low: Any,
    high: Any,
    nulls: int,
    values: int,
    size: int,
    raw_size: int,
    gone: bool = False,
) -> dict[str, Any]:
    stats = {
        "fileName": name,
        "columnName": column,
        "minValue": low,
        "maxValue": high,
        "nullCount": nulls,
        "valueCount": values,
        "totalSize": size,
        "totalUncompressedSize": raw_size,
        "isDeleted": gone,
        "isTightBound": False,
    }
    return {"type": _KIND, "ColumnStatsMetadata": stats}


def _removed(name: str, column: str) -> dict[str, Any]:
    unknown = dict.fromkeys(("nulls", "values", "size", "raw_size"), _UNKNOWN)
    return _record(name, column, low=None, high=None, **unknown, gone=True)


def _keys(path: str, name: str, columns: Iterable[str]) -> list[str]:
    file = [join(path, name)]
    return [stats_keys(file, column)[0].as_py() for column in columns]


def _shards(keys: list[str], values: list[bytes], groups: int) -> Iterator[Shard]:
    return shards_of(pa.array(keys, pa.string()), pa.array(values, pa.binary()), groups)


def _first_shards(scope: Scope, columns: Sequence[str], keys: list[str], values: list[bytes]) -> Iterator[Shard]:
    _define(scope, columns)
    yield from _shards(keys, values, _GROUPS)


def _flags(values: Any, schema: str) -> tuple[Any, Any]:
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
    """Those that the index has by its definition; without one, those of the option, or the first ones of the table."""
    defined = (_definitions(context.storage, properties).get(COLUMN_STATS) or {}).get("sourceFields")
    if defined:
        return tuple(map(str, defined))
    always = _ALWAYS if context.config.populate_meta_fields else ()
    listed = context.view_options.column_stats_columns
    schema = table_schema(context.active, context.active.load(), properties)
    if schema is None:
        raise UnsupportedTableError("the table has no columns yet")
    first = [field.name for field in schema if field.name not in META_COLUMNS and _has_stats(field.type)]
    return tuple(dict.fromkeys((*always, *(listed or first[:_MOST_COLUMNS]))))


def _has_stats(kind: pa.DataType) -> bool:
    types = pa.types
    is_number = types.is_signed_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return bool(is_number or types.is_string(kind) or types.is_large_string(kind) or types.is_temporal(kind))


def _definitions(storage: Storage, properties: Mapping[str, str]) -> dict[str, Any]:
    path = properties.get(INDEX_DEFINITIONS)
    if not path:
        return {}
    try:
        return dict(json.loads(storage.read(path)).get("indexDefinitions") or {})
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError) as exc:
        raise CorruptFileError(f"{path} of table {storage.uri} has no definitions of indexes: {exc}") from exc


def forget_definition(storage: Storage, properties: Mapping[str, str], name: str) -> None:
    """Of an index that is dropped: the next one of that name may have other columns."""
    found = _definitions(storage, properties)
    if found.pop(name, None) is not None:
        _write_definitions(storage, properties, found)


def _write_definitions(storage: Storage, properties: Mapping[str, str], found: Mapping[str, Any]) -> None:
    path = properties.get(INDEX_DEFINITIONS) or _DEFINITIONS
    storage.replace(path, json.dumps({"indexDefinitions": found}, indent=2).encode())


def _define(scope: Scope, columns: Sequence[str]) -> None:
    """Write down which columns there are: without it Apache Hudi 1.x does not use the index."""
    definition = {
        "indexName": COLUMN_STATS,
        "indexType": COLUMN_STATS,
        "indexFunction": COLUMN_STATS,
        "sourceFields": list(columns),
        "indexOptions": {},
        "version": "V1",
    }
    storage, properties = scope.context.storage, scope.properties
    _write_definitions(storage, properties, {**_definitions(storage, properties), COLUMN_STATS: definition})
