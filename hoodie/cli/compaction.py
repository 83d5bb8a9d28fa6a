"""`hoodie compaction`: merge log files into base files, planned now and run at once or later."""

from __future__ import annotations

from hoodie.cli.arguments import Commands
from hoodie.cli.plans import RUN_OR_PLAN, add_acts, add_memory, plan_report, run_report, slice_lines, slices_of
from hoodie.cli.report import Report
from hoodie.model.results import format_count, format_size
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext

_NAME = "compaction"
_NOTHING = "no file group has logs to merge"


def register(to: Commands) -> None:
    plan, run = add_acts(
        to,
        _NAME,
        "merge log files into base files",
        plan=lambda c, t, a: plan_compaction(c, t, strategy=a.strategy),
        run=lambda _, t, a: run_compaction(
            t, instant=a.instant, budget_s=a.budget, strategy=a.strategy, memory_mb=a.memory
        ),
        run_text=RUN_OR_PLAN,
        budget="run what fits into this time, at least one plan",
    )
    add_memory(run)
    for each in (plan, run):
        each.add_argument(
            "--strategy", metavar="NAME", help="which slices are taken, such as log_file_num or day_based"
        )


def plan_compaction(context: TableContext, table: HoodieTable, *, strategy: str | None) -> Report:
    """Schedule a compaction, and list every plan that waits to be run."""
    scheduled = table.schedule_compaction(strategy=strategy)
    waiting = slices_of(context, table.pending_compactions())
    return plan_report(_NAME, scheduled, waiting, slice_lines(waiting), nothing=_NOTHING)


def run_compaction(
    table: HoodieTable,
    *,
    instant: str | None,
    budget_s: float | None,
    strategy: str | None,
    memory_mb: int | None,
) -> Report:
    """Run what is pending, or, when nothing is, schedule a compaction and run it."""
    scheduled = None
    if instant is None and not table.pending_compactions():
        results = table.compact(strategy=strategy, budget_s=budget_s, memory_mb=memory_mb)
        if not results:
            return run_report([], [], [f"nothing to compact: {_NOTHING}"], scheduled=None)
        scheduled = results[0].instant
    else:
        results = table.run_compaction(instant, budget_s=budget_s, memory_mb=memory_mb)
    lines = [
        f"{r.instant} compacted: {format_count(r.files, 'base file')}, {format_size(r.bytes_written)}, {r.seconds:.2f} s"
        for r in results
    ]
    return run_report(results, table.pending_compactions(), lines, scheduled=scheduled)
