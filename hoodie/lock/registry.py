"""The locks and marks that this process holds, of every kind: an interrupt releases those of its thread, a fork forgets all."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any


class HeldLock(ABC):
    """A lock or a mark in the hands of one thread, from the moment before it is asked for."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.may_be_held = False
        """Whether others may find it held: from the request on, until it is released."""
        self.is_of_parent = False
        """Whether this process is a fork of the one that made it: it is not ours to release."""
        _registry[next(_numbers)] = self

    @abstractmethod
    def drop(self) -> None:
        """Release it as the end of a killed process would."""

    def forget_in_child(self) -> None:
        self.is_of_parent = True


_numbers = itertools.count()
_registry: weakref.WeakValueDictionary[int, HeldLock] = weakref.WeakValueDictionary()
"""Weak: a lock that nobody refers to any more is released."""
BY_KEY: list[MutableMapping[Any, Any]] = []
"""Where the marks of this process are found by instant: a forked child has none of them."""


def every_held() -> list[HeldLock]:
    """What the threads of this process hold, and what they have released and still refer to."""
    return [lock for reference in _registry.valuerefs() if (lock := reference()) is not None]


def held_by_this_thread() -> dict[HeldLock, Callable[[], None]]:
    """What this thread holds, and how to drop each."""
    me = threading.get_ident()
    return {lock: lock.drop for lock in every_held() if lock.thread == me and lock.may_be_held}


def _forget_in_child() -> None:
    for lock in every_held():
        lock.forget_in_child()
    _registry.clear()
    for marks in BY_KEY:
        marks.clear()


os.register_at_fork(after_in_child=_forget_in_child)


@contextmanager
def let_go_after_error() -> Iterator[None]:
    """Where the block ends with an exception, drop what this thread has locked in it and still holds.

    Blocks within do so themselves. But an interrupt (Ctrl-C) may come just before they would, or as soon as they have got
    what they asked for; without this a lock or a mark would then be held for the life of the process.
    """
    before = held_by_this_thread().keys()
    try:
        yield
    except BaseException:
        for lock, drop in held_by_this_thread().items():
            if lock not in before:
                drop()
        raise
