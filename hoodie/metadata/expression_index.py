"""The partitions `expr_index_…`: bounds, or bloom filters, of an expression of a column in each file.

The index of a table of version 8 or 9. With bounds it has those of each partition besides, which are made as those of
`partition_stats`, for Apache Hudi leaves out each partition that they do not admit, and one that has none. Logs have bounds and no
filters.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.format.bloom import build_bloom
from hoodie.metadata.bloom_filters import bloom_flags, bloom_record
from hoodie.metadata.column_stats import stats_flags
from hoodie.metadata.expression_clock import require_same_clock
from hoodie.metadata.expression_values import ExpressionValues, expression_index, filter_texts, index_by
from hoodie.metadata.index_definitions import IndexDefinition, define, place_of_definitions
from hoodie.metadata.keys import BLOOM_FILTERS, bloom_keys, expression_partition_key, file_ids, stats_keys
from hoodie.metadata.merging import merged
from hoodie.metadata.partition import Scope, Shard, TableFiles, shards_of
from hoodie.metadata.partition_stats import all_live_files, live_files, of_partition
from hoodie.metadata.payload import encode_record
from hoodie.metadata.slices import HFileRecords
from hoodie.metadata.stored_bounds import record_of, removed_record
from hoodie.metadata.table import MetadataTable
from hoodie.model.change import Change
from hoodie.model.names import join, parse_base_file
from hoodie.options.view import ViewOptions
from hoodie.view.schema import stated_schema, table_schema

pc: Any = pyarrow.compute
_GROUPS = 2
_FILE, _PARTITION = 3, 6
_BLOOM = {"filtertype": "DYNAMIC_V0", "numentries": "60000", "fpp": "0.000000001", "maxentries": "100000"}
"""Apache Hudi's defaults."""

Records = Iterable[tuple[str, bytes]]
"""Keys and records."""


@dataclass(frozen=True)
class ExpressionPartition:
    """`MetadataPartition` of an expression index."""

    name: str
    definition: IndexDefinition | None = None
    """Of one that is made; else the table has it."""

    def is_wanted(self, options: ViewOptions) -> bool | None:
        return False if options.metadata is False or options.expression_index.is_on is False else None

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        values = values_of(scope, self.name, self.definition, change)
        require_same_clock(values, metadata, self.name)
        records: dict[str, bytes] = {}
        if values.index.kind == BLOOM_FILTERS:
            records.update(_filters(values, change.added))
            records.update(_removed_filters(scope, change))
        else:
            records.update(_bounds(values, change.added))
            records.update(_removed_bounds(values, change.removed))
            if self._was_never_filled(scope, metadata):
                raise UnsupportedTableError("it has no records of files that the table has, as one that was not filled")
            if change.commit is not None or change.undone:  # a clean deletes files that did not count any more
                column_stats = partial(metadata.column_stats, partition=self.name)
                records.update(_of_partitions(values, column_stats, live_files(scope, change), change.added))
        return _shards(records, len(metadata.slices_of(self.name)))

    def _was_never_filled(self, scope: Scope, metadata: MetadataTable) -> bool:
        """As Apache Hudi 1.2 leaves an index beside another one: by bounds of the partitions that are written it would leave out all
        others.
        """
        pieces = metadata.slices_of(self.name)
        if any(each.base is not None for each in pieces):
            return False
        layers = (each for number in range(len(pieces)) for each in metadata.layers_of(self.name, number))
        has_none = not any(isinstance(each, HFileRecords) and len(each.reader) for each in layers)
        return has_none and any(all_live_files(scope).values())

    def first(self, scope: Scope, files: TableFiles) -> tuple[Sequence[str], Iterable[Shard]]:
        if not scope.context.config.layout.by_completion:
            raise UnsupportedTableError("only tables of version 8 or 9 have expression indexes")
        values = values_of(scope, self.name, self.definition)
        if values.index.kind == BLOOM_FILTERS:
            return file_ids(self.name, _GROUPS), self._first(scope, dict(_filters(values, files)))
        live = all_live_files(scope)
        values.of(files)
        values.of(live)
        records = chain(_bounds(values, files), _of_partitions(values, None, live, live))
        return file_ids(self.name, _GROUPS), self._first(scope, records)

    def _first(self, scope: Scope, records: Mapping[str, bytes] | Records) -> Iterator[Shard]:
        if self.definition is not None:
            define(scope.context.storage, scope.properties, self.definition)
        yield from _shards(dict(records), _GROUPS)

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return place_of_definitions(scope.properties)

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        context = scope.context
        index = expression_index(context, scope.properties, self.name)
        flags = bloom_flags if index.kind == BLOOM_FILTERS else stats_flags
        return merged(metadata.layers_of(self.name, number), scope.schema, number, flags)


def values_of(
    scope: Scope, name: str, definition: IndexDefinition | None = None, change: Change | None = None
) -> ExpressionValues:
    """Of an index; `definition`: of one that is made. Raises as `ExpressionValues.column`."""
    context = scope.context
    there = partial(expression_index, context, scope.properties, name)
    index = there() if definition is None else index_by(definition, context)
    before = table_schema(context.active, context.active.load(), scope.properties)
    own_schema = None if change is None or change.commit is None else stated_schema(change.instant, change.commit)
    schema = before if own_schema is None else own_schema
    if schema is None:
        raise UnsupportedTableError("the table has no columns yet")
    values = ExpressionValues(scope, index, schema)
    kind, former = values.column.type, schema if before is None else before
    column = index.expression.column
    if column in former.names and ExpressionValues(scope, index, former).column.type != kind:
        raise UnsupportedTableError(f"{index.expression} is of another type since column {column!r} is")
    return values


def _shards(records: Mapping[str, bytes], groups: int) -> Iterator[Shard]:
    return shards_of(pa.array(list(records), pa.string()), pa.array(list(records.values()), pa.binary()), groups)


# -- bounds ------------------------------------------------------------------------------------------------------------


def _bounds(values: ExpressionValues, files: TableFiles) -> Records:
    column, schema = values.column.name, values.scope.schema
    for (path, name), ranges in values.of(files).items():
        yield stats_key(path, name, column), encode_record(record_of(name, column, ranges[column], kind=_FILE), schema)


def _removed_bounds(values: ExpressionValues, removed: Mapping[str, Iterable[str]]) -> Records:
    column = values.column.name
    for path, names in removed.items():
        for name in names:
            record = removed_record(name, column, kind=_FILE, typed=values.typed)
            yield stats_key(path, name, column), encode_record(record, values.scope.schema)


def _of_partitions(values: ExpressionValues, column_stats: Any, live: TableFiles, added: TableFiles) -> Records:
    """`column_stats`: as `of_partition` has it."""
    column = values.column
    for path, sizes in live.items():
        fresh = added.get(path, {}).keys()
        ranges = of_partition(values, column_stats, pa.schema([column]), path, sizes, fresh) if sizes else {}
        record = (
            record_of(path, column.name, ranges[column.name], kind=_PARTITION, tight=True)
            if column.name in ranges
            else removed_record(path, column.name, kind=_PARTITION, typed=values.typed, tight=True)
        )
        yield expression_partition_key(path, column.name), encode_record(record, values.scope.schema)


def stats_key(path: str, name: str, column: str) -> str:
    """Of the record of a file."""
    key: str = stats_keys([join(path, name)], column)[0].as_py()
    return key


# -- bloom filters -----------------------------------------------------------------------------------------------------


def _filters(values: ExpressionValues, files: TableFiles) -> Records:
    scope, options = values.scope, _BLOOM | dict(values.index.bloom)

    def record(path: str, name: str, size_bytes: int) -> bytes:
        value = values.of_file(path, name, size_bytes)
        bloom = build_bloom(
            options["filtertype"],
            filter_texts(values, value),
            num_entries=int(options["numentries"]),
            fpp=float(options["fpp"]),
            max_entries=int(options["maxentries"]),
        )
        written = parse_base_file(name)
        time = "" if written is None else written.instant
        return bloom_record(scope, options["filtertype"], time, b64encode(bloom.to_bytes()))

    bases = [
        (path, name, size_bytes)
        for path, sizes in files.items()
        for name, size_bytes in sizes.items()
        if parse_base_file(name) is not None
    ]
    cache, kind = scope.cache, str(values.index)
    fresh = [each for each in bases if (kind, *each) not in cache]
    records = scope.context.storage.each(lambda each: record(*each), fresh)
    cache.update(((kind, *each), value) for each, value in zip(fresh, records, strict=True))
    yield from ((_bloom_key(path, name), cache[kind, path, name, size]) for path, name, size in bases)


def _removed_filters(scope: Scope, change: Change) -> Records:
    for path, names in change.removed.items():
        for name in names:
            if parse_base_file(name) is not None:
                yield _bloom_key(path, name), bloom_record(scope, "", change.instant.time, b"", is_deleted=True)


def _bloom_key(path: str, name: str) -> str:
    key: str = bloom_keys([join(path, name)])[0].as_py()
    return key
