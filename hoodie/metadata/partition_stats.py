"""The partition `partition_stats`: a record for each column of a partition of the table, with the bounds of all rows in it.

Apache Hudi leaves out each partition that its records do not admit, and one that has none. So an instant brings the bounds of all
partitions that it touches, and they stand for themselves. They are those of `column_stats` for all files that count; a file of which
that has nothing is read. Only where one has no bounds at all the records cannot be made, and the partition goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.metadata.column_stats import ranges_for, stats_flags
from hoodie.metadata.file_ranges import FileRanges
from hoodie.metadata.keys import COLUMN_STATS, PARTITION_STATS, file_ids, partition_keys
from hoodie.metadata.merging import merged
from hoodie.metadata.partition import Scope, Shard, TableFiles, shards_of
from hoodie.metadata.payload import encode_record
from hoodie.metadata.stored_bounds import Range, Ranges, plain_value, record_of, removed_record, stored_as
from hoodie.metadata.table import MetadataTable, finished_partitions
from hoodie.model.change import Change
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.meta_fields import with_meta_fields
from hoodie.model.names import join, name_of, parse_base_file
from hoodie.options.view import ViewOptions

pc: Any = pyarrow.compute
_KIND = 6
_GROUPS = 1

Sizes = Mapping[str, int]
"""Name -> size of files in one partition."""


class RangesOfFiles(Protocol):
    """Bounds by the files themselves."""

    @property
    def typed(self) -> bool:
        """Stored by index version V2."""
        ...

    def of(self, files: TableFiles) -> Mapping[tuple[str, str], Ranges]:
        """As `FileRanges.of`."""
        ...


@dataclass(frozen=True)
class PartitionStatsPartition:
    """`MetadataPartition` of `partition_stats`. Apache Hudi builds it; without `column_stats` it has none."""

    name: str = PARTITION_STATS

    def is_wanted(self, options: ViewOptions) -> bool | None:
        return False if options.column_stats is False else None

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        if change.commit is None and not change.undone:
            return ()  # a clean takes away what did not count any more
        live = live_files(scope, change)
        return _shards(
            _records(ranges_for(scope, change), metadata, live, change.added), len(metadata.slices_of(self.name))
        )

    def first(self, scope: Scope, files: TableFiles) -> tuple[Sequence[str], Iterable[Shard]]:
        if COLUMN_STATS not in finished_partitions(scope.properties):
            raise UnsupportedTableError(f"bounds of partitions go by those of files: build {COLUMN_STATS} first")
        if not scope.context.config.layout.by_completion or not scope.context.config.partition_fields:
            raise UnsupportedTableError("only tables of version 8 or 9 with partitions have bounds of partitions")
        live = all_live_files(scope)
        ranges_for(scope).of(live)
        return file_ids(self.name, _GROUPS), _shards(_records(ranges_for(scope), None, live, live), _GROUPS)

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return {}

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        return merged(metadata.layers_of(self.name, number), scope.schema, number, stats_flags)


def all_live_files(scope: Scope) -> dict[str, dict[str, int]]:
    """Those of the newest state, by partition."""
    return _by_path(_files_of(scope.context.on_storage().snapshot().view.latest_slices()))


def live_files(scope: Scope, change: Change) -> dict[str, dict[str, int]]:
    """The files that count when the instant is completed, of each partition that it touches. What a compaction merges stays among them
    until the next instant: bounds may be wider than the rows, and never narrower.
    """
    touched = sorted({*change.added, *change.replaced, *change.removed})
    view = scope.context.on_storage().snapshot().view
    partitions = set(view.partitions())
    groups = _files_of(view.latest_slices([path for path in touched if path in partitions]))
    for path, ids in change.replaced.items():
        for file_id in ids:
            groups.pop(FileGroupId(path, file_id), None)
    if change.commit is not None:
        for stat in change.commit.stats():
            if stat.path:
                group, name = FileGroupId(stat.partition_path, stat.file_id), name_of(stat.path)
                is_whole = parse_base_file(name) is not None and not change.commit.compacted
                groups[group] = ({} if is_whole else groups.get(group, {})) | {name: stat.file_size_bytes}
    removed_names = {path: frozenset(names) for path, names in change.removed.items()}
    result: dict[str, dict[str, int]] = {path: {} for path in touched}
    for path, sizes in _by_path(groups).items():
        result[path] = {name: size for name, size in sizes.items() if name not in removed_names.get(path, ())}
    return result


def _files_of(slices: Iterable[FileSlice]) -> dict[FileGroupId, dict[str, int]]:
    result = {}
    for each in slices:
        result[each.group] = {log.name: log.size_bytes for log in each.logs}
        if each.base is not None:
            result[each.group][each.base.name] = each.base.size_bytes
    return result


def _by_path(groups: Mapping[FileGroupId, Sizes]) -> dict[str, dict[str, int]]:
    result: dict[str, dict[str, int]] = {}
    for group, sizes in groups.items():
        result.setdefault(group.partition_path, {}).update(sizes)
    return result


def _records(
    ranges: FileRanges, metadata: MetadataTable | None, live: Mapping[str, Sizes], added: TableFiles
) -> Iterator[tuple[str, bytes]]:
    """Key and record of each column of the partitions with these files. `metadata`: None where all of them were added."""
    schema = ranges.scope.schema
    full = with_meta_fields(ranges.schema)
    kinds = [full.field(name) for name in ranges.columns if name in full.names]
    columns = pa.schema([each for each in kinds if stored_as(each.type, typed=ranges.typed) is not None])
    column_stats = None if metadata is None else metadata.column_stats
    for path, sizes in live.items():
        ranges_of_columns = (
            of_partition(ranges, column_stats, columns, path, sizes, added.get(path, {}).keys()) if sizes else {}
        )
        for key, column in zip(partition_keys(path, columns.names), columns.names, strict=True):
            record = (
                record_of(path, column, ranges_of_columns[column], kind=_KIND, tight=True)
                if column in ranges_of_columns
                else removed_record(path, column, kind=_KIND, typed=ranges.typed, tight=True)
            )
            yield key, encode_record(record, schema)


def of_partition(
    ranges: RangesOfFiles,
    column_stats: Callable[[Sequence[str], pa.Schema], Mapping[str, pa.Table] | None] | None,
    columns: pa.Schema,
    path: str,
    sizes: Sizes,
    fresh: Collection[str],
) -> Ranges:
    """Bounds of all rows in files of one partition; `fresh`: those of which the metadata table knows nothing yet.
    `column_stats`: what it says of others, as `MetadataTable.column_stats` does; None where all are fresh.
    """
    old = [name for name in sizes if name not in fresh]
    stats = column_stats([join(path, name) for name in old], columns) if column_stats is not None and old else {}
    if stats is None:
        raise UnsupportedTableError("there are no bounds of files")
    is_known = pa.array([True] * len(old), pa.bool_())
    for each in stats.values():
        is_empty = pc.equal(each["nulls"], each["values"]).fill_null(False)
        bounded = pc.and_(pc.is_valid(each["low"]), pc.is_valid(each["high"]))
        is_known = pc.and_(is_known, pc.or_(is_empty, bounded).combine_chunks())
    unknown = [name for name, has_stats in zip(old, is_known.to_pylist(), strict=True) if not has_stats]
    read = ranges.of({path: {name: sizes[name] for name in (*unknown, *(set(sizes) & set(fresh)))}})
    _require_bounds(path, [*unknown, *fresh], read, sizes)
    parts: list[Ranges] = [_promoted(each, columns, typed=ranges.typed) for each in read.values()]
    known_stats = {name: each.filter(is_known) for name, each in stats.items()}
    if any(each.num_rows for each in known_stats.values()):
        parts.append({name: _joined(each, columns.field(name).type, ranges) for name, each in known_stats.items()})
    return _together(parts)


def _require_bounds(path: str, names: Iterable[str], read: Mapping[tuple[str, str], Ranges], sizes: Sizes) -> None:
    """Raises UnsupportedTableError where a base file has no bounds. A log without any has no rows."""
    for name in names:
        if name in sizes and parse_base_file(name) is not None and (path, name) not in read:
            raise UnsupportedTableError(f"the bounds of {join(path, name)} are not known")


def _joined(stats: Any, kind: pa.DataType, ranges: RangesOfFiles) -> Range:
    """Of the files that the metadata table knows."""
    stored = stored_as(kind, typed=ranges.typed)
    if stored is None:
        raise UnsupportedTableError(f"there are no bounds of type {kind}")
    low, high = plain_value(pc.min(stats["low"])), plain_value(pc.max(stats["high"]))
    nulls, values = (pc.sum(stats[name]).as_py() or 0 for name in ("nulls", "values"))
    return Range(stored, low, high, nulls, values)


def _promoted(ranges: Ranges, columns: pa.Schema, *, typed: bool) -> Ranges:
    """Bounds of a file as those of the table's columns: an older file may have a narrower type."""
    promoted = {}
    for name, each in ranges.items():
        if name in columns.names:
            stored = stored_as(columns.field(name).type, typed=typed)
            if stored is None:
                continue
            promoted[name] = each._replace(stored=stored)
    return promoted


def _together(parts: Sequence[Ranges]) -> Ranges:
    result: Ranges = {}
    for part in parts:
        for name, each in part.items():
            result[name] = _both(result[name], each) if name in result else each
    return result


def _both(one: Range, other: Range) -> Range:
    """NaN is greater than all other numbers."""
    lows = [each.low for each in (one, other) if each.low is not None]
    highs = [each.high for each in (one, other) if each.high is not None]
    counts = (a + b for a, b in zip(one[3:], other[3:], strict=True))
    return Range(one.stored, _least(lows), _greatest(highs), *counts)


def _least(values: Sequence[Any]) -> Any:
    return min([each for each in values if not _is_nan(each)], default=values[0] if values else None)


def _greatest(values: Sequence[Any]) -> Any:
    return next(filter(_is_nan, values), max(values, default=None))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


def _shards(records: Iterable[tuple[str, bytes]], groups: int) -> Iterator[Shard]:
    pairs = list(records)
    keys, values = pa.array([key for key, _ in pairs], pa.string()), pa.array([each for _, each in pairs], pa.binary())
    return shards_of(keys, values, groups)
