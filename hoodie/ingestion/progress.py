"""How far a table has loaded a source: in the metadata of its commits, under Apache Hudi's keys and hoodie's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from hoodie.errors import HoodieError
from hoodie.ingestion.source import Checkpoint
from hoodie.model.streams import StreamBatch, parse_batch
from hoodie.view.context import Snapshot
from hoodie.write.streams import every_commit

HUDI_KEYS = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
"""Of tables of versions 8 and 9, and of older ones. Both are written: readers take the first that they know."""
RESET_KEYS = ("streamer.checkpoint.reset.key.v2", "deltastreamer.checkpoint.reset_key")
OURS = "hoodie.python.ingest"
"""A JSON object: name of the source -> its checkpoint, what more it has to know, and the number of bad records."""


class Progress(NamedTuple):
    checkpoint: Checkpoint | None
    rounds: int
    """So many have been committed; the next one has this number as the batch of a stream."""


def progress_of(snapshot: Snapshot, name: str) -> Progress:
    """What the newest commit says that has a checkpoint of this name, or one of Apache Hudi's, which has no names."""
    checkpoint: Checkpoint | None = None
    for extra in every_commit(snapshot):
        batch = parse_batch(extra, StreamBatch(stream_of(name), 0))
        if batch is not None:
            return Progress(checkpoint or _ours(extra, name), batch.number + 1)
        if checkpoint is None and OURS not in extra:
            checkpoint = next((Checkpoint(extra[key]) for key in HUDI_KEYS if extra.get(key)), None)
    return Progress(checkpoint, 0)


def stream_of(name: str) -> str:
    return f"ingest:{name}"


def entries(name: str, checkpoint: Checkpoint, bad: int) -> Mapping[str, str]:
    """What a commit says that has the rows up to this checkpoint."""
    ours = {name: {"checkpoint": checkpoint.text, "more": checkpoint.more, "bad": bad}}
    return {**dict.fromkeys(HUDI_KEYS, checkpoint.text), OURS: json.dumps(ours, sort_keys=True)}


def _ours(extra: Mapping[str, str], name: str) -> Checkpoint:
    try:
        entry = json.loads(extra[OURS])[name]
        return Checkpoint(entry["checkpoint"], entry["more"])
    except (KeyError, ValueError, TypeError) as exc:
        raise HoodieError(f"a commit of source {name!r} does not say up to where it was read: {exc!r}") from exc
