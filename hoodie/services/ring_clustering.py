"""Clusterings of tables with consistent buckets: planned by the hash rings, and their rows put where the new rings lead.

Large buckets are split, and small neighbours on the ring become one, by the rules of Apache Hudi's
`SparkConsistentBucketClusteringPlanStrategy`. Two things differ: the largest buckets are split first where the most that a partition
may have is near, and a bucket that is neither split nor merged is rewritten only where rows are to be sorted.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.errors import UnsupportedTableError
from hoodie.format.hash_ring import GREATEST, format_change, parse_change
from hoodie.index.rings import rings_of
from hoodie.model.buckets import BucketEngine, BucketLayout, HashRing, RingChange, RingNode
from hoodie.model.clustering import NewBuckets
from hoodie.model.files import FileSlice, total_bytes
from hoodie.model.names import hoodie_command, parse_log_file
from hoodie.model.payloads import ClusteringGroup, ClusteringPlan
from hoodie.options.write import WriteOptions
from hoodie.services.clustering_plan import group_of, params_of
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


@dataclass(frozen=True)
class RingRules:
    """How large buckets may be, and how many a partition may have."""

    split_bytes: int
    """A larger bucket is split."""
    merge_bytes: int
    """Neighbours are merged that are not larger, alone and together up to the last of them."""
    least: int
    most: int
    sorts: bool
    """Buckets that stay are rewritten, too."""


def planned_changes(
    ring: HashRing, slices: Iterable[FileSlice], rules: RingRules
) -> list[tuple[RingChange, list[FileSlice]]]:
    """What becomes of the buckets of a partition, each change with the slices that it takes. `slices`: those that are free."""
    at = {ring.numbers[each.group.file_id]: each for each in slices}
    splits: dict[int, RingChange] = {}
    for number in sorted(at, key=lambda number: -at[number].size_bytes):
        if at[number].size_bytes > rules.split_bytes and len(ring.nodes) + len(splits) < rules.most:
            change = _split(ring, number)
            if change is not None:
                splits[number] = change
    result = [(change, [at.pop(number)]) for number, change in sorted(splits.items())]
    room = len(ring.nodes) + len(splits) - rules.least
    for run in _runs(ring, at, rules.merge_bytes):
        nodes = run[: 1 + max(0, room)]
        if len(nodes) > 1:
            room -= len(nodes) - 1
            result.append((_merge(ring, nodes), [at.pop(number) for number in nodes]))
    if rules.sorts:
        result += [
            (RingChange(ring.partition_path, ring.number, (_fresh(ring.nodes[n].value),)), [each])
            for n, each in sorted(at.items())
        ]
    return result


def ring_group(change: RingChange, slices: Sequence[FileSlice], plain: ClusteringGroup) -> ClusteringGroup:
    """The group of a clustering plan; `plain`: as it is without a ring."""
    return ClusteringGroup(plain.slices, len(change.nodes), plain.metrics, format_change(change))


def _runs(ring: HashRing, at: Mapping[int, FileSlice], merge_bytes: int) -> Iterable[list[int]]:
    """Numbers of neighbours that are small enough to be one; none beyond the end of the ring."""
    run: list[int] = []
    for number in range(len(ring.nodes)):
        here = at.get(number)
        small = here is not None and here.size_bytes <= merge_bytes
        if run and not (small and total_bytes(at[each] for each in run) <= merge_bytes):
            yield run
            run = []
        if small:
            run.append(number)
    yield run


def _split(ring: HashRing, number: int) -> RingChange | None:
    """Two buckets of half the range each; None: a range of one hash."""
    end = ring.nodes[number].value
    start = ring.nodes[number - 1].value
    middle = ((start + end + (0 if start < end else GREATEST + 1)) >> 1) & GREATEST
    if middle in (start, end):
        return None
    return RingChange(ring.partition_path, ring.number, (_fresh(middle), _fresh(end)))


def _merge(ring: HashRing, numbers: Sequence[int]) -> RingChange:
    values = [ring.nodes[number].value for number in numbers]
    return RingChange(ring.partition_path, ring.number, (_fresh(values[-1]),), tuple(values[:-1]))


def _fresh(value: int) -> RingNode:
    return RingNode(value, str(uuid.uuid4()))
