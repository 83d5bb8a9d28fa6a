"""What an incremental query of (begin, end] has to read: which file groups, as of when, and which of their rows.

Begin and end are positions: instant times on version 6, completion times on versions 8 and 9, as in Apache Hudi. The answer
is the rows committed in the range in their state at `end`. A range that cannot be answered so is an error that says from
where on it can: its commits were archived, or the files of `end` were cleaned. With the full-scan fallback (Hudi's option)
such a range is read from the whole table. Two cases differ:

- A range from the beginning needs no commit by commit account: where commits were archived, the whole table as of `end` is
  the answer, without any option.
- Where the files of `end` are gone, the fallback reads the newest files, as Apache Hudi does: rows that were changed after
  `end` are not in the answer then, but in that of a later range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hoodie.errors import InstantNotFoundError, OptionError
from hoodie.model.enums import Action
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Instant, InstantRange, InstantTime, VisibleInstants
from hoodie.model.plans import WholeSlice
from hoodie.timeline.moments import refuse_undone
from hoodie.timeline.pending import being_written
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot
from hoodie.view.retention import CleanedGroup, Retention

FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable=true (full_scan_fallback=True of changes)"


@dataclass(frozen=True)
class PulledRange:
    """Slices of a range and what a task keeps of them."""

    slices: tuple[FileSlice, ...]
    rows: InstantRange
    visible: VisibleInstants
    until: InstantTime | None
    """The range's end; None: nothing was committed yet."""
    wholes: tuple[WholeSlice | None, ...] = ()
    """For each slice, where its logs may hold records with some columns only (table versions 8 and 9)."""


def plan_range(
    snapshot: Snapshot, begin: InstantTime | None, end: InstantTime | None, *, fallback: bool, table: str
) -> PulledRange:
    """Plan one pull. `begin` None or zeros: from the beginning; `end` None: as far as a pull may go.

    Raises:
        InstantNotFoundError: the end lies beyond a write in progress; an end was restored or rolled back; the range was
            archived or cleaned and there is no fallback. OptionError: it ends before it begins.
    """
    span = checked_range(snapshot, begin, end, of="the incremental query", table=table)
    if span.end is None:
        return PulledRange((), span, snapshot.timeline.visible(), None)
    return _Pull(snapshot, span, span.end, fallback=fallback, table=table).plan()


def checked_range(
    snapshot: Snapshot, begin: InstantTime | None, end: InstantTime | None, *, of: str, table: str
) -> InstantRange:
    """The range with an end, which is None only where nothing was committed yet; `of`: whose range, for messages.

    Raises:
        InstantNotFoundError: the end lies beyond a write in progress; an end was restored or rolled back. OptionError: the range ends
            before it begins.
    """
    begin = begin if begin is not None and begin.strip("0") else None
    timeline = snapshot.timeline
    limit = timeline.readable_until(snapshot.pending_writes)
    for position in (begin, end):
        refuse_undone(snapshot.active, timeline, position, table=table)
    if end is not None:
        _refuse_unfinished(snapshot, end, limit=limit, table=table)
        if begin is not None and begin > end:
            raise OptionError(f"the range of {of} is empty: it begins at {begin} and ends at {end}; swap them")
    return InstantRange(begin, end or limit)


class _Pull:
    def __init__(
        self, snapshot: Snapshot, span: InstantRange, until: InstantTime, *, fallback: bool, table: str
    ) -> None:
        self._snapshot = snapshot
        self._timeline = snapshot.timeline
        self._span = span
        self._until = until
        self._fallback = fallback
        self._table = table
        # While they are there: what is pending now may be done and archived, plan and all, before the archive was looked through.
        _ = snapshot.view.pending_compaction_plans
        self._archived = self._archived_commits()
        self._then = self._timeline.completed_by(self._until, self._archived)

    def plan(self) -> PulledRange:
        in_archive = [i for i in self._archived if self._span.contains(i.position)]
        ends_in_archive = bool(self._archived) and not any(i.position <= self._until for i in self._timeline.commits)
        # What the archive says of its commits tells as much as if they were active.
        archive_suffices = self._span.begin is not None and not ends_in_archive
        if in_archive and self._span.begin is not None and not archive_suffices and not self._fallback:
            raise self._archived_error()
        if ends_in_archive and in_archive:
            if not self._fallback:
                raise self._archived_error()
            return self._of_newest_files()
        whole: list[FileSlice] = []
        if in_archive and not archive_suffices:
            # Commits after that of a savepoint may be archived, so that nothing tells which file groups came later.
            cleaned = [] if self._ends_at_a_savepoint() else self._retention().cleaned_anywhere()
            slices = [] if cleaned else self._snapshot.view.latest_slices(until=self._then)
        else:
            touched = self._touched(in_archive)
            cleaned = self._retention().cleaned(touched)
            slices_of_groups = (
                () if cleaned else (self._snapshot.view.slice_of(group, until=self._then) for group in touched)
            )
            whole = [file_slice for file_slice in slices_of_groups if file_slice is not None]
            slices = [self._without_older_base(file_slice) for file_slice in whole]
        if cleaned:
            if not self._fallback:
                raise self._cleaned_error(cleaned)
            return self._of_newest_files()
        rows = self._rows()
        visible = replace(
            self._then.visible(self._until, None if self._timeline.by_completion else self._span.begin), only=rows.only
        )
        everything = self._then.visible(self._until)
        wholes = (
            tuple(WholeSlice(file_slice, everything) for file_slice in whole) if self._timeline.by_completion else ()
        )
        return PulledRange(tuple(slices), rows, visible, self._until, wholes)

    def _of_newest_files(self) -> PulledRange:
        slices = tuple(self._snapshot.view.latest_slices())
        return PulledRange(slices, self._rows(), self._timeline.visible(), self._until)

    def _archived_commits(self) -> tuple[Instant, ...]:
        """The archived writes, where one of them may lie in the range or after it; by instant times the archive suffices."""
        timeline, begin = self._timeline, self._span.begin
        if not timeline.by_completion:
            needed = begin is None or timeline.start is None or begin < timeline.start
        else:
            # One that began early may have completed late: only their completion times tell.
            newest = timeline.latest_position
            needed = begin is None or newest is None or begin < newest
        if not needed or not self._snapshot.archived.files:
            return ()
        return tuple(i for i in self._snapshot.archived.commits if i.time not in timeline.commit_at)

    def _rows(self) -> InstantRange:
        """Commit times of the rows in the range."""
        if not self._timeline.by_completion:
            return self._span
        if self._span.begin is None and self._then is self._timeline:
            return InstantRange()
        commits = (*self._archived, *self._timeline.commits)
        return InstantRange(only=frozenset(i.time for i in commits if self._span.contains(i.position)))

    def _touched(self, archived: Sequence[Instant]) -> list[FileGroupId]:
        """The file groups that the commits of the range wrote to; some of these are archived.

        What an archived commit of the range has replaced has no rows any more, and the view may know nothing of it.
        """
        old = self._snapshot.archived.read_commits(archived)
        commits = self._timeline.completed_in(self._span)
        result: dict[FileGroupId, None] = {}
        for metadata in (*old.values(), *map(self._snapshot.active.read_commit, commits)):
            for stat in metadata.stats():
                if stat.path:
                    result[FileGroupId(stat.partition_path, stat.file_id)] = None
        for metadata in old.values():
            for partition_path, file_ids in metadata.replaced_file_ids.items():
                for file_id in file_ids:
                    result.pop(FileGroupId(partition_path, file_id), None)
        return list(result)

    def _without_older_base(self, file_slice: FileSlice) -> FileSlice:
        """The slice without a base file that is older than the range: none of its rows counts, so it need not be read."""
        if file_slice.base is None or self._span.begin is None:
            return file_slice
        time = file_slice.base.instant
        commits = (self._timeline.commit_at.get(time), *(i for i in self._archived if i.time == time))
        position = next((i.position for i in commits if i is not None), time)
        return file_slice if position > self._span.begin else file_slice._replace(base=None)

    def _ends_at_a_savepoint(self) -> bool:
        """The files of its commit are all there."""
        last = self._then.latest_commit
        if last is None or last.position != self._until:
            return False
        saved = self._timeline.find(last.time, Action.SAVEPOINT)
        return saved is not None and saved.is_completed

    def _retention(self) -> Retention:
        return Retention(self._snapshot.view, self._snapshot.active, self._then)

    def _archived_error(self) -> InstantNotFoundError:
        last = max(i.position for i in self._archived)
        newest = self._timeline.latest_position
        return InstantNotFoundError(
            f"commits in the range ({self._span.begin or 'beginning'}, {self._until}] of table {self._table} were archived, the last "
            f"of them at {last}; the earliest instant to pull from is {last}, the latest {newest}.\n"
            f"To read the range from the whole table, set {FALLBACK}"
        )

    def _cleaned_error(self, cleaned: Sequence[CleanedGroup]) -> InstantNotFoundError:
        group = cleaned[0].group
        since = max((each.readable_from for each in cleaned if each.readable_from), default=None)
        return InstantNotFoundError(
            f"the files of table {self._table} as of instant {self._until} were cleaned (file group {group.file_id} in partition "
            f"{group.partition_path!r} and {len(cleaned) - 1} more); the earliest instant to pull until is "
            f"{since or self._timeline.latest_position}, the latest {self._timeline.latest_position}.\n"
            f"To read the rest of the range from the newest files, set {FALLBACK}"
        )


def _refuse_unfinished(snapshot: Snapshot, end: InstantTime, *, limit: InstantTime | None, table: str) -> None:
    """Raises InstantNotFoundError when a pending write may still bring rows into a range that ends at `end`."""
    timeline = snapshot.timeline
    if timeline.latest_commit is None:
        return
    if not timeline.by_completion:
        pending = next((i for i in snapshot.pending_writes if i.time <= end), None)
    else:  # it will be completed later than everything that is
        beyond = limit is None or end > limit
        pending = next(iter(snapshot.pending_writes), None) if beyond else None
    if pending is not None:
        raise InstantNotFoundError(
            f"{being_written(pending, table=table)} and lies in the range that ends at {end}; "
            f"a pull that continues from there would miss its rows for ever. Pull until {limit} instead"
        )


def refuse_cleaned(snapshot: Snapshot, then: Timeline, as_of: InstantTime, *, table: str) -> None:
    """Raises InstantNotFoundError when the state as of an instant cannot be read any more.

    As Apache Hudi does, an instant before the first commit that the newest clean kept is refused, also where its files happen
    to be there; a savepoint's are kept.
    """
    timeline = snapshot.timeline
    if then.latest_commit == timeline.latest_commit:
        return  # no clean takes anything of the newest state
    earliest = snapshot.active.earliest_kept(timeline)
    latest = then.latest_commit.time if then.latest_commit is not None else as_of
    saved = timeline.find(latest, Action.SAVEPOINT)
    if earliest is not None and as_of < earliest and not (saved is not None and saved.is_completed):
        raise InstantNotFoundError(
            f"the files of table {table} as of instant {as_of} were cleaned: a clean kept what is needed from {earliest} on; "
            f"the earliest instant to read is {earliest}, the latest {timeline.commits[-1].time}"
        )
    if saved is not None and saved.is_completed and as_of == saved.time:
        return  # commits after it may be archived, so that nothing tells which file groups came later
    cleaned = Retention(snapshot.view, snapshot.active, then).cleaned_anywhere() if then is not timeline else []
    if cleaned:
        group = cleaned[0].group
        raise InstantNotFoundError(
            f"the files of table {table} as of instant {as_of} were cleaned (file group {group.file_id} in partition "
            f"{group.partition_path!r} and {len(cleaned) - 1} more); the latest instant to read is {timeline.commits[-1].time}"
        )
