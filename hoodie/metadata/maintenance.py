"""The partitions of a metadata table that writes maintain: another one is added here."""

from __future__ import annotations

from collections.abc import Collection

from hoodie.metadata.bloom_filters import BloomFiltersPartition
from hoodie.metadata.column_stats import ColumnStatsPartition
from hoodie.metadata.expression_index import ExpressionPartition
from hoodie.metadata.files import FilesPartition
from hoodie.metadata.keys import (
    COLUMN_STATS,
    EXPRESSION_INDEX,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
)
from hoodie.metadata.keys_partition import KeysPartition
from hoodie.metadata.partition import MetadataPartition, PartitionError
from hoodie.metadata.partition_stats import PartitionStatsPartition
from hoodie.metadata.secondary_index import SecondaryPartition
from hoodie.options.view import ViewOptions

PARTITIONS: tuple[MetadataPartition, ...] = (
    FilesPartition(),
    ColumnStatsPartition(),
    PartitionStatsPartition(),
    BloomFiltersPartition(),
    KeysPartition(),
)


def maintained_of(names: Collection[str], options: ViewOptions) -> tuple[MetadataPartition, ...]:
    """The partitions of a metadata table that stay and are kept up; none without `files`, which has all files."""
    there = (each for name in _in_order(names) if (each := partition_of(name)) is not None)
    partitions = tuple(each for each in there if each.is_wanted(options) is not False)
    if not partitions or partitions[0].name != FILES:
        return ()
    lacks_keys = all(each.name != RECORD_INDEX for each in partitions)
    return tuple(each for each in partitions if not (lacks_keys and each.name.startswith(SECONDARY_INDEX)))


def partition_of(name: str) -> MetadataPartition | None:
    """That of this name; None where our writers keep none of its kind up."""
    if name.startswith(SECONDARY_INDEX):
        return SecondaryPartition(name)
    if name.startswith(EXPRESSION_INDEX):
        return ExpressionPartition(name)
    return next((each for each in PARTITIONS if each.name == name), None)


def without(partitions: Collection[MetadataPartition], fault: BaseException) -> tuple[MetadataPartition, ...]:
    """The partitions but for the failed one and those that depend on it; none where the fault concerns all."""
    failed = fault.partition if isinstance(fault, PartitionError) else FILES
    dropped_names = {failed, *dependents(failed, [each.name for each in partitions])}
    return () if failed == FILES else tuple(each for each in partitions if each.name not in dropped_names)


def dependents(name: str, names: Collection[str]) -> tuple[str, ...]:
    """Those of these partitions that are nothing without this one: bounds of partitions are made of those of files, and values lead to
    record keys.
    """
    if name == RECORD_INDEX:
        return tuple(each for each in names if each.startswith(SECONDARY_INDEX))
    return tuple(each for each in names if each == PARTITION_STATS) if name == COLUMN_STATS else ()


def missing_of(names: Collection[str], options: ViewOptions) -> tuple[MetadataPartition, ...]:
    """The partitions that the options ask for and `names` lacks, without `files`."""
    partitions = [each for each in PARTITIONS[1:] if each.is_wanted(options)]
    secondary = options.secondary_index
    if options.record_index.is_on and secondary.is_on is not False and secondary.column:
        partitions.append(secondary_of(secondary.name or secondary.column, secondary.column))
    return tuple(each for each in partitions if each.name not in names)


def secondary_of(name: str, column: str | None) -> SecondaryPartition:
    """A secondary index that is to be built; `name` as its user gave it, or as the partition has it."""
    return SecondaryPartition(SECONDARY_INDEX + name.removeprefix(SECONDARY_INDEX), column)


def is_wanted(options: ViewOptions) -> bool:
    """Whether a metadata table is built where there is none."""
    return options.metadata is not False and any(each.is_wanted(options) for each in PARTITIONS)


def _in_order(names: Collection[str]) -> list[str]:
    """As they are built: each behind those that it needs."""
    fixed = [each.name for each in PARTITIONS]
    return [*(name for name in fixed if name in names), *sorted(name for name in names if name not in fixed)]
