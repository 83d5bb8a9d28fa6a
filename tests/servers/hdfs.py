"""HDFS on 127.0.0.1, a NameNode and a DataNode in processes of their own; the jars are those that `make integration` fetches."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.servers.java import SHORT_LIVED
from tests.servers.ports import free_ports

JARS = Path(os.environ.get("HOODIE_HDFS_JARS", "build/jars/hdfs"))
PATIENCE_S = 300.0
COMES_TOO_SOON = (b"\x08complete", 0.015)
"""For `Proxy.later`: with it a small file is there in 0.05 seconds, and not in 0.5.

The client asks whether the DataNode has told of a file's last block. If it comes too soon, it asks again 0.4 seconds later.
"""
_LOG4J = """log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1}: %m%n
"""


class Hdfs:
    """One NameNode with one DataNode, which this process started and ends by their ids."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        rpc, http, data, data_http, data_ipc = free_ports(5)
        self.uri = f"hdfs://127.0.0.1:{rpc}"
        self.http = f"http://127.0.0.1:{http}"
        self._folder = folder
        self._conf = folder / "conf"
        for page in ("hdfs", "datanode", "static"):  # both refuse to start without them
            (self._conf / "webapps" / page).mkdir(parents=True)
        (self._conf / "log4j.properties").write_text(_LOG4J)
        _write_settings(self._conf / "core-site.xml", {"fs.defaultFS": self.uri, "hadoop.tmp.dir": str(folder / "tmp")})
        _write_settings(
            self._conf / "hdfs-site.xml",
            {
                "dfs.replication": "1",
                "dfs.namenode.rpc-bind-host": "127.0.0.1",
                "dfs.namenode.http-address": f"127.0.0.1:{http}",
                "dfs.datanode.address": f"127.0.0.1:{data}",
                "dfs.datanode.http.address": f"127.0.0.1:{data_http}",
                "dfs.datanode.ipc.address": f"127.0.0.1:{data_ipc}",
                "dfs.datanode.hostname": "127.0.0.1",
                "dfs.namenode.datanode.registration.ip-hostname-check": "false",
                # Quick for tests: blocks are few, and nothing waits for a report that comes every few seconds.
                "dfs.heartbeat.interval": "1",
                "dfs.namenode.redundancy.interval.seconds": "1s",
                "dfs.namenode.safemode.extension": "0",
                "dfs.namenode.fs-limits.min-block-size": "1024",
                **(settings or {}),
            },
        )
        self._java("namenode.NameNode", "-format", "-force", "-nonInteractive").wait(PATIENCE_S)
        self.namenode = self._java("namenode.NameNode")
        self.datanode = self._java("datanode.DataNode")

    @property
    def configuration(self) -> Path:
        """The folder with core-site.xml and hdfs-site.xml."""
        return self._conf

    def wait(self) -> None:
        """Until files can be written."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._serves():
            ended = [each.pid for each in (self.namenode, self.datanode) if each.poll() is not None]
            if ended or time.monotonic() > deadline_s:
                raise RuntimeError(f"HDFS does not serve: {(self._folder / 'log').read_text(errors='replace')[-3000:]}")
            time.sleep(0.1)

    def bean(self, name: str) -> Mapping[str, object]:
        """What the NameNode tells of itself, by the name of a bean (`FSNamesystemState`, `RpcDetailedActivityForPort...`)."""
        with urlopen(f"{self.http}/jmx?qry=Hadoop:service=NameNode,name={name}", timeout=10) as answer:
            found: Mapping[str, object] = json.load(answer)["beans"][0]
            return found

    def admin(self, *words: str) -> str:
        """`hdfs dfsadmin` with these words; what it printed."""
        run = self._java("", *words, main="org.apache.hadoop.hdfs.tools.DFSAdmin", captured=True)
        out, _ = run.communicate(timeout=PATIENCE_S)
        if run.returncode:
            raise RuntimeError(f"dfsadmin {' '.join(words)}: {out!r}")
        return str(out)

    def stop(self) -> None:
        for each in (self.datanode, self.namenode):
            each.kill()
            each.wait()

    def _serves(self) -> bool:
        try:
            state = self.bean("FSNamesystemState")
        except (URLError, OSError, IndexError, ValueError):
            return False
        return state["NumLiveDataNodes"] == 1 and state["FSState"] == "Operational"

    def _java(self, server: str, *words: str, main: str | None = None, captured: bool = False) -> subprocess.Popen[str]:
        command = ["java", "-Xmx256m", *SHORT_LIVED]
        command += ["--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp", f"{self._conf}:{JARS.resolve()}/*"]
        command += [main or f"org.apache.hadoop.hdfs.server.{server}", *words]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if captured else log,
                stderr=subprocess.STDOUT,
                text=True,
            )


@contextmanager
def hdfs(folder: Path, *, settings: Mapping[str, str] | None = None) -> Iterator[Hdfs]:
    """One of its own, empty; `settings` go into hdfs-site.xml."""
    if not JARS.is_dir():
        raise RuntimeError(f"not there: {JARS}; `make integration` makes it")
    server = Hdfs(folder, settings=settings)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


def _write_settings(path: Path, settings: Mapping[str, str]) -> None:
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in settings.items()
    )
    path.write_text(f"<configuration>\n{rows}</configuration>\n")
