"""What `hoodie.ingestion.kafka` uses of Kafka's consumer, over records in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from hoodie.ingestion.kafka import KafkaSource
from hoodie.ingestion.kafka_consumer import Connection
from hoodie.ingestion.kafka_settings import KafkaSettings, parse_settings


class Message:
    def __init__(self, topic: str, partition: int, offset: int, value: Any, key: bytes | None, at_ms: int) -> None:
        self._all = (topic, partition, offset, value, key, at_ms)

    def topic(self) -> str:
        return str(self._all[0])

    def partition(self) -> int:
        return int(self._all[1])

    def offset(self) -> int:
        return int(self._all[2])

    def value(self) -> Any:
        return None if self.error() is not None else self._all[3]

    def key(self) -> bytes | None:
        return self._all[4]

    def timestamp(self) -> tuple[int, int]:
        return 1, self._all[5]

    def error(self) -> KafkaError | None:
        return self._all[3] if isinstance(self._all[3], KafkaError) else None

    def __len__(self) -> int:
        return len(self.value() or b"")


MARKER = object()
"""Stands for an offset without a record: the end of a transaction, or one that was aborted."""


class Topic:
    def __init__(self, partitions: int = 1, *, id: str = "first") -> None:
        self.id = id
        self.partitions: list[list[Any]] = [[] for _ in range(partitions)]
        self.first = [0] * partitions

    def put(self, partition: int, *values: Any, key: bytes | None = None) -> None:
        self.partitions[partition] += [value if value is MARKER else (value, key) for value in values]


class Kafka:
    """`Connection` to topics in memory. Times of records are their offsets, in seconds."""

    def __init__(self, **topics: Topic) -> None:
        self.topics = topics
        self.group: dict[tuple[str, int], int] = {}
        self.silent = False
        self._at: dict[tuple[str, int], int] = {}

    def source(self, address: str = "kafka://here:9092/t", kind: str | None = None, **options: str) -> KafkaSource:
        named = {f"hoodie.streamer.{name}" if "kafka" in name else name: text for name, text in options.items()}
        return self.source_of(parse_settings(address, kind, {name.replace("__", "."): v for name, v in named.items()}))

    def source_of(self, settings: KafkaSettings) -> KafkaSource:
        return KafkaSource(settings, lambda _: Connection(self, self._ids))

    def _ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        return {topic: self.topics[topic].id for topic in topics}

    def list_topics(self, topic: str, timeout: float) -> Any:
        numbers = dict.fromkeys(range(len(self.topics[topic].partitions)))
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=numbers)})

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int]:
        topic = self.topics[place.topic]
        return topic.first[place.partition], len(topic.partitions[place.partition])

    def offsets_for_times(self, places: Sequence[Any], timeout: float) -> Sequence[Any]:
        ends = {(each.topic, each.partition): self.get_watermark_offsets(each, timeout)[1] for each in places}
        found = [(each, -(-each.offset // 1000)) for each in places]
        return [
            TopicPartition(each.topic, each.partition, at if at < ends[each.topic, each.partition] else -1)
            for each, at in found
        ]

    def committed(self, places: Sequence[Any], timeout: float) -> Sequence[Any]:
        return [TopicPartition(p.topic, p.partition, self.group.get((p.topic, p.partition), -1001)) for p in places]

    def commit(self, *, offsets: Sequence[Any], asynchronous: bool) -> None:
        self.group.update({(each.topic, each.partition): each.offset for each in offsets})

    def assign(self, places: Sequence[Any]) -> None:
        self._at = {(each.topic, each.partition): each.offset for each in places}

    def unassign(self) -> None:
        self._at = {}

    def close(self) -> None:
        self._at = {}

    def consume(self, num_messages: int, timeout: float) -> Sequence[Message]:
        """From each partition in turn, and where one ends a message that says so."""
        found: list[Message] = []
        while not self.silent and self._at and len(found) < num_messages:
            for (name, number), offset in list(self._at.items()):
                records = self.topics[name].partitions[number]
                if offset < self.topics[name].first[number]:
                    del self._at[name, number]
                    found.append(Message(name, number, offset, KafkaError(KafkaError._AUTO_OFFSET_RESET), None, 0))
                    continue
                if offset >= len(records):
                    del self._at[name, number]
                    found.append(Message(name, number, offset, KafkaError(KafkaError._PARTITION_EOF), None, 0))
                    continue
                self._at[name, number] = offset + 1
                if records[offset] is not MARKER:
                    value, key = records[offset]
                    found.append(Message(name, number, offset, value, key, offset * 1000))
        return found[:num_messages]
