"""The partition `bloom_filters`: the filter in the footer of each base file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.format.base_file import read_footer
from hoodie.metadata.footers import of_footers
from hoodie.metadata.keys import BLOOM_FILTERS, bloom_keys, file_ids
from hoodie.metadata.merging import merged
from hoodie.metadata.partition import Scope, Shard, TableFiles, shards_of
from hoodie.metadata.payload import decode_blooms, encode_record
from hoodie.metadata.table import MetadataTable
from hoodie.model.change import Change
from hoodie.model.names import join, parse_base_file
from hoodie.options.view import ViewOptions

_GROUPS = 4
_KIND = 4


@dataclass(frozen=True)
class BloomFiltersPartition:
    """`MetadataPartition` of `bloom_filters`."""

    name: str = BLOOM_FILTERS

    def is_wanted(self, options: ViewOptions) -> bool | None:
        return options.bloom_filters

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        time = change.instant.time
        records = dict(_of_files(scope, change.added))
        for path, names in change.removed.items():
            removed_files = [join(path, name) for name in names if parse_base_file(name) is not None]
            records.update((file, bloom_record(scope, "", time, b"", is_deleted=True)) for file in removed_files)
        return _shards(records, len(metadata.slices_of(BLOOM_FILTERS)))

    def first(self, scope: Scope, files: TableFiles) -> tuple[Sequence[str], Iterable[Shard]]:
        return file_ids(self.name, _GROUPS), _shards(dict(_of_files(scope, files)), _GROUPS)

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return {}

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        return merged(metadata.layers_of(BLOOM_FILTERS, number), scope.schema, number, bloom_flags)


def _of_files(scope: Scope, files: TableFiles) -> Iterator[tuple[str, bytes]]:
    """Path and record of the base files among these that have a filter."""

    def record(path: str, name: str, metadata: pq.FileMetaData) -> tuple[str, bytes] | None:
        footer, written = read_footer(metadata, path=join(path, name)), parse_base_file(name)
        if footer.bloom_base64 is None or footer.bloom_type is None or written is None:
            return None
        return join(path, name), bloom_record(scope, footer.bloom_type, written.instant, footer.bloom_base64)

    return filter(None, of_footers(scope, files, BLOOM_FILTERS, record))


def bloom_record(scope: Scope, kind: str, time: str, bloom: bytes, *, is_deleted: bool = False) -> bytes:
    fields = {"type": kind, "timestamp": time, "bloomFilter": bloom, "isDeleted": is_deleted}
    return encode_record({"type": _KIND, "BloomFilterMetadata": fields}, scope.schema)


def _shards(records: dict[str, bytes], groups: int) -> Iterator[Shard]:
    return shards_of(bloom_keys(list(records)), pa.array(list(records.values()), pa.binary()), groups)


def bloom_flags(values: Any, schema: str) -> tuple[Any, Any]:
    """Of each record: whether it says that the file is gone, and that it replaces an older one."""
    return decode_blooms(values, schema)["deleted"].combine_chunks(), pa.array([True] * len(values))
