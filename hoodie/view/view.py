"""`FileSystemView`: answers which file slices a query or a write has to touch. Immutable; lists a partition once.

Which files count is settled by the timeline alone. So where that is the same, or has one more commit of this very process,
a write goes on with what was listed before (`following`); reads list anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.files import BaseFile, FileGroup, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import BOOTSTRAP_INSTANTS, Instant, InstantTime
from hoodie.model.late import once
from hoodie.model.names import PARTITION_METADATA, hoodie_command, is_partition_path, join
from hoodie.model.payloads import ClusteringPlan, CompactionPlan
from hoodie.storage.base import FileInfo
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.archive import ArchivedTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.build import as_written, build_file_groups, in_reading_order, merged_slice, sliced_at, with_written
from hoodie.view.commit_files import CommittedFiles, FoldedCommits
from hoodie.view.listing import AllFiles, Choice, Listing

if TYPE_CHECKING:
    from hoodie.view.bootstrap import BootstrapIndex

NOTHING_GONE: Mapping[str, Collection[str]] = MappingProxyType({})


class ViewState(NamedTuple):
    """What a view has found out; nothing of the storage that it asked."""

    timeline: Timeline
    committed: FoldedCommits | None
    groups: dict[str, tuple[FileGroup, ...]]
    by_id: dict[str, dict[FileGroupId, FileGroup]]
    partitions: tuple[str, ...] | None
    compactions: Mapping[InstantTime, CompactionPlan] | None
    clusterings: Mapping[FileGroupId, str] | None


class ChosenPartitions(NamedTuple):
    """The partitions of a choice."""

    paths: tuple[str, ...]
    marked: frozenset[str]
    """Those whose folders say that they are partitions, perhaps with others."""
    left_out: int


class FileSystemView:
    """File groups as one timeline sees them. Build a new one for a new timeline; never changes what it answered.

    A question may be put for an earlier moment, `until`: a timeline as `Timeline.as_of` or `completed_by` reduces it, or an
    instant time, which is short for `timeline.as_of(instant)`.
    """

    def __init__(
        self,
        listing: Listing,
        active: ActiveTimeline,
        timeline: Timeline,
        archived: ArchivedTimeline | None = None,
        *,
        skeletons: Callable[[], BootstrapIndex] | None = None,
    ) -> None:
        """`skeletons`: says which files complete those of a bootstrap; None: nobody asks for their rows."""
        self._listing = listing
        self._skeletons = skeletons
        self._active = active
        self.timeline = timeline
        self._archived = archived
        self.committed = CommittedFiles(timeline, active.read_commits)
        self._groups: dict[str, tuple[FileGroup, ...]] = {}
        self._infos: dict[str, Sequence[FileInfo]] = {}
        """The files of partitions of which nobody has asked for the file groups."""
        self._by_id: dict[str, dict[FileGroupId, FileGroup]] = {}
        self._partitions: tuple[str, ...] | None = None
        self._compactions: Mapping[InstantTime, CompactionPlan] | None = None
        self._clusterings: Mapping[FileGroupId, str] | None = None

    def following(self, timeline: Timeline, commit: Instant) -> FileSystemView | None:
        """What a listing would show after one more commit and nothing else: what that wrote is added to what was listed here.
        None where only a listing tells that.

        For the process that made the commit: nobody else knows that nothing but what its metadata name was published.
        """
        if tuple(i for i in timeline if i != commit) != self.timeline.instants:
            return None
        metadata = self._active.read_commit(commit)
        if metadata.replaced_file_ids or metadata.operation is WriteOperation.LOG_COMPACT:
            return None
        later = FileSystemView(self._listing, self._active, timeline, self._archived, skeletons=self._skeletons)
        later.committed = self.committed.following(timeline, commit)
        later._groups = self._groups.copy()
        later._by_id = {path: by_id for path, by_id in self._by_id.items() if path not in metadata.write_stats}
        later._compactions, later._clusterings = self._compactions, self._clusterings
        if self._partitions is not None and metadata.write_stats.keys() <= set(self._partitions):
            later._partitions = self._partitions
        for partition_path, stats in metadata.write_stats.items():
            groups = self._groups.get(partition_path)
            if groups is not None:
                added = with_written(partition_path, groups, stats, commit.time)
                if added is None:
                    del later._groups[partition_path]
                    later._partitions = None
                else:
                    later._groups[partition_path] = added
        return later

    def beside_clean(
        self, timeline: Timeline, clean: str, deleted_files: Mapping[str, Collection[str]] = NOTHING_GONE
    ) -> FileSystemView | None:
        """What a listing would show when a clean has come one state further, and has deleted these files by now (names by
        partition path). None where more than that has happened.

        For the process that runs the clean: nobody else knows how far it is.
        """
        if _but(timeline, clean) != _but(self.timeline, clean):
            return None
        later = FileSystemView.of(self.content, self._listing, self._active, self._archived, skeletons=self._skeletons)
        later.timeline = timeline
        later.committed = CommittedFiles(timeline, self._active.read_commits, self.committed.fold, most_alone=0)
        later._groups, later._by_id = self._groups.copy(), self._by_id.copy()
        for partition_path, names in deleted_files.items():
            groups = later._groups.get(partition_path)
            if groups is not None:
                remaining = {
                    file for group in groups for each in group.slices for file in (each.base, *each.logs) if file
                }
                infos = [FileInfo(f.path, f.size_bytes, 0.0, False, None) for f in remaining if f.name not in names]
                later._by_id.pop(partition_path, None)
                later._groups[partition_path] = later._build(partition_path, infos)
        return later

    @classmethod
    def of(
        cls,
        content: ViewState,
        listing: Listing,
        active: ActiveTimeline,
        archived: ArchivedTimeline | None = None,
        *,
        skeletons: Callable[[], BootstrapIndex] | None = None,
    ) -> FileSystemView:
        """A view with this content; further questions go to this opening of the same table."""
        view = cls(listing, active, content.timeline, archived, skeletons=skeletons)
        # Of a process that writes again and again, which would read the commits each time.
        view.committed = CommittedFiles(content.timeline, active.read_commits, content.committed, most_alone=0)
        view._groups, view._by_id = content.groups, content.by_id
        view._partitions, view._compactions = content.partitions, content.compactions
        view._clusterings = content.clusterings
        return view

    @property
    def content(self) -> ViewState:
        """What another view of the table may go on with; both fill the same dictionaries."""
        return ViewState(
            self.timeline,
            self.committed.fold,
            self._groups,
            self._by_id,
            self._partitions,
            self._compactions,
            self._clusterings,
        )

    @property
    def pending_compaction_plans(self) -> Mapping[InstantTime, CompactionPlan]:
        """Instant -> plan of every compaction that is scheduled and not completed."""
        if self._compactions is None:
            self._compactions = {i.time: self._plan(i) for i in self.timeline.pending(Action.COMPACTION)}
        return self._compactions

    def _plan(self, instant: Instant) -> CompactionPlan:
        try:
            return self._active.read_compaction_plan(instant.time, instant.action)
        except FileNotFoundError as exc:
            raise self._plan_is_gone(instant) from exc

    def _clustering_plan(self, instant: Instant) -> ClusteringPlan:
        try:
            return self._active.read_clustering_plan(instant.time)
        except FileNotFoundError as exc:
            raise self._plan_is_gone(instant) from exc

    def _plan_is_gone(self, instant: Instant) -> MissingFileError:
        """Others have run it, and archived it, since the timeline was loaded; or it was lost."""
        return MissingFileError(
            f"the plan of {instant} of table {self._listing.uri} is gone, which was pending when the timeline was loaded; "
            "run the operation again"
        )

    def pending_compactions(self) -> dict[FileGroupId, InstantTime]:
        """File group -> instant of its pending compaction."""
        return {
            FileGroupId(operation.partition_path, operation.file_id): time
            for time, plan in self.pending_compaction_plans.items()
            for operation in plan.operations
        }

    def pending_log_compactions(self) -> dict[FileGroupId, InstantTime]:
        """File group -> instant of its pending log compaction."""
        return {
            FileGroupId(operation.partition_path, operation.file_id): instant.time
            for instant in self.timeline.pending(Action.LOGCOMPACTION)
            for operation in self._plan(instant).operations
        }

    def pending_clusterings(self) -> Mapping[FileGroupId, str]:
        """File group -> instant of its pending clustering."""
        if self._clusterings is None:
            self._clusterings = {
                FileGroupId(each.partition_path, each.file_id): instant.time
                for instant in self.timeline.pending(Action.CLUSTERING)
                for group in self._clustering_plan(instant).groups
                for each in group.slices
            }
        return self._clusterings

    @once
    def _clustered_at(self) -> frozenset[InstantTime]:
        """The instants of pending clusterings."""
        return frozenset(instant.time for instant in self.timeline.pending(Action.CLUSTERING))

    def partitions(self) -> tuple[str, ...]:
        """Every partition path of the table. All files are listed for it."""
        if self._partitions is None:
            listing = self._listing.all_files()
            self._partitions = listing.partitions
            self._keep_listed(listing)
        return self._partitions

    def _keep_listed(self, listing: AllFiles) -> None:
        """Keep the listed files; their file groups are made on demand."""
        for folder in {*listing.partitions, *filter(is_partition_path, listing.files)} - self._groups.keys():
            self._infos[folder] = listing.files.get(folder, ())

    def every_partition(self) -> tuple[str, ...]:
        """The same with those into which commits wrote, and of which nothing may be left; and with folders that hold files of
        commits, archived ones among them, and have lost the file that makes them partitions.
        """
        partitions = {*self.partitions(), *self.committed.partitions}
        others = {*self._groups, *self._infos} - partitions
        return tuple(sorted({*partitions, *filter(self._holds_rows, others)}))

    def _holds_rows(self, folder: str) -> bool:
        slices = (each for group in self.file_groups(folder) for each in group.slices)
        return any(each.base is not None or any(map(self._is_counted, each.logs)) for each in slices)

    def file_groups(self, partition_path: str) -> tuple[FileGroup, ...]:
        """Groups of a partition, replaced ones included; empty when the partition is not there."""
        self._list([partition_path])
        return self._groups[partition_path]

    def forgive(self, partition_path: str, is_former: Callable[[BaseFile | LogFile], bool]) -> None:
        """Files that are gone are no loss where they are former ones: of a partition that was dropped, and made anew."""
        groups = self.file_groups(partition_path)
        self._groups[partition_path] = tuple(
            each._replace(missing=tuple(file for file in each.missing if not is_former(file))) for each in groups
        )

    def list_all(self, partition_paths: Iterable[str]) -> None:
        """List those that were not listed yet, at the same time: for who asks for them one after the other."""
        self._list(sorted(set(partition_paths)))

    def _list(self, partition_paths: Iterable[str]) -> None:
        """Those that were not listed yet, at the same time."""
        missing = [path for path in partition_paths if path not in self._groups]
        unknown = [path for path in missing if path not in self._infos]
        self._infos.update(zip(unknown, self._listing.files(unknown) if unknown else (), strict=True))
        for path in missing:
            self._groups[path] = self._build(path, self._infos[path])
            del self._infos[path]

    def list_chosen(self, choice: Choice) -> ChosenPartitions:
        """The partitions of a choice, as `every_partition` has those of the table; their files are listed for it, and no others."""
        if self._partitions is None:
            listing, left_out = self._listing.chosen_files(choice)
            self._keep_listed(listing)
            there = {*listing.partitions, *self.committed.partitions_of(choice)}
            others = {folder for folder in filter(is_partition_path, listing.files) if folder not in there}
            paths = tuple(sorted({*there, *filter(self._holds_rows, others)}))
            return ChosenPartitions(paths, frozenset(listing.partitions), left_out)
        every = self.every_partition()
        paths = tuple(compress(every, choice.wants(every)))
        return ChosenPartitions(paths, frozenset(self._partitions), len(every) - len(paths))

    def latest_slices(
        self,
        partition_paths: Iterable[str] | ChosenPartitions | None = None,
        *,
        until: InstantTime | Timeline | None = None,
    ) -> list[FileSlice]:
        """The slice of each live file group that a reader as of `until` (None: now) sees, merged over pending compactions.

        Raises:
            MissingFileError: a file of one of them is gone, or the file that makes a folder a partition.
        """
        marked: Container[str]
        if isinstance(partition_paths, ChosenPartitions):
            chosen, marked = partition_paths.paths, partition_paths.marked
        elif partition_paths is None:
            chosen, marked = self.every_partition(), frozenset(self.partitions())
        else:
            marked = frozenset(partition_paths)
            chosen = tuple(sorted(marked))
        then = self._then(until)
        result = []
        self._list(chosen)
        for partition_path in chosen:
            for group in self.file_groups(partition_path):
                file_slice = None if self.is_replaced(group.id, until=then) else self._merged(group, then)
                if file_slice is None:
                    continue
                if then is None and partition_path not in marked:
                    command = hoodie_command("repair", self._listing.uri, "partition-metadata", "--yes")
                    raise MissingFileError(
                        f"{join(partition_path, PARTITION_METADATA)} of table {self._listing.uri} is gone, without which no engine "
                        f"sees the files of partition {partition_path!r}: {command} writes it anew, and so does a "
                        "write that begins a file group in it"
                    )
                result.append(file_slice)
        return result

    def counted_slices(self, partition_paths: Iterable[str] | None = None) -> list[FileSlice]:
        """As `latest_slices`, without file groups of which no commit counts: what a write that was undone, or has not been completed,
        left of them is logs. For those who show what there is; writers go on in such a group.
        """
        slices = self.latest_slices(partition_paths)
        return [each for each in slices if each.base is not None or any(map(self._is_counted, each.logs))]

    def _is_counted(self, log: LogFile) -> bool:
        return log.committed_bytes is not None or self.timeline.sees(log.base_instant)

    def written_slices(self, partition_paths: Iterable[str]) -> list[FileSlice]:
        """As `latest_slices`, with files that are gone: for those who read none of them."""
        chosen = sorted(set(partition_paths))
        self._list(chosen)
        groups = [group.id for path in chosen for group in self.file_groups(path)]
        return [file_slice for group in groups if (file_slice := self.written_slice(group)) is not None]

    def written_slice(self, group: FileGroupId) -> FileSlice | None:
        """As `slice_of`, with files that are gone."""
        candidate = self.group_of(group)
        return None if candidate is None or self.is_replaced(group) else self._merged_of(self._whole(candidate), None)

    def slice_of(self, group: FileGroupId, *, until: InstantTime | Timeline | None = None) -> FileSlice | None:
        then = self._then(until)
        candidate = self.group_of(group)
        return None if candidate is None or self.is_replaced(group, until=then) else self._merged(candidate, then)

    def group_of(self, group: FileGroupId) -> FileGroup | None:
        """Everything of a file group that is on storage; None when nothing is."""
        if group.partition_path not in self._by_id:
            self._by_id[group.partition_path] = {each.id: each for each in self.file_groups(group.partition_path)}
        return self._by_id[group.partition_path].get(group)

    def is_replaced(self, group: FileGroupId, *, until: InstantTime | Timeline | None = None) -> bool:
        """Whether a completed replacecommit has replaced the group, as of `until`."""
        time = self.committed.replaced.get(group)
        then = self._then(until)
        return time is not None and (then is None or time in then.completed_times)

    def logs_before_base(self, file_slice: FileSlice) -> FileSlice | None:
        """The logs of a slice that were written before its base file was: while its compaction was pending.

        A key that was deleted before that compaction was scheduled and written again before it ran is in these logs and in
        no base file. None when there are no such logs.

        Which base file a log was written onto, its commit says. Logs of archived commits are none of them: archiving waits for
        those that are (`services/archiving.py`). Apache Hudi's archiving does not, and its look-ups read no logs at all. Where
        completion times are stated, these say it, also of archived commits.
        """
        if file_slice.base is None:
            return None
        base = file_slice.base
        if self.timeline.by_completion:
            completion = self._completion_of(base.instant)
            early = tuple(log for log in file_slice.logs if self._completion_of(log.base_instant) < completion)
            return file_slice._replace(base=None, logs=early) if early else None
        committed_files = self.committed.of(file_slice.group.partition_path)

        def written_onto(log: LogFile) -> str:
            return committed_files.onto.get(log.path, "" if log.path in committed_files.sizes else base.name)

        older = tuple(log for log in file_slice.logs if written_onto(log) != base.name)
        return file_slice._replace(base=None, logs=older) if older else None

    def _then(self, until: InstantTime | Timeline | None) -> Timeline | None:
        """The reduced timeline of a moment; None for now."""
        then = self.timeline.as_of(until) if isinstance(until, str) else until
        return None if then is self.timeline else then

    def _merged(self, group: FileGroup, then: Timeline | None) -> FileSlice | None:
        """The merged slice of a group; None where a clean has deleted files of it, or all.

        Raises:
            MissingFileError: files of the newest slice are gone, of which no clean takes any.
        """
        missing = self._missing_of(group, then)
        if not missing:
            return self._merged_of(group, then)
        if then is None or (not self.is_replaced(group.id) and set(missing) & set(self._missing_of(group, None))):
            raise MissingFileError(self._missing_message(group.id.partition_path, missing))
        return None

    def _merged_of(self, group: FileGroup, then: Timeline | None) -> FileSlice | None:
        if not self.timeline.by_completion:
            slices = group.slices
            if self._clustered_at:
                # Apache Hudi also writes rows to the logs of file groups that a pending clustering of consistent buckets will make.
                slices = tuple(s for s in slices if s.base is not None or s.base_instant not in self._clustered_at)
            return merged_slice(slices, then.until if then is not None else None)
        slices = (
            group.slices
            if then is None
            else sliced_at(group, then.layout, then.visible(then.until).sees, self._completion_of)
        )
        merged = merged_slice(slices)
        return None if merged is None else in_reading_order(merged)

    def is_incomplete(self, group: FileGroup, *, until: InstantTime | Timeline | None = None) -> bool:
        """Whether files of the slice that a reader as of `until` would see are not there."""
        return bool(self._missing_of(group, self._then(until)))

    def _missing_of(self, group: FileGroup, then: Timeline | None) -> tuple[BaseFile | LogFile, ...]:
        """The missing files of the slice."""
        merged = self._merged_of(self._whole(group), then) if group.missing else None
        if merged is None:
            return ()
        # On version 6 a slice may have got more logs since `then`.
        times = (then or self.timeline).completed_times
        files = {merged.base, *(log for log in merged.logs if any(time in times for time, _ in log.committed_entries))}
        return tuple(file for file in group.missing if file in files)

    def _whole(self, group: FileGroup) -> FileGroup:
        if not group.missing:
            return group
        return as_written(
            group,
            self.timeline.layout,
            scheduled=self.pending_compactions().get(group.id),
            completion_of=self._completion_of,
        )

    def _missing_message(self, partition_path: str, missing: Sequence[BaseFile | LogFile]) -> str:
        first = missing[0]
        instant = first.instant if isinstance(first, BaseFile) else first.committed_entries[-1][0]
        others = sum(
            len(self._missing_of(group, None))
            for group in self.file_groups(partition_path)
            if group.missing and not self.is_replaced(group.id)
        )
        more = f" (and {others - 1:,} more files of partition {partition_path!r})" if others > 1 else ""
        return (
            f"{first.path} of table {self._listing.uri}{more} is gone: instant {instant} wrote it, and nothing since has taken its "
            "place. Restore it from a copy; until then you can read the table as of an earlier instant, or overwrite that partition"
        )

    def _completion_of(self, time: InstantTime) -> InstantTime:
        commit = self.timeline.commit_at.get(time)
        if commit is not None:
            return commit.position
        return self._archived.completions.get(time, time) if self._archived is not None else time

    def _build(self, partition_path: str, files: Iterable[FileInfo]) -> tuple[FileGroup, ...]:
        groups = build_file_groups(
            partition_path,
            files,
            timeline=self.timeline,
            committed=self.committed,
            pending_compactions=self.pending_compactions(),
            table=self._listing.uri,
            completion_of=self._completion_of,
        )
        self._refuse_unknown_replaced(partition_path, groups)
        has_skeletons = any(each.base_instant == BOOTSTRAP_INSTANTS[0] for group in groups for each in group.slices)
        return self._skeletons().completed(partition_path, groups) if has_skeletons and self._skeletons else groups

    def _refuse_unknown_replaced(self, partition_path: str, groups: Iterable[FileGroup]) -> None:
        """Raises CorruptFileError when a group that was replaced is not there, and no clean can have taken it away.

        Then its id was damaged in the metadata, and the rows of the group that was meant would be there twice.
        """
        there = {group.id for group in groups}
        for group, time in self.committed.replaced.items():
            if group.partition_path != partition_path or group in there:
                continue
            if not self._was_cleaned_after(time):
                raise CorruptFileError(
                    f"{time}.{Action.REPLACECOMMIT} of table {self._listing.uri} replaced file group {group.file_id[:80]!r} in "
                    f"partition {partition_path!r}, of which nothing is there and nothing was cleaned: the metadata are damaged, "
                    "restore the file from a copy"
                )

    def _was_cleaned_after(self, time: InstantTime) -> bool:
        """Mostly the timeline says it. But cleans are archived apart from commits, which a savepoint may hold back."""
        if any(i.action is Action.CLEAN and i.time > time for i in self.timeline):
            return True
        return self._archived is not None and self._archived.has_later(Action.CLEAN, time)


def _but(timeline: Timeline, clean: str) -> tuple[Instant, ...]:
    return tuple(i for i in timeline if i.time != clean or i.action is not Action.CLEAN)
