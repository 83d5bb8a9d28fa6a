"""Ranges of offsets: which ones a round takes, and that each is read to its end and no further, by whoever reads it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import HoodieError, OptionError, StorageError
from hoodie.ingestion.kafka_offsets import Partition, shares
from hoodie.ingestion.kafka_ranges import RAW_SCHEMA, OffsetRange, checked, ranges_of, read_range
from hoodie.ingestion.kafka_settings import KafkaSettings, parse_settings
from hoodie.ingestion.source import NO_BOUNDS, Bounds, Checkpoint

pytest.importorskip("confluent_kafka")
from tests.ingestion.stand_in_kafka import MARKER, Kafka, Topic

SETTINGS = parse_settings("kafka://here:9092/t", None, None)


def values(*ids: int) -> list[bytes]:
    return [json.dumps({"id": n}).encode() for n in ids]


def parts(*counts: int) -> dict[Partition, int]:
    return {Partition("t", number): count for number, count in enumerate(counts)}


def read(kafka: Kafka, begin: int, end: int, settings: KafkaSettings = SETTINGS) -> pa.Table:
    wanted = OffsetRange(Partition("t", 0), begin, end)
    return pa.Table.from_batches(checked(read_range(settings, wanted, lambda _: kafka)), RAW_SCHEMA)


# -- which ones --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "most", "taken"),
    [
        ((5, 5), 100, (5, 5)),
        ((5, 5), 4, (2, 2)),
        ((1, 9), 6, (1, 5)),
        ((9, 1, 3), 6, (3, 1, 2)),
        ((4, 4, 4), 1, (0, 0, 1)),
        ((7,), 3, (3,)),
        ((), 3, ()),
    ],
)
def test_each_partition_gives_as_many_offsets_and_short_ones_give_all(
    waiting: tuple[int, ...], most: int, taken: tuple[int, ...]
) -> None:
    assert shares(parts(*waiting), most) == parts(*taken)


def test_ranges_of_a_partition_stand_together_and_ascend() -> None:
    found = ranges_of(parts(0, 5, 7), parts(25, 5, 8), most=10)
    assert [(each.partition.number, each.begin, each.end) for each in found] == [
        (0, 0, 10),
        (0, 10, 20),
        (0, 20, 25),
        (2, 7, 8),
    ]
    assert sum(each.size_bytes for each in found) == 26 * found[3].size_bytes


def ends(kafka: Kafka, bounds: Bounds, after: str | None = None, **options: str) -> Mapping[Partition, int]:
    source = kafka.source(**options)
    return source.ends(source.planned(None if after is None else Checkpoint(after), bounds))


def test_a_round_ends_where_the_partitions_end_or_the_bounds_say() -> None:
    kafka = Kafka(t=Topic(2))
    kafka.topics["t"].put(0, *values(*range(10, 40)))
    kafka.topics["t"].put(1, *values(*range(10, 20)))
    assert ends(kafka, NO_BOUNDS) == parts(30, 10)
    assert ends(kafka, NO_BOUNDS, "t,0:30,1:4") == parts(30, 10)
    assert ends(kafka, Bounds(rows=8), "t,0:6") == parts(10, 4)
    assert ends(kafka, Bounds(rows=8), kafka__source__maxEvents="6") == parts(3, 3)
    assert ends(kafka, Bounds(bytes=100)) == parts(5, 5)  # values of ten bytes
    assert ends(kafka, Bounds(bytes=1)) == parts(1, 0)
    assert ends(kafka, Bounds(bytes=100_000)) == parts(30, 10)
    source = kafka.source()
    assert (source.planned(None, Bounds(rows=8)).offsets, source.planned(None, NO_BOUNDS).offsets) == (8, 40)
    assert source.planned(Checkpoint("t,0:30,1:10"), NO_BOUNDS).offsets == 0


# -- reading one -------------------------------------------------------------------------------------------------------


def test_a_range_gives_its_records_and_no_others() -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, *values(*range(5)), key=b"k")
    kafka.topics["t"].put(0, None, b"")
    found = read(kafka, 3, 6).to_pylist()
    row: dict[str, Any] = {"topic": "t", "partition": 0, "failure": None}
    assert found == [
        {**row, "offset": 3, "timestamp": 3000, "key": b"k", "value": b'{"id": 3}'},
        {**row, "offset": 4, "timestamp": 4000, "key": b"k", "value": b'{"id": 4}'},
        {**row, "offset": 5, "timestamp": 5000, "key": None, "value": None},
    ]


@pytest.mark.parametrize(("begin", "end"), [(0, 3), (1, 3), (1, 4), (2, 7), (3, 6), (4, 5), (6, 7)])
def test_offsets_without_records_are_passed_over(begin: int, end: int) -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, *values(0), MARKER, MARKER, *values(3), MARKER, *values(5), MARKER)
    assert read(kafka, begin, end).column("offset").to_pylist() == [n for n in (0, 3, 5) if begin <= n < end]


def failure(kafka: Kafka, begin: int, end: int, settings: KafkaSettings = SETTINGS) -> HoodieError:
    with pytest.raises(HoodieError) as raised:
        read(kafka, begin, end, settings)
    return raised.value


def test_errors_are_rows_that_are_raised_where_the_records_are_used() -> None:
    kafka = Kafka(t=Topic())
    kafka.topics["t"].put(0, *values(0, 1))
    impatient = replace(SETTINGS, timeout_s=0)
    short = failure(kafka, 0, 5, impatient)  # nobody knows why it ends before
    assert isinstance(short, StorageError)
    assert "topic t at here:9092 gives nothing for 0 s" in str(short)
    kafka.topics["t"].first[0] = 1
    lost = failure(kafka, 0, 2)
    assert isinstance(lost, OptionError)
    assert "topic t at here:9092 lost records of partition 0 of topic t while they were read" in str(lost)
    kafka.silent = True
    assert "gives nothing for 0 s" in str(failure(kafka, 1, 2, impatient))


def test_an_executor_that_cannot_read_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = OffsetRange(Partition("t", 0), 0, 1)
    unknown = replace(SETTINGS, consumer={"no.such.property": "1"})
    with pytest.raises(OptionError, match="topic t at here:9092 cannot be read with these properties"):
        list(checked(read_range(unknown, wanted)))
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(OptionError, match="install hoodie with the extra `kafka` on each machine that reads"):
        list(checked(read_range(SETTINGS, wanted)))
