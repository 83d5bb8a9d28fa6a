"""How a command comes to its table: opened from the command line, or by the command itself."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from hoodie.cli.arguments import Command, PlainCommand, StorageCommand, UnopenedTable
from hoodie.cli.report import Report
from hoodie.engine.local import LocalEngine
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.defaults_file import load_defaults
from hoodie.options.parse import parse_write_options
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext


def run(args: argparse.Namespace, options: Mapping[str, str], reached_by: Mapping[str, str]) -> Report:
    """Run a command on its table."""
    if args.path is None:
        without_table: PlainCommand = args.without_table
        return without_table(args, options)
    opening = _opening(open_storage(args.path, reached_by), options)
    from_storage: StorageCommand | None = getattr(args, "storage_command", None)
    if from_storage is not None:
        return from_storage(opening, args)
    command: Command = args.command
    return command(*opening.table(), args)


def _opening(storage: Storage, options: Mapping[str, str]) -> UnopenedTable:
    def concurrency() -> ConcurrencyOptions:
        return parse_write_options(options, defaults=load_defaults()).write.concurrency

    def table() -> tuple[TableContext, HoodieTable]:
        context = TableContext.open(storage, LocalEngine())
        return context.with_concurrency(concurrency()), HoodieTable(context, options)

    return UnopenedTable(storage, concurrency, table)
