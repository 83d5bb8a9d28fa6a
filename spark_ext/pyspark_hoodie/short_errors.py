"""Short errors for users: Spark quotes whole tracebacks, which hoodie's messages do not need."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from hoodie.errors import HoodieError

P = ParamSpec("P")
R = TypeVar("R")


def short_errors(method: Callable[P, R]) -> Callable[P, R]:
    """The method, whose errors of ours come without the frames in which they were found."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except HoodieError as error:
            raise error.with_traceback(None) from None

    return call
