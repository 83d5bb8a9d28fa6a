"""Python's collector of cycles, made to run less often while many objects are made that have none.

It looks at all objects of the process again each time that their number has grown by a quarter. A plan of a hundred thousand files
is a million objects, none of which can be freed, and looking at them takes as long as making them.
"""

from __future__ import annotations

import gc
import threading
from types import TracebackType

_YOUNG_OBJECTS = 100_000
"""So many new ones are looked at together, some ten megabytes: it is rarer, not off, for what other threads leave behind."""


class _Sparing:
    """Until the last of the blocks that run at once has ended. A collector that was off before stays off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._thresholds = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._thresholds = gc.get_threshold()
                if 0 < self._thresholds[0] < _YOUNG_OBJECTS:  # 0: off
                    gc.set_threshold(_YOUNG_OBJECTS)
            self._blocks += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                gc.set_threshold(*self._thresholds)


COLLECTOR_SPARED = _Sparing()
