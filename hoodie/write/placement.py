"""Placement: which file groups take the rows of a batch. Each index has one; a new index is a class and a row of `PLACEMENTS`.

`write/search.py` says what each has to do.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.errors import OptionError
from hoodie.model.buckets import BucketEngine
from hoodie.options.table import TableConfig
from hoodie.options.values import GLOBAL_INDEXES, OUTSIDE_INDEXES, DuplicatePolicy, IndexType
from hoodie.options.write import WriteOptions
from hoodie.write.by_bucket import ByBucket, ByRing
from hoodie.write.by_external import ByHBase, ByOwnIndex
from hoodie.write.by_global_key import ByGlobalBloom, ByGlobalSimple
from hoodie.write.by_key import ByKey
from hoodie.write.by_record_index import ByPartitionedIndex, ByRecordIndex
from hoodie.write.operation_rules import OperationRules
from hoodie.write.search import Placement

PLACEMENTS: Mapping[IndexType, type[Placement]] = {
    IndexType.BLOOM: ByKey,
    IndexType.SIMPLE: ByKey,
    IndexType.GLOBAL_BLOOM: ByGlobalBloom,
    IndexType.GLOBAL_SIMPLE: ByGlobalSimple,
    IndexType.BUCKET: ByBucket,
    IndexType.INMEMORY: ByKey,
    IndexType.HBASE: ByHBase,
    IndexType.CUSTOM: ByOwnIndex,
    IndexType.RECORD_INDEX: ByRecordIndex,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX: ByRecordIndex,
    IndexType.RECORD_LEVEL_INDEX: ByPartitionedIndex,
}


BUCKETS: Mapping[BucketEngine, type[Placement]] = {
    BucketEngine.SIMPLE: ByBucket,
    BucketEngine.CONSISTENT_HASHING: ByRing,
}
"""Of index type BUCKET."""


def placement_class(config: TableConfig) -> type[Placement]:
    """What the table's index promises."""
    return _class_of(config, config.index or IndexType.BLOOM)


def _class_of(config: TableConfig, index: IndexType) -> type[Placement]:
    return PLACEMENTS[index] if config.buckets is None else BUCKETS[config.buckets.engine]


def _index_of(config: TableConfig, choice: IndexType) -> IndexType:
    """The index of a write: that of the table, or, where it has none, that which the write says."""
    if config.index is None:
        return IndexType.BLOOM if choice is IndexType.BUCKET else choice
    in_files = choice in GLOBAL_INDEXES and not {choice, config.index} & set(OUTSIDE_INDEXES)
    return choice if in_files and PLACEMENTS[config.index].is_global else config.index


def is_global(config: TableConfig, options: WriteOptions) -> bool:
    """Whether the write takes a record key for unique in the whole table."""
    return PLACEMENTS[_index_of(config, options.index.type)].is_global


def looks_up(config: TableConfig, options: WriteOptions) -> bool:
    """Whether the write looks its keys up in files."""
    return PLACEMENTS[_index_of(config, options.index.type)].looks_up


def placement_of(config: TableConfig, rules: OperationRules, options: WriteOptions) -> Placement:
    """The placement that the table's index asks for.

    Raises:
        OptionError: the write asks for what this index cannot do.
    """
    chosen = _class_of(config, _index_of(config, options.index.type))
    if options.stored_keys is not DuplicatePolicy.NONE and not chosen.looks_up:
        raise OptionError(
            f"table {config.name!r} has the {str(config.index).lower()} index, which looks no keys up, so an insert cannot drop rows "
            "of stored keys or fail on them: use upsert, or leave the options about duplicates out"
        )
    return chosen.of(config, rules, options)
