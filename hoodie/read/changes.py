"""The change feed: what every commit of (since, until] inserted, updated and deleted, from the file slices that are still there.

Each commit and each file group that it wrote to or replaced makes one step: the slice just before the commit, and the one
just after it. Compaction and clustering move rows and change none. A step whose slices were cleaned, or whose commit was
archived, is an error that names the earliest instant from which all steps are there.

The steps have an order in which rows can be applied one by one: of one commit, a key that goes from one place to another is
deleted before it is inserted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import NamedTuple

from hoodie.errors import InstantNotFoundError
from hoodie.model.enums import MOVES_ROWS, ChangePart
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import (
    BOOTSTRAP_INSTANTS,
    Instant,
    InstantRange,
    InstantTime,
    VisibleInstants,
    format_instant,
    parse_instant,
)
from hoodie.model.names import name_of, parse_base_file
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.read.ranges import checked_range
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot


class Step(NamedTuple):
    """What one commit did to one file group."""

    instant: InstantTime
    before: FileSlice | None
    after: FileSlice | None
    seen_before: VisibleInstants
    seen_after: VisibleInstants
    deletes: bool
    """Whether rows may be gone."""
    inserts: bool
    """Whether there may be rows of new keys."""
    part: ChangePart = ChangePart.WHOLE

    @property
    def slices(self) -> list[FileSlice]:
        return [piece for piece in (self.before, self.after) if piece is not None]

    @property
    def partition_path(self) -> str:
        return self.slices[0].group.partition_path


def plan_changes(snapshot: Snapshot, begin: InstantTime | None, end: InstantTime | None, *, table: str) -> list[Step]:
    """The steps of a range of positions, in the order of the commits; None leaves an end open.

    Raises:
        InstantNotFoundError: the end lies beyond a write in progress; commits of the range were archived, or files of it
            cleaned. OptionError: the range ends before it begins.
    """
    span = checked_range(snapshot, begin, end, of="the change feed", table=table)
    if span.end is None:
        return []
    timeline = snapshot.timeline
    archived = _archived_in(snapshot, span)
    if archived is not None:
        raise InstantNotFoundError(_too_early(snapshot, archived, "commits of the range were archived", table=table))
    steps: list[list[Step]] = []
    # Newest first: the first commit whose changes are no longer available is the earliest that a feed can begin after.
    for instant in sorted(timeline.completed_in(span), key=lambda each: each.position, reverse=True):
        metadata = snapshot.active.read_commit(instant)
        if metadata.operation in MOVES_ROWS or instant.time in timeline.compactions:
            continue
        pairs = list(_steps(snapshot, instant, metadata))
        cleaned = next((group for group, step in pairs if step is None), None)
        if cleaned is not None:
            why = f"files of the range were cleaned (file group {cleaned.file_id} in partition {cleaned.partition_path!r})"
            raise InstantNotFoundError(_too_early(snapshot, instant.position, why, table=table))
        steps.append([step for _, step in pairs if step is not None])
    return [step for of_commit in reversed(steps) for step in of_commit]


def in_order(steps: Iterable[Step]) -> list[Step]:
    """The steps of commits that follow each other, so that of each commit deletes are told before inserts of the same keys."""
    return [step for _, of_commit in groupby(steps, lambda step: step.instant) for step in _deletes_first([*of_commit])]


def _deletes_first(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps of one commit; those that have to be told in two parts come twice, and their slices are read twice.

    Only an overwrite moves a key between file groups of one partition, and it replaces groups as a whole. So a step with deletes
    and inserts need not be told in parts where all others with both belong to its partition.
    """
    both = [step for step in steps if step.deletes and step.inserts]
    most = Counter(step.partition_path for step in both).most_common(1)
    whole = [step for step in both if step.partition_path == most[0][0]]
    split = [step for step in both if step.partition_path != most[0][0]]
    yield from (step for step in steps if step.deletes and not step.inserts)
    yield from (step._replace(part=ChangePart.DELETES) for step in split)
    yield from whole
    yield from (step._replace(part=ChangePart.REST) for step in split)
    yield from (step for step in steps if not step.deletes)


def _steps(snapshot: Snapshot, instant: Instant, metadata: CommitMetadata) -> Iterator[tuple[FileGroupId, Step | None]]:
    """The file groups that a commit touched, in order; None for one whose files are not there any more."""
    view = snapshot.view
    then, earlier = _moment(snapshot.timeline, instant.position), _moment(snapshot.timeline, _just_before(instant))
    stats: dict[FileGroupId, list[WriteStat]] = {}
    for stat in metadata.stats():
        if stat.path:
            stats.setdefault(FileGroupId(stat.partition_path, stat.file_id), []).append(stat)
    # A key that an overwrite keeps is a delete and an insert, as in Apache Hudi.
    for partition_path, file_ids in sorted(metadata.replaced_file_ids.items()):
        for file_id in sorted(file_ids):
            group = FileGroupId(partition_path, file_id)
            before = view.slice_of(group, until=earlier.timeline)
            step = Step(instant.time, before, None, earlier.visible, then.visible, deletes=True, inserts=False)
            yield group, step if before else None
    for group in sorted(stats):
        before, after = view.slice_of(group, until=earlier.timeline), view.slice_of(group, until=then.timeline)
        is_complete = all(_is_kept(stat, before, after) for stat in stats[group])
        deletes = before is not None and any(stat.num_deletes for stat in stats[group])
        inserts = before is None or any(_may_insert(stat) for stat in stats[group])
        step = Step(instant.time, before, after, earlier.visible, then.visible, deletes=deletes, inserts=inserts)
        yield group, step if is_complete else None


def _may_insert(stat: WriteStat) -> bool:
    """Whether there may be rows of keys that were not there. In logs one that another log had deleted counts as updated."""
    return stat.num_inserts > 0 or (stat.log_version is not None and stat.num_writes > 0)


class _Moment(NamedTuple):
    timeline: Timeline
    visible: VisibleInstants


def _moment(timeline: Timeline, position: InstantTime) -> _Moment:
    then = timeline.completed_by(position)
    return _Moment(then, then.visible(None if timeline.by_completion else position))


def _just_before(instant: Instant) -> InstantTime:
    if instant.position in BOOTSTRAP_INSTANTS:  # which are no moments
        return InstantTime(f"{int(instant.position) - 1:014d}")
    return format_instant(parse_instant(instant.position) - timedelta(milliseconds=1))


def _is_kept(stat: WriteStat, before: FileSlice | None, after: FileSlice | None) -> bool:
    """Whether the slices are those that the writer saw and left; a cleaned one may have an older neighbour that a savepoint keeps."""
    name = name_of(stat.path)
    if after is None or name not in {after.base.name if after.base else None, *(log.name for log in after.logs)}:
        return False
    written = parse_base_file(name)
    if written is not None:
        if stat.prev_base_file:
            return before is not None and before.base is not None and before.base.name == stat.prev_base_file
        return stat.prev_commit is None or before is not None
    onto = parse_base_file(stat.base_file) if stat.base_file else None
    if onto is None:
        return True
    return after.base is not None and after.base.instant >= onto.instant


def _archived_in(snapshot: Snapshot, span: InstantRange) -> InstantTime | None:
    """The position of the last archived commit in the range; None when there is none."""
    timeline = snapshot.timeline
    start = timeline.start
    if not timeline.by_completion and span.begin is not None and start is not None and span.begin >= start:
        return None
    if not snapshot.archived.files:
        return None
    return max(
        (
            i.position
            for i in snapshot.archived.commits
            if i.time not in timeline.commit_at and span.contains(i.position)
        ),
        default=None,
    )


def _too_early(snapshot: Snapshot, position: str, why: str, *, table: str) -> str:
    return (
        f"the changes of table {table} up to {position} are no longer available: {why}; the earliest instant to read changes "
        f"since is {position}, the latest {snapshot.timeline.latest_position}. Read the whole table once, then go on from there"
    )
