"""A Spark Connect server on 127.0.0.1 as a process of its own, from pip's pyspark."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from tests.servers.java import SHORT_LIVED

HOST = "127.0.0.1"
_SPARK_HOME = Path(pyspark.__file__).parent
_PATIENCE_S = 300.0
_CONF = {
    "spark.connect.grpc.binding.address": HOST,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "768m",
    "spark.driver.extraJavaOptions": " ".join(SHORT_LIVED),
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start one with two cores, whose workers are this interpreter; gives its address, and ends it by its process id.

    Raises:
        RuntimeError: it did not come up; with the end of its log.
    """
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    conf = {
        **_CONF,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    command = [str(_SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    # pytest's own session tells its gateway and its mode by these.
    other = ("PYSPARK_GATEWAY", "SPARK_REMOTE", "SPARK_CONNECT_", "SPARK_ENV_LOADED")
    env = {name: text for name, text in os.environ.items() if not name.startswith(other)}
    env |= {"SPARK_HOME": str(_SPARK_HOME), "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable}
    log = folder / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env, cwd=folder
        )
    try:
        _wait_for(server, port, log)
        yield f"sc://{HOST}:{port}"
    finally:
        server.kill()
        server.wait()


def _wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            socket.create_connection((HOST, port), 1).close()
        except OSError as exc:
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no Spark Connect server:\n{log.read_text(errors='replace')[-3000:]}") from exc
            time.sleep(0.1)
        else:
            return
