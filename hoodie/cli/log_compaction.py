"""`hoodie log-compaction`: merge log files into larger ones, planned now and run at once or later."""

from __future__ import annotations

from hoodie.cli.arguments import Commands
from hoodie.cli.plans import RUN_OR_PLAN, add_acts, add_memory, plan_report, run_report, slice_lines, slices_of
from hoodie.cli.report import Report
from hoodie.model.results import format_count, format_size
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext

_NAME = "log-compaction"
_NOTHING = "no file slice has got so many logs since its last log compaction"


def register(to: Commands) -> None:
    plan, run = add_acts(
        to,
        _NAME,
        "merge log files into larger ones, beside their base files",
        plan=lambda c, t, a: plan_log_compaction(c, t, blocks=a.blocks),
        run=lambda _, t, a: run_log_compaction(
            t, instant=a.instant, budget_s=a.budget, blocks=a.blocks, memory_mb=a.memory
        ),
        run_text=RUN_OR_PLAN,
        budget="begin no further one after this time",
    )
    add_memory(run)
    for each in (plan, run):
        each.add_argument(
            "--blocks", metavar="N", type=int, help="slices that got so many logs since the last one (default 5)"
        )


def plan_log_compaction(context: TableContext, table: HoodieTable, *, blocks: int | None) -> Report:
    """Schedule a log compaction, and list every plan that waits to be run."""
    scheduled = table.schedule_log_compaction(blocks=blocks)
    waiting = slices_of(context, table.pending_log_compactions())
    return plan_report(_NAME, scheduled, waiting, slice_lines(waiting), nothing=_NOTHING)


def run_log_compaction(
    table: HoodieTable, *, instant: str | None, budget_s: float | None, blocks: int | None, memory_mb: int | None
) -> Report:
    """Run what is pending, or, when nothing is, schedule a log compaction and run it."""
    scheduled = None
    if instant is None and not table.pending_log_compactions():
        scheduled = table.schedule_log_compaction(blocks=blocks)
        if scheduled is None:
            return run_report([], [], [f"nothing to merge: {_NOTHING}"], scheduled=None)
    results = table.run_log_compaction(instant, budget_s=budget_s, memory_mb=memory_mb)
    lines = [
        f"{r.instant} log compaction: {format_count(r.files, 'log file')}, {format_size(r.bytes_written)}, {r.seconds:.2f} s"
        if r.instant
        else "a plan was taken back: all of its file groups were compacted, clustered or replaced meanwhile"
        for r in results
    ]
    return run_report(results, table.pending_log_compactions(), lines, scheduled=scheduled)
