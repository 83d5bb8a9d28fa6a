"""Streams whose batches are written, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from hoodie.errors import OptionError
from hoodie.model.streams import StreamBatch
from hoodie.options.option import Keys, combined, fixed, group, key, option
from hoodie.options.values import milliseconds, text, whole

STREAM_ID = key("hoodie.python.stream.id", text("a name"), None)
"""Name of a stream whose batches are each written once. Streams of Spark are known by the id of their query."""
_BATCH = key("hoodie.python.stream.batch", whole(0), None)
"""With a stream's name: number of the batch. If the table already has this batch of the stream, or a later one, nothing
is written."""
STREAM_IDENTIFIER = key("hoodie.datasource.write.streaming.checkpoint.identifier", text("a name"), None)
"""Name by which Apache Hudi's streaming sink knows the stream (its default: `default_single_writer`). Set it when a job
moves its checkpoint from Hudi to hoodie or back. Unset: Hudi's records are neither read nor written."""
COMMIT_ENTRIES = key("hoodie.datasource.write.commitmeta.key.prefix", text("a prefix"), "_")
"""Options whose keys begin with it, and not with `hoodie.` or `_hoodie.`, are kept in the metadata of the commit."""


def _batch(name: str | None, number: int | None, identifier: str | None) -> StreamBatch | None:
    if (name is None) != (number is None):
        raise OptionError(f"{STREAM_ID.name} and {_BATCH.name} go together: set both, or none of them")
    return None if name is None or number is None else StreamBatch(name, number, identifier)


@dataclass(frozen=True)
class StreamRetries:
    """How a streaming sink writes a batch that failed for a reason that may pass."""

    tries: int = option("hoodie.datasource.write.streaming.retry.count", whole(1), 3)
    """Streaming sink: how often to try a batch that fails because of a conflict, a lock or the storage."""
    interval_s: float = option("hoodie.datasource.write.streaming.retry.interval.ms", milliseconds(0), 2000)
    """Streaming sink: milliseconds before the second try; doubled before each further one."""


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    stream: StreamBatch | None = combined(_batch, STREAM_ID, _BATCH, STREAM_IDENTIFIER)
    """The batch of a stream that is written: skipped where the table holds it already."""
    stream_retries: StreamRetries = group(StreamRetries)
    commit_entries: Mapping[str, str] = field(default_factory=dict)
    """Options of the user's own that the commit's metadata keep."""
    commits_empty: bool = False
    """A write without rows is a commit, too, for what its metadata say."""

    OTHERS: ClassVar[Keys] = (
        fixed(
            "hoodie.datasource.write.streaming.ignore.failed.batch",
            "false",
            "a batch that cannot be written stops the stream, its rows would be lost otherwise",
            "Streaming sink: whether failed batches are dropped.",
        ),
        COMMIT_ENTRIES,
    )
