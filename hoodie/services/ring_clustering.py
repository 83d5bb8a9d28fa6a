"""Clusterings of tables with consistent buckets: planned by the hash rings, and their rows put where the new rings lead."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import UnsupportedTableError
from hoodie.format.hash_ring import parse_change
from hoodie.index.rings import rings_of
from hoodie.model.buckets import BucketEngine, BucketLayout
from hoodie.model.clustering import NewBuckets
from hoodie.model.commands import hoodie_command
from hoodie.model.files import FileSlice
from hoodie.model.names import parse_log_file
from hoodie.model.payloads import ClusteringPlan
from hoodie.options.write import WriteOptions
from hoodie.services.clustering_plan import group_of, params_of
from hoodie.services.ring_plan import RingRules, planned_changes, ring_group
from hoodie.storage.base import Storage
from hoodie.view.context import Snapshot, TableContext


def plan_ring_clustering(
    context: TableContext,
    snapshot: Snapshot,
    candidates: Iterable[FileSlice],
    options: WriteOptions,
    layout: BucketLayout,
) -> ClusteringPlan:
    """Which buckets are split, merged and sorted. A partition of which a clustering is pending is left out: each starts from the
    ring that the one before made.
    """
    clustering = options.clustering
    count = options.index.bucket_count or layout.count
    rules = RingRules(
        split_bytes=int(options.max_file_size_bytes * clustering.split_threshold),
        merge_bytes=int(options.max_file_size_bytes * clustering.merge_threshold),
        least=clustering.least_buckets or count,
        most=clustering.most_buckets or count,
        sorts=bool(clustering.sort_columns),
    )
    pending = {group.partition_path for group in snapshot.view.pending_clusterings()}
    by_partition: dict[str, list[FileSlice]] = {}
    for each in candidates:
        if each.group.partition_path not in pending:
            by_partition.setdefault(each.group.partition_path, []).append(each)
    rings = rings_of(context.storage, snapshot, by_partition, new_count=None)
    groups = [
        ring_group(change, slices, group_of(slices, clustering))
        for path, ring in sorted(rings.items())
        for change, slices in planned_changes(ring, by_partition[path], rules)
    ]
    return ClusteringPlan(tuple(groups[: clustering.groups]), params_of(clustering))


def new_buckets(
    context: TableContext, snapshot: Snapshot, plan: ClusteringPlan, instant_time: str
) -> list[NewBuckets] | None:
    """Where the rows of each group of the plan go; None: the table has no hash rings.

    Raises:
        UnsupportedTableError: the plan does not fit the table's rings. CorruptFileError: it cannot be read.
    """
    where = f"clustering {instant_time} of table {context.storage.uri}"
    changes = [parse_change(group.extra, path=where) for group in plan.groups]
    layout = context.config.buckets
    on_rings = layout is not None and layout.engine is BucketEngine.CONSISTENT_HASHING
    ring_changes = [each for each in changes if each is not None]
    rings = rings_of(context.storage, snapshot, {each.partition_path for each in ring_changes}, new_count=None)
    fits = all(
        each.partition_path in rings and rings[each.partition_path].number == each.number for each in ring_changes
    )
    if layout is None or not on_rings:
        if not ring_changes:
            return None
        fits = False
    if not fits or len(ring_changes) < len(changes):
        raise UnsupportedTableError(
            f"{where} does not fit the hash rings of its partitions, so its rows would not be found again; nothing was done. Drop it "
            f"({hoodie_command('rollback', context.storage.uri, instant_time, '--yes')}) and schedule another one"
        )
    return [NewBuckets(layout.fields, each.nodes) for each in ring_changes] if layout is not None else None


def refuse_rows_beside(storage: Storage, plan: ClusteringPlan, instant_time: str) -> None:
    """Raises UnsupportedTableError where Apache Hudi has written rows for the new file groups of a pending plan, beside the old ones:
    then the old ones are not as planned, and without the plan the rows would be there twice.
    """
    paths = {each.partition_path for group in plan.groups if group.extra for each in group.slices}
    for path in sorted(paths):
        for name in storage.names(path):
            log = parse_log_file(name)
            if log is not None and log.base_instant == instant_time:
                raise UnsupportedTableError(
                    f"clustering {instant_time} of table {storage.uri} can be run by Apache Hudi only, and not be dropped: Hudi has "
                    f"written rows beside it for file groups that it is going to make, such as {name} in partition {path!r}"
                )
