"""Python's collector of cycles, paused while objects are made that have none.

It looks at all objects of the process again each time that their number has grown by a quarter. A plan of a hundred thousand files
is a million objects, none of which can be freed, and looking at them takes as long as making them.
"""

from __future__ import annotations

import gc
import threading
from types import TracebackType


class _Pause:
    """Until the last of the blocks that run at once has ended. A collector that was off before stays off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._blocks += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._was_enabled:
                gc.enable()


COLLECTOR_PAUSED = _Pause()
