"""Python functions that hoodie's Java code calls: their errors reach the user's call unchanged."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

_TOKEN = re.compile(r"hoodie-call-\d+")
_MOST_KEPT = 16
_numbers = itertools.count()
_failures: dict[str, Exception] = {}


class Callback:
    """A `java.util.function.Function`: what it is given is an array, of which the first says what is wanted."""

    def __init__(self, answers: Callable[[str, Sequence[Any]], Any]) -> None:
        self._answers = answers

    def apply(self, question: Any) -> Any:
        what, *arguments = question
        try:
            return self._answers(what, arguments)
        except Exception as error:
            token = f"hoodie-call-{next(_numbers)}"
            _failures[token] = error
            for old in list(_failures)[:-_MOST_KEPT]:
                del _failures[old]
            raise CallbackError(token) from error

    class Java:
        implements = ("java.util.function.Function",)


class CallbackError(Exception):
    """Carries the name of an error through the JVM."""


class _Quiet(logging.Filter):
    """py4j logs each error that a callback raises, with its trace, and the user gets it anyway."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], CallbackError))


logging.getLogger("py4j.clientserver").addFilter(_Quiet())


def failure_in(text: str) -> Exception | None:
    """The error of Python that an exception of the JVM stands for."""
    match = _TOKEN.search(text)
    return None if match is None else _failures.pop(match[0], None)
