"""How long a writer waits for others: for the table lock, and at the gate of a scheduler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import hoodie
from hoodie.lock.base import Liveness, Lock
from hoodie.options.parse import parse_write_options
from hoodie.txn.gate import GATE


class Waits:
    """Takes the time of one open table from now on."""

    def __init__(self, table: hoodie.HoodieTable) -> None:
        self.lock_s = self.gate_s = 0.0
        writer = table.writer
        asked = parse_write_options(table._options).write.concurrency
        context = writer.context.with_concurrency(asked)  # the one that its writes take
        lock, liveness, kind = context.coordination
        timed = type(context.coordination)(_TimedLock(lock, self), _TimedLiveness(liveness, self), kind)
        writer.context = replace(context, coordination=timed)

    def taken(self) -> dict[str, float]:
        """The longest of each since this was asked last."""
        found = {"lock_s": self.lock_s, "gate_s": self.gate_s}
        self.lock_s = self.gate_s = 0.0
        return found


class _Through:
    def __init__(self, inner: Lock | Liveness, waits: Waits) -> None:
        self._inner = inner
        self._waits = waits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _TimedLock(_Through):
    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        began = time.monotonic()
        with self._inner.held(timeout_s):
            self._waits.lock_s = max(self._waits.lock_s, time.monotonic() - began)
            yield


class _TimedLiveness(_Through):
    _closed_s: float | None = None

    def is_alive(self, instant: str) -> bool | None:
        found: bool | None = self._inner.is_alive(instant)
        if instant == GATE:
            now = time.monotonic()
            self._closed_s = self._closed_s or now
            self._waits.gate_s = max(self._waits.gate_s, now - self._closed_s)
            if not found:
                self._closed_s = None
        return found
