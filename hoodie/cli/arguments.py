"""What the commands have in common on the command line; each registers its own parser with it."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # `hoodie --version` imports no table
    from hoodie.cli.report import Report
    from hoodie.options.concurrency import ConcurrencyOptions
    from hoodie.storage.base import Storage
    from hoodie.table import HoodieTable
    from hoodie.view.context import TableContext

Command: TypeAlias = "Callable[[TableContext, HoodieTable, argparse.Namespace], Report]"
PlainCommand: TypeAlias = "Callable[[argparse.Namespace, Mapping[str, str]], Report]"
"""Takes the options of writes."""


class Parser(argparse.ArgumentParser):
    """A parser whose message for a command or choice that does not exist names the nearest one."""

    other_parser: Callable[[str, Sequence[str]], argparse.ArgumentParser | None] | None = None
    """Of a command that understands another command line, too: gives its parser, by the command's name and what stands behind it."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        other = self.other_parser(self.prog, args) if self.other_parser is not None and args is not None else None
        known, unknown = (other.parse_known_args if other else super().parse_known_args)(args, namespace)
        if unknown and " " in self.prog:  # by a command, whose usage helps; argparse would show that of `hoodie`
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def _check_value(self, action: argparse.Action, value: object) -> None:
        choices = [str(choice) for choice in action.choices or ()]
        if not choices or value in choices:
            super()._check_value(action, value)
            return
        near = difflib.get_close_matches(str(value), choices, n=1)
        what = "command" if isinstance(action, argparse._SubParsersAction) else "choice"
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(choices)}"
        raise argparse.ArgumentError(None, f"{value!r} is not a {what} of {self.prog}; {hint}")


@dataclass(frozen=True)
class UnopenedTable:
    """A table that is not open yet, for commands that mend what keeps it from being opened."""

    storage: Storage
    concurrency: Callable[[], ConcurrencyOptions]
    table: Callable[[], tuple[TableContext, HoodieTable]]
    """Opens it."""


StorageCommand: TypeAlias = "Callable[[UnopenedTable, argparse.Namespace], Report]"
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""Where commands are added."""

_DEFAULT_LIMIT = 50
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}


def add_command(
    to: Commands,
    name: str,
    text: str,
    command: Command,
    *,
    o_is_option: bool = True,
    without_table: PlainCommand | None = None,
) -> argparse.ArgumentParser:
    """A command on one table; gives its parser for further arguments.

    Args:
        o_is_option: whether `-o` is short for `--option`.
        without_table: what is done if no path is given; None: there has to be one.
    """
    added = to.add_parser(name, help=text, description=text)
    added.add_argument(
        "path",
        metavar="PATH",
        type=table_path,
        nargs="?" if without_table else None,
        help="the table's folder, or its URI such as s3://bucket/folder",
    )
    added.set_defaults(without_table=without_table)
    add_options(added, o_is_option=o_is_option)
    added.set_defaults(command=command)
    return added


def add_options(to: argparse.ArgumentParser, *, o_is_option: bool = True) -> None:
    """What every command takes."""
    to.add_argument(
        *(["-o"] if o_is_option else []),
        "--option",
        dest="options",
        metavar="KEY=VALUE",
        type=assignment,
        action="append",
        default=[],
        help="how to reach the storage, such as aws_region=eu-west-1, or an option of hoodie.*, such as the lock provider; "
        "give secrets by the environment",
    )
    to.add_argument("--json", action="store_true", help="print JSON")


def add_storage_command(to: Commands, name: str, text: str, command: StorageCommand) -> argparse.ArgumentParser:
    """The same for a command that may find a table which does not open."""

    def never(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
        raise AssertionError("the command opens the table itself")

    added = add_command(to, name, text, never)
    added.set_defaults(storage_command=command)
    return added


def add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_limit,
        default=_DEFAULT_LIMIT,
        help=f"only the newest N (default {_DEFAULT_LIMIT}; 0: all)",
    )


def add_archived(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--archived", action="store_true", help="also the commits in the archived timeline")


def duration(text: str) -> float:
    """Seconds of `90`, `90s`, `5m` or `1h`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: write 90s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def add_source_options(to: argparse.ArgumentParser, what: str) -> None:
    to.add_argument(
        "--source-option",
        dest="source_options",
        metavar="KEY=VALUE",
        type=assignment,
        action="append",
        default=[],
        help=what,
    )


def columns(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def table_path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("is empty: give the table's folder")
    return text


def assignment(text: str) -> tuple[str, str]:
    """`KEY=VALUE`; the value may be empty."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("is not KEY=VALUE")  # without the text: it may be a secret
    return name, value


def _limit(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)
