"""The plan of a clean: what is listed for it, on a cluster by its workers, and what it says of every file that goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hoodie.engine.packing import in_parts
from hoodie.model.enums import Action
from hoodie.model.files import FileGroupId
from hoodie.model.instant import InstantTime
from hoodie.model.names import HOODIE
from hoodie.model.payloads import CleanPlan
from hoodie.options.cleaning import CleaningOptions
from hoodie.services.clean_rules import CleanRules, plan_partition
from hoodie.services.clean_scope import (
    READABLE,
    SAVEPOINTS,
    clean_scope,
    latest,
)
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.listing import AllFiles, Listing
from hoodie.view.view import FileSystemView

BYTES = "hoodie.python.clean.bytes"
"""Key of ours in a clean's extra metadata: how many bytes the files have."""
_PARTITIONS_A_TASK = 64


@dataclass(frozen=True)
class PlannedClean:
    plan: CleanPlan
    size_bytes: int


def plan_clean(context: TableContext, snapshot: Snapshot, options: CleaningOptions) -> PlannedClean | None:
    """The plan of a clean; None when there is nothing to delete, and nothing to remember of that."""
    timeline = snapshot.timeline
    if timeline.pending(Action.RESTORE):
        return None
    scope = clean_scope(context, timeline, options)
    if scope is None or not scope.is_worth_it:
        return None
    earliest = scope.reach.earliest
    listing = _Listing(context)
    view = snapshot.view
    # Also where files are followed, unless that was asked for: who lists sees what failed writes have left, too.
    if context.view_options.follows is not True and (scope.partitions is None or view.content.groups == {}):
        view = FileSystemView(listing, context.active, timeline, snapshot.archived)
    partitions = view.every_partition() if scope.partitions is None else scope.partitions
    view.list_all(partitions)
    rules = CleanRules(
        policy=options.policy,
        earliest=earliest.time if earliest else None,
        versions=options.versions,
        replaced=view.committed.replaced,
        scheduled=_scheduled(context.active, timeline),
        protected_names=context.active.savepointed_files(timeline) | context.active.clustered_files(timeline),
        read_at=scope.reach.read_at,
        followed_from=scope.followed_from,
        # A savepoint may hold back older commits than those that were archived.
        start=None if scope.savepoints else timeline.start,
        instant_times=frozenset(i.time for i in timeline),
        is_archived=lambda time: any(i.time == time for i in snapshot.archived.instants),
    )
    files: dict[str, tuple[str, ...]] = {}
    emptied, since, size_bytes = [], [], 0
    if context.config.change_logs is not None:  # they are not among files that are followed
        listing.files([path for path in partitions if path not in listing.by_path])
    for partition_path in partitions:
        partition_plan = plan_partition(
            view.file_groups(partition_path), rules, listing.by_path.pop(partition_path, ())
        )
        if partition_plan.names:
            files[partition_path] = partition_plan.names
            size_bytes += partition_plan.size_bytes
            emptied += [partition_path] if partition_plan.emptied and partition_path else []
            since += [partition_plan.readable_from] if partition_plan.readable_from else []
    if not files and not scope.saves_a_look:
        return None
    extra = {BYTES: str(size_bytes)}
    if scope.savepoints:
        extra[SAVEPOINTS] = ",".join(scope.savepoints)
    # A deleted file stays deleted, also where this clean keeps more than the one before.
    readable = latest(*since, scope.readable_from)
    if readable is not None and (rules.earliest is None or readable > rules.earliest):
        extra[READABLE] = readable
    extra |= scope.reach.marks
    plan = CleanPlan(
        policy=options.policy,
        files=files,
        earliest=(earliest.time, earliest.action) if earliest else None,
        last_completed=timeline.commits[-1].time if timeline.commits else "",
        emptied=tuple(emptied),
        extra=extra,
    )
    return PlannedClean(plan, size_bytes)


def _scheduled(active: ActiveTimeline, timeline: Timeline) -> dict[FileGroupId, InstantTime]:
    """File group -> where the slice begins that a pending compaction, or log compaction, reads."""
    result: dict[FileGroupId, InstantTime] = {}
    for instant in timeline.pending(Action.COMPACTION, Action.LOGCOMPACTION):
        for operation in active.read_compaction_plan(instant.time, instant.action).operations:
            group = FileGroupId(operation.partition_path, operation.file_id)
            result[group] = min(operation.base_instant, result.get(group, operation.base_instant))
    return result


class _Listing(Listing):
    """A listing that keeps what it has seen, for leftovers; on a cluster its workers list."""

    def __init__(self, context: TableContext) -> None:
        self._context = context
        self.by_path: dict[str, Sequence[FileInfo]] = {}

    @property
    def uri(self) -> str:
        return self._context.storage.uri

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        context = self._context
        if context.engine.shares_memory or len(partition_paths) <= _PARTITIONS_A_TASK:
            result = context.listing.files(partition_paths)
        else:
            tasks = in_parts(partition_paths, _PARTITIONS_A_TASK)
            run = partial(_list_partitions, context.storage)
            parts = context.engine.run(run, tasks, label=f"list {context.config.name}")
            result = [files for part in parts for files in part]
        self.by_path.update(zip(partition_paths, result, strict=True))
        return result

    def all_files(self) -> AllFiles:
        context = self._context
        if context.engine.shares_memory:
            result = context.listing.all_files()
        else:
            tops = context.storage.list("")
            folders = [top.path for top in tops if top.is_folder and top.path != HOODIE]
            run = partial(_list_below, context.storage)
            parts = context.engine.run(run, folders, label=f"list {context.config.name}")
            result = AllFiles.of([*(top for top in tops if not top.is_folder), *(f for part in parts for f in part)])
        self.by_path.update(result.files)
        return result


def _list_partitions(storage: Storage, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
    return storage.each(storage.list, partition_paths)


def _list_below(storage: Storage, folder: str) -> Sequence[FileInfo]:
    return storage.list(folder, recursive=True)
