"""Clocks that move only when a test says so, or somebody waits by them."""

from __future__ import annotations

from hoodie.lock.base import Waiting
from hoodie.lock.lease import Clocks


class Times:
    """Both clocks, and how they are waited by."""

    def __init__(self) -> None:
        self.wall_s = 1_800_000_000.0
        self.monotonic_s = 5.0

    def pass_by(self, seconds: float) -> None:
        self.wall_s += seconds
        self.monotonic_s += seconds

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.wall_s, lambda: self.monotonic_s)

    @property
    def waiting(self) -> Waiting:
        return Waiting(self.pass_by, lambda: self.monotonic_s)
