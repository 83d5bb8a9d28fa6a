"""HTTP to a timeline server: connections that are used again, retries with growing pauses, and an end to every wait."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from hoodie.errors import OptionError
from hoodie.options.view import RemoteOptions

log = logging.getLogger("hoodie")

_CONNECTIONS = 8
_CONNECT_S = 5.0
"""A machine that does not answer at all is given up sooner than one that works on an answer."""
_RETRIED = (502, 503, 504)
_UNKNOWN = (404, 405)
_MAX_ANSWER_BYTES = 1 << 30
_CHUNK = 1 << 16
_MOST_SHOWN = 300


class NoAnswerError(Exception):
    """Why there is no answer of use."""


class _MayPassError(NoAnswerError):
    """The same request may be answered a moment later."""


class UnknownPathError(NoAnswerError):
    """The server does not know what it was asked for: it is another kind of server."""


class RemoteClient:
    """Thread-safe. Retries send a request again that may have been carried out: each may be, twice."""

    def __init__(self, options: RemoteOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        """Raises OptionError: urllib3 is not installed."""
        self._urllib3: Any = _urllib3()
        self._timeout_s = options.timeout_s
        self.address = f"{options.host}:{options.port}"
        self._options = options
        self._sleep = sleep
        self._pool = self._urllib3.HTTPConnectionPool(
            options.host, options.port, maxsize=_CONNECTIONS, headers={"Accept": "application/json"}
        )
        if options.token:
            self._pool.headers = {**self._pool.headers, "Authorization": f"Bearer {options.token}"}

    def get(self, path: str, params: Mapping[str, str]) -> object:
        """Raises NoAnswerError."""
        return self._request("GET", path, params, None)

    def post(self, path: str, params: Mapping[str, str], body: bytes = b"") -> object:
        """Raises NoAnswerError."""
        return self._request("POST", path, params, body)

    def _request(self, method: str, path: str, params: Mapping[str, str], body: bytes | None) -> object:
        target = f"{path}?{urlencode(params, errors='surrogatepass')}"
        until_s = time.monotonic() + self._timeout_s
        pause_s = self._options.first_pause_s
        for retries in range(self._options.retries, -1, -1):
            try:
                return self._tried(method, target, body, until_s)
            except _MayPassError as exc:
                if retries == 0 or time.monotonic() + pause_s >= until_s:
                    raise
                log.debug("the timeline server %s is asked again after %g s: %s", self.address, pause_s, exc)
            self._sleep(pause_s)
            pause_s = min(pause_s * 2, self._options.max_pause_s)
        raise AssertionError("unreachable")

    def _tried(self, method: str, target: str, body: bytes | None, until_s: float) -> object:
        left_s = max(until_s - time.monotonic(), 0.001)
        timeout = self._urllib3.Timeout(connect=min(_CONNECT_S, left_s), read=left_s)
        try:
            response = self._pool.urlopen(
                method, target, body=body, retries=False, redirect=False, timeout=timeout, preload_content=False
            )
            try:
                data = self._body(response, until_s)
            except BaseException:
                response.close()  # what is left of the answer must not be taken for the next one
                raise
            response.release_conn()
        except (self._urllib3.exceptions.HTTPError, OSError, ValueError) as exc:
            raise _MayPassError(str(exc)[:_MOST_SHOWN]) from exc
        if response.status != 200:
            message = data[:_MOST_SHOWN].decode("utf-8", "replace")
            kind = _MayPassError if response.status in _RETRIED else NoAnswerError
            raise (UnknownPathError if response.status in _UNKNOWN else kind)(f"status {response.status}: {message}")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as exc:
            raise NoAnswerError(f"its answer is not JSON: {exc}") from exc

    def _body(self, response: Any, until_s: float) -> bytes:
        """All of it, unless it is endless, or comes a byte at a time."""
        chunks, size = [], 0
        for chunk in response.stream(_CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if size > _MAX_ANSWER_BYTES:
                raise NoAnswerError(f"its answer is larger than {_MAX_ANSWER_BYTES:,} bytes")
            if time.monotonic() > until_s:
                raise NoAnswerError(f"its answer was not complete after {self._timeout_s:g} s")
        return b"".join(chunks)


def _urllib3() -> Any:
    try:
        import urllib3  # noqa: PLC0415 - an optional extra
    except ImportError as exc:
        raise OptionError(
            "a timeline server is asked by the package urllib3: install hoodie with the extra `timeline-server`, or leave out "
            "hoodie.filesystem.view.type"
        ) from exc
    return urllib3
