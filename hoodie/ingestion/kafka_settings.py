"""How a topic is read: from an address `kafka://host:port/topic` and options, by the names of Apache Hudi's Streamer and of Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hoodie.errors import OptionError

SCHEME = "kafka"
VALUES = ("json", "avro", "text")
_PREFIXES = ("hoodie.streamer.", "hoodie.deltastreamer.")
_NOT_READ = ("key.deserializer", "value.deserializer")
"""Classes of Java's client, in whose place `format` stands."""
_OURS: Mapping[str, str] = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
}
_DEFAULTS = {"group.id": "hoodie", "isolation.level": "read_committed"}
_MAX_RECORDS = 5_000_000
_MAX_BYTES = 1 << 28


@dataclass(frozen=True)
class KafkaSettings:
    servers: str
    topics: tuple[str, ...]
    values: str = "json"
    start: str | int = "earliest"
    """Where a table without a checkpoint begins: earliest, latest, group (what the group has committed), or milliseconds."""
    fails_on_lost: bool = True
    adds_columns: bool = False
    commits_offsets: bool = False
    max_records: int = _MAX_RECORDS
    max_bytes: int = _MAX_BYTES
    schema: str | None = None
    """Of Avro values, as JSON."""
    registry: str | None = None
    """Address of the schema registry."""
    registry_user: str | None = field(default=None, repr=False)
    """user:password"""
    timeout_s: float = 60.0
    unwraps: bool = False
    """Values of JSON may be Kafka Connect's `{"schema": …, "payload": …}`: the payload counts."""
    consumer: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of the consumer; they may hold secrets."""

    def __str__(self) -> str:
        return f"topic {', '.join(self.topics)} at {self.servers}"


def parse_settings(address: str, values: str | None, options: Mapping[str, str] | None) -> KafkaSettings:
    """Raises OptionError: an option is unknown, or cannot have its value; no topic, or no server is named."""
    servers, _, topics = address.removeprefix(f"{SCHEME}://").partition("/")
    remaining = dict(options or {})

    def setting(name: str, default: str = "") -> str:
        values_of = [remaining.pop(f"{prefix}{name}") for prefix in _PREFIXES if f"{prefix}{name}" in remaining]
        return values_of[0].strip() if values_of else default

    def flag(name: str, default: str) -> bool:
        return _boolean(f"{_PREFIXES[0]}{name}", setting(name, default))

    topics = topics or setting("source.kafka.topic")
    servers = remaining.pop("bootstrap.servers", "") or servers
    if not servers or not topics:
        raise OptionError(f"{address} names no {'topic' if servers else 'server'}: write kafka://host:port/topic")
    kind = values or "json"
    if kind not in VALUES:
        raise OptionError(f"format={kind!r} of a topic is not one of {', '.join(VALUES)}")
    settings = KafkaSettings(
        servers,
        tuple(name.strip() for name in topics.split(",")),
        kind,
        start=_start(remaining.pop("auto.offset.reset", "earliest")),
        fails_on_lost=flag("source.kafka.enable.failOnDataLoss", "true"),
        adds_columns=flag("source.kafka.append.offsets", "false"),
        commits_offsets=flag("source.kafka.enable.commit.offset", "false"),
        max_records=_number("kafka.source.maxEvents", setting("kafka.source.maxEvents"), _MAX_RECORDS),
        schema=_schema(setting("source.kafka.value.deserializer.schema")),
        registry=remaining.pop("schema.registry.url", None),
        registry_user=remaining.pop(
            "schema.registry.basic.auth.user.info", remaining.pop("basic.auth.user.info", None)
        ),
        timeout_s=_number("default.api.timeout.ms", remaining.pop("default.api.timeout.ms", ""), 60_000) / 1000,
        consumer=_consumer(remaining),
    )
    if kind == "avro" and settings.schema is None and settings.registry is None:
        raise OptionError(
            f"{settings} has values of Avro, and no schema is given: set schema.registry.url, or "
            "hoodie.streamer.source.kafka.value.deserializer.schema to a schema or the path of its file"
        )
    return settings


def _consumer(options: Mapping[str, str]) -> Mapping[str, str]:
    unknown = sorted(name for name in options if name.startswith("hoodie."))
    if unknown:
        raise OptionError(f"{unknown[0]} is no option of a topic that is read; docs/INGEST.md has them")
    for name, value in _OURS.items():
        if options.get(name, value) != value:
            raise OptionError(
                f"{name}={options[name]} cannot be chosen: offsets are in the commits of the table, so that each record is in it once"
            )
    own = {name: value for name, value in options.items() if name not in _NOT_READ}
    return {**_DEFAULTS, **own, **_OURS}


def _start(text: str) -> str | int:
    if text in ("earliest", "latest", "group"):
        return text
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"auto.offset.reset={text!r} is not earliest, latest, group, a time as 2026-01-31T12:00:00, or milliseconds"
        ) from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"{name}={text!r} is not true or false")
    return text.lower() == "true"


def _number(name: str, text: str, default: int) -> int:
    if not text:
        return default
    if not text.isdigit() or not int(text):
        raise OptionError(f"{name}={text!r} is not a whole number above 0")
    return int(text)


def _schema(text: str) -> str | None:
    if not text or text.startswith("{"):
        return text or None
    try:
        return Path(text).read_text(encoding="utf-8")
    except OSError as exc:
        raise OptionError(
            f"hoodie.streamer.source.kafka.value.deserializer.schema={text!r} is neither a schema nor a file that can be read: {exc}"
        ) from exc
