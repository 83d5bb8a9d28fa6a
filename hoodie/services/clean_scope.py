"""What a clean has to look at: known from the timeline, and from the metadata of its commits, without a listing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.errors import CorruptFileError
from hoodie.model.enums import Action, CleanPolicy
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import CleanMetadata
from hoodie.options.cleaning import CleaningOptions
from hoodie.services.clean_rules import WRITING, earliest_to_retain, touched_partitions
from hoodie.services.consumer_needs import needed_by_consumers
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext
from hoodie.view.queries import read_at

SAVEPOINTS = "savepointed_timestamps"
"""Key of Apache Hudi in a clean's extra metadata: which savepoints held files when it was planned."""
READABLE = "hoodie.python.clean.readable.from"
"""From which instant on every file group is as it was, where the first commit that was kept does not say it."""
CHECKPOINT = "hoodie.python.clean.checkpoint"
"""By versions: the commits up to this one have been looked at, for so many versions as `VERSIONS` says."""
VERSIONS = "hoodie.python.clean.versions"

CHECKPOINT_EVERY = 10
"""After so many commits that left nothing to delete, a clean of nothing says so: the next one begins there."""
_DECIDING = frozenset({Action.CLEAN, Action.SAVEPOINT, Action.RESTORE, Action.ROLLBACK})
"""Actions after which older files may be needed again, or another clean has planned the same."""


@dataclass(frozen=True)
class CleanScope:
    """What a clean has to look at, known from the timeline and its metadata alone."""

    earliest: Instant | None
    partitions: tuple[str, ...] | None
    """None: all of them, by listing the table."""
    passed: int
    """Commits since the last clean that this one looks at."""
    savepoints: tuple[str, ...]
    read_at: tuple[InstantTime, ...]
    followed_from: InstantTime | None
    checkpoint: InstantTime | None
    readable_from: InstantTime | None
    """From where on, by what the newest clean says, every file group is as it was."""

    @property
    def is_worth_it(self) -> bool:
        return self.partitions is None or bool(self.partitions) or self.passed >= CHECKPOINT_EVERY


def clean_scope(context: TableContext, timeline: Timeline, options: CleaningOptions) -> CleanScope | None:
    """None when nothing can be cleaned yet. Reads metadata of the commits since the last clean, and lists nothing."""
    last = last_clean(context, timeline)
    stated = stated_readable(last.extra, last.earliest) if last else None
    need = needed_by_consumers(context, timeline, hours=options.consumer_hours, readable_from=stated)
    followed = (need.time,) if need is not None else ()
    reading = (*read_at(context.storage.identity), *followed)
    savepoints = tuple(i.time for i in timeline if i.action is Action.SAVEPOINT and i.is_completed)
    known = last is not None and set((last.extra.get(SAVEPOINTS) or "").split(",")) - {""} <= set(savepoints)
    if options.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
        pending = timeline.pending(*WRITING)
        before = [i.time for i in timeline.commits if not pending or i.time < pending[0].time]
        if not before:
            return None
        seen = (*reading, *(before[-1:] if pending else ()))
        checkpoint = min((before[-1], *seen))
        since = last.extra.get(CHECKPOINT) if last and last.extra.get(VERSIONS) == str(options.versions) else None
        passed = [i for i in timeline.commits if since and i.time > since]
        earliest = None
    else:
        kept = last.earliest if last else None
        earliest = earliest_to_retain(timeline, options, now=context.clock.now(), last=kept, read_at=reading)
        if earliest is None:
            return None
        since, seen, checkpoint = kept, reading, None
        passed = [i for i in timeline.commits if since and since <= i.time < earliest.time]
    # What was archived cannot be looked at any more, but by listing.
    whole = since is None or timeline.start is None or since < timeline.start
    partitions: tuple[str, ...] | None = None
    if options.incremental and known and not whole:
        touched: set[str] = set()
        for instant, metadata in zip(passed, context.active.read_commits(passed), strict=True):
            touched |= touched_partitions(metadata, compacted=instant.time in timeline.compactions)
        partitions = tuple(sorted(touched))
    return CleanScope(earliest, partitions, len(passed), savepoints, seen, need and need.time, checkpoint, stated)


def last_clean(context: TableContext, timeline: Timeline) -> CleanMetadata | None:
    """What the newest completed clean said; None where there is none that can be read."""
    newest = timeline.newest(Action.CLEAN)
    if newest is None:
        return None
    try:
        found = context.active.read_clean(newest)
        restored = context.active.restored_since(timeline, newest)
        return found if restored is None else _not_after(found, restored)
    except (CorruptFileError, FileNotFoundError):
        return None  # other writers do not complete atomically; without it the whole table is looked at


def _not_after(clean: CleanMetadata, restored: InstantTime) -> CleanMetadata:
    """What a clean says when the table was taken back since: of what it looked at, the commits after that are gone."""
    earlier = {key: min(clean.extra[key], restored) for key in (READABLE, CHECKPOINT) if key in clean.extra}
    return CleanMetadata(
        clean.earliest and min(clean.earliest, restored),
        min(clean.last_completed, restored) if clean.last_completed else "",
        {**clean.extra, **earlier},
    )


def stated_readable(extra: Mapping[str, str], earliest: str | None) -> InstantTime | None:
    """From where on, by what a clean or its plan says, every file group is as it was."""
    return latest(earliest, extra.get(READABLE))


def readable_from(stated: str | None, timeline: Timeline) -> InstantTime | None:
    """The same of the table: commits that were archived cannot be read, either."""
    return latest(stated, timeline.commits[0].time if timeline.commits else None)


def latest(*times: str | None) -> InstantTime | None:
    """The latest of those that there are."""
    return max((InstantTime(each) for each in times if each), default=None)


def deciding(timeline: Timeline) -> tuple[Instant, ...]:
    """The instants that decide which files may go: where others have come, a plan may not hold any more."""
    return tuple(i for i in timeline if i.action in _DECIDING)
