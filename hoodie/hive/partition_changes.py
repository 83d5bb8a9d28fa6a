"""Which partitions commits wrote and which they emptied, by the timeline alone; nothing is listed.

Commits that were completed late count as well: what is registered up to a commit may lack one of an earlier instant that ended
after it. Version 6 does not say when a commit was completed, and the modification time of its file does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.model.enums import WriteOperation
from hoodie.model.instant import Instant, InstantTime, format_instant
from hoodie.view.context import Snapshot, TableContext

_EMPTYING = (
    WriteOperation.DELETE_PARTITION,
    WriteOperation.INSERT_OVERWRITE,
    WriteOperation.INSERT_OVERWRITE_TABLE,
)


@dataclass(frozen=True)
class SyncMark:
    """Up to where a table is registered, as the metastore has it."""

    instant: InstantTime | None
    completion: InstantTime | None


@dataclass(frozen=True)
class PartitionChanges:
    written: tuple[str, ...] = ()
    """Partition paths that have rows of these commits."""
    emptied: tuple[str, ...] = ()
    """Those of which these commits replaced everything, and wrote nothing."""


class Commits:
    """The completed commits of a snapshot, with the moments of their completion."""

    def __init__(self, context: TableContext, snapshot: Snapshot) -> None:
        self._active = snapshot.active
        self._timeline = snapshot.timeline
        self._completion = _completions(context, snapshot)

    @property
    def newest(self) -> SyncMark:
        latest = self._timeline.latest_commit
        completions = [self._completion[commit.time] for commit in self._timeline.commits]
        return SyncMark(latest.time if latest else None, max(completions, default=None))

    def touched_since(self, noted: SyncMark) -> PartitionChanges | None:
        """None where these commits do not tell it: some of them were archived, or taken back."""
        if noted.instant is None or noted.instant not in self._timeline.completed_times:
            return None
        later = [commit for commit in self._timeline.commits if self._is_later(commit, noted)]
        later.sort(key=lambda commit: self._completion[commit.time])
        state: dict[str, bool] = {}
        for metadata in self._active.read_commits(later):
            wrote = {path for path, stats in metadata.write_stats.items() if stats}
            if metadata.operation in _EMPTYING:
                state.update(dict.fromkeys(set(metadata.replaced_file_ids) - wrote, False))
            state.update(dict.fromkeys(wrote, True))
        return PartitionChanges(
            tuple(sorted(path for path, has_rows in state.items() if has_rows)),
            tuple(sorted(path for path, has_rows in state.items() if not has_rows)),
        )

    def _is_later(self, commit: Instant, noted: SyncMark) -> bool:
        if noted.instant is None or commit.time > noted.instant:
            return True
        if noted.completion is None or commit.time == noted.instant:
            return False
        return self._completion[commit.time] >= noted.completion


def _completions(context: TableContext, snapshot: Snapshot) -> Mapping[str, InstantTime]:
    commits = snapshot.timeline.commits
    if snapshot.timeline.by_completion:
        return {commit.time: commit.position for commit in commits}
    files = snapshot.active.state_files({(commit.time, commit.action) for commit in commits})
    came = {
        instant.time: format_instant(context.clock.wall(info.mtime_s))
        for instant, info in files
        if instant.is_completed
    }
    # One that went to the archive meanwhile was completed long ago.
    return {commit.time: came.get(commit.time, commit.time) for commit in commits}


def partitions_with_rows(snapshot: Snapshot) -> tuple[str, ...]:
    """All partitions that a query finds something in. All files are listed for it."""
    slices = snapshot.view.written_slices(snapshot.view.every_partition())
    return tuple(sorted({each.group.partition_path for each in slices}))
