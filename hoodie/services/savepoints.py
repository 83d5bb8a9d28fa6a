"""Savepoints: commits whose state stays readable, and can be restored, however much is cleaned and archived.

A savepoint is a completed file of the commit's own instant. It names the files of that state, and cleans leave these. It is made
under the table lock, in one step: the completed file comes first, and the empty inflight file that Apache Hudi has beside it after
that. So a process that dies leaves a savepoint or none.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from contextlib import suppress

from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.format.restore_plans import encode_savepoint
from hoodie.model.change import Change
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import hoodie_command
from hoodie.model.payloads import SavepointMetadata
from hoodie.model.results import Savepoint
from hoodie.services.archiving import add_left_behind, take_off_left_behind
from hoodie.services.clean_scope import deciding
from hoodie.storage.base import Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.txn.critical import refuse_amid_restore, under_lock
from hoodie.txn.participants import before_completion
from hoodie.undo.restore_run import after_restores
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.retention import Retention

_TRIES = 3


def make_savepoint(context: TableContext, instant_time: InstantTime | None, comment: str) -> str:
    """Keep the state after a commit, by default the newest; gives its instant.

    Raises:
        InstantNotFoundError: there is no such commit, or files of its state were cleaned.
        CommitConflictError: it has a savepoint, a clean deletes files of its state, or a restore is at work.
    """
    context = context.on_storage()
    after_restores(context)
    for _ in range(_TRIES):
        snapshot = context.snapshot()
        commit = _commit(snapshot, instant_time, table=context.storage.uri)
        files = _files(context.storage, snapshot, commit)
        if _put(context, snapshot.timeline, commit, files, comment):
            return str(commit.time)
    raise CommitConflictError(
        f"no savepoint of table {context.storage.uri} could be made: other processes cleaned or restored at the same time; try again"
    )


def savepoints_of(active: ActiveTimeline) -> list[Savepoint]:
    """All savepoints, oldest first."""
    instants = [i for i in active.load() if i.action is Action.SAVEPOINT and i.is_completed]
    pairs = [(i.time, active.read_savepoint(i)) for i in instants]
    return [
        Savepoint(time_, each.comment, each.user, each.at_ms, sum(map(len, each.files.values())))
        for time_, each in pairs
    ]


def drop_savepoint(context: TableContext, instant_time: InstantTime) -> None:
    """Let a savepoint go; the next clean may delete its files.

    Where commits after it were archived (`hoodie.archive.beyond.savepoint`), its own commit is archived with it.

    Raises:
        InstantNotFoundError: there is none at that instant.
        CommitConflictError: a restore is at work, commits were archived all the time, or its commit cannot be archived yet.
    """
    after_restores(context)
    for _ in range(_TRIES):
        timeline = context.active.load()
        if _drop(context, timeline, instant_time, add_left_behind(context, timeline, instant_time)):
            return
    raise CommitConflictError(
        f"savepoint {instant_time} of table {context.storage.uri} was not dropped: others archived at the same time; try again"
    )


def _drop(context: TableContext, timeline: Timeline, instant_time: InstantTime, left_behind: Instant | None) -> bool:
    """False where commits of the timeline have left it meanwhile."""
    completed = Instant(instant_time, Action.SAVEPOINT, State.COMPLETED)
    with under_lock(context):
        now = context.active.load()
        if now.find(instant_time, Action.SAVEPOINT) is None:
            there = ", ".join(i.time for i in now if i.action is Action.SAVEPOINT) or "none"
            raise InstantNotFoundError(
                f"table {context.storage.uri} has no savepoint at {instant_time}; its savepoints: {there}"
            )
        refuse_amid_restore(context, now)
        if not timeline.completed_times <= now.completed_times:
            return False
        if left_behind is not None:
            take_off_left_behind(context, left_behind)
        # The completed file last: until then the savepoint stands. Apache Hudi may have left a requested one.
        for state in (State.INFLIGHT, State.REQUESTED, State.COMPLETED):
            context.active.remove(completed._replace(state=state))
    return True


def _commit(snapshot: Snapshot, instant_time: InstantTime | None, *, table: str) -> Instant:
    timeline = snapshot.timeline
    result = timeline.latest_commit if instant_time is None else timeline.commit_at.get(instant_time)
    if result is None:
        raise InstantNotFoundError(timeline.not_found(instant_time or "(the latest)", table=table))
    saved = timeline.find(result.time, Action.SAVEPOINT)
    if saved is not None and saved.is_completed:
        raise CommitConflictError(
            f"commit {result.time} of table {table} has a savepoint already; drop it to make another one"
        )
    return result


def _files(storage: Storage, snapshot: Snapshot, commit: Instant) -> Mapping[str, tuple[str, ...]]:
    """Names of the files of a state, by partition path."""
    timeline, table = snapshot.timeline, storage.uri
    then = timeline.as_of(commit.time)
    earliest = snapshot.active.earliest_kept(timeline)
    newest = commit == timeline.latest_commit
    is_cleaned = earliest is not None and commit.time < earliest
    if not newest and (is_cleaned or Retention(snapshot.view, snapshot.active, then).cleaned_anywhere()):
        raise InstantNotFoundError(
            f"the files of table {table} as of commit {commit.time} were cleaned, so a savepoint cannot keep them; the earliest "
            f"commit for one is {earliest or timeline.commits[-1].time}, the latest {timeline.commits[-1].time}"
        )
    names_of: dict[str, list[str]] = {}
    for file_slice in snapshot.view.latest_slices(until=then):
        names = [file.name for file in (file_slice.base, *file_slice.logs) if file is not None]
        names_of.setdefault(file_slice.group.partition_path, []).extend(names)
    _refuse_doomed(snapshot, names_of, table=table)
    return {path: tuple(names) for path, names in sorted(names_of.items())}


def _refuse_doomed(snapshot: Snapshot, files: Mapping[str, list[str]], *, table: str) -> None:
    """Raises CommitConflictError when a clean that was begun deletes one of the files."""
    for clean in snapshot.timeline.pending(Action.CLEAN):
        with suppress(FileNotFoundError):
            planned = snapshot.active.read_clean_plan(clean.time).files
            if any(set(names) & set(planned.get(path, ())) for path, names in files.items()):
                raise CommitConflictError(
                    f"{clean} of table {table} deletes files that the savepoint would keep; let it end "
                    f"({hoodie_command('clean', table)} finishes "
                    "one whose process died), and make a savepoint of a later commit"
                )


def _put(
    context: TableContext, timeline: Timeline, commit: Instant, files: Mapping[str, tuple[str, ...]], comment: str
) -> bool:
    """False where files of the state may have gone since it was looked at."""
    saved = Instant(commit.time, Action.SAVEPOINT, State.COMPLETED)
    with under_lock(context):
        now = context.active.load()
        refuse_amid_restore(context, now)
        if deciding(now) != deciding(timeline) or commit not in now.commits:
            return False
        before_completion(context, Change(saved))
        at_ms = int(context.storage.now_s() * 1000)
        context.active.create(
            context.completing(saved), encode_savepoint(SavepointMetadata(_user(), at_ms, comment, files))
        )
        # The savepoint stands without it. An error here would make the caller try again, and be refused.
        with suppress(OSError):
            _put_inflight(context.active, saved._replace(state=State.INFLIGHT))
    return True


def _put_inflight(active: ActiveTimeline, inflight: Instant) -> None:
    if not active.exists(inflight):
        active.create(inflight)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a process without a name, as in many containers
        return ""
