"""The two acts of every service, possibly of two processes: a plan is scheduled, and what is scheduled is run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TypeVar

from hoodie.errors import CommitConflictError, HoodieError, InstantNotFoundError
from hoodie.model.enums import State
from hoodie.model.instant import Instant
from hoodie.model.names import COMPLETES_AS
from hoodie.options.write import WriteOptions
from hoodie.services.base import Service
from hoodie.services.budget import Budget
from hoodie.services.catalog import SERVICES
from hoodie.services.cleaning import CLEANING
from hoodie.services.figures import record_service
from hoodie.telemetry import note, span
from hoodie.timeline.pending import being_run, no_plan, run_failed
from hoodie.txn.gate import PATIENCE_S
from hoodie.txn.heartbeat import Life, life_of
from hoodie.undo.recovery import rollback_failed, take_back
from hoodie.undo.restore_run import after_restores
from hoodie.view.context import TableContext

R = TypeVar("R")


def schedule(
    service: Service[object], context: TableContext, options: WriteOptions, *, wait_s: float = PATIENCE_S
) -> str | None:
    """Put a plan of the service on the timeline; gives its instant, None when there is nothing to do."""
    service.require_fit(context)
    rollback_failed(context, SERVICES)
    with span(f"{service.action.value}.plan", table=context.config.name, path=context.storage.uri):
        planned = service.plan(context, options, wait_s=wait_s)
        note(instant=planned)
    return None if planned is None else str(planned)


def run_pending(
    service: Service[R],
    context: TableContext,
    options: WriteOptions,
    *,
    instant: str | None = None,
    budget: Budget | None = None,
) -> list[R]:
    """Run one scheduled plan, or all of them, oldest first, while the budget allows it. Gives what this call did itself.

    Several processes share the plans of a service that writes files: who finds another at work on one goes on to the next.

    Raises:
        InstantNotFoundError: nothing of this service is pending at `instant`.
        CommitConflictError: another process runs it.
    """
    service.require_fit(context)
    table = context.storage.uri
    if instant is not None:
        plan = next((i for i in _pending(service, context) if i.time == instant), None)
        if plan is None:
            raise InstantNotFoundError(no_plan(service.action, instant, table=table))
        return [_run(service, context, plan, options)]
    budget = budget or Budget(None)
    results: list[R] = []
    tried_times: set[str] = set()
    while (plan := _next(_pending(service, context), tried_times)) is not None and budget.allows_another():
        tried_times.add(plan.time)
        try:
            results.append(_run(service, context, plan, options))
        except CommitConflictError:
            if service.resumes or not _is_of_others(service, context, plan):
                raise
            continue
        budget.count()
    return results


def settle(context: TableContext, options: WriteOptions) -> None:
    """End what dead processes have begun, cleans among it."""
    rollback_failed(context, SERVICES)
    run_pending(CLEANING, context, options)


def _pending(service: Service[object], context: TableContext) -> tuple[Instant, ...]:
    return after_restores(context).pending(service.action)


def _next(pending: Iterable[Instant], tried_times: set[str]) -> Instant | None:
    return next((i for i in pending if i.time not in tried_times), None)


def _run(service: Service[R], context: TableContext, instant: Instant, options: WriteOptions) -> R:
    if instant.state is State.INFLIGHT and not service.resumes and not take_back(context, service, instant.time):
        raise CommitConflictError(
            being_run(instant, table=context.storage.uri, by=context.liveness.holder(instant.time))
        )
    action, began_s = service.action.value, time.monotonic()
    try:
        with span(action, table=context.config.name, path=context.storage.uri, instant=instant.time):
            result = service.run(context, instant, options)
    except (HoodieError, OSError, MemoryError):
        raise
    except Exception as exc:
        raise HoodieError(run_failed(instant, exc, table=context.storage.uri)) from exc
    record_service(context, action, time.monotonic() - began_s, result)
    return result


def _is_of_others(service: Service[object], context: TableContext, plan: Instant) -> bool:
    """Whether another process is at work on the plan, or has completed it. A plan that was dropped is nobody's."""
    timeline = context.active.load()
    if timeline.find(plan.time, service.action) is not None:
        return life_of(plan.time, context) is not Life.DEAD
    archived = timeline.start is not None and plan.time < timeline.start
    return archived or timeline.find(plan.time, COMPLETES_AS.get(service.action, service.action)) is not None
