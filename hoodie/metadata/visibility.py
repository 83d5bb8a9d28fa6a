"""Which instants of a metadata table count for a snapshot of its table, and whether it has kept up with it.

Each write of the table is a delta commit of the metadata table under the same instant time. It is completed there first.
So it counts only if the table's own instant is completed. How the metadata table's own work is named depends on the version:

- Version 6: by the table's instant before it and three more digits. 001 is a compaction, 002 a clean, 003 a restore, 005 a log
  compaction, 006 a rollback, and from 010 on the first state of a partition; fourteen zeros and `010` where the table had no commit.
- Versions 8 and 9: by an instant of its own, as all services of a table; the first states by seventeen zeros, counted on. A rollback
  of the table rolls the delta commit back, and has none. A restore of Apache Hudi restores the metadata table, too. The delta commit
  that follows brings what a listing found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.timeline.timeline import WRITES, Timeline

BEGINNING = InstantTime("0" * 14)
"""Stands for the last instant of a table that has none."""
FIRST_SUFFIX = 10
"""Of the first state of a metadata table of version 6; those of further partitions count on."""
_TIME_DIGITS = 17
_RESTORE = "003"
_CHANGES_FILES = WRITES | {Action.CLEAN, Action.ROLLBACK, Action.RESTORE}
"""Actions of a table that the metadata table has to have heard of; a restore by an instant of its own."""


def why_not(
    table: Timeline, metadata: Timeline, archived: Collection[InstantTime] = (), *, is_undoing: bool = False
) -> str | None:
    """Why the metadata table does not show what this timeline of its table shows; None where it does.

    `archived`: instants of the table that are in its archive, of those that `unknown_times` gives. `is_undoing`: it is asked by who
    carries out the restore or rollback that is pending, or writes beside one.
    """
    if not metadata.commits:
        return "it has no completed commit"
    ahead = _compacted_later(table, metadata, archived)
    if ahead is not None:
        return f"it was compacted at {ahead}, and the snapshot is of {table.latest_time or 'an empty table'}"
    for time in unknown_times(table, metadata):
        if time not in archived:
            return f"it holds a delta commit of {time}, of which the table's timeline says nothing"
    covers = _cover(metadata)
    undoing = table.pending(Action.RESTORE, Action.ROLLBACK)
    if undoing and not is_undoing and _may_cover_undone(table, covers):
        return f"it may have been built from rows that {undoing[-1]} takes back"
    for instant in table:
        is_missing = instant.is_completed and instant.time not in metadata.completed_times and not covers(instant)
        if is_missing and instant.action in _CHANGES_FILES:
            return f"it lacks {instant}, whose writer did not keep it up to date"
    return None


def unknown_times(table: Timeline, metadata: Timeline) -> list[InstantTime]:
    """Instants of the table that the metadata table has, and the table's timeline has not, from its first commit on. Cleans and
    rollbacks may be archived before older commits are, which a savepoint keeps.
    """
    latest, times, synced = table.latest_time or InstantTime(""), _times_of(table), _synced(metadata)
    return [
        each.time
        for each in metadata.commits
        if is_write(each)
        and each.time <= latest
        and each.time not in synced
        and not (each.time in times or _is_before(each, table))
    ]


def as_seen(table: Timeline, metadata: Timeline, archived: Collection[InstantTime] = ()) -> Timeline:
    """The metadata table's timeline for a snapshot with this timeline of its table: other instants are pending."""
    counts = _counting(table, metadata, archived)
    instants = tuple(
        each._replace(state=State.INFLIGHT, completion=None)
        if each.is_completed and each.action in WRITES and not counts(each)
        else each
        for each in metadata
    )
    return metadata if instants == metadata.instants else replace(metadata, instants=instants)


def _counting(table: Timeline, metadata: Timeline, archived: Collection[InstantTime]) -> Callable[[Instant], bool]:
    """Whether a commit of the metadata table counts for the snapshot."""
    latest, times, synced = table.latest_time or InstantTime(""), _times_of(table), _synced(metadata)

    def counts(commit: Instant) -> bool:
        if not is_write(commit) or commit.time in synced:
            return metadata.by_completion or _table_time(commit) <= latest
        return times.get(commit.time, commit.time in archived or _is_before(commit, table))

    return counts


def _compacted_later(table: Timeline, metadata: Timeline, archived: Collection[InstantTime]) -> InstantTime | None:
    """The compaction whose base files show what the snapshot must not; None where there is none."""
    compactions = [each for each in metadata.commits if each.action is Action.COMMIT]
    if not metadata.by_completion:
        latest = table.latest_time or InstantTime("")
        return next((each.time for each in compactions if _table_time(each) > latest), None)
    counts, last = _counting(table, metadata, archived), compactions[-1].time if compactions else InstantTime("")
    merged = (each for each in metadata.commits if is_write(each) and each.position < last)
    return None if all(each.time in archived or counts(each) for each in merged) else last


def _times_of(table: Timeline) -> dict[InstantTime, bool]:
    """The times of the table's instants, and whether all of a time are completed, but for a savepoint beside its commit."""
    result = {instant.time: True for instant in table}
    return result | {instant.time: False for instant in table.at_work}


def _is_before(commit: Instant, table: Timeline) -> bool:
    """Whether it is older than all that the table's active timeline has."""
    return table.start is not None and commit.time < table.start


def is_write(commit: Instant) -> bool:
    """Whether it is the delta commit of an instant of the table."""
    is_own = len(commit.time) > _TIME_DIGITS or commit.time.startswith(BEGINNING)
    return commit.action is Action.DELTACOMMIT and not is_own


def is_first(commit: Instant) -> bool:
    """Whether it is the first state of a partition."""
    is_own = commit.time.startswith(BEGINNING) or commit.time[_TIME_DIGITS:] >= f"{FIRST_SUFFIX:03d}"
    return commit.action is Action.DELTACOMMIT and is_own


def _table_time(commit: Instant) -> InstantTime:
    """The instant of the table after which the metadata table did work of its own."""
    return InstantTime("") if commit.time.startswith(BEGINNING) else InstantTime(commit.time[:_TIME_DIGITS])


def _synced(metadata: Timeline) -> frozenset[InstantTime]:
    """Delta commits that follow a restore of the metadata table itself, and bring it to what a listing found."""
    result = set()
    for restore in metadata:
        if restore.action is Action.RESTORE and restore.is_completed:
            later = (each for each in metadata.commits if each.action is Action.DELTACOMMIT)
            result.update([min((each.time for each in later if each.time > restore.time), default=InstantTime(""))])
    return frozenset(result)


def _may_cover_undone(table: Timeline, covers: Callable[[Instant], bool]) -> bool:
    """Whether the first state may have been built from what a restore or a rollback at work takes back: that is later than the newest
    commit that stays, or pending again.
    """
    newest = table.latest_commit
    return newest is None or covers(newest) or any(map(covers, table.pending_writes))


def _cover(metadata: Timeline) -> Callable[[Instant], bool]:
    """Which completed instants of the table need no delta commit: a listing of all folders has shown what they did, or theirs is in
    the archive.
    """
    start = metadata.commits[0]
    if not metadata.by_completion:
        restores = (each for each in metadata.commits if each.time[_TIME_DIGITS:][:3] == _RESTORE)
        covered = max([start.time, *map(_table_time, restores)])
        return lambda instant: instant.time <= covered
    synced = max(_synced(metadata), default=InstantTime(""))
    is_first = start.time.startswith(BEGINNING)

    def covers(instant: Instant) -> bool:
        is_older = instant.position <= start.position if is_first else instant.time <= start.time
        return is_older or instant.time <= synced or instant.action is Action.ROLLBACK

    return covers
