"""What a clustering of consistent buckets does: large buckets are split, small neighbours on the ring become one. Pure.

The rules are those of Apache Hudi's `SparkConsistentBucketClusteringPlanStrategy`. Two things differ: the largest buckets are split
first where the most that a partition may have is near, and a bucket that is neither split nor merged is rewritten only where rows
are to be sorted.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.format.hash_ring import GREATEST, format_change
from hoodie.model.buckets import HashRing, RingChange, RingNode
from hoodie.model.files import FileSlice, total_bytes
from hoodie.model.payloads import ClusteringGroup


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
