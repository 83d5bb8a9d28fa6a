"""Take the files of undone instants out of partitions (table version 6): a task for each share of the partitions.

A base file of an undone instant is deleted, and with it the whole slice: a log that is named with an undone instant would go on
making a slice, and later writers would name theirs alike. In slices that stay, log files stay, too, and a new one with rollback
blocks disarms what undone instants appended: blocks are told by instant, and one that has left the active timeline would count.

Every step may have been done before, or be done by another process at the same time.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from hoodie.errors import CorruptFileError
from hoodie.format.log_block import LogBlock, rollback_block, scan_blocks
from hoodie.model.enums import HeaderKey
from hoodie.model.instant import InstantTime
from hoodie.model.names import (
    LogFileName,
    WriteToken,
    folder_of,
    format_log_file,
    join,
    parse_base_file,
    parse_log_file,
)
from hoodie.storage.base import FileInfo, Storage


@dataclass(frozen=True)
class UndoTask:
    """Some partitions, and what is known of the logs in them."""

    partitions: tuple[str, ...]
    undone: frozenset[str]
    """Instant times."""
    committed: Mapping[str, int]
    """Path of a log file -> its size as commits that stay have it: in so many bytes there is nothing to disarm."""
    size_of: Mapping[str, int] = field(default_factory=dict)
    """Path of a file that an undone commit names -> its size. If a listing does not show it yet, it goes all the same."""


class DisarmedLog(NamedTuple):
    """A log file with blocks of an undone instant, which stays."""

    name: str
    size_bytes: int
    rollback_log: str
    """Path of the log file that disarms them, relative to the table."""
    rollback_bytes: int


@dataclass
class UndonePart:
    """What was done for one instant in one partition."""

    partition_path: str
    instant: InstantTime
    deleted: dict[str, int] = field(default_factory=dict)
    """Name of each file that was deleted -> its size."""
    disarmed: list[DisarmedLog] = field(default_factory=list)


def run_undo(storage: Storage, rollback_time: str, task: UndoTask) -> list[UndonePart]:
    """Take the undone instants out of the partitions; `rollback_time` is the instant that the new blocks name."""
    return [part for partition_path in task.partitions for part in _undo(storage, rollback_time, partition_path, task)]


def doomed_by(name: str, undone: frozenset[str]) -> InstantTime | None:
    """The undone instant with which a data file has to go; None for one that stays."""
    base, log = parse_base_file(name), parse_log_file(name)
    instant = base.instant if base is not None else log.base_instant if log is not None else None
    return instant if instant in undone else None


def _undo(storage: Storage, rollback_time: str, partition_path: str, task: UndoTask) -> Iterable[UndonePart]:
    parts: dict[InstantTime, UndonePart] = {}

    def part_of(instant: InstantTime) -> UndonePart:
        return parts.setdefault(instant, UndonePart(partition_path, instant))

    infos = [info for info in storage.list(partition_path) if not info.is_folder]
    infos += _unlisted(storage, task.size_of, partition_path, {info.path for info in infos})
    doomed = []
    for info in infos:
        instant = doomed_by(info.name, task.undone)
        if instant is not None:
            doomed.append(info.path)
            part_of(instant).deleted[info.name] = info.size_bytes
    slices: dict[tuple[str, InstantTime], dict[InstantTime, list[FileInfo]]] = {}
    for info in infos:
        log = parse_log_file(info.name)
        if log is None or log.base_instant in task.undone or task.committed.get(info.path) == info.size_bytes:
            continue
        for instant in instants_in(storage, info.path) & task.undone:
            slices.setdefault((log.file_id, log.base_instant), {}).setdefault(instant, []).append(info)
    for (file_id, base_instant), logs in slices.items():
        targets = sorted(logs, reverse=True)
        path, size = disarm(storage, partition_path, file_id, base_instant, rollback_time, targets)
        for instant, infos_of_instant in logs.items():
            part_of(instant).disarmed += [
                DisarmedLog(info.name, info.size_bytes, path, size) for info in infos_of_instant
            ]
    storage.each(storage.delete, doomed)
    return parts.values()


def _unlisted(
    storage: Storage, size_of: Mapping[str, int], partition_path: str, seen_paths: Container[str]
) -> list[FileInfo]:
    """The files of the partition that exist although its listing did not show them."""
    unseen = [path for path in size_of if folder_of(path) == partition_path and path not in seen_paths]
    there = storage.each(storage.exists, unseen)
    return [
        FileInfo(path, size_of[path], 0.0, False, None)
        for path, is_there in zip(unseen, there, strict=True)
        if is_there
    ]


def instants_in(storage: Storage, path: str) -> frozenset[InstantTime]:
    """The instants that have data or deletes in a log file; none where it is gone or not readable."""
    try:
        blocks = list(scan_blocks(storage.read(path)))
    except (FileNotFoundError, CorruptFileError):
        return frozenset()
    return frozenset(
        InstantTime(b.header.get(HeaderKey.INSTANT_TIME, ""))
        for b in blocks
        if isinstance(b, LogBlock) and HeaderKey.TARGET_INSTANT_TIME not in b.header
    )


def disarm(
    storage: Storage,
    partition_path: str,
    file_id: str,
    base_instant: InstantTime,
    rollback_time: str,
    targets: Sequence[str],
) -> tuple[str, int]:
    """A log file with a rollback block for each target, behind every log file of the slice. Written once, also when resumed.

    Apache Hudi takes them one after the other off the end of what it has read: so the newest comes first.
    """
    blocks = b"".join(rollback_block(instant=rollback_time, target=target) for target in targets)
    while True:
        highest = 0
        for info in storage.list(partition_path):
            parsed_name = parse_log_file(info.name)
            if parsed_name is None or (parsed_name.file_id, parsed_name.base_instant) != (file_id, base_instant):
                continue
            highest = max(highest, parsed_name.version)
            if info.size_bytes == len(blocks) and storage.read(info.path) == blocks:
                return info.path, len(blocks)
        name = format_log_file(LogFileName(file_id, base_instant, highest + 1, str(WriteToken(0, 0, 0))))
        path = join(partition_path, name)
        # Taken: another rollback, or the same one in another process, disarms something in this slice just now.
        with suppress(FileExistsError):
            storage.create_new(path, blocks)
            return path, len(blocks)
