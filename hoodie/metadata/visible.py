"""Which instants of a metadata table count for a snapshot of its table, and whether it has kept up with it.

Each write of the table is a delta commit of the metadata table under the same instant time. It is completed there first.
So it counts only if the table's own instant is completed. The metadata table's own work has instants with three more digits: 001
compaction, 002 clean, 003 restore, 005 log compaction, 006 rollback, from 010 on the first state of a partition. Where the table
had no commit yet, that is fourteen zeros and `010`.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.timeline.timeline import WRITES, Timeline

_BEGINNING = "0" * 14
_TIME_DIGITS = 17
_COMPACTION, _RESTORE, _FIRST_STATE = "001", "003", "010"
_WRITTEN_BY = WRITES | {Action.CLEAN, Action.ROLLBACK}
"""Actions of a table that its metadata table has a delta commit of."""


def why_not(table: Timeline, metadata: Timeline) -> str | None:
    """Why the metadata table does not show what this timeline of its table shows; None where it does."""
    if not metadata.commits:
        return "it has no completed commit"
    latest = table.latest_time or InstantTime("")
    for commit in metadata.commits:
        if _is_compaction(commit) and _table_time(commit) > latest:
            return f"it was compacted at {commit.time}, and the snapshot is of {latest or 'an empty table'}"
        if _is_write(commit) and commit.time <= latest and not _is_known(commit, table):
            return f"it holds {commit}, of which the table's timeline says nothing"
    covered, start = _covered(metadata), metadata.commits[0].time
    for instant in table:
        is_missing = instant.is_completed and instant.time not in metadata.completed_times and instant.time > covered
        if is_missing and instant.time > start and (instant.action in _WRITTEN_BY or instant.action is Action.RESTORE):
            return f"it lacks {instant}, whose writer did not keep it up to date"
    return None


def as_seen(table: Timeline, metadata: Timeline) -> Timeline:
    """The metadata table's timeline for a snapshot with this timeline of its table: other instants are pending."""
    seen = tuple(
        each if not each.is_completed or each.action not in WRITES or _counts(each, table) else _pending(each)
        for each in metadata
    )
    return metadata if seen == metadata.instants else replace(metadata, instants=seen)


def _counts(commit: Instant, table: Timeline) -> bool:
    if not _is_write(commit):
        return _table_time(commit) <= (table.latest_time or "")
    if not _is_known(commit, table):
        return False
    found = [each for each in table if each.time == commit.time]
    return all(each.is_completed for each in found)


def _is_known(commit: Instant, table: Timeline) -> bool:
    """Whether the table has an instant of this time, or had one that was archived."""
    start = table.start
    return (start is not None and commit.time < start) or any(each.time == commit.time for each in table)


def _is_write(commit: Instant) -> bool:
    """Whether it is the delta commit of an instant of the table."""
    return len(commit.time) <= _TIME_DIGITS and not commit.time.startswith(_BEGINNING)


def _is_compaction(commit: Instant) -> bool:
    return commit.action is Action.COMMIT


def _table_time(commit: Instant) -> InstantTime:
    """The instant of the table after which the metadata table did work of its own."""
    return InstantTime("") if commit.time.startswith(_BEGINNING) else InstantTime(commit.time[:_TIME_DIGITS])


def _covered(metadata: Timeline) -> InstantTime:
    """Up to where the table's instants are in the metadata table, whether or not it has a delta commit of each."""

    def covers(commit: Instant) -> bool:
        suffix = commit.time[_TIME_DIGITS:][:3]
        return _is_compaction(commit) or suffix == _RESTORE or suffix >= _FIRST_STATE

    return max((_table_time(each) for each in metadata.commits if covers(each)), default=InstantTime(""))


def _pending(commit: Instant) -> Instant:
    return Instant(commit.time, commit.action, State.INFLIGHT)
