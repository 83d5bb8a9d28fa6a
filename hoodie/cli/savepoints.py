"""Commands on savepoints and restores. A restore shows first what would be lost."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report, format_table
from hoodie.errors import OptionError
from hoodie.model.names import hoodie_command
from hoodie.model.results import RestoreResult, Savepoint
from hoodie.table import HoodieTable

DRY_RUN = "dry run: nothing was changed; add --yes to do it"


def register(to: Commands) -> None:
    command = add_command(
        to,
        "savepoint",
        "keep the state after a commit, or drop it",
        lambda _, t, a: drop(t, a.instant) if a.drop else make(t, a.instant, a.comment),
    )
    command.add_argument("instant", metavar="INSTANT", nargs="?", help="the commit (default: the latest)")
    command.add_argument("--comment", metavar="TEXT", default="", help="why it is kept")
    command.add_argument("--drop", action="store_true", help="drop the savepoint: cleans may delete its files")
    add_command(to, "savepoints", "the savepoints of the table", lambda _, t, __: savepoints(t))
    back = add_command(
        to,
        "restore",
        "undo everything after a commit; a dry run unless --yes is given",
        lambda _, t, a: restore(t, a.instant, really=a.yes),
    )
    back.add_argument("instant", metavar="INSTANT", help="a savepoint, or a commit on the timeline")
    back.add_argument("--yes", action="store_true", help="do it")


def make(table: HoodieTable, instant: str | None, comment: str) -> Report:
    """Make a savepoint."""
    saved = table.savepoint(instant, comment)
    return Report(
        {"savepoint": saved, "comment": comment},
        (f"{saved} is a savepoint: {hoodie_command('restore', table.uri, saved)} goes back to it",),
    )


def drop(table: HoodieTable, instant: str | None) -> Report:
    """Let a savepoint go.

    Raises:
        OptionError: it is not said which one.
    """
    if instant is None:
        raise OptionError(f"name the savepoint to drop; {hoodie_command('savepoints', table.uri)} lists them")
    table.drop_savepoint(instant)
    return Report({"dropped": instant}, (f"savepoint {instant} is dropped",))


def savepoints(table: HoodieTable) -> Report:
    """The savepoints, oldest first."""
    all_savepoints = table.savepoints()
    rows = [(each.instant, _when(each), each.user or "-", each.files, each.comment) for each in all_savepoints]
    lines = format_table(("instant", "made", "by", "files", "comment"), rows) if all_savepoints else ["no savepoints"]
    return Report({"savepoints": [asdict(each) for each in all_savepoints]}, tuple(lines))


def _when(savepoint: Savepoint) -> str:
    return f"{datetime.fromtimestamp(savepoint.at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def restore(table: HoodieTable, instant: str, *, really: bool) -> Report:
    """Take the table back to a commit; without `really`, only say what would be lost."""
    if really:
        result = table.restore(instant)
        return Report(restore_data(result), (f"restore: {result}",))
    result = table.restore(instant, dry_run=True)
    return Report(restore_data(result), (f"restore: {result}", *([DRY_RUN] if result.undone else [])))


def restore_data(result: RestoreResult) -> dict[str, Any]:
    """What was, or would be, undone as plain values."""
    return {name: value for name, value in asdict(result).items() if name != "seconds"} | {
        "undone": list(result.undone)
    }
