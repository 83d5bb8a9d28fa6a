"""Many calls at once, where each waits for an answer from far away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar, overload

from hoodie.storage.capabilities import Capabilities

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")


class _TakesMany(Protocol):
    can: Capabilities


@overload
def together(storage: _TakesMany, first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]: ...
@overload
def together(
    storage: _TakesMany, first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], /
) -> tuple[A, B, C]: ...
@overload
def together(
    storage: _TakesMany,
    first: Callable[[], A],
    second: Callable[[], B],
    third: Callable[[], C],
    fourth: Callable[[], D],
    /,
) -> tuple[A, B, C, D]: ...
@overload
def together(
    storage: _TakesMany,
    first: Callable[[], A],
    second: Callable[[], B],
    third: Callable[[], C],
    fourth: Callable[[], D],
    fifth: Callable[[], E],
    /,
) -> tuple[A, B, C, D, E]: ...
def together(storage: _TakesMany, first: Callable[[], Any], /, *others: Callable[[], Any]) -> tuple[Any, ...]:
    """The answers to calls that do not need each other's: at the same time where the storage is far away, else one by one.

    The first call is made in the calling thread, which is the one that holds what it takes. All have ended on return.

    Raises:
        What the first of them raised, in the order of the arguments.
    """
    if storage.can.at_once == 1:
        return (first(), *(call() for call in others))
    with ThreadPoolExecutor(len(others), thread_name_prefix="hoodie-storage") as pool:
        later = [pool.submit(call) for call in others]
        return (first(), *(each.result() for each in later))


def for_each(act: Callable[[T], A], items: Iterable[T], *, at_once: int) -> list[A]:
    """What `act` gives for each, so many at once; all have ended when it returns.

    Raises:
        What the first of them raised, in the order of `items`.
    """
    all_items = list(items)
    if min(len(all_items), at_once) <= 1:
        return [act(item) for item in all_items]
    with ThreadPoolExecutor(min(at_once, len(all_items)), thread_name_prefix="hoodie-storage") as pool:
        return [future.result() for future in [pool.submit(act, item) for item in all_items]]


def in_turns(storage: _TakesMany, act: Callable[[T], A], items: Sequence[T]) -> Iterator[A]:
    """As `Storage.each`, for many and large answers: those of so many items are there at a time as calls are made."""
    at_once = storage.can.at_once
    for start in range(0, len(items), at_once):
        yield from for_each(act, items[start : start + at_once], at_once=at_once)
