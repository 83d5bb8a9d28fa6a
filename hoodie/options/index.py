"""How keys are found in files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hoodie.model.buckets import RULE_TYPE, BucketEngine, BucketRules
from hoodie.options.hbase import HBaseOptions
from hoodie.options.option import Keys, combined, group, key, option, shared
from hoodie.options.values import IndexType, Kind, boolean, fields, fraction, index_class, one_of, whole

INDEX_TYPE = key(
    "hoodie.index.type",
    one_of(
        [each for each in IndexType if each is not IndexType.CUSTOM],
        unsupported=("FLINK_STATE",),
    ),
    "BLOOM",
)
"""How a write finds keys in files (docs/INDEXES.md). SIMPLE and INMEMORY use the same look-up as BLOOM (with Apache
Hudi's INMEMORY a new process does not know the keys of other writers). GLOBAL_BLOOM and GLOBAL_SIMPLE search all
partitions: a key is unique in the whole table, and an upsert can move its row to another partition. RECORD_INDEX (or
GLOBAL_RECORD_LEVEL_INDEX) uses the record index of the metadata table, which `hoodie.metadata.record.index.enable`
builds. RECORD_LEVEL_INDEX, with which a key is unique in its partition, uses a record index by partitions, which
`hoodie.metadata.record.level.index.enable` builds in tables of version 8 and 9. If the record index is missing, the
write searches the files. HBASE keeps the keys in HBase, with the options and the layout of Apache Hudi 0.x. BUCKET is a
layout: the hash of a key determines its file group. BUCKET and global indexes are chosen when the table is created (or
first written), and later writes need no option. For a table that Apache Hudi created, give the index with each
write."""
BUCKET_ENGINE = key("hoodie.index.bucket.engine", one_of(BucketEngine), "SIMPLE")
"""With index type BUCKET: SIMPLE has a fixed number of buckets, the same in every partition unless
`hoodie.bucket.index.partition.expressions` gives others. CONSISTENT_HASHING begins with that number, and clusterings
split and merge buckets; merge-on-read tables only. Chosen when the table is created or first written."""
BUCKET_COUNT = key("hoodie.bucket.index.num.buckets", whole(1), None)
"""With index type BUCKET: number of file groups of a partition, which cannot change later. With CONSISTENT_HASHING: the
initial number of a new partition. Unset: 256 in a new table (Apache Hudi's default), and the number that the files show
in a table of Apache Hudi."""
BUCKET_FIELDS = key("hoodie.bucket.index.hash.field", fields(), None)
"""With index type BUCKET: record key columns whose values are hashed. Unset: all of them."""


def _rules(text: str) -> BucketRules | None:
    rules = BucketRules(text) if text else None
    _ = None if rules is None else rules.parsed
    return rules


BUCKET_RULES = key(
    "hoodie.bucket.index.partition.expressions", Kind("EXPRESSION,NUMBER;EXPRESSION,NUMBER;…", _rules), None
)
"""With index type BUCKET and engine SIMPLE: other numbers of buckets for partitions whose path matches a regular
expression; the first match applies. Chosen when the table is created or first written."""


INDEX_CLASS = key("hoodie.index.class", index_class(), None)
"""An index of your own, in place of `hoodie.index.type`: a name that `hoodie.register_index` was given, or the dotted
name of a Python class whose constructor takes no arguments (docs/INDEXES.md). The table remembers it."""


def _index_type(index_type: IndexType, of_class: str | None) -> IndexType:
    return index_type if of_class is None else IndexType.CUSTOM


@dataclass(frozen=True)
class IndexOptions:
    type: IndexType = combined(_index_type, INDEX_TYPE, INDEX_CLASS)
    choice: IndexType | None = None
    """None: not said, the table's own counts. With the three below for a table whose properties do not say its layout."""
    bucket_engine: BucketEngine | None = None
    bucket_count: int | None = None
    bucket_fields: tuple[str, ...] | None = None
    bucket_rules: BucketRules | None = None
    bloom_fpp: float = option("hoodie.index.bloom.fpp", fraction(), 1e-6)
    """False positive rate of the bloom filters in base files (Apache Hudi's default: 1e-9, half as much again in size and
    time)."""
    bloom_num_entries: int | None = option("hoodie.index.bloom.num_entries", whole(1), None)
    """Keys that a bloom filter is sized for. Unset: the records of the file (Apache Hudi's default: 60000)."""
    bloom_type: str = option(
        "hoodie.bloom.index.filter.type",
        one_of(("DYNAMIC_V0", "SIMPLE", "PYBLOOM_LIVE")),
        "DYNAMIC_V0",
    )
    """Kind of bloom filter. PYBLOOM_LIVE is for tables that only hoodie reads and needs the extra `pybloom`."""
    bloom_max_entries: int = option("hoodie.bloom.index.filter.dynamic.max.entries", whole(1), 100_000)
    """Keys up to which a DYNAMIC_V0 filter grows; with more keys false positives become frequent."""
    prune_by_ranges: bool = option("hoodie.bloom.index.prune.by.ranges", boolean(), True)
    """Skip files whose key range does not hold the key."""
    bloom_moves_rows: bool = option("hoodie.bloom.index.update.partition.path", boolean(), True)
    """With index type GLOBAL_BLOOM: an upsert moves a row to its new partition. False: the row stays in the partition
    of its stored key, although its partition column has another value."""
    simple_moves_rows: bool = option("hoodie.simple.index.update.partition.path", boolean(), True)
    """The same with index type GLOBAL_SIMPLE."""
    record_moves_rows: bool = option("hoodie.record.index.update.partition.path", boolean(), False)
    """The same with index types RECORD_INDEX and GLOBAL_RECORD_LEVEL_INDEX."""
    own_moves_rows: bool = option("hoodie.python.index.update.partition.path", boolean(), True)
    """The same with an index of your own."""
    own_class: str | None = shared(INDEX_CLASS)
    hbase: HBaseOptions = group(HBaseOptions)

    OTHERS: ClassVar[Keys] = (
        BUCKET_ENGINE,
        BUCKET_COUNT,
        BUCKET_FIELDS,
        BUCKET_RULES,
        key("hoodie.bucket.index.partition.rule.type", one_of((RULE_TYPE,)), RULE_TYPE, "What such expressions are."),
    )
