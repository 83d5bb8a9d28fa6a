"""The commands `upgrade` and `downgrade`: a table becomes one of another version. They show first what that takes."""

from __future__ import annotations

from dataclasses import asdict

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.cli.savepoints import DRY_RUN
from hoodie.model.service_results import UpgradeResult
from hoodie.table import HoodieTable


def register(to: Commands) -> None:
    added = add_command(
        to,
        "upgrade",
        "upgrade a table to a later version; a dry run unless --yes is given",
        lambda _, t, a: run(t, a.version, really=a.yes),
    )
    added.add_argument("version", metavar="VERSION", type=int, nargs="?", default=9, help="6, 8 or 9 (default: 9)")
    added.add_argument("--yes", action="store_true", help="do it")
    added = add_command(
        to,
        "downgrade",
        "downgrade a table of version 8 or 9 to an earlier version; a dry run unless --yes is given",
        lambda _, t, a: run_downgrade(t, a.version, really=a.yes),
    )
    added.add_argument("version", metavar="VERSION", type=int, nargs="?", default=6, help="6 or 8 (default: 6)")
    added.add_argument("--yes", action="store_true", help="do it")


def run(table: HoodieTable, version: int, *, really: bool) -> Report:
    """Upgrade the table; without `really`, only say what would be done."""
    return _report(table.upgrade(version, dry_run=not really), really=really)


def run_downgrade(table: HoodieTable, version: int, *, really: bool) -> Report:
    """The other way round."""
    return _report(table.downgrade(version, dry_run=not really), really=really)


def _report(result: UpgradeResult, *, really: bool) -> Report:
    return Report(
        asdict(result), (str(result), *result.changes, *(() if really or result.before == result.after else (DRY_RUN,)))
    )
