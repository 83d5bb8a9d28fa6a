"""The partition `record_index`: a record for each record key of the table, which says in which file group its row is.

One of the whole table has one place for each key. One by partitions has one for each key in each partition, in file groups of that
partition (`data_groups.py`); tables of version 8 and 9 have it. Once it is there, its definition and its files say which it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.data_groups import Share, Shares, definition_of, file_id_in, is_by_partition, shares_of
from hoodie.metadata.index_definitions import define, place_of_definitions
from hoodie.metadata.key_changes import key_changes, stored_keys
from hoodie.metadata.keys import RECORD_INDEX, file_ids
from hoodie.metadata.partition import Scope, Shard, TableFiles, require_in_logs
from hoodie.metadata.record_index import (
    AddedKeys,
    KeyChanges,
    RemovedKeys,
    groups_for,
    key_shards,
    merged_records,
    shards_by_partition,
)
from hoodie.metadata.table import MetadataTable
from hoodie.model.change import Change
from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.options.values import GLOBAL_INDEXES
from hoodie.options.view import ViewOptions
from hoodie.storage.cache import Kind
from hoodie.timeline.clock import zone_of
from hoodie.view.context import TableContext

pc: Any = pyarrow.compute
_TWICE: Kind[bool] = Kind("tables in which a key stands twice")
_BYTES = 64
_NONE = pa.array([], BINARY)
_ONE_PLACE = "a key stands in several file groups, and a record index has one place for each"


@dataclass(frozen=True)
class KeysPartition:
    """`MetadataPartition` of `record_index`. A table in which a key stands twice gets none."""

    name: str = RECORD_INDEX
    by_partition: bool | None = None
    """Of one that is built, where the options do not say it. None: as its definition has it."""

    def is_wanted(self, options: ViewOptions) -> bool | None:
        if options.metadata is False:
            return False
        return True if options.record_index.is_on or options.partitioned_index.is_on else None

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        pieces = metadata.slices_of(self.name)
        require_in_logs(scope, metadata, pieces, change)
        changes = key_changes(scope.context, change)
        index = metadata.record_index()
        if index is None:
            raise CorruptFileError(metadata.reasons[self.name])
        by_partition = index.shares is not None
        _require_one_place(scope.context, metadata, change, changes, by_partition=by_partition)
        if index.shares is None:
            shards = list(key_shards(changes, len(pieces), scope.schema, _zone(scope)))
        else:
            shards = _with_new_groups(scope, metadata, change, changes, pieces)
        _require_each_once(scope.context, changes, shards, by_partition=by_partition)
        return shards

    def first(self, scope: Scope, files: TableFiles) -> tuple[Sequence[str], Iterable[Shard]]:
        context, by_partition = scope.context, self._is_by_partition(scope)
        if context.cache.find(_TWICE, (context.storage.identity, by_partition)):
            raise UnsupportedTableError(_ONE_PLACE)
        keys, options = stored_keys(context, context.on_storage().snapshot(), scope.cache), context.view_options
        if by_partition:
            counts = dict.fromkeys(sorted({*files, *(each.partition_path for each in keys.placed)}), 0)
            for each in keys.placed:
                counts[each.partition_path] += len(each.keys)
            bounds = options.partitioned_index.least_groups, options.partitioned_index.most_groups
            groups = {path: groups_for(options.record_index, count, bounds) for path, count in counts.items()}
            shares = _added({}, groups)
            ids = [file_id_in(path, number) for path, count in groups.items() for number in range(count)]
            return ids, _first_shards(scope, keys, shards_by_partition(keys, shares, scope.schema, _zone(scope)), True)
        count = groups_for(options.record_index, sum(len(each.keys) for each in keys.placed))
        shards = key_shards(keys, count, scope.schema, _zone(scope))
        return file_ids(self.name, count), _first_shards(scope, keys, shards, False)

    def _is_by_partition(self, scope: Scope) -> bool:
        context = scope.context
        options, is_able = context.view_options, context.config.layout.by_completion
        if options.partitioned_index.is_on:
            if not is_able:
                raise UnsupportedTableError("only tables of version 8 or 9 have a record index by partitions")
            return True
        if options.record_index.is_on or not is_able or self.by_partition is not None:
            return bool(self.by_partition) and is_able and not options.record_index.is_on
        return is_by_partition(context.storage, scope.properties)

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return place_of_definitions(scope.properties) if scope.context.config.layout.by_completion else {}

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        return Shard(number, *merged_records(metadata.layers_of(self.name, number), scope.schema))


def _first_shards(scope: Scope, keys: KeyChanges, all_shards: Iterable[Shard], by_partition: bool) -> Iterator[Shard]:
    shards = list(all_shards)
    _require_each_once(scope.context, keys, shards, by_partition=by_partition)
    if scope.context.config.layout.by_completion:
        define(scope.context.storage, scope.properties, definition_of(by_partition=by_partition))
    yield from shards


def _added(shares: Shares, groups: Mapping[str, int], after: int = 0) -> dict[str, Share]:
    """With so many file groups of further partitions, numbered behind those that there are."""
    result = dict(shares)
    for path, count in groups.items():
        result[path] = Share(after, count)
        after += count
    return result


def _with_new_groups(
    scope: Scope, metadata: MetadataTable, change: Change, changes: KeyChanges, pieces: Sequence[FileSlice]
) -> list[Shard]:
    """The records, and file groups for partitions that have none: Apache Hudi takes them for there where `files` has the partition."""
    undone = {time for time, _ in change.undone}
    there = [each for each in pieces if each.base_instant not in undone]
    paths = {*(metadata.partitions() or ()), *change.added, *(each.partition_path for each in changes.placed)}
    old_shares, least = shares_of(pieces), scope.context.view_options.partitioned_index.least_groups
    groups = dict.fromkeys(sorted(paths - shares_of(there).keys()), least)
    shares = _added(old_shares, groups, len(pieces))
    shards = {each.number: each for each in shards_by_partition(changes, shares, scope.schema, _zone(scope))}
    for path, count in groups.items():
        for number in range(count):
            at = shares[path].first + number
            shard = shards.get(at, Shard(at, _NONE, _NONE))
            shards[at] = shard._replace(begins=file_id_in(path, number))
    return [shards[at] for at in sorted(shards)]


def _require_each_once(
    context: TableContext, changes: KeyChanges, shards: Iterable[Shard], *, by_partition: bool
) -> None:
    """Raises UnsupportedTableError where a key comes to several file groups."""
    count = sum(len(each.keys) for each in shards)
    if count == sum(len(each.keys) for each in changes.placed):
        return
    if count != sum(pc.count_distinct(each.keys).as_py() for each in changes.placed):
        raise _twice(context, by_partition)


def _require_one_place(
    context: TableContext, metadata: MetadataTable, change: Change, changes: KeyChanges, *, by_partition: bool
) -> None:
    """Raises UnsupportedTableError where a key that comes to a file group stays in another one.

    An upsert has found that out: in the partition, or, where a table remembers an index of the whole table, in all. A clustering moves
    what is there.
    """
    operation = None if change.commit is None else change.commit.operation
    is_sought = by_partition or context.config.index in GLOBAL_INDEXES
    looks_up = is_sought and operation in (WriteOperation.UPSERT, WriteOperation.DELETE)
    if looks_up or operation is WriteOperation.CLUSTER or not changes.placed:
        return
    keys, paths = _keys_and_paths(changes.placed)
    where = metadata.locations(keys, paths)
    if where is None:
        return
    source = pa.array(np.repeat(np.arange(len(changes.placed)), [len(each.keys) for each in changes.placed]))
    stays = where["file_id"].is_valid()
    if changes.removed:
        removed_keys, removed_paths = _keys_and_paths(changes.removed)
        if by_partition:
            keys, removed_keys = (_joined(*each) for each in ((paths, keys), (removed_paths, removed_keys)))
        stays = pc.and_(stays, pc.invert(pc.is_in(keys, value_set=removed_keys)))
    pairs = where.select(["partition_path", "file_id"]).append_column("source", source).filter(stays)
    replaced = {FileGroupId(path, each) for path, ids in change.replaced.items() for each in ids}
    for pair in pairs.group_by(pairs.column_names).aggregate([]).to_pylist():
        group, placed = FileGroupId(pair["partition_path"], pair["file_id"]), changes.placed[pair["source"]]
        if group not in replaced and group != (placed.partition_path, placed.file_id):
            raise _twice(context, by_partition)


def _keys_and_paths(parts: Sequence[AddedKeys] | Sequence[RemovedKeys]) -> tuple[Any, Any]:
    paths = pa.array([each.partition_path for each in parts], pa.string())
    repeated = paths.take(pa.array(np.repeat(np.arange(len(parts)), [len(each.keys) for each in parts])))
    return pa.concat_arrays([each.keys for each in parts]), repeated


def _joined(paths: Any, keys: Any) -> Any:
    return pc.binary_join_element_wise(paths, keys, "\0")


def _twice(context: TableContext, by_partition: bool) -> UnsupportedTableError:
    """The error; this process makes no such index of the table any more, for that would read all keys for nothing."""
    context.cache.put(_TWICE, (context.storage.identity, by_partition), True, _BYTES)
    return UnsupportedTableError(_ONE_PLACE)


def _zone(scope: Scope) -> tzinfo | None:
    return zone_of(scope.context.config.timezone)
