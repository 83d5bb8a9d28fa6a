"""The two acts of every service, possibly of two processes: a plan is scheduled, and what is scheduled is run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hoodie.errors import CommitConflictError, InstantNotFoundError
from hoodie.model.enums import State
from hoodie.options.write import WriteOptions
from hoodie.services.base import Service
from hoodie.services.recovery import rollback_failed, take_back
from hoodie.timeline.pending import being_run, no_plan
from hoodie.txn.gate import PATIENCE_S
from hoodie.view.context import TableContext

R = TypeVar("R")


def schedule(
    service: Service[object], context: TableContext, options: WriteOptions, *, wait_s: float = PATIENCE_S
) -> str | None:
    """Put a plan of the service on the timeline; gives its instant, None when there is nothing to do."""
    service.require_fit(context)
    rollback_failed(context)
    return service.plan(context, options, wait_s=wait_s)


def run_pending(
    service: Service[R],
    context: TableContext,
    options: WriteOptions,
    *,
    instant: str | None = None,
    budget_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[R]:
    """Run one scheduled plan, or all of them, oldest first; no new one is begun after `budget_s` seconds.

    Raises:
        InstantNotFoundError: nothing of this service is pending at `instant`.
        CommitConflictError: another process runs it.
    """
    service.require_fit(context)
    table = context.storage.uri
    pending = context.active.load().pending(service.action)
    if instant is not None:
        pending = tuple(i for i in pending if i.time == instant)
        if not pending:
            raise InstantNotFoundError(no_plan(service.action, instant, table=table))
    started = clock()
    results: list[R] = []
    for found in pending:
        if budget_s is not None and results and clock() - started >= budget_s:
            break
        if found.state is State.INFLIGHT and not service.resumes and not take_back(context, service, found.time):
            raise CommitConflictError(being_run(found, table=table, by=context.liveness.holder(found.time)))
        results.append(service.run(context, found, options))
    return results
