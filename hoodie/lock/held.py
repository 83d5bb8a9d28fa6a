"""What the running thread holds of locks and marks, whoever grants them, so that an interrupt leaves nothing held."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

HeldNow = Callable[[], dict[object, Callable[[], None]]]
"""What this thread holds of one kind of lock, and how to let go of each as a killed process would."""

_kinds: list[HeldNow] = []


def lets_go(held_now: HeldNow) -> HeldNow:
    """Decorator by which the module of a lock says what `let_go_after_error` lets go of."""
    _kinds.append(held_now)
    return held_now


def held_by_this_thread() -> dict[object, Callable[[], None]]:
    return {held: let_go for held_now in _kinds for held, let_go in held_now().items()}


@contextmanager
def let_go_after_error() -> Iterator[None]:
    """Where the block ends with an exception, let go of all that this thread has locked in it and still holds.

    Blocks within do so themselves. But an interrupt (Ctrl-C) may come just before they would, or as soon as they have got
    what they asked for; without this a lock or a mark would then be held for the life of the process.
    """
    before = held_by_this_thread().keys()
    try:
        yield
    except BaseException:
        for held, let_go in held_by_this_thread().items():
            if held not in before:
                let_go()
        raise
