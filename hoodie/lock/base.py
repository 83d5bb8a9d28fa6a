"""The lock seam: one writer at a time per table, and whether the writer of an instant still lives.

Where a new lock goes: `lock/providers.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, runtime_checkable

from hoodie.errors import OptionError

FIRST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 0.05


@runtime_checkable
class Lock(Protocol):
    """The lock of one table. It excludes other processes and other threads, also through other `Lock` objects.

    Not re-entrant: a thread that asks for a table's lock while it holds it gets a LockError at once, since it
    would wait for itself.
    """

    def acquire(self, timeout_s: float) -> None:
        """Take the lock, trying for `timeout_s` seconds; 0 tries once.

        Raises:
            LockError: not granted in that time; the message names the table and, where known, who holds it.
            OptionError: `timeout_s` is negative or no finite number.
        """
        ...

    def release(self) -> None:
        """Give the lock up; nothing happens when this object does not hold it."""
        ...

    def held(self, timeout_s: float) -> AbstractContextManager[None]:
        """A block with the lock: `acquire`, then `release` however the block ends."""
        ...

    def is_held(self) -> bool:
        """Whether this object holds the lock right now, asked of whoever grants it and not remembered."""
        ...

    @property
    def is_leased(self) -> bool:
        """Whether it can end while its holder lives, and only sleeps: then publishing needs more than the lock (`publish/base.py`)."""
        ...

    def is_known_lost(self) -> bool:
        """Whether the lock ended while this object held it: after a pause beyond a lease, or the end of a session.

        Costs nothing while too little time has passed for that. Locks that end with their process only are never lost.
        """
        ...


@runtime_checkable
class Liveness(Protocol):
    """Which instants' writers are alive, by a mark that ends with the writer's process.

    The marks belong to the process: any `Liveness` of the same table in it may release what another one held.
    An instant is a single path part; another string raises ValueError.
    """

    def hold(self, instant: str) -> None:
        """Mark the instant's writer as alive, until `release`, `abandon` or the end of this process.

        The mark of a dead writer is taken over.

        Raises:
            LockError: a living writer, here or in another process, holds it already.
        """
        ...

    def release(self, instant: str) -> None:
        """The write is over, or rolled back: remove the mark. One that another process holds stays."""
        ...

    def abandon(self, instant: str) -> None:
        """Stop holding, but leave the mark as a killed process would: the instant's writer is then dead."""
        ...

    def is_alive(self, instant: str) -> bool | None:
        """True: a process, this one included, holds the mark. False: its holder is dead. None: not known."""
        ...

    def holder(self, instant: str) -> str | None:
        """Who left the mark, as a phrase for a message; None where nobody did, or none is named."""
        ...

    @property
    def expiry_s(self) -> float | None:
        """After so many seconds without a heartbeat a writer may be taken for dead; None: never while its process lives."""
        ...

    def marks(self) -> frozenset[str]:
        """The instants that have a mark, of the living and of the dead."""
        ...


class Coordination(NamedTuple):
    """What the writers of one table agree by. `coordinate` in `lock/providers.py` chooses it."""

    lock: Lock
    liveness: Liveness
    kind: str = ""
    """What kind of lock it is: writers that agree by locks of two kinds do not exclude each other. Empty: not said."""


class Waiting(NamedTuple):
    """How an implementation waits; tests give a clock of their own."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    """Seconds."""


WAITING = Waiting()


def wait_for(
    attempt: Callable[[], bool], timeout_s: float, waiting: Waiting, *, longest_pause_s: float = LONGEST_PAUSE_S
) -> bool:
    """Try until it succeeds (True) or `timeout_s` is over (False); at least once, with growing pauses between.

    Raises:
        OptionError: `timeout_s` is negative or no finite number.
    """
    if not (math.isfinite(timeout_s) and timeout_s >= 0):
        raise OptionError(f"a lock timeout of {timeout_s} s makes no sense: give a finite number of seconds, 0 or more")
    deadline_s = waiting.monotonic() + timeout_s
    pause_s = FIRST_PAUSE_S
    while not attempt():
        left_s = deadline_s - waiting.monotonic()
        if left_s <= 0:
            return False
        waiting.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, longest_pause_s)
    return True
