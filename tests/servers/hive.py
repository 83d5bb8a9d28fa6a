"""A Hive metastore on 127.0.0.1, by the metastore's own classes inside pip's pyspark: its locks, or all of it.

Its main program listens on every address of the machine, so a few lines of Java start its handler behind a server of our own.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.java import SHORT_LIVED
from tests.servers.ports import free_ports
from tests.servers.zookeeper import jars_folder

PATIENCE_S = 300.0
_MAIN = """
import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.RetryingHMSHandler;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;

public class Metastore {
  public static void main(String[] given) throws Exception {
    HiveConf conf = new HiveConf();
    TxnDbUtil.setConfValues(conf);
    TxnDbUtil.prepDb(conf);
    HiveMetaStore.HMSHandler bare = new HiveMetaStore.HMSHandler("metastore", conf, false);
    Object handler = given[1].equals("locks") ? bare : RetryingHMSHandler.getProxy(conf, bare, false);
    TServerSocket socket = new TServerSocket(new InetSocketAddress("127.0.0.1", Integer.parseInt(given[0])));
    new TThreadPoolServer(new TThreadPoolServer.Args(socket).maxWorkerThreads(200)
        .processor(new ThriftHiveMetastore.Processor<>((ThriftHiveMetastore.Iface) handler))).serve();
  }
}
"""
_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:{folder}/db;create=true",
    "datanucleus.connectionPoolingType": "dbcp",
    "hive.async.log.enabled": "false",
    "hive.in.test": "true",
}
_OF_TABLES = {
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.warehouse.dir": "file:{folder}/warehouse",
}


class HiveMetastore:
    """A process that this one started and stops by its id."""

    def __init__(self, folder: Path, *, tables: bool = False) -> None:
        (self._port,) = free_ports(1)
        self.uri = f"thrift://127.0.0.1:{self._port}"
        self._log = folder / "log"
        folder.mkdir(parents=True, exist_ok=True)
        settings = "".join(
            f"<property><name>{name}</name><value>{value.format(folder=folder)}</value></property>"
            for name, value in {**_SETTINGS, **(_OF_TABLES if tables else {})}.items()
        )
        (folder / "hive-site.xml").write_text(f"<configuration>{settings}</configuration>")
        (folder / "Metastore.java").write_text(_MAIN)
        classes = f"{folder}:{jars_folder()}/*"
        subprocess.run(["javac", "-cp", classes, "-d", str(folder), str(folder / "Metastore.java")], check=True)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    "java",
                    "-Xmx256m",
                    *SHORT_LIVED,
                    f"-Dderby.system.home={folder}",
                    "-cp",
                    classes,
                    "Metastore",
                    str(self._port),
                    "tables" if tables else "locks",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=folder,
            )

    def wait(self) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=5).close()
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline_s:
                    said = self._log.read_text(errors="replace")[-3000:]
                    raise RuntimeError(f"the Hive metastore does not serve: {said}") from None
                time.sleep(0.1)
            else:
                return

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def hive_metastore(folder: Path, *, tables: bool = False) -> Iterator[HiveMetastore]:
    """`tables`: databases and tables as well, for which it takes longer to start."""
    server = HiveMetastore(folder, tables=tables)
    try:
        server.wait()
        yield server
    finally:
        server.stop()
