"""Topics of Kafka as a source: each record once, in the order of its partition.

Partitions are assigned, without a consumer group. Offsets are in the commits of the table, as Apache Hudi's Kafka source keeps
them, so that either goes on where the other ended. Kafka is told of them only where that is asked for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from hoodie.errors import OptionError, StorageError
from hoodie.ingestion.kafka_offsets import Offsets, Partition, Range, format_offsets, lost, parse_offsets
from hoodie.ingestion.kafka_settings import KafkaSettings
from hoodie.ingestion.kafka_values import Reading, rows_of
from hoodie.ingestion.source import Bounds, Checkpoint, Round

log = logging.getLogger("hoodie")
_kafka_log = log.getChild("kafka")
_kafka_log.setLevel(
    logging.CRITICAL
)  # each lost connection is an error of the client's, which connects again by itself

_AT_ONCE = 10_000
_POLL_S = 0.5
_IDS = "ids"
T = TypeVar("T")


class Connection(NamedTuple):
    consumer: Any
    """A `confluent_kafka.Consumer`."""
    topic_ids: Callable[[Sequence[str]], Mapping[str, str]]
    """What tells a topic from one of the same name that is made later; none where the broker has no such thing."""


class _Taken(NamedTuple):
    messages: Sequence[Any]
    up_to: Offsets
    bytes: int


class KafkaSource:
    """`Source` of the records of topics."""

    def __init__(self, settings: KafkaSettings, connect: Callable[[KafkaSettings], Connection] | None = None) -> None:
        self.settings = settings
        self._connect = connect or connect_to
        self._connection: Connection | None = None
        self._reading = Reading(settings)

    def __str__(self) -> str:
        return str(self.settings)

    def unwrapping(self) -> KafkaSource:
        """The same, where the payload of Kafka Connect's JSON with schemas counts."""
        return KafkaSource(replace(self.settings, unwraps=True), self._connect)

    def next(self, after: Checkpoint | None, bounds: Bounds, known: pa.Schema | None) -> Round | None:
        if self._connection is None:
            self._connection = self._connect(self.settings)
        ids = self._connection.topic_ids(self.settings.topics)
        there = self._there()
        begin = self._begin(after, there, ids)
        taken = self._take(begin, {each: place.end for each, place in there.items()}, bounds)
        begins_now = after is None and self.settings.start != "earliest"  # or the next call would begin later
        if not taken.messages and not begins_now:
            return None
        rows, bad = rows_of(taken.messages, self._reading, known)
        return Round(
            rows,
            Checkpoint(format_offsets(taken.up_to), {_IDS: ids} if ids else {}),
            bad,
            pieces=len(taken.messages),
            bytes=taken.bytes,
            waiting=sum(max(there[each].end - offset, 0) for each, offset in taken.up_to.items()),
            committed=(lambda: self._tell(taken.up_to)) if self.settings.commits_offsets else None,
        )

    @property
    def _consumer(self) -> Any:
        assert self._connection is not None
        return self._connection.consumer

    def _there(self) -> Mapping[Partition, Range]:
        """What the broker has."""
        found = {}
        for topic in self.settings.topics:
            listed = self._answer(self._consumer.list_topics, topic).topics[topic]
            if listed.error is not None:
                raise OptionError(f"{self} cannot be read: {listed.error.str()}")
            for number in listed.partitions:
                place = self._answer(self._consumer.get_watermark_offsets, _place(Partition(topic, number)))
                found[Partition(topic, number)] = Range(*place)
        return found

    def _begin(self, after: Checkpoint | None, there: Mapping[Partition, Range], ids: Mapping[str, str]) -> Offsets:
        """Where each partition is read from. One that was added since the checkpoint is read from its beginning."""
        if after is None:
            return self._start(there)
        offsets = parse_offsets(after.text, topics=self.settings.topics)
        before = after.more.get(_IDS)
        before = before if isinstance(before, Mapping) else {}
        made_anew = [topic for topic, known in before.items() if ids.get(topic, known) != known]
        gone = lost(offsets, there, made_anew)
        if gone and self.settings.fails_on_lost:
            raise OptionError(
                f"{self} has lost records before they were read: {'; '.join(gone.values())}. To go on with the earliest that are "
                "there, set hoodie.streamer.source.kafka.enable.failOnDataLoss=false"
            )
        for sentence in gone.values():
            log.warning("%s: %s; it is read from the earliest record that is there", self, sentence)
        kept = {each: offset for each, offset in offsets.items() if each not in gone}
        return {each: kept.get(each, place.first) for each, place in there.items()}

    def _start(self, there: Mapping[Partition, Range]) -> Offsets:
        start = self.settings.start
        if start == "earliest":
            return {each: place.first for each, place in there.items()}
        if start == "latest":
            return {each: place.end for each, place in there.items()}
        if start == "group":
            found = self._answer(self._consumer.committed, [_place(each) for each in there])
        else:
            found = self._answer(self._consumer.offsets_for_times, [_place(each, int(start)) for each in there])
        chosen = {Partition(each.topic, each.partition): each.offset for each in found}
        return {each: chosen[each] if chosen[each] >= 0 else place.end for each, place in there.items()}

    def _take(self, begin: Offsets, ends: Offsets, bounds: Bounds) -> _Taken:
        """Records up to where the partitions end by now, or up to the bounds; those that come meanwhile may be among them."""
        most = min(bounds.rows or self.settings.max_records, self.settings.max_records)
        most_bytes = bounds.bytes or self.settings.max_bytes
        messages: list[Any] = []
        up_to, size = dict(begin), 0
        open_ones = {each for each, offset in begin.items() if offset < ends[each]}
        if not open_ones:
            return _Taken((), begin, 0)
        self._consumer.assign([_place(each, begin[each]) for each in sorted(open_ones)])
        silent_since_s = time.monotonic()
        while open_ones and len(messages) < most and size < most_bytes:
            found = self._consumer.consume(min(_AT_ONCE, most - len(messages)), _POLL_S)
            goes_on = False
            for message in found:  # the client hands records over one by one
                partition = Partition(message.topic(), message.partition())
                error = message.error()
                if error is not None:
                    if self._is_end(error, partition):
                        goes_on = True
                        up_to[partition] = max(up_to[partition], message.offset())
                        open_ones.discard(partition)
                    continue
                goes_on = True
                messages.append(message)
                size += len(message)
                up_to[partition] = message.offset() + 1
                if up_to[partition] >= ends[partition]:
                    open_ones.discard(partition)
                if size >= most_bytes:
                    break
            if goes_on:
                silent_since_s = time.monotonic()
            elif time.monotonic() - silent_since_s > self.settings.timeout_s:
                if messages:
                    break
                raise StorageError(f"{self} gives nothing for {self.settings.timeout_s:.0f} s: is its broker up?")
        self._consumer.unassign()
        return _Taken(messages, up_to, size)

    def _is_end(self, error: Any, partition: Partition) -> bool:
        """Whether it says that a partition ends, as far as it is committed; passing troubles are left to the client."""
        from confluent_kafka import KafkaError  # noqa: PLC0415 - an optional extra

        if error.code() == KafkaError._PARTITION_EOF:
            return True
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise OptionError(f"{self} lost records of {partition} while they were read: {error.str()}; run it again")
        if error.fatal() or not (error.retriable() or error.code() < 0):
            raise StorageError(f"{self} cannot be read: {error.str()}")
        return False

    def _answer(self, ask: Callable[..., T], *about: Any) -> T:
        """Asked again for a while: a broker that starts knows its partitions later than it answers."""
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an optional extra

        deadline_s = time.monotonic() + self.settings.timeout_s
        while True:
            try:
                return ask(*about, timeout=max(deadline_s - time.monotonic(), 0.1))
            except KafkaException as exc:
                if time.monotonic() > deadline_s:
                    raise StorageError(f"{self} does not answer: {exc.args[0].str()}") from exc
                time.sleep(0.1)

    def _tell(self, offsets: Offsets) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an optional extra

        try:
            self._consumer.commit(offsets=[_place(*each) for each in offsets.items()], asynchronous=False)
        except KafkaException as exc:
            log.warning("the commit stands, but %s was not told of its offsets: %s", self, exc.args[0].str())


def connect_to(settings: KafkaSettings) -> Connection:
    """Raises OptionError: the client is not installed, or does not know a property."""
    try:
        import confluent_kafka as kafka  # noqa: PLC0415 - an optional extra
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - an optional extra
    except ImportError as exc:
        raise OptionError("a topic is read by confluent-kafka: install hoodie with the extra `kafka`") from exc
    properties: dict[str, str | int | float | bool] = {
        **settings.consumer,
        "bootstrap.servers": settings.servers,
        "auto.offset.reset": "error",
        "allow.auto.create.topics": "false",
    }
    try:
        consumer = kafka.Consumer(properties, logger=_kafka_log)
        admin = AdminClient(properties, logger=_kafka_log)
    except (kafka.KafkaException, ValueError, TypeError) as exc:
        raise OptionError(f"{settings} cannot be read with these properties: {exc}") from exc

    def topic_ids(topics: Sequence[str]) -> Mapping[str, str]:
        try:
            answers = admin.describe_topics(kafka.TopicCollection(list(topics)), request_timeout=settings.timeout_s)
            return {topic: str(answer.result().topic_id) for topic, answer in answers.items()}
        except (
            kafka.KafkaException
        ):  # an old broker, or no right to ask; whether the topic is there is seen when it is listed
            return {}

    return Connection(consumer, topic_ids)


def _place(partition: Partition, offset: int | None = None) -> Any:
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - an optional extra

    return TopicPartition(partition.topic, partition.number, *(() if offset is None else (offset,)))
