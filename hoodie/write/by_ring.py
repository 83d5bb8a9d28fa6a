"""Placement by consistent buckets: the hash of a key names a node of its partition's hash ring, and that the file group.

As `ByBucket`, but how many buckets there are is the partition's own matter, and changes: a clustering that was completed since the
rows were placed makes the write look again. File ids follow from the ring, so two writers that start a bucket at once name the
same file group, and one of them has to go again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from hoodie.format.hash_ring import first_ring, renewed_ring
from hoodie.index.bloom import pieces_by_partition
from hoodie.index.bucket import plan_buckets, run_buckets
from hoodie.index.rings import is_on, is_spent, rings_of
from hoodie.model.buckets import HashRing
from hoodie.model.files import FileSlice
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.view import FileSystemView
from hoodie.write.batch import Batch
from hoodie.write.by_bucket import ByBucket, FoundBuckets, plan_bucket_write
from hoodie.write.operation_rules import OperationRules, Replaces, Step
from hoodie.write.plan import Target, WritePlan


@dataclass(frozen=True)
class FoundNodes(FoundBuckets):
    """Rows of a batch by partition and bucket: true while the partitions have these rings."""

    rings: Mapping[str, HashRing]

    def holds(self, slices: Sequence[FileSlice], view: FileSystemView) -> bool:
        by_partition: dict[str, list[FileSlice]] = {path: [] for path in self.rings}
        for each in slices:
            by_partition[each.group.partition_path].append(each)
        return all(is_on(ring, by_partition[path], view) for path, ring in self.rings.items())

    def plan(self, target: Target) -> WritePlan:
        stored = {
            (each.group.partition_path, self.rings[each.group.partition_path].numbers[each.group.file_id]): each
            for each in target.slices
        }
        return plan_bucket_write(
            self.rows,
            self.pieces,
            target,
            stored=stored,
            file_id=lambda partition_path, bucket: self.rings[partition_path].nodes[bucket].file_id,
            inserts=self.inserts,
        )


@dataclass(frozen=True)
class ByRing(ByBucket):
    replaces: bool = False
    """Rows go to new file groups, as `txn/hash_rings.py` puts them on the ring."""
    rows_may_move: ClassVar = True

    @classmethod
    def of(cls, config: TableConfig, rules: OperationRules, options: WriteOptions) -> ByRing:
        if config.buckets is None:
            raise ValueError(f"table {config.name!r} has no buckets")
        return cls(config.buckets, rules.inserts, replaces=rules.replaces is not Replaces.NOTHING)

    def locate(
        self,
        context: TableContext,
        batch: Batch,
        snapshot: Snapshot,
        label: Callable[[Step], str],
        earlier: object = None,
    ) -> FoundNodes:
        pieces = pieces_by_partition(batch.chunks)
        count = self.layout.count
        new_count = count if self.inserts else None
        rings = rings_of(context.storage, snapshot, pieces, new_count=new_count, strict=not self.replaces)
        if self.replaces:
            rings = {path: _renewed(ring, snapshot) for path, ring in rings.items()}
        # A partition without a ring has no rows to delete.
        rings |= {path: first_ring(path, count) for path in pieces.keys() - rings.keys()}
        if isinstance(earlier, FoundNodes) and earlier.layout == self.layout and earlier.rings == rings:
            return earlier
        tasks = plan_buckets(batch.chunks, self.layout, stage_to=batch.folder, rings=rings)
        rows_of_tasks = batch.engine.run(partial(run_buckets, context.storage), tasks, label=label(Step.HASH))
        return FoundNodes([rows for each in rows_of_tasks for rows in each], pieces, self.layout, self.inserts, rings)


def _renewed(ring: HashRing, snapshot: Snapshot) -> HashRing:
    """What the ring is once its partition is overwritten."""
    slices = snapshot.view.latest_slices([ring.partition_path])
    return renewed_ring(ring, ring.instant) if is_spent(ring, slices, snapshot.view) else ring
