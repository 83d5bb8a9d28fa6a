"""Checks of the folders and files of the newest state, by their names and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hoodie.errors import HoodieError, UnsupportedTableError
from hoodie.metadata.maintenance import maintained_of
from hoodie.model.enums import Action, TableType
from hoodie.model.files import FileGroupId
from hoodie.model.findings import RepairKind
from hoodie.model.instant import InstantTime
from hoodie.model.names import BOOTSTRAP_INDEX, METADATA_TABLE, PARTITION_METADATA, PROPERTIES_BACKUP, SET_ASIDE
from hoodie.model.payloads import CommitMetadata
from hoodie.model.results import format_count, format_size
from hoodie.options.compatibility import check_writable
from hoodie.repair.inspection import Hit, Inspection
from hoodie.repair.set_aside import set_aside_files, set_aside_names
from hoodie.repair.stray_files import Evidence, lost_instants
from hoodie.services.archiving import archive
from hoodie.services.cleaning import preview
from hoodie.view.context import Snapshot, load_config
from hoodie.write.agreement import contradictions


def nested_tables(look: Inspection) -> Iterator[Hit]:
    """Folders that are tables themselves, which hoodie's readers leave out."""
    for path in look.context.listing.all_files().tables:
        yield Hit(f"{path} is a table itself, so readers of other engines may take its folders for partitions", path)


def partition_metadata(look: Inspection) -> Iterator[Hit]:
    """Folders with rows that are no partitions, and files that do not say what they should."""
    for each in look.repairs.of(RepairKind.PARTITION_METADATA):
        yield Hit(f"{each.path}: {each.why}", each.path)


def misplaced_metadata(look: Inspection) -> Iterator[Hit]:
    """Folders in the place of partition metadata, where no file can be written."""
    storage = look.context.storage
    for each in look.repairs.of(RepairKind.PARTITION_METADATA):
        if storage.exists(each.path) and storage.stat(each.path).is_folder:
            yield Hit(f"a folder stands at {each.path}, where a file has to be", each.path)


def data_files(look: Inspection) -> Iterator[Hit]:
    """Files that commits wrote and that are gone or cut, and metadata that contradict what is there; by partition."""
    if look.unreadable:
        return  # nothing can be told of files
    view = look.snapshot.view
    reports: set[str] = set()
    damaged = [each for each in (*look.repairs.repairs, *look.repairs.left) if each.kind is RepairKind.PLANS]
    plans = [each.path for each in damaged] + [each.missing for each in damaged if each.restores and each.missing]
    for partition_path in (None, *_partitions(look.snapshot), ...):
        try:
            if partition_path is None:
                view.partitions()
            elif isinstance(partition_path, str):
                view.latest_slices([partition_path])
            elif not reports:
                view.latest_slices()  # which also asks whether the folders are partitions
        except HoodieError as exc:
            text = look.plain(exc)
            others = (f"{PARTITION_METADATA} is gone", BOOTSTRAP_INDEX, *plans)
            elsewhere = any(each in text for each in others)  # another check's
            if text not in reports and not elsewhere:
                reports.add(text)
                yield Hit(text)


def _partitions(snapshot: Snapshot) -> Sequence[str]:
    try:
        return snapshot.view.every_partition()
    except HoodieError:
        return snapshot.view.committed.partitions


def lost_commits(look: Inspection) -> Iterator[Hit]:
    """Instants on whose files commits build, and that are neither on the timeline nor undone."""
    if look.unreadable:
        return
    evidence = Evidence(look.context, look.snapshot)
    reports: set[str] = set()
    for commit in look.snapshot.timeline.commits:
        previous = {stat.prev_commit for stat in look.context.active.read_commit(commit).stats() if stat.prev_commit}
        for time in lost_instants(evidence, previous - reports):
            reports.add(time)
            yield Hit(f"commit {commit.time} builds on files of instant {time}, which is on no timeline")


def lost_instants_of_files(look: Inspection) -> Iterator[Hit]:
    """Data files of instants that are on no timeline, and that nothing has undone."""
    for time, paths in look.files_without_instant.items():
        others = f" and {format_count(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
        yield Hit(
            f"{paths[0]}{others}: instant {time} is on no timeline, and nothing says that it was undone", paths[0]
        )


def replaced_groups(look: Inspection) -> Iterator[Hit]:
    """Replacecommits of file groups into which commits wrote later, or which are their own."""
    if look.unreadable:
        return
    replaced = look.snapshot.view.committed.replaced
    for commit in look.snapshot.timeline.commits if replaced else ():
        for stat in look.context.active.read_commit(commit).stats():
            by = replaced.get(FileGroupId(stat.partition_path, stat.file_id))
            if by is not None and stat.path and commit.time >= by:
                path = next(look.context.active.path(i) for i in look.snapshot.timeline.commits if i.time == by)
                yield Hit(
                    f"{path} says that it replaced the file group of {stat.path}, which commit {commit.time} wrote: its rows do not "
                    "count",
                    path,
                )
                break


def strange_rows(look: Inspection) -> Iterator[Hit]:
    """A base file whose columns make other keys than it has, where the columns of other files make theirs."""
    if look.unreadable:
        return
    for contradiction in contradictions(look.context, look.snapshot):
        if contradiction.file is not None:
            yield Hit(contradiction.what, contradiction.file)


def modification_times(look: Inspection) -> Iterator[Hit]:
    """A commit that looks as if it was completed after a compaction of what it wrote was planned.

    Apache Hudi 1.x takes the modification time for the time of completion, and would read such logs after the compaction.
    """
    timeline, context = look.snapshot.timeline, look.context
    if timeline.by_completion or look.unreadable:
        return
    commits = {instant.time: context.active.read_commit(instant) for instant in timeline.commits}
    compacted: dict[FileGroupId, list[InstantTime]] = {}
    for time in timeline.compactions & commits.keys():
        for group in _groups(commits[time]):
            compacted.setdefault(group, []).append(time)
    for instant in timeline.commits:
        older_than = [
            t for group in _groups(commits[instant.time]) for t in compacted.get(group, ()) if t > instant.time
        ]
        path = context.active.path(instant)
        if older_than and not context.clock.ahead_of(context.storage.stat(path).mtime_s, min(older_than)):
            yield Hit(
                f"{path} was modified after the compaction {min(older_than)} of what it wrote was planned: it is a copy that did not "
                "keep modification times, by which Apache Hudi 1.x orders log files; hoodie reads it all the same",
                path,
            )
            return


def _groups(metadata: CommitMetadata) -> set[FileGroupId]:
    return {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats()}


def read_strays(look: Inspection) -> Iterator[Hit]:
    """Data files that their archived commit does not name, and whose rows count."""
    for each in look.repairs.of(RepairKind.STRAY_FILES):
        if each.is_read:
            yield Hit(f"{each.path}: {each.why}; it is older than the timeline, so readers count its rows", each.path)


def stray_files(look: Inspection) -> Iterator[Hit]:
    """Data files that no completed instant explains."""
    known_paths = {path for paths in look.files_without_instant.values() for path in paths}
    for each in look.repairs.of(RepairKind.STRAY_FILES):
        if each.path not in known_paths and not each.is_read:
            yield Hit(f"{each.path}: {each.why}", each.path)


def young_strays(look: Inspection) -> Iterator[Hit]:
    """The same, so young that a writer may just be at work."""
    known_paths = {path for paths in look.files_without_instant.values() for path in paths}
    for each in look.repairs.left:
        if each.kind is RepairKind.STRAY_FILES and each.is_young and each.path not in known_paths:
            yield Hit(f"{each.path}: {each.why}", each.path)


def kept_strays(look: Inspection) -> Iterator[Hit]:
    """Files that may be strays, and that somebody may need."""
    for each in look.repairs.left:
        if each.kind is RepairKind.STRAY_FILES and not each.is_young:
            yield Hit(f"{each.path}: {each.why}" if each.path else each.why, each.path or None)


# -- services that are not run, and what is worth knowing --------------------------------------------------------------


def long_timeline(look: Inspection) -> Iterator[Hit]:
    """A timeline that is never archived."""
    commits = len(look.snapshot.timeline.commits)
    if commits > look.context.tuning.neglected_commits and not _held_by(look):
        yield Hit(f"the timeline has {commits:,} commits, which every reader and writer lists")


def held_timeline(look: Inspection) -> Iterator[Hit]:
    """A timeline that cannot be archived."""
    commits = len(look.snapshot.timeline.commits)
    if commits > look.context.tuning.neglected_commits and (holder := _held_by(look)):
        yield Hit(
            f"the timeline has {commits:,} commits, which every reader and writer lists; they are held back by {holder}"
        )


def _held_by(look: Inspection) -> str | None:
    return archive(look.context, look.options, dry_run=True).held_by


def never_cleaned(look: Inspection) -> Iterator[Hit]:
    """Old files that nobody cleans."""
    timeline = look.snapshot.timeline
    if timeline.newest(Action.CLEAN) is None and not timeline.pending(Action.CLEAN):
        free = preview(look.context, look.options.cleaning)
        if free.files:
            size = format_size(free.bytes_freed)
            yield Hit(f"no clean has run: {format_count(free.files, 'old file')} of {size} can go")


def crowded_slices(look: Inspection) -> Iterator[Hit]:
    """Log files that nobody compacts."""
    context, snapshot = look.context, look.snapshot
    is_merged = context.config.table_type is TableType.MERGE_ON_READ
    if is_merged and not snapshot.timeline.pending(Action.COMPACTION):
        counts = [len(each.logs) for each in snapshot.view.latest_slices()]
        crowded = [count for count in counts if count > context.tuning.neglected_logs]
        if crowded:
            slices = format_count(len(crowded), "file slice")
            yield Hit(f"{slices} with up to {max(crowded):,} log files, which every query merges")


def read_only(look: Inspection) -> Iterator[Hit]:
    """A table that is not written."""
    try:
        check_writable(look.context.config)
    except UnsupportedTableError as exc:
        yield Hit(look.plain(exc))


def metadata_damage(look: Inspection) -> Iterator[Hit]:
    """A metadata table that says something else than the folders."""
    for each in look.repairs.of(RepairKind.METADATA_TABLE):
        there = ", ".join(look.context.config.metadata_partitions)
        yield Hit(f"the metadata table ({there}) is not to be trusted: {each.why}", each.path)


def metadata_table(look: Inspection) -> Iterator[Hit]:
    """Partitions of a metadata table that go, or all of one that the properties do not name."""
    context = look.context
    names = load_config(context.storage).metadata_partitions  # a write of this process may have made one since
    kept_names = {each.name for each in maintained_of(names, context.view_options)}
    going = [name for name in names if name not in kept_names]
    if going:
        yield Hit(f"the next write by hoodie drops {', '.join(going)} of the metadata table", METADATA_TABLE)
    elif not names and context.storage.list(METADATA_TABLE):
        yield Hit("the properties name no metadata table: the next write by hoodie drops its folder", METADATA_TABLE)


def properties_backup(look: Inspection) -> Iterator[Hit]:
    """What an update of the properties left."""
    if look.context.storage.exists(PROPERTIES_BACKUP):
        yield Hit(f"{PROPERTIES_BACKUP} was left by an update of the properties, which are whole", PROPERTIES_BACKUP)


def set_aside(look: Inspection) -> Iterator[Hit]:
    """Files that a repair moved away."""
    for name in set_aside_names(look.context.storage):
        files = set_aside_files(look.context.storage, name)
        if files:
            size = format_size(sum(info.size_bytes for info in files.values()))
            yield Hit(
                f"a repair set {format_count(len(files), 'file')} of {size} aside as {name}", f"{SET_ASIDE}/{name}"
            )
