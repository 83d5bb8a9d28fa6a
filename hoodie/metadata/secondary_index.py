"""The partitions `secondary_index_…`: of a column the values, and the record keys of the rows that have them.

The index of a table of version 8 or 9. It leads to record keys, so it goes with the record index, and like that it is of tables in
which a key stands once. Its keys say everything (`secondary_keys.py`); its records are all the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.data_groups import is_by_partition
from hoodie.metadata.index_definitions import IndexDefinition, define, place_of_definitions, read_definition
from hoodie.metadata.key_changes import SliceReader, after_change, changes_no_keys, groups_of, visible_with
from hoodie.metadata.keys import RECORD_INDEX, SECONDARY_INDEX, file_ids, group_numbers
from hoodie.metadata.merging import merged
from hoodie.metadata.partition import Scope, Shard, TableFiles, in_order, require_in_logs
from hoodie.metadata.payload import decode_secondary, encode_record
from hoodie.metadata.record_index import groups_for
from hoodie.metadata.secondary_keys import (
    composed,
    group_numbers_of,
    is_indexable,
    keys_beginning,
    prefixes,
    record_keys,
    value_texts,
)
from hoodie.metadata.table import MetadataTable, finished_partitions
from hoodie.model.change import Change
from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.options.view import ViewOptions
from hoodie.storage.base import Storage
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import stated_schema

pc: Any = pyarrow.compute
KIND = SECONDARY_INDEX.rstrip("_")
_TYPE = 7
_BY_VALUE = "V2"


class ValueIndex(NamedTuple):
    """What a secondary index is of."""

    column: str
    """With points where it is in a struct."""
    by_value: bool
    """Whether the value alone chooses the file group."""


def value_index(storage: Storage, properties: Mapping[str, str], name: str) -> ValueIndex:
    """As its definition has it.

    Raises:
        CorruptFileError, UnsupportedTableError: it has none, or one that is not known.
    """
    definition = read_definition(storage, properties, name)
    if definition is None or definition.kind != KIND or not definition.columns:
        raise UnsupportedTableError(f"there is no definition of index {name!r}")
    return ValueIndex(".".join(definition.columns), definition.version == _BY_VALUE)


def index_of(storage: Storage, properties: Mapping[str, str], column: str) -> tuple[str, ValueIndex] | None:
    """The partition with an index of this column that readers may use; None where there is none."""
    names = sorted(each for each in finished_partitions(properties) if each.startswith(SECONDARY_INDEX))
    indexes = ((name, value_index(storage, properties, name)) for name in names)
    return next((each for each in indexes if each[1].column == column), None)


def keys_with(metadata: MetadataTable, name: str, index: ValueIndex, texts: Any, most: int) -> Any:
    """The record keys of rows with one of these values (texts as `value_texts` has them), of an index; None where there are more than
    `most`, or where it cannot be trusted.
    """

    def ask() -> Any:
        groups = len(metadata.slices_of(name))
        heads = prefixes(texts)
        arrays, count = [pa.array([], pa.string())], 0
        for head, number in zip(heads.to_pylist(), group_numbers(heads, groups).tolist(), strict=True):
            for each in [number] if index.by_value else range(groups):
                arrays.append(keys_beginning(metadata.layers_of(name, each), head))
                count += len(arrays[-1])
                if count > most:
                    return None
        return record_keys(pa.concat_arrays(arrays))

    return metadata.answer(name, ask)


class Entries(NamedTuple):
    """What the index has of some rows."""

    texts: Any
    """Of their values."""
    keys: Any


@dataclass(frozen=True)
class SecondaryPartition:
    """`MetadataPartition` of a secondary index."""

    name: str
    column: str | None = None
    """Of one that is made; else its definition says it."""

    def is_wanted(self, options: ViewOptions) -> bool | None:
        return False if options.metadata is False or options.secondary_index.is_on is False else None

    def changed(self, scope: Scope, metadata: MetadataTable, change: Change) -> Iterable[Shard]:
        pieces = metadata.slices_of(self.name)
        require_in_logs(scope, metadata, pieces, change)
        index = value_index(scope.context.storage, scope.properties, self.name)
        return _shards(scope, index, len(pieces), *_changes(scope.context, change, index.column))

    def first(self, scope: Scope, files: TableFiles) -> tuple[Sequence[str], Iterable[Shard]]:
        context = scope.context
        if not context.config.layout.by_completion:
            raise UnsupportedTableError("only tables of version 8 or 9 have secondary indexes")
        if RECORD_INDEX not in finished_partitions(scope.properties):
            raise UnsupportedTableError(f"a secondary index leads to record keys: build {RECORD_INDEX} first")
        if is_by_partition(context.storage, scope.properties):
            raise UnsupportedTableError(
                f"a secondary index leads to record keys of the whole table, and {RECORD_INDEX} is one by partitions"
            )
        definition = self._definition(scope)
        (column,) = definition.columns
        stored = _stored(context, context.on_storage().snapshot(), column, scope.cache)
        groups = groups_for(context.view_options.record_index, sum(map(len, stored)))
        return file_ids(self.name, groups), _first(scope, definition, groups, stored)

    def properties(self, scope: Scope) -> Mapping[str, str]:
        return place_of_definitions(scope.properties)

    def merged(self, scope: Scope, metadata: MetadataTable, number: int) -> Shard:
        return merged(metadata.layers_of(self.name, number), scope.schema, number, _flags)

    def _definition(self, scope: Scope) -> IndexDefinition:
        column = self.column
        if column is None:
            column = value_index(scope.context.storage, scope.properties, self.name).column
        return IndexDefinition(self.name, KIND, "identity", (column,), scope.context.config.layout.index_version)


def _flags(values: Any, schema: str) -> tuple[Any, Any]:
    return decode_secondary(values, schema), pa.repeat(True, len(values))


def _first(scope: Scope, definition: IndexDefinition, groups: int, stored: Sequence[Any]) -> Iterator[Shard]:
    define(scope.context.storage, scope.properties, definition)
    (column,) = definition.columns
    yield from _shards(scope, ValueIndex(column, definition.version == _BY_VALUE), groups, stored, ())


def _shards(
    scope: Scope, index: ValueIndex, groups: int, placed: Sequence[Any], removed: Sequence[Any]
) -> Iterator[Shard]:
    """The records by file group. A row that moves is both placed and removed, and counts as placed."""
    come, go = (pc.unique(pa.concat_arrays([pa.array([], pa.string()), *each])) for each in (placed, removed))
    go = go.filter(pc.invert(pc.is_in(go, value_set=come)))
    if not len(come) and not len(go):
        return
    record = encode_record({"type": _TYPE, "SecondaryIndexMetadata": {"isDeleted": False}}, scope.schema)
    decode_secondary(pa.array([record], BINARY), scope.schema)  # an older release of Apache Hudi has others
    numbers, gone_numbers = (group_numbers_of(each, groups, by_value=index.by_value) for each in (come, go))
    for number in sorted({*np.unique(numbers).tolist(), *np.unique(gone_numbers).tolist()}):
        mine = come.filter(pa.array(numbers == number)).cast(pa.binary()).cast(BINARY)
        theirs = go.filter(pa.array(gone_numbers == number)).cast(pa.binary()).cast(BINARY)
        shard = in_order(number, mine, pa.repeat(pa.scalar(record, BINARY), len(mine)))
        yield shard._replace(removed=theirs.take(pc.sort_indices(theirs)))


# -- the keys of rows --------------------------------------------------------------------------------------------------


def stored_values(context: TableContext, snapshot: Snapshot, column: str, slices: Sequence[FileSlice]) -> Sequence[Any]:
    """The keys that the index has for the rows that live in each of these file slices."""
    schema = pa.schema([]) if snapshot.schema is None else snapshot.schema
    reader = _Reader(SliceReader(context, schema, snapshot.timeline.visible(), snapshot.history), schema, column)
    return context.storage.each(reader.keys_of, slices)


def _stored(
    context: TableContext, snapshot: Snapshot, column: str, cache: MutableMapping[Hashable, Any]
) -> Sequence[Any]:
    if snapshot.schema is None:
        return ()
    slices = snapshot.view.latest_slices()
    fresh = [each for each in slices if each not in cache]
    cache.update(zip(fresh, stored_values(context, snapshot, column, fresh), strict=True))
    return [cache[each] for each in slices]


def _changes(context: TableContext, change: Change, column: str) -> tuple[Sequence[Any], Sequence[Any]]:
    """The keys of the index that come with an instant, and those that go."""
    commit = change.commit
    if commit is None:
        return (), ()
    snapshot, own_schema = context.on_storage().snapshot(), stated_schema(change.instant, commit)
    schema = snapshot.schema if own_schema is None else own_schema
    if schema is None:
        return (), ()
    if own_schema is not None and snapshot.schema is not None:
        _require_same_texts(_type_of(snapshot.schema, column), _type_of(own_schema, column), column)
    is_clustering = commit.operation is WriteOperation.CLUSTER
    if changes_no_keys(commit) or is_clustering:
        return (), ()
    slices = partial(SliceReader, context, schema, history=snapshot.history)
    after = _Reader(slices(visible_with(context, change.instant.time)), schema, column)
    before = _Reader(slices(snapshot.timeline.visible()), schema, column)

    def of_group(group: FileGroupId) -> tuple[Any, Any]:
        old = snapshot.view.slice_of(group)
        rows = after.entries_of(after_change(group, stats_of[group], change.instant.time, old))
        if old is None:
            return composed(*rows), pa.array([], pa.string())
        has, had = (composed(*each) for each in _differing(rows, before.entries_of(old)))
        return _without(has, had), _without(had, has)

    stats_of = groups_of(commit)
    pairs = context.storage.each(of_group, list(stats_of))
    replaced = [FileGroupId(path, each) for path, ids in change.replaced.items() for each in ids]
    old_slices = [each for group in replaced if (each := snapshot.view.slice_of(group)) is not None]
    return [each for each, _ in pairs], [
        *(each for _, each in pairs),
        *context.storage.each(before.keys_of, old_slices),
    ]


def _differing(rows: Entries, others: Entries) -> tuple[Entries, Entries]:
    """Both without the entries that are equal at the same place: in a rewritten file most are."""
    count = min(len(rows.keys), len(others.keys))
    mine, theirs = (Entries(each.texts.slice(0, count), each.keys.slice(0, count)) for each in (rows, others))
    same_text = pc.or_(
        pc.fill_null(pc.equal(mine.texts, theirs.texts), False),
        pc.and_(pc.is_null(mine.texts), pc.is_null(theirs.texts)),
    )
    is_other = pc.invert(pc.and_(same_text, pc.equal(mine.keys, theirs.keys)))

    def without_equal(entries: Entries) -> Entries:
        rest = len(entries.keys) - count
        differs = pa.concat_arrays([is_other, pa.repeat(True, rest)])
        return Entries(entries.texts.filter(differs), entries.keys.filter(differs))

    return without_equal(rows), without_equal(others)


def _without(keys: Any, others: Any) -> Any:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))


def _require_same_texts(before: pa.DataType, now: pa.DataType, column: str) -> None:
    """Raises UnsupportedTableError where values of older files have other texts by the type that the column has now."""
    is_widened = pa.types.is_integer(before) and (pa.types.is_integer(now) or pa.types.is_string(now))
    is_rescaled = pa.types.is_timestamp(before) and pa.types.is_timestamp(now)
    if before != now and not is_widened and not is_rescaled:
        raise UnsupportedTableError(f"column {column!r} is of type {now} now, and was of {before}")


def _type_of(schema: pa.Schema, column: str) -> pa.DataType:
    kind: pa.DataType = pa.struct(list(schema))
    for name in column.split("."):
        at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if at < 0:
            raise UnsupportedTableError(f"the table has no column {column!r}")
        kind = kind.field(at).type
    if not is_indexable(kind):
        raise UnsupportedTableError(f"column {column!r} is of type {kind}, which no secondary index is of")
    return kind


class _Reader:
    """Keys of the index for rows of file slices."""

    def __init__(self, slices: SliceReader, schema: pa.Schema, column: str) -> None:
        _type_of(schema, column)
        self._slices = slices
        self._column = column
        first = column.partition(".")[0]
        self._columns = pa.schema([pa.field(RECORD_KEY, pa.string()), schema.field(first)])

    def keys_of(self, file_slice: FileSlice) -> Any:
        return composed(*self.entries_of(file_slice))

    def entries_of(self, file_slice: FileSlice) -> Entries:
        """Of the rows that live."""
        rows = self._slices.rows_of(file_slice, self._columns).combine_chunks()
        first, _, rest = self._column.partition(".")
        values = rows.column(first)
        if rest:
            values = pc.struct_field(values, rest.split("."))
        texts = value_texts(values.combine_chunks(), self._column)
        return Entries(texts, rows.column(RECORD_KEY).combine_chunks())
