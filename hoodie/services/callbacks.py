"""Tells others of a commit that stands: an address by HTTP or a topic of Kafka, as Apache Hudi's callbacks do, and Prometheus."""

from __future__ import annotations

import json
import logging
import random
import re
import urllib.request
from collections.abc import Mapping
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

from hoodie.errors import HoodieError
from hoodie.format.commit_json import stat_fields
from hoodie.format.prometheus import sample
from hoodie.model.instant import Instant
from hoodie.options.commits import CallbackOptions, MetricsOptions
from hoodie.services.figures import figures
from hoodie.view.context import TableContext

_kafka_log = logging.getLogger("hoodie.kafka")
_kafka_log.setLevel(logging.CRITICAL)  # what it means here is told by a warning
_GATEWAY_TIMEOUT_S = 10
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_:]")
_SUFFIX = random.randrange(1 << 31)  # one for each process


def call_back(context: TableContext, options: CallbackOptions, instant: Instant) -> None:
    """Post what was committed, or put it into a topic.

    Raises:
        HoodieError: nobody answers, or the answer is no success.
    """
    metadata = context.active.read_commit(instant)
    message = {
        "commitTime": instant.time,
        "tableName": context.config.name,
        "basePath": context.storage.uri,
        "hoodieWriteStat": [stat_fields(stat) for stat in metadata.stats()],
        "commitActionType": instant.action.value,
        "extraMetadata": dict(metadata.extra),
    }
    if options.by_kafka:
        _put(options, context.config.name, json.dumps(message).encode())
        return
    headers = {"HUDI-CALLBACK-KEY": options.api_key, "Content-Type": "application/json; charset=UTF-8"}
    _send("POST", options.url or "", json.dumps(message).encode(), {**headers, **options.headers}, options.timeout_s)


def _put(options: CallbackOptions, table: str, data: bytes) -> None:
    try:
        from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise HoodieError(
            "a callback to a topic needs confluent-kafka: install hoodie with the extra `kafka`"
        ) from None
    where = f"topic {options.kafka_topic} at {options.kafka_servers}"
    failed: list[str] = []
    try:
        producer = Producer(
            {
                "bootstrap.servers": options.kafka_servers or "",
                "acks": options.kafka_acks,
                "message.send.max.retries": options.kafka_retries,
                "message.timeout.ms": options.timeout_s * 1000,
            },
            logger=_kafka_log,
        )
        producer.produce(
            options.kafka_topic or "",
            data,
            table,
            -1 if options.kafka_partition is None else options.kafka_partition,  # -1: by the key
            on_delivery=lambda error, _: failed.append(error.str()) if error is not None else None,
        )
        unsent = producer.flush(options.timeout_s + 1)
    except KafkaException as exc:
        raise HoodieError(f"{where} cannot be reached: {exc.args[0].str()}") from None
    if failed or unsent:
        raise HoodieError(f"{where} did not take the callback: {failed[0] if failed else 'it does not answer'}")


def push_metrics(context: TableContext, options: MetricsOptions, instant: Instant, *, seconds: float) -> None:
    """Put the figures of a commit to the gateway; they replace those of the commit before.

    Raises:
        HoodieError: nobody answers, or the answer is no success.
    """
    name = context.config.name
    job = f"{options.job or name}{_SUFFIX if options.random_suffix else ''}"
    url = f"http://{options.host}:{options.port}/metrics/job/{quote(job, safe='')}"
    values = figures(context.active.read_commit(instant), seconds)
    begin = _NOT_IN_NAMES.sub("_", f"{options.prefix or name}_{instant.action.value}")
    text = "".join(f"{sample(f'{begin}_{metric}', options.labels, value)}\n" for metric, value in values.items())
    _send("PUT", url, text.encode(), {"Content-Type": "text/plain; version=0.0.4"}, _GATEWAY_TIMEOUT_S)


def _send(method: str, url: str, data: bytes, headers: Mapping[str, str], timeout_s: float) -> None:
    """Errors name the host only: an address may have a secret in it."""
    host = urlsplit(url).hostname
    if urlsplit(url).scheme not in ("http", "https") or not host:
        raise HoodieError("the address is not an HTTP address: write https://host/path")
    try:
        request = urllib.request.Request(url, data, dict(headers), method=method)
        urllib.request.urlopen(request, timeout=timeout_s).close()
    except HTTPError as exc:
        raise HoodieError(f"{host} answered {exc.code} {exc.reason}") from None
    except (OSError, ValueError) as exc:
        raise HoodieError(f"{host} does not answer: {getattr(exc, 'reason', exc)}") from None
