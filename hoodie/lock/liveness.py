"""Is the writer of an instant alive? A locked file for each instant in the hands of a process."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress

from hoodie.errors import LockError, UnsupportedTableError
from hoodie.lock.base import WAITING, Waiting, wait_for
from hoodie.lock.os_lock import HeldFile, holder_text, is_locked, read_holder, try_lock
from hoodie.lock.registry import BY_KEY
from hoodie.storage.base import Storage
from hoodie.storage.paths import SCRATCH_FOLDER, temporary_name

LIVE_FOLDER = ".hoodie/.hoodie_py/live"

_PROBE_S = 0.1


def live_path(instant: str) -> str:
    """The path of the instant's mark. Raises ValueError when the instant is no single path part."""
    if not instant or "/" in instant or "\0" in instant or instant.startswith("."):
        raise ValueError(f"{instant!r} is not an instant: it cannot name a file in {LIVE_FOLDER}")
    return f"{LIVE_FOLDER}/{instant}"


class FileLiveness:
    """`Liveness` by flock on `.hoodie/.hoodie_py/live/<instant>`.

    The answer False needs the dead holder's host to be this one: whether another machine's locks can be seen from
    here depends on the file system, so for a mark from there that is not locked the answer is None. A mark made
    just before a power cut may be missing, which is None too.
    """

    def __init__(self, storage: Storage, waiting: Waiting = WAITING) -> None:
        root = storage.can.local_root
        if root is None:
            raise UnsupportedTableError(f"{storage.uri} is not on a local disk: no file of it can be locked")
        self._storage = storage
        self._root = root
        self._waiting = waiting

    def hold(self, instant: str) -> None:
        path = self._path(instant)
        self._storage.mkdirs(LIVE_FOLDER)
        draft_path = self._draft_path()
        draft: HeldFile | None = None
        held: HeldFile | None = None

        def attempt() -> bool:
            nonlocal held
            try:
                # Locked first, then linked: the mark of a living writer is never seen unlocked.
                os.link(draft_path, path)
            except FileExistsError:
                with suppress(FileNotFoundError):  # released this moment: link again
                    held = try_lock(path, create=False)
            else:
                assert draft is not None
                draft.path = path
                held = draft
            return held is not None

        try:
            draft = try_lock(draft_path, create=True)
            if draft is None:
                raise LockError(f"{draft_path} was locked by somebody else as soon as it was made: try again")
            draft.write_holder()
            mine = _held_here.get(os.path.realpath(path))
            if mine is None or not mine.is_in_place():
                self._retried(attempt)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft_path)
            if draft is not None and held is not draft:
                draft.let_go()
        if held is None:
            raise LockError(
                f"instant {instant} of {self._storage.uri} is being written by a living writer, "
                f"{holder_text(path)}: wait until it is done"
            )
        if held is not draft:
            held.write_holder()
        _held_here[os.path.realpath(path)] = held

    def release(self, instant: str) -> None:
        path = self._path(instant)
        held = _held_here.pop(os.path.realpath(path), None)
        if held is not None and not held.is_open:
            held = None  # let go of after an interrupt

        def attempt() -> bool:
            nonlocal held
            held = try_lock(path, create=False)
            return held is not None

        if held is None:
            with suppress(FileNotFoundError):
                self._retried(attempt)
        if held is None:
            return  # no such mark, or another process holds it
        try:
            if held.is_in_place():  # else the table was deleted meanwhile, and what stands there now is another's
                # Removed while it is locked: whoever opened it before sees that it is no longer in its place.
                os.unlink(path)
        finally:
            held.let_go()

    def abandon(self, instant: str) -> None:
        held = _held_here.pop(os.path.realpath(self._path(instant)), None)
        if held is not None:
            held.let_go(holder_stays=True)

    def is_alive(self, instant: str) -> bool | None:
        path = self._path(instant)
        host = read_holder(path).get("host")
        locked = is_locked(path)
        if locked is False and host not in (None, socket.gethostname()):
            return None
        return locked

    def holder(self, instant: str) -> str | None:
        path = self._path(instant)
        return holder_text(path) if read_holder(path) else None

    @property
    def expiry_s(self) -> None:
        return None

    def marks(self) -> frozenset[str]:
        return frozenset(self._storage.names(LIVE_FOLDER))

    def _path(self, instant: str) -> str:
        return os.path.join(self._root, live_path(instant))

    def _draft_path(self) -> str:
        self._storage.mkdirs(SCRATCH_FOLDER)
        return os.path.join(self._root, SCRATCH_FOLDER, temporary_name())

    def _retried(self, attempt: Callable[[], bool]) -> None:
        # A lock that refuses us may be no holder's but that of somebody who asks `is_alive` at this moment.
        wait_for(attempt, _PROBE_S, self._waiting)


_held_here: dict[str, HeldFile] = {}
"""The marks that this process holds, by real path."""

BY_KEY.append(_held_here)
