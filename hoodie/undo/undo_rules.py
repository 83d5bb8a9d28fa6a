"""Which commits may be undone, and the rows and files that this loses: for restores, rollbacks of a commit, and their previews.

The rules are those of Apache Hudi, which refuses to undo a savepointed commit, and a commit after which others were completed. Some
more keep a table from losing rows: the files of the state to come must be there, nobody may be writing, and the commits that go
must be on the active timeline: in the archive they would count for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from hoodie.errors import CommitConflictError, CommitOutcomeUnknownError, CorruptFileError, InstantNotFoundError
from hoodie.model.enums import MOVES_ROWS, Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import (
    COMPLETES_AS,
    hoodie_command,
    name_of,
    parse_log_file,
)
from hoodie.model.payloads import RestorePlan
from hoodie.model.results import RestoreResult
from hoodie.storage.base import Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.pending import being_run, being_written
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.txn.heartbeat import Life, life_of
from hoodie.undo.undo_files import doomed_by
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.listing import Listing
from hoodie.view.retention import Retention
from hoodie.view.view import FileSystemView


def plan_restore(context: TableContext, snapshot: Snapshot, target: InstantTime) -> RestorePlan:
    """What has to go so that the table is as it was after the commit `target`.

    Raises:
        InstantNotFoundError: there is no such commit on the active timeline, or files of its state were cleaned.
        CommitConflictError: somebody is at work on the table, or a later savepoint stands in the way.
    """
    timeline, table = snapshot.timeline, context.storage.uri
    if target not in timeline.completed_times:
        raise InstantNotFoundError(
            f"{timeline.not_found(target, table=table)}; a table can be restored to a commit on its active timeline. "
            f"{hoodie_command('timeline', table)} lists them"
        )
    later = [i for i in timeline if _is_data(i) and i.time > target]
    refuse_savepointed(timeline, [i.time for i in later], table=table)
    refuse_at_work(context, snapshot, later)
    if later:
        # Those that are on both timelines were put into the archive by somebody who died: a restore takes them out of it.
        _refuse_archived(snapshot, target, left_in_both=timeline.completed_times, table=table)
        _require_files(context, snapshot, target)
    return RestorePlan(target, tuple((i.time, i.action) for i in reversed(later)))


def require_newest(context: TableContext, snapshot: Snapshot, instant: Instant) -> None:
    """That a completed commit is the newest, and can be rolled back.

    Raises:
        InstantNotFoundError: files of the state before it were cleaned. CommitConflictError: something came after it, somebody is at
            work on the table, or it has a savepoint.
    """
    timeline, table = snapshot.timeline, context.storage.uri
    later = [i for i in timeline if _is_data(i) and i.time > instant.time]
    before = [i.time for i in timeline.commits if i.time < instant.time]
    instead = f"restore the table to {before[-1]}" if before else "delete the rows"
    refuse_savepointed(timeline, [instant.time], table=table)
    refuse_at_work(context, snapshot, later)
    if later:
        raise CommitConflictError(
            f"instant {instant} of table {table} cannot be rolled back alone: {later[0]} came after it. To undo both, {instead}"
        )
    if not before and snapshot.archived.commits:
        raise InstantNotFoundError(
            f"instant {instant} of table {table} cannot be rolled back: it is the only commit on the active timeline, and all before "
            "it were archived"
        )
    _refuse_archived(snapshot, before[-1] if before else None, table=table)
    if before:
        _require_files(context, snapshot, before[-1])


def refuse_savepointed(timeline: Timeline, times: Iterable[str], *, table: str) -> None:
    """Raises CommitConflictError where one of the instants has a savepoint."""
    saved = {i.time for i in timeline if i.action is Action.SAVEPOINT and i.is_completed}
    savepointed = sorted(saved.intersection(times))
    if savepointed:
        raise CommitConflictError(
            f"commit {savepointed[-1]} of table {table} has a savepoint, which keeps it from being undone. Drop the savepoint first: "
            f"{hoodie_command('savepoint', table, savepointed[-1], '--drop')}, or drop_savepoint({savepointed[-1]!r})"
        )


def refuse_at_work(context: TableContext, snapshot: Snapshot, later: Sequence[Instant]) -> None:
    """Raises CommitConflictError while a write is pending, or somebody runs one of the services that would go."""
    table = context.storage.uri
    for instant in snapshot.pending_writes:
        by = context.liveness.holder(instant.time)
        raise CommitConflictError(
            f"{being_written(instant, table=table, by=by)}; nothing was undone, try again when it is done"
        )
    cleans = snapshot.timeline.pending(Action.CLEAN)
    for plan in (*(i for i in later if i.state is State.INFLIGHT), *cleans):
        if life_of(plan.time, context) is not Life.DEAD:
            raise CommitConflictError(being_run(plan, table=table, by=context.liveness.holder(plan.time)))


def put_plan(context: TableContext, requested: Instant, data: bytes) -> None:
    """Put the plan by which readers see commits undone.

    Raises:
        CommitOutcomeUnknownError: it is not known whether it stands.
    """
    try:
        context.active.create(requested, data)
    except OSError as exc:
        with carries_on(context.storage, requested):
            if context.active.exists(requested):
                return
        raise exc


@contextmanager
def carries_on(storage: Storage, undoing: Instant) -> Iterator[None]:
    """From here on the plan stands, or may stand: an error of the storage does not undo it.

    Raises:
        CommitOutcomeUnknownError: the storage failed.
    """
    try:
        yield
    except OSError as exc:
        raise CommitOutcomeUnknownError(
            f"{undoing.action} {undoing.time} of table {storage.uri} was planned, but the storage failed before it was done "
            f"({exc}). If its plan stands, readers see the commits undone already, and the next write or service finishes it: look at "
            "the timeline"
        ) from exc


def _is_data(instant: Instant) -> bool:
    return instant.action in WRITES or instant.action in COMPLETES_AS


def _refuse_archived(
    snapshot: Snapshot, target: InstantTime | None, *, left_in_both: frozenset[str] = frozenset(), table: str
) -> None:
    """A commit that goes must have left neither for the archive, nor be there."""
    after = target or ""
    if any(i.time > after and i.time not in left_in_both for i in snapshot.archived.commits):
        raise InstantNotFoundError(
            f"commits of table {table} after {target} were archived, and cannot be undone any more. The state of a savepoint can be "
            "read as of its instant, and written into a new table"
        )


def unreadable_commits(
    active: ActiveTimeline, timeline: Timeline, times: Iterable[InstantTime]
) -> frozenset[InstantTime]:
    """Those of the completed writes whose metadata do not decode: they can be undone all the same, by what is listed."""

    def is_unreadable(time: InstantTime) -> bool:
        try:
            active.check_commit(timeline.commit_at[time])
        except (CorruptFileError, FileNotFoundError):
            return True
        return False

    return frozenset(time for time in times if time in timeline.commit_at and is_unreadable(time))


def _require_files(context: TableContext, snapshot: Snapshot, target: InstantTime) -> None:
    view, table = snapshot.view, context.storage.uri
    damaged = unreadable_commits(snapshot.active, snapshot.timeline, snapshot.timeline.completed_times)
    if damaged:
        timeline = snapshot.timeline.without(damaged)
        view = FileSystemView(context.listing, snapshot.active, timeline, snapshot.archived)
    cleaned = Retention(view, snapshot.active, view.timeline.as_of(target)).cleaned_anywhere()
    if not cleaned:
        return
    group = cleaned[0].group
    earliest = snapshot.active.earliest_kept(snapshot.timeline)
    raise InstantNotFoundError(
        f"table {table} cannot be restored to {target}: files of that state were cleaned (file group {group.file_id} in partition "
        f"{group.partition_path!r} and {len(cleaned) - 1} more); the earliest commit to go back to is {earliest or 'not known'}. A "
        "savepoint keeps the files of its commit from cleans"
    )


def preview(listing: Listing, snapshot: Snapshot, undone: Sequence[InstantTime], *, to: str | None) -> RestoreResult:
    """What an undo of these instants, newest first, would remove; changes nothing."""
    undone_times = frozenset(undone)
    files = size = 0
    for infos in listing.all_files().files.values():
        for info in infos:
            if not info.is_folder and doomed_by(info.name, undone_times) is not None:
                files, size = files + 1, size + info.size_bytes
    damaged = unreadable_commits(snapshot.active, snapshot.timeline, undone_times)
    commits = [i for i in snapshot.timeline.commits if i.time in undone_times - damaged]
    inserted = updated = deleted = 0
    logs = set()
    for metadata in snapshot.active.read_commits(commits):
        for stat in metadata.stats():
            if metadata.operation not in MOVES_ROWS and not metadata.compacted:
                inserted, updated = inserted + stat.num_inserts, updated + stat.num_updates
                deleted += stat.num_deletes
            log = parse_log_file(name_of(stat.path))
            if log is not None and log.base_instant not in undone_times:
                logs.add(stat.path)
    return RestoreResult(
        None,
        restored_to=to,
        undone=tuple(undone),
        inserted=inserted,
        updated=updated,
        deleted=deleted,
        files=files,
        bytes_freed=size,
        logs=len(logs),
        dry_run=True,
    )
