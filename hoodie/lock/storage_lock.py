"""The table lock as one file of a storage that can compare and swap: an object store, without any server beside it.

File and fields are those of Apache Hudi's `StorageBasedLockProvider`, so that both exclude each other. Fields of ours say who
holds the lock, and a nonce makes the bytes of every write its own: an ETag may be nothing but their hash.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple

from hoodie.errors import AccessDeniedError, LockError, StorageFullError, UnsupportedTableError
from hoodie.lock.base import WAITING, Waiting, wait_for
from hoodie.lock.held import lets_go
from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.storage.base import ConditionalStorage, Storage

LOCK_PATH = ".hoodie/.locks/table_lock.json"
DRIFT_S = 0.5
"""By how much the clocks of two machines may differ, as Apache Hudi has it."""
LONGEST_PAUSE_S = 0.5
"""Between two looks at the lock of another; each costs a request."""

log = logging.getLogger("hoodie")


class Clocks(NamedTuple):
    """Two, because each misses some pauses: one may be set, the other may stand still while the machine sleeps."""

    wall_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic


CLOCKS = Clocks()


class StorageLock:
    """`Lock` by compare and swap on `.hoodie/.locks/table_lock.json`, with a lease that a thread renews.

    A holder that was paused beyond its lease has lost the lock for good, even where nobody took it meanwhile.
    """

    def __init__(
        self,
        storage: Storage,
        options: ConcurrencyOptions = CONCURRENCY,
        waiting: Waiting = WAITING,
        clocks: Clocks = CLOCKS,
    ) -> None:
        if not isinstance(storage, ConditionalStorage):
            raise UnsupportedTableError(
                f"a lock in the storage needs one that compares and swaps, and {storage.uri} does not: "
                "leave hoodie.write.lock.provider out, or name another provider"
            )
        self._storage = storage
        self._lease_s = options.storage_lease_s
        self._renewal_s = min(options.storage_renewal_s, options.storage_lease_s / 10)
        self._waiting = waiting
        self._clocks = clocks
        self._held: _Lease | None = None
        self._last: Hashable | None = None
        """The tag of our last release: if it still is the file's, the lock is free."""
        self._unanswered: set[str] = set()
        """Nonces of writes whose answer was lost: such a lock is nobody's but ours."""
        self._failed: OSError | None = None
        """Why the last try to write it failed."""

    def __repr__(self) -> str:
        return f"StorageLock({self._storage.uri!r})"

    def acquire(self, timeout_s: float) -> None:
        self._acquired(timeout_s)

    def _acquired(self, timeout_s: float) -> _Lease:
        mine = _held_here.get(self._storage.identity)
        if mine is not None and mine.thread == threading.get_ident() and not mine.is_over():
            raise LockError(
                f"the lock of table {self._storage.uri} is held by this very thread already: "
                "it cannot be taken twice, release it first"
            )
        lease: _Lease | None = None

        def attempt() -> bool:
            nonlocal lease
            lease = self._attempt()
            return lease is not None

        if not wait_for(attempt, timeout_s, self._waiting, longest_pause_s=LONGEST_PAUSE_S):
            raise self._refused(timeout_s)
        assert lease is not None
        self._held = lease
        _held_here[self._storage.identity] = lease
        lease.start()
        return lease

    def _attempt(self) -> _Lease | None:
        """One try to take the lock; None: it is held, or another one was faster."""
        lease = _Lease(self._storage, self._lease_s, self._renewal_s, self._clocks)
        self._failed = None
        if self._last is not None:
            tag, self._last = self._last, None
            with suppress(FileExistsError, FileNotFoundError):
                return self._take(lease, tag)
        found = _read(self._storage)
        if found is not None and self._stands(found):
            return None
        with suppress(FileExistsError, FileNotFoundError):
            return self._take(lease, None if found is None else found.tag)
        return None

    def _take(self, lease: _Lease, tag: Hashable | None) -> _Lease | None:
        data, nonce = lease.next_bytes()
        lease.is_asked_for = True
        try:
            if tag is None:
                self._storage.create_new(LOCK_PATH, data)
            else:
                lease.tag = self._storage.swap(LOCK_PATH, data, tag)
        except (FileExistsError, FileNotFoundError, AccessDeniedError, StorageFullError):
            lease.is_asked_for = False
            raise
        except OSError as exc:
            lease.is_asked_for = False
            self._unanswered.add(nonce)
            self._failed = exc
            return None  # perhaps it is ours: the next look tells
        if tag is None:
            found = _read(self._storage)
            if found is None or found.nonce != nonce:
                return None
            lease.tag = found.tag
        self._unanswered.clear()
        return lease

    def _stands(self, found: _Found) -> bool:
        """Whether somebody may still hold what the file says."""
        if found.expired or found.nonce in self._unanswered or found.owner in _not_released:
            return False
        if self._clocks.wall_s() > found.valid_until_ms / 1000 + DRIFT_S:
            return False
        return found.holder is None or not found.holder.is_dead()

    def _holder(self) -> str:
        with suppress(OSError):
            found = _read(self._storage)
            if found is not None and self._stands(found):
                until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.valid_until_ms / 1000))
                who = str(found.holder) if found.holder is not None else f"owner {found.owner}, another program,"
                return f"{who}, with a lease until {until},"
        return "somebody who has let go of it just now"

    def _refused(self, timeout_s: float) -> LockError:
        begin = f"the lock of table {self._storage.uri} was not granted within {timeout_s} s"
        if self._failed is not None:
            return LockError(
                f"{begin}: the storage fails ({self._failed}); nothing was written: try again when it works"
            )
        return LockError(
            f"{begin}: {self._holder()} holds {LOCK_PATH}; nothing was written: try again when it is done, or wait longer"
        )

    def release(self) -> None:
        self._release(self._held)

    def _release(self, lease: _Lease | None) -> None:
        if lease is None:
            return
        if self._held is lease:
            self._held = None
        if _held_here.get(self._storage.identity) is lease:
            del _held_here[self._storage.identity]
        self._last = lease.end()

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        lease = self._acquired(timeout_s)
        try:
            yield
        finally:
            self._release(
                lease
            )  # this very lease: a block that was interrupted may end late, when others have the lock

    def is_held(self) -> bool:
        lease = self._held
        if lease is None or lease.is_over():
            return False
        found = _read(self._storage)
        return found is not None and not found.expired and found.owner == lease.owner and not lease.is_over()

    @property
    def is_leased(self) -> bool:
        return True

    def is_known_lost(self) -> bool:
        return self._held is not None and self._held.is_over()


class _Found(NamedTuple):
    """What the lock file says."""

    expired: bool
    valid_until_ms: int
    owner: str
    nonce: str | None
    holder: Holder | None
    tag: Hashable


def _read(storage: ConditionalStorage) -> _Found | None:
    try:
        data, tag = storage.read_tagged(LOCK_PATH)
    except FileNotFoundError:
        return None
    try:
        note = json.loads(data)
        expired, until, owner = note["expired"], note["validUntil"], note["owner"]
        if not (isinstance(expired, bool) and isinstance(until, int) and isinstance(owner, str)):
            raise TypeError("fields of other types")
    except (ValueError, KeyError, TypeError) as exc:
        raise LockError(
            f"{LOCK_PATH} of table {storage.uri} is no lock file ({exc}): delete it when no writer is at work on the table"
        ) from exc
    nonce = note.get("nonce")
    return _Found(expired, until, owner, nonce if isinstance(nonce, str) else None, read_holder_note(note), tag)


class _Lease:
    """One acquisition: the lock until its time is over, and the thread that renews it."""

    def __init__(self, storage: ConditionalStorage, lease_s: float, renewal_s: float, clocks: Clocks) -> None:
        self.owner = str(uuid.uuid4())
        self.thread = threading.get_ident()
        self.tag: Hashable = None
        self.is_asked_for = False
        """Whether the lock file may name it."""
        self._storage = storage
        self._lease_s = lease_s
        self._renewal_s = renewal_s
        self._clocks = clocks
        self._holder = this_process()
        self._begun = self._now()
        """Both clocks when the last write that succeeded was begun."""
        self._lost = False
        self._mutex = threading.Lock()
        self._stopped: SimpleQueue[None] = SimpleQueue()
        self._renewing: threading.Thread | None = None
        _leases.add(self)

    def _now(self) -> tuple[float, float]:
        return self._clocks.wall_s(), self._clocks.monotonic_s()

    def next_bytes(self, *, begun_wall_s: float | None = None, expired: bool = False) -> tuple[bytes, str]:
        """The lock file's next content, for a lease that begins then (default: the one that runs), and its nonce."""
        begun_s = self._begun[0] if begun_wall_s is None else begun_wall_s
        nonce = secrets.token_hex(8)
        until_ms = int((begun_s + self._lease_s) * 1000)
        note = {"expired": expired, "validUntil": until_ms, "owner": self.owner, "nonce": nonce}
        return json.dumps(note | self._holder.note()).encode(), nonce

    def is_over(self) -> bool:
        """Whether it is lost, or so long not renewed that others may have taken it."""
        past_s = max(now - begun for now, begun in zip(self._now(), self._begun, strict=True))
        if past_s >= self._lease_s or self._holder.pid != os.getpid():
            self._lost = True
        return self._lost

    def start(self) -> None:
        self._renewing = threading.Thread(target=self._renew, name="hoodie-lock", daemon=True)
        self._renewing.start()

    def _renew(self) -> None:
        while not self._stops_within(self._renewal_s):
            with self._mutex:
                if self.is_over():
                    return
                begun = self._now()
                try:
                    self._swap(self.next_bytes(begun_wall_s=begun[0])[0])
                    self._begun = begun
                except (FileExistsError, FileNotFoundError, LockError):
                    self._lost = True
                    return
                except OSError as exc:
                    log.warning("the lock of table %s was not renewed, another try follows: %s", self._storage.uri, exc)

    def _swap(self, data: bytes) -> None:
        if self.tag is not None:
            with suppress(FileExistsError):
                self.tag = self._storage.swap(LOCK_PATH, data, self.tag)
                return
        found = _read(self._storage)
        if found is None or found.owner != self.owner:
            raise FileExistsError(LOCK_PATH)
        # Ours all the same: an earlier answer was lost, or did not get here for an interrupt, and not its effect.
        self.tag = self._storage.swap(LOCK_PATH, data, found.tag)

    def end(self) -> Hashable | None:
        """Let the lock go; gives the tag by which it can be taken again, None where that is not known.

        Until that is done an interrupt finds it among `_leases`, and it is done again.
        """
        if self._holder.pid != os.getpid():
            return None  # in a child; it is the parent's
        self._stopped.put(None)
        with self._mutex:
            tag = None if self._lost else self._expired()
            self._lost = True
            _leases.discard(self)
        return tag

    def _expired(self) -> Hashable | None:
        """Say in the file that it is over."""
        try:
            self._swap(self.next_bytes(expired=True)[0])
        except (FileExistsError, FileNotFoundError):
            return None
        except (OSError, LockError) as exc:
            _not_released.add(self.owner)
            log.warning(
                "the lock of table %s could not be released, other processes wait until its lease ends: %s",
                self._storage.uri,
                exc,
            )
            return None
        return self.tag

    def _stops_within(self, seconds: float) -> bool:
        try:
            self._stopped.get(timeout=seconds)
        except Empty:
            return False
        return True


_not_released: set[str] = set()
"""Owners of leases of this process that are over, though the file may still name them."""
_leases: weakref.WeakSet[_Lease] = weakref.WeakSet()
"""Those that this process holds."""
_held_here: weakref.WeakValueDictionary[Hashable, _Lease] = weakref.WeakValueDictionary()
"""By storage: what this process took last; only to refuse waiting for oneself."""

os.register_at_fork(after_in_child=_held_here.clear)
os.register_at_fork(after_in_child=_leases.clear)


@lets_go
def _held_by_this_thread() -> dict[object, Callable[[], None]]:
    me = threading.get_ident()
    return {lease: partial(_end, lease) for lease in list(_leases) if lease.thread == me and lease.is_asked_for}


def _end(lease: _Lease) -> None:
    lease.end()
