"""The table lock as a file that only one can create, as Apache Hudi's `FileSystemBasedLockProvider` has it.

For storages whose creation is exclusive and that have nothing better, such as HDFS. The file has no lease: where its holder
died on another machine it stands until the option says that it is too old, or until somebody deletes it.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from contextlib import suppress

from hoodie.errors import OptionError
from hoodie.lock.base import WAITING, Waiting
from hoodie.lock.grant import NOBODY, Grant, GrantedLock, both_clocks_s, past_s
from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.model.names import HOODIE, is_inside, join
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.storage.base import RenamingStorage, Storage
from hoodie.storage.paths import SCRATCH_FOLDER, temporary_name

LONGEST_PAUSE_S = 0.5
"""Between two looks at the lock of another; each may be a request."""

log = logging.getLogger("hoodie")


class FilesystemLock(GrantedLock):
    """`Lock` by exclusive creation of `.hoodie/lock`, or of `lock` in the folder that an option names."""

    def __init__(self, storage: Storage, options: ConcurrencyOptions, waiting: Waiting = WAITING) -> None:
        super().__init__(storage.uri, waiting, longest_pause_s=LONGEST_PAUSE_S)
        self._storage = storage
        self._path = _path_of(storage, options.filesystem_path)
        self._expiry_s = options.filesystem_expiry_s

    def __repr__(self) -> str:
        return f"FilesystemLock({self._storage.uri!r}, {self._path!r})"

    def _new_grant(self) -> Grant:
        return _File(self._storage, self._path, self._expiry_s)


class _File(Grant):
    """A lock file of ours."""

    def __init__(self, storage: Storage, path: str, expiry_s: float) -> None:
        super().__init__((storage.identity, path))
        self._storage = storage
        self._path = path
        self._expiry_s = expiry_s
        self._start = (0.0, 0.0)
        created = time.strftime("%Y-%m-%d %H:%M:%S.000", time.gmtime())
        theirs = {"lockCreateTime": created, "lockThreadName": threading.current_thread().name}
        self._content = json.dumps(theirs | {"nonce": secrets.token_hex(8)} | this_process().note()).encode()

    def attempt(self) -> bool:
        start = both_clocks_s()
        try:
            self.may_be_held = True
            self._storage.create_new(self._path, self._content)
        except FileExistsError:
            if not self._is_in_place():  # it may be ours: an earlier answer was lost
                self._remove_what_is_left()
                return False
        self._start = start
        return True

    def _remove_what_is_left(self) -> None:
        """The lock file of a process that is certainly dead, one that is too old, or one of ours that was to go makes way.

        The next look may create anew.
        """
        try:
            content = self._storage.read(self._path)
            age_s = self._storage.now_s() - self._storage.stat(self._path).mtime_s
        except FileNotFoundError:
            return
        holder = _holder_in(content)
        is_over = content in _not_released or (holder is not None and holder.is_dead())
        if not is_over and not (0 < self._expiry_s < age_s):
            return
        if not isinstance(self._storage, RenamingStorage):
            self._storage.delete(self._path)
            return
        grave = f"{SCRATCH_FOLDER}/{temporary_name()}"
        with suppress(FileNotFoundError):
            self._storage.move_new(self._path, grave)
            if self._storage.read(grave) != content:
                # Somebody was faster, and this is the lock of the next.
                with suppress(FileExistsError):
                    self._storage.move_new(grave, self._path)
                    return
            self._storage.delete(grave)

    def holder(self) -> str:
        return f"{self._who()} holds {self._path}"

    def _who(self) -> str:
        with suppress(OSError):
            holder = _holder_in(self._storage.read(self._path))
            return str(holder) if holder is not None else "another program"
        return NOBODY

    def refusal(self) -> str:
        return f"{self.holder()}; nothing was written: try again when it is done, or delete the file if that process is dead"

    def stands(self) -> bool:
        return not self.is_over() and self._is_in_place()

    def _is_in_place(self) -> bool:
        try:
            return self._storage.read(self._path) == self._content
        except FileNotFoundError:
            return False

    def is_over(self) -> bool:
        """Whether it is released, or others may have taken it for one that was left behind."""
        return not self.may_be_held or self.is_of_parent or 0 < self._expiry_s <= past_s(self._start)

    def release(self) -> None:
        if self.may_be_held and not self.is_of_parent:
            try:
                if self._is_in_place():
                    self._storage.delete(self._path)
            except OSError as exc:
                _not_released.add(self._content)
                log.warning(
                    "the lock file %s of table %s could not be deleted: this process removes it when it needs the lock again, "
                    "others wait until it has ended: %s",
                    self._path,
                    self._storage.uri,
                    exc,
                )
            self.may_be_held = False


def _path_of(storage: Storage, folder: str | None) -> str:
    relative_folder = HOODIE if folder is None else folder.removeprefix(storage.uri).strip("/")
    path = join(relative_folder, "lock")
    if not is_inside(path) or "://" in relative_folder:
        raise OptionError(
            f"hoodie.write.lock.filesystem.path={folder!r} does not lie in the table {storage.uri}: name a folder of the table"
        )
    return path


def _holder_in(content: bytes) -> Holder | None:
    try:
        return read_holder_note(json.loads(content))
    except (ValueError, AttributeError):
        return None


_not_released: set[bytes] = set()
"""Contents of lock files of this process that it could not delete: the storage failed."""
