"""Fold a partition's listing into file groups and slices. Pure: no IO but the metadata it is given.

Which slice a log file belongs to, the table's `Layout` says. Slices go by instants, never by modification times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from hoodie.errors import CorruptFileError
from hoodie.format.layout import CompletionOf, Layout
from hoodie.model.files import BaseFile, FileGroup, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import InstantTime
from hoodie.model.names import log_sort_key, name_of, parse_base_file, parse_log_file
from hoodie.model.payloads import WriteStat
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import Timeline
from hoodie.view.commit_files import CommittedFiles, PartitionFiles


def build_file_groups(
    partition_path: str,
    files: Iterable[FileInfo],
    *,
    timeline: Timeline,
    committed: CommittedFiles,
    pending_compactions: Mapping[FileGroupId, InstantTime],
    table: str,
    completion_of: CompletionOf,
) -> tuple[FileGroup, ...]:
    """File groups of one partition, every slice oldest first; replaced groups included, and those of which all is missing.

    A slice exists for each base file of a visible instant, each pending compaction of the group (without a base file), and
    where log files begin a group, or are named with the instant of a slice that has no base file.

    Args:
        completion_of: instant time of a log file -> when it was completed; asked where the timeline goes by that.

    Raises:
        CorruptFileError: a committed file is shorter than its commit says, or another one stands where it should.
    """
    committed_files = committed.of(partition_path)
    bases: dict[str, dict[str, BaseFile]] = defaultdict(dict)
    logs: dict[str, list[LogFile]] = defaultdict(list)
    strays: list[BaseFile] = []
    there = set()
    for info in files:
        if info.is_folder:
            continue
        there.add(info.path)
        name = info.name
        base = parse_base_file(name)
        if base is not None:
            base_file = BaseFile(partition_path, base.file_id, base.instant, name, info.size_bytes)
            if _counts(base_file, timeline, committed, table):
                bases[base.file_id][base.instant] = base_file
            elif timeline.sees(base.instant):
                strays.append(base_file)
            continue
        log = parse_log_file(name)
        if log is not None and not log.suffix and timeline.layout.may_count(log.base_instant, timeline.sees):
            logs[log.file_id].append(
                LogFile(partition_path, log.file_id, log.base_instant, log.version, name, info.size_bytes)
            )
    for stray in strays:
        if stray.instant not in bases.get(stray.file_id, ()):
            _refuse_lost_base(stray, committed, table)
    for file_id, found_logs in logs.items():
        logs[file_id] = _checked_logs(found_logs, committed_files, table)
    missing = _missing(partition_path, committed_files, there)
    scheduled = {group.file_id: time for group, time in pending_compactions.items() if group[0] == partition_path}
    groups = []
    for file_id in sorted({*bases, *logs, *scheduled, *missing}):
        group_id = FileGroupId(partition_path, file_id)
        slices = fold_slices(
            group_id,
            bases.get(file_id, {}).values(),
            logs.get(file_id, ()),
            timeline.layout,
            scheduled=scheduled.get(file_id),
            completion_of=completion_of,
        )
        groups.append(FileGroup(group_id, slices, tuple(missing.get(file_id, ()))))
    return tuple(groups)


def _missing(
    partition_path: str, committed_files: PartitionFiles, there: Collection[str]
) -> dict[str, list[BaseFile | LogFile]]:
    """File id -> the files that commits wrote, with a size, and that are not among those `there`."""
    result: dict[str, list[BaseFile | LogFile]] = defaultdict(list)
    for path, size in committed_files.sizes.items():
        if not size or path in there:
            continue
        name = name_of(path)
        base, log = parse_base_file(name), parse_log_file(name)
        if base is not None:
            result[base.file_id].append(BaseFile(partition_path, base.file_id, base.instant, name, size))
        elif log is not None and not log.suffix:
            entries = committed_files.entries.get(path, ())
            result[log.file_id].append(
                LogFile(
                    partition_path,
                    log.file_id,
                    log.base_instant,
                    log.version,
                    name,
                    size,
                    size,
                    entries,
                    committed_files.stands_for.get(path),
                )
            )
    return result


def as_written(
    group: FileGroup, layout: Layout, *, scheduled: InstantTime | None, completion_of: CompletionOf
) -> FileGroup:
    """The group with the files that are missing, as if they were there."""
    bases = [file_slice.base for file_slice in group.slices if file_slice.base is not None]
    logs = [log for file_slice in group.slices for log in file_slice.logs]
    bases += [file for file in group.missing if isinstance(file, BaseFile)]
    logs += [file for file in group.missing if isinstance(file, LogFile)]
    ordered = sorted(logs, key=_reading_order)
    slices = fold_slices(group.id, bases, ordered, layout, scheduled=scheduled, completion_of=completion_of)
    return group._replace(slices=slices)


def fold_slices(
    group: FileGroupId,
    bases: Iterable[BaseFile],
    logs: Sequence[LogFile],
    layout: Layout,
    *,
    scheduled: InstantTime | None = None,
    completion_of: CompletionOf,
) -> tuple[FileSlice, ...]:
    """The slices of one group, oldest first; `logs` in reading order, `scheduled` the instant of a pending compaction."""
    by_instant = {base.instant: base for base in bases}
    begins = {*by_instant, *((scheduled,) if scheduled else ())}
    owned: dict[InstantTime, list[LogFile]] = defaultdict(list)
    for log in logs:
        owner = layout.slice_of(log.base_instant, begins, completion_of)
        begins.add(owner)
        owned[owner].append(log)
    return tuple(
        FileSlice(group, instant, by_instant.get(instant), tuple(owned.get(instant, ()))) for instant in sorted(begins)
    )


def with_written(
    partition_path: str, groups: tuple[FileGroup, ...], stats: Iterable[WriteStat], instant: InstantTime
) -> tuple[FileGroup, ...] | None:
    """The file groups of a partition with the files of one more commit: as a listing after it would give them.

    None where a file does not simply come last in its group.
    """
    by_id = {group.id.file_id: group for group in groups}
    written: dict[str, int] = {}
    for stat in stats:
        count = stat.num_writes + stat.num_deletes
        folder, _, name = stat.path.rpartition("/")
        group = by_id.get(stat.file_id, FileGroup(FileGroupId(partition_path, stat.file_id), ()))
        last = group.slices[-1] if group.slices else None
        base, log = parse_base_file(name), parse_log_file(name)
        if stat.path in written or folder != partition_path or not stat.file_size_bytes:
            return None
        written[stat.path] = count
        if base is not None and base.file_id == stat.file_id and base.instant == instant:
            if last is not None and last.base_instant >= instant:
                return None
            file = BaseFile(partition_path, base.file_id, instant, name, stat.file_size_bytes)
            slices = (*group.slices, FileSlice(group.id, instant, file, ()))
        elif log is not None and not log.suffix and log.file_id == stat.file_id:
            entries = ((instant, count),) if count else ()
            size = stat.file_size_bytes
            added = LogFile(partition_path, log.file_id, log.base_instant, log.version, name, size, size, entries)
            # Named with the instant of its slice, or with its own: it was completed later than whatever began the slice.
            if (
                last is None
                or log.base_instant not in (last.base_instant, instant)
                or log.base_instant < last.base_instant
            ):
                return None
            if last.logs and _reading_order(last.logs[-1]) > _reading_order(added):
                return None
            slices = (*group.slices[:-1], last._replace(logs=(*last.logs, added)))
        else:
            return None
        by_id[stat.file_id] = group._replace(slices=slices)
    return tuple(by_id[file_id] for file_id in sorted(by_id))


def sliced_at(
    group: FileGroup, layout: Layout, sees: Callable[[str], bool], completion_of: CompletionOf
) -> tuple[FileSlice, ...]:
    """The slices of a group, where completion decides, for a reader who sees fewer instants: logs move to the slices that are left."""
    bases = [
        file_slice.base for file_slice in group.slices if file_slice.base is not None and sees(file_slice.base.instant)
    ]
    logs = [log for file_slice in group.slices for log in file_slice.logs if sees(log.base_instant)]
    return fold_slices(group.id, bases, sorted(logs, key=_reading_order), layout, completion_of=completion_of)


def merged_slice(slices: Iterable[FileSlice], until: InstantTime | None = None) -> FileSlice | None:
    """The slice that a reader as of `until` (None: now) merges; None when nothing of the group is there then.

    A slice without a base file continues the one before it (a compaction is pending between them): its logs come
    after the older ones, and its base instant names the log files to come.
    """
    merged: FileSlice | None = None
    for file_slice in slices:
        if until is not None and file_slice.base_instant > until:
            break
        if file_slice.base is not None or merged is None:
            merged = file_slice
        else:
            merged = FileSlice(file_slice.group, file_slice.base_instant, merged.base, merged.logs + file_slice.logs)
    return merged


def in_reading_order(file_slice: FileSlice) -> FileSlice:
    """The slice with its logs by instant: of two that a pending compaction parts, one may begin and end late (versions 8 and 9)."""
    return file_slice._replace(logs=tuple(sorted(file_slice.logs, key=_reading_order)))


def _counts(base: BaseFile, timeline: Timeline, committed: CommittedFiles, table: str) -> bool:
    if not timeline.sees(base.instant):
        return False
    size = committed.base_size(base)
    if size is None or size == 0:
        return True
    if size > base.size_bytes:
        raise CorruptFileError(_shorter(base.path, size, base.size_bytes, table))
    return size > 0  # -1: a second try's leftover that its commit does not name


def _refuse_lost_base(stray: BaseFile, committed: CommittedFiles, table: str) -> None:
    """Raises CorruptFileError when a second try's leftover is all that is there of what its commit wrote for the group."""
    name = committed.named_instead(stray)
    if name is not None:
        raise CorruptFileError(
            f"{name} of table {table} is gone: instant {stray.instant} names it, but only {stray.name} is there; "
            "restore the file, or the metadata of that instant, from a copy"
        )


def _checked_logs(logs: list[LogFile], committed_files: PartitionFiles, table: str) -> list[LogFile]:
    checked = []
    for log in logs:
        size = committed_files.log_size(log.path)
        if size is not None and size > log.size_bytes:
            raise CorruptFileError(_shorter(log.path, size, log.size_bytes, table))
        checked.append(
            log._replace(
                committed_bytes=size,
                committed_entries=committed_files.entries.get(log.path, ()),
                stands_for=committed_files.stands_for.get(log.path),
            )
        )
    return sorted(checked, key=_reading_order)


def _reading_order(log: LogFile) -> tuple[InstantTime, int, tuple[int, ...], str]:
    name = parse_log_file(log.name)
    return log_sort_key(name) if name else (log.base_instant, log.version, (), log.name)


def _shorter(path: str, committed: int, size: int, table: str) -> str:
    return (
        f"{path} of table {table} is truncated: its commit wrote {committed} bytes, {size} are there; "
        "restore the file from a copy, or roll the table back to before that commit"
    )
