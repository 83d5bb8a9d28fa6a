"""Answers of the methods of Apache Hudi's file system view, from hoodie's view.

They differ from what a reader of ours asks in two things: a slice of a pending compaction stands by itself unless the method merges
it, and a moment is an instant time against which the slices' base instants are held. Slices come newest first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from hoodie.model.enums import Action
from hoodie.model.files import BaseFile, FileGroup, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.late import once
from hoodie.model.names import COMPLETES_AS, log_sort_key, parse_base_file, parse_log_file
from hoodie.model.payloads import CompactionOperation
from hoodie.storage.base import FileInfo
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.view.build import fold_slices
from hoodie.view.view import FileSystemView

T = TypeVar("T")

_LATER = InstantTime("9" * 17)
_COMPACTIONS = (Action.COMPACTION, Action.LOGCOMPACTION)


class Questions:
    """Of one view. A partition path may have a slash at its end."""

    def __init__(self, view: FileSystemView, active: ActiveTimeline) -> None:
        self._view = view
        self._active = active
        self.timeline = view.timeline

    @once
    def instants(self) -> tuple[Instant, ...]:
        """The timeline of Apache Hudi's views: completed writes and pending compactions."""
        return tuple(
            i
            for i in self.timeline
            if (i.is_completed and (i.action in WRITES or i.action in COMPLETES_AS)) or i.action in _COMPACTIONS
        )

    # -- slices --------------------------------------------------------------------------------------------------------

    def latest(self, partition_path: str) -> list[FileSlice]:
        return _firsts(self._slices(group) for group in self._live(partition_path))

    def latest_of(self, partition_path: str, file_id: str) -> list[FileSlice]:
        return [each for each in self.latest(partition_path) if each.group.file_id == file_id]

    def latest_uncompacted(self, partition_path: str) -> list[FileSlice]:
        """The slices that the pending compaction takes, where there is one."""
        return _firsts(self._before(group, self._compactions.get(group.id)) for group in self._live(partition_path))

    def before_or_on(self, partition_path: str, time: str, *, with_compactions: bool) -> list[FileSlice]:
        """`with_compactions`: also of groups that a compaction is pending for.

        In versions 8 and 9 Apache Hudi gives the slice that one is going to write also while nothing stands in it.
        """
        lists = []
        gives_empty = self.timeline.by_completion
        for group in self._live(partition_path, time):
            scheduled = self._compactions.get(group.id)
            if scheduled is not None and not with_compactions:
                continue
            slices = self._slices(group, time)
            lists.append([each for each in slices if gives_empty or each.base is not None or each.logs])
        return _firsts(lists)

    def merged_before_or_on(self, partition_path: str, time: str) -> list[FileSlice]:
        """As a reader merges them: the logs of a pending compaction's slice come after those of the one before."""
        lists = []
        for group in self._live(partition_path, time):
            slices = self._slices(group, time)
            scheduled = self._compactions.get(group.id)
            before = self._before(group, scheduled)
            if slices and before and slices[0].base_instant == scheduled:
                lists.append([before[0]._replace(logs=before[0].logs + slices[0].logs)])
            else:
                lists.append(slices)
        return _firsts(lists)

    def merged_of(self, partition_path: str, time: str, file_id: str) -> list[FileSlice]:
        return [each for each in self.merged_before_or_on(partition_path, time) if each.group.file_id == file_id]

    def in_range(self, times: Sequence[str]) -> list[FileSlice]:
        return _firsts(
            [each for each in self._slices(group) if each.base_instant in times] for group in self._everywhere(times)
        )

    def all(self, partition_path: str) -> list[FileSlice]:
        return [each for group in self._live(partition_path) for each in self._slices(group)]

    # -- base files ----------------------------------------------------------------------------------------------------

    def latest_bases(self, partition_path: str) -> list[BaseFile]:
        return _firsts(self._bases(group) for group in self._live(partition_path))

    def latest_base_of(self, partition_path: str, file_id: str) -> list[BaseFile]:
        return [each for each in self.latest_bases(partition_path) if each.file_id == file_id]

    def latest_bases_everywhere(self) -> list[BaseFile]:
        return [each for path in self.partitions() for each in self.latest_bases(path)]

    def bases_before_or_on(self, partition_path: str, time: str) -> list[BaseFile]:
        return _firsts(self._bases(group, time) for group in self._live(partition_path, time))

    def base_on(self, partition_path: str, time: str, file_id: str) -> list[BaseFile]:
        groups = (group for group in self._live(partition_path, time) if group.id.file_id == file_id)
        return [each for group in groups for each in self._bases(group) if each.instant <= time <= each.instant]

    def bases_in_range(self, times: Sequence[str]) -> list[BaseFile]:
        return _firsts(
            [each for each in self._bases(group) if each.instant in times] for group in self._everywhere(times)
        )

    def all_bases(self, partition_path: str) -> list[BaseFile]:
        return [each for group in self._live(partition_path) for each in self._bases(group)]

    # -- file groups ---------------------------------------------------------------------------------------------------

    def groups(self, partition_path: str) -> list[FileGroup]:
        return list(self._live(partition_path))

    def replaced(
        self, partition_path: str, *, until: str | None = None, before: str | None = None, since: str | None = None
    ) -> list[FileGroup]:
        """Groups that were replaced at or before `until`, before `before`, at or after `since`."""
        result = []
        for group in self._groups(partition_path):
            time = self._view.committed.replaced.get(group.id)
            if (
                time is not None
                and (until is None or time <= until)
                and (before is None or time < before)
                and (since is None or time >= since)
            ):
                result.append(group)
        return result

    # -- plans ---------------------------------------------------------------------------------------------------------

    def compactions(self) -> list[tuple[str, CompactionOperation]]:
        plans = self._view.pending_compaction_plans
        return [(time, operation) for time, plan in plans.items() for operation in plan.operations]

    def log_compactions(self) -> list[tuple[str, CompactionOperation]]:
        return [
            (instant.time, operation)
            for instant in self.timeline.pending(Action.LOGCOMPACTION)
            for operation in self._active.read_compaction_plan(instant.time, Action.LOGCOMPACTION).operations
        ]

    def clusterings(self) -> list[tuple[FileGroupId, Instant]]:
        return [
            (FileGroupId(each.partition_path, each.file_id), instant)
            for instant in self.timeline.pending(Action.CLUSTERING)
            for group in self._active.read_clustering_plan(instant.time).groups
            for each in group.slices
        ]

    def partitions(self) -> tuple[str, ...]:
        return self._view.partitions()

    # ------------------------------------------------------------------------------------------------------------------

    @once
    def _compactions(self) -> dict[FileGroupId, InstantTime]:
        return self._view.pending_compactions()

    def _groups(self, partition_path: str) -> Iterator[FileGroup]:
        """Those of which files are there."""
        for group in self._view.file_groups(partition_path.removesuffix("/")):
            if any(each.base is not None or each.logs for each in group.slices):
                yield group

    def _live(self, partition_path: str, time: str | None = None) -> Iterator[FileGroup]:
        """Those that are not replaced; with a time: that were not replaced by then."""
        replaced = self._view.committed.replaced
        for group in self._groups(partition_path):
            at = replaced.get(group.id)
            if at is None or (time is not None and at > time):
                yield group

    def _everywhere(self, times: Sequence[str]) -> Iterator[FileGroup]:
        newest = max(map(InstantTime, times))
        for path in self.partitions():
            yield from self._live(path, newest)

    def _slices(self, group: FileGroup, time: str | None = None) -> list[FileSlice]:
        """Newest first; with a time: those that began by then."""
        return [
            each for each in reversed(group.slices) if self._began(each) and (time is None or each.base_instant <= time)
        ]

    def _began(self, file_slice: FileSlice) -> bool:
        """Whether its base instant counts. One that a write at work has begun with a log does not."""
        began = file_slice.base_instant
        return self.timeline.sees(began) or self._compactions.get(file_slice.group) == began

    def _before(self, group: FileGroup, scheduled: str | None) -> list[FileSlice]:
        slices = self._slices(group)
        if scheduled is None:
            return slices
        return [each for each in slices if each.base_instant < scheduled]

    def _bases(self, group: FileGroup, time: str | None = None) -> list[BaseFile]:
        return [each.base for each in self._slices(group, time) if each.base is not None]


def latest_on_storage(
    partition_path: str, infos: Iterable[FileInfo], timeline: Timeline, compactions: Mapping[FileGroupId, InstantTime]
) -> list[FileSlice]:
    """The newest slice of each file group, with files of writes at work: their logs belong to the newest slice there is."""
    bases: dict[str, list[BaseFile]] = defaultdict(list)
    logs: dict[str, list[tuple[object, LogFile]]] = defaultdict(list)
    for info in infos:
        name = info.name
        base, log = parse_base_file(name), parse_log_file(name)
        if base is not None:
            bases[base.file_id].append(BaseFile(partition_path, base.file_id, base.instant, name, info.size_bytes))
        elif log is not None and not log.suffix:
            log_file = LogFile(partition_path, log.file_id, log.base_instant, log.version, name, info.size_bytes)
            logs[log.file_id].append((log_sort_key(log), log_file))

    def completion_of(time: InstantTime) -> InstantTime:
        commit = timeline.commit_at.get(time)
        return commit.position if commit is not None else time if timeline.sees(time) else _LATER

    latest = []
    for file_id in sorted({*bases, *logs}):
        group = FileGroupId(partition_path, file_id)
        slices = fold_slices(
            group,
            bases[file_id],
            [log for _, log in sorted(logs[file_id])],
            timeline.layout,
            scheduled=compactions.get(group),
            completion_of=completion_of,
        )
        latest.append(slices[-1])
    return latest


def _firsts(lists: Iterable[Sequence[T]]) -> list[T]:
    return [each[0] for each in lists if each]
