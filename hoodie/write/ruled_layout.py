"""The layout of a table with bucket rules that Apache Hudi made: its properties say nothing, its rules all but the hash columns."""

from __future__ import annotations

from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.hashes.of_buckets import bucket_numbers, bucket_of_file_id
from hoodie.index.bucket import hash_field_choices, some_keys
from hoodie.index.rings import ruled
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.model.buckets import BucketEngine, BucketLayout
from hoodie.options.buckets import DEFAULT_COUNT
from hoodie.options.index import IndexOptions
from hoodie.options.values import IndexType
from hoodie.view.context import Snapshot, TableContext

_MAX_FILES = 16
"""Base files whose keys are looked at."""


def ruled_layout(context: TableContext, snapshot: Snapshot, index: IndexOptions) -> BucketLayout:
    """The layout of the table, which has files of bucket rules.

    Raises:
        OptionError: the options say another index, or have to say the hash columns.
        UnsupportedTableError: its keys are not where its rules put them.
    """
    config = context.config
    if index.choice not in (None, IndexType.BUCKET) or index.bucket_engine is BucketEngine.CONSISTENT_HASHING:
        raise OptionError(
            f"options contradict table {config.name!r} at {config.uri}: it has simple buckets, their number by partition, and to "
            "write it otherwise would store keys twice; drop the options about the index"
        )
    layout = ruled(context.storage, snapshot.timeline, BucketLayout(DEFAULT_COUNT, config.record_key_fields))
    possible = [index.bucket_fields] if index.bucket_fields else hash_field_choices(config.record_key_fields)
    unstored = None if snapshot.schema is None else unstored_of(config, snapshot.schema)
    for base in [each.base for each in snapshot.view.latest_slices() if each.base is not None][:_MAX_FILES]:
        keys, bucket = some_keys(context.storage, base, unstored), bucket_of_file_id(base.file_id)
        count = layout.count_in(base.partition_path)
        possible = [each for each in possible if (bucket_numbers(keys, each, count) == bucket).all()]
    if not possible:
        raise UnsupportedTableError(
            f"table {config.name!r} at {config.uri} can be read, not written: it has numbers of buckets by partition, but its keys "
            "are not where these put them by any of its key columns. If an option names hoodie.bucket.index.hash.field, correct it"
        )
    if len(possible) > 1 and index.bucket_fields is None and index.choice is not IndexType.BUCKET:
        raise OptionError(
            f"table {config.name!r} at {config.uri} has numbers of buckets by partition, and its files do not tell which columns are "
            "hashed: set hoodie.bucket.index.hash.field to what its writers use, once; where they say nothing, to the whole key "
            f"({','.join(config.record_key_fields)})"
        )
    return BucketLayout(layout.count, possible[0], BucketEngine.SIMPLE, layout.rules)
