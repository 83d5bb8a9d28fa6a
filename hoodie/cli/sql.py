"""The command `sql`: statements on a table, from the command line or the standard input."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report, format_table
from hoodie.model.results import CommitResult
from hoodie.query import sql, statements_of

_SHOWN = 1_000
"""Rows of a result that a terminal gets."""


def register(to: Commands) -> None:
    added = add_command(
        to,
        "sql",
        "run statements of SQL in DuckDB's dialect: SELECT, INSERT, UPDATE, DELETE and MERGE; the table is called t, and by its name, "
        "others by their paths in quotes",
        lambda _, t, a: _run(a, {t.config.name: t, "t": t}),
        without_table=lambda a, options: _run(a, {}, options),
    )
    added.add_argument("-e", dest="statement", metavar="TEXT", help="the statements (default: the standard input)")
    added.add_argument(
        "--table", metavar="NAME=PATH", type=_named, action="append", default=[], help="another table, by this name"
    )
    added.add_argument("--csv", action="store_true", help="print rows as CSV")


def _run(args: argparse.Namespace, tables: Mapping[str, Any], options: Mapping[str, str] | None = None) -> Report:
    """Run the statements, one after the other."""
    rows = _SHOWN if sys.stdout.isatty() else None
    data, lines = [], []
    for statement in statements_of(sys.stdin.read() if args.statement is None else args.statement):
        found = sql(statement, {**tables, **dict(args.table)}, options=options)
        if isinstance(found, CommitResult):
            data.append(asdict(found))
            lines.append(str(found))
        else:
            data.append({"columns": found.column_names, "rows": found.to_pylist()})
            lines += _csv(found) if args.csv else _table(found, rows)
    return Report(data[0] if len(data) == 1 else {"results": data}, tuple(lines))


def _table(found: pa.Table, most: int | None) -> list[str]:
    shown = found if most is None else found.slice(0, most)
    lines = format_table(found.column_names, _rows(shown))
    left = found.num_rows - shown.num_rows
    return [*lines, *([f"and {left:,} rows more"] if left else [])]


def _csv(found: pa.Table) -> list[str]:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(found.column_names)
    writer.writerows(_rows(found))
    return out.getvalue().splitlines()


def _rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _named(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH")
    return name, path
