"""Ctrl-C at any line while a lock is taken, held, looked at or released: nobody has to wait for it, of this process or of others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from hoodie.lock.registry import held_by_this_thread, let_go_after_error
from tests.interrupts import Steps, threads_left, threads_of_ours

MORE = ("storage/memory.py",)


def is_interrupted_everywhere(
    make: Callable[[], tuple[Any, Callable[[], bool]]], act: Callable[[Any], None], *, least: int
) -> None:
    """Run `act` on what is made, anew for each line that it passes, and interrupt it there.

    `make` gives, besides that, whether others see it as free. `least`: of how many places there are.
    """
    before, threads = held_by_this_thread().keys(), threads_of_ours()  # what earlier tests left
    with Steps(more=MORE) as steps:
        act(make()[0])
    assert len(steps.seen) > least
    for at in range(1, len(steps.seen) + 1):
        made, is_free_for_others = make()
        with contextlib.suppress(KeyboardInterrupt), Steps(at, more=MORE) as striking, let_go_after_error():
            act(made)
        assert held_by_this_thread().keys() == before, striking.where
        assert is_free_for_others(), striking.where
        assert threads_left(threads) == [], striking.where
        act(made)
        assert is_free_for_others(), striking.where


def held_twice(lock: Any) -> None:
    for _ in range(2):
        with lock.held(0):
            assert lock.is_held()
