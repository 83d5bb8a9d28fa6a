"""A real broker: what was produced is in the table once, whatever is killed meanwhile; hudi-rs reads the same rows."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import OptionError
from integration import rust_peer
from tests.ingestion.stock_ticks import LATER, TICKS, ticks, ticks_job
from tests.servers.kafka import Kafka, kafka

SOAK = bool(os.environ.get("HOODIE_SOAK"))
SECONDS, KILLS = (600, 120) if SOAK else (15, 4)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


def ids(table: Path) -> list[int]:
    return sorted(hoodie.open_table(table).scan(["id"]).to_arrow().column("id").to_pylist())


class Producing(threading.Thread):
    """Transactions of some records each; every fourth one is aborted. Numbers that are committed are noted."""

    def __init__(self, broker: Kafka, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic, self.ends = topic, threading.Event()
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.address, "transactional.id": topic, "log_level": 0}
        )
        self._next = 0
        self.committed: list[int] = []
        self.failed: Exception | None = None

    def run(self) -> None:
        chance = random.Random(1)
        try:
            self._producer.init_transactions(60)
            while not self.ends.is_set():
                self._transaction(chance.randrange(1, 400), aborts=chance.random() < 0.25)
                time.sleep(0.02)
        except Exception as exc:  # noqa: BLE001 - it is raised where the thread is joined
            self.failed = exc

    def _transaction(self, count: int, *, aborts: bool) -> None:
        self._producer.begin_transaction()
        numbers = range(self._next, self._next + count)
        self._next += count
        for n in numbers:
            row = {"id": n, "aborted": aborts, "text": "x" * (n % 50)}
            self._producer.produce(self.topic, json.dumps(row).encode(), str(n).encode(), partition=n % 2)
        self._producer.flush()
        if aborts:
            self._producer.abort_transaction(60)
        else:
            self._producer.commit_transaction(60)
            self.committed += numbers


def begun(address: str, table: Path, log: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hoodie", "ingest", address, str(table), "--operation", "insert", "--continuous"]
    command += ["--every", "0s", "--max-rows", "500", "--source-option", "fetch.wait.max.ms=50"]
    return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def rounds_in(log: Path) -> int:
    return log.read_bytes().count(b"round ")


def test_records_are_there_once_over_kills_of_the_process_aborted_transactions_and_a_restart_of_the_broker(
    broker: Kafka, tmp_path: Path
) -> None:
    address, table = broker.make_topic("trips"), tmp_path / "trips"
    hoodie.create_table(table, {"id": "int64", "aborted": "bool", "text": "string"}, record_key="id")
    producing = Producing(broker, "trips")
    producing.start()
    chance = random.Random(2)
    until_s = time.monotonic() + SECONDS
    with (tmp_path / "log").open("wb") as log:
        for kill in range(KILLS):
            rounds = rounds_in(tmp_path / "log")
            process = begun(address, table, log)
            give_up_s = time.monotonic() + 60
            while kill % 4 and rounds_in(tmp_path / "log") == rounds and time.monotonic() < give_up_s:
                time.sleep(0.05)  # on a busy machine none would get as far
            time.sleep(max(0.0, (until_s - time.monotonic()) / (KILLS - kill)) * chance.uniform(0.8, 1.2))
            if kill == KILLS // 2:
                broker.stop()
                broker.start()
            process.send_signal(signal.SIGKILL)
            process.wait()
    producing.ends.set()
    producing.join(120)
    assert producing.failed is None
    rounds_before = rounds_in(tmp_path / "log")
    done = hoodie.ingest(address, table, operation="insert")
    assert ids(table) == producing.committed
    rows = rust_peer.read(table)
    assert sorted(int(row["id"]) for row in rows) == producing.committed
    assert not any(row["aborted"] for row in rows)
    assert rounds_before >= KILLS * 3 // 4, (tmp_path / "log").read_text()[-2000:]
    report = f"{len(producing.committed)} records, {rounds_before + len(done.rounds)} rounds, {KILLS} kills"
    print(report)  # noqa: T201 - a soak says what it did


def test_a_topic_that_is_made_anew_is_noticed_and_kafka_is_told_of_offsets_where_that_is_asked_for(
    broker: Kafka, tmp_path: Path
) -> None:
    address, table = broker.make_topic("anew", 1), tmp_path / "anew"
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})
    for n in range(3):
        producer.produce("anew", json.dumps({"id": n}).encode())
    producer.flush()
    options = {"hoodie.streamer.source.kafka.enable.commit.offset": "true", "group.id": "us"}
    assert hoodie.ingest(address, table, record_key="id", source_options=options).rounds[0].checkpoint == "anew,0:3"
    admin = AdminClient({"bootstrap.servers": broker.address})
    place = confluent_kafka.TopicPartition("anew", 0)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.address, "group.id": "us"})
    assert consumer.committed([place], timeout=30)[0].offset == 3
    consumer.close()
    admin.delete_topics(["anew"])["anew"].result()
    time.sleep(1)
    broker.make_topic("anew", 1)
    for n in range(10, 15):
        producer.produce("anew", json.dumps({"id": n}).encode())
    producer.flush()
    with pytest.raises(OptionError, match="topic anew was deleted and made anew since it was read up to offset 3"):
        hoodie.ingest(address, table)
    hoodie.ingest(address, table, source_options={"hoodie.streamer.source.kafka.enable.failOnDataLoss": "false"})
    assert ids(table) == [0, 1, 2, *range(10, 15)]


def test_records_that_retention_has_deleted_are_an_error(broker: Kafka, tmp_path: Path) -> None:
    address, table = broker.make_topic("old", 1), tmp_path / "old"
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address})
    for n in range(3):
        producer.produce("old", json.dumps({"id": n}).encode())
        producer.flush()
        if n == 0:
            hoodie.ingest(address, table, record_key="id")
    admin = AdminClient({"bootstrap.servers": broker.address})
    for deleted in admin.delete_records([confluent_kafka.TopicPartition("old", 0, 2)]).values():
        deleted.result()
    with pytest.raises(OptionError, match="partition 0 of topic old begins at 2 by now: 1 offset from 1 on are gone"):
        hoodie.ingest(address, table)


def test_each_commit_is_told_to_a_topic(broker: Kafka, tmp_path: Path) -> None:
    broker.make_topic("commits", 1)
    begin = "hoodie.write.commit.callback."
    options = {
        f"{begin}on": "true",
        f"{begin}class": "org.apache.hudi.utilities.callback.kafka.HoodieWriteCommitKafkaCallback",
        f"{begin}kafka.bootstrap.servers": broker.address,
        f"{begin}kafka.topic": "commits",
    }
    t = hoodie.create_table(tmp_path / "told", {"id": "int64"}, record_key="id")
    done = t.upsert({"id": [1]}, options=options)
    told = tmp_path / "commits"
    hoodie.ingest(f"kafka://{broker.address}/commits", told, format="text", record_key="value")
    (text,) = hoodie.open_table(told).scan(["value"]).to_arrow().column("value").to_pylist()
    row = json.loads(text)
    assert (row["commitTime"], row["tableName"]) == (done.instant, "told")


def test_the_demo_of_stock_ticks_reads_its_topic_with_its_own_flags(broker: Kafka, tmp_path: Path) -> None:
    broker.make_topic("stock_ticks")
    topic = f"hoodie.streamer.source.kafka.topic=stock_ticks\nbootstrap.servers={broker.address}\nauto.offset.reset=earliest\n"
    job = ticks_job(tmp_path, topic, "COPY_ON_WRITE")
    job += ["--source-class", "org.apache.hudi.utilities.sources.JsonKafkaSource"]
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for rows in (TICKS, LATER):
        for line in ticks(rows).splitlines():
            producer.produce("stock_ticks", line, key=json.loads(line)["key"])
        producer.flush()
        assert main(job) == 0
    assert main(job) == 0
    found = hoodie.open_table(tmp_path / "stock_ticks_COPY_ON_WRITE").scan(["key", "ts"]).to_arrow().to_pylist()
    newest = {row["key"]: row["ts"] for row in (*TICKS, *LATER)}
    assert {row["key"]: row["ts"] for row in found} == newest
    assert len(found) == len(newest) == 3
