"""Fold a partition's listing into file groups and slices (table version 6). Pure: no IO but the metadata it is given.

Which logs belong to which slice, and which base files count: format notes "Which logs belong to a file slice".
Slices go by the instants in names, never by modification times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hoodie.errors import CorruptFileError
from hoodie.model.files import BaseFile, FileGroup, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import sort_key
from hoodie.model.names import log_sort_key, parse_base_file, parse_log_file
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import Timeline
from hoodie.view.committed import CommittedFiles


def build_file_groups(
    partition_path: str,
    files: Iterable[FileInfo],
    *,
    timeline: Timeline,
    committed: CommittedFiles,
    pending_compactions: Mapping[FileGroupId, str],
    table: str,
) -> tuple[FileGroup, ...]:
    """File groups of one partition, every slice oldest first; replaced groups included.

    A slice exists for each base file of a visible instant, each base instant that log files are named with, and each
    pending compaction of the group (without a base file).

    Raises:
        CorruptFileError: a committed file is shorter than its commit says.
    """
    bases: dict[str, dict[str, BaseFile]] = defaultdict(dict)
    logs: dict[str, dict[str, list[LogFile]]] = defaultdict(lambda: defaultdict(list))
    for info in files:
        if info.is_folder:
            continue
        name = info.path.rpartition("/")[2]
        base = parse_base_file(name)
        if base is not None:
            found = BaseFile(partition_path, base.file_id, base.instant, name, info.size_bytes)
            if _counts(found, timeline, committed, table):
                bases[base.file_id][base.instant] = found
            continue
        log = parse_log_file(name)
        if log is not None and not log.suffix:
            logs[log.file_id][log.base_instant].append(
                LogFile(partition_path, log.file_id, log.base_instant, log.version, name, info.size_bytes)
            )
    if logs:
        oldest = min((instant for by_instant in logs.values() for instant in by_instant), key=sort_key)
        sizes = committed.log_sizes(oldest)
        for by_instant in logs.values():
            by_instant.update({time: _checked_logs(found, sizes, table) for time, found in by_instant.items()})
    scheduled = {group.file_id: time for group, time in pending_compactions.items() if group[0] == partition_path}
    groups = []
    for file_id in sorted({*bases, *logs, *scheduled}):
        group_id = FileGroupId(partition_path, file_id)
        instants = {*bases.get(file_id, ()), *logs.get(file_id, ())}
        if file_id in scheduled:
            instants.add(scheduled[file_id])
        slices = tuple(
            FileSlice(
                group_id, instant, bases.get(file_id, {}).get(instant), tuple(logs.get(file_id, {}).get(instant, ()))
            )
            for instant in sorted(instants, key=sort_key)
        )
        groups.append(FileGroup(group_id, slices))
    return tuple(groups)


def merged_slice(slices: Iterable[FileSlice], until: str | None = None) -> FileSlice | None:
    """The slice that a reader as of `until` (None: now) merges; None when nothing of the group is there then.

    A slice without a base file continues the one before it (a compaction is pending between them): its logs come
    after the older ones, and its base instant names the log files to come.
    """
    merged: FileSlice | None = None
    for piece in slices:
        if until is not None and sort_key(piece.base_instant) > sort_key(until):
            break
        if piece.base is not None or merged is None:
            merged = piece
        else:
            merged = FileSlice(piece.group, piece.base_instant, merged.base, merged.logs + piece.logs)
    return merged


def _counts(base: BaseFile, timeline: Timeline, committed: CommittedFiles, table: str) -> bool:
    if not timeline.sees(base.instant):
        return False
    size = committed.base_size(base.path, base.instant)
    if size is None or size == 0:
        return True
    if size > base.size_bytes:
        raise CorruptFileError(_shorter(base.path, size, base.size_bytes, table))
    return size > 0  # -1: a second try's leftover that its commit does not name


def _checked_logs(found: list[LogFile], sizes: Mapping[str, int], table: str) -> list[LogFile]:
    checked = []
    for log in found:
        size = sizes.get(log.path)
        if size is not None and size > log.size_bytes:
            raise CorruptFileError(_shorter(log.path, size, log.size_bytes, table))
        checked.append(log._replace(committed_bytes=size))
    return sorted(checked, key=_reading_order)


def _reading_order(log: LogFile) -> tuple[str, int, tuple[int, ...], str]:
    name = parse_log_file(log.name)
    return log_sort_key(name) if name else (log.base_instant, log.version, (), log.name)


def _shorter(path: str, committed: int, found: int, table: str) -> str:
    return (
        f"{path} of table {table} is truncated: its commit wrote {committed} bytes, {found} are there; "
        "restore the file from a copy, or roll the table back to before that commit"
    )
