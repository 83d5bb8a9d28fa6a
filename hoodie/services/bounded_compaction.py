"""A compaction from its plan to its end within a budget: what is pending first, then what is planned for the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from hoodie.model.results import CommitResult
from hoodie.options.write import WriteOptions
from hoodie.services.budget import Budget
from hoodie.services.catalog import SERVICES
from hoodie.services.compaction import COMPACTION
from hoodie.services.scheduling import run_pending, schedule
from hoodie.undo.recovery import rollback_failed
from hoodie.view.context import TableContext


def compact(
    context: TableContext,
    options: WriteOptions,
    *,
    budget_s: float | None,
    clock: Callable[[], float] = time.monotonic,
) -> list[CommitResult]:
    """Schedule a compaction and run all that are pending. With a budget: as many plans as fit, at least one; the others stay.

    Plans are made for a budget only when those that were pending are done. So who calls this again and again does not fill the
    timeline with plans faster than they are run.
    """
    if budget_s is None:
        schedule(COMPACTION, context, options)
        return run_pending(COMPACTION, context, options)
    budget = Budget(budget_s, clock)
    COMPACTION.require_fit(context)
    rollback_failed(context, SERVICES)  # as where a plan is made first
    results = run_pending(COMPACTION, context, options, budget=budget)
    left_s = budget.left_s or 0.0
    if budget.is_begun and not left_s:
        return results
    small = replace(options, compaction=replace(options.compaction, budget_s=left_s or budget_s))
    schedule(COMPACTION, context, small)
    return results + run_pending(COMPACTION, context, options, budget=budget)
