"""Which batch of which stream a commit holds, as its extra metadata say it: what makes a stream's writes exactly once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

STREAM_KEY = "hoodie.python.stream"
"""Ours: a JSON object, stream -> number of its batch in this commit."""
HUDI_STREAM_KEY = "_hudi_streaming_sink_checkpoint"
"""Apache Hudi's: a JSON object, identifier -> number of the batch as text. It does not say which stream counted."""


class StreamBatch(NamedTuple):
    """One batch of a stream that numbers its batches upwards and repeats the last one after a failure."""

    stream: str
    """Who counts: the id of a Spark query, or a name that a caller chose."""
    number: int
    identifier: str | None = None
    """The name by which writers of Apache Hudi know the stream; None: they do not know it."""


class BatchRecord(NamedTuple):
    """The batch that a commit says to hold."""

    number: int
    by_hudi: bool
    """Apache Hudi wrote it: which stream counted is not known, only its identifier."""


def format_batch(batch: StreamBatch) -> dict[str, str]:
    """The entries of extra metadata of the commit that holds a batch."""
    entries = {STREAM_KEY: json.dumps({batch.stream: batch.number})}
    if batch.identifier is not None:
        entries[HUDI_STREAM_KEY] = json.dumps({batch.identifier: str(batch.number)})
    return entries


def parse_batch(extra: Mapping[str, str], batch: StreamBatch) -> BatchRecord | None:
    """The batch of the same stream in a commit with this extra metadata, if there is one."""
    ours = _numbers(extra.get(STREAM_KEY))
    if batch.stream in ours:
        return BatchRecord(ours[batch.stream], False)
    if STREAM_KEY not in extra and batch.identifier is not None:
        theirs = _numbers(extra.get(HUDI_STREAM_KEY))
        if batch.identifier in theirs:
            return BatchRecord(theirs[batch.identifier], True)
    return None


def repeats(ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    """Whether the commit with extra metadata `theirs` holds the batch that `ours` says, or a later one of that stream."""
    numbers = _numbers(theirs.get(STREAM_KEY))
    return any(numbers.get(stream, -1) >= number for stream, number in _numbers(ours.get(STREAM_KEY)).items())


def _numbers(text: str | None) -> dict[str, int]:
    """Of a JSON object what are whole numbers, as text or not; other writers may put anything there."""
    try:
        document = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    pairs = document.items() if isinstance(document, dict) else ()
    return {name: int(n) for name, n in pairs if isinstance(n, int | str) and str(n).isascii() and str(n).isdigit()}
