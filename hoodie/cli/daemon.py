"""The command `services`: runs due services of one or several tables, round after round, until a signal ends it.

SIGINT and SIGTERM end it after the pieces of work that have begun, a second signal at once. It survives what may pass: a storage that
cannot be reached, a table that is deleted and made anew, a lock that is held. So each round opens its table anew.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from types import FrameType
from typing import Any

from hoodie.cli.arguments import Commands, add_options, duration, table_path
from hoodie.cli.report import harmless_json
from hoodie.engine.local import LocalEngine
from hoodie.errors import harmless
from hoodie.model.results import format_count
from hoodie.model.service_results import ServiceRound
from hoodie.options.defaults_file import load_defaults
from hoodie.options.parse import parse_write_options
from hoodie.options.write import WriteOptions
from hoodie.services.job import ServicesJob
from hoodie.storage.uri import open_storage
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext

DONE, FAILED = 0, 1

ALIVE_EVERY_S = 3600.0
"""A table on which nothing is due gets a line so often, so that one sees that the job lives."""
_LOOK_S = 0.2
"""A signal is answered while the main thread waits for so long at a time."""


def register(to: Commands) -> None:
    text = "compact, clean and archive tables beside their writers, round after round"
    added = to.add_parser("services", help=text, description=text)
    added.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        type=table_path,
        help="a table's folder, or its URI; several are served at the same time",
    )
    added.add_argument(
        "--every", metavar="TIME", type=duration, default=300.0, help="time from round to round: 90s, 5m (default), 1h"
    )
    added.add_argument(
        "--budget",
        metavar="TIME",
        type=duration,
        default=120.0,
        help="a round starts no more work after this time (default 2m)",
    )
    added.add_argument("--once", action="store_true", help="one round over each table, then end: for cron")
    add_options(added)
    added.set_defaults(alone=serve)


def serve(args: argparse.Namespace, options: Mapping[str, str], reached_by: Mapping[str, str]) -> int:
    """Serve the tables; gives the exit status.

    Raises:
        OptionError: an option makes no sense.
    """
    parse_write_options(options, defaults=load_defaults())  # what is wrong with them is said now, and not once a round
    printer = _Printer(as_json=args.json)
    jobs = [
        ServicesJob(
            partial(_open, path, reached_by, options),
            uri=path,
            every_s=args.every,
            budget_s=args.budget,
            on_round=partial(printer.tell, every=args.once),
        )
        for path in dict.fromkeys(args.paths)
    ]
    with _signals(jobs, printer) as has_ended:
        if args.once:
            return _once(jobs, has_ended)
        tables = format_count(len(jobs), "table")
        printer.say(
            f"serving {tables}, every {args.every:g} s", {"event": "began", "tables": [*dict.fromkeys(args.paths)]}
        )
        for job in jobs:
            job.start()
        for job in jobs:
            while job.is_running:
                job.join(_LOOK_S)
    printer.say("ended", {"event": "ended"})
    return DONE


def _once(jobs: Sequence[ServicesJob], has_ended: Callable[[], bool]) -> int:
    failed = False
    for job in jobs:
        if has_ended():
            break
        failed = bool(job.run_once().errors) or failed
    return FAILED if failed else DONE


def _open(path: str, reached_by: Mapping[str, str], options: Mapping[str, str]) -> tuple[TableContext, WriteOptions]:
    """The table as it is now, by the credentials of now."""
    context = TableContext.open(open_storage(path, reached_by), LocalEngine())
    return HoodieTable(context, options)._at_work()


@contextmanager
def _signals(jobs: Sequence[ServicesJob], printer: _Printer) -> Any:
    """The first signal ends the jobs after what they are at, the second one the process; gives whether there was one."""
    count = 0

    def end(number: int, _: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            os._exit(FAILED)  # as if it was killed: whoever comes next goes on from there
        for job in jobs:
            job.ask_to_stop()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: count > 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Printer:
    """One line for each round that did something, or in which something began or ceased to fail; and a sign of life."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._lock = Lock()
        self._last_print: dict[str, tuple[float, int, frozenset[str]]] = {}
        """Table -> when its last line was, rounds since, and the services that were failing then."""

    def tell(self, round_: ServiceRound, *, every: bool) -> None:
        now_s = time.monotonic()
        printed_at_s, quiet, failing = self._last_print.get(round_.uri, (now_s, 0, frozenset()))
        fails = frozenset(run.service for run in round_.errors)
        if round_.did or fails != failing or every:
            self._last_print[round_.uri] = now_s, 0, fails
            self.say(str(round_), {"event": "round", **round_.data()})
        elif now_s - printed_at_s >= ALIVE_EVERY_S:
            self._last_print[round_.uri] = now_s, 0, fails
            rounds = format_count(quiet + 1, "round")
            state = f"{', '.join(sorted(fails))} still failing" if fails else "nothing to do"
            data = {"event": "alive", "table": round_.uri, "rounds": quiet + 1, "failing": sorted(fails)}
            self.say(f"services of {round_.uri}: {state} in {rounds}", data)
        else:
            self._last_print[round_.uri] = printed_at_s, quiet + 1, fails

    def say(self, text: str, data: Mapping[str, Any]) -> None:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = harmless_json({"at": at, **data}) if self._as_json else harmless(f"{at} {text}")
        with self._lock:
            try:
                print(line, file=sys.stdout, flush=True)
            except BrokenPipeError:  # nobody reads it any more; the work goes on
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
