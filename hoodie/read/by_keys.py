"""Which file slices may hold the record keys that a filter asks for: by a record index, or the bloom filters in footers of base files.

A filter that only rows of a few keys can fulfil (`id = 'x'`, `id IN (…)`, a look-up by keys) says nothing to bounds where keys are
random: each file has keys below and above. Its bloom filter says which files do not have them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.filegroup.slice_reader import in_memory, open_base_file, open_input
from hoodie.format.bloom import BloomFilter, HudiBloomFilter, hash_chains
from hoodie.format.key_map import KeyMap, key_map_of, may_have_key_map
from hoodie.hashes.of_keys import map_hash
from hoodie.metadata.keys import SECONDARY_INDEX
from hoodie.model.files import BaseFile, FileGroupId, FileSlice
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.sought import KnownPlaces, RowBlocks, SoughtKeys
from hoodie.options.table import TableConfig
from hoodie.options.values import GLOBAL_INDEXES, KeyGeneratorType
from hoodie.read.condition import Among, Comparison, Condition, Junction, Op
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, Kind
from hoodie.view.context import Snapshot, TableContext

MAX_KEYS = 2_000
"""More keys are in most files anyway, and each is hashed for each file."""
_MAX_VALUES = 100
"""More values of a column are sought one after the other in its index."""
_THREADS = 16
_repeated: Any = pa.repeat
"""Its stubs know scalars of each type, and none of any."""
_PLAIN = (KeyGeneratorType.SIMPLE, KeyGeneratorType.NON_PARTITION, KeyGeneratorType.TIMESTAMP)
"""Their keys of one column are the texts of its values."""


class _CachedBloom(NamedTuple):
    bloom: BloomFilter | None
    """None where the file has none that can be read: whoever reads the file says what is wrong with it."""
    size_bytes: int


_FILTERS: Kind[_CachedBloom] = Kind("bloom filters of base files")


class _CachedMap(NamedTuple):
    key_map: KeyMap | None
    known: KnownPlaces


_MAPS: Kind[_CachedMap] = Kind("key maps of base files")
_PLACES_BYTES = 24 * 1024
"""What is known of the pages of some columns, and the footer."""


def keys_asked_for(
    where: object, config: TableConfig, schema: pa.Schema, most: int | None = MAX_KEYS
) -> pa.Array | None:
    """The record keys, texts, one of which a row must have to fulfil the filter; None where it may have any, or more than `most`."""
    columns = {RECORD_KEY} if config.populate_meta_fields else set()
    if config.keygen in _PLAIN and len(config.record_key_fields) == 1:
        name = config.record_key_fields[0]
        kind = schema.field(name).type if name in schema.names else pa.null()
        if pa.types.is_string(kind) or pa.types.is_integer(kind):
            columns.add(name)
    keys = _keys_in(where, columns, _texts) if isinstance(where, Condition) else None
    if keys is None or not config.populate_meta_fields or (most is not None and len(keys) > most):
        return None
    return keys


def _keys_in(condition: Condition, columns: set[str], spelled: Callable[[pa.Array], pa.Array]) -> pa.Array | None:
    match condition:
        case Comparison(str(column), Op.EQ, value) if column in columns:
            return spelled(_repeated(value, 1))
        case Among(str(column), values) if column in columns:
            return spelled(values)
        case Junction(every, parts):
            keys_of_parts = [_keys_in(part, columns, spelled) for part in parts]
            key_lists = [keys for keys in keys_of_parts if keys is not None]
            if every:
                return min(key_lists, key=len, default=None)
            if key_lists and len(key_lists) == len(keys_of_parts):
                keys: pa.Array = pc.unique(pa.concat_arrays(key_lists))
                return keys
    return None


def values_asked_for(where: object, config: TableConfig, columns: Collection[str]) -> Mapping[str, pa.Array]:
    """Column -> values, one of which a row must have to fulfil the filter, of these columns, of which a table may have an index."""
    if not isinstance(where, Condition) or not any(
        each.startswith(SECONDARY_INDEX) for each in config.metadata_partitions
    ):
        return {}
    pairs = ((column, _keys_in(where, {column}, _same)) for column in _columns(where) if column in columns)
    return {column: values for column, values in pairs if values is not None and len(values) <= _MAX_VALUES}


def _columns(condition: Condition) -> list[str]:
    match condition:
        case Comparison(str(column), Op.EQ, _) | Among(str(column), _):
            return [column]
        case Junction(_, parts):
            return list(dict.fromkeys(name for part in parts for name in _columns(part)))
    return []


def _same(values: pa.Array) -> pa.Array:
    return values


def _texts(values: pa.Array) -> pa.Array:
    texts: pa.Array = values.cast(pa.string())
    return texts


def groups_with(
    context: TableContext, snapshot: Snapshot, keys: pa.Array, groups: Sequence[FileGroupId], *, stored: bool
) -> Collection[FileGroupId] | None:
    """Those of these file groups that have rows of the keys, by a record index; None where it cannot say so. `stored`: each key has
    one.

    One of the whole table has one place for each key. So it is asked where a key has no other: in tables that remember an index of the
    whole table, and in those without partitions. One by partitions has one in each of them.
    """
    if context.catalogue is None:
        return None
    there, paths = set(groups), {group.partition_path for group in groups}
    is_unique = _has_one_place(context.config)
    places = context.catalogue.groups_of(snapshot.timeline, keys, paths, is_unique=is_unique, stored=stored)
    if places is None:
        return None
    # A place that is none any more says that the index is wrong. Partitions that do not fit the filter were not listed.
    return places if all(each in there or each.partition_path not in paths for each in places) else None


def _has_one_place(config: TableConfig) -> bool:
    """Whether a key has one at most."""
    return not config.partition_fields or config.index in GLOBAL_INDEXES


def keys_with_values(context: TableContext, snapshot: Snapshot, values_of: Mapping[str, pa.Array]) -> pa.Array | None:
    """The record keys of the rows that a filter asks for by values of columns, by a secondary index; None where that cannot say so, or
    has too many.
    """
    if context.catalogue is None or not _has_one_place(context.config):
        return None
    for column, values in values_of.items():
        result = context.catalogue.keys_with(snapshot.timeline, column, values, MAX_KEYS)
        if result is not None:
            return result
    return None


def may_hold(
    context: TableContext,
    snapshot: Snapshot,
    candidates: Sequence[Sequence[FileSlice]],
    keys: pa.Array,
    places: Mapping[str, RowBlocks],
) -> npt.NDArray[np.bool_]:
    """For each candidate, which is some slices of one file group, whether one of them may have one of the keys.

    `places`: where in base files they may stand, as far as that is known.
    """
    view = snapshot.view
    judged = [
        all(each.base is not None and not (each.logs and view.logs_before_base(each)) for each in slices)
        for slices in candidates
    ]
    files = {
        each.base.path: each.base
        for slices, has_all_keys in zip(candidates, judged, strict=True)
        if has_all_keys
        for each in slices
        if each.base is not None
    }
    flags = {path: len(where.blocks) > 0 for path, where in places.items()}
    rest = {path: base for path, base in files.items() if path not in flags}
    if len(candidates) > 1:
        look = partial(_may_hold, context.storage, context.cache, _KeyHashes(keys))
        flags |= zip(rest, LocalEngine(_THREADS).run(look, list(rest.values()), label="bloom filters"), strict=True)
    return np.array(
        [
            not has_all_keys or any(flags.get(each.base.path, True) for each in slices if each.base is not None)
            for slices, has_all_keys in zip(candidates, judged, strict=True)
        ],
        np.bool_,
    )


class _KeyHashes:
    """Keys that many filters are asked for: each is hashed once."""

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys
        self._chains: npt.NDArray[np.uint32] | None = None
        self._are_hashed = True

    def in_filter(self, bloom: BloomFilter) -> bool:
        if isinstance(bloom, HudiBloomFilter) and self._are_hashed:
            chains = self._chains
            if chains is None or len(chains) < bloom.hashes:
                chains = self._chains = hash_chains(self._keys, bloom.hashes)
            if chains is not None:
                return bloom.might_contain_one(chains)
            self._are_hashed = False  # a key is empty
        return bool(bloom.might_contain(self._keys).any())


def places_in(
    context: TableContext, candidates: Sequence[Sequence[FileSlice]], sought: SoughtKeys | None
) -> Mapping[str, RowBlocks]:
    """Where rows of the keys may stand in the base files of these slices, of those that say so (`format/key_map.py`)."""
    if sought is None or context.storage.can.is_remote:
        return {}  # where reads are requests, a footer and the columns take as many
    bases = {each.base.path: each.base for slices in candidates for each in slices if each.base is not None}
    look = partial(_blocks_in, context.storage, context.cache, map_hash(sought.keys))
    found = LocalEngine(_THREADS).run(look, list(bases.values()), label="key maps")
    return {path: where for path, where in zip(bases, found, strict=True) if where is not None}


def _blocks_in(storage: Storage, cache: Cache, hashes: np.ndarray, base: BaseFile) -> RowBlocks | None:
    name = (storage.identity, base.path, base.size_bytes)
    cached = cache.find(_MAPS, name)
    if cached is None:
        cached = _CachedMap(_map_of(storage, base), KnownPlaces())
        cache.put(_MAPS, name, cached, 0 if cached.key_map is None else cached.key_map.size_bytes + _PLACES_BYTES)
    return None if cached.key_map is None else cached.key_map.blocks_of(hashes)._replace(known=cached.known)


def _map_of(storage: Storage, base: BaseFile) -> KeyMap | None:
    if not may_have_key_map(base.size_bytes) or base.source is not None:
        return None
    try:
        with open_input(storage, base) as source:
            data = in_memory(source)
            return None if data is None else key_map_of(data)
    except (CorruptFileError, pa.ArrowException):
        return None  # whoever reads the file says what is wrong with it


def _may_hold(storage: Storage, cache: Cache, keys: _KeyHashes, base: BaseFile) -> bool:
    name = (storage.identity, base.path, base.size_bytes)
    bloom = cache.get(_FILTERS, name, partial(_filter_of, storage, base), lambda entry: entry.size_bytes).bloom
    return bloom is None or keys.in_filter(bloom)


def _filter_of(storage: Storage, base: BaseFile) -> _CachedBloom:
    try:
        opened = open_base_file(storage, base)
        with opened as (_, metadata):
            footer = opened.footer(metadata)
            return _CachedBloom(footer.bloom(), 3 * len(footer.bloom_base64 or "") // 4)
    except (CorruptFileError, UnsupportedTableError, pa.ArrowException):
        return _CachedBloom(None, 0)
