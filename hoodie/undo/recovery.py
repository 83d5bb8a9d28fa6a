"""What dead processes left: begun restores and rollbacks are finished, their writes rolled back, claims of services taken back, or
plans withdrawn that would hold writers up.

Done before each write, unless dead writes are left to the services, and before each plan of a service. It gets the table of the
services whose plans these are, and knows of a service what `PlanOwner` says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Protocol

from hoodie.errors import CommitConflictError, CorruptFileError, InstantNotFoundError
from hoodie.lock.liveness import LIVE_FOLDER
from hoodie.model.enums import Action, State
from hoodie.model.instant import BOOTSTRAP_INSTANTS, Instant, InstantTime, is_instant_time
from hoodie.model.names import COMPLETES_AS, HEARTBEATS, MARKERS, PRIVATE, STAGING, heartbeat_path, join
from hoodie.options.compatibility import check_version
from hoodie.storage.base import CopyingStorage, FileInfo, Storage
from hoodie.storage.parallel import together
from hoodie.storage.paths import SCRATCH_FOLDER
from hoodie.timeline.pending import written_by_others
from hoodie.timeline.timeline import Timeline
from hoodie.txn.heartbeat import Life, life_of
from hoodie.undo.restore_run import finish_restore
from hoodie.undo.rollback import execute_rollback, rollback_instant
from hoodie.view.context import Snapshot, TableContext

_UNFINISHED_S = 24 * 3600.0
"""An unfinished file gets its name after moments, or after a pause of its process."""


class PlanOwner(Protocol):
    """What recovery needs of a table service."""

    @property
    def action(self) -> Action:
        """What its plans are called on the timeline."""

    @property
    def resumes(self) -> bool:
        """Whether a run goes on where a dead one stopped, because each of its steps may be done twice: then a claim stays on the
        timeline, and is not taken back. A service that writes files begins anew.
        """

    def withdraw(self, context: TableContext, instant_time: InstantTime) -> bool:
        """Take the plan of a dead runner off the timeline, where writes are refused as long as it stands. False where it is gone or
        completed, and where its plans hold nobody up and stay.

        Raises:
            CommitConflictError: somebody is running it.
        """

    def recover(self, context: TableContext, instant_time: InstantTime) -> None:
        """Delete what a dead runner left of its output, so that the plan can be run again; the lock is held."""


PlanOwners = Mapping[Action, PlanOwner]


def recover(context: TableContext, owners: PlanOwners) -> list[str]:
    """As `rollback_failed`, and what no mark stands for goes, too: for those who put a table in order, now and then."""
    undone = rollback_failed(context, owners)
    _remove_stray_heartbeats(context)
    _remove_stray_markers(context)
    return undone


def recover_before_write(context: TableContext, owners: PlanOwners) -> Snapshot | None:
    """As `rollback_failed`; dead writes stay where the options leave them to the services. Gives the snapshot that it looked at, which
    is that of now where there was nothing to do; else None.

    What is begun is finished in any case: a restore, a rollback, and what dead runners of services have claimed.
    """
    return _rollback_failed(context, owners, dead_writes=not context.concurrency.leaves_dead_writes)[1]


def rollback_failed(context: TableContext, owners: PlanOwners) -> list[str]:
    """Roll back every pending write whose writer is dead; gives their instants. Done before each plan of a service.

    Raises:
        CommitConflictError: a writer that does not share our lock is working on the table right now, or a restore is.
        TableNotFoundError: it was deleted. UnsupportedTableError: its version is only read.
    """
    return _rollback_failed(context, owners, dead_writes=True)[0]


def _rollback_failed(
    context: TableContext, owners: PlanOwners, *, dead_writes: bool
) -> tuple[list[str], Snapshot | None]:
    check_version(context.config)
    names, snapshot = together(context.storage, partial(_names, context), context.snapshot)
    restores = snapshot.timeline.pending(Action.RESTORE)
    if restores:
        for restore in restores:
            finish_restore(context, restore)
        names, snapshot = together(context.storage, partial(_names, context), context.snapshot)
    timeline = snapshot.timeline
    dead = []
    for instant in timeline.pending_writes:
        match life_of(instant.time, context):
            case Life.DEAD if dead_writes:
                dead.append(instant)
            case Life.DEAD:
                continue
            case Life.FOREIGN_ALIVE if not context.concurrency.non_blocking:
                raise CommitConflictError(written_by_others(instant, table=context.storage.uri))
            case Life.ALIVE | Life.FOREIGN_ALIVE:
                continue
    if dead:
        _refuse_completed(context, snapshot.timeline, {each.time for each in dead})
    unfinished = timeline.pending(Action.ROLLBACK)
    for rollback in unfinished:
        _finish(context, rollback)
    undone: list[str] = []
    for instant in dead:
        # A writer that completed after the timeline was read looks dead: it is not at work any more. So does one that died when
        # its commit was decided and not yet on the timeline: that landed, and was not undone.
        with suppress(InstantNotFoundError):
            if rollback_instant(context, instant.time) is not None:
                undone.append(str(instant.time))
    beginning_anew = [action for action, owner in owners.items() if not owner.resumes]
    claims = [i for i in timeline.pending(*beginning_anew) if i.state is State.INFLIGHT] if beginning_anew else []
    for claimed in claims:
        owner = owners[claimed.action]
        with suppress(CommitConflictError):  # somebody is at work on it
            if not owner.withdraw(context, claimed.time):
                take_back(context, owner, claimed.time)
    if dead or unfinished or claims or names - {i.time for i in timeline.pending()}:
        _remove_remains(context)
        return undone, None
    return undone, snapshot


def _refuse_completed(context: TableContext, timeline: Timeline, times: Collection[InstantTime]) -> None:
    """Raise CorruptFileError for a write that looks dead and was completed, as a name that nobody knows says, or, of a bootstrap, the
    writes after it: undoing it would delete its rows.
    """
    bootstraps = [time for time in times if time in BOOTSTRAP_INSTANTS]
    if bootstraps and timeline.commits:
        raise CorruptFileError(
            f"table {context.storage.uri} was written after its bootstrap, instant {bootstraps[0]}, whose completed file is lost; "
            "nothing was written. Restore the file from a copy of the table"
        )
    for instant, path in context.active.renamed_commits(timeline):
        if instant.time in times:
            raise CorruptFileError(
                f"{path} of table {context.storage.uri} says that instant {instant.time} was completed, and has a name of another "
                "table version, or of a copy; nothing was written. Restore the file under its own name; without it, the next write "
                "undoes the instant"
            )


def _finish(context: TableContext, rollback: Instant) -> None:
    """Finish a rollback whose process died; the instant that it undoes cannot come back to life."""
    with context.lock.held(context.lock_timeout_s):
        if not context.active.exists(Instant(rollback.time, Action.ROLLBACK, State.REQUESTED)):
            return
        if context.active.exists(Instant(rollback.time, Action.ROLLBACK, State.COMPLETED)):
            return
        try:
            plan = context.active.read_rollback_plan(rollback.time)
        except CorruptFileError:
            if context.active.exists(Instant(rollback.time, Action.ROLLBACK, State.INFLIGHT)):
                raise
            # Other writers do not publish plans atomically: this one died before it had done anything.
            context.active.remove(rollback)
            return
        context.publisher.fence(plan.instant)
        execute_rollback(context, rollback.time, plan)


def take_back(context: TableContext, owner: PlanOwner, instant_time: InstantTime) -> bool:
    """Take a dead runner's claim back: its instant is requested again, because a plan is never deleted.

    False while its runner lives, when it completed, or when others dropped the plan.
    """
    storage = context.storage
    claim = Instant(instant_time, owner.action, State.INFLIGHT)
    with context.lock.held(context.lock_timeout_s):
        if life_of(instant_time, context) is not Life.DEAD:
            return False
        if not context.active.exists(claim):  # since the caller saw it others have taken it back, or dropped the plan
            return context.active.exists(claim._replace(state=State.REQUESTED))
        context.publisher.fence(instant_time)
        if context.active.exists(Instant(instant_time, COMPLETES_AS.get(owner.action, owner.action), State.COMPLETED)):
            return False
        owner.recover(context, instant_time)
        context.publisher.forget(instant_time)
        storage.delete(heartbeat_path(instant_time))
        context.liveness.release(instant_time)
        # Last: it is by the claim that whoever comes next finds the rest, should this process die here.
        context.active.remove(claim)
    return True


def _remove_remains(context: TableContext) -> None:
    """What dead writers left that no pending instant stands for any more.

    They died before their instant was on the timeline, after it was completed, or at the end of a rollback.
    """
    if not dead_remains(context):
        return
    storage = context.storage
    with context.lock.held(context.lock_timeout_s):  # a writer makes its staging folder and its mark under the lock
        for name in dead_remains(context):
            context.publisher.forget(name)
            if is_instant_time(name):
                storage.delete(heartbeat_path(name))
            context.liveness.release(name)
    _remove_unfinished(context.storage)
    _remove_stray_heartbeats(context)


def _remove_unfinished(storage: Storage) -> None:
    """Files in the scratch folder that are so old that their process is dead: its own name says nothing of that."""
    with suppress(FileNotFoundError):
        files = storage.list(SCRATCH_FOLDER)
        oldest_s = storage.now_s() - _UNFINISHED_S
        for info in files:
            if info.mtime_s < oldest_s:
                storage.delete(info.path)


def _remove_stray_heartbeats(context: TableContext) -> None:
    """Old heartbeats of instants that are neither pending nor marked.

    A writer that was paused in the middle of a beat was rolled back meanwhile, and its beat came after that.
    """
    for name in stray_heartbeats(context):
        context.storage.delete(heartbeat_path(name))


def stray_heartbeats(context: TableContext) -> list[str]:
    """The instants of those."""
    return _of_nobody(context, HEARTBEATS, context.concurrency.heartbeat_expiry_s)


def _remove_stray_markers(context: TableContext) -> None:
    """Old markers of instants that are neither pending nor marked: a writer of Apache Hudi died after it had completed its instant."""
    for name in stray_markers(context):
        context.storage.delete_folder(join(MARKERS, name))


def stray_markers(context: TableContext) -> list[str]:
    """The instants of those."""
    return _of_nobody(context, MARKERS, _UNFINISHED_S)


def _changed_s(storage: Storage, info: FileInfo) -> float:
    """Listings do not tell it of folders; 0 where nobody does, as on object stores."""
    try:
        return storage.stat(info.path).mtime_s if info.is_folder else info.mtime_s
    except FileNotFoundError:
        return 0.0


def _of_nobody(context: TableContext, folder: str, older_than_s: float) -> list[str]:
    """Instants that old entries of a folder are named after, and which are neither pending nor marked."""
    storage = context.storage
    try:
        infos = storage.list(folder)
    except FileNotFoundError:
        return []
    oldest_s = storage.now_s() - older_than_s
    with_instants = [info for info in infos if is_instant_time(info.name)]
    old = {info.name for info in with_instants if _changed_s(storage, info) < oldest_s}
    if not old:
        return []
    marks, timeline = together(storage, context.liveness.marks, context.active.load)
    return sorted(old - marks - {instant.time for instant in timeline.pending()})


def _names(context: TableContext) -> frozenset[str]:
    """Of all marks and staging folders. A store has no folder without a file, so one look mostly shows that there are none."""
    storage = context.storage
    if storage.can.local_root is None and isinstance(storage, CopyingStorage):
        there = {info.path for info in storage.list(PRIVATE) if info.is_folder}
        if not there & {LIVE_FOLDER, STAGING}:
            return frozenset()
    return frozenset.union(*together(context.storage, context.liveness.marks, context.publisher.remains))


def dead_remains(context: TableContext) -> list[str]:
    """Names of marks and staging folders whose writer is dead, but for those of pending instants."""
    marks, staged, timeline = together(
        context.storage, context.liveness.marks, context.publisher.remains, context.active.load
    )
    pending = {instant.time for instant in timeline.pending()}
    return sorted(
        name
        for name in (marks | staged) - pending
        if (name not in marks and is_instant_time(name)) or context.liveness.is_alive(name) is False
    )
