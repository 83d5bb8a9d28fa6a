"""A timeline server in this process: a thread that takes requests, and some that answer them.

The HTTP is waitress's: a loop reads requests whole before a thread gets one, so that a slow or silent client holds none, and sizes,
connections and idle time are bounded.

A client that sends a byte now and then is never idle. So a request has a deadline for all of it, and those who have not shown the
token have few places: of too many the one that came first goes. A client that sends its request at once is never in the way of it.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Lock, Thread
from types import TracebackType
from typing import Any

from hoodie.engine.local import LocalEngine
from hoodie.errors import HoodieError, OptionError
from hoodie.options.values import ViewStore
from hoodie.options.view import ViewOptions
from hoodie.storage.uri import open_storage
from hoodie.timeline_server.requests import MAX_BODY_BYTES, Requests, has_token
from hoodie.timeline_server.tables import ServedTable
from hoodie.view.context import TableContext

HEAD_S = 10.0
"""For the first request of a connection: until its head is whole, nobody knows whether the client has the token."""
REQUEST_S = 60.0
"""For the others."""
MOST_STRANGERS = 128


def channel_class(base: type[Any], knows: Callable[[str], bool], now_s: Callable[[], float]) -> type[Any]:
    """The connections of a server; `base` is waitress's, and `knows` says whether an authorization is the token."""

    class Channel(base):  # type: ignore[misc] # waitress is an optional extra, without types
        is_known = False
        request: Any

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self.waits_since_s = now_s()
            send_away(self.server.active_channels.values())

        def received(self, data: bytes) -> bool:
            begins = self.request is None
            if begins:
                self.request = self.parser_class(self.adj)
            request = self.request  # a thread may have taken it, and be done with it, when `received` returns
            result = bool(super().received(data))
            if begins or self.request is not request:
                self.waits_since_s = now_s()
            if not self.is_known and request.headers_finished:
                self.is_known = knows(request.headers.get("AUTHORIZATION", ""))
            return result

    return Channel


def send_away(channels: Iterable[Any]) -> None:
    """Close connections of strangers, beyond as many as have a place. `channels`: in the order in which they came."""
    strangers = [each for each in channels if not (each.is_known or each.will_close or each.requests)]
    for each in strangers[: max(0, len(strangers) - MOST_STRANGERS)]:
        each.will_close = True


def close_late(channels: Iterable[Any], now_s: float) -> None:
    """Close connections whose request is not whole after so long; waitress closes those that are idle."""
    for each in list(channels):
        waits = not each.requests and (each.request is not None or not each.is_known)
        if waits and now_s - each.waits_since_s > (REQUEST_S if each.is_known else HEAD_S):
            each.will_close = True


log = logging.getLogger("hoodie")

STORES: Mapping[str, ViewStore] = {
    "memory": ViewStore.MEMORY,
    "spillable": ViewStore.SPILLABLE_DISK,
    "rocksdb": ViewStore.EMBEDDED_KV_STORE,
}
LOOPBACK = "127.0.0.1"
_THREADS = 8
_MAX_HEADER_BYTES = 256 << 10
"""A question for the files of a range of commits names all of them in its address."""
_MAX_CONNECTIONS = 1000
_IDLE_S = 60
_LOOK_S = 1.0
_TOKEN_BYTES = 24


def start(
    uri: str | os.PathLike[str],
    store: str = "memory",
    *,
    storage_options: Mapping[str, str] | None = None,
    host: str = LOOPBACK,
    port: int = 0,
    token: str | None = None,
) -> TimelineServer:
    """Start a timeline server for a table; stop it by `.stop()`, or by leaving a `with` block.

    Args:
        store: what keeps the files that are known: "memory", "spillable" (bounded memory, the rest in a file) or "rocksdb".
        host: the address to listen on. Others than this machine reach an address of its network, such as the driver's.
        port: 0: one that is free.
        token: what clients have to show; None: a new one. An empty text lets in everybody on this machine, and needs a loopback
            address as `host`.

    Raises:
        TableNotFoundError: there is no table. OptionError: waitress or what the store needs is not installed, or `store`, `host`
        or `token` make no sense. HoodieError: the port is taken.
    """
    if store not in STORES:
        raise OptionError(f"store={store!r} is not one of {', '.join(STORES)}")
    storage = open_storage(uri, storage_options)
    context = TableContext.open(storage, LocalEngine(1), view=ViewOptions(follows=True, type=STORES[store]))
    return serve(context, host=host, port=port, token=token)


def serve(
    context: TableContext,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    token: str | None = None,
    threads: int = _THREADS,
    now_s: Callable[[], float] = time.monotonic,
) -> TimelineServer:
    """The same for an open table, whose views may follow the timeline or list."""
    waitress_server = _waitress()
    channels: dict[int, Any] = {}
    own_token = secrets.token_urlsafe(_TOKEN_BYTES) if token is None else token
    listening = _listening(host, port, needs_token=bool(own_token))
    try:
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a short queue is no news beside many clients
        server = waitress_server.create_server(
            Requests(ServedTable(context), own_token),
            map=channels,
            sockets=[listening],
            threads=threads,
            ident="hoodie",
            max_request_header_size=_MAX_HEADER_BYTES,
            max_request_body_size=MAX_BODY_BYTES,
            connection_limit=_MAX_CONNECTIONS,
            backlog=_MAX_CONNECTIONS,
            channel_timeout=_IDLE_S,
            clear_untrusted_proxy_headers=True,
        )
        knows = partial(has_token, token=own_token) if own_token else lambda _: True
        server.channel_class = channel_class(server.channel_class, knows, now_s)
    except BaseException:
        listening.close()
        raise
    return TimelineServer(server, channels, context.storage.uri, host, listening.getsockname()[1], own_token, now_s)


class TimelineServer:
    """A server that is running."""

    def __init__(
        self,
        server: Any,
        channels: dict[int, Any],
        uri: str,
        host: str,
        port: int,
        token: str,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`channels`: what the server waits for, by the numbers of their files."""
        self._server = server
        self._channels = channels
        self._now_s = now_s
        self._lock = Lock()
        self._has_stopped = False
        self.uri = uri
        """The table."""
        self.host = host
        self.port = port
        self.token = token
        """Empty where none is needed."""
        self._thread = Thread(target=self._run, name=f"hoodie-timeline-server-{port}", daemon=True)
        self._thread.start()
        log.info("the timeline server of table %s listens at %s", uri, self.address)

    def _run(self) -> None:
        loop = self._server.asyncore.loop
        while not self._has_stopped:
            # By poll(): select() knows no more than 1024 files of a process.
            loop(timeout=_LOOK_S, map=self._channels, use_poll=True, count=1)
            close_late(self._server.active_channels.values(), self._now_s())
        wakes, workers = self._server.trigger, self._server.task_dispatcher
        for each in list(self._channels.values()):
            if each is self._server:
                self._server.asyncore.dispatcher.close(each)  # its own `close` takes what wakes the loop along
            elif each is not wakes:
                each.close()
        workers.shutdown()
        # Who answers a request wakes the loop at its end by writing to a file. By then that must be no other one.
        if not workers.threads:
            with self._lock:
                wakes.close()

    def __repr__(self) -> str:
        return f"<TimelineServer of {self.uri} at {self.address}>"

    @property
    def address(self) -> str:
        """`http://host:port`."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}"

    @property
    def options(self) -> dict[str, str]:
        """What a job of ours, or of Apache Hudi, is given to ask this server first: the token is in the name of the host."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return {
            "hoodie.filesystem.view.type": ViewStore.REMOTE_FIRST.value,
            "hoodie.filesystem.view.remote.host": f"hoodie:{self.token}@{name}" if self.token else name,
            "hoodie.filesystem.view.remote.port": str(self.port),
        }

    def stop(self) -> None:
        """Take no more requests, and let go of the port. Requests that are being answered may get no answer. May be called twice."""
        with self._lock:
            if self._has_stopped:
                return
            self._has_stopped = True
            self._server.pull_trigger()
        self._thread.join()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until it has stopped."""
        self._thread.join(timeout_s)

    def __enter__(self) -> TimelineServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _listening(host: str, port: int, *, needs_token: bool) -> socket.socket:
    if not 0 <= port < 1 << 16:
        raise OptionError(f"port={port} is not a port: give a number below 65,536, or 0 for a free one")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as exc:
        raise OptionError(f"host={host!r} is not an address of this machine: {exc}") from exc
    if not needs_token and not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        raise OptionError(
            f"a timeline server without a token would tell everybody who reaches {host} the files of the table, and let them delete "
            f"markers: give it a token, or host={LOOPBACK!r}"
        )
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as exc:
        listening.close()
        raise HoodieError(
            f"the timeline server cannot listen at {host}, port {port}: {exc}; choose another port, or 0 for one that is free"
        ) from exc
    return listening


def _waitress() -> Any:
    try:
        from waitress import server  # noqa: PLC0415 - an optional extra
    except ImportError as exc:
        raise OptionError(
            "the timeline server needs the package waitress: install hoodie with the extra `timeline-server`"
        ) from exc
    return server
