"""An HTTP proxy on 127.0.0.1 that counts requests by kind, answers late, and fails the ones that a test names."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from socket import SHUT_RDWR
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from tests.servers.paging import short_page
from tests.servers.s3 import S3Server


class Failing(Enum):
    """What becomes of a request."""

    BUSY = auto()
    """503, and nothing happened."""
    CONFLICT = auto()
    """S3's 409 for a put on condition beside another one: nothing happened, and the client is to try again."""
    ABORTED = auto()
    """S3's 409 for any change of a name beside another one: nothing happened."""
    RESET = auto()
    """The connection ends, and nothing happened."""
    LOST_ANSWER = auto()
    """The connection ends after the server did it."""
    BUSY_AFTER = auto()
    """503 after the server did it."""
    ERROR = auto()
    """500, and nothing happened."""
    DENIED = auto()
    """403: these credentials may not do that."""
    EXPIRED = auto()
    """400, as S3 says that a token's time is over."""
    SKEWED = auto()
    """403, as S3 says that the client's clock is wrong."""
    FULL = auto()
    """507: the server has no room left."""
    SILENT = auto()
    """The server did it, and no answer comes, however long the client waits."""


PASSING = (Failing.BUSY, Failing.RESET, Failing.LOST_ANSWER, Failing.BUSY_AFTER, Failing.ERROR)
"""What any request can meet, and its next try need not meet."""
_ANSWERS = {
    Failing.BUSY: (503, b"<Error><Code>SlowDown</Code></Error>"),
    Failing.BUSY_AFTER: (503, b"<Error><Code>SlowDown</Code></Error>"),
    Failing.CONFLICT: (409, b"<Error><Code>ConditionalRequestConflict</Code></Error>"),
    Failing.ABORTED: (409, b"<Error><Code>OperationAborted</Code></Error>"),
    Failing.ERROR: (500, b"<Error><Code>InternalError</Code></Error>"),
    Failing.DENIED: (403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"),
    Failing.EXPIRED: (
        400,
        b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>",
    ),
    Failing.SKEWED: (403, b"<Error><Code>RequestTimeTooSkewed</Code><Message>Too large.</Message></Error>"),
    Failing.FULL: (507, b"<Error><Code>InsufficientStorage</Code></Error>"),
}
_AFTER = {Failing.LOST_ANSWER, Failing.BUSY_AFTER, Failing.SILENT}
WRITES = frozenset({"PUT", "POST", "PART", "UPLOAD", "DELETE", "DELETES"})
"""Kinds of requests that change something."""
_OUR_OWN = {"transfer-encoding", "connection", "content-length"}
_NOT_PASSED_ON = {"transfer-encoding", "expect"}
"""Of a request: its body is here as a whole when it is passed on."""


class _Planned(NamedTuple):
    kind: str
    failing: Failing


class _From(NamedTuple):
    number: int
    failing: Failing
    kinds: frozenset[str] | None


class HttpProxy:
    """Kinds of requests: the method, and `LIST`, `PART` (of a large upload), `UPLOAD` (its begin and end), `DELETES` (of many)."""

    def __init__(self, target: str) -> None:
        self.delay_s = 0.0
        self.chance: Random | None = None
        """Set: every tenth request, by chance, meets something that passes."""
        self.passing: tuple[Failing, ...] = PASSING
        """What that may be."""
        self.page_keys: int | None = None
        """Set: listings come in pages of so many keys, the client being `S3Server`'s."""
        self.failed = 0
        """Requests that did."""
        self._target = urlsplit(target)
        self._counted: Counter[str] = Counter()
        self._planned: list[_Planned] = []
        self._failing_from: _From | None = None
        self._mutex = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self._pass_on))
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="http-proxy", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fail_next(self, kind: str, failing: Failing, *, times: int = 1) -> None:
        """What becomes of the next requests of this kind."""
        with self._mutex:
            self._planned += [_Planned(kind, failing)] * times

    def fail_from(self, number: int, failing: Failing, *, kinds: frozenset[str] | None = None) -> None:
        """From the request of this number on, counted from 0, all fail; of some kinds only, if so told."""
        with self._mutex:
            self._failing_from = _From(number, failing, kinds)

    def heal(self) -> None:
        """Nothing fails any more."""
        with self._mutex:
            self._failing_from, self.chance = None, None
            self._planned.clear()

    def counted(self) -> dict[str, int]:
        """Requests by kind since this was asked last."""
        with self._mutex:
            counted, self._counted = self._counted, Counter()
        return dict(counted)

    def _pass_on(self, request: BaseHTTPRequestHandler) -> None:
        body = _body_of(request)
        kind = _kind(request)
        with self._mutex:
            self._counted[kind] += 1
            failing = self._fate(kind, request)
            self.failed += failing is not None
        time.sleep(self.delay_s)
        if failing is None or failing in _AFTER:
            status, headers, data = self._ask(request, body)
        if failing in _ANSWERS:
            status, data = _ANSWERS[failing]
            headers = [("content-length", str(len(data)))]
        elif failing is not None:
            request.close_connection = True
            if failing is Failing.SILENT:
                with suppress(OSError):
                    request.connection.recv(1)  # until the client ends it
            with suppress(OSError):
                request.connection.shutdown(SHUT_RDWR)
            return
        request.send_response(status)
        for name, value in headers:
            request.send_header(name, value)
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(data)

    def _fate(self, kind: str, request: BaseHTTPRequestHandler) -> Failing | None:
        planned = next((each for each in self._planned if each.kind == kind and _is_possible(each, request)), None)
        if planned is not None:
            self._planned.remove(planned)
            return planned.failing
        later = self._failing_from
        if later is not None:
            if later.number:
                self._failing_from = later._replace(number=later.number - 1)
            elif later.kinds is None or kind in later.kinds:
                return later.failing
        if self.chance is not None and not self.chance.randrange(10):
            return self.chance.choice(self.passing)
        return None

    def _ask(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self._target.hostname or "", self._target.port)
        try:
            path, given = request.path, dict(request.headers.items())
            if self.page_keys is not None and _kind(request) == "LIST":
                path, given = short_page(path, given, S3Server(self.endpoint).options, self.page_keys)
            # The host stays the one that the client has signed.
            connection.putrequest(request.command, path, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                if name.lower() not in _NOT_PASSED_ON:
                    connection.putheader(name, value)
            if "content-length" not in request.headers and body:
                connection.putheader("content-length", str(len(body)))
            connection.endheaders(body or None)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in _OUR_OWN]
        size = answer.getheader("content-length", "0") if request.command == "HEAD" else str(len(data))
        return answer.status, [*headers, ("content-length", size)], data


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients end connections as they like."""


def _handler(act: Callable[[BaseHTTPRequestHandler], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else the body of a small answer waits 40 ms for the receipt of its head

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

        def do_GET(self) -> None:
            act(self)

        do_PUT = do_POST = do_HEAD = do_DELETE = do_GET

    return Handler


def _body_of(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("transfer-encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("content-length") or 0))
    body = bytearray()
    while size := int(request.rfile.readline().split(b";")[0], 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    while request.rfile.readline().strip():
        """A trailer."""
    return bytes(body)


def _is_possible(planned: _Planned, request: BaseHTTPRequestHandler) -> bool:
    has_condition = any(name in request.headers for name in ("if-match", "if-none-match"))
    return has_condition or planned.failing is not Failing.CONFLICT


def _kind(request: BaseHTTPRequestHandler) -> str:
    query = request.path.partition("?")[2]
    for part, kind in (("list-type", "LIST"), ("partNumber", "PART"), ("upload", "UPLOAD"), ("delete", "DELETES")):
        if part in query:
            return kind
    return request.command
