"""Archiving: completed instants leave the active timeline, which every reader and writer lists and reads, for the archived one.

There is no plan on the timeline. What is archived does not change any more, so it is read, and written to the archive, without the
table lock; that is taken to look again at what may leave, and to delete it from the active timeline: first the requested and inflight
files, then the completed ones, oldest first (`ActiveTimeline.load` says why). A process that dies on the way leaves instants in
both, and the next one goes on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from hoodie.errors import CommitConflictError, LockError
from hoodie.filegroup.row_copies import read_row_copy, row_copies_of
from hoodie.format.archive_entries import StateFile
from hoodie.metadata.services import not_compacted
from hoodie.model.enums import Action, State, TableType
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Instant, InstantTime, format_instant, is_instant_time
from hoodie.model.names import (
    COMPLETES_AS,
    MARKERS,
    folder_of,
    hoodie_command,
    name_of,
    parse_base_file,
    parse_log_file,
)
from hoodie.model.results import ArchiveResult
from hoodie.options.compatibility import check_version
from hoodie.options.write import WriteOptions
from hoodie.services.clean_scope import CHECKPOINT, last_clean
from hoodie.services.consumer_needs import needed_by_consumers
from hoodie.services.figures import record_service
from hoodie.storage.base import Storage
from hoodie.telemetry import span
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.archive_plan import (
    Hold,
    held_by_pending,
    held_for_compaction,
    leaving_commits,
    leaving_others,
)
from hoodie.timeline.archive_writer import ArchiveWriter, archive_writer_of
from hoodie.timeline.lsm_writer import LsmArchiveWriter
from hoodie.timeline.timeline import Timeline
from hoodie.txn.critical import under_lock
from hoodie.txn.participants import before_plan
from hoodie.undo.late_files import delete_late_files
from hoodie.view.context import TableContext
from hoodie.write.placement import placement_class

log = logging.getLogger("hoodie")

_STAMPS_MAY_DIFFER_S = 2.0
"""Of two files that came at the same time. Storages tell times to the second."""
_AT_A_TIME = 32
"""Instants that leave while the lock is held once: so long writers wait, however much there is to archive."""


@dataclass(frozen=True)
class _Plan:
    instants: tuple[Instant, ...]
    start: InstantTime | None
    """The first commit that stays."""
    hold: Hold | None


def is_due(context: TableContext, options: WriteOptions) -> bool:
    """Whether there are more commits, cleans or rollbacks than may be, by the timeline that this process saw last."""
    archiving = options.archiving
    if not archiving.automatic:
        return False
    timeline = context.active.last_loaded() or context.active.load()
    most = archiving.max_commits
    counts = [len(timeline.commits)]
    counts += [sum(1 for i in timeline if i.action is action) for action in (Action.CLEAN, Action.ROLLBACK)]
    if max(counts) <= most:
        return False
    # Where something holds instants back, they do not leave one by one.
    return len(_plan(context, timeline, options).instants) >= most - archiving.min_commits


def archive(context: TableContext, options: WriteOptions, *, dry_run: bool = False) -> ArchiveResult:
    """Move old instants to the archived timeline.

    Raises:
        CorruptFileError: an instant's file does not decode. LockError: the table lock was lost; run it again.
        UnsupportedTableError: the table's version is only read.
    """
    started = time.monotonic()
    timeline = context.active.load()
    plan = _plan(context, timeline, options)
    result = ArchiveResult(
        tuple(each.time for each in plan.instants),
        earliest=plan.start,
        held_by=None if plan.hold is None else f"{plan.hold.why}, at {plan.hold.time}",
        dry_run=dry_run,
    )
    if dry_run or not plan.instants:
        return result
    check_version(context.config)
    with span("archive", table=context.config.name, path=context.storage.uri, instants=len(plan.instants)):
        archived_instants = _move(context, timeline, plan, options)
    seconds = time.monotonic() - started
    record_service(context, "archive", seconds, archived_instants)
    return ArchiveResult(tuple(each.time for each in archived_instants), plan.start, result.held_by, seconds=seconds)


def _move(context: TableContext, timeline: Timeline, plan: _Plan, options: WriteOptions) -> Sequence[Instant]:
    """Archive the planned instants; gives those that the active timeline does not have any more."""
    writer = _writer(context)
    _add(context, writer, plan.instants)
    if plan.start is not None:
        with _told_of_others(context.storage):
            delete_late_files(context, timeline, start=plan.start)
    archived_instants = _delete(context, plan, options)
    merged = _tidy(context, writer, plan, archived_instants)
    if merged or len(archived_instants) < len(plan.instants):
        _take_out_undone(context.active, writer, timeline)
    return archived_instants


# -- planning ----------------------------------------------------------------------------------------------------------


def _plan(
    context: TableContext, timeline: Timeline, options: WriteOptions, *, cleaned: frozenset[Instant] = frozenset()
) -> _Plan:
    """`cleaned`: commits of which it is known that what they replaced is gone."""
    archiving = options.archiving
    least, most = archiving.min_commits, archiving.max_commits
    leaving, hold = leaving_commits(
        timeline,
        least=least,
        most=most,
        holds=_holds(context, timeline, options) if len(timeline.commits) > most else (),
        beyond_savepoints=archiving.beyond_savepoints,
    )
    there = frozenset(leaving)
    start = next((i.time for i in timeline.commits if i not in there), None)
    replacing = _first_in_the_way(context, timeline, [i for i in leaving if i not in cleaned])
    if replacing is not None:
        hold = Hold(replacing.time, f"{replacing}, whose replaced files are still there")
        leaving = tuple(i for i in leaving if i.time < replacing.time)
        start = replacing.time
    others = leaving_others(timeline, least=least, most=most, start=start)
    return _Plan(tuple(sorted((*leaving, *others), key=lambda i: (i.time, i.action))), start, hold)


def _holds(context: TableContext, timeline: Timeline, options: WriteOptions) -> Iterable[Hold]:
    pending = held_by_pending(timeline)
    if pending is not None:
        yield pending
        yield from _committed_beside_pending(context, timeline)
    if context.config.table_type is TableType.MERGE_ON_READ:
        needed = held_for_compaction(timeline, trigger_commits=options.compaction.max_delta_commits)
        if needed is not None:
            yield needed
        yield from _written_before_base(context, timeline)
    if options.cleaning.automatic or options.archiving.waits_for_cleans:
        # What was archived cannot be looked at any more by a clean, which would have to list the table.
        last = last_clean(context.active, timeline)
        earliest = last and (last.earliest or last.extra.get(CHECKPOINT))
        if earliest:
            yield Hold(InstantTime(earliest), "the next clean")
    first = not_compacted(context.storage, timeline)
    if first is not None:
        # Apache Hudi counts what its metadata table has in logs by the instants of both timelines.
        yield Hold(first, "the metadata table, which was not compacted since")
    need = needed_by_consumers(context, timeline, hours=options.cleaning.consumer_hours)
    if need is not None:
        yield Hold(need.time, f"consumer {need.name!r}, which has not read it")


def _written_before_base(context: TableContext, timeline: Timeline) -> Iterable[Hold]:
    """The first delta commit that wrote a log of today's slices before their base file was there: while that compaction was
    pending. Where completion times are not stated, only its metadata say so, and look-ups have to read such logs
    (`FileSystemView.logs_before_base`).
    """
    if timeline.by_completion or not placement_class(context.config).looks_up:
        return
    wrote: dict[str, Instant] = {}
    for commit, metadata in zip(timeline.commits, context.active.read_commits(timeline.commits), strict=True):
        for stat in metadata.stats():
            name = parse_log_file(name_of(stat.path or ""))
            base = parse_base_file(stat.base_file or "")
            if name is not None and (base is None or base.instant != name.base_instant):
                wrote[stat.path] = commit
    if not wrote:
        return
    view = context.snapshot().view
    there: set[str] = set()
    for file_slice in view.latest_slices({folder_of(path) for path in wrote}):
        older = view.logs_before_base(file_slice)
        there.update(log.path for log in (older.logs if older is not None else ()))
    first = min((wrote[path] for path in there & wrote.keys()), key=lambda i: i.time, default=None)
    if first is not None:
        yield Hold(first.time, f"logs of {first}, which came before the base file that a compaction put beside them")


def _committed_beside_pending(context: TableContext, timeline: Timeline) -> Iterable[Hold]:
    """Commits with smaller instants that were completed after a pending one began, which has to look at them."""
    pending = timeline.pending()
    began_s = min(
        (
            context.storage.stat(path).mtime_s
            for each in pending
            if context.storage.exists(path := context.active.path(each._replace(state=State.REQUESTED)))
        ),
        default=None,
    )
    if began_s is None:
        return
    for commit in timeline.commits:
        if context.active.reached_at(commit) >= began_s - _STAMPS_MAY_DIFFER_S:
            yield Hold(commit.time, f"{pending[0]}, which began before it was committed")
            return


def _first_in_the_way(context: TableContext, timeline: Timeline, leaving: Sequence[Instant]) -> Instant | None:
    """The first commit that replaced file groups of which files are still there: without it they would count again.

    Only where the newest clean has passed it can they be gone, and is it worth to look.
    """
    last = None
    for instant in leaving:
        if instant.action is not Action.REPLACECOMMIT:
            continue
        last = last or last_clean(context.active, timeline)
        if last is None or (last.earliest and instant.time >= last.earliest):
            return instant
        replaced = context.active.read_commit(instant).replaced_file_ids
        partitions = [path for path, ids in replaced.items() if ids]
        for partition_path, infos in zip(partitions, context.listing.files(partitions), strict=True):
            there = {_group_of(partition_path, info.path) for info in infos}
            if any(FileGroupId(partition_path, file_id) in there for file_id in replaced[partition_path]):
                return instant
    return None


def _group_of(partition_path: str, path: str) -> FileGroupId | None:
    name = name_of(path)
    parsed_name = parse_base_file(name) or parse_log_file(name)
    return None if parsed_name is None else FileGroupId(partition_path, parsed_name.file_id)


# -- running -----------------------------------------------------------------------------------------------------------


def _writer(context: TableContext) -> ArchiveWriter | LsmArchiveWriter:
    return archive_writer_of(
        context.storage, context.config.history_folder, context.config.layout, lock=partial(under_lock, context)
    )


def _keys(instants: Iterable[Instant]) -> frozenset[tuple[str, Action]]:
    return frozenset((i.time, COMPLETES_AS.get(i.action, i.action)) for i in instants)


def _add(context: TableContext, writer: ArchiveWriter | LsmArchiveWriter, instants: Iterable[Instant]) -> None:
    storage, clock = context.storage, context.clock
    state_files = context.active.state_files(_keys(instants))
    with _told_of_others(context.storage):
        contents = storage.each(storage.read, [info.path for _, info in state_files])
    files = [
        StateFile(instant, content, format_instant(clock.wall(info.mtime_s)))
        for (instant, info), content in zip(state_files, contents, strict=True)
    ]
    writer.add(files, timeline=f"{storage.uri.rstrip('/')}/{context.config.timeline_folder}")


@contextmanager
def _told_of_others(storage: Storage) -> Iterator[None]:
    """A file of the timeline that is gone is in the archive by now.

    Raises:
        CommitConflictError: it is.
    """
    try:
        yield
    except FileNotFoundError as exc:
        raise CommitConflictError(
            f"another process archives the timeline of table {storage.uri} right now; nothing was lost, and what is left "
            "over is archived the next time"
        ) from exc


def _delete(context: TableContext, plan: _Plan, options: WriteOptions) -> tuple[Instant, ...]:
    """Take those instants off the active timeline that still may leave it; gives them."""
    archived_instants: list[Instant] = []
    for start in range(0, len(plan.instants), _AT_A_TIME):
        chosen = plan.instants[start : start + _AT_A_TIME]
        moved = _delete_some(context, chosen, plan, options)
        archived_instants += moved
        if len(moved) < len(chosen):
            break  # the first that has to stay holds back all after it
    return tuple(archived_instants)


def _delete_some(
    context: TableContext, chosen: Sequence[Instant], plan: _Plan, options: WriteOptions
) -> tuple[Instant, ...]:
    # Some have left, so that there may be no more than enough to begin: what is left of the plan leaves all the same.
    rest = replace(options, archiving=replace(options.archiving, max_commits=options.archiving.min_commits))
    with under_lock(context):
        before_plan(context)
        # What was replaced and is gone does not come back, so nothing is listed under the lock.
        now = frozenset(_plan(context, context.active.load(), rest, cleaned=frozenset(plan.instants)).instants)
        leaving = tuple(each for each in chosen if each in now)
        _take_off(context, leaving)
    return leaving


def _take_off(context: TableContext, leaving: Iterable[Instant]) -> None:
    """Under the lock."""
    storage = context.storage
    files = context.active.state_files(_keys(leaving))
    if not context.lock.is_held():
        raise LockError(f"the lock of table {storage.uri} ended while instants were archived; run it again")
    before = [info.path for instant, info in files if not instant.is_completed]
    storage.each(storage.delete, before)
    for instant, info in files:
        if instant.is_completed:
            storage.delete(info.path)


# -- commits that a savepoint kept -------------------------------------------------------------------------------------


def add_left_behind(context: TableContext, timeline: Timeline, saved: InstantTime) -> Instant | None:
    """Put a savepointed commit into the archive if later ones are there, so that it can leave with its savepoint: without that the
    timeline would begin with it, and rows of the later ones would not count. Gives the commit, for `take_off_left_behind`.

    Raises:
        CommitConflictError: files that it replaced are there still, and would count again.
    """
    commit, start = timeline.commit_at.get(saved), timeline.start
    if commit is None or start is None or saved >= start:
        return None
    if not any(saved < i.time < start for i in context.archived().commits):
        return None
    if _first_in_the_way(context, timeline, [commit]) is not None:
        raise CommitConflictError(
            f"savepoint {saved} of table {context.storage.uri} was not dropped: later commits were archived, so its commit has to be "
            f"archived with it, and files that {commit} replaced are still there; clean the table first "
            f"({hoodie_command('clean', context.storage.uri)})"
        )
    _add(context, _writer(context), [commit])
    return commit


def take_off_left_behind(context: TableContext, commit: Instant) -> None:
    """Under the lock, before the savepoint goes."""
    _take_off(context, [commit])


# -- afterwards --------------------------------------------------------------------------------------------------------


def _take_out_undone(active: ActiveTimeline, writer: ArchiveWriter | LsmArchiveWriter, before: Timeline) -> None:
    """A restore that came meanwhile may have looked through the archive before this process put its instants there."""
    restore_times = {i.time for i in before if i.action is Action.RESTORE}
    restores = [i for i in active.load_all() if i.action is Action.RESTORE and i.time not in restore_times]
    undone = frozenset(time for restore in restores for time, _ in active.planned_to_undo(restore))
    if undone:
        writer.take_out(undone)


def _tidy(
    context: TableContext, writer: ArchiveWriter | LsmArchiveWriter, plan: _Plan, archived_instants: Sequence[Instant]
) -> bool:
    """Delete leftovers, and merge archive files; gives whether any may have been merged.

    After a failure the next archiving does it.
    """
    storage = context.storage
    try:
        times = {each.time for each in archived_instants}
        for info in storage.list(MARKERS):
            name = info.name
            # Nothing that is pending lies before the start: such a marker came when its write had been rolled back.
            is_late = plan.start is not None and is_instant_time(name) and name < plan.start
            if info.is_folder and (name in times or is_late):
                storage.delete_folder(info.path)
        _drop_row_copies(context, plan.start)
        return writer.merge() > 0
    except OSError as exc:
        log.warning("leftovers of archived instants of table %s stay until the next time: %s", storage.uri, exc)
        return True


def _drop_row_copies(context: TableContext, start: InstantTime | None) -> None:
    """Remove copies of archived commits of which no log is left; a clean goes by active commits.

    Each look opens a file, and where nothing is compacted no copy goes: so the oldest ones are looked at, and some others in turn.
    """
    copies = row_copies_of(context.storage)
    old = sorted(each for each in copies if start is not None and each < start)
    turn = int(start.padded if start else 0) % len(old) if old else 0
    dropped_times: set[str] = set()
    for times in (old, old[turn:] + old[:turn]):
        needed = 0
        for each in times:
            if needed >= context.tuning.copies_looked_at or each in dropped_times:
                continue
            if all(_drop_if_done(context.storage, path) for path in copies[each]):
                dropped_times.add(each)
                needed = 0
            else:
                needed += 1


def _drop_if_done(storage: Storage, path: str) -> bool:
    """Whether no log of a copy was left, so that it was removed."""
    copy = read_row_copy(storage, path, storage.stat(path).size_bytes)
    if copy is not None and any(storage.exists(share.log) for share in copy.shares):
        return False
    storage.delete(path)
    return True
