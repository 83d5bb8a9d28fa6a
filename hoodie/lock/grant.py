"""What all locks have in common: they wait for a grant, refuse the thread that has one, and release it.

A provider is a `Grant` (ask once, does it stand, release) and a `GrantedLock` that makes it.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from hoodie.errors import LockError
from hoodie.lock.base import LONGEST_PAUSE_S, Waiting, wait_for
from hoodie.lock.registry import HeldLock, every_held
from hoodie.telemetry import note, record

NOBODY = "a holder that has just released it"


class Grant(HeldLock):
    """One acquisition of a lock, from the first request to the release."""

    def __init__(self, key: Hashable) -> None:
        super().__init__()
        self.key = key
        """Which lock it is: locks of one kind with equal keys exclude each other."""
        self.is_granted = False
        self.failure: Exception | None = None
        """Why the last attempt got no answer."""

    @abstractmethod
    def attempt(self) -> bool:
        """Ask once for the lock. True: it is ours."""

    @abstractmethod
    def stands(self) -> bool:
        """Whether it is still ours, asked of whoever grants it."""

    @abstractmethod
    def is_over(self) -> bool:
        """Whether it is certainly not ours any more. Asks nobody."""

    def is_known_lost(self) -> bool:
        """As `Lock.is_known_lost`."""
        return self.is_over()

    @abstractmethod
    def holder(self) -> str:
        """Who holds the lock and by what, as a clause for a message."""

    def refusal(self) -> str:
        """Why the lock was not granted, and what to do."""
        return f"{self.holder()}; nothing was written: try again when it is done, or wait longer"

    @abstractmethod
    def release(self) -> None:
        """Release the lock, or stop waiting for it. Does nothing the second time."""

    def drop(self) -> None:
        self.release()


class GrantedLock(ABC):
    """`Lock` by the grants of a provider."""

    is_leased = True

    def __init__(self, uri: str, waiting: Waiting, *, longest_pause_s: float = LONGEST_PAUSE_S) -> None:
        self._uri = uri
        self._waiting = waiting
        self._longest_pause_s = longest_pause_s
        self._grant: Grant | None = None

    @abstractmethod
    def _new_grant(self) -> Grant:
        """A grant that nobody has been asked for yet."""

    def acquire(self, timeout_s: float) -> None:
        self._acquired(timeout_s)

    def _acquired(self, timeout_s: float) -> Grant:
        grant = self._new_grant()
        if any(_is_ours(other, grant) for other in every_held()):
            raise LockError(
                f"the lock of table {self._uri} is held by this thread already: "
                "it cannot be taken twice, release it first"
            )
        began_s = self._waiting.monotonic()
        try:
            grant.is_granted = wait_for(grant.attempt, timeout_s, self._waiting, longest_pause_s=self._longest_pause_s)
            _note_wait(self._uri, self._waiting.monotonic() - began_s)
            if grant.is_granted:
                self._grant = grant
                return grant
            reason = grant.refusal()
        except BaseException:
            grant.release()
            raise
        grant.release()
        raise LockError(
            f"the lock of table {self._uri} was not granted within {timeout_s} s: {reason}"
        ) from grant.failure

    def release(self) -> None:
        self._release(self._grant)

    def _release(self, grant: Grant | None) -> None:
        if grant is not None:
            if self._grant is grant:
                self._grant = None
            grant.release()

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        grant = self._acquired(timeout_s)
        try:
            yield
        finally:
            self._release(grant)  # this very one: a block that was interrupted may end late, when others have the lock

    def is_held(self) -> bool:
        grant = self._grant
        return grant is not None and grant.stands()

    def is_known_lost(self) -> bool:
        grant = self._grant
        return grant is not None and grant.is_known_lost()


def _is_ours(other: HeldLock, grant: Grant) -> bool:
    """Whether it is a grant of the same lock in the hands of this very thread."""
    return (
        isinstance(other, type(grant))
        and other.is_granted
        and other.thread == grant.thread
        and other.key == grant.key
        and not other.is_over()
    )


def _note_wait(uri: str, seconds: float) -> None:
    note(lock_wait_s=seconds)
    record("lock.wait", seconds, path=uri)


def both_clocks_s() -> tuple[float, float]:
    """The wall clock may be set, and the other may stand still while the machine sleeps."""
    return time.time(), time.monotonic()


def past_s(since: tuple[float, float], now: tuple[float, float] | None = None) -> float:
    """How long ago that was by the clock that says more."""
    return max(after - before for after, before in zip(now or both_clocks_s(), since, strict=True))
