"""Topics of a real broker that Spark's executors read: tables and checkpoints are those of embedded ingestion, whoever is killed."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
import fastavro
import pytest
from pyspark.sql import SparkSession

import hoodie
import pyspark_hoodie
from hoodie.errors import StorageError
from hoodie.ingestion.kafka_ranges import MOST_OFFSETS
from pyspark_hoodie.topics import FEW_OFFSETS
from tests.effort import HUNG_S
from tests.ingestion.schema_registry import schemas_served
from tests.servers.kafka import Kafka, kafka
from tests.spark.connect_server import connect_server

SOAK = bool(os.environ.get("HOODIE_SOAK"))
KILLS = 20 if SOAK else 3
APPEND = {"hoodie.streamer.source.kafka.append.offsets": "true"}
MANY = 3 * FEW_OFFSETS


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def nothing_is_left(spark: SparkSession) -> Iterator[None]:
    """Records are kept until a round ends, and no longer."""
    yield
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


class Topic:
    """What is produced to a topic, key by key in the partition of the key."""

    def __init__(self, broker: Kafka, name: str, partitions: int = 3, **settings: str) -> None:
        self.address = broker.make_topic(name, partitions)
        self.name, self.partitions = name, partitions
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.address, "log_level": 0, "queue.buffering.max.messages": 1_000_000, **settings}
        )

    def put(self, key: int, value: bytes | None, partition: int | None = None) -> None:
        place = key % self.partitions if partition is None else partition
        self.producer.produce(self.name, value, b"k%d" % key, partition=place)

    def flush(self) -> None:
        assert self.producer.flush(60) == 0


def row(n: int) -> bytes | None:
    """Of all kinds."""
    if n % 9_000 == 4:
        return None
    if n % 7_000 == 3:
        return b"nonsense"
    values: dict[str, Any] = {"id": n % 3_000, "n": n, "nothing": None}
    if n % 8_000 == 5:
        values["n"] = "a text"
    if n % 2:
        values |= {"s": {"a": n, "b": [str(n)]}, "x": n + 0.5 if n % 3 else n}
    return json.dumps(values).encode()


def rows(table: Path, *without: str) -> list[dict[str, Any]]:
    found = hoodie.open_table(table).scan().to_arrow().drop_columns(list(without))
    return sorted(found.select(sorted(found.column_names)).to_pylist(), key=lambda each: json.dumps(each, default=str))


def kept_apart(table: Path) -> list[tuple[str, str, str]]:
    files = sorted((table / ".hoodie/.hoodie_py/quarantine").rglob("*.jsonl"))
    found = [each for file in files for each in map(json.loads, file.open())]
    return sorted((each["origin"], each["reason"], each["content"]) for each in found)


def types(table: Path) -> dict[str, str]:
    schema = hoodie.open_table(table).schema
    assert schema is not None
    return {each.name: str(each.type) for each in schema}


def same_of_both(
    spark: SparkSession, address: str, folder: Path, **how: Any
) -> tuple[hoodie.IngestRound, list[dict[str, Any]]]:
    embedded, by_spark = folder / "embedded", folder / "spark"
    (expected,) = hoodie.ingest(address, embedded, **how).rounds
    (done,) = pyspark_hoodie.ingest(spark, address, by_spark, **how).rounds
    for name in ("rows", "bad", "pieces", "bytes", "waiting", "checkpoint"):
        assert getattr(done, name) == getattr(expected, name), name
    assert types(by_spark) == types(embedded)
    assert kept_apart(by_spark) == kept_apart(embedded)
    found = rows(by_spark)
    assert found == rows(embedded)
    return done, found


def test_rows_are_those_of_embedded_ingestion_and_the_last_one_of_a_key_counts(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    topic = Topic(broker, "trips")
    newest: dict[int, int] = {}
    for n in range(MOST_OFFSETS + 2 * MANY):  # the first partition is more than one range
        partition = 0 if n % 3_000 < 2_700 else None
        topic.put(n % 3_000, row(n), partition)
        if row(n) not in (None, b"nonsense") and n % 8_000 != 5:
            newest[n % 3_000] = n
        if n % 100_000 == 0:
            topic.flush()
    topic.flush()
    done, found = same_of_both(spark, topic.address, tmp_path, record_key="id")
    assert done.bad > 50
    assert {each["id"]: each["n"] for each in found} == newest


def test_either_goes_on_where_the_other_ended(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic, t = Topic(broker, "turns"), tmp_path / "t"
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for n in range(sent, sent + count):
            topic.put(n, json.dumps({"id": n, "even": n % 2 == 0}).encode())
        topic.flush()
        sent += count

    send(1_000)
    assert hoodie.ingest(topic.address, t, record_key="id").rows == 1_000
    send(MANY)
    bound = FEW_OFFSETS + 3_000
    by_spark = pyspark_hoodie.ingest(spark, topic.address, t, operation="insert", max_rows=bound).rounds
    assert [each.pieces for each in by_spark] == [bound, bound, MANY - 2 * bound]
    assert [each.waiting for each in by_spark] == [MANY - bound, MANY - 2 * bound, 0]
    send(500)
    assert hoodie.ingest(topic.address, t, operation="insert").rows == 500
    send(MANY)
    (last,) = pyspark_hoodie.ingest(spark, topic.address, t, operation="insert").rounds
    ends = ",".join(f"{number}:{(sent + 2 - number) // 3}" for number in range(3))
    assert last.checkpoint == f"turns,{ends}"
    assert pyspark_hoodie.ingest(spark, topic.address, t).rounds == ()
    assert hoodie.ingest(topic.address, t).rounds == ()
    assert [each["id"] for each in sorted(rows(t), key=lambda each: each["id"])] == list(range(sent))
    by_bytes = pyspark_hoodie.ingest(spark, topic.address, tmp_path / "b", record_key="id", max_bytes=1_000_000).rounds
    assert len(by_bytes) > 2
    assert all(500_000 < each.bytes < 1_500_000 for each in by_bytes[:-1])
    assert len(rows(tmp_path / "b")) == sent


def transactions(topic: Topic, sizes: list[tuple[int, bool]]) -> list[int]:
    """Of so many records each, and whether it is committed; gives the numbers that are."""
    topic.producer.init_transactions(60)
    first, committed = 0, []
    for count, is_committed in sizes:
        topic.producer.begin_transaction()
        for n in range(first, first + count):
            topic.put(n, json.dumps({"id": n}).encode())
        topic.flush()
        if is_committed:
            topic.producer.commit_transaction(60)
            committed += range(first, first + count)
        else:
            topic.producer.abort_transaction(60)
        first += count
    return committed


def test_each_record_is_there_once_over_kills_in_the_middle_of_a_round(
    spark: SparkSession, broker: Kafka, tmp_path: Path
) -> None:
    topic, t = Topic(broker, "killed", **{"transactional.id": "killed"}), tmp_path / "t"
    chance = random.Random(3)
    sizes = [(chance.randrange(1, 6_000), chance.random() < 0.75) for _ in range(KILLS * 30)]
    committed = transactions(topic, sizes)
    hoodie.create_table(t, {"id": "int64"}, record_key="id")
    command = [sys.executable, "-m", "integration.topic_job", topic.address, str(t), str(FEW_OFFSETS + 1)]
    for _ in range(KILLS):
        before = commits(t)
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        wait_until(lambda before=before, process=process: commits(t) > before or process.poll() is not None)
        time.sleep(chance.uniform(0.0, 2.5))
        assert process.poll() is None, "it has read all before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = pyspark_hoodie.ingest(spark, topic.address, t, operation="insert", max_rows=FEW_OFFSETS + 1)
    assert done.rounds
    assert sorted(each["id"] for each in rows(t)) == committed
    assert commits(t) > KILLS


def commits(table: Path) -> int:
    return len(hoodie.open_table(table).timeline.commits)


def wait_until(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 400
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_offsets_without_records_are_gone_over(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = Topic(broker, "holes", 1, **{"transactional.id": "holes"})
    committed = transactions(topic, [(3 * FEW_OFFSETS, False), (10, True), (2 * FEW_OFFSETS, False), (30_000, True)])
    how: Any = {"record_key": "id", "operation": "insert", "max_rows": FEW_OFFSETS + 1}
    done = pyspark_hoodie.ingest(spark, topic.address, tmp_path / "t", **how).rounds
    assert sorted(each["id"] for each in rows(tmp_path / "t")) == committed
    expected = hoodie.ingest(topic.address, tmp_path / "embedded", **how).rounds
    assert done[-1].checkpoint == expected[-1].checkpoint
    assert done[-1].waiting == 0


def test_a_transaction_that_is_open_is_not_waited_for(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic, t = Topic(broker, "open", **{"transactional.id": "open"}), tmp_path / "t"
    committed = transactions(topic, [(MANY, True)])
    topic.producer.begin_transaction()
    for n in range(MANY, 2 * MANY):
        topic.put(n, json.dumps({"id": n}).encode())
    topic.flush()
    how: Any = {"record_key": "id", "operation": "insert", "source_options": {"default.api.timeout.ms": "5000"}}
    pyspark_hoodie.ingest(spark, topic.address, t, **how)
    assert sorted(each["id"] for each in rows(t)) == committed
    topic.producer.commit_transaction(60)
    assert pyspark_hoodie.ingest(spark, topic.address, t, **how).rows == MANY
    assert sorted(each["id"] for each in rows(t)) == list(range(2 * MANY))


def avro(schema: Any, values: Mapping[str, Any], number: int) -> bytes:
    out = io.BytesIO(b"\0" + number.to_bytes(4))
    out.seek(5)
    fastavro.schemaless_writer(out, schema, values)  # type: ignore[arg-type]
    return out.getvalue()


ONE = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
TWO = {"type": "record", "name": "r", "fields": [*ONE["fields"], {"name": "more", "type": ["null", "double"]}]}  # type: ignore[misc]


def test_values_of_avro_and_places_of_records(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = Topic(broker, "avro")
    for n in range(MANY):
        value = avro(TWO, {"id": n, "more": n / 2}, 2) if n % 3 else avro(ONE, {"id": n}, 1)
        topic.put(n, b"\0\0" if n % 10_000 == 7 else value)
    topic.flush()
    told = {"/schemas/ids/1": {"schema": json.dumps(ONE)}, "/schemas/ids/2": {"schema": json.dumps(TWO)}}
    with schemas_served(told) as (url, asked):
        options = {"schema.registry.url": url, **APPEND}
        how: Any = {"format": "avro", "record_key": "id", "source_options": options}
        done, found = same_of_both(spark, topic.address, tmp_path, **how)
        assert len(asked) <= 2 + 2 * 8  # a process asks once
    assert done.bad == MANY // 10_000
    assert len(
        {(each["_hoodie_kafka_source_partition"], each["_hoodie_kafka_source_offset"]) for each in found}
    ) == len(found)
    gone: Any = {**how, "source_options": {"schema.registry.url": "http://127.0.0.1:1"}}
    with pytest.raises(StorageError, match=r"the schema registry 127\.0\.0\.1 does not answer"):
        pyspark_hoodie.ingest(spark, topic.address, tmp_path / "gone", **gone)


def test_change_logs(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    topic = Topic(broker, "shop.public.trips")
    for n in range(MANY):
        values = {"id": n % 5_000, "v": f"v{n}", "w": None if n % 2 else n}
        op = "d" if n % 10 == 9 else "t" if n % 9_000 == 1 else "u"
        before, after = (values, None) if op == "d" else (None, values)
        place = {"connector": "postgresql", "name": "shop", "ts_ms": n, "schema": "public", "lsn": n, "txId": 1}
        event = {"before": before, "after": after, "source": place, "op": op, "ts_ms": n}
        value = event if n % 3 else {"schema": {"type": "struct"}, "payload": event}
        topic.put(n % 5_000, json.dumps(value).encode())
        if op == "d":
            topic.put(n % 5_000, None)
    topic.flush()
    done, _ = same_of_both(spark, topic.address, tmp_path, record_key="id", changes="postgres")
    assert done.bad == MANY // 9_000 + 1


def test_a_session_of_connect_reads_topics_too(spark: SparkSession, broker: Kafka, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs the extra `connect`")
    topic, t = Topic(broker, "connect"), tmp_path / "t"
    for n in range(MANY):
        topic.put(n, b"nonsense" if n == 7 else json.dumps({"id": n}).encode())
    topic.flush()
    hoodie.create_table(t, {"id": "int64"}, record_key="id")
    env = {name: text for name, text in os.environ.items() if name not in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT")}
    with connect_server(tmp_path) as server:
        command = [sys.executable, "-m", "integration.topic_job", topic.address, str(t), str(MANY), server]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HUNG_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(each["id"] for each in rows(t)) == [n for n in range(MANY) if n != 7]
    assert len(kept_apart(t)) == 1
    assert hoodie.ingest(topic.address, t).rounds == ()
