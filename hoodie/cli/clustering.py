"""`hoodie cluster` and `hoodie clustering`: put rows in order in new files, at once, or planned now and run later."""

from __future__ import annotations

import argparse
from typing import Any

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.plans import RUN, add_acts, plan_report, run_report
from hoodie.cli.report import Report, format_table
from hoodie.model.payloads import ClusteringPlan
from hoodie.model.results import CommitResult, format_count
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext

_NAME = "clustering"


def register(to: Commands) -> None:
    now = add_command(to, "cluster", "sort rows into new files, or merge small files", _cluster)
    plan, _ = add_acts(
        to,
        _NAME,
        "the same in two steps",
        plan=_plan,
        run=lambda _, t, a: run_clustering(t, instant=a.instant, budget_s=a.budget),
        run_text=RUN,
        budget="start no further clustering after this time",
    )
    for each in (now, plan):
        each.add_argument("--sort-by", metavar="A,B", help="sort rows by these columns (default: merge small files)")
        each.add_argument("--layout", metavar="LAYOUT", help="linear (default), z-order or hilbert")
        each.add_argument("--where", metavar="TEXT", help="a condition on partition columns: only these partitions")
        each.add_argument(
            "--target-file-mb", metavar="N", type=float, help="about how large new files become (default 1024)"
        )
    now.add_argument("--dry-run", action="store_true", help="only show the files that would be sorted")


def _cluster_arguments(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "sort_by": args.sort_by,
        "layout": args.layout,
        "where": args.where,
        "target_file_mb": args.target_file_mb,
    }


def _cluster(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    if args.dry_run:
        plan = table.preview_clustering(**_cluster_arguments(args))
        lines = [f"would sort: {_summary(plan)}", *_group_lines(plan), "dry run: nothing was changed"]
        return Report({"dry_run": True, "groups": _groups(plan)}, tuple(lines))
    return _report(table, table.cluster(**_cluster_arguments(args)))


def _plan(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Schedule a clustering, and list every plan that waits to be run."""
    scheduled = table.schedule_clustering(**_cluster_arguments(args))
    waiting: list[dict[str, Any]] = []
    lines: list[str] = []
    for instant in table.pending_clusterings():
        clustering = context.active.read_clustering_plan(instant.time)
        waiting.append({"instant": instant.time, "state": instant.state.value, "groups": _groups(clustering)})
        lines += [f"{instant.time} ({instant.state.value}): {_summary(clustering)}", *_group_lines(clustering)]
    return plan_report(
        _NAME,
        scheduled,
        waiting,
        lines,
        nothing="there are no files to sort",
        until="; until then writes to these file groups are refused",
    )


def run_clustering(table: HoodieTable, *, instant: str | None, budget_s: float | None) -> Report:
    """Run what is pending."""
    return _report(table, table.run_clustering(instant, budget_s=budget_s))


def _report(table: HoodieTable, results: list[CommitResult]) -> Report:
    lines = [
        f"{r.instant} clustered: {r.inserted:,} rows, {format_count(r.replaced, 'file group')} into {format_count(r.files, 'file')}, "
        f"{r.seconds:.2f} s"
        for r in results
    ] or ["nothing to cluster"]
    return run_report(results, table.pending_clusterings(), lines)


def _summary(plan: ClusteringPlan) -> str:
    files = sum(len(group.slices) for group in plan.groups)
    return f"{format_count(files, 'file group')}, into about {sum(group.output_groups for group in plan.groups):,}"


def _groups(plan: ClusteringPlan) -> list[dict[str, Any]]:
    return [
        {
            "partition": group.slices[0].partition_path,
            "file_ids": [each.file_id for each in group.slices],
            "files": group.output_groups,
        }
        for group in plan.groups
    ]


def _group_lines(plan: ClusteringPlan) -> list[str]:
    rows = [(g["partition"] or "(root)", len(g["file_ids"]), g["files"]) for g in _groups(plan)]
    return [f"  {line}" for line in format_table(("partition", "file groups", "new files"), rows)] if rows else []
