"""Commands that remove old files and instants: clean, archive, rollback. What deletes shows first what it would do."""

from __future__ import annotations

from typing import Any

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.cli.savepoints import DRY_RUN, restore_data
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.payloads import RollbackPlan
from hoodie.model.results import format_count
from hoodie.table import HoodieTable
from hoodie.timeline.clock import zone_of
from hoodie.timeline.moments import instant_of
from hoodie.timeline.pending import pending_write
from hoodie.timeline.timeline import Timeline
from hoodie.txn.heartbeat import Life, life_of
from hoodie.undo.rollback import plan_rollback
from hoodie.view.context import TableContext


def register(to: Commands) -> None:
    clean = add_command(
        to,
        "clean",
        "delete old versions of files",
        lambda _, t, a: run_clean(
            t, commits=a.retain_commits, hours=a.retain_hours, versions=a.retain_versions, dry_run=a.dry_run
        ),
    )
    for what, text in (
        ("commits", "the state after each of the last N commits stays readable (default 10)"),
        ("hours", "the same for the commits of the last N hours"),
        ("versions", "each file keeps its N newest versions"),
    ):
        clean.add_argument(f"--retain-{what}", metavar="N", type=int, help=text)
    clean.add_argument("--dry-run", action="store_true", help="only show what would be deleted")
    old = add_command(
        to,
        "archive",
        "move the oldest commits to the archived timeline",
        lambda _, t, a: run_archive(t, least=a.min_commits, most=a.max_commits, dry_run=a.dry_run),
    )
    old.add_argument("--min-commits", metavar="N", type=int, help="so many commits stay (default 20)")
    old.add_argument("--max-commits", metavar="N", type=int, help="do nothing unless there are more (default 30)")
    old.add_argument("--dry-run", action="store_true", help="only show what would be moved")
    undo = add_command(
        to,
        "rollback",
        "undo the newest commit, or writes whose process died; a dry run unless --yes is given",
        lambda c, t, a: rollback(c, t, instant=a.instant, really=a.yes),
    )
    undo.add_argument(
        "instant",
        metavar="INSTANT",
        nargs="?",
        help="the newest commit, or one pending instant (default: all whose writer is dead)",
    )
    undo.add_argument("--yes", action="store_true", help="do it")


def run_clean(
    table: HoodieTable, *, commits: int | None, hours: int | None, versions: int | None, dry_run: bool
) -> Report:
    """Clean, or say what that would delete."""
    result = table.clean(retain_commits=commits, retain_hours=hours, retain_versions=versions, dry_run=dry_run)
    data = {
        "dry_run": dry_run,
        "instant": result.instant,
        "files": result.files,
        "bytes_freed": result.bytes_freed,
        "partitions": result.partitions,
        "earliest_retained": result.earliest_retained,
    }
    return Report(data, (str(result),))


def run_archive(table: HoodieTable, *, least: int | None, most: int | None, dry_run: bool) -> Report:
    """Archive, or say what that would move."""
    result = table.archive(min_commits=least, max_commits=most, dry_run=dry_run)
    data = {
        "dry_run": dry_run,
        "instants": list(result.instants),
        "first_commit": result.earliest,
        "held_by": result.held_by,
    }
    return Report(data, (str(result),))


def rollback(context: TableContext, table: HoodieTable, *, instant: str | None, really: bool) -> Report:
    """Undo the newest commit, or writes that died on the way: without `really`, only say which and what that removes.

    Raises:
        InstantNotFoundError: there is no such instant. CommitConflictError: the commit is not the newest; a pending instant's writer
            lives (only with `really`).
    """
    timeline = table.timeline
    if instant is not None:
        zone = zone_of(table.config.timezone)
        instant = instant_of(instant, lambda: timeline.commits, name="INSTANT", zone=zone, table=table.uri)
    if instant in timeline.completed_times and not really:
        newest = table.rollback(instant, dry_run=True)
        return Report(restore_data(newest), (f"rollback of {instant}: {newest}", DRY_RUN))
    planned = None if instant is None else timeline.find(instant, Action.CLUSTERING, Action.LOGCOMPACTION)
    if planned is not None and not planned.is_completed and not really:
        what = "clustering" if planned.action is Action.CLUSTERING else "log compaction"
        data = {
            "dry_run": True,
            "pending": [{"instant": planned.time, "action": planned.action.value}],
            "unfinished_rollbacks": [],
        }
        return Report(
            data,
            (
                f"{planned.time}: the plan of a {what}; would be dropped",
                "dry run: nothing was changed; add --yes to do it",
            ),
        )
    if not really and instant is not None:
        # The errors of the act itself: a dry run that promises what then fails helps nobody.
        pending_write(context.active, timeline, instant, table=context.storage.uri)
    if really:
        undone = table.rollback(instant)
        report_lines = tuple(f"rolled back {each}" for each in undone) or (
            _nothing(len(table.timeline.pending_writes)),
        )
        return Report({"dry_run": False, "rolled_back": undone}, report_lines)
    previews = [_preview(context, i) for i in timeline.pending_writes if instant in (None, i.time)]
    unfinished = _unfinished(context, timeline) if instant is None else []
    lines = [line for entry in previews for line in _preview_lines(entry)]
    lines += [f"rollback of {each} is unfinished: would be finished" for each in unfinished]
    doomed = any(entry["would_roll_back"] for entry in previews) or bool(unfinished)
    lines.append(DRY_RUN if doomed else _nothing(len(previews)))
    return Report({"dry_run": True, "pending": previews, "unfinished_rollbacks": unfinished}, tuple(lines))


def _nothing(written: int) -> str:
    """Why nothing is rolled back; `written`: pending writes, whose writers live."""
    if not written:
        return "nothing to roll back"
    return f"{format_count(written, 'pending write')} {'is' if written == 1 else 'are'} being written: nothing to roll back"


def _preview(context: TableContext, instant: Instant) -> dict[str, Any]:
    life = life_of(instant.time, context)
    plan = plan_rollback(context, instant) if life is Life.DEAD else None
    described = context.active.read_inflight(instant) if instant.state is State.INFLIGHT else None
    return {
        "instant": instant.time,
        "action": instant.action.value,
        "state": instant.state.value,
        "operation": described.operation.value.lower() if described else None,
        "writer": {Life.DEAD: "dead", Life.ALIVE: "alive", Life.FOREIGN_ALIVE: "alive"}[life],
        "would_roll_back": life is Life.DEAD,
        "delete": _deleted(context, plan),
        "disarm": [f"{r.partition_path}/{name}".lstrip("/") for r in plan.requests for name in r.log_blocks]
        if plan
        else [],
    }


def _deleted(context: TableContext, plan: RollbackPlan | None) -> list[str]:
    """Base files that go, relative to the table."""
    prefix = context.storage.uri.rstrip("/") + "/"
    return [path.removeprefix(prefix) for r in plan.requests for path in r.files_to_delete] if plan else []


def _preview_lines(entry: dict[str, Any]) -> list[str]:
    head = f"{entry['instant']}.{entry['action']}.{entry['state']}"
    if entry["operation"]:
        head += f" ({entry['operation']})"
    if not entry["would_roll_back"]:
        return [f"{head}: its writer is alive; would be left alone"]
    lines = [f"{head}: its writer is dead; would be rolled back"]
    lines += [f"  delete {path}" for path in entry["delete"]]
    lines += [f"  roll back the blocks of {path}" for path in entry["disarm"]]
    return lines


def _unfinished(context: TableContext, timeline: Timeline) -> list[str]:
    """Targets of rollbacks whose process died."""
    targets = [context.active.rollback_target(r) for r in timeline.pending(Action.ROLLBACK)]
    return [target for target in targets if target is not None]
