"""The command `report`: the table as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.errors import OptionError
from hoodie.model.results import format_size
from hoodie.page.facts import gather
from hoodie.page.render import page
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext


def register(to: Commands) -> None:
    text = "the table as a page: timeline, partitions, sizes, pending work"
    added = add_command(to, "report", text, report, o_is_option=False)
    added.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the HTML file to write")


def report(context: TableContext, _: HoodieTable, args: argparse.Namespace) -> Report:
    """Writes the page. A file of that name is replaced.

    Raises:
        OptionError: the file cannot be written.
    """
    text = page(gather(context))
    try:
        args.output.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as exc:  # a name with a zero in it is the latter
        raise OptionError(f"the report cannot be written to {args.output}: {getattr(exc, 'strerror', exc)}") from exc
    size = len(text.encode())
    return Report({"file": str(args.output), "bytes": size}, (f"{args.output}, {format_size(size)}",))
