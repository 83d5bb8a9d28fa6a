"""How far long work is: a bar in a terminal or a notebook, a line in the log elsewhere. Short work says nothing.

`HOODIE_PROGRESS` chooses: `auto` (what is said above), `bar`, `log`, or `off`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

log = logging.getLogger("hoodie")

SETTING = "HOODIE_PROGRESS"
BAR, LOG, OFF = "bar", "log", "off"

EVERY_S = 5.0
"""Between two lines of the log."""
BAR_AFTER_S = 1.5
"""Work that ends sooner shows no bar."""


class Bar(Protocol):
    """What is drawn."""

    def update(self, n: float = 1) -> bool | None: ...
    def close(self) -> None: ...


Draws = Callable[[str, int | None, str, float], Bar | None]
"""Draws a bar for so much work of a name (None: not known how much) in a unit, begun so many seconds ago; None where no bar can be
drawn."""


def shown_as() -> str:
    """How progress is shown in this process.

    A bar wants somebody who watches it: a notebook, or a terminal before and behind the program. Workers of Spark, jobs of cron and
    parts of a pipe have none, though their errors may end up in somebody's terminal.
    """
    setting = os.environ.get(SETTING, "").strip().lower()
    if setting in (BAR, LOG, OFF):
        return setting
    return BAR if in_notebook() or (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)) else LOG


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):  # none at all, or closed
        return False


def draw_bar(name: str, total: int | None, unit: str, elapsed_s: float) -> Bar | None:
    """A bar of tqdm."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without widgets gets a bar of text
            from tqdm.auto import tqdm  # noqa: PLC0415 - a tenth of a second, and not every worker has it
    except ImportError:
        return None
    bar = tqdm(total=total, desc=name, unit=f" {unit}", unit_scale=total is None, leave=False, dynamic_ncols=True)
    if hasattr(bar, "start_t"):  # its rates are those of the whole work
        bar.start_t -= elapsed_s
    drawn: Bar = bar
    return drawn


class Progress:
    """Counts what is done, from any thread. `with` it, so that its bar goes when the work has ended, well or badly."""

    def __init__(
        self,
        label: str,
        total: int | None = 0,
        *,
        unit: str = "tasks",
        way: str | None = None,
        draw: Draws = draw_bar,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`total` None: it is not known how much there is to do. `way`: BAR, LOG or OFF; None: as `shown_as` says."""
        self._label = label
        self._total = total
        self._unit = unit
        self._way = way
        self._draw = draw
        self._clock = clock
        self._count = self._drawn = 0
        self._began = self._logged_at = clock()
        self._bar: Bar | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.close()
            self._bar, self._way = None, OFF  # whoever still counts shows nothing any more

    def add(self, count: int = 1) -> None:
        """So many more are done."""
        with self._lock:
            self._at(self._count + count)

    def expect(self, total: int) -> None:
        """It is known now how much there is to do."""
        self._total = total

    def at(self, count: int, *, of: int) -> None:
        """The count of all that are finished, of a total that may be new."""
        with self._lock:
            self._total = max(self._total or 0, of)
            self._at(count)

    def _at(self, count: int) -> None:
        """No line for the last one: the work is finished then."""
        self._count = max(count, self._count) if self._total is None else min(max(count, self._count), self._total)
        if self._bar is not None:
            self._move()
            return
        now = self._clock()
        if self._count == self._total or now - self._began < BAR_AFTER_S:
            return
        if self._way is None:
            self._way = shown_as()
        if self._way == BAR:
            self._bar = self._draw(self._label, self._total, self._unit, now - self._began)
            if self._bar is None:
                self._way = LOG
            else:
                self._move()
                return
        if self._way == LOG and now - self._logged_at >= EVERY_S:
            self._logged_at = now
            of = "" if self._total is None else f" of {self._total}"
            log.info("%s: %d%s %s done after %.0f s", self._label, self._count, of, self._unit, now - self._began)

    def _move(self) -> None:
        if self._bar is not None and self._count > self._drawn:
            self._bar.update(self._count - self._drawn)
            self._drawn = self._count
