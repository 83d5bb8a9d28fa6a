"""The command `upgrade`: a table of version 6 becomes one of a later version. It shows first what that takes."""

from __future__ import annotations

from dataclasses import asdict

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.cli.savepoints import DRY_RUN
from hoodie.table import HoodieTable


def register(to: Commands) -> None:
    added = add_command(
        to,
        "upgrade",
        "make a table of version 6 one of version 8 or 9; a dry run unless --yes is given",
        lambda _, t, a: run(t, a.version, really=a.yes),
    )
    added.add_argument("version", metavar="VERSION", type=int, nargs="?", default=9, help="8 or 9 (default: 9)")
    added.add_argument("--yes", action="store_true", help="do it")


def run(table: HoodieTable, version: int, *, really: bool) -> Report:
    """Upgrade the table; without `really`, only say what would be done."""
    found = table.upgrade(version, dry_run=not really)
    return Report(asdict(found), (str(found), *(() if really or found.before == found.after else (DRY_RUN,))))
