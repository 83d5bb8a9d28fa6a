"""Services of a metadata table itself: its clean, its archiving, and the end of compactions whose process died.

All of it under the table's lock, before the delta commit of a write, and by the rules of Apache Hudi's writers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress

from hoodie.errors import CommitConflictError, CorruptFileError, UnsupportedTableError
from hoodie.format.archive_entries import StateFile
from hoodie.format.service_plans import encode_clean_metadata, encode_clean_plan
from hoodie.metadata.instants import CLEAN, OwnInstants
from hoodie.metadata.table import OpenedMetadata
from hoodie.model.enums import Action, CleanPolicy, State
from hoodie.model.files import FileGroup
from hoodie.model.instant import Instant, InstantTime, format_instant
from hoodie.model.names import COMPLETES_AS, METADATA_TABLE, join, parse_base_file, parse_log_file
from hoodie.model.payloads import CleanPlan
from hoodie.storage.base import Storage
from hoodie.timeline.archive_plan import Hold, held_by_pending, held_for_compaction, leaving_commits, leaving_others
from hoodie.timeline.archive_writer import archive_writer_of
from hoodie.timeline.clock import Clock
from hoodie.timeline.timeline import Timeline

COMPACTED_AFTER = 10
"""Delta commits, as by Apache Hudi's default."""
_KEPT_SLICES = 2
_LEAST_COMMITS, _MOST_COMMITS = 21, 31
"""On the metadata table's timeline: one more than Apache Hudi's defaults leave on that of the table."""


def not_compacted(storage: Storage, table: Timeline) -> InstantTime | None:
    """The first commit of the table that its metadata table has in logs; None without a metadata table, or without such a commit."""
    own = Timeline.from_file_names(storage.names(join(METADATA_TABLE, table.layout.folder)), layout=table.layout)
    if not own.commits:
        return None
    last = max((each.time for each in own.commits if each.action is Action.COMMIT), default=InstantTime(""))
    if not own.layout.by_completion:
        return last or table.commits[0].time
    return next((each.time for each in table.commits if each.position > last), None)


Names = Mapping[str, Sequence[str]]
"""Partition of the metadata table -> names of all files in it."""


def end_compactions(metadata: OpenedMetadata, names: Names) -> bool:
    """Take pending compactions back: who holds the lock knows that nobody is at work. Gives whether there were any.

    Raises:
        UnsupportedTableError: logs were written after one was planned, which count on its base file.
    """
    pending = metadata.own.pending(Action.COMPACTION)
    for instant in pending:
        everywhere = [(partition, name) for partition, file_names in names.items() for name in file_names]
        logs = [name for _, name in everywhere if (log := parse_log_file(name)) and log.base_instant == instant.time]
        if logs:
            raise UnsupportedTableError(f"its compaction {instant.time} is pending, and {logs[0]} was written since")
        for partition, name in everywhere:
            base = parse_base_file(name)
            if base is not None and base.instant == instant.time:
                metadata.storage.delete(join(partition, name))
        for state in (State.INFLIGHT, State.REQUESTED):
            metadata.active.remove(Instant(instant.time, Action.COMPACTION, state))
    return bool(pending)


def clean(
    metadata: OpenedMetadata, groups: Mapping[str, Sequence[FileGroup]], instants: OwnInstants, latest: InstantTime
) -> None:
    """Delete what lies before the last file slice but one of a file group, after delta commit `latest`.

    Who reads by older slices has come before the last compaction but one. A clean of a process that died is carried on.
    """
    for pending in metadata.own.pending(Action.CLEAN):
        with suppress(CorruptFileError, FileNotFoundError):  # only being planned: its own writer begins anew
            _run_clean(metadata, instants, pending.time, metadata.active.read_clean_plan(pending.time))
    doomed = {partition: tuple(sorted(_outdated(of_partition))) for partition, of_partition in groups.items()}
    doomed = {partition: of_partition for partition, of_partition in doomed.items() if of_partition}
    instant = Instant(instants.after(latest, CLEAN), Action.CLEAN, State.REQUESTED)
    if not doomed or any(each.time == instant.time for each in metadata.own):
        return
    plan = CleanPlan(CleanPolicy.KEEP_LATEST_FILE_VERSIONS, doomed, None, latest)
    metadata.active.create(instant, encode_clean_plan(plan, uri=metadata.storage.uri))
    _run_clean(metadata, instants, instant.time, plan)


def _outdated(groups: Iterable[FileGroup]) -> Iterator[str]:
    """Names of files that lie before the last slice but one of their group."""
    for group in groups:
        for each in group.slices[:-_KEPT_SLICES]:
            yield from (log.name for log in each.logs)
            if each.base is not None:
                yield each.base.name


def _run_clean(metadata: OpenedMetadata, instants: OwnInstants, instant_time: InstantTime, plan: CleanPlan) -> None:
    active, storage, started = metadata.active, metadata.storage, time.monotonic()
    with suppress(CommitConflictError):
        active.create(Instant(instant_time, Action.CLEAN, State.INFLIGHT))
    storage.each(storage.delete, [join(folder, name) for folder, names in plan.files.items() for name in names])
    took_ms = round(1000 * (time.monotonic() - started))
    with suppress(CommitConflictError):
        data = encode_clean_metadata(plan, instant=instant_time, took_ms=took_ms)
        active.create(instants.completing(Instant(instant_time, Action.CLEAN, State.COMPLETED)), data)


def archive(metadata: OpenedMetadata, table: Timeline, clock: Clock) -> None:
    """Move old instants to the metadata table's archive, of those that lie before all that the timeline of its table has."""
    leaving = _leaving(metadata.own, table)
    if not leaving:
        return
    storage = metadata.storage
    keys = frozenset((each.time, COMPLETES_AS.get(each.action, each.action)) for each in leaving)
    state_files = metadata.active.state_files(keys)
    contents = storage.each(storage.read, [info.path for _, info in state_files])
    files = [
        StateFile(instant, content, format_instant(clock.wall(info.mtime_s)))
        for (instant, info), content in zip(state_files, contents, strict=True)
    ]
    writer = archive_writer_of(storage, metadata.history, metadata.own.layout, lock=nullcontext)
    writer.add(files, timeline=f"{storage.uri}/{metadata.folder}")
    storage.each(storage.delete, [info.path for instant, info in state_files if not instant.is_completed])
    for instant, info in state_files:  # oldest first: who lists meanwhile sees no hole
        if instant.is_completed:
            storage.delete(info.path)
    writer.merge()


def _leaving(own: Timeline, table: Timeline) -> Sequence[Instant]:
    pending = [each for each in table.at_work if each.action is not Action.INDEXING]
    bounds = [each for each in (table.start, pending[0].time if pending else None) if each is not None]
    if not bounds:
        return ()
    holds = [Hold(min(bounds), "the table's timeline"), held_by_pending(own)]
    holds.append(held_for_compaction(own, trigger_commits=COMPACTED_AFTER))
    least, most = _LEAST_COMMITS, _MOST_COMMITS
    there = [hold for hold in holds if hold is not None]
    commits, _ = leaving_commits(own, least=least, most=most, holds=there)
    archivable = frozenset(commits)
    start = next((each.time for each in own.commits if each not in archivable), None)
    others = [each for each in leaving_others(own, least=least, most=most, start=start) if each.time < min(bounds)]
    return sorted((*commits, *others), key=lambda each: (each.time, each.action))
