"""Several writers of one table in memory, of which one at a time goes on: a seed says which, at each call of the storage.

So writers meet in any order, and a seed that fails fails again.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from hoodie.engine.local import LocalEngine
from hoodie.lock.base import Waiting
from hoodie.lock.providers import coordinate
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext
from tests.memory_tables import KEEP_ALL, FakeClock

PATIENCE_S = 300
SWITCHES = (0.02, 0.1, 0.4)
"""How often another one goes on: writers that meet in few places find other bugs than those that meet everywhere."""


class Schedule:
    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._switches = self._chance.choice(SWITCHES)
        self._turns: dict[int, threading.Event] = {}
        """Of the writers that have not ended."""
        self._me = threading.local()
        self._all_ended = threading.Event()
        self.switched = 0

    def run(self, acts: Sequence[Callable[[], Any]]) -> list[Any]:
        """What each act gave, or the error that it ended with."""
        found: list[Any] = [None] * len(acts)
        self._turns = {number: threading.Event() for number in range(len(acts))}

        def work(number: int) -> None:
            self._me.number = number
            self._wait(number)
            try:
                found[number] = acts[number]()
            except Exception as error:  # noqa: BLE001 - the test judges it
                found[number] = error
            finally:
                del self._turns[number]
                self._go_on(self._turns)

        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in self._turns]
        for thread in threads:
            thread.start()
        self._go_on(self._turns)
        assert self._all_ended.wait(PATIENCE_S), "the writers wait for each other"
        for thread in threads:
            thread.join()
        return found

    def step(self, *, give_way: bool = False) -> None:
        """The calling thread is about to do something; perhaps others go on first. `give_way`: it has to wait for another.

        Other threads, such as those that beat for a writer, come and go as they like.
        """
        me = getattr(self._me, "number", None)
        others = [number for number in self._turns if number != me]
        if me is None or not others or not (give_way or self._chance.random() < self._switches):
            return
        self.switched += 1
        self._go_on(others)
        self._wait(me)

    def _go_on(self, numbers: Collection[int]) -> None:
        if numbers:
            self._turns[self._chance.choice(list(numbers))].set()
        else:
            self._all_ended.set()

    def _wait(self, me: int) -> None:
        assert self._turns[me].wait(PATIENCE_S), "the writers wait for each other"
        self._turns[me].clear()


class InTurns(FaultStorage):
    """The storage as one writer has it, who lets others go on before any of his calls."""

    def __init__(self, inner: Any, schedule: Schedule) -> None:
        self._schedule = schedule
        super().__init__(inner)

    def _living(self) -> Any:
        self._schedule.step()
        return super()._living()


def in_turns(storage: Any, clock: FakeClock, schedule: Schedule) -> HoodieTable:
    """An opening of the table as if in a process of its own, who lets others go on while he waits for the lock or the clock."""

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        schedule.step(give_way=True)

    context = TableContext.open(InTurns(storage, schedule), LocalEngine(1), sleep=sleep, cache=Cache())
    agreed = coordinate(storage, context.concurrency, Waiting(sleep, clock))
    return HoodieTable(replace(context, coordination=agreed), KEEP_ALL)
