"""`hoodie compaction` and `hoodie log-compaction`: merge log files, planned now and run at once or later."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from hoodie.cli.arguments import Commands
from hoodie.cli.plans import RUN_OR_PLAN, add_acts, add_memory, plan_report, run_report, slice_lines, slices_of
from hoodie.cli.report import Report
from hoodie.model.instant import Instant
from hoodie.model.results import CommitResult, format_count, format_size
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext


class _Merging(NamedTuple):
    """A service that merges logs, as a command."""

    name: str
    text: str
    argument: tuple[str, Mapping[str, Any]]
    """By which users say what is taken."""
    budget: str
    verb: str
    nothing: str
    """Why there may be nothing to do."""
    pending: Callable[[HoodieTable], Sequence[Instant]]
    plan: Callable[[HoodieTable, Namespace], str | None]
    run: Callable[[HoodieTable, Namespace], list[CommitResult]]
    at_once: Callable[[HoodieTable, Namespace], tuple[str | None, list[CommitResult]]]
    """Plan and run, where nothing is pending: the first plan, and what was done."""
    line: Callable[[CommitResult], str]


def _compact(table: HoodieTable, args: Namespace) -> tuple[str | None, list[CommitResult]]:
    results = table.compact(strategy=args.strategy, budget_s=args.budget, memory_mb=args.memory)
    return (results[0].instant if results else None), results


def _compact_logs(table: HoodieTable, args: Namespace) -> tuple[str | None, list[CommitResult]]:
    planned = table.schedule_log_compaction(blocks=args.blocks)
    return planned, [] if planned is None else table.run_log_compaction(None, args.budget, memory_mb=args.memory)


_TABLE = (
    _Merging(
        "compaction",
        "merge log files into base files",
        ("--strategy", {"metavar": "NAME", "help": "the choice of slices, such as log_file_num or day_based"}),
        budget="run the plans that fit into this time, at least one",
        verb="compact",
        nothing="no file group has logs to merge",
        pending=lambda t: t.pending_compactions(),
        plan=lambda t, a: t.schedule_compaction(strategy=a.strategy),
        run=lambda t, a: t.run_compaction(a.instant, a.budget, memory_mb=a.memory),
        at_once=_compact,
        line=lambda result: f"{result.instant} compacted: {format_count(result.files, 'base file')}, {_cost(result)}",
    ),
    _Merging(
        "log-compaction",
        "merge log files into larger ones, beside their base files",
        (
            "--blocks",
            {"metavar": "N", "type": int, "help": "take slices with so many logs since the last one (default 5)"},
        ),
        budget="start no further one after this time",
        verb="merge",
        nothing="no file slice has got so many logs since its last log compaction",
        pending=lambda t: t.pending_log_compactions(),
        plan=lambda t, a: t.schedule_log_compaction(blocks=a.blocks),
        run=lambda t, a: t.run_log_compaction(a.instant, a.budget, memory_mb=a.memory),
        at_once=_compact_logs,
        line=lambda result: (
            f"{result.instant} log compaction: {format_count(result.files, 'log file')}, {_cost(result)}"
            if result.instant
            else "a plan was dropped: all of its file groups were compacted, clustered or replaced meanwhile"
        ),
    ),
)


def _cost(result: CommitResult) -> str:
    return f"{format_size(result.bytes_written)}, {result.seconds:.2f} s"


def register(to: Commands) -> None:
    for row in _TABLE:
        plan, run = add_acts(
            to,
            row.name,
            row.text,
            plan=partial(_plan, row),
            run=partial(_run, row),
            run_text=RUN_OR_PLAN,
            budget=row.budget,
        )
        add_memory(run)
        for each in (plan, run):
            each.add_argument(row.argument[0], **row.argument[1])


def _plan(row: _Merging, context: TableContext, table: HoodieTable, args: Namespace) -> Report:
    """Schedule one, and list every plan that waits to be run."""
    planned = row.plan(table, args)
    waiting = slices_of(context, row.pending(table))
    return plan_report(row.name, planned, waiting, slice_lines(waiting), nothing=row.nothing)


def _run(row: _Merging, context: TableContext, table: HoodieTable, args: Namespace) -> Report:
    """Run what is pending, or, when nothing is, schedule one and run it."""
    planned = None
    if args.instant is not None or row.pending(table):
        results = row.run(table, args)
    else:
        planned, results = row.at_once(table, args)
        if planned is None:
            return run_report([], [], [f"nothing to {row.verb}: {row.nothing}"], scheduled=None)
    return run_report(results, row.pending(table), map(row.line, results), scheduled=planned)
