"""Rounds of an ingestion, told as they end: on a terminal in one line, elsewhere a line each."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from types import FrameType
from typing import Any

from hoodie.cli.report import harmless_json
from hoodie.engine.progress import BAR, shown_as
from hoodie.errors import harmless
from hoodie.ingestion.ingest import ingest
from hoodie.model.ingest_results import IngestRound
from hoodie.model.results import format_count

DONE = 0
_CLEAR = "\r\x1b[K"


def run_rounds(args: argparse.Namespace, source: str, target: str, **arguments: Any) -> int:
    """Ingest, with the arguments of `hoodie.ingest` and those that both command lines have; gives the exit status."""
    lines = RoundLines(one_line=not args.json and sys.stdout.isatty() and shown_as() == BAR)

    def tell(result: IngestRound) -> None:
        if args.json:
            print(harmless_json(asdict(result)), flush=True)
        elif not args.quiet:
            lines.show(result)

    if args.continuous:
        signal.signal(signal.SIGTERM, _end)
    try:
        result = ingest(
            source,
            target,
            name=args.name,
            quarantine=not args.strict,
            continuous=args.continuous,
            dry_run=args.dry_run,
            on_round=tell,
            **arguments,
        )
    finally:
        lines.close()
    if not result.rounds and not args.json and not args.quiet:
        print("nothing new")
    return DONE


class RoundLines:
    """Prints rounds as they end. Where somebody watches, one line stands for all of them, and is written over."""

    def __init__(self, *, one_line: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._one_line = one_line
        self._clock = clock
        self._began_s = clock()
        self._rounds = self._rows = self._pieces = self._bad = 0

    def show(self, result: IngestRound) -> None:
        self._rounds += 1
        self._rows += result.rows
        self._pieces += result.pieces
        self._bad += result.bad
        if self._one_line:
            width = shutil.get_terminal_size().columns - 1
            print(f"{_CLEAR}{harmless(self._line(result))[:width]}\r", end="", flush=True)
        else:
            print(harmless(str(result)), flush=True)

    def _line(self, result: IngestRound) -> str:
        seconds = self._clock() - self._began_s
        parts = [format_count(self._rows, "row"), f"{self._rows / seconds if seconds else 0:,.0f} rows/s"]
        parts += [format_count(self._bad, "bad record")] if self._bad else []
        lag = f"{format_count(result.waiting, 'piece')} waiting" if result.waiting else "up to date"
        counted = (
            f"{format_count(self._rounds, 'round')}, {format_count(self._pieces, 'piece')}: {', '.join(parts)}; {lag}"
        )
        return f"{counted}; at {result.checkpoint}" if result.checkpoint else counted

    def close(self) -> None:
        """Leave the line standing."""
        if self._one_line and self._rounds:
            print(flush=True)


def _end(number: int, _: FrameType | None) -> None:
    """Whatever a round is doing: one that is not committed is not there, and the next call goes on behind the last one."""
    sys.exit(DONE)
