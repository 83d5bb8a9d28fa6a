"""Topics of Kafka as a source: each record once, in the order of its partition.

Partitions are assigned, without a consumer group. Offsets are in the commits of the table, as Apache Hudi's Kafka source keeps
them, so that either goes on where the other ended. Kafka is told of them only where that is asked for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from hoodie.engine.base import Records
from hoodie.errors import OptionError, StorageError
from hoodie.ingestion.kafka_consumer import AT_ONCE, POLL_S, Connection, connect_to, is_end, place_of, silence
from hoodie.ingestion.kafka_offsets import (
    Offsets,
    Partition,
    Range,
    format_offsets,
    losses_since,
    parse_offsets,
    shares,
)
from hoodie.ingestion.kafka_settings import KafkaSettings
from hoodie.ingestion.kafka_values import Reading, rows_of
from hoodie.ingestion.source import BadRecord, Bounds, Checkpoint, Round

log = logging.getLogger("hoodie")

_IDS = "ids"
_SAMPLE = 1_000
"""Records whose size stands for that of all where bytes are bounded."""
T = TypeVar("T")


class _MessageBatch(NamedTuple):
    messages: Sequence[Any]
    up_to: Offsets
    bytes: int


@dataclass(frozen=True)
class KafkaRound:
    """What comes next, unread."""

    begin: Offsets
    there: Mapping[Partition, Range]
    """What the broker has."""
    most: int
    """Records."""
    most_bytes: int | None
    """None: the user says nothing of bytes."""
    ids: Mapping[str, str]
    moves_checkpoint: bool
    """Also a round without records: or the next call would begin later."""

    @property
    def waiting(self) -> Mapping[Partition, int]:
        """How many offsets wait in the partitions that have new ones."""
        waiting = {each: place.end - self.begin[each] for each, place in self.there.items()}
        return {each: count for each, count in waiting.items() if count > 0}

    @property
    def offsets(self) -> int:
        """How many a round takes."""
        return min(sum(self.waiting.values()), self.most)


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

    def next(self, after: Checkpoint | None, bounds: Bounds, schema: pa.Schema | None) -> Round | None:
        return self.read(self.planned(after, bounds), schema)

    def planned(self, after: Checkpoint | None, bounds: Bounds) -> KafkaRound:
        """Where the next round begins, and what waits there."""
        if self._connection is None:
            self._connection = self._connect(self.settings)
        ids = self._connection.topic_ids(self.settings.topics)
        there = self._there()
        return KafkaRound(
            self._begin(after, there, ids),
            there,
            min(bounds.rows or self.settings.max_records, self.settings.max_records),
            bounds.bytes,
            ids,
            moves_checkpoint=after is None and self.settings.start != "earliest",
        )

    def read(self, planned: KafkaRound, schema: pa.Schema | None) -> Round | None:
        """The round, read by this process."""
        batch = self._take(planned)
        if not batch.messages and not planned.moves_checkpoint:
            return None
        rows, bad = rows_of(batch.messages, self._reading, schema)
        return self.round(planned, batch.up_to, rows, bad, records=len(batch.messages), size_bytes=batch.bytes)

    def ends(self, planned: KafkaRound) -> Offsets:
        """Up to where others read this round: as many offsets of each partition as the bounds allow.

        An offset may have no record. How many bytes they have is an estimate by the first records.
        """
        most = planned.most
        if planned.most_bytes is not None:
            sample = self._take(replace(planned, most=min(most, _SAMPLE)))
            if sample.bytes:
                most = min(most, max(1, planned.most_bytes * len(sample.messages) // sample.bytes))
        counts = shares(planned.waiting, most)
        return {each: offset + counts.get(each, 0) for each, offset in planned.begin.items()}

    def round(
        self,
        planned: KafkaRound,
        up_to: Offsets,
        rows: Records,
        bad: Sequence[BadRecord],
        *,
        records: int,
        size_bytes: int,
    ) -> Round:
        """These rows, with the checkpoint behind them."""
        return Round(
            rows,
            Checkpoint(format_offsets(up_to), {_IDS: planned.ids} if planned.ids else {}),
            bad,
            pieces=records,
            bytes=size_bytes,
            waiting=sum(max(planned.there[each].end - offset, 0) for each, offset in up_to.items()),
            may_lack=True,
            committed=(lambda: self._tell(up_to)) if self.settings.commits_offsets else None,
        )

    @property
    def _consumer(self) -> Any:
        assert self._connection is not None
        return self._connection.consumer

    def _there(self) -> Mapping[Partition, Range]:
        """What the broker has."""
        result = {}
        for topic in self.settings.topics:
            metadata = self._answer(self._consumer.list_topics, topic).topics[topic]
            if metadata.error is not None:
                raise OptionError(f"{self} cannot be read: {metadata.error.str()}")
            for number in metadata.partitions:
                place = self._answer(self._consumer.get_watermark_offsets, place_of(Partition(topic, number)))
                result[Partition(topic, number)] = Range(*place)
        return result

    def _begin(self, after: Checkpoint | None, there: Mapping[Partition, Range], ids: Mapping[str, str]) -> Offsets:
        """Where each partition is read from. One that was added since the checkpoint is read from its beginning."""
        if after is None:
            return self._start(there)
        offsets = parse_offsets(after.text, topics=self.settings.topics)
        before = after.more.get(_IDS)
        before = before if isinstance(before, Mapping) else {}
        made_anew = [topic for topic, topic_id in before.items() if ids.get(topic, topic_id) != topic_id]
        losses = losses_since(offsets, there, made_anew)
        if losses and self.settings.fails_on_lost:
            raise OptionError(
                f"{self} has lost records before they were read: {'; '.join(losses.values())}. To go on with the earliest that are "
                "there, set hoodie.streamer.source.kafka.enable.failOnDataLoss=false"
            )
        for sentence in losses.values():
            log.warning("%s: %s; it is read from the earliest record that is there", self, sentence)
        usable = {each: offset for each, offset in offsets.items() if each not in losses}
        return {each: usable.get(each, place.first) for each, place in there.items()}

    def _start(self, there: Mapping[Partition, Range]) -> Offsets:
        start = self.settings.start
        if start == "earliest":
            return {each: place.first for each, place in there.items()}
        if start == "latest":
            return {each: place.end for each, place in there.items()}
        if start == "group":
            places = self._answer(self._consumer.committed, [place_of(each) for each in there])
        else:
            places = self._answer(self._consumer.offsets_for_times, [place_of(each, int(start)) for each in there])
        chosen = {Partition(each.topic, each.partition): each.offset for each in places}
        return {each: chosen[each] if chosen[each] >= 0 else place.end for each, place in there.items()}

    def _take(self, planned: KafkaRound) -> _MessageBatch:
        """Records up to where the partitions end by now, or up to the bounds; those that come meanwhile may be among them."""
        begin, ends = planned.begin, {each: place.end for each, place in planned.there.items()}
        most, most_bytes = planned.most, planned.most_bytes or self.settings.max_bytes
        messages: list[Any] = []
        up_to, size = dict(begin), 0
        open_ones = set(planned.waiting)
        if not open_ones:
            return _MessageBatch((), begin, 0)
        self._consumer.assign([place_of(each, begin[each]) for each in sorted(open_ones)])
        silent_since_s = time.monotonic()
        while open_ones and len(messages) < most and size < most_bytes:
            batch = self._consumer.consume(min(AT_ONCE, most - len(messages)), POLL_S)
            goes_on = False
            for message in batch:  # the client hands records over one by one
                partition = Partition(message.topic(), message.partition())
                error = message.error()
                if error is not None:
                    if is_end(error, partition, self.settings):
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
                raise silence(self.settings)
        self._consumer.unassign()
        return _MessageBatch(messages, up_to, size)

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
            self._consumer.commit(offsets=[place_of(*each) for each in offsets.items()], asynchronous=False)
        except KafkaException as exc:
            log.warning("the commit stands, but its offsets were not committed to %s: %s", self, exc.args[0].str())
