"""`hoodie COMMAND PATH`: exit status 0 when done, 1 when it failed, 2 when the command line makes no sense.

Only what a command line needs is imported: modules are named here, and imported when a command of theirs is run.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

import hoodie
from hoodie.cli.arguments import Parser
from hoodie.errors import HoodieError, harmless

DONE, FAILED, USAGE = 0, 1, 2

OPTION_PREFIX = "hoodie."
"""Of options of the table; others say how to reach its storage."""

_COLLECTED_AFTER = 100_000
"""New objects. Python's 700 are a tenth of the time of most commands: imports make many objects and hardly any garbage."""

MODULES = {
    "show": ("show", "timeline", "commits", "files", "explain", "schema"),
    "page": ("report",),
    "compaction": ("compaction", "log-compaction"),
    "services": ("clean", "archive", "rollback"),
    "clustering": ("cluster", "clustering"),
    "daemon": ("services",),
    "expiry": ("ttl",),
    "erase": ("erase",),
    "hive_sync": ("hive-sync",),
    "publish": ("publish",),
    "indexes": ("index",),
    "ingest": ("ingest",),
    "migrate": ("migrate",),
    "savepoints": ("savepoint", "savepoints", "restore"),
    "sql": ("sql",),
    "upgrade": ("upgrade", "downgrade"),
    "alter": ("alter",),
    "consumers": ("consumers",),
    "metrics": ("metrics",),
    "check": ("check", "validate", "doctor"),
    "repair": ("repair",),
    "timeline_server": ("timeline-server",),
    "kv": ("kv",),
}
"""Which module of this package registers which commands."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; gives the exit status. Errors go to stderr as one text, without a trace."""
    program = argv is None
    if program:
        gc.set_threshold(_COLLECTED_AFTER)
    argv = sys.argv[1:] if argv is None else argv
    if not argv:
        parser_of(MODULES).print_help(sys.stderr)
        return USAGE
    modules = [name for name, commands in MODULES.items() if argv[0] in commands]
    try:
        args = parser_of([] if argv[0] == "--version" else modules or MODULES).parse_args(argv)
    except SystemExit as exit_:  # argparse has printed help (0) or what is wrong with the command line (2)
        return exit_.code if isinstance(exit_.code, int) else USAGE
    if program:
        import_module("hoodie.engine.late_pandas").put_pandas_off()
    try:
        options = {name: value for name, value in args.options if name.startswith(OPTION_PREFIX)}
        reached_by = {name: value for name, value in args.options if not name.startswith(OPTION_PREFIX)}
        if hasattr(args, "alone"):  # this command reports on several tables
            status: int = args.alone(args, options, reached_by)
            return status
        report = import_module("hoodie.cli.opening").run(args, options, reached_by)
        print(report.text(as_json=args.json), flush=True)
    except BrokenPipeError:  # `hoodie … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (HoodieError, OSError) as exc:
        error = exc if isinstance(exc, HoodieError) else import_module("hoodie.storage.refusals").in_our_words(exc)
        print(f"hoodie: {harmless(str(error))}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("hoodie: interrupted", file=sys.stderr)
        return FAILED
    return FAILED if report.failed else DONE


def parser_of(modules: Iterable[str]) -> argparse.ArgumentParser:
    """A parser of the commands of some modules."""
    parser: argparse.ArgumentParser = Parser(
        prog="hoodie", description="Look at Apache Hudi tables and keep them in shape."
    )
    parser.add_argument("--version", action="version", version=f"hoodie {hoodie.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in modules:
        import_module(f"hoodie.cli.{name}").register(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
