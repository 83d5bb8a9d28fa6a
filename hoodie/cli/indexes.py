"""The command `index`: what indexes a table has, and how they are built, checked and dropped."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.model.results import format_count
from hoodie.options.values import OUTSIDE_INDEXES
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext

_OUTSIDE = "an index outside of the table: HBASE, or one of your own"
_NAME = "files, column_stats, partition_stats, bloom_filters, record_index, secondary_index_NAME or expr_index_NAME"


def register(to: Commands) -> None:
    text = "indexes of a table: list, build, check and drop them"
    acts = to.add_parser("index", help=text, description=text).add_subparsers(
        metavar="{list,build,drop,check,rebuild}", required=True
    )
    add_command(acts, "list", "state, size, coverage and use of each index", list_indexes)
    build = add_command(acts, "build", "build an index beside the writers of the table", build_index)
    build.add_argument("name", metavar="NAME", help=f"{_NAME}; or the name of an index outside of the table")
    drop = add_command(acts, "drop", "drop an index; without --yes only say which", drop_index)
    drop.add_argument("name", metavar="NAME", help=f"{_NAME}; files: the whole metadata table")
    drop.add_argument("--yes", action="store_true", help="do it")
    check = add_command(acts, "check", "whether indexes agree with the files of the table", check_indexes)
    check.add_argument("names", metavar="NAME", nargs="*", help=f"{_NAME}; default: all that are there")
    add_command(acts, "rebuild", f"put every key into {_OUTSIDE}", rebuild)


def list_indexes(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """What there is."""
    infos = table.indexes()
    return Report({"indexes": [asdict(each) for each in infos]}, tuple(map(str, infos)))


def build_index(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Build one."""
    before = {each.name for each in table.indexes()}
    instant = table.build_index(args.name)
    is_there = instant is None and args.name in before and args.name not in OUTSIDE_INDEXES
    line = f"{args.name} is there already" if is_there else f"built {args.name}" + (f" at {instant}" if instant else "")
    return Report({"name": args.name, "instant": instant, "built": not is_there}, (line,))


def drop_index(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Drop one."""
    if not args.yes:
        there = any(each.name == args.name for each in table.indexes())
        line = f"would drop {args.name}; --yes does it" if there else f"there is no index {args.name}"
        return Report({"name": args.name, "dropped": False, "found": there}, (line,))
    dropped = table.drop_index(args.name)
    return Report(
        {"name": args.name, "dropped": dropped}, (("dropped" if dropped else "there is no index") + f" {args.name}",)
    )


def check_indexes(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Check some, or all."""
    names = args.names or [each.name for each in table.indexes() if each.name.islower()]
    checks = [table.index(name).check() for name in names]
    lines = tuple(map(str, checks)) or ("there is no metadata table",)
    return Report({"checks": [asdict(each) for each in checks]}, lines, failed=not all(checks))


def rebuild(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Build the index outside of the table anew."""
    rows = table.rebuild_index()
    return Report({"rows": rows}, (f"the index has {format_count(rows, 'key')}",))
