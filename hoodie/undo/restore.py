"""Take a table back to a commit. Whether that may be: `undo_rules.py`; how it is done: `restore_run.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from hoodie.errors import CommitConflictError, LockError
from hoodie.format.restore_plans import encode_restore_plan
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import RestorePlan
from hoodie.model.results import RestoreResult
from hoodie.timeline.timeline import Timeline
from hoodie.txn.critical import under_lock
from hoodie.txn.heartbeat import Heartbeat
from hoodie.txn.participants import before_plan
from hoodie.undo.restore_run import carry_out
from hoodie.undo.undo_rules import carries_on, plan_restore, preview, put_plan
from hoodie.view.context import TableContext

_TRIES = 3


def restore(
    context: TableContext,
    target: InstantTime,
    *,
    settle: Callable[[TableContext], object],
    dry_run: bool = False,
) -> RestoreResult:
    """Undo every commit after `target`.

    Args:
        settle: ends what dead processes have begun, cleans among it: what these delete may be files of the state to come.

    Raises:
        InstantNotFoundError, CommitConflictError: as `plan_restore`. LockError: the lock was lost; nothing was done.
    """
    started = time.monotonic()
    context = context.on_storage()
    if dry_run:
        snapshot = context.snapshot()
        plan = plan_restore(context, snapshot, target)
        return preview(context.listing, snapshot, [time for time, _ in plan.instants], to=target)
    for _ in range(_TRIES):
        settle(context)
        snapshot = context.snapshot()
        plan = plan_restore(context, snapshot, target)
        if not plan.instants:
            return RestoreResult(None, restored_to=target)
        losses = preview(context.listing, snapshot, [time for time, _ in plan.instants], to=target)
        claim = _begin(context, snapshot.timeline, plan)
        if claim is not None:
            restore_time, heartbeat = claim
            with carries_on(context.storage, Instant(restore_time, Action.RESTORE, State.INFLIGHT)):
                parts = carry_out(context, restore_time, plan, heartbeat)
            return replace(
                losses,
                instant=restore_time,
                files=sum(len(part.deleted) for part in parts),
                bytes_freed=sum(sum(part.deleted.values()) for part in parts),
                logs=len({(part.partition_path, each.name) for part in parts for each in part.disarmed}),
                dry_run=False,
                seconds=time.monotonic() - started,
            )
    raise CommitConflictError(
        f"table {context.storage.uri} was not restored: other processes kept changing it; nothing was undone, try again"
    )


def _begin(context: TableContext, timeline: Timeline, plan: RestorePlan) -> tuple[InstantTime, Heartbeat] | None:
    """Put the plan on the timeline; None where that is not as it was when the plan was made."""
    heartbeat: Heartbeat | None = None
    with under_lock(context):
        now = context.active.load_all()
        if now.instants != timeline.instants:
            return None
        before_plan(context)
        requested = Instant(context.clock.allot(now.latest_time), Action.RESTORE, State.REQUESTED)
        heartbeat = Heartbeat(requested.time, context)
        try:
            heartbeat.hold()
            put_plan(context, requested, encode_restore_plan(plan))
            if context.lock.is_known_lost():
                # A write may have begun meanwhile. Nothing was undone yet, and the plan does not know of it.
                context.active.remove(requested)
                raise LockError(
                    f"the lock of table {context.storage.uri} ended while a restore was planned; run it again"
                )
            with carries_on(context.storage, requested):
                heartbeat.start()
        except BaseException:
            heartbeat.abandon()
            raise
    return requested.time, heartbeat
