"""What commands of services with plans have in common: `plan` schedules one and lists what is pending, `run` runs that."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hoodie.cli.arguments import Command, Commands, add_command, duration
from hoodie.cli.report import Report, format_table
from hoodie.cli.show import commit_data
from hoodie.model.instant import Instant
from hoodie.model.payloads import CompactionOperation
from hoodie.model.results import CommitResult, format_count, format_size
from hoodie.view.context import TableContext

RUN = "run the pending plans"
RUN_OR_PLAN = RUN + "; schedule one first if there is none"


def add_acts(
    to: Commands, name: str, text: str, *, plan: Command, run: Command, run_text: str, budget: str
) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The commands `NAME plan` and `NAME run`. `budget`: what `run` does with its `--budget`."""
    noun = _noun(name)
    acts = to.add_parser(name, help=text).add_subparsers(metavar="plan|run", required=True)
    planning = add_command(acts, "plan", f"schedule a {noun} and list the pending plans", plan)
    running = add_command(acts, "run", run_text, run)
    running.add_argument("--budget", metavar="TIME", type=duration, help=f"{budget}: 90s, 5m, 1h")
    running.add_argument("--instant", metavar="T", help=f"only the {noun} scheduled at T")
    return planning, running


def add_memory(running: argparse.ArgumentParser) -> None:
    running.add_argument("--memory", metavar="MB", type=int, help="use at most about so much memory")


def plan_report(
    name: str,
    scheduled: str | None,
    waiting: Sequence[Mapping[str, Any]],
    lines: Iterable[str],
    *,
    nothing: str,
    until: str = "",
) -> Report:
    """What was scheduled, and what is pending. `nothing`: why nothing may be new; `until`: what holds until it is run."""
    head = f"scheduled {_noun(name)} {scheduled}" if scheduled else f"nothing new to schedule: {nothing}"
    report_lines = (head, *lines, *([f"`hoodie {name} run PATH` runs the pending plans{until}"] if waiting else []))
    return Report({"scheduled": scheduled, "pending": waiting}, report_lines)


def run_report(
    results: Iterable[CommitResult], pending: Iterable[Instant], lines: Iterable[str], **more: str | None
) -> Report:
    """What was done, and what is still pending."""
    times = [instant.time for instant in pending]
    report_lines = (*lines, *([f"still pending: {', '.join(times)}"] if times else []))
    commits = [commit_data(each) | {"seconds": each.seconds} for each in results if each.instant]
    return Report({**more, "commits": commits, "pending": times}, report_lines)


def slices_of(context: TableContext, pending: Iterable[Instant]) -> list[dict[str, Any]]:
    """Pending plans over file slices with logs."""
    return [
        {
            "instant": instant.time,
            "state": instant.state.value,
            "file_groups": [
                _operation_data(each)
                for each in context.active.read_compaction_plan(instant.time, instant.action).operations
            ],
        }
        for instant in pending
    ]


def slice_lines(waiting: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The same as tables."""
    for plan in waiting:
        groups = plan["file_groups"]
        yield f"{plan['instant']} ({plan['state']}): {format_count(len(groups), 'file group')}"
        rows = [
            (g["partition"] or "(root)", g["file_id"], len(g["log_files"]), format_size(g["log_bytes"])) for g in groups
        ]
        yield from (f"  {line}" for line in format_table(("partition", "file group", "logs", "log bytes"), rows))


def _noun(name: str) -> str:
    return name.replace("-", " ")


def _operation_data(operation: CompactionOperation) -> dict[str, Any]:
    return {
        "partition": operation.partition_path,
        "file_id": operation.file_id,
        "base_file": operation.data_file,
        "log_files": list(operation.log_files),
        "log_bytes": int(operation.metrics.get("TOTAL_LOG_FILES_SIZE", 0)),
    }
