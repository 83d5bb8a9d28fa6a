"""The table lock as one file of a storage that can compare and swap: an object store, without any server beside it.

File and fields are those of Apache Hudi's `StorageBasedLockProvider`, so that both exclude each other. Fields of ours say who
holds the lock, and a nonce makes the bytes of every write its own: an ETag may be nothing but their hash.
"""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from hoodie.errors import AccessDeniedError, LockError, StorageFullError, UnsupportedTableError
from hoodie.lock.base import WAITING, Waiting
from hoodie.lock.grant import NOBODY, Grant, GrantedLock
from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.lock.lease import CLOCKS, Clocks, Lease, warn_not_released
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.storage.base import ConditionalStorage, Storage

LOCK_PATH = ".hoodie/.locks/table_lock.json"
DRIFT_S = 0.5
"""By how much the clocks of two machines may differ, as Apache Hudi has it."""
LONGEST_PAUSE_S = 0.5
"""Between two looks at the lock of another; each costs a request."""


class StorageLock(GrantedLock):
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
        super().__init__(storage.uri, waiting, longest_pause_s=LONGEST_PAUSE_S)
        if not isinstance(storage, ConditionalStorage):
            raise UnsupportedTableError(
                f"the lock provider storage needs a store with conditional puts, which {storage.uri} does not have: "
                "leave hoodie.write.lock.provider out, or name another provider"
            )
        self._setting = _Settings(
            storage,
            options.storage_lease_s,
            min(options.storage_renewal_s, options.storage_lease_s / 10),
            clocks,
            _Traces(),
        )

    def __repr__(self) -> str:
        return f"StorageLock({self._uri!r})"

    def _new_grant(self) -> Grant:
        return _Lease(self._setting)


@dataclass
class _Traces:
    """What the leases of one lock object leave for the next."""

    released: Hashable | None = None
    """The tag of the last release: if it still is the file's, the lock is free."""
    unanswered: set[str] = field(default_factory=set)
    """Nonces of writes whose answer was lost: such a lock is nobody's but ours."""


class _Settings(NamedTuple):
    storage: ConditionalStorage
    lease_s: float
    renewal_s: float
    clocks: Clocks
    traces: _Traces


class _LockContent(NamedTuple):
    """What the lock file says."""

    expired: bool
    valid_until_ms: int
    owner: str
    nonce: str | None
    holder: Holder | None
    tag: Hashable


def _read(storage: ConditionalStorage) -> _LockContent | None:
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
    return _LockContent(expired, until, owner, nonce if isinstance(nonce, str) else None, read_holder_note(note), tag)


class _Lease(Lease):
    """One acquisition by a write of the lock file."""

    def __init__(self, setting: _Settings) -> None:
        self._storage, lease_s, renewal_s, clocks, self._traces = setting
        super().__init__(self._storage.identity, self._storage.uri, lease_s=lease_s, renewal_s=renewal_s, clocks=clocks)
        self.owner = str(uuid.uuid4())
        self._tag: Hashable = None
        self._holder = this_process()

    def attempt(self) -> bool:
        self._start = self._clocks.now()
        self.failure = None
        with suppress(FileExistsError, FileNotFoundError):
            if self._traces.released is not None:
                tag, self._traces.released = self._traces.released, None
                with suppress(FileExistsError, FileNotFoundError):
                    return self._take(tag)
            mark = _read(self._storage)
            if mark is None or not self._may_be_held(mark):
                return self._take(None if mark is None else mark.tag)
        return False

    def _take(self, tag: Hashable | None) -> bool:
        data, nonce = self._next_bytes()
        self.may_be_held = True
        try:
            if tag is None:
                self._storage.create_new(LOCK_PATH, data)
            else:
                self._tag = self._storage.swap(LOCK_PATH, data, tag)
        except (FileExistsError, FileNotFoundError, AccessDeniedError, StorageFullError):
            self.may_be_held = False
            raise
        except OSError as exc:
            self.may_be_held = False
            self._traces.unanswered.add(nonce)
            self.failure = exc
            return False  # perhaps it is ours: the next look tells
        if tag is None:
            mark = _read(self._storage)
            if mark is None or mark.nonce != nonce:
                return False
            self._tag = mark.tag
        self._traces.unanswered.clear()
        self._keep()
        return True

    def _may_be_held(self, mark: _LockContent) -> bool:
        """Whether somebody may still hold what the file says."""
        if mark.expired or mark.nonce in self._traces.unanswered or mark.owner in _not_released:
            return False
        if self._clocks.wall_s() > mark.valid_until_ms / 1000 + DRIFT_S:
            return False
        return mark.holder is None or not mark.holder.is_dead()

    def holder(self) -> str:
        return f"{self._who()} holds {LOCK_PATH}"

    def _who(self) -> str:
        with suppress(OSError):
            mark = _read(self._storage)
            if mark is not None and self._may_be_held(mark):
                until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(mark.valid_until_ms / 1000))
                who = str(mark.holder) if mark.holder is not None else f"owner {mark.owner}, another program,"
                return f"{who}, with a lease until {until},"
        return NOBODY

    def refusal(self) -> str:
        if self.failure is not None:
            return f"the storage fails ({self.failure}); nothing was written: try again when it works"
        return super().refusal()

    def stands(self) -> bool:
        if self.is_over():
            return False
        mark = _read(self._storage)
        return mark is not None and not mark.expired and mark.owner == self.owner and not self.is_over()

    def _next_bytes(self, *, start_wall_s: float | None = None, expired: bool = False) -> tuple[bytes, str]:
        """The lock file's next content, for a lease that starts then (default: the one that runs), and its nonce."""
        start_s = self._start[0] if start_wall_s is None else start_wall_s
        nonce = secrets.token_hex(8)
        until_ms = int((start_s + self._lease_s) * 1000)
        note = {"expired": expired, "validUntil": until_ms, "owner": self.owner, "nonce": nonce}
        return json.dumps(note | self._holder.note()).encode(), nonce

    def _renew(self, start: tuple[float, float]) -> None:
        self._swap(self._next_bytes(start_wall_s=start[0])[0])

    def _swap(self, data: bytes) -> None:
        if self._tag is not None:
            with suppress(FileExistsError):
                self._tag = self._storage.swap(LOCK_PATH, data, self._tag)
                return
        mark = _read(self._storage)
        if mark is None or mark.owner != self.owner:
            raise FileExistsError(LOCK_PATH)
        # Ours all the same: an earlier answer was lost, or did not get here for an interrupt, and not its effect.
        self._tag = self._storage.swap(LOCK_PATH, data, mark.tag)

    def _give_back(self) -> None:
        """Say in the file that it is over, and remember its tag: if it stays the file's, the lock is free."""
        self._traces.released = None
        try:
            self._swap(self._next_bytes(expired=True)[0])
        except (FileExistsError, FileNotFoundError):
            return
        except (OSError, LockError) as exc:
            _not_released.add(self.owner)
            warn_not_released(self._storage.uri, exc)
            return
        self._traces.released = self._tag


_not_released: set[str] = set()
"""Owners of leases of this process that are over, though the file may still name them."""
