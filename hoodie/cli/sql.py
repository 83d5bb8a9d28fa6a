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
        "--table",
        metavar="NAME=PATH",
        type=_named_path,
        action="append",
        default=[],
        help="another table, by this name",
    )
    added.add_argument("--csv", action="store_true", help="print rows as CSV")


def _run(args: argparse.Namespace, tables: Mapping[str, Any], options: Mapping[str, str] | None = None) -> Report:
    """Run the statements, one after the other."""
    rows = _SHOWN if sys.stdout.isatty() else None
    data, lines = [], []
    for statement in statements_of(sys.stdin.read() if args.statement is None else args.statement):
        result = sql(statement, {**tables, **dict(args.table)}, options=options)
        if isinstance(result, CommitResult):
            data.append(asdict(result))
            lines.append(str(result))
        else:
            data.append({"columns": result.column_names, "rows": result.to_pylist()})
            lines += _csv(result) if args.csv else _table(result, rows)
    return Report(data[0] if len(data) == 1 else {"results": data}, tuple(lines))


def _table(rows: pa.Table, most: int | None) -> list[str]:
    part = rows if most is None else rows.slice(0, most)
    lines = format_table(rows.column_names, _rows(part))
    more = rows.num_rows - part.num_rows
    return [*lines, *([f"and {more:,} rows more"] if more else [])]


def _csv(rows: pa.Table) -> list[str]:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows.column_names)
    writer.writerows(_rows(rows))
    return out.getvalue().splitlines()


def _rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _named_path(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH")
    return name, path
