"""The table lock in ZooKeeper, through kazoo: nodes and order are those of Curator's mutex, and so of Apache Hudi's provider.

Each contender makes an ephemeral node with a growing number under the lock's node; the smallest number has the lock. Curator
orders by what follows `-lock-`. kazoo's own recipe names its nodes otherwise, and the two would not exclude each other.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import threading
import time
import uuid
from contextlib import suppress
from typing import Any, NamedTuple

from hoodie.errors import OptionError
from hoodie.lock.base import WAITING, Waiting
from hoodie.lock.grant import NOBODY, Grant, GrantedLock, both_clocks_s, past_s
from hoodie.lock.holder import read_holder_note, this_process
from hoodie.lock.implicit import implicit_name
from hoodie.model.names import name_of
from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.values import LockProvider
from hoodie.storage.base import Storage

log = logging.getLogger("hoodie")

_kazoo_log = log.getChild("zookeeper")
_kazoo_log.setLevel(
    logging.ERROR
)  # each lost connection is a warning of kazoo's; what it means here is told by an error

_NUMBER = re.compile(r"-lock-(-?\d{10})$")
_PORT = 2181
_IMPLICIT_KEY = "lock_key"
LONGEST_PAUSE_S = 0.5
"""Between two looks at who is before us."""
_RETRY_S = 0.02


class Place(NamedTuple):
    """Where the lock stands, and how it is reached."""

    hosts: str
    path: str
    session_s: float
    connection_s: float


def place_of(storage: Storage, options: ConcurrencyOptions) -> Place:
    """Where the options say that the lock of the table is.

    Raises:
        OptionError: they do not say enough.
    """
    prefix = "hoodie.write.lock.zookeeper"
    if options.lock_provider is LockProvider.ZOOKEEPER_IMPLICIT:
        needed: dict[str, str | None] = {"url": options.zookeeper_url}
        base_path: str | None = f"/tmp/{implicit_name(storage.uri)}"
        key: str | None = _IMPLICIT_KEY
    else:
        base_path, key = options.zookeeper_base_path, options.zookeeper_lock_key
        needed = {"url": options.zookeeper_url, "base_path": base_path, "lock_key": key}
    missing = [f"{prefix}.{name}" for name, value in needed.items() if not value]
    if missing or options.zookeeper_url is None or base_path is None or key is None:
        raise OptionError(
            f"the lock of table {storage.uri} is to be in ZooKeeper, and {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} "
            "missing: give the same values to every writer of the table"
        )
    port = options.zookeeper_port or _PORT
    servers, slash, root = options.zookeeper_url.partition("/")
    hosts = ",".join(one if ":" in one else f"{one}:{port}" for one in servers.split(","))
    path = "/" + "/".join(part for part in f"{base_path}/{key}".split("/") if part)
    return Place(f"{hosts}{slash}{root}", path, options.zookeeper_session_s, options.zookeeper_connection_s)


class ZooKeeperLock(GrantedLock):
    """`Lock` by an ephemeral node in ZooKeeper, which takes it away when the session of its holder ends.

    Whether it is held is told by the node: `czxid`, the number of the very change that made it, never comes twice. So a
    connection that was lost and found again within the session keeps the lock, and one that came too late does not.
    """

    def __init__(self, storage: Storage, options: ConcurrencyOptions, waiting: Waiting = WAITING) -> None:
        super().__init__(storage.uri, waiting, longest_pause_s=LONGEST_PAUSE_S)
        self._place = place_of(storage, options)

    def __repr__(self) -> str:
        return f"ZooKeeperLock({self._uri!r}, {self._place.path!r})"

    def _new_grant(self) -> Grant:
        return _Node(self._place, self._uri)


class _GoneError(Exception):
    """The node of this contender is not there any more."""


class _Session:
    """A client of this process, for all locks at one place; it ends when ZooKeeper has not heard of us for too long."""

    def __init__(self, client: Any, patience_s: float) -> None:
        self.client = client
        self._patience_s = patience_s
        self.pid = os.getpid()
        self.is_lost = False
        client.add_listener(self._listen)

    def _listen(self, state: str) -> bool:
        if state == "LOST":
            self.is_lost = True  # for good: nodes of a session that is over are gone, whatever comes after
        return self.is_lost  # True: no longer listens

    def ask(self, call: str, *args: Any, **keywords: Any) -> Any:
        """Run the client's call of that name; unlike the call itself it does not wait for ever for a connection."""
        return getattr(self.client, f"{call}_async")(*args, **keywords).get(timeout=self._patience_s)

    def close(self) -> None:
        self.is_lost = True
        if self.pid == os.getpid():
            with suppress(Exception):  # at the end of the process, with the server perhaps gone
                self.client.stop()
                self.client.close()


class _Node(Grant):
    """A contender for the lock."""

    def __init__(self, place: Place, uri: str) -> None:
        super().__init__(place)
        self._place = place
        self._uri = uri
        self._session: _Session | None = None
        self._last_proof = (0.0, 0.0)
        """Both clocks when the node was last asked for, and was there."""
        self._start_anew()

    def _start_anew(self) -> None:
        """With a new session, or after the node has vanished, it queues up again."""
        self._is_gone = False
        self._prefix = f"_c_{uuid.uuid4()}-lock-"
        self._name: str | None = None
        self._before: str | None = None
        """Who is next before us."""
        self._czxid: int | None = None

    def attempt(self) -> bool:
        try:
            if self.is_over():
                self._start_anew()
                self._session = _session(self._place, self._uri)
            self._before = self._next_before()
        except _errors() as exc:
            self.failure = exc
            return False
        self.failure = None
        return self._before is None

    def _ask(self, call: str, *args: Any, **keywords: Any) -> Any:
        if self._session is None:
            raise _GoneError(self._place.path)
        return self._session.ask(call, *args, **keywords)

    def _next_before(self) -> str | None:
        """Who is next before us; None: we have the lock. Makes the node where it is not there yet."""
        if self._name is None:
            self._name = self._make_node()
        ours = _number(self._name)
        start = both_clocks_s()
        numbers: dict[int | None, str] = {
            _number(child): child for child in self._ask("get_children", self._place.path)
        }
        if numbers.get(ours) != self._name:
            raise self._gone_error()
        smaller = [number for number in numbers if number is not None and ours is not None and number < ours]
        if smaller:
            return numbers[max(smaller)]
        stat = self._ask("exists", f"{self._place.path}/{self._name}")
        if stat is None:
            raise self._gone_error()
        self._czxid = stat.czxid
        self._last_proof = start
        return None

    def _make_node(self) -> str:
        # An earlier try may have made it, and its answer was lost: such a node would keep everybody waiting.
        self.may_be_held = True
        self._ask("ensure_path", self._place.path)
        name = self._own_child()
        if name is None:
            data = json.dumps(this_process().note()).encode()
            path = self._ask("create", f"{self._place.path}/{self._prefix}", data, ephemeral=True, sequence=True)
            name = name_of(str(path))
        return name

    def _own_child(self) -> str | None:
        children: list[str] = self._ask("get_children", self._place.path)
        return next((child for child in children if child.startswith(self._prefix)), None)

    def _gone_error(self) -> _GoneError:
        self._is_gone = True
        return _GoneError(f"{self._place.path}/{self._name}")

    def stands(self) -> bool:
        """Whether the node is there and is the very one, as the newest state of the servers has it."""
        path = f"{self._place.path}/{self._name}"
        while not self.is_over():
            start = both_clocks_s()
            try:
                self._ask("sync", path)  # a server may be behind
                stat = self._ask("exists", path)
            except _errors() as exc:
                if type(exc).__name__ != "ConnectionLoss":
                    return False
                time.sleep(_RETRY_S)  # the session may go on with the next server
            else:
                if stat is None or stat.czxid != self._czxid or self.is_over():
                    return False
                self._last_proof = start
                return True
        return False

    def holder(self) -> str:
        return f"{self._who()} holds {self._place.path} in ZooKeeper at {self._place.hosts}"

    def _who(self) -> str:
        if self._before is not None:
            with suppress(*_errors(), ValueError):
                children = [
                    child for child in self._ask("get_children", self._place.path) if _number(child) is not None
                ]
                first = min(children, key=lambda child: _number(child) or 0)
                data, _ = self._ask("get", f"{self._place.path}/{first}")
                with suppress(ValueError, AttributeError):
                    holder = read_holder_note(json.loads(data))
                    if holder is not None:
                        return str(holder)
                return f"another program, {data.decode(errors='replace')[:100]!r},"  # Curator's nodes hold its address
        return NOBODY

    def refusal(self) -> str:
        if self.failure is not None:
            return (
                f"ZooKeeper at {self._place.hosts} does not answer ({type(self.failure).__name__}); nothing was written: "
                "see that it runs, and try again"
            )
        return super().refusal()

    def stands_lately(self) -> bool:
        """As `stands`, but nobody is asked while the session cannot have ended since the node was seen."""
        return past_s(self._last_proof) < self._place.session_s / 2 or self.stands()

    def is_over(self) -> bool:
        return self._is_gone or self._session is None or self._session.is_lost or self.is_of_parent

    def is_known_lost(self) -> bool:
        return self.is_over() or not self.stands_lately()

    def release(self) -> None:
        deadline_s = time.monotonic() + self._place.connection_s
        while self._session is not None and not self.is_over():
            try:
                name = self._name or self._own_child()
                if name is not None:
                    self._ask("delete", f"{self._place.path}/{name}")
                self._is_gone = True
            except _errors() as exc:
                if type(exc).__name__ == "NoNodeError":
                    self._is_gone = True
                elif time.monotonic() > deadline_s:
                    # Nobody else would delete the node: it must not outlive this by more than the session's time.
                    log.warning(
                        "the lock %s in ZooKeeper was not released, so its session is ended: %r", self._place.path, exc
                    )
                    _end(self._session)
                else:
                    time.sleep(_RETRY_S)
        self.may_be_held = False


def _number(name: str | None) -> int | None:
    match = _NUMBER.search(name or "")
    return None if match is None else int(match[1])


_sessions: dict[tuple[int, str, float], _Session] = {}
"""By process, servers and time-out."""
_sessions_mutex = threading.Lock()

os.register_at_fork(before=_sessions_mutex.acquire, after_in_parent=_sessions_mutex.release)
os.register_at_fork(after_in_child=_sessions_mutex.release)


def _session(place: Place, uri: str) -> _Session:
    """The session for these servers, connected; a new one where the last has ended.

    Raises:
        OptionError: kazoo is not installed. KazooException, TimeoutError: nobody answers.
    """
    try:
        from kazoo.client import KazooClient  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as exc:
        raise OptionError(
            f"the lock of table {uri} is in ZooKeeper, which needs kazoo: install hoodie with the extra `zookeeper`"
        ) from exc
    key = (os.getpid(), place.hosts, place.session_s)
    with _sessions_mutex:
        session = _sessions.get(key)
        if session is None or session.is_lost:
            if session is not None:
                session.close()
            client = KazooClient(
                hosts=place.hosts,
                timeout=place.session_s,
                connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 1.0},
                command_retry={"max_tries": -1, "delay": 0.05, "max_delay": 0.5, "deadline": place.session_s},
                logger=_kazoo_log,
            )
            session = _Session(client, place.connection_s)
            try:
                client.start(timeout=place.connection_s)
            except BaseException:
                session.close()
                raise
            _sessions[key] = session
        return session


def _end(session: _Session) -> None:
    with _sessions_mutex:
        for key in [key for key, open_session in _sessions.items() if open_session is session]:
            del _sessions[key]
    session.close()


@atexit.register
def _end_all() -> None:
    for session in list(_sessions.values()):
        session.close()


def _errors() -> tuple[type[Exception], ...]:
    """What kazoo raises where ZooKeeper does not answer, or not as it should."""
    try:
        from kazoo.exceptions import KazooException  # noqa: PLC0415 - an optional extra
        from kazoo.handlers.threading import KazooTimeoutError  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError:
        return (_GoneError,)
    return (KazooException, KazooTimeoutError, _GoneError)
