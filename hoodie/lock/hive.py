"""The table lock in a Hive metastore, as Apache Hudi's `HiveMetastoreBasedLockProvider` has it: an exclusive lock on a table's name.

The metastore takes the lock away when it has heard nothing for its `hive.txn.timeout`. A heartbeat is the question and the
renewal in one, so whoever asks whether the lock is held renews it.
"""

from __future__ import annotations

import atexit
import getpass
import logging
import os
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from hoodie.errors import LockError, OptionError
from hoodie.lock.base import WAITING, Waiting, wait_for
from hoodie.lock.held import lets_go
from hoodie.lock.holder import phrase
from hoodie.metastore.connection import connected, shown
from hoodie.metastore.interface import failures, interface
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.hive import Servers, servers_of
from hoodie.storage.base import Storage

LONGEST_PAUSE_S = 0.5
"""Between two looks at the lock of another; each is a request."""
PATIENCE_S = 60.0
"""For one answer of the metastore."""
SURE_S = 30.0
"""So long after an answer nobody has to ask again: no metastore ends a lock as soon as that."""

_EXCLUSIVE, _TABLE, _NO_TRANSACTION, _ACQUIRED = 3, 2, 6, 1

log = logging.getLogger("hoodie")


class Place(NamedTuple):
    """Which lock, and who grants it."""

    servers: Servers
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table} in the Hive metastore at {shown(self.servers)}"


def place_of(storage: Storage, options: ConcurrencyOptions) -> Place:
    """Where the options say that the lock of the table is.

    Raises:
        OptionError: they do not say enough, or the address is none.
    """
    prefix = "hoodie.write.lock.hivemetastore"
    uris, database, table = options.hive_uris, options.hive_database, options.hive_table
    missing = [f"{prefix}.{n}" for n, v in (("uris", uris), ("database", database), ("table", table)) if not v]
    if missing or uris is None or database is None or table is None:
        raise OptionError(
            f"the lock of table {storage.uri} is to be in the Hive metastore, and {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing: give the same values to every writer of the table"
        )
    return Place(servers_of(uris, option=f"{prefix}.uris"), database, table)


class HiveLock:
    """`Lock` by an exclusive lock on a table's name in a Hive metastore; the table need not be registered there."""

    def __init__(self, storage: Storage, options: ConcurrencyOptions, waiting: Waiting = WAITING) -> None:
        self._uri = storage.uri
        self._place = place_of(storage, options)
        self._waiting = waiting
        self._held: _Request | None = None

    def __repr__(self) -> str:
        return f"HiveLock({self._uri!r}, '{self._place.database}.{self._place.table}')"

    def acquire(self, timeout_s: float) -> None:
        self._acquired(timeout_s)

    def _acquired(self, timeout_s: float) -> _Request:
        mine = _held_here.get(self._place)
        if mine is not None and mine.thread == threading.get_ident() and not mine.is_over():
            raise LockError(
                f"the lock of table {self._uri} is held by this very thread already: "
                "it cannot be taken twice, release it first"
            )
        interface()  # an OptionError comes before any waiting
        request = _Request(self._place)
        failure: Exception | None = None

        def attempt() -> bool:
            nonlocal failure
            try:
                granted = request.is_granted()
            except failures() as exc:
                failure = exc
                return False
            failure = None
            return granted

        try:
            granted = wait_for(attempt, timeout_s, self._waiting, longest_pause_s=LONGEST_PAUSE_S)
        except BaseException:
            request.delete()
            raise
        if granted:
            self._held = _held_here[self._place] = request
            return request
        who = request.holder()
        request.delete()
        if failure is not None:
            raise LockError(
                f"the lock of table {self._uri} was not granted within {timeout_s} s: nobody answers for {self._place} "
                f"({type(failure).__name__}); nothing was written: see that it runs, and try again"
            ) from failure
        raise LockError(
            f"the lock of table {self._uri} was not granted within {timeout_s} s: {who} holds {self._place}; nothing was "
            "written: try again when it is done, or wait longer"
        )

    def release(self) -> None:
        self._release(self._held)

    def _release(self, request: _Request | None) -> None:
        if request is None:
            return
        if self._held is request:
            self._held = None
        if _held_here.get(self._place) is request:
            del _held_here[self._place]
        request.delete()

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        request = self._acquired(timeout_s)
        try:
            yield
        finally:
            self._release(
                request
            )  # this very one: a block that was interrupted may end late, when others have the lock

    def is_held(self) -> bool:
        request = self._held
        return request is not None and request.stands()

    @property
    def is_leased(self) -> bool:
        return True

    def is_known_lost(self) -> bool:
        request = self._held
        return request is not None and (request.is_over() or not request.stands_lately())


class _Request:
    """One entry in the metastore's list of locks, by a connection of its own."""

    def __init__(self, place: Place) -> None:
        self.thread = threading.get_ident()
        self._place = place
        self._pid = os.getpid()
        self._client: Any = None
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._agent = f"hoodie {self._pid} {since} {secrets.token_hex(8)}"
        self._was_sent = False
        self._id: int | None = None
        self._seen = (0.0, 0.0)
        """Both clocks when the lock was last asked for, and was there."""
        self._is_over = False
        _requests.add(self)

    def is_granted(self) -> bool:
        """Ask for the lock, or whether it is our turn now."""
        begun = _now()
        api = interface()
        self._find()
        if self._id is None:
            component = api.LockComponent(
                type=_EXCLUSIVE,
                level=_TABLE,
                dbname=self._place.database,
                tablename=self._place.table,
                operationType=_NO_TRANSACTION,
            )
            wanted = api.LockRequest(
                component=[component], user=getpass.getuser(), hostname=socket.gethostname(), agentInfo=self._agent
            )
            self._was_sent = True
            answer = self._ask("lock", wanted)
            self._id = answer.lockid
        else:
            try:
                answer = self._ask("check_lock", api.CheckLockRequest(lockid=self._id))
            except _gone():
                self._id, self._was_sent = None, False  # it waited for too long: queue up again
                raise
        self._seen = begun
        return bool(answer.state == _ACQUIRED)

    def _find(self) -> None:
        """An earlier answer may have been lost: such an entry would keep everybody waiting, us too."""
        if self._id is None and self._was_sent:
            self._id = next((lock.lockid for lock in self._listed() if lock.agentInfo == self._agent), None)

    def _listed(self) -> list[Any]:
        wanted = interface().ShowLocksRequest(dbname=self._place.database, tablename=self._place.table)
        return list(self._ask("show_locks", wanted).locks or ())

    def stands(self) -> bool:
        """Whether the metastore still has it; that also renews it."""
        for _ in range(2):  # one connection may have broken
            if self.is_over() or self._id is None:
                return False
            begun = _now()
            try:
                self._ask("heartbeat", interface().HeartbeatRequest(lockid=self._id))
            except _gone():
                self._is_over = True
            except failures():
                continue
            else:
                self._seen = begun
                return True
        return False

    def stands_lately(self) -> bool:
        """As `stands`, but nobody is asked while the lock cannot have ended since."""
        return max(now - then for now, then in zip(_now(), self._seen, strict=True)) < SURE_S or self.stands()

    def is_over(self) -> bool:
        return self._is_over or self._pid != os.getpid()

    def holder(self) -> str:
        """Whoever has the lock now, as a phrase."""
        with suppress(*failures()):
            for lock in self._listed():
                if lock.state == _ACQUIRED and lock.agentInfo != self._agent:
                    match (lock.agentInfo or "").split():
                        case ["hoodie", pid, since, _]:
                            return phrase(host=lock.hostname, pid=pid, since=since)
                    return f"another program of {lock.user} on {lock.hostname}"
        return "somebody who has let go of it just now"

    def delete(self) -> None:
        """Let go of the lock, or of waiting for it.

        Until that is done an interrupt finds it among `_requests`, and it is done again.
        """
        if not self.is_over():
            for last in (False, True):  # one connection may have broken
                try:
                    self._find()
                    if self._id is not None:
                        self._ask("unlock", interface().UnlockRequest(lockid=self._id))
                    break
                except _gone():
                    break
                except failures() as exc:
                    if last:
                        log.warning(
                            "the lock %s was not released; it ends by the metastore's time-out: %r", self._place, exc
                        )
            self._is_over = True
            self._disconnect()
        _requests.discard(self)

    def _ask(self, call: str, request: object) -> Any:
        """What the metastore answers; after a failure the next question goes by a new connection."""
        try:
            if self._client is None:
                self._client = _connected(self._place)
            return getattr(self._client, call)(request)
        except BaseException as exc:
            if not isinstance(exc, _gone()):
                self._disconnect()
            raise

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close()


def _connected(place: Place) -> Any:
    return connected(place.servers, patience_s=PATIENCE_S)


def _gone() -> tuple[type[Exception], ...]:
    """What the metastore says of a lock that it does not have any more."""
    api = interface()
    return (api.NoSuchLockException, api.TxnAbortedException, api.NoSuchTxnException)


def _now() -> tuple[float, float]:
    """The wall clock may be set, and the other may stand still while the machine sleeps."""
    return time.time(), time.monotonic()


_requests: weakref.WeakSet[_Request] = weakref.WeakSet()
_held_here: weakref.WeakValueDictionary[Place, _Request] = weakref.WeakValueDictionary()
"""What this process took last; only to refuse waiting for oneself."""

os.register_at_fork(after_in_child=_held_here.clear)
os.register_at_fork(after_in_child=_requests.clear)


@lets_go
def _held_by_this_thread() -> dict[object, Callable[[], None]]:
    me = threading.get_ident()
    return {request: partial(request.delete) for request in list(_requests) if request.thread == me}


@atexit.register
def _let_go_of_all() -> None:
    for request in list(_requests):
        with suppress(Exception):
            request.delete()
