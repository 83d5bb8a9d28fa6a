"""A timeline server that starts and stops with the writes of this process."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from hoodie.errors import HoodieError
from hoodie.options.view import EmbeddedOptions
from hoodie.timeline_server.server import TimelineServer, serve
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


@dataclass
class _Running:
    server: TimelineServer
    users: int = 0


_running: dict[Hashable, _Running] = {}
_lock = Lock()


@contextmanager
def embedded(context: TableContext, options: EmbeddedOptions) -> Iterator[TimelineServer | None]:
    """Serve the table as long as the block runs, if the options say so. Writes of one table at the same time share a server.

    One that cannot be started is a warning: nothing of the write depends on it, and in jobs of Apache Hudi the option is common.
    """
    if not options.starts:
        yield None
        return
    key = (context.storage.identity, options)
    try:
        server = _server_of(key, context, options)
    except HoodieError as exc:
        log.warning("%s; the write goes on without the timeline server", exc)
        yield None
        return
    try:
        yield server
    finally:
        _let_go(key)


def _server_of(key: Hashable, context: TableContext, options: EmbeddedOptions) -> TimelineServer:
    with _lock:
        running = _running.get(key)
        if running is None:
            running = _running[key] = _Running(serve(context, port=options.port, token=options.token))
        running.users += 1
        return running.server


def _let_go(key: Hashable) -> None:
    with _lock:
        running = _running[key]
        running.users -= 1
        if running.users == 0:
            del _running[key]
            running.server.stop()
