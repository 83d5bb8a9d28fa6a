"""The command `publish`: the table in the metadata of another format."""

from __future__ import annotations

from dataclasses import asdict

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.model.enums import LakeFormat
from hoodie.model.service_results import Published


def register(to: Commands) -> None:
    added = add_command(
        to,
        "publish",
        "publish the table in the metadata of another format, over the same base files",
        lambda _, table, args: _report(table.publish(args.format, dry_run=args.dry_run), dry_run=args.dry_run),
    )
    added.add_argument("--as", dest="format", choices=[str(each) for each in LakeFormat], required=True)
    added.add_argument("--dry-run", action="store_true", help="only show what would change")


def _report(result: Published, *, dry_run: bool) -> Report:
    return Report(asdict(result), (f"{'dry run: ' if dry_run else ''}{result}",))
