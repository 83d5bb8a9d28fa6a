"""The hash rings of a table with consistent buckets: which one of a partition counts, and the first one of a new partition.

A clustering that splits or merges buckets, and an overwrite, write a new ring before their instant is completed. It counts from then
on. The instant may be archived later, so whoever finds it completed leaves a mark beside the ring. Apache Hudi does both alike;
it trusts marks and rings of instants that a rollback or a restore took back, too, which is why these are deleted there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from hoodie.errors import UnsupportedTableError
from hoodie.format.bucket_rules import CONFIGS, SUFFIX, format_rules, parse_rules, rules_path
from hoodie.format.hash_ring import first_ring, format_ring, parse_ring
from hoodie.model.buckets import FIRST_RING, RING_FILE, RING_MARK, RINGS, BucketLayout, HashRing
from hoodie.model.enums import Action
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import InstantTime, is_instant_time
from hoodie.model.names import join
from hoodie.storage.base import Storage
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot
from hoodie.view.view import FileSystemView


def ring_path(partition_path: str, instant: str, suffix: str = RING_FILE) -> str:
    return join(RINGS, partition_path, f"{instant}{suffix}")


def rings_of(
    storage: Storage, snapshot: Snapshot, partition_paths: Iterable[str], *, new_count: int | None, strict: bool = True
) -> dict[str, HashRing]:
    """By partition path, as they are in the snapshot.

    Args:
        new_count: buckets of a partition that has no ring, which gets one; None: it is left out.
        strict: refuse partitions that have other file groups; not so where these are replaced.

    Raises:
        UnsupportedTableError: the partition has file groups that are not on its ring: their keys would be missed.
        CorruptFileError: a ring cannot be read.
    """
    paths = sorted(set(partition_paths))
    slices: dict[str, list[FileSlice]] = {path: [] for path in paths}
    for each in snapshot.view.latest_slices(paths) if paths else ():
        slices[each.group.partition_path].append(each)
    one = partial(_ring_of, storage, snapshot, slices, new_count)
    result = {path: ring for path, ring in zip(paths, storage.each(one, paths), strict=True) if ring is not None}
    for path, ring in result.items() if strict else ():
        _check(ring, slices[path], snapshot.view, table=storage.uri)
    return result


def is_on(ring: HashRing, slices: Iterable[FileSlice], view: FileSystemView) -> bool:
    """Whether these newest slices of its partition are what the ring leads to."""
    return stray_of(ring, slices) is None and _replaced_of(ring, view) is None


def is_spent(ring: HashRing, slices: Collection[FileSlice], view: FileSystemView) -> bool:
    """Whether an overwrite of its partition, which has these slices, needs other file groups than the ring has."""
    return bool(slices) or _replaced_of(ring, view) is not None


def stray_of(ring: HashRing, slices: Iterable[FileSlice]) -> FileSlice | None:
    """A slice that is not on the ring."""
    return next((each for each in slices if each.group.file_id not in ring.numbers), None)


def _replaced_of(ring: HashRing, view: FileSystemView) -> str | None:
    """A file id of the ring whose group was replaced: rows in it would not be seen."""
    ids = (node.file_id for node in ring.nodes)
    return next((each for each in ids if view.is_replaced(FileGroupId(ring.partition_path, each))), None)


def _check(ring: HashRing, slices: Sequence[FileSlice], view: FileSystemView, *, table: str) -> None:
    stray, replaced = stray_of(ring, slices), _replaced_of(ring, view)
    if stray is None and replaced is None:
        return
    what = f"{stray.group.file_id} is not on" if stray is not None else f"{replaced} was replaced and is still on"
    raise UnsupportedTableError(
        f"partition {ring.partition_path!r} of table {table} can be read, not written: file group {what} its hash ring of instant "
        f"{ring.instant}. Apache Hudi leaves it so after an insert_overwrite or a delete_partition, and a write would lose rows or "
        "store keys twice; load the partition's rows into a new table"
    )


def _ring_of(
    storage: Storage,
    snapshot: Snapshot,
    slices: Mapping[str, Sequence[FileSlice]],
    new_count: int | None,
    partition_path: str,
) -> HashRing | None:
    stored = [each.group.file_id for each in slices[partition_path]]
    ring = _stored_ring(storage, snapshot.timeline, partition_path, stored)
    if ring is not None or new_count is None:
        return ring
    new = first_ring(partition_path, new_count)
    try:
        storage.create_new(ring_path(partition_path, FIRST_RING), format_ring(new))
    except FileExistsError:  # another writer was first, perhaps with another number of buckets
        return _stored_ring(storage, snapshot.timeline, partition_path, stored) or new
    return new


def _stored_ring(
    storage: Storage, timeline: Timeline, partition_path: str, file_ids: Collection[str]
) -> HashRing | None:
    """The newest ring whose instant is completed; None: the partition has none yet. `file_ids`: of its newest slices."""
    names = set(storage.names(join(RINGS, partition_path)))
    times = sorted(name.removesuffix(RING_FILE) for name in names if name.endswith(RING_FILE))
    instants = [InstantTime(time) for time in times if is_instant_time(time)]

    def read(instant: InstantTime) -> HashRing:
        path = ring_path(partition_path, instant)
        return parse_ring(storage.read(path), path=f"{path} of table {storage.uri}", partition_path=partition_path)

    for at in reversed(range(len(instants))):
        instant = instants[at]
        marked = f"{instant}{RING_MARK}" in names
        if instant == FIRST_RING:
            return read(instant)
        if not _counts(timeline, instant):
            continue
        ring = read(instant)
        is_archived = timeline.find(instant, Action.REPLACECOMMIT) is None
        if is_archived and not marked and not (at and _has_new(ring, read(instants[at - 1]), file_ids)):
            continue  # it was rolled back
        if not marked:
            with suppress(FileExistsError):
                storage.create_new(ring_path(partition_path, instant, RING_MARK), b"")
        return ring
    return None


def _counts(timeline: Timeline, instant: InstantTime) -> bool:
    """Whether the instant is completed, or so old that only marks and files say it."""
    commit = timeline.find(instant, Action.REPLACECOMMIT)
    if commit is not None:
        return commit.is_completed
    first = timeline.instants[0].time if timeline.instants else None
    return first is not None and instant < first


def _has_new(ring: HashRing, before: HashRing, file_ids: Collection[str]) -> bool:
    """Whether a file group is there which this ring brought."""
    return any(each in ring.numbers and each not in before.numbers for each in file_ids)


def ruled(storage: Storage, timeline: Timeline, layout: BucketLayout) -> BucketLayout:
    """The layout with the rules of now, and the number of buckets where none applies; as it is where there are none.

    Raises:
        CorruptFileError, UnsupportedTableError: as `parse_rules`.
    """
    pending = {each.time for each in timeline.pending(Action.REPLACECOMMIT, Action.CLUSTERING)}
    names = [name.removesuffix(SUFFIX) for name in storage.names(CONFIGS) if name.endswith(SUFFIX)]
    counting = [name for name in names if name not in pending]
    if not counting:
        return layout
    path = rules_path(InstantTime(max(counting)))
    rules, count = parse_rules(storage.read(path), path=f"{storage.uri}/{path}")
    return replace(layout, rules=rules, count=count)


def keep_rules(storage: Storage, layout: BucketLayout) -> None:
    """Write the rules that a table is made with, where Apache Hudi looks for them."""
    if layout.rules is not None and not storage.names(CONFIGS):
        storage.replace(rules_path(layout.rules.instant), format_rules(layout.rules, layout.count))
