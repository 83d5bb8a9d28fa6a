"""`hoodie COMMAND PATH`: exit status 0 when done, 1 when it failed, 2 when the command line makes no sense."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence

import hoodie
from hoodie.cli import services, show
from hoodie.cli.report import Report
from hoodie.engine.local import LocalEngine
from hoodie.errors import HoodieError
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable
from hoodie.txn.context import TableContext

DONE, FAILED, USAGE = 0, 1, 2

_DEFAULT_LIMIT = 50
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}

Command = Callable[[TableContext, HoodieTable, argparse.Namespace], Report]


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
        context = TableContext.open(open_storage(args.path), LocalEngine())
        command: Command = args.command
        report = command(context, HoodieTable(context), args)
        print(report.text(as_json=args.json), flush=True)
    except BrokenPipeError:  # `hoodie … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (HoodieError, OSError) as exc:
        print(f"hoodie: {exc}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("hoodie: interrupted", file=sys.stderr)
        return FAILED
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hoodie", description="Look at Apache Hudi tables and keep them in shape.")
    parser.add_argument("--version", action="version", version=f"hoodie {hoodie.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(
        name: str,
        text: str,
        command: Command,
        to: argparse._SubParsersAction[argparse.ArgumentParser] = commands,
    ) -> argparse.ArgumentParser:
        found = to.add_parser(name, help=text, description=text)
        found.add_argument("path", metavar="PATH", type=_path, help="the table's folder, or file:///folder")
        found.add_argument("--json", action="store_true", help="print JSON")
        found.set_defaults(command=command)
        return found

    add("show", "the table on one page", lambda _, t, __: show.show(t))
    listed = add(
        "timeline",
        "instants and their states",
        lambda _, t, a: show.timeline(t, limit=a.limit or None, archived=a.archived),
    )
    _add_limit(listed)
    _add_archived(listed)
    listed = add(
        "commits",
        "what each completed commit did",
        lambda _, t, a: show.commits(t, limit=a.limit or None, archived=a.archived),
    )
    _add_limit(listed)
    _add_archived(listed)
    listed = add("files", "the newest file slices", lambda _, t, a: show.files(t, partition=a.partition))
    listed.add_argument("--partition", metavar="P", help="only this partition path")
    explained = add(
        "explain",
        "which files a query opens",
        lambda _, t, a: show.explain(t, where=a.where, as_of=a.as_of, since=a.since, until=a.until),
    )
    explained.add_argument("--where", metavar="CONDITION", help="rows to read, as SQL-like text")
    explained.add_argument("--as-of", metavar="TIME", help="as of an instant, 2026-01-31, '2 hours ago'")
    explained.add_argument("--since", metavar="TIME", help="an incremental pull of what was committed after this time")
    explained.add_argument("--until", metavar="TIME", help="where that pull ends (default: the latest commit)")
    add("schema", "columns, types and their roles", lambda _, t, __: show.schema(t))

    compaction = commands.add_parser("compaction", help="merge log files into base files")
    acts = compaction.add_subparsers(metavar="plan|run", required=True)
    add("plan", "schedule a compaction and list what is pending", lambda c, t, _: services.plan_compaction(c, t), acts)
    run = add(
        "run",
        "run what is pending; schedule it first when nothing is",
        lambda _, t, a: services.run_compaction(t, instant=a.instant, budget_s=a.budget),
        acts,
    )
    run.add_argument(
        "--budget", metavar="TIME", type=_duration, help="begin no further compaction after this time: 90s, 5m, 1h"
    )
    run.add_argument("--instant", metavar="T", help="only the compaction scheduled at T")

    undo = add(
        "rollback",
        "undo writes that died on the way; a dry run unless --yes is given",
        lambda c, t, a: services.rollback(c, t, instant=a.instant, really=a.yes),
    )
    undo.add_argument("instant", metavar="INSTANT", nargs="?", help="only this one (default: all whose writer is dead)")
    undo.add_argument("--yes", action="store_true", help="do it")
    return parser


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_limit,
        default=_DEFAULT_LIMIT,
        help=f"only the newest N (default {_DEFAULT_LIMIT}; 0: all)",
    )


def _add_archived(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--archived", action="store_true", help="also what was moved to the archived timeline")


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("is empty: give the table's folder")
    return text


def _limit(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _duration(text: str) -> float:
    """Seconds of `90`, `90s`, `5m` or `1h`."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 90s, 5m or 1h")
    return float(found[1]) * _SECONDS[found[2]]


if __name__ == "__main__":
    sys.exit(main())
