"""Lock and liveness for storages that live in this process only."""

from __future__ import annotations

import threading
import weakref

from hoodie.errors import LockError
from hoodie.lock.base import WAITING, Waiting
from hoodie.lock.grant import Grant, GrantedLock
from hoodie.lock.liveness import LIVE_FOLDER, live_path
from hoodie.lock.registry import HeldLock
from hoodie.storage.base import Storage


class _Room:
    """Who holds what of one storage."""

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.holder: _Turn | None = None
        self.live: dict[str, _Mark] = {}
        """The marks of instants in work."""


_rooms: weakref.WeakKeyDictionary[Storage, _Room] = weakref.WeakKeyDictionary()
_rooms_mutex = threading.Lock()


def _room_of(storage: Storage) -> _Room:
    # By the storage itself, not its uri: two storages in memory with one uri share no file, so nothing to protect.
    with _rooms_mutex:
        return _rooms.setdefault(storage, _Room())


class InProcessLock(GrantedLock):
    """`Lock` between the threads of this process, one for each storage object."""

    is_leased = False

    def __init__(self, storage: Storage, waiting: Waiting = WAITING) -> None:
        super().__init__(storage.uri, waiting)
        self._room = _room_of(storage)

    def __repr__(self) -> str:
        return f"InProcessLock({self._uri!r})"

    def _new_grant(self) -> Grant:
        return _Turn(self._room)


class _Turn(Grant):
    """The lock of one storage, in the hands of one thread."""

    def __init__(self, room: _Room) -> None:
        super().__init__(room)
        self._room = room

    def attempt(self) -> bool:
        self.may_be_held = True
        with self._room.mutex:
            if self._room.holder is not None:
                return False
            self._room.holder = self
            return True

    def stands(self) -> bool:
        return self._room.holder is self

    def is_over(self) -> bool:
        return self._room.holder is not self

    def is_known_lost(self) -> bool:
        return False

    def holder(self) -> str:
        holder = self._room.holder
        return f"thread {holder.thread if holder else '(just ended)'} of this process holds it"

    def release(self) -> None:
        with self._room.mutex:
            if self._room.holder is self:
                self._room.holder = None
        self.may_be_held = False

    def forget_in_child(self) -> None:
        super().forget_in_child()
        if self._room.holder is self:
            self._room.holder = None  # the child has a storage of its own, which nobody writes to


class _Mark(HeldLock):
    """A living instant of one storage."""

    def __init__(self, room: _Room, instant: str) -> None:
        super().__init__()
        self._room = room
        self._instant = instant
        self.may_be_held = True

    def drop(self) -> None:
        with self._room.mutex:
            if self._room.live.get(self._instant) is self:
                del self._room.live[self._instant]
        self.may_be_held = False


class InProcessLiveness:
    """`Liveness` between the threads of this process; the marks are files of the storage, the holders are not."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._room = _room_of(storage)

    def hold(self, instant: str) -> None:
        path = live_path(instant)
        with self._room.mutex:
            if instant in self._room.live:
                raise LockError(
                    f"a living writer of this process is writing instant {instant} of {self._storage.uri}: "
                    "wait until it is done"
                )
            self._storage.touch(path)
            self._room.live[instant] = _Mark(self._room, instant)

    def release(self, instant: str) -> None:
        path = live_path(instant)
        with self._room.mutex:
            self.abandon(instant)
            self._storage.delete(path)

    def abandon(self, instant: str) -> None:
        with self._room.mutex:
            mark = self._room.live.get(instant)
            if mark is not None:
                mark.drop()

    def is_alive(self, instant: str) -> bool | None:
        path = live_path(instant)
        with self._room.mutex:
            if not self._storage.exists(path):
                return None
            return instant in self._room.live

    def holder(self, instant: str) -> str | None:
        mark = self._room.live.get(instant)
        return None if mark is None else f"thread {mark.thread} of this process"

    @property
    def expiry_s(self) -> None:
        return None

    def marks(self) -> frozenset[str]:
        return frozenset(self._storage.names(LIVE_FOLDER))
