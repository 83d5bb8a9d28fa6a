"""A lock that ends by itself unless its holder renews it: what those of an object store and of DynamoDB have in common."""

from __future__ import annotations

import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Hashable
from queue import Empty, SimpleQueue
from typing import NamedTuple

from hoodie.errors import LockError
from hoodie.lock.grant import Grant, past_s

log = logging.getLogger("hoodie")


class Clocks(NamedTuple):
    """Two, because each misses some pauses: one may be set, the other may stand still while the machine sleeps."""

    wall_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic

    def now(self) -> tuple[float, float]:
        return self.wall_s(), self.monotonic_s()


CLOCKS = Clocks()


class Lease(Grant):
    """One acquisition: the lock until its time is over, and the thread that renews it."""

    def __init__(self, key: Hashable, uri: str, *, lease_s: float, renewal_s: float, clocks: Clocks) -> None:
        super().__init__(key)
        self._uri, self._lease_s, self._renewal_s, self._clocks = uri, lease_s, renewal_s, clocks
        self._start = clocks.now()
        """Both clocks at the start of the last write that succeeded."""
        self._is_lost = False
        self._mutex = threading.Lock()
        self._stopped: SimpleQueue[None] = SimpleQueue()

    @abstractmethod
    def _renew(self, start: tuple[float, float]) -> None:
        """Tell whoever grants the lock that the lease runs from then on.

        Raises:
            FileExistsError, FileNotFoundError, LockError: it is not ours any more. OSError: there is no answer.
        """

    @abstractmethod
    def _give_back(self) -> None:
        """Tell whoever grants the lock that it is free."""

    def is_over(self) -> bool:
        """Whether it is lost, or so long not renewed that others may have taken it."""
        if past_s(self._start, self._clocks.now()) >= self._lease_s or self.is_of_parent:
            self._is_lost = True
        return self._is_lost

    def release(self) -> None:
        if self.is_of_parent:
            return
        self._stopped.put(None)
        with self._mutex:
            if self.may_be_held and not self._is_lost:
                self._give_back()
            self._is_lost = True
            self.may_be_held = False

    def _keep(self) -> None:
        """Renew it from now on."""
        threading.Thread(target=self._renew_in_time, name="hoodie-lock", daemon=True).start()

    def _renew_in_time(self) -> None:
        while not self._stops_within(self._renewal_s):
            with self._mutex:
                if self.is_over():
                    return
                start = self._clocks.now()
                try:
                    self._renew(start)
                    self._start = start
                except (FileExistsError, FileNotFoundError, LockError):
                    self._is_lost = True
                    return
                except OSError as exc:
                    log.warning("the lock of table %s was not renewed, another try follows: %s", self._uri, exc)

    def _stops_within(self, seconds: float) -> bool:
        try:
            self._stopped.get(timeout=seconds)
        except Empty:
            return False
        return True


def warn_not_released(uri: str, error: Exception) -> None:
    log.warning("the lock of table %s could not be released, other processes wait until its lease ends: %s", uri, error)
