"""The lock of a table and the liveness of its writers: which implementation a storage gets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hoodie.errors import UnsupportedTableError
from hoodie.lock import in_process, os_lock
from hoodie.lock.base import Liveness, Lock
from hoodie.lock.file_lock import FileLock
from hoodie.lock.in_process import InProcessLiveness, InProcessLock
from hoodie.lock.liveness import FileLiveness
from hoodie.storage.base import Storage
from hoodie.storage.faults import FaultStorage
from hoodie.storage.memory import MemoryStorage


def lock_for(
    storage: Storage,
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> Lock:
    """The lock that guards the table in this storage; `sleep` and `monotonic` (seconds) rule the waiting for it.

    Raises:
        UnsupportedTableError: neither a local disk nor this process's memory.
    """
    inner = _without_faults(storage)
    if isinstance(inner, MemoryStorage):
        return InProcessLock(inner, sleep=sleep, monotonic=monotonic)
    _refuse_remote(inner)
    return FileLock(inner, sleep=sleep, monotonic=monotonic)


def liveness_for(
    storage: Storage,
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> Liveness:
    """The liveness marks of the table in this storage; as `lock_for` otherwise."""
    inner = _without_faults(storage)
    if isinstance(inner, MemoryStorage):
        return InProcessLiveness(inner)
    _refuse_remote(inner)
    return FileLiveness(inner, sleep=sleep, monotonic=monotonic)


@contextmanager
def let_go_after_error() -> Iterator[None]:
    """Where the block ends with an exception, let go of all that this thread has locked in it and still holds.

    Blocks within do so themselves. But an interrupt (Ctrl-C) may come just before they would, or as soon as they have got
    what they asked for; without this a lock or a mark would then be held for the life of the process.
    """
    before = _held_by_this_thread().keys()
    try:
        yield
    except BaseException:
        for held, let_go in _held_by_this_thread().items():
            if held not in before:
                let_go()
        raise


def _held_by_this_thread() -> dict[object, Callable[[], None]]:
    return {**os_lock.held_by_this_thread(), **in_process.held_by_this_thread()}


def _without_faults(storage: Storage) -> Storage:
    # Locks belong to the operating system: they are not among the calls that a test counts or lets fail.
    while isinstance(storage, FaultStorage):
        storage = storage.inner
    return storage


def _refuse_remote(storage: Storage) -> None:
    if storage.local_path("") is None:
        raise UnsupportedTableError(
            f"there is no lock for tables in {storage.uri}: writing is supported on a local disk and in memory://"
        )
