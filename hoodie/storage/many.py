"""Many calls at once, where each waits for an answer from far away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def for_each(act: Callable[[T], Any], items: Iterable[T], *, at_once: int) -> None:
    """`act` on each, so many at once; all have ended when it returns.

    Raises:
        What the first of them raised, in the order of `items`.
    """
    found = list(items)
    if min(len(found), at_once) <= 1:
        for item in found:
            act(item)
        return
    with ThreadPoolExecutor(min(at_once, len(found)), thread_name_prefix="hoodie-storage") as pool:
        for future in [pool.submit(act, item) for item in found]:
            future.result()
