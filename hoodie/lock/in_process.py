"""Lock and liveness for storages that live in this process only."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from hoodie.errors import LockError
from hoodie.lock.base import WAITING, Waiting, wait_for
from hoodie.lock.held import lets_go
from hoodie.lock.liveness import LIVE_FOLDER, live_path
from hoodie.storage.base import Storage


class _Grants:
    """Who holds what of one storage."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.holder: tuple[InProcessLock, int] | None = None
        """The lock object and the thread that took it."""
        self.live: dict[str, int] = {}
        """Instants in work, and the thread that has each."""

    def forget(self, instant: str | None) -> None:
        """Let go of an instant's mark as a killed process would; None: of the lock."""
        with self.mutex:
            if instant is None:
                self.holder = None
            else:
                self.live.pop(instant, None)


_grants: weakref.WeakKeyDictionary[Storage, _Grants] = weakref.WeakKeyDictionary()
_grants_mutex = threading.Lock()


def _grants_of(storage: Storage) -> _Grants:
    # By the storage itself, not its uri: two storages in memory with one uri share no file, so nothing to protect.
    with _grants_mutex:
        return _grants.setdefault(storage, _Grants())


@lets_go
def _held_by_this_thread() -> dict[object, Callable[[], None]]:
    """What this thread holds of all storages, and how to let go of each."""
    me = threading.get_ident()
    with _grants_mutex:
        every = list(_grants.values())
    held: dict[object, Callable[[], None]] = {}
    for grants in every:
        with grants.mutex:
            if grants.holder is not None and grants.holder[1] == me:
                held[grants, None] = partial(grants.forget, None)
            held |= {(grants, i): partial(grants.forget, i) for i, thread in grants.live.items() if thread == me}
    return held


class InProcessLock:
    """`Lock` between the threads of this process, one for each storage object."""

    def __init__(self, storage: Storage, waiting: Waiting = WAITING) -> None:
        self._uri = storage.uri
        self._grants = _grants_of(storage)
        self._waiting = waiting

    def __repr__(self) -> str:
        return f"InProcessLock({self._uri!r})"

    def acquire(self, timeout_s: float) -> None:
        me = threading.get_ident()
        holder = self._grants.holder
        if holder is not None and holder[1] == me:
            raise LockError(
                f"the lock of table {self._uri} is held by this very thread already: "
                "it cannot be taken twice, release it first"
            )

        def attempt() -> bool:
            with self._grants.mutex:
                if self._grants.holder is not None:
                    return False
                self._grants.holder = (self, me)
                return True

        if not wait_for(attempt, timeout_s, self._waiting):
            holder = self._grants.holder
            raise LockError(
                f"the lock of table {self._uri} was not granted within {timeout_s} s: "
                f"thread {holder[1] if holder else '(just ended)'} of this process holds it; nothing was written: "
                "try again when it is done, or wait longer"
            )

    def release(self) -> None:
        with self._grants.mutex:
            if self._grants.holder is not None and self._grants.holder[0] is self:
                self._grants.holder = None

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        self.acquire(timeout_s)
        try:
            yield
        finally:
            self.release()

    def is_held(self) -> bool:
        with self._grants.mutex:
            return self._grants.holder is not None and self._grants.holder[0] is self

    @property
    def is_leased(self) -> bool:
        return False

    def is_known_lost(self) -> bool:
        return False


class InProcessLiveness:
    """`Liveness` between the threads of this process; the marks are files of the storage, the holders are not."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._grants = _grants_of(storage)

    def hold(self, instant: str) -> None:
        path = live_path(instant)
        with self._grants.mutex:
            if instant in self._grants.live:
                raise LockError(
                    f"a living writer of this process has instant {instant} of {self._storage.uri} in hand: "
                    "wait until it is done"
                )
            self._storage.touch(path)
            self._grants.live[instant] = threading.get_ident()

    def release(self, instant: str) -> None:
        path = live_path(instant)
        with self._grants.mutex:
            self._grants.live.pop(instant, None)
            self._storage.delete(path)

    def abandon(self, instant: str) -> None:
        self._grants.forget(instant)

    def is_alive(self, instant: str) -> bool | None:
        path = live_path(instant)
        with self._grants.mutex:
            if not self._storage.exists(path):
                return None
            return instant in self._grants.live

    def holder(self, instant: str) -> str | None:
        thread = self._grants.live.get(instant)
        return None if thread is None else f"thread {thread} of this process"

    @property
    def expiry_s(self) -> None:
        return None

    def marks(self) -> frozenset[str]:
        return frozenset(self._storage.names(LIVE_FOLDER))
