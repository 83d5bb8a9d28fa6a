"""What a clustering plan names: partitions, their files, and the groups of files that are put in order together. Pure.

The rules are those of Apache Hudi's `SparkSizeBasedClusteringPlanStrategy` and its partition filters. Two things differ: a file
that would be alone in its group is left as it is where nothing is sorted and no log merged, and a slice without a base file
counts by its logs, not as a full file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hoodie.model.enums import PartitionFilter
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.payloads import ClusteredSlice, ClusteringGroup, ClusteringPlan
from hoodie.options.clustering import ClusteringOptions
from hoodie.options.option import option_name

_MB = 1024 * 1024


def chosen_partitions(partitions: Iterable[str], options: ClusteringOptions) -> tuple[str, ...]:
    """The partition paths that are clustered, sorted."""
    result = sorted(set(partitions))
    if options.partitions is not None:
        result = [path for path in result if path in options.partitions]
    if options.selected:
        result = [path for path in result if path in options.selected]
    elif options.regex is not None:
        fits = re.compile(options.regex)
        result = [path for path in result if fits.fullmatch(path)]
    if options.partition_filter is PartitionFilter.SELECTED_PARTITIONS:
        begin, end = options.begin or "", options.end or ""
        result = [path for path in result if begin <= path <= end]
    elif options.partition_filter is PartitionFilter.RECENT_DAYS:
        newest = result[::-1][options.skip :]
        result = sorted(newest[: options.lookback] if options.lookback else newest)
    return tuple(result)


def plan_clustering(
    slices: Iterable[FileSlice], options: ClusteringOptions, *, excluded: frozenset[FileGroupId] = frozenset()
) -> ClusteringPlan:
    """Which files are put in order together; a plan without groups when there is nothing to do.

    Args:
        slices: the latest ones of the chosen partitions.
        excluded: file groups that a pending write, compaction or clustering names.
    """
    by_partition: dict[str, list[FileSlice]] = {}
    for each in slices:
        if each.group not in excluded and (each.base is None or each.base.rows_bytes < options.small_file_bytes):
            by_partition.setdefault(each.group.partition_path, []).append(each)
    groups = [group for _, of_partition in sorted(by_partition.items()) for group in _groups(of_partition, options)]
    return ClusteringPlan(tuple(groups[: options.groups]), params_of(options))


def _groups(slices: Sequence[FileSlice], options: ClusteringOptions) -> list[ClusteringGroup]:
    """Of one partition, the largest files first."""
    slices_of_groups: list[list[FileSlice]] = []
    size = 0
    for each in sorted(slices, key=lambda s: (-_weight(s), s.group.file_id)):
        if not slices_of_groups or size + _weight(each) > options.group_bytes:
            slices_of_groups.append([])
            size = 0
        slices_of_groups[-1].append(each)
        size += _weight(each)
    return [group_of(each, options) for each in slices_of_groups if len(each) > 1 or _worth_it_alone(each[0], options)]


def _worth_it_alone(file_slice: FileSlice, options: ClusteringOptions) -> bool:
    return options.single_files and bool(options.sort_columns or file_slice.logs)


def _weight(file_slice: FileSlice) -> int:
    return file_slice.base.rows_bytes if file_slice.base else sum(log.size_bytes for log in file_slice.logs)


def group_of(slices: Sequence[FileSlice], options: ClusteringOptions) -> ClusteringGroup:
    """These slices as a group of a plan."""
    total = sum(map(_weight, slices))
    logs = [log for each in slices for log in each.logs]
    log_bytes = sum(log.size_bytes for log in logs)
    base_bytes = sum(each.base.rows_bytes for each in slices if each.base)
    return ClusteringGroup(
        tuple(
            ClusteredSlice(
                each.group.partition_path,
                each.group.file_id,
                each.base.name if each.base else None,
                tuple(log.name for log in each.logs),
                each.base.source_uri if each.base else None,
            )
            for each in slices
        ),
        max(1, -(-total // options.target_bytes)),
        {
            "TOTAL_LOG_FILES": float(len(logs)),
            "TOTAL_LOG_FILES_SIZE": float(log_bytes),
            "TOTAL_IO_READ_MB": float((base_bytes + log_bytes) // _MB),
            "TOTAL_IO_WRITE_MB": float(base_bytes // _MB),
            "TOTAL_IO_MB": float((2 * base_bytes + log_bytes) // _MB),
        },
    )


def params_of(options: ClusteringOptions) -> dict[str, str]:
    """Apache Hudi reads the columns from the plan, and the layout from the options of whoever runs it; we leave both here."""
    if not options.sort_columns:
        return {}
    return {
        option_name(ClusteringOptions, "sort_columns"): ",".join(options.sort_columns),
        option_name(ClusteringOptions, "layout"): options.layout.value,
    }
