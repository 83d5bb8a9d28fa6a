"""The command `index`: an index that is kept outside of the table, built anew."""

from __future__ import annotations

import argparse

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.model.results import format_count
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext

_TEXT = "an index outside of the table: HBASE, or one of your own"


def register(to: Commands) -> None:
    acts = to.add_parser("index", help=_TEXT).add_subparsers(metavar="rebuild", required=True)
    add_command(acts, "rebuild", f"put every key into {_TEXT}", run)


def run(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Build the index anew."""
    rows = table.rebuild_index()
    return Report({"rows": rows}, (f"the index has {format_count(rows, 'key')}",))
