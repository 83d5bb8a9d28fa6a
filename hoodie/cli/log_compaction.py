"""`hoodie log-compaction`: merge log files into larger ones, planned now and run at once or later."""

from __future__ import annotations

from typing import Any

from hoodie.cli.arguments import Commands, add_command, duration
from hoodie.cli.report import Report
from hoodie.cli.services import operation_data, plan_lines
from hoodie.cli.show import commit_data
from hoodie.model.results import format_count, format_size
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext


def register(to: Commands) -> None:
    acts = to.add_parser("log-compaction", help="merge log files into larger ones, beside their base files")
    choices = acts.add_subparsers(metavar="plan|run", required=True)
    plan = add_command(
        choices,
        "plan",
        "schedule a log compaction and list what is pending",
        lambda c, t, a: plan_log_compaction(c, t, blocks=a.blocks),
    )
    run = add_command(
        choices,
        "run",
        "run what is pending; schedule it first when nothing is",
        lambda _, t, a: run_log_compaction(
            t, instant=a.instant, budget_s=a.budget, blocks=a.blocks, memory_mb=a.memory
        ),
    )
    for each in (plan, run):
        each.add_argument(
            "--blocks", metavar="N", type=int, help="slices that got so many logs since the last one (default 5)"
        )
    run.add_argument("--memory", metavar="MB", type=int, help="hold no more than about so much in memory")
    run.add_argument(
        "--budget", metavar="TIME", type=duration, help="begin no further one after this time: 90s, 5m, 1h"
    )
    run.add_argument("--instant", metavar="T", help="only the log compaction scheduled at T")


def plan_log_compaction(context: TableContext, table: HoodieTable, *, blocks: int | None) -> Report:
    """Schedule a log compaction, and list every plan that waits to be run."""
    scheduled = table.schedule_log_compaction(blocks=blocks)
    waiting: list[dict[str, Any]] = []
    for instant in table.pending_log_compactions():
        found = context.active.read_compaction_plan(instant.time, instant.action)
        groups = [operation_data(operation) for operation in found.operations]
        waiting.append({"instant": instant.time, "state": instant.state.value, "file_groups": groups})
    lines = [
        f"scheduled log compaction {scheduled}"
        if scheduled
        else "nothing new to schedule: no file slice has got so many logs since its last log compaction",
        *plan_lines(waiting),
    ]
    if waiting:
        lines.append("`hoodie log-compaction run PATH` runs what is pending")
    return Report({"scheduled": scheduled, "pending": waiting}, tuple(lines))


def run_log_compaction(
    table: HoodieTable, *, instant: str | None, budget_s: float | None, blocks: int | None, memory_mb: int | None
) -> Report:
    """Run what is pending, or, when nothing is, schedule a log compaction and run it."""
    scheduled = None
    if instant is None and not table.pending_log_compactions():
        scheduled = table.schedule_log_compaction(blocks=blocks)
        if scheduled is None:
            data: dict[str, Any] = {"scheduled": None, "commits": [], "pending": []}
            return Report(data, ("nothing to merge: no file slice has got so many logs since its last log compaction",))
    results = table.run_log_compaction(instant, budget_s=budget_s, memory_mb=memory_mb)
    left = [i.time for i in table.pending_log_compactions()]
    lines = [
        f"{r.instant} log compaction: {format_count(r.files, 'log file')}, {format_size(r.bytes_written)}, {r.seconds:.2f} s"
        if r.instant
        else "a plan was taken back: all of its file groups were compacted, clustered or replaced meanwhile"
        for r in results
    ]
    if left:
        lines.append(f"still pending: {', '.join(left)}")
    data = {
        "scheduled": scheduled,
        "commits": [commit_data(r) | {"seconds": r.seconds} for r in results if r.instant],
        "pending": left,
    }
    return Report(data, tuple(lines))
