"""Creates a consumer of Kafka, and asks it about partitions. confluent-kafka is an optional extra."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hoodie.errors import OptionError, StorageError
from hoodie.ingestion.kafka_offsets import Partition
from hoodie.ingestion.kafka_settings import KafkaSettings

_kafka_log = logging.getLogger("hoodie.kafka")
_kafka_log.setLevel(
    logging.CRITICAL
)  # each lost connection is an error of the client's, which connects again by itself

AT_ONCE = 10_000
"""Records that the client is asked for."""
POLL_S = 0.5


class Connection(NamedTuple):
    consumer: Any
    """A `confluent_kafka.Consumer`."""
    topic_ids: Callable[[Sequence[str]], Mapping[str, str]]
    """What tells a topic from one of the same name that is made later; none where the broker has no such thing."""


def connect_to(settings: KafkaSettings) -> Connection:
    """Raises OptionError: the client is not installed, or does not know a property."""
    consumer = consumer_of(settings)
    import confluent_kafka as kafka  # noqa: PLC0415 - an optional extra
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - an optional extra

    admin = AdminClient(_properties(settings), logger=_kafka_log)

    def topic_ids(topics: Sequence[str]) -> Mapping[str, str]:
        try:
            answers = admin.describe_topics(kafka.TopicCollection(list(topics)), request_timeout=settings.timeout_s)
            return {topic: str(answer.result().topic_id) for topic, answer in answers.items()}
        except (
            kafka.KafkaException
        ):  # an old broker, or no right to ask; whether the topic is there is seen when it is listed
            return {}

    return Connection(consumer, topic_ids)


def consumer_of(settings: KafkaSettings) -> Any:
    """A consumer without partitions.

    Raises:
        OptionError: the client is not installed, or does not know a property.
    """
    try:
        import confluent_kafka as kafka  # noqa: PLC0415 - an optional extra
    except ImportError as exc:
        raise OptionError(
            "a topic is read by confluent-kafka: install hoodie with the extra `kafka` on each machine that reads"
        ) from exc
    try:
        return kafka.Consumer(_properties(settings), logger=_kafka_log)
    except (kafka.KafkaException, ValueError, TypeError) as exc:
        raise OptionError(f"{settings} cannot be read with these properties: {exc}") from exc


def _properties(settings: KafkaSettings) -> dict[str, str | int | float | bool]:
    return {
        **settings.consumer,
        "bootstrap.servers": settings.servers,
        "auto.offset.reset": "error",
        "allow.auto.create.topics": "false",
    }


def place_of(partition: Partition, offset: int | None = None) -> Any:
    from confluent_kafka import TopicPartition  # noqa: PLC0415 - an optional extra

    return TopicPartition(partition.topic, partition.number, *(() if offset is None else (offset,)))


def is_end(error: Any, partition: Partition, settings: KafkaSettings) -> bool:
    """Whether it says that a partition ends, as far as it is committed; passing troubles are left to the client.

    Raises:
        OptionError: records are gone. StorageError: the topic cannot be read.
    """
    from confluent_kafka import KafkaError  # noqa: PLC0415 - an optional extra

    if error.code() == KafkaError._PARTITION_EOF:
        return True
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        raise OptionError(f"{settings} lost records of {partition} while they were read: {error.str()}; run it again")
    if error.fatal() or not (error.retriable() or error.code() < 0):
        raise StorageError(f"{settings} cannot be read: {error.str()}")
    return False


def silence(settings: KafkaSettings) -> StorageError:
    """The error of a broker that has been silent for too long."""
    return StorageError(f"{settings} gives nothing for {settings.timeout_s:.0f} s: is its broker up?")
