"""HBase on 127.0.0.1: a master with one region server and a ZooKeeper of its own, and the Thrift server, in two processes.

The jars are those that `make integration` fetches.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers.java import SHORT_LIVED
from tests.servers.ports import free_ports

JARS = Path(os.environ.get("HOODIE_HBASE_SERVER_JARS", "build/jars/hbase-server"))
PATIENCE_S = 300.0
_OPENS = [
    word
    for name in ("lang", "nio", "lang.reflect", "net", "util", "util.concurrent")
    for word in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")
]
_OPENS += [
    *("--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"),
    *("--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED"),
]


class HBase:
    """Both processes, which this one started and ends by their ids."""

    def __init__(self, folder: Path) -> None:
        zookeeper, master, region, self.port = free_ports(4)
        self._folder, self._conf = folder, folder / "conf"
        self._conf.mkdir(parents=True)
        settings = {
            "hbase.rootdir": f"file://{folder}/data",
            "hbase.tmp.dir": f"{folder}/tmp",
            "hbase.zookeeper.quorum": "127.0.0.1",
            "hbase.zookeeper.property.dataDir": f"{folder}/zookeeper",
            "hbase.zookeeper.property.clientPort": str(zookeeper),
            "hbase.zookeeper.property.clientPortAddress": "127.0.0.1",
            "hbase.unsafe.stream.capability.enforce": "false",
            "hbase.wal.provider": "filesystem",
            "hbase.master.port": str(master),
            "hbase.regionserver.port": str(region),
            "hbase.master.info.port": "-1",
            "hbase.regionserver.info.port": "-1",
            **{f"hbase.{each}.ipc.address": "127.0.0.1" for each in ("master", "regionserver")},
            **{f"hbase.{each}.hostname": "localhost" for each in ("master", "regionserver")},
            # For a client whose server is gone: a few seconds, not minutes.
            "hbase.client.retries.number": "3",
            "hbase.rpc.timeout": "10000",
            "hbase.client.operation.timeout": "15000",
        }
        rows = "".join(f"<property><name>{k}</name><value>{v}</value></property>\n" for k, v in settings.items())
        (self._conf / "hbase-site.xml").write_text(f"<configuration>\n{rows}</configuration>\n")
        self.master = self._java("-Xmx500m", "master.HMaster", "start", "--localRegionServers=1")
        self.thrift = self._start_thrift()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def connect(self) -> Any:
        """A client of happybase."""
        import happybase  # noqa: PLC0415 - where the extra is installed

        return happybase.Connection("127.0.0.1", self.port, timeout=60_000)

    def wait(self) -> None:
        """Until tables can be made."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._serves():
            ended = [each.pid for each in (self.master, self.thrift) if each.poll() is not None]
            if ended or time.monotonic() > deadline_s:
                raise RuntimeError(
                    f"HBase does not serve: {(self._folder / 'log').read_text(errors='replace')[-3000:]}"
                )
            time.sleep(0.2)

    def stop_thrift(self) -> None:
        self.thrift.kill()
        self.thrift.wait()

    def start_thrift(self) -> None:
        self.thrift = self._start_thrift()
        self.wait()

    def stop(self) -> None:
        for each in (self.thrift, self.master):
            each.kill()
            each.wait()

    def _start_thrift(self) -> subprocess.Popen[bytes]:
        port = str(self.port)
        return self._java(
            "-Xmx200m", "thrift.ThriftServer", "start", "--bind", "127.0.0.1", "-p", port, "--infoport", "-1"
        )

    def _serves(self) -> bool:
        try:
            connection = self.connect()
            if b"ready" not in connection.tables():  # a master lists tables before it makes any
                connection.create_table("ready", {"f": {}})
            connection.close()
        except Exception:  # noqa: BLE001 - of thrift, of sockets, and of HBase that has no region server yet
            return False
        return True

    def _java(self, memory: str, server: str, *words: str) -> subprocess.Popen[bytes]:
        command = ["java", memory, *SHORT_LIVED, *_OPENS, "-cp", f"{self._conf}:{JARS.resolve()}/*"]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*command, f"org.apache.hadoop.hbase.{server}", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@contextmanager
def hbase(folder: Path) -> Iterator[HBase]:
    """One of its own, without tables."""
    if not JARS.is_dir():
        raise RuntimeError(f"not there: {JARS}; `make integration` makes it")
    server = HBase(folder)
    try:
        server.wait()
        yield server
    finally:
        server.stop()
