"""A timeline server that starts and stops with the writes of this process."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from hoodie.options.view import EmbeddedOptions
from hoodie.timeline_server.server import TimelineServer, serve
from hoodie.view.context import TableContext


@dataclass
class _Running:
    server: TimelineServer
    users: int = 0


_running: dict[Hashable, _Running] = {}
_lock = Lock()


@contextmanager
def embedded(context: TableContext, options: EmbeddedOptions) -> Iterator[TimelineServer | None]:
    """Serve the table as long as the block runs, if the options say so. Writes of one table at the same time share a server.

    Raises:
        OptionError: waitress is not installed. HoodieError: the port is taken.
    """
    if not options.starts:
        yield None
        return
    key = (context.storage.identity, options)
    with _lock:
        running = _running.get(key)
        if running is None:
            server = serve(context, port=options.port, token=options.token)
            running = _running[key] = _Running(server)
        running.users += 1
    try:
        yield running.server
    finally:
        with _lock:
            running.users -= 1
            if running.users == 0:
                del _running[key]
                running.server.stop()
