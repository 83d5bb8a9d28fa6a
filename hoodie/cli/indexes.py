"""The command `index`: an index that is kept outside of the table, built anew."""

from __future__ import annotations

import argparse

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.model.results import format_count
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext


def register(to: Commands) -> None:
    added = add_command(
        to, "index", "put every key into the index outside of the table: HBASE, or one of your own", run
    )
    added.add_argument("act", choices=["rebuild"], help="what is done")


def run(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Build the index anew."""
    rows = table.rebuild_index()
    return Report({"rows": rows}, (f"the index has {format_count(rows, 'key')}",))
