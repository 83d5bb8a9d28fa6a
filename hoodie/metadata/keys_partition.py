"""The partition `record_index`: a record for each record key of the table, which says in which file group its row is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.metadata.index_definitions import IndexDefinition, define, place_of_definitions
from hoodie.metadata.key_changes import key_changes, stored_keys
from hoodie.metadata.keys import RECORD_INDEX
from hoodie.metadata.partition import Scope, Shard, TableFiles, require_in_logs
from hoodie.metadata.record_index import KeyChanges, groups_for, key_shards, merged_records
from hoodie.metadata.table import MetadataTable
from hoodie.model.change import Change
from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileGroupId
from hoodie.options.values import GLOBAL_INDEXES
from hoodie.options.view import ViewOptions
from hoodie.storage.cache import Kind
from hoodie.timeline.clock import zone_of
from hoodie.view.context import TableContext

pc: Any = pyarrow.compute
_TWICE: Kind[bool] = Kind("tables in which a key stands twice")
_BYTES = 64
_DEFINITION = IndexDefinition(RECORD_INDEX, RECORD_INDEX, "", (), "V1", {"isPartitioned": "false"})
"""Else Apache Hudi goes by that of an index by partitions, which was there before."""
_ONE_PLACE = "a key stands in several file groups, and a record index has one place for each"


@dataclass(frozen=True)
class KeysPartition:
    """`KeptPartition` of `record_index`. A table in which a key stands twice gets none."""

    name: str = RECORD_INDEX

    def is_wanted(self, options: ViewOptions) -> bool | None:
        if options.metadata is False:
            return False
        return True if options.record_index.is_on else None

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        pieces = metadata.slices_of(self.name)
        require_in_logs(scope, metadata, pieces, change)
        changes = key_changes(scope.context, change)
        _require_one_place(scope.context, metadata, change, changes)
        shards = list(key_shards(changes, len(pieces), scope.schema, _zone(scope)))
        _require_each_once(scope.context, changes, shards)
        return shards

    def first(self, scope: Scope, files: TableFiles) -> tuple[int, Iterable[Shard]]:
        context = scope.context
        if context.cache.find(_TWICE, context.storage.identity):
            raise UnsupportedTableError(_ONE_PLACE)
        keys = stored_keys(context, context.on_storage().snapshot(), scope.known)
        groups = groups_for(context.view_options.record_index, sum(len(each.keys) for each in keys.placed))
        return groups, _first_shards(scope, keys, groups)

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return place_of_definitions(scope.properties) if scope.context.config.layout.by_completion else {}

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        return Shard(number, *merged_records(metadata.layers_of(self.name, number), scope.schema))


def _first_shards(scope: Scope, keys: KeyChanges, groups: int) -> Iterator[Shard]:
    shards = list(key_shards(keys, groups, scope.schema, _zone(scope)))
    _require_each_once(scope.context, keys, shards)
    if scope.context.config.layout.by_completion:
        define(scope.context.storage, scope.properties, _DEFINITION)
    yield from shards


def _require_each_once(context: TableContext, changes: KeyChanges, shards: Iterable[Shard]) -> None:
    """Raises UnsupportedTableError where a key comes to several file groups."""
    count = sum(len(each.keys) for each in shards)
    if count == sum(len(each.keys) for each in changes.placed):
        return
    if count != sum(pc.count_distinct(each.keys).as_py() for each in changes.placed):
        raise _twice(context)


def _require_one_place(context: TableContext, metadata: MetadataTable, change: Change, changes: KeyChanges) -> None:
    """Raises UnsupportedTableError where a key that comes to a file group stays in another one.

    An upsert of a table that remembers an index of the whole table has found that out, and a clustering moves what is there.
    """
    operation = None if change.commit is None else change.commit.operation
    looks_up = context.config.index in GLOBAL_INDEXES and operation in (WriteOperation.UPSERT, WriteOperation.DELETE)
    if looks_up or operation is WriteOperation.CLUSTER or not changes.placed:
        return
    keys = pa.concat_arrays([each.keys for each in changes.placed])
    where = metadata.locations(keys)
    if where is None:
        return
    source = pa.array(np.repeat(np.arange(len(changes.placed)), [len(each.keys) for each in changes.placed]))
    stays = where["file_id"].is_valid()
    if changes.removed:
        stays = pc.and_(stays, pc.invert(pc.is_in(keys, value_set=pa.concat_arrays(changes.removed))))
    pairs = where.select(["partition_path", "file_id"]).append_column("source", source).filter(stays)
    replaced = {FileGroupId(path, each) for path, ids in change.replaced.items() for each in ids}
    for pair in pairs.group_by(pairs.column_names).aggregate([]).to_pylist():
        group, placed = FileGroupId(pair["partition_path"], pair["file_id"]), changes.placed[pair["source"]]
        if group not in replaced and group != (placed.partition_path, placed.file_id):
            raise _twice(context)


def _twice(context: TableContext) -> UnsupportedTableError:
    """The error; this process makes no record index of the table any more, for that would read all keys for nothing."""
    context.cache.put(_TWICE, context.storage.identity, True, _BYTES)
    return UnsupportedTableError(_ONE_PLACE)


def _zone(scope: Scope) -> tzinfo | None:
    return zone_of(scope.context.config.timezone)
