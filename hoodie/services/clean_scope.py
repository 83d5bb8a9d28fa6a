"""The partitions that a clean checks: known from the timeline, and from the metadata of its commits, without a listing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hoodie.errors import CorruptFileError
from hoodie.model.enums import Action, CleanPolicy
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import CleanMetadata
from hoodie.options.cleaning import CleaningOptions
from hoodie.services.clean_rules import WRITING, earliest_to_retain, touched_partitions
from hoodie.services.consumer_needs import needed_by_consumers
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.clock import Clock
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

_Times = tuple[InstantTime, ...]


class _Reach(NamedTuple):
    """How far a clean goes by one policy."""

    earliest: Instant | None
    """By commits and by hours: the first commit whose state stays readable."""
    since: InstantTime | None
    """Cleans have looked at all commits up to this one. None: they left no word of it."""
    passed: Sequence[Instant]
    """The commits since then that this clean looks at."""
    read_at: _Times
    """Instants whose state somebody reads, or a pending write builds on."""
    marks: Mapping[str, str]
    """What the plan says for the next clean of this policy."""


@dataclass(frozen=True)
class CleanScope:
    """What a clean has to look at, known from the timeline and its metadata alone."""

    reach: _Reach
    partitions: tuple[str, ...] | None
    """None: all of them, by listing the table."""
    savepoints: tuple[str, ...]
    followed_from: InstantTime | None
    readable_from: InstantTime | None
    """From where on, by what the newest clean says, every file group is as it was."""

    @property
    def saves_a_look(self) -> bool:
        """Whether also a clean that deletes nothing spares the next one much."""
        return self.partitions is None or len(self.reach.passed) >= CHECKPOINT_EVERY

    @property
    def is_worth_it(self) -> bool:
        return self.saves_a_look or bool(self.partitions)


def clean_scope(context: TableContext, timeline: Timeline, options: CleaningOptions) -> CleanScope | None:
    """None when nothing can be cleaned yet. Reads metadata of the commits since the last clean, and lists nothing."""
    last = last_clean(context.active, timeline)
    earliest = stated_readable(last.extra, last.earliest) if last else None
    need = needed_by_consumers(context, timeline, hours=options.consumer_hours, readable_from=earliest)
    reading = (*read_at(context.storage.identity), *((need.time,) if need is not None else ()))
    reach = _REACHES[options.policy](context.clock, timeline, options, last, reading)
    if reach is None:
        return None
    savepoints = tuple(i.time for i in timeline if i.action is Action.SAVEPOINT and i.is_completed)
    savepoints_are_same = last is not None and set((last.extra.get(SAVEPOINTS) or "").split(",")) - {""} <= set(
        savepoints
    )
    # What was archived cannot be looked at any more, but by listing.
    whole = reach.since is None or timeline.start is None or reach.since < timeline.start
    partitions: tuple[str, ...] | None = None
    if options.incremental and savepoints_are_same and not whole:
        commits = zip(reach.passed, context.active.read_commits(reach.passed), strict=True)
        touched = (touched_partitions(each, compacted=i.time in timeline.compactions) for i, each in commits)
        partitions = tuple(sorted(frozenset().union(*touched)))
    return CleanScope(reach, partitions, savepoints, need and need.time, earliest)


def _by_commits(
    clock: Clock, timeline: Timeline, options: CleaningOptions, last: CleanMetadata | None, reading: _Times
) -> _Reach | None:
    since = last.earliest if last else None
    earliest = earliest_to_retain(timeline, options, now=clock.now(), last=since, read_at=reading)
    if earliest is None:
        return None
    passed = [i for i in timeline.commits if since and since <= i.time < earliest.time]
    return _Reach(earliest, since, passed, reading, {})


def _by_versions(
    clock: Clock, timeline: Timeline, options: CleaningOptions, last: CleanMetadata | None, reading: _Times
) -> _Reach | None:
    pending = timeline.pending(*WRITING)
    before = [i.time for i in timeline.commits if not pending or i.time < pending[0].time]
    if not before:
        return None
    times_in_use = (*reading, *(before[-1:] if pending else ()))
    marks = {VERSIONS: str(options.versions), CHECKPOINT: min((before[-1], *times_in_use))}
    checkpoint = last.extra.get(CHECKPOINT) if last and last.extra.get(VERSIONS) == marks[VERSIONS] else None
    since = InstantTime(checkpoint) if checkpoint else None
    return _Reach(None, since, [i for i in timeline.commits if since and i.time > since], times_in_use, marks)


_REACHES = {
    CleanPolicy.KEEP_LATEST_COMMITS: _by_commits,
    CleanPolicy.KEEP_LATEST_BY_HOURS: _by_commits,
    CleanPolicy.KEEP_LATEST_FILE_VERSIONS: _by_versions,
}


def last_clean(active: ActiveTimeline, timeline: Timeline) -> CleanMetadata | None:
    """What the newest completed clean said; None where there is none that can be read."""
    newest = timeline.newest(Action.CLEAN)
    if newest is None:
        return None
    try:
        metadata = active.read_clean(newest)
        restored = active.restored_since(timeline, newest)
        return metadata if restored is None else _not_after(metadata, restored)
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


def readable_from(earliest: str | None, timeline: Timeline) -> InstantTime | None:
    """The same of the table: commits that were archived cannot be read, either."""
    return latest(earliest, timeline.commits[0].time if timeline.commits else None)


def latest(*times: str | None) -> InstantTime | None:
    """The latest of those that there are."""
    return max((InstantTime(each) for each in times if each), default=None)


def deciding(timeline: Timeline) -> tuple[Instant, ...]:
    """The instants that decide which files may go: where others have come, a plan may not hold any more."""
    return tuple(i for i in timeline if i.action in _DECIDING)
