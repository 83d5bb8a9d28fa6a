"""The command `ttl`: delete partitions that have expired."""

from __future__ import annotations

from dataclasses import asdict

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.table import HoodieTable


def register(to: Commands) -> None:
    added = add_command(
        to,
        "ttl",
        "delete partitions that have not been changed for some days",
        lambda _, t, a: expire(t, days=a.days, dry_run=a.dry_run),
    )
    added.add_argument(
        "--days",
        metavar="N",
        type=int,
        help="a partition expires after so many days (default: hoodie.partition.ttl.strategy.days.retain)",
    )
    added.add_argument("--dry-run", action="store_true", help="only show which would be deleted")


def expire(table: HoodieTable, *, days: int | None, dry_run: bool) -> Report:
    """Delete expired partitions, or say which."""
    result = table.expire_partitions(days, dry_run=dry_run)
    return Report(asdict(result), (str(result), *(f"  {path}" for path in result.partitions)))
