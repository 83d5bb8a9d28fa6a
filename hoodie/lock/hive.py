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
import time
from contextlib import suppress
from typing import Any, NamedTuple

from hoodie.errors import OptionError
from hoodie.lock.base import WAITING, Waiting
from hoodie.lock.grant import NOBODY, Grant, GrantedLock, both_clocks_s, past_s
from hoodie.lock.holder import phrase
from hoodie.lock.registry import every_held
from hoodie.metastore.interface import connected, failures, interface, shown
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


class HiveLock(GrantedLock):
    """`Lock` by an exclusive lock on a table's name in a Hive metastore; the table need not be registered there."""

    def __init__(self, storage: Storage, options: ConcurrencyOptions, waiting: Waiting = WAITING) -> None:
        super().__init__(storage.uri, waiting, longest_pause_s=LONGEST_PAUSE_S)
        self._place = place_of(storage, options)

    def __repr__(self) -> str:
        return f"HiveLock({self._uri!r}, '{self._place.database}.{self._place.table}')"

    def _new_grant(self) -> Grant:
        interface()  # an OptionError comes before any waiting
        return _Request(self._place)


class _Request(Grant):
    """One entry in the metastore's list of locks, by a connection of its own."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._place = place
        self._client: Any = None
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._agent = f"hoodie {os.getpid()} {since} {secrets.token_hex(8)}"
        self._id: int | None = None
        self._last_proof = (0.0, 0.0)
        """Both clocks when the lock was last asked for, and was there."""
        self._is_over = False

    def attempt(self) -> bool:
        try:
            granted = self._is_our_turn()
        except failures() as exc:
            self.failure = exc
            return False
        self.failure = None
        return granted

    def _is_our_turn(self) -> bool:
        start = both_clocks_s()
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
            request = api.LockRequest(
                component=[component], user=getpass.getuser(), hostname=socket.gethostname(), agentInfo=self._agent
            )
            self.may_be_held = True
            answer = self._ask("lock", request)
            self._id = answer.lockid
        else:
            try:
                answer = self._ask("check_lock", api.CheckLockRequest(lockid=self._id))
            except _no_lock_errors():
                self._id, self.may_be_held = None, False  # it waited for too long: queue up again
                raise
        self._last_proof = start
        return bool(answer.state == _ACQUIRED)

    def _find(self) -> None:
        """An earlier answer may have been lost: such an entry would keep everybody waiting, us too."""
        if self._id is None and self.may_be_held:
            self._id = next((lock.lockid for lock in self._locks() if lock.agentInfo == self._agent), None)

    def _locks(self) -> list[Any]:
        request = interface().ShowLocksRequest(dbname=self._place.database, tablename=self._place.table)
        return list(self._ask("show_locks", request).locks or ())

    def stands(self) -> bool:
        """Whether the metastore still has it; that also renews it."""
        for _ in range(2):  # one connection may have broken
            if self.is_over() or self._id is None:
                return False
            start = both_clocks_s()
            try:
                self._ask("heartbeat", interface().HeartbeatRequest(lockid=self._id))
            except _no_lock_errors():
                self._is_over = True
            except failures():
                continue
            else:
                self._last_proof = start
                return True
        return False

    def stands_lately(self) -> bool:
        """As `stands`, but nobody is asked while the lock cannot have ended since."""
        return past_s(self._last_proof) < SURE_S or self.stands()

    def is_over(self) -> bool:
        return self._is_over or self.is_of_parent

    def is_known_lost(self) -> bool:
        return self.is_over() or not self.stands_lately()

    def refusal(self) -> str:
        if self.failure is not None:
            return (
                f"nobody answers for {self._place} ({type(self.failure).__name__}); nothing was written: "
                "see that it runs, and try again"
            )
        return super().refusal()

    def holder(self) -> str:
        return f"{self._who()} holds {self._place}"

    def _who(self) -> str:
        with suppress(*failures()):
            for lock in self._locks():
                if lock.state == _ACQUIRED and lock.agentInfo != self._agent:
                    match (lock.agentInfo or "").split():
                        case ["hoodie", pid, since, _]:
                            return phrase(host=lock.hostname, pid=pid, since=since)
                    return f"another program of {lock.user} on {lock.hostname}"
        return NOBODY

    def release(self) -> None:
        if not self.is_over():
            for last in (False, True):  # one connection may have broken
                try:
                    self._find()
                    if self._id is not None:
                        self._ask("unlock", interface().UnlockRequest(lockid=self._id))
                    break
                except _no_lock_errors():
                    break
                except failures() as exc:
                    if last:
                        log.warning(
                            "the lock %s was not released; it ends by the metastore's time-out: %r", self._place, exc
                        )
            self._is_over = True
            self._disconnect()
        self.may_be_held = False

    def _ask(self, call: str, request: object) -> Any:
        """What the metastore answers; after a failure the next question goes by a new connection."""
        try:
            if self._client is None:
                self._client = _connected(self._place)
            return getattr(self._client, call)(request)
        except BaseException as exc:
            if not isinstance(exc, _no_lock_errors()):
                self._disconnect()
            raise

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close()


def _connected(place: Place) -> Any:
    return connected(place.servers, patience_s=PATIENCE_S)


def _no_lock_errors() -> tuple[type[Exception], ...]:
    """The errors by which the metastore says that a lock has ended."""
    api = interface()
    return (api.NoSuchLockException, api.TxnAbortedException, api.NoSuchTxnException)


@atexit.register
def _let_go_of_all() -> None:
    for request in every_held():
        if isinstance(request, _Request):
            with suppress(Exception):
                request.release()
