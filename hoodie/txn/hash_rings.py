"""Hash rings beside the instants that change them: written before a replacecommit is completed, gone with one that is undone.

A clustering splits and merges buckets as its plan says. An overwrite replaces file groups, and a replaced one shows no rows any more:
so the partition gets new ones, also where nothing was written into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hoodie.errors import CommitConflictError
from hoodie.format.bucket_rules import CONFIGS, rules_path
from hoodie.format.hash_ring import format_ring, parse_change, renewed_ring
from hoodie.index.rings import is_spent, ring_path, rings_of
from hoodie.model.buckets import RING_FILE, RING_MARK, RINGS, BucketEngine, HashRing, RingChange, changed_ring
from hoodie.model.change import Change
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.instant import InstantTime
from hoodie.model.names import join, parse_base_file
from hoodie.storage.base import Storage
from hoodie.txn.metadata_table import Seen
from hoodie.view.context import TableContext

_REPLACES = (Action.REPLACECOMMIT, Action.CLUSTERING)


class RingUpkeep:
    """A `Participant` of `txn/participants.py`."""

    def before_plan(self, context: TableContext, seen: Seen | None) -> None:
        pass

    def takes_part(self, action: Action) -> bool:
        return action in (Action.REPLACECOMMIT, Action.ROLLBACK, Action.RESTORE)

    def before_completion(self, context: TableContext, change: Change, seen: Seen | None) -> None:
        undone = {time for time, action in change.undone if action in _REPLACES}
        if undone:
            _forget(context.storage, undone)
        buckets = context.config.buckets
        if change.replaced and buckets is not None and buckets.engine is BucketEngine.CONSISTENT_HASHING:
            for ring in _rings_after(context, change):
                context.storage.replace(ring_path(ring.partition_path, ring.instant), format_ring(ring))

    def before_removal(self, context: TableContext, time: InstantTime) -> None:
        buckets = context.config.buckets
        if buckets is not None and buckets.engine is BucketEngine.CONSISTENT_HASHING:
            _forget(context.storage, {time})


def _forget(storage: Storage, instants: Iterable[str]) -> None:
    """Apache Hudi would go by the rings of an instant that was undone, and by their marks; and so would all by its bucket rules."""
    names = {f"{instant}{suffix}" for instant in instants for suffix in (RING_FILE, RING_MARK)}
    for info in storage.list(RINGS, recursive=True):
        if info.name in names:
            storage.delete(info.path)
    for path in {rules_path(InstantTime(instant)) for instant in instants} & {
        join(CONFIGS, each) for each in storage.names(CONFIGS)
    }:
        storage.delete(path)


def _rings_after(context: TableContext, change: Change) -> Iterator[HashRing]:
    snapshot, time = context.snapshot(), change.instant.time
    rings = rings_of(context.storage, snapshot, change.replaced, new_count=None, strict=False)
    changes = _changes(context, time) if change.commit and change.commit.operation is WriteOperation.CLUSTER else None
    for path, ring in rings.items():
        if changes is not None:
            mine = changes.get(path, [])
            if any(each.number != ring.number for each in mine):
                raise CommitConflictError(
                    f"clustering {time} of table {context.storage.uri} was planned on another hash ring of partition {path!r} than "
                    f"that of instant {ring.instant}; nothing of it is visible, drop the plan"
                )
            new = changed_ring(ring, mine, time)
        elif change.replaced[path] or is_spent(ring, (), snapshot.view):
            new = renewed_ring(ring, time)
        else:
            continue
        written = {base.file_id for name in change.added.get(path, ()) if (base := parse_base_file(name)) is not None}
        if not written <= new.numbers.keys():
            raise CommitConflictError(
                f"instant {time} of table {context.storage.uri} wrote file groups of partition {path!r} that are not on its ring, "
                "which another write has changed meanwhile; nothing of it is visible, run it again on the new snapshot"
            )
        yield new


def _changes(context: TableContext, time: InstantTime) -> dict[str, list[RingChange]]:
    """What a clustering does, by partition path."""
    where = f"clustering {time} of table {context.storage.uri}"
    result: dict[str, list[RingChange]] = {}
    for group in context.active.read_clustering_plan(time).groups:
        change = parse_change(group.extra, path=where)
        if change is not None:
            result.setdefault(change.partition_path, []).append(change)
    return result
