"""The command `consumers`: named consumers of a table's changes, and how far behind they are."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from datetime import UTC, datetime

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report, format_table
from hoodie.errors import OptionError
from hoodie.model.service_results import ConsumerInfo
from hoodie.table import HoodieTable
from hoodie.view.consumers import consumer_names
from hoodie.view.context import TableContext


def register(to: Commands) -> None:
    added = add_command(to, "consumers", "list the named consumers of the table, and how far behind each is", run)
    what = added.add_mutually_exclusive_group()
    what.add_argument("--drop", metavar="NAME", help="drop a consumer")
    what.add_argument(
        "--seek",
        nargs=2,
        metavar=("NAME", "INSTANT"),
        help="move a consumer: its next changes are those after the instant; also earliest, latest, '2 hours ago'",
    )


def run(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """What the arguments ask for."""
    if args.drop is not None:
        table.drop_consumer(args.drop)
        return Report({"dropped": args.drop}, (f"consumer {args.drop} is dropped",))
    return consumers(table) if args.seek is None else seek(context, table, *args.seek)


def consumers(table: HoodieTable) -> Report:
    """The consumers, by name."""
    all_consumers = table.consumers()
    rows = [
        (each.name, each.position or "(beginning)", _when(each), each.lag.commits, _age(each.lag.seconds))
        for each in all_consumers
    ]
    lines = (
        format_table(("name", "place", "moved", "commits behind", "for"), rows) if all_consumers else ["no consumers"]
    )
    return Report({"consumers": [asdict(each) for each in all_consumers]}, tuple(lines))


def seek(context: TableContext, table: HoodieTable, name: str, to: str) -> Report:
    """Put a consumer elsewhere.

    Raises:
        OptionError: there is no such consumer, or the moment cannot be understood. CorruptFileError: its file is damaged.
    """
    there = consumer_names(context.storage)
    if name not in there:
        raise OptionError(f"table {table.uri} has no consumer {name!r}; its consumers: {', '.join(there) or 'none'}")
    consumer = table.consumer(name)
    consumer.seek(to)
    return Report(
        {"name": name, "position": consumer.position},
        (f"consumer {name} stands at {consumer.position or 'the beginning'}",),
    )


def _when(consumer: ConsumerInfo) -> str:
    return f"{datetime.fromtimestamp(consumer.moved_at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _age(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds else "-"
