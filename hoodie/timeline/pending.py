"""Pending work in words: what a pending instant is, and what to do about it. All errors that speak of one take them here."""

from __future__ import annotations

from hoodie.errors import InstantNotFoundError
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import hoodie_command
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import WRITES, Timeline

_RUN_BY = {
    Action.COMPACTION: ("compaction", "run"),
    Action.LOGCOMPACTION: ("log-compaction", "run"),
    Action.CLUSTERING: ("clustering", "run"),
}


def explain_pending(instant: Instant, *, table: str) -> str:
    """What a pending instant is, and what becomes of it; `table`: its path, for the command that is printed."""
    if instant.action in WRITES:
        return "a write in progress; if its writer died, the next write undoes it"
    if instant.action is Action.ROLLBACK:
        return "an unfinished rollback; the next write finishes it"
    if instant.action is Action.RESTORE:
        return "an unfinished restore; the next write finishes it"
    if instant.action is Action.SAVEPOINT:
        return "an unfinished savepoint, which holds no files"
    command = _RUN_BY.get(instant.action)
    if command is not None:
        run = "" if instant.state is State.REQUESTED else "being run; if its runner died, "
        return f"{run}{hoodie_command(*command, table)} runs it"
    if instant.action is Action.CLEAN:
        return f"an unfinished clean; the next one, or {hoodie_command('clean', table)}, finishes it"
    return "another writer's work; that one has to finish it"


def being_written(instant: Instant, *, table: str, by: str | None = None) -> str:
    """The beginning of a sentence on what cannot be done beside a pending write; `by`: whose it is, where that is known."""
    return f"instant {instant} of table {table} is still being written{f' by {by}' if by else ''}"


def written_by_others(instant: Instant, *, table: str) -> str:
    return (
        f"another writer is working on table {table}: instant {instant} is pending and its heartbeat is "
        "fresh. Nothing was written; run again when it is done"
    )


def locked_otherwise(instant: Instant, theirs: str, ours: str, *, table: str, by: str) -> str:
    return (
        f"instant {instant} of table {table} is being written by {by}, which agrees with other writers by another lock "
        f"({theirs}) than this process ({ours}): the two do not exclude each other. Nothing was written; give all writers of "
        "the table the same hoodie.write.lock.provider"
    )


def being_run(plan: Instant, *, table: str, by: str | None = None) -> str:
    runner = f"another process, {by}" if by else "another process"
    return f"{_plan(plan.action, plan.time, table)} is being run by {runner}; nothing was done"


def being_restored(restore: Instant, *, table: str, by: str | None = None) -> str:
    return (
        f"table {table} is being restored to an earlier commit by {by or 'another process'} ({restore}); nothing was written, "
        "run it again when that is done"
    )


def run_by_others(plan: Instant, *, table: str) -> str:
    return f"{_plan(plan.action, plan.time, table)} is not pending any more: another process completed it"


def run_failed(plan: Instant, error: Exception, *, table: str) -> str:
    hint = (
        "The plan was dropped: schedule another one when the reason is gone"
        if plan.action is Action.CLUSTERING
        else f"The plan stays, and stops no writer: {explain_pending(plan._replace(state=State.REQUESTED), table=table)}"
    )
    return (
        f"{_plan(plan.action, plan.time, table)} failed, and nothing of it is visible: {type(error).__name__}: {error}\n"
        f"  {hint}"
    )


def no_plan(action: Action, time: str, *, table: str) -> str:
    return (
        f"no {action.value} is pending at instant {time} of table {table}; it may have been completed, or dropped. "
        f"{hoodie_command('timeline', table)} lists the instants"
    )


def pending_write(active: ActiveTimeline, timeline: Timeline, time: InstantTime, *, table: str) -> Instant | None:
    """The pending write, or log compaction, that a rollback of `time` would undo; None when it was undone already.

    Raises:
        InstantNotFoundError: the instant is completed, or not on the timeline at all.
    """
    instant = timeline.find(time, *WRITES, Action.LOGCOMPACTION)
    if instant is None and active.rollback_of(timeline, time) is None:
        other = timeline.find(time)
        if other is not None:
            raise InstantNotFoundError(
                f"instant {other} of table {table} cannot be rolled back: {_why_not(other, table)}"
            )
        raise InstantNotFoundError(timeline.not_pending(time, table=table))
    if instant is not None and instant.is_completed:
        raise InstantNotFoundError(
            f"instant {instant} of table {table} is completed; only pending instants are rolled back"
        )
    return instant


def _why_not(instant: Instant, table: str) -> str:
    if instant.is_completed:
        return "only commits and pending writes are"
    if instant.action is Action.COMPACTION:
        runs = explain_pending(instant._replace(state=State.REQUESTED), table=table)
        return f"it is the plan of a compaction, after which writers name their logs; {runs}"
    return f"it is {explain_pending(instant, table=table)}"


def _plan(action: Action, time: str, table: str) -> str:
    return f"{action.value} {time} of table {table}"
