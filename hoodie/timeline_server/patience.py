"""How long, and for how many at once, a server waits for requests that are not whole yet.

A client that sends a byte now and then is never idle. So a request has a deadline for all of it, and those who have not shown the
token have few places: of too many the one that came first goes. A client that sends its request at once is never in the way of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

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
