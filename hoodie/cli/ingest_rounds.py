"""Rounds of an ingestion, told as they end."""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import asdict
from types import FrameType
from typing import Any

from hoodie.cli.report import harmless_json
from hoodie.errors import harmless
from hoodie.ingestion.ingest import ingest
from hoodie.model.ingest_results import IngestRound

DONE = 0


def run_rounds(args: argparse.Namespace, source: str, target: str, **arguments: Any) -> int:
    """Ingest, with the arguments of `hoodie.ingest` and those that both command lines have; gives the exit status."""

    def tell(done: IngestRound) -> None:
        print(harmless_json(asdict(done)) if args.json else harmless(str(done)), flush=True)

    if args.continuous:
        signal.signal(signal.SIGTERM, _end)
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
    if not result.rounds and not args.json:
        print("nothing new")
    return DONE


def _end(number: int, _: FrameType | None) -> None:
    """Whatever a round is doing: one that is not committed is not there, and the next call goes on behind the last one."""
    sys.exit(DONE)
