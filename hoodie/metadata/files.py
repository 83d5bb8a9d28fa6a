"""The partition `files`: a record for each partition of the table with the files in it, and one with all partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hoodie.metadata.keys import ALL_PARTITIONS, FILES, file_ids, identifier_of
from hoodie.metadata.partition import Scope, Shard, TableFiles, in_order
from hoodie.metadata.payload import encode_record
from hoodie.metadata.table import MetadataTable
from hoodie.model.change import Change
from hoodie.options.view import ViewOptions

_ALL, _FILES = 1, 2
"""What the field `type` says."""
_REMOVED_BYTES = 0

Entries = Mapping[str, tuple[int, bool]]
"""File name, or partition -> its size, and whether it is gone: as `payload.FileSizes`."""


@dataclass(frozen=True)
class FilesPartition:
    """`MetadataPartition` of `files`, which has one file group."""

    name: str = FILES

    def is_wanted(self, options: ViewOptions) -> bool | None:
        return options.metadata

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        entries = entries_of(change)
        return [_shard(entries, scope.schema)] if entries else []

    def first(self, scope: Scope, files: TableFiles) -> tuple[Sequence[str], Iterable[Shard]]:
        entries: dict[str, Entries] = {ALL_PARTITIONS: {identifier_of(path): (0, False) for path in files}}
        entries.update({identifier_of(path): _there(sizes) for path, sizes in files.items() if sizes})
        return file_ids(self.name, 1), [_shard(entries, scope.schema)]

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return {}

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        return _shard({key: _there(sizes) for key, sizes in metadata.all_entries().items()}, scope.schema)


def entries_of(change: Change) -> dict[str, Entries]:
    """Key of a record -> what it says. A partition whose folder is gone has no files left."""
    by_key: dict[str, dict[str, tuple[int, bool]]] = {}
    partitions: dict[str, tuple[int, bool]] = {}
    for path, names in change.removed.items():
        by_key.setdefault(identifier_of(path), {}).update(dict.fromkeys(names, (_REMOVED_BYTES, True)))
    for path, sizes in change.added.items():
        partitions[identifier_of(path)] = (0, False)
        by_key.setdefault(identifier_of(path), {}).update(_there(sizes))
    for path in change.partitions_removed:
        partitions.setdefault(identifier_of(path), (0, True))
    records: dict[str, Entries] = {key: entries for key, entries in by_key.items() if entries}
    return {**records, ALL_PARTITIONS: partitions} if partitions else records


def _there(sizes: Mapping[str, int]) -> Entries:
    return {name: (size, False) for name, size in sizes.items()}


def _shard(records: Mapping[str, Entries], schema: str) -> Shard:
    """A row loop: a record lists many files, which are a map."""
    keys = pa.array([key.encode() for key in records], pa.binary())
    values = [_encoded(entries, _ALL if key == ALL_PARTITIONS else _FILES, schema) for key, entries in records.items()]
    return in_order(0, keys, pa.array(values, pa.binary()))


def _encoded(entries: Entries, kind: int, schema: str) -> bytes:
    files = {name: {"size": size, "isDeleted": is_gone} for name, (size, is_gone) in entries.items()}
    return encode_record({"type": kind, "filesystemMetadata": files}, schema)
