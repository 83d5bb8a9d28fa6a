"""Signs of life of a pending instant: an OS lock that dies with its process, and Hudi's heartbeat file for other writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from queue import Empty, SimpleQueue

from hoodie.lock.base import Liveness
from hoodie.lock.held import let_go_after_error
from hoodie.model.names import HEARTBEATS, join
from hoodie.storage.base import Storage

INTERVAL_S = 60.0
"""Hudi's default beat; its writers take an instant for dead after two missed ones."""
EXPIRY_S = 2 * INTERVAL_S + 5.0


class Life(StrEnum):
    ALIVE = "alive"
    """A process of ours is working on it."""
    DEAD = "dead"
    FOREIGN_ALIVE = "foreign"
    """Not ours, and its heartbeat is fresh."""


def heartbeat_path(instant_time: str) -> str:
    return join(HEARTBEATS, instant_time)


def life_of(instant_time: str, *, storage: Storage, liveness: Liveness) -> Life:
    """Whether anybody still works on a pending instant.

    On one machine the operating system answers for our own writers at once. Other writers count as alive while their
    heartbeat file is fresh; without one (Hudi's single-writer default makes none) there is nothing to wait for.
    """
    ours = liveness.is_alive(instant_time)
    if ours is not None:
        return Life.ALIVE if ours else Life.DEAD
    try:
        beat = storage.stat(heartbeat_path(instant_time))
    except FileNotFoundError:
        return Life.DEAD
    return Life.FOREIGN_ALIVE if storage.now_s() - beat.mtime_s < EXPIRY_S else Life.DEAD


class Heartbeat:
    """Holds an instant alive from `start` to `stop` (or `abandon`, when the process is to look dead)."""

    def __init__(self, instant_time: str, *, storage: Storage, liveness: Liveness) -> None:
        self._time = instant_time
        self._storage = storage
        self._liveness = liveness
        self._owner = threading.get_ident()
        self._stopped: SimpleQueue[None] = SimpleQueue()
        """No `Event`: an interrupt while it is set can leave its lock taken."""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._liveness.hold(self._time)
        self._storage.touch(heartbeat_path(self._time))
        self._thread = threading.Thread(target=self._beat, name=f"hoodie-heartbeat-{self._time}", daemon=True)
        _beating.add(self)
        self._thread.start()

    def stop(self) -> None:
        """The instant is decided: no trace remains."""
        self._end()
        self._storage.delete(heartbeat_path(self._time))
        self._liveness.release(self._time)
        _beating.discard(self)

    def abandon(self) -> None:
        """Stop beating and leave the traces: whoever comes next sees a dead writer and rolls it back."""
        try:
            self._end()
        finally:
            self._liveness.abandon(self._time)
            _beating.discard(self)

    def _end(self) -> None:
        self._stopped.put(None)
        if self._thread is not None and self._thread.is_alive():  # it may never have started
            self._thread.join()

    def _beat(self) -> None:
        while not self._stops_within(INTERVAL_S):
            try:
                self._storage.touch(heartbeat_path(self._time))
            except OSError:
                continue  # a missed beat; the next one may get through, and the commit checks the timeline anyway

    def _stops_within(self, seconds: float) -> bool:
        try:
            self._stopped.get(timeout=seconds)
        except Empty:
            return False
        return True


_beating: set[Heartbeat] = set()


@contextmanager
def undisturbed() -> Iterator[None]:
    """An operation on a table: whatever ends it, at whatever moment, its thread holds no lock and no instant afterwards.

    The instant is then pending and its writer dead, as after a crash: the next write rolls it back.
    """
    before = frozenset(_beating)
    with let_go_after_error():
        try:
            yield
        except BaseException:
            me = threading.get_ident()
            for heartbeat in frozenset(_beating) - before:
                if heartbeat._owner == me:
                    heartbeat.abandon()
            raise
