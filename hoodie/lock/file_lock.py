"""The table lock on a local disk: an operating system lock on one file of the table."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from hoodie.errors import LockError, UnsupportedTableError
from hoodie.lock.base import WAITING, Waiting, wait_for
from hoodie.lock.os_lock import HeldFile, holder_text, try_lock
from hoodie.storage.base import Storage

LOCK_FOLDER = ".hoodie/.hoodie_py"
LOCK_PATH = f"{LOCK_FOLDER}/table.lock"


class FileLock:
    """`Lock` by flock on `.hoodie/.hoodie_py/table.lock`, a file that is never deleted.

    The system frees it when the process dies, kill -9 included. It excludes hoodie's writers on this machine, and
    on others where the file system carries flock between machines.
    """

    def __init__(self, storage: Storage, waiting: Waiting = WAITING) -> None:
        path = storage.can.local_path(LOCK_PATH)
        if path is None:
            raise UnsupportedTableError(f"{storage.uri} is not on a local disk: no file of it can be locked")
        self._storage = storage
        self._path = path
        self._waiting = waiting
        self._held: HeldFile | None = None

    def __repr__(self) -> str:
        return f"FileLock({self._path!r})"

    def acquire(self, timeout_s: float) -> None:
        self._acquired(timeout_s)

    def _acquired(self, timeout_s: float) -> HeldFile | None:
        name = os.path.realpath(self._path)
        mine = _held_here.get(name)
        if mine is not None and mine.is_open and mine.thread == threading.get_ident():
            raise LockError(
                f"the lock of table {self._storage.uri} is held by this very thread already: "
                "it cannot be taken twice, release it first"
            )
        self._storage.mkdirs(LOCK_FOLDER)

        def attempt() -> bool:
            held = try_lock(self._path, create=True)
            if held is None:
                return False
            held.write_holder()
            self._held = held
            _held_here[name] = held
            return True

        if not wait_for(attempt, timeout_s, self._waiting):
            raise LockError(
                f"the lock of table {self._storage.uri} was not granted within {timeout_s} s: "
                f"{holder_text(self._path)} holds {LOCK_PATH}; nothing was written: "
                "try again when it is done, or wait longer"
            )
        return self._held

    def release(self) -> None:
        self._release(self._held)

    def _release(self, held: HeldFile | None) -> None:
        if held is not None:
            if self._held is held:
                self._held = None
            held.let_go()

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        held = self._acquired(timeout_s)
        try:
            yield
        finally:
            self._release(held)  # this very file: a block that was interrupted may end late, when others have the lock

    def is_held(self) -> bool:
        """Whether the lock file is still in its place, locked, and names this very acquisition as its holder."""
        held = self._held
        return held is not None and held.is_intact()

    @property
    def is_leased(self) -> bool:
        return False

    def is_known_lost(self) -> bool:
        return False


_held_here: weakref.WeakValueDictionary[str, HeldFile] = weakref.WeakValueDictionary()
"""By the lock file's real path: what this process took last; only to refuse waiting for oneself."""
