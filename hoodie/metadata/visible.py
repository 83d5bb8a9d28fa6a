"""Which instants of a metadata table count for a snapshot of its table, and whether it has kept up with it.

Each write of the table is a delta commit of the metadata table under the same instant time. It is completed there first.
So it counts only if the table's own instant is completed. The metadata table's own work has instants with three more digits: 001
compaction, 002 clean, 003 restore, 005 log compaction, 006 rollback, from 010 on the first state of a partition. Where the table
had no commit yet, that is fourteen zeros and `010`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.timeline.timeline import WRITES, Timeline

BEGINNING = InstantTime("0" * 14)
"""Stands for the last instant of a table that has none."""
FIRST_SUFFIX = 10
"""Of the first state of a metadata table; those of further partitions count on."""
_TIME_DIGITS = 17
_RESTORE = "003"
_CHANGES_FILES = WRITES | {Action.CLEAN, Action.ROLLBACK, Action.RESTORE}
"""Actions of a table that the metadata table has to have heard of; a restore by an instant of its own."""


def why_not(table: Timeline, metadata: Timeline, archived: Collection[InstantTime] = ()) -> str | None:
    """Why the metadata table does not show what this timeline of its table shows; None where it does.

    `archived`: instants of the table that are in its archive, of those that `unknown_times` gives.
    """
    if not metadata.commits:
        return "it has no completed commit"
    latest = table.latest_time or InstantTime("")
    for commit in metadata.commits:
        if _is_compaction(commit) and _table_time(commit) > latest:
            return f"it was compacted at {commit.time}, and the snapshot is of {latest or 'an empty table'}"
    for time in unknown_times(table, metadata):
        if time not in archived:
            return f"it holds a delta commit of {time}, of which the table's timeline says nothing"
    covered, start = _covered(metadata), metadata.commits[0].time
    for instant in table:
        is_missing = instant.is_completed and instant.time not in metadata.completed_times and instant.time > covered
        if is_missing and instant.time > start and instant.action in _CHANGES_FILES:
            return f"it lacks {instant}, whose writer did not keep it up to date"
    return None


def unknown_times(table: Timeline, metadata: Timeline) -> list[InstantTime]:
    """Instants of the table that the metadata table has, and the table's timeline has not, from its first commit on. Cleans and
    rollbacks may be archived before older commits are, which a savepoint keeps.
    """
    latest, known = table.latest_time or InstantTime(""), _known(table)
    return [
        each.time
        for each in metadata.commits
        if is_write(each) and each.time <= latest and not (each.time in known or _is_before(each, table))
    ]


def as_seen(table: Timeline, metadata: Timeline, archived: Collection[InstantTime] = ()) -> Timeline:
    """The metadata table's timeline for a snapshot with this timeline of its table: other instants are pending."""
    latest, known = table.latest_time or InstantTime(""), _known(table)

    def counts(commit: Instant) -> bool:
        if not is_write(commit):
            return _table_time(commit) <= latest
        return known.get(commit.time, commit.time in archived or _is_before(commit, table))

    seen = tuple(
        each._replace(state=State.INFLIGHT)
        if each.is_completed and each.action in WRITES and not counts(each)
        else each
        for each in metadata
    )
    return metadata if seen == metadata.instants else replace(metadata, instants=seen)


def _known(table: Timeline) -> dict[InstantTime, bool]:
    """The times of the table's instants, and whether all of a time are completed."""
    found: dict[InstantTime, bool] = {}
    for instant in table:
        found[instant.time] = found.get(instant.time, True) and instant.is_completed
    return found


def _is_before(commit: Instant, table: Timeline) -> bool:
    """Whether it is older than all that the table's active timeline has."""
    return table.start is not None and commit.time < table.start


def is_write(commit: Instant) -> bool:
    """Whether it is the delta commit of an instant of the table."""
    return len(commit.time) <= _TIME_DIGITS and not commit.time.startswith(BEGINNING)


def _is_compaction(commit: Instant) -> bool:
    return commit.action is Action.COMMIT


def _table_time(commit: Instant) -> InstantTime:
    """The instant of the table after which the metadata table did work of its own."""
    return InstantTime("") if commit.time.startswith(BEGINNING) else InstantTime(commit.time[:_TIME_DIGITS])


def _covered(metadata: Timeline) -> InstantTime:
    """Up to where the table's instants need no delta commit of their own, because a restore has listed all folders."""
    restores = (each for each in metadata.commits if each.time[_TIME_DIGITS:][:3] == _RESTORE)
    return max(map(_table_time, restores), default=InstantTime(""))
