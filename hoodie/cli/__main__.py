"""`hoodie COMMAND PATH`: exit status 0 when done, 1 when it failed, 2 when the command line makes no sense."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

import hoodie
from hoodie.cli import (
    check,
    clustering,
    compaction,
    consumers,
    daemon,
    expiry,
    hive_sync,
    kv,
    log_compaction,
    page,
    repair,
    savepoints,
    services,
    show,
    timeline_server,
)
from hoodie.cli.arguments import Command, Opening, Parser, StorageCommand
from hoodie.cli.report import Report
from hoodie.engine.local import LocalEngine
from hoodie.errors import HoodieError, harmless
from hoodie.options.defaults_file import load_defaults
from hoodie.options.parse import parse_write_options
from hoodie.options.services import ConcurrencyOptions
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext

DONE, FAILED, USAGE = 0, 1, 2

OPTION_PREFIX = "hoodie."
"""Of options of the table; others say how to reach its storage."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; gives the exit status. Errors go to stderr as one text, without a trace."""
    if not (sys.argv[1:] if argv is None else argv):
        _parser().print_help(sys.stderr)
        return USAGE
    try:
        args = _parser().parse_args(argv)
    except SystemExit as exit_:  # argparse has printed help (0) or what is wrong with the command line (2)
        return exit_.code if isinstance(exit_.code, int) else USAGE
    try:
        options = {name: value for name, value in args.options if name.startswith(OPTION_PREFIX)}
        reached_by = {name: value for name, value in args.options if not name.startswith(OPTION_PREFIX)}
        if hasattr(args, "alone"):  # not one report of one table
            status: int = args.alone(args, options, reached_by)
            return status
        report = _run(args, _opening(open_storage(args.path, reached_by), options))
        print(report.text(as_json=args.json), flush=True)
    except BrokenPipeError:  # `hoodie … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (HoodieError, OSError) as exc:
        print(f"hoodie: {harmless(str(exc))}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("hoodie: interrupted", file=sys.stderr)
        return FAILED
    return FAILED if report.failed else DONE


def _opening(storage: Storage, options: Mapping[str, str]) -> Opening:
    def concurrency() -> ConcurrencyOptions:
        return parse_write_options(options, defaults=load_defaults()).write.concurrency

    def table() -> tuple[TableContext, HoodieTable]:
        context = TableContext.open(storage, LocalEngine())
        return context.with_concurrency(concurrency()), HoodieTable(context, options)

    return Opening(storage, concurrency, table)


def _run(args: argparse.Namespace, opening: Opening) -> Report:
    from_storage: StorageCommand | None = getattr(args, "storage_command", None)
    if from_storage is not None:
        return from_storage(opening, args)
    command: Command = args.command
    return command(*opening.table(), args)


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(
        prog="hoodie", description="Look at Apache Hudi tables and keep them in shape."
    )
    parser.add_argument("--version", action="version", version=f"hoodie {hoodie.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    show.register(commands)
    page.register(commands)
    compaction.register(commands)
    services.register(commands)
    log_compaction.register(commands)
    clustering.register(commands)
    daemon.register(commands)
    expiry.register(commands)
    hive_sync.register(commands)
    savepoints.register(commands)
    consumers.register(commands)
    check.register(commands)
    repair.register(commands)
    timeline_server.register(commands)
    kv.register(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
