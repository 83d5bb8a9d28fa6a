"""Whether a batch of a stream is in the table already: looked up in the metadata of its commits, newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from hoodie.errors import OptionError
from hoodie.model.instant import Instant
from hoodie.model.payloads import CommitMetadata
from hoodie.model.streams import BatchRecord, StreamBatch, parse_batch
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot


def is_committed(snapshot: Snapshot, batch: StreamBatch | None, *, table: str) -> bool:
    """Whether the table holds this batch, or a later one of its stream.

    Commits of other writers, compactions and rollbacks between do not matter. A stream that the active timeline does not
    know is looked up in the archived one too: it may have paused while others wrote, and its first batch may be a repetition.

    Raises:
        OptionError: Apache Hudi recorded a later batch under the stream's identifier: another stream counts there.
    """
    if batch is None:
        return False
    newest = _newest(_active(snapshot, reversed(snapshot.timeline.commits)), batch)
    if newest is None:
        newest = _newest(_archived(snapshot), batch)
    if newest is None or newest.number < batch.number:
        return False
    if newest.by_hudi and newest.number > batch.number:
        # A stream repeats its last batch only. Skipping would lose the rows of one that began anew.
        raise OptionError(
            f"Apache Hudi recorded batch {newest.number} of stream identifier {batch.identifier!r} in table {table}, and this is "
            f"batch {batch.number}: it comes from another checkpoint. Go on with that checkpoint, or set "
            "hoodie.datasource.write.streaming.checkpoint.identifier to a name of this stream's own"
        )
    return True


def committed_since(now: Snapshot, before: Timeline, batch: StreamBatch | None) -> bool:
    """The same for what was completed since a timeline in which the batch was not found."""
    if batch is None:
        return False
    newer = [i for i in now.timeline.commits if i.time not in before.completed_times]
    newest = _newest(_active(now, reversed(newer)), batch)
    return newest is not None and newest.number >= batch.number


def every_commit(snapshot: Snapshot) -> Iterator[Mapping[str, str]]:
    """The extra metadata of all commits, archived ones too, newest first; each is read when it is its turn."""
    for metadata in chain(_active(snapshot, reversed(snapshot.timeline.commits)), _archived(snapshot)):
        yield metadata.extra


def _newest(commits: Iterable[CommitMetadata], batch: StreamBatch) -> BatchRecord | None:
    return next(
        (recorded_batch for each in commits if (recorded_batch := parse_batch(each.extra, batch)) is not None), None
    )


def _active(snapshot: Snapshot, instants: Iterable[Instant]) -> Iterator[CommitMetadata]:
    return (snapshot.active.read_commit(instant) for instant in instants)


def _archived(snapshot: Snapshot) -> Iterator[CommitMetadata]:
    """Archived writes, newest first; all are read at once, which happens only until a stream's first commit here."""
    archived = snapshot.archived
    if not archived.files:
        return
    instants = [i for i in archived.commits if i.time not in snapshot.timeline.commit_at]
    read = archived.read_commits(instants)
    for instant in reversed(instants):
        yield read[instant.time]
