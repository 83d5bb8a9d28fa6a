"""A Kafka broker on 127.0.0.1, in a process of its own; the jars are those that `make integration` fetches."""

from __future__ import annotations

import base64
import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.java import SHORT_LIVED
from tests.servers.ports import free_ports
from tests.servers.started import wait_for

JARS = Path(os.environ.get("HOODIE_KAFKA_JARS", "build/jars/kafka"))
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=1000
log.cleaner.enable=false
"""


class Kafka:
    """One broker, which this process started and ends by its id."""

    def __init__(self, folder: Path) -> None:
        self.port, controller = free_ports(2)
        self.address = f"127.0.0.1:{self.port}"
        self._folder = folder
        self._settings = folder / "server.properties"
        folder.mkdir(parents=True, exist_ok=True)
        self._settings.write_text(_PROPERTIES.format(port=self.port, controller=controller, folder=folder))
        # Given with its flag in one word: one in 64 begins with a hyphen.
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._java("kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(self._settings)).wait()
        self.start()

    def start(self) -> None:
        self.process = self._java("kafka.Kafka", str(self._settings))
        wait_for("Kafka", self.port, self.process, self._folder)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def make_topic(self, name: str, partitions: int = 2) -> str:
        """The address of a new topic, as a source of ingestion."""
        from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415 - the extra `kafka`

        admin = AdminClient({"bootstrap.servers": self.address})
        for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result()
        return f"kafka://{self.address}/{name}"

    def _java(self, main: str, *words: str) -> subprocess.Popen[bytes]:
        command = ["java", "-Xmx400m", *SHORT_LIVED, "-cp", f"{JARS.resolve()}/*", main, *words]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


@contextmanager
def kafka(folder: Path) -> Iterator[Kafka]:
    """One of its own, without topics."""
    if not JARS.is_dir():
        raise RuntimeError(f"not there: {JARS}; `make integration` makes it")
    server = Kafka(folder)
    try:
        yield server
    finally:
        server.stop()
