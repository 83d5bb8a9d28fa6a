"""A TCP proxy on 127.0.0.1 whose connections a test can cut, and let come back; by chance it cuts one by itself."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from random import Random
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards to a port of this machine. `cut` ends every connection and refuses new ones until `mend`."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.delay_s = 0.0
        """How late everything comes."""
        self.later: tuple[bytes, float] | None = None
        """Set: messages with these bytes in them come later by so many seconds."""
        self.chance: Random | None = None
        """Set: one in `one_in` messages, in either direction, ends its connection and does not arrive."""
        self.one_in = 50
        self.lost = 0
        """Messages that did not arrive."""
        self._is_cut = False
        self._mutex = threading.Lock()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        # A thread that waits in accept() keeps the port: woken first.
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def cut(self) -> None:
        with self._mutex:
            self._is_cut = True
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        with self._mutex:
            self._is_cut = False

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            with self._mutex:
                if self._is_cut:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self._target_port))
                except OSError:
                    client.close()
                    continue
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(source, target), name="proxy", daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                is_late = self.later is not None and self.later[0] in data
                time.sleep(self.delay_s + (self.later[1] if self.later is not None and is_late else 0.0))
                if self.chance is not None and not self.chance.randrange(self.one_in):
                    self.lost += 1
                    break
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._mutex:
            self._open -= {source}
        source.close()
