"""Kafka Connect with Debezium on 127.0.0.1, in a process of its own; the jars are those that `make integration` fetches."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.servers.java import SHORT_LIVED
from tests.servers.ports import free_port
from tests.servers.started import wait_for

JARS = Path(os.environ.get("HOODIE_DEBEZIUM_JARS", "build/jars/debezium"))
_PATIENCE_S = 120.0
_OFFSETS = "offsets"
_WORKER = """bootstrap.servers={broker}
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={folder}/{offsets}
offset.flush.interval.ms=500
plugin.discovery=ONLY_SCAN
"""


class Connect:
    """A worker that writes the changes of databases into a broker's topics."""

    def __init__(self, folder: Path, broker: str) -> None:
        self._folder, self._port = folder, free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._settings = folder / "worker.properties"
        self._settings.write_text(_WORKER.format(broker=broker, port=self._port, folder=folder, offsets=_OFFSETS))
        self._connectors: dict[str, Mapping[str, str]] = {}
        self.start()

    def start(self) -> None:
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        command = ["java", "-Xmx400m", *SHORT_LIVED, "-cp", f"{JARS.resolve()}/*", main, str(self._settings)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        wait_for("Kafka Connect", self._port, self._process, self._folder)
        for name, settings in dict(self._connectors).items():
            self.add(name, settings)

    def add(self, name: str, settings: Mapping[str, str]) -> None:
        """Returns as soon as the connector runs."""
        self._connectors[name] = settings
        self._ask("/connectors", {"name": name, "config": settings})
        while (states := [each["state"] for each in self._ask(f"/connectors/{name}/status")["tasks"]]) != ["RUNNING"]:
            assert "FAILED" not in states, self._ask(f"/connectors/{name}/status")
            time.sleep(0.1)

    def stop(self) -> None:
        """Kill it. Connect writes its offsets in place: one that finds them cut would take a snapshot, and miss deletes."""
        before = self._whole_offsets()
        self._process.kill()
        self._process.wait()
        if before and not self._whole_offsets():
            (self._folder / _OFFSETS).write_bytes(before)

    def _whole_offsets(self) -> bytes:
        """Empty where there are none, or they are cut for as long as a second or as Connect is dead."""
        file = self._folder / _OFFSETS
        for _ in range(100):
            content = file.read_bytes() if file.exists() else b""
            if content.endswith(b"}x") or self._process.poll() is not None:
                break
            time.sleep(0.01)
        return content if content.endswith(b"}x") else b""

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """What is not there yet is asked for again: it listens before it serves, and lists a connector after it took it."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data, headers)
        end_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as exc:
                if exc.code != HTTPStatus.NOT_FOUND or time.monotonic() > end_s:
                    raise RuntimeError(f"{path}: {exc.read()!r}, {(self._folder / 'log').read_text()[-3000:]}") from exc
            time.sleep(0.1)


@contextmanager
def connect(folder: Path, broker: str) -> Iterator[Connect]:
    if not JARS.is_dir():
        raise RuntimeError(f"not there: {JARS}; `make integration` makes it")
    worker = Connect(folder, broker)
    try:
        yield worker
    finally:
        worker.stop()
