"""What notifications of an object store say: which files are new.

S3 sends them to a queue itself, by SNS, or by EventBridge; each has a form of its own.
Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

_LONGEST_SEQUENCER = 64


class NewObject(NamedTuple):
    """A file that was written, or written anew."""

    bucket: str
    key: str
    size_bytes: int
    version: str
    """Of two notifications of one file the later one has the greater version."""
    time_ms: int

    @property
    def name(self) -> str:
        return f"{self.bucket}/{self.key}"


def objects_of(body: str) -> tuple[NewObject, ...]:
    """The files that a message names. Other events, and the test message of S3, name none.

    Raises:
        ValueError: it is no notification.
    """
    try:
        return tuple(_objects(json.loads(body)))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as exc:
        raise ValueError(f"the message is no notification of S3: {exc!r}") from exc


def _objects(message: Mapping[str, Any]) -> Iterator[NewObject]:
    if "Message" in message:  # by SNS
        yield from _objects(json.loads(message["Message"]))
    elif "Records" in message:
        for record in message["Records"]:
            if record["eventName"].removeprefix("s3:").startswith("ObjectCreated:"):
                place = record["s3"]
                yield _object(
                    place["bucket"], place["object"], unquote_plus(place["object"]["key"]), record["eventTime"]
                )
    elif "detail-type" in message:  # by EventBridge
        if message["detail-type"] == "Object Created":
            detail = message["detail"]
            yield _object(detail["bucket"], detail["object"], detail["object"]["key"], message["time"])
    elif message.get("Event") != "s3:TestEvent":
        raise ValueError("it has no records")


def _object(bucket: Mapping[str, Any], entry: Mapping[str, Any], key: str, time: str) -> NewObject:
    """Sequencers are hexadecimal numbers. A store that gives none gives times."""
    if not (isinstance(bucket["name"], str) and isinstance(key, str)):
        raise TypeError("a name is no text")
    when = datetime.fromisoformat(time)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    sequencer = str(entry.get("sequencer") or "").lower()
    version = sequencer.rjust(_LONGEST_SEQUENCER, "0") if sequencer else when.astimezone(UTC).isoformat()
    return NewObject(bucket["name"], key, int(entry.get("size", 0)), version, int(when.timestamp() * 1000))
