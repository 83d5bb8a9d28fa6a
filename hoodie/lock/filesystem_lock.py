"""The table lock as a file that only one can create, as Apache Hudi's `FileSystemBasedLockProvider` has it.

For storages whose creation is exclusive and that have nothing better, such as HDFS. The file has no lease: where its holder
died on another machine it stands until the option says that it is too old, or until somebody deletes it.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from hoodie.errors import LockError, OptionError
from hoodie.lock.base import WAITING, Waiting, wait_for
from hoodie.lock.held import lets_go
from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.model.names import HOODIE, is_inside, join
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.storage.base import RenamingStorage, Storage
from hoodie.storage.paths import SCRATCH_FOLDER, temporary_name

LONGEST_PAUSE_S = 0.5
"""Between two looks at the lock of another; each may be a request."""

log = logging.getLogger("hoodie")


class FilesystemLock:
    """`Lock` by exclusive creation of `.hoodie/lock`, or of `lock` in the folder that an option names."""

    def __init__(self, storage: Storage, options: ConcurrencyOptions, waiting: Waiting = WAITING) -> None:
        self._storage = storage
        self._path = _path_of(storage, options.filesystem_path)
        self._expiry_s = options.filesystem_expiry_s
        self._waiting = waiting
        self._held: _File | None = None

    def __repr__(self) -> str:
        return f"FilesystemLock({self._storage.uri!r}, {self._path!r})"

    def acquire(self, timeout_s: float) -> None:
        self._acquired(timeout_s)

    def _acquired(self, timeout_s: float) -> _File:
        key = (self._storage.identity, self._path)
        mine = _held_here.get(key)
        if mine is not None and mine.thread == threading.get_ident() and not mine.is_known_lost():
            raise LockError(
                f"the lock of table {self._storage.uri} is held by this very thread already: "
                "it cannot be taken twice, release it first"
            )
        file = _File(self._storage, self._path, self._expiry_s)
        try:
            granted = wait_for(lambda: self._attempt(file), timeout_s, self._waiting, longest_pause_s=LONGEST_PAUSE_S)
        except BaseException:
            file.delete()
            raise
        if not granted:
            raise LockError(
                f"the lock of table {self._storage.uri} was not granted within {timeout_s} s: {self._holder()} holds "
                f"{self._path}; nothing was written: try again when it is done, or delete the file if that process is dead"
            )
        self._held = _held_here[key] = file
        return file

    def _attempt(self, file: _File) -> bool:
        if file.create():
            return True
        self._remove_what_is_left()
        return False

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

    def _holder(self) -> str:
        with suppress(OSError):
            holder = _holder_in(self._storage.read(self._path))
            return str(holder) if holder is not None else "another program"
        return "somebody who has let go of it just now"

    def release(self) -> None:
        self._release(self._held)

    def _release(self, file: _File | None) -> None:
        if file is None:
            return
        if self._held is file:
            self._held = None
        file.delete()

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        file = self._acquired(timeout_s)
        try:
            yield
        finally:
            self._release(file)  # this very file: a block that was interrupted may end late, when others have the lock

    def is_held(self) -> bool:
        return self._held is not None and not self._held.is_known_lost() and self._held.is_in_place()

    @property
    def is_leased(self) -> bool:
        return True

    def is_known_lost(self) -> bool:
        return self._held is not None and self._held.is_known_lost()


class _File:
    """A lock file of ours."""

    def __init__(self, storage: Storage, path: str, expiry_s: float) -> None:
        self.thread = threading.get_ident()
        self._storage = storage
        self._path = path
        self._expiry_s = expiry_s
        self._pid = os.getpid()
        self._begun = (0.0, 0.0)
        self._tried = False
        self._is_over = False
        created = time.strftime("%Y-%m-%d %H:%M:%S.000", time.gmtime())
        theirs = {"lockCreateTime": created, "lockThreadName": threading.current_thread().name}
        self._content = json.dumps(theirs | {"nonce": secrets.token_hex(8)} | this_process().note()).encode()

    def create(self) -> bool:
        begun = (time.time(), time.monotonic())
        try:
            self._tried = True
            _files.add(self)
            self._storage.create_new(self._path, self._content)
        except FileExistsError:
            if not self.is_in_place():  # it may be ours: an earlier answer was lost
                return False
        self._begun = begun
        return True

    def is_in_place(self) -> bool:
        try:
            return self._storage.read(self._path) == self._content
        except FileNotFoundError:
            return False

    def is_known_lost(self) -> bool:
        """Whether others may have taken it for one that was left behind."""
        past_s = max(time.time() - self._begun[0], time.monotonic() - self._begun[1])
        return self._is_over or self._pid != os.getpid() or 0 < self._expiry_s <= past_s

    def delete(self) -> None:
        """Let go of the lock. Until that is done an interrupt finds it among `_files`, and it is done again."""
        if self._tried and not self._is_over and self._pid == os.getpid():
            try:
                if self.is_in_place():
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
            self._is_over = True
        _files.discard(self)


def _path_of(storage: Storage, folder: str | None) -> str:
    given = HOODIE if folder is None else folder.removeprefix(storage.uri).strip("/")
    path = join(given, "lock")
    if not is_inside(path) or "://" in given:
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
_files: weakref.WeakSet[_File] = weakref.WeakSet()
_held_here: weakref.WeakValueDictionary[Hashable, _File] = weakref.WeakValueDictionary()
"""By storage and path: what this process took last; only to refuse waiting for oneself."""

os.register_at_fork(after_in_child=_held_here.clear)
os.register_at_fork(after_in_child=_files.clear)


@lets_go
def _held_by_this_thread() -> dict[object, Callable[[], None]]:
    me = threading.get_ident()
    return {file: partial(file.delete) for file in list(_files) if file.thread == me}
