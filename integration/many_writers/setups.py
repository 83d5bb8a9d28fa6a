"""Where the table and its lock are: servers of this machine, and a way to them for each process that can be disturbed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from tests.servers.hdfs import hdfs
from tests.servers.http_proxy import Failing, HttpProxy
from tests.servers.proxy import Proxy
from tests.servers.s3 import moto
from tests.servers.versitygw import BINARY, versitygw
from tests.servers.zookeeper import ZooKeeper, ensemble, zookeeper

SESSION_S = 2
"""Of ZooKeeper; a writer that is paused for longer has lost the lock."""
LEASE_S = 5
BEAT_MS, MISSES = 1000, 3
"""Dead after three seconds, and five more that are always added."""
_LIFE = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.client.heartbeat.interval_in_ms": str(BEAT_MS),
    "hoodie.client.heartbeat.tolerable.misses": str(MISSES),
    "hoodie.write.lock.wait_time_ms": "30000",
    # The checker compares pulls and change feeds of the whole run.
    "hoodie.clean.automatic": "false",
}


class Link(Protocol):
    """A way to a server."""

    def cut(self) -> None: ...
    def mend(self) -> None: ...


class Faults:
    """A way for HTTP on which some requests fail, and some of them only after the server did what was asked."""

    def __init__(self, proxy: HttpProxy, chance: random.Random) -> None:
        self._proxy = proxy
        self._chance = chance

    def cut(self) -> None:
        for _ in range(self._chance.randint(1, 6)):
            kind = self._chance.choice(("PUT", "PUT", "PUT", "GET", "HEAD", "LIST", "DELETE", "DELETES"))
            failing = self._chance.choice(
                [each for each in Failing if kind == "PUT" or each not in (Failing.CONFLICT, Failing.ABORTED)]
            )
            self._proxy.fail_next(kind, failing)

    def mend(self) -> None:
        """What was planned fails still: a few requests, and the next cut plans others."""


@dataclass(frozen=True)
class Way:
    """How one process reaches the table."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    links: Sequence[Link] = ()


class Setup(NamedTuple):
    way: Callable[[str, bool], Way]
    """To the table of a name; whether connections of it can be cut."""
    nodes: Sequence[ZooKeeper] = ()
    """Servers of ZooKeeper that may be killed, one at a time, and are started again."""
    other_machines: bool = False
    """Nobody sees whether a process of the others lives."""


class _Zoo:
    """Ways to ZooKeeper."""

    def __init__(self, nodes: Sequence[ZooKeeper], stack: ExitStack) -> None:
        self._nodes = nodes
        self._stack = stack

    def options(self, name: str, *, fragile: bool) -> tuple[Mapping[str, str], list[Link]]:
        links = [self._stack.enter_context(Proxy(node.port)) for node in self._nodes] if fragile else []
        url = ",".join(each.address for each in links or self._nodes)
        prefix = "hoodie.write.lock.zookeeper"
        return {
            **_LIFE,
            "hoodie.write.lock.provider": "zookeeper",
            f"{prefix}.url": url,
            f"{prefix}.base_path": "/hoodie",
            f"{prefix}.lock_key": name,
            f"{prefix}.session_timeout_ms": str(SESSION_S * 1000),
            f"{prefix}.connection_timeout_ms": "5000",
        }, list(links)


@contextmanager
def alone(folder: Path, seed: int) -> Iterator[Setup]:
    """A folder of this machine, and a lock file in it. There is nothing to cut."""
    options = {**_LIFE, "hoodie.write.lock.provider": "filesystem"}
    yield Setup(lambda name, fragile: Way(str(folder / name), {}, options))


@contextmanager
def on_disk(folder: Path, seed: int) -> Iterator[Setup]:
    """A folder of this machine, and one ZooKeeper."""
    with zookeeper(folder / "zookeeper") as node, ExitStack() as stack:
        yield _local(folder, [node], stack)


@contextmanager
def on_disk_with_three(folder: Path, seed: int) -> Iterator[Setup]:
    """A folder of this machine, and three servers of ZooKeeper that vote."""
    with ensemble(folder / "zookeeper") as nodes, ExitStack() as stack:
        yield _local(folder, nodes, stack)


def _local(folder: Path, nodes: Sequence[ZooKeeper], stack: ExitStack) -> Setup:
    zoo = _Zoo(nodes, stack)

    def way(name: str, fragile: bool) -> Way:
        options, links = zoo.options(name, fragile=fragile)
        return Way(str(folder / name), {}, options, links)

    return Setup(way, nodes)


@contextmanager
def on_s3(folder: Path, seed: int) -> Iterator[Setup]:
    """An object store, and the lock in it: a real server where it is built, else a simulated one."""
    chance = random.Random(seed)
    with versitygw(folder / "s3") if BINARY.exists() else moto() as server, ExitStack() as stack:
        port = urlsplit(server.endpoint).port
        assert port is not None

        def way(name: str, fragile: bool) -> Way:
            links: list[Link] = []
            endpoint = server.endpoint
            if fragile and chance.random() < 0.5:
                proxy = stack.enter_context(HttpProxy(server.endpoint))
                links, endpoint = [Faults(proxy, chance)], proxy.endpoint
            elif fragile:
                cable = stack.enter_context(Proxy(port))
                links, endpoint = [cable], f"http://{cable.address}"
            options = {
                **_LIFE,
                "hoodie.write.lock.provider": "storage",
                "hoodie.write.lock.storage.validity.timeout.secs": str(LEASE_S),
                "hoodie.write.lock.storage.renew.interval.secs": "1",
            }
            storage_options = {**server.options, "aws_endpoint": endpoint, "timeout": "10s"}
            return Way(f"s3://lake/{name}", storage_options, options, links)

        yield Setup(way, other_machines=True)


@contextmanager
def on_hdfs(folder: Path, seed: int) -> Iterator[Setup]:
    """HDFS, and one ZooKeeper. The way to the NameNode can be cut, too."""
    (folder / "hdfs").mkdir()
    with hdfs(folder / "hdfs") as server, zookeeper(folder / "zookeeper") as node, ExitStack() as stack:
        zoo = _Zoo([node], stack)
        port = urlsplit(server.uri).port
        assert port is not None

        def way(name: str, fragile: bool) -> Way:
            options, links = zoo.options(name, fragile=fragile)
            uri = server.uri
            if fragile:
                cable = stack.enter_context(Proxy(port))
                links, uri = [*links, cable], f"hdfs://{cable.address}"
            return Way(f"{uri}/tables/{name}", {}, options, links)

        yield Setup(way, [node], other_machines=True)


SETUPS: Mapping[str, Callable[[Path, int], AbstractContextManager[Setup]]] = {
    "zookeeper": on_disk,
    "zookeeper3": on_disk_with_three,
    "s3": on_s3,
    "hdfs": on_hdfs,
    "disk": alone,
}
