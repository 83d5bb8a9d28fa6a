"""The command `timeline-server`: answers for one table until a signal ends it."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Mapping
from types import FrameType

from hoodie.cli.arguments import Commands, add_options, table_path
from hoodie.timeline_server import TimelineServer, start
from hoodie.timeline_server.server import LOOPBACK, STORES

DONE = 0
_LOOK_S = 0.2
"""A signal is answered while the main thread waits for so long at a time."""


def register(to: Commands) -> None:
    text = "tell readers and writers which files a table has, by following its timeline"
    added = to.add_parser("timeline-server", help=text, description=text)
    added.add_argument("path", metavar="PATH", type=table_path, help="the table's folder, or its URI")
    added.add_argument(
        "--port", metavar="N", type=int, default=0, help="where to listen (default: a port that is free)"
    )
    added.add_argument(
        "--host",
        metavar="H",
        default=LOOPBACK,
        help=f"the address to listen on (default {LOOPBACK}: this machine only)",
    )
    added.add_argument(
        "--store", metavar="S", choices=STORES, default="memory", help=f"what keeps the files: {', '.join(STORES)}"
    )
    added.add_argument(
        "--token",
        metavar="T",
        help="the token of clients; empty: none, on this machine only (default: a new one, printed)",
    )
    add_options(added)
    added.set_defaults(alone=serve)


def serve(args: argparse.Namespace, options: Mapping[str, str], reached_by: Mapping[str, str]) -> int:
    """Serve the table; gives the exit status.

    Raises:
        HoodieError: as `hoodie.timeline_server.start`.
    """
    server = start(args.path, args.store, storage_options=reached_by, host=args.host, port=args.port, token=args.token)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    with server:
        print(_greeting(server, as_json=args.json), flush=True)
        ended = False

        def end(number: int, frame: FrameType | None) -> None:
            nonlocal ended
            ended = True

        before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not ended:
                server.join(_LOOK_S)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return DONE


def _greeting(server: TimelineServer, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"address": server.address, "token": server.token, "table": server.uri})
    lines = [server.address, "", "Options for jobs that ask it:"]
    return "\n".join([*lines, *(f"  {name}={value}" for name, value in server.options.items())])
