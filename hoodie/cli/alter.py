"""The command `alter`: columns of a table are added, renamed, dropped, moved and given other types, without a rewrite of files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.maintenance.alter import TableAlteration
from hoodie.model.results import CommitResult
from hoodie.table import HoodieTable

_COLUMN = "name of the column, inside of others with their names: address.zip"


def register(to: Commands) -> None:
    acts = to.add_parser("alter", help="change the columns of a table").add_subparsers(metavar="ACT", required=True)
    added = _add(acts, "add", "add a column, which is null in the rows that there are", _added)
    _add_type(added)
    _add_place(added)
    added.add_argument("--doc", help="a comment for readers")
    added = _add(acts, "rename", "give a column another name", lambda t, a: t.rename_column(a.column, a.name))
    added.add_argument("name", metavar="NAME", help="the new name, without those of others that it is in")
    _add(acts, "drop", "drop a column; older states keep it", lambda t, a: t.drop_column(a.column))
    _add_place(
        _add(acts, "move", "put a column elsewhere", lambda t, a: t.move_column(a.column, after=a.after, first=a.first))
    )
    _add_type(_add(acts, "retype", "give a column a wider type", lambda t, a: t.change_type(a.column, a.type)))
    _add(acts, "nullable", "let a column hold nulls", lambda t, a: t.set_nullable(a.column))
    added = _add(acts, "doc", "say what a column is", lambda t, a: t.set_doc(a.column, a.text or None))
    added.add_argument("text", metavar="TEXT", help="the comment; an empty one removes it")


def run(table: HoodieTable, result: CommitResult) -> Report:
    """What the change did, and the columns after it."""
    columns = [f"{field.name}: {field.type}" for field in table.schema or ()]
    summary = "nothing to change" if result.instant is None else f"committed {result.instant}"
    return Report({**asdict(result), "columns": columns}, (summary, *columns))


def _add(
    to: Commands, name: str, text: str, act: Callable[[TableAlteration, argparse.Namespace], CommitResult]
) -> argparse.ArgumentParser:
    added = add_command(to, name, text, lambda _, table, args: run(table, act(table.alter, args)))
    added.add_argument("column", metavar="COLUMN", help=_COLUMN)
    return added


def _added(alter: TableAlteration, args: argparse.Namespace) -> CommitResult:
    return alter.add_column(args.column, args.type, after=args.after, first=args.first, doc=args.doc)


def _add_type(to: argparse.ArgumentParser) -> None:
    to.add_argument("type", metavar="TYPE", help='such as double, "decimal(10, 2)" or "array<string>"')


def _add_place(to: argparse.ArgumentParser) -> None:
    place = to.add_mutually_exclusive_group()
    place.add_argument("--after", metavar="OTHER", help="the column after which it comes")
    place.add_argument("--first", action="store_true", help="it comes before all others")
