"""The command `erase`: deletes rows from every file. It shows first how many rows and files that would be."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.cli.savepoints import DRY_RUN
from hoodie.errors import OptionError
from hoodie.keyed import record_key_columns, where_keys
from hoodie.model.results import format_count
from hoodie.options.write import WriteOptions
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext


def register(to: Commands) -> None:
    added = add_command(
        to,
        "erase",
        "delete rows by their record keys, and remove them from every file; a dry run unless --yes is given",
        run,
    )
    added.add_argument(
        "keys",
        metavar="KEY",
        nargs="*",
        help="a record key; of a table with several key columns a JSON object of them",
    )
    added.add_argument(
        "--keys", dest="file", metavar="FILE", type=Path, help="a file with a key on each line (/dev/stdin: the input)"
    )
    added.add_argument("--yes", action="store_true", help="do it")


def run(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Erase rows, or say what that would delete.

    Raises:
        OptionError: there is no key, or one that does not fit the table's key columns.
    """
    try:
        lines = args.file.read_text(encoding="utf-8").splitlines() if args.file else []
    except ValueError as exc:  # bytes of another encoding, or a name that cannot be one
        raise OptionError(f"{str(args.file)!r} is not UTF-8 text: {exc}") from exc
    texts = [*args.keys, *(line for line in lines if line.strip())]
    if not texts:
        raise OptionError("erase needs the record keys of the rows: hoodie erase PATH KEY…, or --keys FILE")
    if table.schema is None:
        raise OptionError(f"table {table.uri} is empty: there is nothing to erase")
    keys = _keys(table, texts)
    if args.yes:
        result = table.erase(keys)
        data = {"dry_run": False, **asdict(result), "remaining": list(result.remaining)}
        return Report(data, (str(result),), failed=not result)
    count = table.scan(columns=[], where=where_keys(context, keys, WriteOptions())).count()
    savepoints = [each.instant for each in table.savepoints()]
    report_lines = [f"erase, dry run: would delete {format_count(count, 'row')}, and all older versions of files"]
    report_lines += [f"savepoint {each} keeps older files: drop it first" for each in savepoints]
    return Report({"dry_run": True, "rows": count, "savepoints": savepoints}, (*report_lines, DRY_RUN))


def _keys(table: HoodieTable, texts: Sequence[str]) -> pa.Table:
    """The record keys as rows of the key columns.

    Raises:
        OptionError: a text is no key of the table.
    """
    names = record_key_columns(table.config)
    if len(names) > 1 or "." in (table.config.record_key_fields or ("",))[0]:
        try:
            return pa.Table.from_pylist([json.loads(text) for text in texts]).select(names)
        except (ValueError, TypeError, AttributeError, KeyError, pa.ArrowException) as exc:
            example = json.dumps(dict.fromkeys(names, "…"), ensure_ascii=False)
            raise OptionError(
                f"not every KEY is an object of the key columns of table {table.uri}, such as {example}: {exc}"
            ) from exc
    schema = table.schema or pa.schema([])
    kind = schema.field(names[0]).type if names[0] in schema.names else pa.string()
    try:
        return pa.table({names[0]: pa.array(texts).cast(kind)})
    except pa.ArrowException as exc:
        raise OptionError(f"keys of table {table.uri} are of column {names[0]!r} with type {kind}: {exc}") from exc
