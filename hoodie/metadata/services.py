"""What keeps a metadata table itself in shape: its clean, its archiving, and the end of compactions whose process died.

All of it under the table's lock, before the delta commit of a write, and by the rules of Apache Hudi's writers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hoodie.errors import CommitConflictError, CorruptFileError, UnsupportedTableError
from hoodie.format.archive_entries import StateFile
from hoodie.format.service_plans import encode_clean_metadata, encode_clean_plan
from hoodie.metadata.table import OpenedMetadata
from hoodie.model.enums import Action, CleanPolicy, State
from hoodie.model.instant import Instant, InstantTime, format_instant
from hoodie.model.names import COMPLETES_AS, HOODIE, METADATA_TABLE, join, parse_base_file, parse_log_file
from hoodie.model.payloads import CleanPlan
from hoodie.storage.base import Storage
from hoodie.timeline.archive_plan import Hold, held_by_pending, held_for_compaction, leaving_commits, leaving_others
from hoodie.timeline.archive_writer import ArchiveWriter
from hoodie.timeline.clock import Clock
from hoodie.timeline.timeline import Timeline

COMPACTED_AFTER = 10
"""Delta commits, as by Apache Hudi's default."""
_LEAST_COMMITS, _MOST_COMMITS = 21, 31
"""On the metadata table's timeline: one more than Apache Hudi's defaults leave on that of the table."""


def last_compaction(table: Storage) -> InstantTime | None:
    """The last completed compaction of a table's metadata table; empty where there was none, None without a metadata table."""
    own = Timeline.from_file_names(table.names(join(METADATA_TABLE, HOODIE)))
    if not own.commits:
        return None
    return max((each.time for each in own.commits if each.action is Action.COMMIT), default=InstantTime(""))


Names = Mapping[str, Sequence[str]]
"""Partition of the metadata table -> names of all files in it."""


def end_compactions(opened: OpenedMetadata, names: Names) -> bool:
    """Take pending compactions back: who holds the lock knows that nobody is at work. Gives whether there were any.

    Raises:
        UnsupportedTableError: logs were written after one was planned, which count on its base file.
    """
    pending = opened.own.pending(Action.COMPACTION)
    for instant in pending:
        everywhere = [(partition, name) for partition, found in names.items() for name in found]
        logs = [name for _, name in everywhere if (log := parse_log_file(name)) and log.base_instant == instant.time]
        if logs:
            raise UnsupportedTableError(f"its compaction {instant.time} is pending, and {logs[0]} was written since")
        for partition, name in everywhere:
            base = parse_base_file(name)
            if base is not None and base.instant == instant.time:
                opened.storage.delete(join(partition, name))
        for state in (State.INFLIGHT, State.REQUESTED):
            opened.active.remove(Instant(instant.time, Action.COMPACTION, state))
    return bool(pending)


def clean(opened: OpenedMetadata, names: Names, newest: Mapping[str, InstantTime], latest: InstantTime) -> None:
    """Delete what lies before the last file slice but one of a file group: instant T002 after delta commit T, which is `latest`.

    Who reads by older slices has come before the last compaction but one. A clean of a process that died is carried on.
    """
    for pending in opened.own.pending(Action.CLEAN):
        with suppress(CorruptFileError, FileNotFoundError):  # only being planned: its own writer begins anew
            _run_clean(opened, pending.time, opened.active.read_clean_plan(pending.time))
    doomed = {partition: _outdated(found, newest) for partition, found in names.items()}
    doomed = {partition: found for partition, found in doomed.items() if found}
    instant = Instant(InstantTime(f"{latest}002"), Action.CLEAN, State.REQUESTED)
    if not doomed or any(each.time == instant.time for each in opened.own):
        return
    plan = CleanPlan(CleanPolicy.KEEP_LATEST_FILE_VERSIONS, doomed, None, latest)
    opened.active.create(instant, encode_clean_plan(plan, uri=opened.storage.uri))
    _run_clean(opened, instant.time, plan)


def _outdated(names: Sequence[str], newest: Mapping[str, InstantTime]) -> tuple[str, ...]:
    """Names of files that lie before the last slice but one of their group."""
    slices = {name: found for name in names if (found := _slice_of(name)) is not None}
    older: dict[str, set[InstantTime]] = {}
    for file_id, begin in slices.values():
        if file_id in newest and begin < newest[file_id]:
            older.setdefault(file_id, set()).add(begin)
    return tuple(
        sorted(name for name, (file_id, begin) in slices.items() if begin in sorted(older.get(file_id, ()))[:-1])
    )


def _run_clean(opened: OpenedMetadata, instant_time: InstantTime, plan: CleanPlan) -> None:
    active, storage, started = opened.active, opened.storage, time.monotonic()
    with suppress(CommitConflictError):
        active.create(Instant(instant_time, Action.CLEAN, State.INFLIGHT))
    storage.each(storage.delete, [join(folder, name) for folder, names in plan.files.items() for name in names])
    took_ms = round(1000 * (time.monotonic() - started))
    with suppress(CommitConflictError):
        done = encode_clean_metadata(plan, instant=instant_time, took_ms=took_ms)
        active.create(Instant(instant_time, Action.CLEAN, State.COMPLETED), done)


def _slice_of(name: str) -> tuple[str, InstantTime] | None:
    """The file group, and the instant that the slice began with."""
    log, base = parse_log_file(name), parse_base_file(name)
    if log is not None:
        return log.file_id, log.base_instant
    return None if base is None else (base.file_id, base.instant)


def archive(opened: OpenedMetadata, table: Timeline, clock: Clock) -> None:
    """Move old instants to the metadata table's archive, of those that lie before all that the timeline of its table has."""
    leaving = _leaving(opened.own, table)
    if not leaving:
        return
    storage = opened.storage
    keys = frozenset((each.time, COMPLETES_AS.get(each.action, each.action)) for each in leaving)
    found = opened.active.state_files(keys)
    contents = storage.each(storage.read, [info.path for _, info in found])
    files = [
        StateFile(instant, content, format_instant(clock.wall(info.mtime_s)))
        for (instant, info), content in zip(found, contents, strict=True)
    ]
    writer = ArchiveWriter(storage, opened.history, layout=opened.own.layout)
    writer.add(files, timeline=f"{storage.uri}/{HOODIE}")
    storage.each(storage.delete, [info.path for instant, info in found if not instant.is_completed])
    for instant, info in found:  # oldest first: who lists meanwhile sees no hole
        if instant.is_completed:
            storage.delete(info.path)
    writer.merge()


def _leaving(own: Timeline, table: Timeline) -> Sequence[Instant]:
    pending = [each for each in table.pending() if each.action is not Action.INDEXING]
    bounds = [each for each in (table.start, pending[0].time if pending else None) if each is not None]
    if not bounds:
        return ()
    holds = [Hold(min(bounds), "the table's timeline"), held_by_pending(own)]
    holds.append(held_for_compaction(own, trigger_commits=COMPACTED_AFTER))
    least, most = _LEAST_COMMITS, _MOST_COMMITS
    there = [hold for hold in holds if hold is not None]
    commits, _ = leaving_commits(own, least=least, most=most, holds=there)
    gone = frozenset(commits)
    start = next((each.time for each in own.commits if each not in gone), None)
    others = [each for each in leaving_others(own, least=least, most=most, start=start) if each.time < min(bounds)]
    return sorted((*commits, *others), key=lambda each: (each.time, each.action))
