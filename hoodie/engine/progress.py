"""A line in the log while work takes long: how many of its tasks are done. Short work says nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger("hoodie")

EVERY_S = 5.0


class Progress:
    """Counts finished tasks, from any thread."""

    def __init__(self, label: str, total: int = 0, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._label = label
        self._total = total
        self._clock = clock
        self._done = 0
        self._began = self._said = clock()
        self._lock = threading.Lock()

    def add(self, count: int = 1) -> None:
        """So many more are done."""
        with self._lock:
            self._at(self._done + count)

    def at(self, done: int, *, of: int) -> None:
        """So many are done in all, of a number that may be known only now."""
        with self._lock:
            self._total = max(self._total, of)
            self._at(done)

    def _at(self, done: int) -> None:
        """Says so every `EVERY_S` seconds; not when the last one is done, for then the work is through."""
        self._done = min(max(done, self._done), self._total)
        now = self._clock()
        if self._done == self._total or now - self._said < EVERY_S:
            return
        self._said = now
        log.info("%s: %d of %d tasks done after %.0f s", self._label, self._done, self._total, now - self._began)
