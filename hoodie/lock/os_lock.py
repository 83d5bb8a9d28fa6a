"""A file locked through the operating system, which lets go of it when the process dies."""

from __future__ import annotations

import fcntl
import io
import json
import os
import secrets
import socket
import time

from hoodie.errors import LockError
from hoodie.lock.holder import phrase
from hoodie.lock.registry import HeldLock

_MODE = 0o666  # less the umask: another user's writer must be able to see who holds the lock
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_HOLDER_BYTES = 4096


class HeldFile(HeldLock):
    """A file with the exclusive lock on it; open as long as it is held. Made by `try_lock`."""

    def __init__(self, file: io.FileIO, path: str) -> None:
        super().__init__()
        self._file = file
        self._token = secrets.token_hex(8)
        self.path = path
        self.may_be_held = True

    def write_holder(self) -> None:
        """Put into the file who holds it, for the messages of those who wait."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": since, "token": self._token}
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(holder).encode())

    @property
    def is_open(self) -> bool:
        return not self._file.closed

    def is_in_place(self) -> bool:
        """Whether it is the file that others who go by the path would lock."""
        return self.is_open and _is_at(self._file.fileno(), self.path)

    def is_intact(self) -> bool:
        """Whether the lock is still held, on the file in its place, and still names us; after `write_holder`."""
        names_us = read_holder(self.path).get("token") == self._token
        return self.is_in_place() and names_us and is_locked(self.path) is True

    def let_go(self, *, holder_stays: bool = False) -> None:
        """Unlock; the holder's name is wiped from the file unless it stays, as after a crash."""
        try:
            if self.is_open:
                if not holder_stays:
                    self._file.truncate(0)
                # Not by closing alone: a child process on its way from fork to exec still has the file open.
                fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)
        finally:
            self._file.close()
            self.may_be_held = False

    def drop(self) -> None:
        self.let_go(holder_stays=True)

    def forget_in_child(self) -> None:
        """Close without unlocking: a child shares the open file with the parent, and would keep its lock after its death."""
        super().forget_in_child()
        self._file.close()


def try_lock(path: str, *, create: bool) -> HeldFile | None:
    """Lock the file at the path, or None when somebody else, in any process or thread, holds it.

    Raises:
        FileNotFoundError: no such file and not `create`. LockError: the file system has no such locks.
    """
    flags = os.O_RDWR | (os.O_CREAT if create else 0) | _FLAGS
    while True:
        # Opened by the object that closes it: nothing can come between the two.
        file = io.FileIO(path, "r+b", opener=lambda name, _: os.open(name, flags, _MODE))
        try:
            if not _flock(file.fileno(), fcntl.LOCK_EX, path):
                file.close()
                return None
            if _is_at(file.fileno(), path):
                return HeldFile(file, path)
        except BaseException:
            file.close()
            raise
        file.close()  # deleted between our open and our lock: a lock on it excludes nobody


def is_locked(path: str) -> bool | None:
    """Whether somebody, this process included, holds the lock of the file at the path; None: no such file."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | _FLAGS)
        except FileNotFoundError:
            return None
        try:
            # Shared, so that two who ask at once do not take each other for the holder.
            if not _flock(descriptor, fcntl.LOCK_SH, path):
                return True
            if _is_at(descriptor, path):
                return False
        finally:
            os.close(descriptor)


def read_holder(path: str) -> dict[str, str]:
    """What the holder wrote about itself: pid, host, since, token; empty when nothing (whole) is there."""
    try:
        with open(path, "rb") as file:
            holder = json.loads(file.read(_HOLDER_BYTES))
    except (FileNotFoundError, ValueError):
        return {}
    return {str(key): str(value) for key, value in holder.items()} if isinstance(holder, dict) else {}


def holder_text(path: str) -> str:
    """The holder as a phrase for a message."""
    holder = read_holder(path)
    if not {"pid", "host", "since"} <= holder.keys():
        return "a holder who left no name"
    return phrase(host=holder["host"], pid=holder["pid"], since=holder["since"])


def _flock(descriptor: int, kind: int, path: str) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as exc:
        raise LockError(
            f"{path} could not be locked ({exc.strerror}): the file system must support flock; "
            "put the table on one that does"
        ) from exc
    return True


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
