"""The table lock on a local disk: an operating system lock on one file of the table."""

from __future__ import annotations

import os

from hoodie.errors import UnsupportedTableError
from hoodie.lock.base import WAITING, Waiting
from hoodie.lock.grant import Grant, GrantedLock
from hoodie.lock.os_lock import HeldFile, holder_text, try_lock
from hoodie.storage.base import Storage

LOCK_FOLDER = ".hoodie/.hoodie_py"
LOCK_PATH = f"{LOCK_FOLDER}/table.lock"


class FileLock(GrantedLock):
    """`Lock` by flock on `.hoodie/.hoodie_py/table.lock`, a file that is never deleted.

    The system frees it when the process dies, kill -9 included. It excludes hoodie's writers on this machine, and
    on others where the file system carries flock between machines.
    """

    is_leased = False

    def __init__(self, storage: Storage, waiting: Waiting = WAITING) -> None:
        super().__init__(storage.uri, waiting)
        path = storage.can.local_path(LOCK_PATH)
        if path is None:
            raise UnsupportedTableError(f"{storage.uri} is not on a local disk: no file of it can be locked")
        self._storage = storage
        self._path = path

    def __repr__(self) -> str:
        return f"FileLock({self._path!r})"

    def _new_grant(self) -> Grant:
        self._storage.mkdirs(LOCK_FOLDER)
        return _FileGrant(self._path)


class _FileGrant(Grant):
    """The lock file; an interrupt finds it as a `HeldFile`."""

    def __init__(self, path: str) -> None:
        super().__init__(os.path.realpath(path))
        self._path = path
        self._file: HeldFile | None = None

    def attempt(self) -> bool:
        file = try_lock(self._path, create=True)
        if file is not None:
            file.write_holder()
            self._file = file
        return file is not None

    def stands(self) -> bool:
        """Whether the lock file is still in its place, locked, and names this very acquisition as its holder."""
        return self._file is not None and self._file.is_intact()

    def is_over(self) -> bool:
        return self._file is not None and not self._file.is_open

    def is_known_lost(self) -> bool:
        return False

    def holder(self) -> str:
        return f"{holder_text(self._path)} holds {LOCK_PATH}"

    def release(self) -> None:
        if self._file is not None:
            self._file.let_go()
