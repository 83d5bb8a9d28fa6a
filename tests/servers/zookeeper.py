"""ZooKeeper on 127.0.0.1, from the jars inside pip's pyspark: one server, or several that vote."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from tests.servers.java import SHORT_LIVED
from tests.servers.ports import free_ports

_JAVA = ("-Xmx128m", *SHORT_LIVED, "-Dzookeeper.jmx.log4j.disable=true")
PATIENCE_S = 300.0
TICK_MS = 250
"""A session lasts at least two of these."""


class ZooKeeper:
    """One server; a process that this one started and stops by its id."""

    def __init__(self, folder: Path, port: int, *, number: int = 0, servers: Sequence[str] = ()) -> None:
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self._log = folder / "log"
        (folder / "data").mkdir(parents=True)
        config = folder / "zoo.cfg"
        config.write_text(
            f"tickTime={TICK_MS}\ndataDir={folder / 'data'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\nmaxSessionTimeout=60000\n"
            + "".join(f"{line}\n" for line in servers)
        )
        main = "ZooKeeperServerMain"
        if servers:
            (folder / "data" / "myid").write_text(str(number))
            main = "quorum.QuorumPeerMain"
        jars = ":".join(str(jar) for jar in sorted(jars_folder().glob("*.jar")) if _is_needed(jar.name))
        self._command = ["java", *_JAVA, "-cp", jars, f"org.apache.zookeeper.server.{main}", str(config)]
        self.start()

    def start(self) -> None:
        """Also once more after `stop`, with the data that it had."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def wait(self) -> None:
        """Until it serves."""
        deadline_s = time.monotonic() + PATIENCE_S
        while b"Mode: " not in self.says("srvr"):
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"ZooKeeper does not serve: {self._log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.05)

    def says(self, word: str) -> bytes:
        """The answer to one of the words of four letters; empty when nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(word.encode())
                return b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return b""

    def is_leader(self) -> bool:
        return b"Mode: leader" in self.says("srvr")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def zookeeper(folder: Path) -> Iterator[ZooKeeper]:
    """One server of its own."""
    server = ZooKeeper(folder, *free_ports(1))
    try:
        server.wait()
        yield server
    finally:
        server.stop()


@contextmanager
def ensemble(folder: Path, size: int = 3) -> Iterator[list[ZooKeeper]]:
    """Servers that vote."""
    ports = free_ports(3 * size)
    lines = [f"server.{n + 1}=127.0.0.1:{ports[size + 2 * n]}:{ports[size + 2 * n + 1]}" for n in range(size)]
    settings = ["initLimit=20", "syncLimit=10", "quorumListenOnAllIPs=false", *lines]
    servers: list[ZooKeeper] = []
    try:
        for n in range(size):
            servers.append(ZooKeeper(folder / str(n + 1), ports[n], number=n + 1, servers=settings))
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.stop()


def jars_folder() -> Path:
    """Those of pip's pyspark, which is not imported for it."""
    package = find_spec("pyspark")
    assert package is not None, "the tests of ZooKeeper take its jars from pyspark: pip install pyspark"
    assert package.origin is not None
    return Path(package.origin).parent / "jars"


def _is_needed(jar: str) -> bool:
    words = ("zookeeper", "slf4j", "log4j", "netty", "metrics-core", "snappy", "commons-", "jackson", "audience")
    return any(word in jar for word in words)
