"""The command `hive-sync`: register the table in a Hive metastore or in AWS Glue."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.model.hive_results import RegisteredTable
from hoodie.options.hive import MODE
from hoodie.table import HoodieTable


def register(to: Commands) -> None:
    added = add_command(
        to,
        "hive-sync",
        "register the table in a Hive metastore or in AWS Glue, or update its registration",
        lambda _, t, a: sync(t, a),
    )
    catalog = added.add_mutually_exclusive_group(required=True)
    catalog.add_argument("--metastore", metavar="URI", help="thrift://host:9083, several with commas between")
    catalog.add_argument("--glue", action="store_true", help="the Glue catalog of AWS, as boto3 finds it")
    added.add_argument("--database", metavar="D", required=True, help="created if it does not exist")
    added.add_argument("--table", metavar="T", help="the name to register by (default: that of the table)")
    added.add_argument("--dry-run", action="store_true", help="only show what would change")


def sync(table: HoodieTable, args: argparse.Namespace) -> Report:
    """Register, or say what would change."""
    result = table.register_in_hive(
        metastore=args.metastore,
        database=args.database,
        table=args.table,
        options={MODE.name: "glue"} if args.glue else None,
        dry_run=args.dry_run,
    )
    head = "hive sync, dry run: this would change" if result.dry_run else f"hive sync: done in {result.seconds:.2f} s"
    database_lines = (f"  database {result.database_made} made",) if result.database_made else ()
    return Report(asdict(result), (head, *database_lines, *(line for each in result.tables for line in _lines(each))))


def _lines(table: RegisteredTable) -> list[str]:
    parted = (("+", table.added), ("~", table.updated), ("-", table.dropped))
    return [f"  {table}", *(f"    {sign} {path}" for sign, paths in parted for path in paths)]
