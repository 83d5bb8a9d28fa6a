"""Files of undone instants that came after these were undone. Behind the start of the active timeline they would count, so they are
looked for before their instants come to lie there.

A writer that was rolled back can publish nothing more. A copy that a store had already begun for it can still land, and a task of
another engine may go on for a while. While the instant lies on the active timeline and is not completed, no reader takes such a file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from hoodie.errors import CorruptFileError
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, sort_key
from hoodie.model.names import join, parse_base_file, parse_log_file
from hoodie.services.undo_files import instants_in
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import Timeline
from hoodie.view.committed import CommittedFiles
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


@dataclass(frozen=True)
class _Undone:
    """Instants that were undone together."""

    by: Instant
    times: frozenset[str]
    """Those that are not on the timeline. Apache Hudi rolls a failed run of a service back and keeps its plan, so that such an instant
    may have been completed since, and archived."""
    partitions: tuple[str, ...]
    """Where to look."""
    disarmed: frozenset[str] = frozenset()
    """Log files that were there, which stay."""


def delete_late_files(context: TableContext, timeline: Timeline, *, start: str) -> list[str]:
    """Delete late files of instants before `start`, with which the timeline is to begin; gives their paths."""
    gone: list[str] = []
    committed: CommittedFiles | None = None

    @cache
    def archived() -> frozenset[str]:
        """All of the archive is read for it, which grows without end: so a file has to have been found first."""
        return frozenset(i.time for i in context.archived().commits)

    for undone in _undone_before(context, timeline, start):
        since_s = context.active.reached_at(undone.by)
        for partition_path in undone.partitions:
            for info in context.storage.list(partition_path):
                if info.is_folder:
                    continue
                name = info.path.rpartition("/")[2]
                base = parse_base_file(name)
                wrote = frozenset({base.instant}) & undone.times if base is not None else frozenset()
                # A log does not say in its name who wrote it, and others go on in a slice that an undone write began. What a commit
                # wrote, or what was there before, need not be opened.
                if parse_log_file(name) and info.mtime_s >= since_s and info.path not in undone.disarmed:
                    committed = committed or context.snapshot().view.committed
                    wrote = _wrote_late_log(context, committed, partition_path, info, undone.times)
                if wrote and not wrote & archived():
                    log.warning("%s of table %s came late: its write had been undone", info.path, context.storage.uri)
                    context.storage.delete(info.path)
                    gone.append(info.path)
    return gone


def _wrote_late_log(
    context: TableContext, committed: CommittedFiles, partition_path: str, info: FileInfo, times: frozenset[str]
) -> frozenset[str]:
    """The instants of which a log is, if all were undone."""
    # Named is not enough: a commit names all logs that were in its slices, late ones as well. One that wrote it states its size.
    if committed.of(partition_path).log_size(info.path):
        return frozenset()
    found = instants_in(context.storage, info.path)
    return found if found <= times else frozenset()


def _undone_before(context: TableContext, timeline: Timeline, start: str) -> Iterator[_Undone]:
    there = {i.time for i in timeline}

    def left(times: Iterable[str]) -> frozenset[str]:
        return frozenset(each for each in times if sort_key(each) < sort_key(start) and each not in there)

    for undoing in timeline:
        if not undoing.is_completed:
            continue
        begun = undoing._replace(state=State.REQUESTED)
        try:
            if undoing.action is Action.ROLLBACK:
                plan = context.active.read_rollback_plan(undoing.time)
                times = left([plan.instant])
                partitions = {request.partition_path for request in plan.requests}
                disarmed = {join(each.partition_path, name) for each in plan.requests for name in each.log_blocks}
                if times:
                    yield _Undone(begun, times, tuple(sorted(partitions)), frozenset(disarmed))
            elif undoing.action is Action.RESTORE and _is_passed_now(timeline, undoing, start):
                times = left(time for time, _ in context.active.read_restore_plan(undoing.time).instants)
                if times:
                    yield _Undone(begun, times, tuple(sorted(context.listing.all_files().partitions)))
        except (FileNotFoundError, CorruptFileError):
            continue


def _is_passed_now(timeline: Timeline, restore: Instant, start: str) -> bool:
    """A restore never leaves the timeline, and where it looked is all of the table: so it is looked at once."""
    first = timeline.start
    return first is not None and sort_key(first) <= sort_key(restore.time) < sort_key(start)
