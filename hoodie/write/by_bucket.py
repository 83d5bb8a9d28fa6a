"""Placement by the bucket index: the hash of a key names its file group, so no file is looked into.

It must not be: on merge-on-read tables keys stand in logs only. The first rows of a bucket make its base file. Later ones go to the
log of its file group on merge-on-read tables, new keys too, and are merged into a new base file on copy-on-write ones: what Apache
Hudi does (observed, integration/test_bucket_with_hudi.py). Of a non-blocking writer the first rows go to a log, too.

With consistent buckets the hash names a node of the partition's hash ring, and that the file group (`ByRing`). The number of buckets
changes: if a clustering was completed since the rows were placed, the write looks again. File ids follow from the ring, so two
writers that start a bucket at once name the same file group, and one of them has to go again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import ClassVar

from hoodie.format.hash_ring import first_ring, renewed_ring
from hoodie.hashes.of_buckets import bucket_file_id, bucket_of_file_id, shared_bucket_file_id
from hoodie.index.bloom import pieces_by_partition
from hoodie.index.bucket import plan_buckets, run_buckets, slices_by_bucket
from hoodie.index.rings import is_on, is_spent, rings_of
from hoodie.model.buckets import BucketLayout, BucketRows, HashRing
from hoodie.model.enums import TableType
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import InstantTime
from hoodie.model.plans import ChunkPiece, CreateTask, Matches, RowsTask, WriteTask
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.view.context import Snapshot
from hoodie.view.view import FileSystemView
from hoodie.write.operation_rules import OperationRules, Replaces, Step
from hoodie.write.plan import Target, WritePlan, append_of, merge_of
from hoodie.write.search import Placement, Search


@dataclass(frozen=True)
class FoundBuckets:
    """Rows of a batch by partition and bucket: true whatever is stored."""

    rows: Sequence[BucketRows]
    pieces: Mapping[str, Sequence[ChunkPiece]]
    layout: BucketLayout
    inserts: bool
    opened = 0

    def ways(self, plan: WritePlan) -> Mapping[str, int]:
        return {"bucket": len({(task.partition_path, task.file_id) for task in plan.tasks})}

    def slices(self, view: FileSystemView) -> list[FileSlice]:
        return view.latest_slices(self.pieces)

    def holds(self, slices: Sequence[FileSlice], view: FileSystemView) -> bool:
        return True

    def plan(self, target: Target) -> WritePlan:
        stored = slices_by_bucket(target.slices, self.layout, table=target.table)
        return plan_bucket_write(
            self.rows, self.pieces, target, stored=stored, file_id=new_file_id, inserts=self.inserts
        )


@dataclass(frozen=True)
class ByBucket(Placement):
    layout: BucketLayout
    inserts: bool
    step: Step | None = Step.HASH
    looks_up: ClassVar = False
    combines: ClassVar = True
    starts_anywhere: ClassVar = False
    rows_may_move: ClassVar = False
    is_global: ClassVar = False

    @classmethod
    def of(cls, config: TableConfig, rules: OperationRules, options: WriteOptions) -> ByBucket:
        if config.buckets is None:
            raise ValueError(f"table {config.name!r} has no buckets")
        return cls(config.buckets, rules.inserts)

    def locate(self, search: Search) -> FoundBuckets:
        earlier = search.earlier
        if isinstance(earlier, FoundBuckets) and earlier.layout == self.layout:
            return earlier
        rows = self._hashed(search)
        return FoundBuckets(rows, pieces_by_partition(search.batch.chunks), self.layout, self.inserts)

    def _hashed(self, search: Search, rings: Mapping[str, HashRing] | None = None) -> list[BucketRows]:
        batch = search.batch
        tasks = plan_buckets(batch.chunks, self.layout, stage_to=batch.folder, rings=rings)
        run = partial(run_buckets, search.context.storage)
        rows_of_tasks = batch.engine.run(run, tasks, label=search.label(Step.HASH))
        return [rows for each in rows_of_tasks for rows in each]


def new_file_id(partition_path: str, bucket: int) -> str:
    """Of a bucket's first file group, the same bucket of every partition."""
    return bucket_file_id(bucket)


def plan_bucket_write(
    bucket_rows: Iterable[BucketRows],
    pieces: Mapping[str, Sequence[ChunkPiece]],
    target: Target,
    *,
    stored: Mapping[tuple[str, int], FileSlice],
    file_id: Callable[[str, int], str],
    inserts: bool,
) -> WritePlan:
    """One task for each bucket that gets rows.

    Args:
        pieces: by partition path, in arrival order.
        stored: the slice of each (partition path, bucket) that has one; `file_id` names the file group of any other.
        inserts: rows may make new file groups (not so for deletes: what is stored nowhere needs no delete).
    """
    rows: dict[tuple[str, int], list[Matches]] = {}
    for each in bucket_rows:
        rows.setdefault((each.partition_path, each.bucket), []).append(each.rows)
    tasks: list[WriteTask] = []
    based_on: dict[FileGroupId, InstantTime] = {}
    absent, starts = set(), set()
    for (partition_path, bucket), matches in sorted(rows.items()):
        file_slice = stored.get((partition_path, bucket))
        if file_slice is None:
            absent.add(partition_path)
            if not inserts:
                continue
            if target.starts_logs:
                file_slice = _slice_to_start(partition_path, bucket, target)
                starts.add(file_slice.group)
        common = RowsTask(
            number=len(tasks),
            partition_path=partition_path,
            file_id=file_slice.group.file_id if file_slice else file_id(partition_path, bucket),
            pieces=tuple(pieces[partition_path]),
            updates=tuple(matches),
        )
        if file_slice is None:
            tasks.append(CreateTask(**vars(common)))
            continue
        if file_slice.group not in starts:
            based_on[file_slice.group] = file_slice.base_instant
        merge = target.table_type is TableType.COPY_ON_WRITE
        tasks += [merge_of(common, file_slice)] if merge else append_of(common, file_slice, target)
    # Two writers that start file groups in one partition at once may start the same bucket: one of them has to go again.
    return WritePlan(tuple(tasks), based_on, frozenset(absent), starts=frozenset(starts))


def _slice_to_start(partition_path: str, bucket: int, target: Target) -> FileSlice:
    """The file slice that a bucket begins with where it begins with a log, and others may begin it, too.

    All of them must name the same file group. That of a pending write is taken, for it may have been named on another timeline: a
    commit that replaced file groups may have been archived since.
    """
    pending = (group for group in target.log_versions if group.partition_path == partition_path)
    unfinished = (group for group in pending if bucket_of_file_id(group.file_id) == bucket)
    new = (FileGroupId(partition_path, shared_bucket_file_id(bucket, nth)) for nth in count())
    group = next(group for group in chain(unfinished, new) if group not in target.replaced)
    return FileSlice(group, InstantTime(), None, ())


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

    def locate(self, search: Search) -> FoundNodes:
        _, batch, snapshot, _, earlier = search
        pieces = pieces_by_partition(batch.chunks)
        count = self.layout.count
        new_count = count if self.inserts else None
        rings = rings_of(search.context.storage, snapshot, pieces, new_count=new_count, strict=not self.replaces)
        if self.replaces:
            rings = {path: _renewed(ring, snapshot) for path, ring in rings.items()}
        # A partition without a ring has no rows to delete.
        rings |= {path: first_ring(path, count) for path in pieces.keys() - rings.keys()}
        if isinstance(earlier, FoundNodes) and earlier.layout == self.layout and earlier.rings == rings:
            return earlier
        rows = self._hashed(search, rings)
        return FoundNodes(rows, pieces, self.layout, self.inserts, rings)


def _renewed(ring: HashRing, snapshot: Snapshot) -> HashRing:
    """What the ring is once its partition is overwritten."""
    slices = snapshot.view.latest_slices([ring.partition_path])
    return renewed_ring(ring, ring.instant) if is_spent(ring, slices, snapshot.view) else ring
