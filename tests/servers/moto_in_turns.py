"""`python moto_in_turns.py PORT`: moto's server, which answers DynamoDB's requests one after the other.

moto looks at a condition first and writes then; DynamoDB does both in one step.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def in_turns(app: Application) -> Application:
    turn = threading.Lock()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB_"):
            return app(environ, start)
        with turn:
            return list(app(environ, start))

    return answer


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        in_turns(DomainDispatcherApplication(create_backend_app)),
        threaded=True,
        request_handler=WSGIRequestHandler,
    )
