"""Topics as a source: each record once, by the checkpoints of Apache Hudi's Kafka source. The consumer is a stand-in."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import OptionError, StorageError
from hoodie.ingestion.kafka_offsets import Partition, format_offsets, parse_offsets
from hoodie.ingestion.kafka_settings import parse_settings
from hoodie.model.enums import WriteOperation

pytest.importorskip("confluent_kafka")
from tests.ingestion.stand_in_kafka import MARKER, Kafka, Topic

HUDI, HUDI_2 = "deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"


def target() -> str:
    return f"memory://{secrets.token_hex(8)}"


def values(*ids: int) -> list[bytes]:
    return [json.dumps({"id": n}).encode() for n in ids]


def ids(table: str | hoodie.HoodieTable) -> list[int]:
    opened = hoodie.open_table(table) if isinstance(table, str) else table
    return sorted(opened.scan(["id"]).to_arrow().column("id").to_pylist())


def extra(table: str) -> dict[str, str]:
    t = hoodie.open_table(table)
    latest = t.timeline.latest_commit
    assert latest is not None
    return dict(t._context.active.read_commit(latest).extra)


def put_checkpoint(t: hoodie.HoodieTable, text: str) -> None:
    """As Apache Hudi's Streamer does, beside a row."""
    writer = replace(t._request_for(WriteOperation.UPSERT, None).write, commit_entries={HUDI: text})
    rows = pa.table({"id": [1]})
    t.writer.write(rows, rows.schema, WriteOperation.UPSERT, writer, engine=t._context.engine)


# -- each record once --------------------------------------------------------------------------------------------------


def test_each_record_is_read_once_and_the_checkpoint_is_that_of_hudis_streamer() -> None:
    kafka, t = Kafka(t=Topic(2)), target()
    kafka.topics["t"].put(0, *values(1, 2))
    kafka.topics["t"].put(1, *values(3))
    (done,) = hoodie.ingest(kafka.source(), t, record_key="id", operation="insert").rounds
    assert (done.rows, done.pieces, done.bytes, done.waiting, done.checkpoint) == (3, 3, 27, 0, "t,0:2,1:1")
    assert extra(t)[HUDI] == extra(t)[HUDI_2] == "t,0:2,1:1"
    assert hoodie.ingest(kafka.source(), t, operation="insert").rounds == ()
    kafka.topics["t"].put(1, *values(4))
    assert hoodie.ingest(kafka.source(), t, operation="insert").rounds[0].checkpoint == "t,0:2,1:2"
    assert ids(t) == [1, 2, 3, 4]


def test_it_goes_on_where_apache_hudi_ended() -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, *values(1, 2, 3))
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    put_checkpoint(t, "t,0:2")
    assert hoodie.ingest(kafka.source(), t).rows == 1
    assert ids(t) == [1, 3]


def test_what_is_behind_a_transaction_is_no_record_and_is_waited_for_by_nobody() -> None:
    kafka, t = Kafka(t=Topic()), target()
    kafka.topics["t"].put(0, *values(1), MARKER, MARKER, *values(2), MARKER)
    (done,) = hoodie.ingest(kafka.source(), t, record_key="id").rounds
    assert (done.rows, done.checkpoint, done.waiting) == (2, "t,0:5", 0)
    kafka.topics["t"].put(0, MARKER)
    assert hoodie.ingest(kafka.source(), t).rounds == ()


def test_bounds_cut_what_is_new_into_rounds() -> None:
    kafka, t = Kafka(t=Topic(2)), target()
    for partition in (0, 1):
        kafka.topics["t"].put(partition, *values(*range(partition * 10, partition * 10 + 4)))
    done = hoodie.ingest(kafka.source(), t, record_key="id", operation="insert", max_rows=3)
    assert [(each.pieces, each.waiting) for each in done.rounds] == [(3, 5), (3, 2), (2, 0)]
    assert ids(t) == [0, 1, 2, 3, 10, 11, 12, 13]
    by_bytes = hoodie.ingest(kafka.source(), target(), record_key="id", max_bytes=10)
    assert [each.pieces for each in by_bytes.rounds] == [2, 2, 2, 2]
    by_option = kafka.source(kafka__source__maxEvents="4")
    assert [each.pieces for each in hoodie.ingest(by_option, target(), record_key="id").rounds] == [4, 4]


def test_rounds_take_partitions_in_their_order() -> None:
    kafka, t = Kafka(t=Topic(12)), target()
    for partition in range(12):
        kafka.topics["t"].put(partition, *values(partition + 10, partition + 30))
    first, *_ = hoodie.ingest(kafka.source(), t, record_key="id", operation="insert", max_bytes=60).rounds
    assert first.checkpoint == ",".join(["t", *(f"{partition}:{int(partition < 6)}" for partition in range(12))])


def test_the_last_record_of_a_key_counts() -> None:
    kafka, t = Kafka(t=Topic(2)), target()
    for n in range(5):
        kafka.topics["t"].put(n % 2, json.dumps({"id": n % 2, "n": n}).encode())
    hoodie.ingest(kafka.source(), t, record_key="id")
    assert sorted(hoodie.open_table(t).scan().to_arrow().column("n").to_pylist()) == [3, 4]


def test_a_new_partition_is_read_from_its_beginning_and_an_empty_topic_is_nothing_new() -> None:
    kafka, t = Kafka(t=Topic(1)), target()
    assert hoodie.ingest(kafka.source(), t, record_key="id").rounds == ()
    kafka.topics["t"].put(0, *values(1))
    hoodie.ingest(kafka.source(), t)
    kafka.topics["t"].partitions.append([])
    kafka.topics["t"].first.append(0)
    kafka.topics["t"].put(1, *values(2))
    assert hoodie.ingest(kafka.source(auto__offset__reset="latest"), t).rounds[0].checkpoint == "t,0:1,1:1"


def test_several_topics_are_one_source_that_apache_hudi_does_not_take_for_one_of_its_own() -> None:
    kafka, t = Kafka(a=Topic(), b=Topic()), target()
    kafka.topics["a"].put(0, *values(1))
    kafka.topics["b"].put(0, *values(2, 3))
    source = kafka.source("kafka://here:9092/a,b")
    assert hoodie.ingest(source, t, record_key="id").rounds[0].checkpoint == "a,0:1;b,0:2"
    assert hoodie.ingest(source, t).rounds == ()


# -- records that are gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ("retention", r"partition 0 of topic t begins at 3 by now: 1 offset from 2 on are gone"),
        ("shorter", r"partition 0 of topic t ends at 1, and was read up to 2: the topic was made anew"),
        ("anew", r"topic t was deleted and made anew since it was read up to offset 2"),
        ("fewer", r"partition 1 of topic t is gone"),
    ],
)
def test_records_that_are_gone_are_an_error_and_are_passed_over_where_that_is_asked_for(
    change: str, match: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka, t = Kafka(t=Topic(2)), target()
    kafka.topics["t"].put(0, *values(1, 2))
    kafka.topics["t"].put(1, *values(3))
    hoodie.ingest(kafka.source(), t, record_key="id")
    if change == "retention":
        kafka.topics["t"].put(0, *values(4, 5))
        kafka.topics["t"].first[0] = 3
    elif change == "fewer":
        del kafka.topics["t"].partitions[1]
    else:
        kafka.topics["t"] = Topic(2, id="second" if change == "anew" else "first")
        kafka.topics["t"].put(0, *values(*([7, 8, 9] if change == "anew" else [7])))
        kafka.topics["t"].put(1, *values(10))
    with pytest.raises(OptionError, match=match + r".*enable\.failOnDataLoss=false"):
        hoodie.ingest(kafka.source(), t)
    went_on = kafka.source(source__kafka__enable__failOnDataLoss="false")
    hoodie.ingest(went_on, t)
    new = {"retention": [5], "shorter": [7], "anew": [7, 8, 9, 10], "fewer": []}[change]
    assert ids(t) == [1, 2, 3, *new]
    assert "it is read from the earliest record that is there" in caplog.text


def test_the_checkpoint_of_something_else_is_said() -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, *values(1))
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    put_checkpoint(t, "1700000000")
    with pytest.raises(OptionError, match=r"'1700000000' is not one of a topic .* give name="):
        hoodie.ingest(kafka.source(), t)
    put_checkpoint(t, "u,0:1")
    with pytest.raises(OptionError, match=r"is one of topic u, and t is to be read"):
        hoodie.ingest(kafka.source(), t)


@pytest.mark.parametrize("text", ["t,0:1", "t,0:12,1:0,10:7", "a.b-c_d,3:9007199254740993", "a,0:1;b,0:2"])
def test_checkpoints_go_there_and_back(text: str) -> None:
    topics = [part.partition(",")[0] for part in text.split(";")]
    assert format_offsets(parse_offsets(text, topics=topics)) == text


def test_partitions_stand_in_the_order_of_their_numbers() -> None:
    assert format_offsets({Partition("t", 10): 1, Partition("t", 9): 2}) == "t,9:2,10:1"


# -- where it begins, and what Kafka is told ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "later"),
    [
        ("earliest", [1, 2, 3, 4]),
        ("latest", [4]),
        ("1000", [2, 3, 4]),
        ("1970-01-01T00:00:02Z", [3, 4]),
        ("1980-01-01", [4]),
        ("group", [3, 4]),
    ],
)
def test_a_table_without_a_checkpoint_begins_where_it_is_told_and_stays_with_that(start: str, later: list[int]) -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, *values(1, 2, 3))
    kafka.group["t", 0] = 2
    t = hoodie.create_table(target(), {"id": "int64"}, record_key="id")
    hoodie.ingest(kafka.source(auto__offset__reset=start), t)
    kafka.topics["t"].put(0, *values(4))
    hoodie.ingest(kafka.source(auto__offset__reset=start), t)
    assert ids(t) == later


def test_kafka_is_told_of_offsets_behind_a_commit_where_that_is_asked_for() -> None:
    kafka, t = Kafka(t=Topic()), target()
    kafka.topics["t"].put(0, *values(1, 2))
    hoodie.ingest(kafka.source(), t, record_key="id")
    assert kafka.group == {}
    kafka.topics["t"].put(0, *values(3))
    told = kafka.source(source__kafka__enable__commit__offset="true")
    hoodie.ingest(told, t, dry_run=True)
    assert kafka.group == {}
    hoodie.ingest(told, t)
    assert kafka.group == {("t", 0): 3}


def test_a_broker_that_gives_nothing_is_an_error_after_a_while() -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, *values(1))
    kafka.silent = True
    source = kafka.source_of(replace(parse_settings("kafka://here:9092/t", None, None), timeout_s=0))
    with pytest.raises(StorageError, match="topic t at here:9092 gives nothing for 0 s"):
        hoodie.ingest(source, target(), record_key="id")


def test_what_is_no_row_is_kept_apart_with_its_place() -> None:
    kafka, t = Kafka(t=Topic(2)), target()
    kafka.topics["t"].put(1, *values(1), b"nonsense", None, b"", *values(2))
    (done,) = hoodie.ingest(kafka.source(), t, record_key="id").rounds
    assert (done.rows, done.bad, done.pieces) == (2, 1, 5)
    text = hoodie.open_table(t)._context.storage.read(str(done.quarantine)).decode()
    assert json.loads(text)["origin"] == "topic t, partition 1, offset 1"
    kafka.topics["t"].put(0, b"[1]")
    with pytest.raises(OptionError, match="the first in topic t, partition 0, offset 0"):
        hoodie.ingest(kafka.source(), t, quarantine=False)


def test_a_round_of_tombstones_moves_the_checkpoint() -> None:
    kafka, t = Kafka(t=Topic()), target()
    kafka.topics["t"].put(0, *values(1))
    hoodie.ingest(kafka.source(), t, record_key="id")
    kafka.topics["t"].put(0, None, None)
    (done,) = hoodie.ingest(kafka.source(), t).rounds
    assert (done.rows, done.checkpoint) == (0, "t,0:3")


@pytest.mark.parametrize(
    ("address", "kind", "options", "match"),
    [
        ("kafka://h:1/", None, {}, "names no topic: write kafka://host:port/topic"),
        ("kafka:///t", None, {}, "names no server"),
        ("kafka://h:1/t", "csv", {}, "format='csv' of a topic is not one of json, avro, text"),
        ("kafka://h:1/t", "avro", {}, "no schema is given: set schema.registry.url, or"),
        ("kafka://h:1/t", None, {"auto.offset.reset": "soon"}, "'soon' is not earliest, latest, group, a time"),
        ("kafka://h:1/t", None, {"enable.auto.commit": "true"}, "cannot be chosen: offsets are in the commits"),
        ("kafka://h:1/t", None, {"hoodie.streamer.source.kafka.topics": "u"}, "is no option of a topic"),
        ("kafka://h:1/t", None, {"hoodie.streamer.kafka.source.maxEvents": "0"}, "is not a whole number above 0"),
        ("kafka://h:1/t", None, {"hoodie.streamer.source.kafka.append.offsets": "2"}, "is not true or false"),
        ("kafka://h:1/t", "avro", {"schema.registry.url": "h:1"}, "is not an HTTP address"),
    ],
)
def test_what_makes_no_sense_is_named(address: str, kind: str | None, options: dict[str, str], match: str) -> None:
    with pytest.raises(OptionError, match=match):
        hoodie.ingest(address, target(), format=kind, record_key="id", source_options=options)


def test_options_of_hudis_streamer_and_of_javas_client_are_taken() -> None:
    options = {
        "bootstrap.servers": "a:1,b:2",
        "hoodie.deltastreamer.source.kafka.topic": "t",
        "value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        "enable.auto.commit": "false",
        "sasl.password": "s3cr3t",
    }
    found: Any = parse_settings("kafka://", None, options)
    assert (found.servers, found.topics) == ("a:1,b:2", ("t",))
    assert found.consumer["isolation.level"] == "read_committed"
    assert "value.deserializer" not in found.consumer
    assert "s3cr3t" not in repr(found)
