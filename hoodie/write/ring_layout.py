"""The layout of a table with consistent buckets that Apache Hudi made: its properties say nothing, its hash rings nearly all.

What they do not say are the hash columns. A single key column leaves no choice. Of several, the keys of some base files decide; where
rows stand in logs only, an option has to.
"""

from __future__ import annotations

from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.hashes.of_buckets import ring_hashes
from hoodie.index.bucket import hash_field_choices, some_keys
from hoodie.index.rings import rings_of
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.model.buckets import BucketEngine, BucketLayout, places_on
from hoodie.options.buckets import DEFAULT_COUNT
from hoodie.options.index import IndexOptions
from hoodie.options.values import IndexType
from hoodie.view.context import Snapshot, TableContext

_MAX_FILES = 16
"""Base files whose keys are looked at; a single one of some hundred keys nearly always decides."""


def ring_layout(context: TableContext, snapshot: Snapshot, index: IndexOptions) -> BucketLayout:
    """The layout of the table, which has hash rings.

    Raises:
        OptionError: the options say another index, or have to say the hash columns.
        UnsupportedTableError: its keys are not where its rings lead.
    """
    config = context.config
    by_bucket = index.choice in (None, IndexType.BUCKET)
    if not by_bucket or index.bucket_engine is BucketEngine.SIMPLE:
        raise OptionError(
            f"options contradict table {config.name!r} at {config.uri}: it has consistent buckets, and to write them otherwise would "
            "store keys twice; drop the options about the index"
        )
    bases = [each.base for each in snapshot.view.latest_slices() if each.base is not None][:_MAX_FILES]
    paths = set(snapshot.view.partitions()) if not bases else {base.partition_path for base in bases}
    rings = rings_of(context.storage, snapshot, sorted(paths)[:_MAX_FILES], new_count=None)
    choices = [index.bucket_fields] if index.bucket_fields else hash_field_choices(config.record_key_fields)
    unstored = None if snapshot.schema is None else unstored_of(config, snapshot.schema)
    possible = choices
    for base in bases:
        ring = rings.get(base.partition_path)
        if ring is None:
            possible = []
            break
        keys, bucket = some_keys(context.storage, base, unstored), ring.numbers.get(base.file_id)
        possible = [each for each in possible if (places_on(ring.values, ring_hashes(keys, each)) == bucket).all()]
    if not possible:
        raise UnsupportedTableError(
            f"table {config.name!r} at {config.uri} can be read, not written: it has consistent buckets, but its keys are not where "
            "its hash rings lead by any of its key columns. If an option names hoodie.bucket.index.hash.field, correct it"
        )
    if len(possible) > 1:
        raise OptionError(
            f"table {config.name!r} at {config.uri} has consistent buckets, and its files do not tell which columns are hashed: set "
            "hoodie.bucket.index.hash.field to what its writers use, once; where they say nothing, to the whole key "
            f"({','.join(config.record_key_fields)})"
        )
    counts = {ring.count for ring in rings.values()}
    count = index.bucket_count or (max(counts) if counts else DEFAULT_COUNT)
    return BucketLayout(count, possible[0], BucketEngine.CONSISTENT_HASHING)
