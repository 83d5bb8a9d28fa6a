"""`FileSystemView`: answers which file slices a query or a write has to touch. Immutable; lists a partition once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hoodie.model.enums import Action
from hoodie.model.files import FileGroup, FileGroupId, FileSlice
from hoodie.model.instant import sort_key
from hoodie.model.names import HOODIE, PARTITION_METADATA
from hoodie.model.payloads import CompactionPlan
from hoodie.storage.base import FileInfo, Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.build import build_file_groups, merged_slice
from hoodie.view.committed import CommittedFiles


class FileSystemView:
    """File groups as one timeline sees them. Build a new one for a new timeline; never changes what it answered."""

    def __init__(self, storage: Storage, active: ActiveTimeline, timeline: Timeline) -> None:
        self._storage = storage
        self._active = active
        self.timeline = timeline
        self.committed = CommittedFiles(timeline, active.read_commit)
        self._groups: dict[str, tuple[FileGroup, ...]] = {}
        self._partitions: tuple[str, ...] | None = None
        self._compactions: Mapping[str, CompactionPlan] | None = None

    @property
    def pending_compaction_plans(self) -> Mapping[str, CompactionPlan]:
        """Instant -> plan of every compaction that is scheduled and not completed."""
        if self._compactions is None:
            self._compactions = {
                i.time: self._active.read_compaction_plan(i.time) for i in self.timeline.pending(Action.COMPACTION)
            }
        return self._compactions

    def pending_compactions(self) -> dict[FileGroupId, str]:
        """File group -> instant of its pending compaction."""
        return {
            FileGroupId(operation.partition_path, operation.file_id): time
            for time, plan in self.pending_compaction_plans.items()
            for operation in plan.operations
        }

    def partitions(self) -> tuple[str, ...]:
        """Every partition path of the table: the folders that have a partition metadata file."""
        if self._partitions is None:
            by_folder: dict[str, list[FileInfo]] = {}
            for info in self._data_files():
                folder = info.path.rpartition("/")[0]
                by_folder.setdefault(folder, []).append(info)
            marked = {
                folder
                for folder, files in by_folder.items()
                if any(f.path.rpartition("/")[2].startswith(PARTITION_METADATA) for f in files)
            }
            self._partitions = tuple(sorted(marked))
            for folder in self._partitions:
                self._groups.setdefault(folder, self._build(folder, by_folder[folder]))
        return self._partitions

    def file_groups(self, partition_path: str) -> tuple[FileGroup, ...]:
        """Groups of a partition, replaced ones included; empty when the partition is not there."""
        if partition_path not in self._groups:
            self._groups[partition_path] = self._build(partition_path, self._storage.list(partition_path))
        return self._groups[partition_path]

    def latest_slices(
        self, partition_paths: Iterable[str] | None = None, *, until: str | None = None
    ) -> list[FileSlice]:
        """The slice of each live file group that a reader as of `until` (None: now) sees, merged over pending compactions."""
        chosen: Sequence[str] = self.partitions() if partition_paths is None else sorted(set(partition_paths))
        found = []
        for partition_path in chosen:
            for group in self.file_groups(partition_path):
                if self._is_replaced(group.id, until):
                    continue
                piece = merged_slice(group.slices, until)
                if piece is not None:
                    found.append(piece)
        return found

    def slice_of(self, group: FileGroupId, *, until: str | None = None) -> FileSlice | None:
        for candidate in self.file_groups(group.partition_path):
            if candidate.id == group and not self._is_replaced(group, until):
                return merged_slice(candidate.slices, until)
        return None

    def logs_before_base(self, piece: FileSlice) -> FileSlice | None:
        """The logs of a slice that were written before its base file was: while its compaction was pending.

        A key that was deleted before that compaction was scheduled and written again before it ran is in these logs and in
        no base file. None when there are no such logs.
        """
        if piece.base is None:
            return None
        base = piece.base
        older = tuple(log for log in piece.logs if self.committed.written_onto(log.path, base.instant) != base.name)
        return piece._replace(base=None, logs=older) if older else None

    def _is_replaced(self, group: FileGroupId, until: str | None) -> bool:
        time = self.committed.replaced.get(group)
        return time is not None and (until is None or sort_key(time) <= sort_key(until))

    def _build(self, partition_path: str, files: Iterable[FileInfo]) -> tuple[FileGroup, ...]:
        return build_file_groups(
            partition_path,
            files,
            timeline=self.timeline,
            committed=self.committed,
            pending_compactions=self.pending_compactions(),
            table=self._storage.uri,
        )

    def _data_files(self) -> Iterable[FileInfo]:
        for top in self._storage.list(""):
            if not top.is_folder:
                yield top
            elif top.path != HOODIE:
                yield from self._storage.list(top.path, recursive=True)
