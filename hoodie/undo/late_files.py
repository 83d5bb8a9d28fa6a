"""Files of undone instants that appeared after the undo. Behind the start of the active timeline they would count, so they are looked
for before their instants come to lie there.

A writer that was rolled back can publish nothing more. A copy that a store had already begun for it can still land, and a task of
another engine may go on for a while. While the instant lies on the active timeline and is not completed, no reader takes such a file.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cache, partial

from hoodie.errors import CorruptFileError
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import join, parse_base_file, parse_log_file
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.parallel import in_turns
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.undo.undo_files import instants_in
from hoodie.view.commit_files import CommittedFiles
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


@dataclass(frozen=True)
class _Undone:
    """Instants that were undone together."""

    by: Instant
    times: frozenset[InstantTime]
    """Those that are not on the timeline. Apache Hudi rolls a failed run of a service back and keeps its plan, so that such an instant
    may have been completed since, and archived."""
    partitions: frozenset[str]
    """Where to look."""
    disarmed: frozenset[str] = frozenset()
    """Log files that were there, which stay."""


def delete_late_files(context: TableContext, timeline: Timeline, *, start: InstantTime) -> list[str]:
    """Delete late files of instants before `start`, with which the timeline is to begin; gives their paths.

    Each partition is listed once, however many rollbacks looked after themselves there.
    """
    deleted_paths: list[str] = []
    committed: CommittedFiles | None = None

    @cache
    def archived() -> frozenset[str]:
        """All of the archive is read for it, which grows without end: so a file has to have been found first."""
        return frozenset(i.time for i in context.archived().commits)

    @cache
    def since_s(undone: _Undone) -> float:
        return context.active.reached_at(undone.by)

    all_undone = _undone_before(context, timeline, start)
    partitions = sorted({path for undone in all_undone for path in undone.partitions})
    storage = context.storage
    listings = in_turns(storage, storage.list, partitions)
    for partition_path, infos in zip(partitions, listings, strict=True):
        here = [undone for undone in all_undone if partition_path in undone.partitions]
        times = frozenset(time for undone in here for time in undone.times)
        for info in infos:
            if info.is_folder:
                continue
            name = info.name
            base, of_log = parse_base_file(name), parse_log_file(name)
            wrote = frozenset({base.instant}) & times if base is not None else frozenset()
            if of_log is not None and timeline.by_completion:
                wrote = frozenset({of_log.base_instant}) & times
            elif of_log is not None:
                # Such a log does not say in its name who wrote it, and others go on in a slice that an undone write began. What a
                # commit wrote, or what was there before, need not be opened.
                late = [each for each in here if info.path not in each.disarmed and info.mtime_s >= since_s(each)]
                if late:
                    committed = committed or context.snapshot().view.committed
                    undone_then = frozenset(time for each in late for time in each.times)
                    wrote = _wrote_late_log(context.storage, committed, partition_path, info, undone_then)
            if wrote and not wrote & archived():
                storage.delete(info.path)
                log.warning(
                    "deleted %s of table %s: it appeared after its write had been undone", info.path, storage.uri
                )
                deleted_paths.append(info.path)
    return deleted_paths


def _wrote_late_log(
    storage: Storage, committed: CommittedFiles, partition_path: str, info: FileInfo, times: frozenset[InstantTime]
) -> frozenset[InstantTime]:
    """The instants of which a log is, if all were undone."""
    # Named is not enough: a commit names all logs that were in its slices, late ones as well. One that wrote it states its size.
    if committed.of(partition_path).log_size(info.path):
        return frozenset()
    instants = instants_in(storage, info.path)
    return instants if instants <= times else frozenset()


def _undone_before(context: TableContext, timeline: Timeline, start: InstantTime) -> list[_Undone]:
    undoing = [
        i
        for i in timeline
        if i.is_completed
        and (i.action is Action.ROLLBACK or (i.action is Action.RESTORE and _is_passed_now(timeline, i, start)))
    ]
    read = partial(_undone_by, context.active)
    there = {i.time for i in timeline}
    result = []
    for each in context.storage.each(read, undoing):
        times = frozenset(time for time in each.times if time < start and time not in there)
        if times and each.by.action is Action.RESTORE:
            result.append(replace(each, times=times, partitions=frozenset(context.listing.all_files().partitions)))
        elif times:
            result.append(replace(each, times=times))
    return result


def _undone_by(active: ActiveTimeline, undoing: Instant) -> _Undone:
    """All that the plan names; nothing where that cannot be read. A restore names no partitions: it looked through all."""
    plan_instant = undoing._replace(state=State.REQUESTED)
    try:
        if undoing.action is Action.RESTORE:
            undone = active.read_restore_plan(undoing.time).instants
            return _Undone(plan_instant, frozenset(time for time, _ in undone), frozenset())
        plan = active.read_rollback_plan(undoing.time)
    except (FileNotFoundError, CorruptFileError):
        return _Undone(plan_instant, frozenset(), frozenset())
    partitions = frozenset(request.partition_path for request in plan.requests)
    disarmed = frozenset(join(each.partition_path, name) for each in plan.requests for name in each.log_blocks)
    return _Undone(plan_instant, frozenset({plan.instant}), partitions, disarmed)


def _is_passed_now(timeline: Timeline, restore: Instant, start: InstantTime) -> bool:
    """A restore never leaves the timeline, and where it looked is all of the table: so it is looked at once."""
    first = timeline.start
    return first is not None and first <= restore.time < start
