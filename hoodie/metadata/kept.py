"""Which partitions of a metadata table our writers keep up: where one more goes."""

from __future__ import annotations

from collections.abc import Collection

from hoodie.metadata.bloom_filters import BloomFiltersPartition
from hoodie.metadata.column_stats import ColumnStatsPartition
from hoodie.metadata.files import FilesPartition
from hoodie.metadata.keys import COLUMN_STATS, FILES, PARTITION_STATS
from hoodie.metadata.keys_partition import KeysPartition
from hoodie.metadata.partition import KeptPartition, PartitionError
from hoodie.metadata.partition_stats import PartitionStatsPartition
from hoodie.options.view import ViewOptions

KEPT: tuple[KeptPartition, ...] = (
    FilesPartition(),
    ColumnStatsPartition(),
    PartitionStatsPartition(),
    BloomFiltersPartition(),
    KeysPartition(),
)


def kept_of(names: Collection[str], options: ViewOptions) -> tuple[KeptPartition, ...]:
    """Of the partitions that a metadata table has, those that stay and are kept up; none without `files`, which tells all files."""
    kept = tuple(each for each in KEPT if each.name in names and each.is_wanted(options) is not False)
    return kept if kept and kept[0].name == FILES else ()


def without(kept: Collection[KeptPartition], fault: BaseException) -> tuple[KeptPartition, ...]:
    """What is left when one cannot be kept up, and bounds of partitions not without those of files; none where that concerns all."""
    failed = fault.partition if isinstance(fault, PartitionError) else FILES
    gone = {failed, PARTITION_STATS} if failed == COLUMN_STATS else {failed}
    return () if failed == FILES else tuple(each for each in kept if each.name not in gone)


def missing_of(names: Collection[str], options: ViewOptions) -> tuple[KeptPartition, ...]:
    """Those that are to be built beside `files`."""
    return tuple(each for each in KEPT[1:] if each.name not in names and each.is_wanted(options))


def is_wanted(options: ViewOptions) -> bool:
    """Whether a metadata table is built where there is none."""
    return options.metadata is not False and any(each.is_wanted(options) for each in KEPT)
