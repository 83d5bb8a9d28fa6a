"""Whether the files of an earlier moment are still there, or a clean has removed them.

A file group that has no slice at that moment was born later, or its slices were cleaned: the commit that wrote its oldest
slice says which slice it was written onto, and so back until one side is certain. Commit metadata are read for such groups
only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hoodie.model.files import FileGroup, FileGroupId
from hoodie.model.instant import Instant, InstantTime
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.view import FileSystemView


class CleanedGroup(NamedTuple):
    """A file group that had rows at the moment asked for, and has no file of then any more."""

    group: FileGroupId
    readable_from: InstantTime | None
    """The first position with files of the group; None when there are none at all."""


class Retention:
    """Asks a view about one earlier moment, which lies on the active timeline. One per query."""

    def __init__(self, view: FileSystemView, active: ActiveTimeline, then: Timeline) -> None:
        self._view = view
        self._active = active
        self._then = then
        self._born: dict[FileGroupId, Instant] | None = None

    def cleaned(self, groups: Iterable[FileGroupId]) -> list[CleanedGroup]:
        """Those of the groups, all of which had rows at that moment or were replaced by then, that are not there as of then."""
        return [
            self._as_cleaned(group)
            for group in groups
            if not self._view.is_replaced(group, until=self._then)
            and self._view.slice_of(group, until=self._then) is None
        ]

    def cleaned_anywhere(self) -> list[CleanedGroup]:
        """Every group of the table that had rows at that moment and is not there as of then."""
        groups = {group.id for path in self._view.every_partition() for group in self._view.file_groups(path)}
        # A group that was replaced later may have left no file at all.
        groups.update(self._view.committed.replaced)
        return [each for each in self.cleaned(sorted(groups)) if self._existed(each.group)]

    def _existed(self, group: FileGroupId) -> bool:
        stored = self._view.group_of(group)
        if stored is not None and self._view.is_incomplete(stored, until=self._then):
            return True
        if stored is None or not stored.slices:
            return group not in self._births()
        return self._had_older_slice(stored)

    def _had_older_slice(self, group: FileGroup) -> bool:
        timeline = self._view.timeline
        time = group.slices[0].base_instant
        while True:
            commit = timeline.commit_at.get(time)
            if commit is None:  # archived, and so older than the moment; or pending, and so the group's first
                return time not in timeline.pending_times
            stats = [s for s in self._active.read_commit(commit).stats() if s.file_id == group.id.file_id]
            onto = next((s.prev_commit for s in stats if s.partition_path == group.id.partition_path), None)
            if onto is None or onto >= time:
                return False
            if self._then.sees(onto):
                return True
            time = onto

    def _births(self) -> dict[FileGroupId, Instant]:
        """Groups that were made after the moment -> the commit that made them."""
        if self._born is None:
            self._born = {
                FileGroupId(stat.partition_path, stat.file_id): commit
                for commit in self._view.timeline.commits
                if commit.time not in self._then.completed_times
                for stat in self._active.read_commit(commit).stats()
                if stat.prev_commit is None
            }
        return self._born

    def _as_cleaned(self, group: FileGroupId) -> CleanedGroup:
        timeline = self._view.timeline
        stored = self._view.group_of(group)
        time = stored.slices[0].base_instant if stored and stored.slices else self._view.committed.replaced.get(group)
        commit = timeline.commit_at.get(time) if time is not None else None
        return CleanedGroup(group, commit.position if commit is not None else time)
