"""From one state of the timeline to a later one: can the files of a table be followed by metadata alone, and what changes. Pure.

Whoever follows has seen the instants of the older timeline and sees those of the newer one. What was completed and archived in
between he can not see. `lost_track` says whether that may have been.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from hoodie.model.enums import Action
from hoodie.model.files import BaseFile
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import COMPLETES_AS, PARTITION_METADATA, name_of, parse_base_file, parse_log_file
from hoodie.model.payloads import CleanedPartition, CommitMetadata, RollbackPartition, WriteStat
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.view.commit_files import CommittedFiles
from hoodie.view.file_store import Files

UNDOING = (Action.ROLLBACK, Action.RESTORE)
_REMOVING = (Action.CLEAN, *UNDOING)
_CHANGE_LOG = ".cdc"
_APPENDING = (Action.DELTACOMMIT, Action.LOGCOMPACTION)


def completed(timeline: Timeline) -> frozenset[tuple[InstantTime, Action]]:
    """Time and action of what is completed."""
    return frozenset((i.time, i.action) for i in timeline if i.is_completed)


def lost_track(
    old: Timeline, new: Timeline, *, undone: Collection[str], has_archived: Callable[[], bool]
) -> str | None:
    """Why the files cannot be followed from `old` to `new`; None where they can.

    Commits are archived from the oldest on, but for savepointed ones, and an instant that came after `old` was loaded is greater
    than all of its instants. So as long as a write that `old` has completed is not before the newer timeline's beginning, none that
    came later was archived. Cleans, rollbacks and restores may be archived by their number, each action by itself: there the newest
    that is known has to be on the timeline still. Where neither tells, the archive itself is looked at.

    Args:
        undone: times of the instants that the rollbacks and restores of `new` have taken back, or are going to.
        has_archived: whether something was archived since before `old` was loaded.
    """
    there, before = completed(new), completed(old)
    first = _first_write(new)
    remaining = [i for i in old.commits if i.time not in undone]
    is_bound = bool(remaining) and not _is_before(remaining[-1], first)
    missing = [i for i in remaining if (i.time, i.action) not in there]
    for instant in missing:
        if not _is_before(instant, first):
            return f"{instant} is gone from the timeline, and nothing says why"
    if not is_bound and (missing or has_archived()):
        return "commits were archived since"
    for instant in old.pending():
        reason = None if instant.time in undone else _vanished(instant, new, there, first, has_archived)
        if reason is not None:
            return reason
    for action in _REMOVING:
        newest = max((time for time, other in before if other is action), default=None)
        if newest is not None and (newest, action) in there:
            continue
        fresh = any(other is action and (time, other) not in before for time, other in there)
        if (fresh or not is_bound) and has_archived():
            return f"instants of the action {action} were archived since"
    return None


def _first_write(timeline: Timeline) -> Instant | None:
    """The first write that no savepoint holds back: nothing after it was archived."""
    saved = {i.time for i in timeline if i.action is Action.SAVEPOINT and i.is_completed}
    writes = (i for i in timeline if i.action in WRITES or i.action in COMPLETES_AS)
    return next((i for i in writes if i.time not in saved), None)


def _is_before(instant: Instant, first: Instant | None) -> bool:
    return first is None or instant.time < first.time


def _vanished(
    instant: Instant,
    new: Timeline,
    there: Collection[tuple[InstantTime, Action]],
    first: Instant | None,
    has_archived: Callable[[], bool],
) -> str | None:
    """Why a pending instant that is not on the newer timeline any more may have left files."""
    action = COMPLETES_AS.get(instant.action, instant.action)
    if (instant.time, action) in there or any(i.time == instant.time and not i.is_completed for i in new):
        return None
    if action in WRITES and _is_before(instant, first):
        return f"{instant} is gone from the timeline, and may have been archived" if has_archived() else None
    # What has no completed commit counts nowhere but in logs, which may have its blocks. A rollback may have been completed, and be
    # taken away by a restore.
    leaves = action in _REMOVING or instant.action in _APPENDING
    return f"{instant} is gone from the timeline, and nothing says why" if leaves else None


@dataclass
class PartitionChange:
    """What happened to the files of one partition, by names. In this order: undone, written, cleaned."""

    undone: set[str] = field(default_factory=set)
    disarming: dict[str, int] = field(default_factory=dict)
    """Logs that rollbacks wrote: name -> size. A later rollback takes one away with the slice in which it lies."""
    written: dict[str, int] = field(default_factory=dict)
    """Name -> size."""
    grown: dict[str, int] = field(default_factory=dict)
    """The same, of files that need not be there."""
    log_paths: set[str] = field(default_factory=set)
    """Logs that a commit has seen in its slices."""
    cleaned: set[str] = field(default_factory=set)
    unclear: bool = False
    """Only a listing tells what is there now."""

    def add_written(self, partition_path: str, stat: WriteStat) -> None:
        """What a commit says of one file that it wrote into this partition."""
        if not stat.path:
            return
        folder, _, name = stat.path.rpartition("/")
        base, log = parse_base_file(name), parse_log_file(name)
        if log is not None and log.suffix:
            return
        if (base is None and log is None) or folder != partition_path or stat.file_size_bytes <= 0:
            self.unclear = True
            return
        self.written[name] = max(stat.file_size_bytes, self.written.get(name, 0))
        self.log_paths.update(each for each in stat.log_files if not each.endswith(_CHANGE_LOG))

    def applied(self, files: Files) -> Files | None:
        """The files after it; None where only a listing tells. To apply it twice changes nothing more."""
        if self.unclear or not self.disarming.keys().isdisjoint(self.undone | self.cleaned):
            return None
        after = {name: size for name, size in files.items() if name not in self.undone}
        for name, size in (*self.disarming.items(), *self.written.items()):
            after[name] = max(size, after.get(name, 0))
        for name, size in self.grown.items():
            if name in after:
                after[name] = max(size, after[name])
        if not self.log_paths <= after.keys():
            return None
        if (self.written or self.disarming) and not any(name.startswith(PARTITION_METADATA) for name in after):
            if files:
                return None
            after[PARTITION_METADATA] = 0  # who writes into a partition first makes it one
        for name in self.cleaned:
            after.pop(name, None)
        return after


class Changes:
    """What instants did to the files of a table, gathered by partition."""

    def __init__(self) -> None:
        self.partitions: dict[str, PartitionChange] = {}
        self.instants = 0
        """How many did it."""
        self.undone: set[str] = set()
        """Times of completed instants that were undone: partitions that have files of them are listed anew."""

    def of(self, partition_path: str) -> PartitionChange:
        return self.partitions.setdefault(partition_path, PartitionChange())

    def add_commit(self, metadata: CommitMetadata) -> None:
        for partition_path, stats in metadata.write_stats.items():
            change = self.of(partition_path)
            for stat in stats:
                change.add_written(partition_path, stat)

    def add_rollback(self, partitions: Iterable[RollbackPartition]) -> None:
        """Of an instant that was never completed. What it deletes its plan named, also when it was carried on after a crash."""
        for each in partitions:
            change = self.of(each.partition_path)
            change.undone.update(map(name_of, each.deleted))
            change.disarming.update({name_of(path): size for path, size in each.rollback_log_files.items()})
            change.grown.update({name_of(path): size for path, size in each.failed_log_files.items()})
            change.unclear |= bool(each.failed)

    def add_restore(self, partitions: Iterable[RollbackPartition], undone: Iterable[str]) -> None:
        """Of completed instants. A restore that was carried on after a crash does not say what was deleted before that."""
        self.undone.update(undone)
        for each in partitions:
            self.of(each.partition_path).unclear = True

    def add_clean(self, partitions: Iterable[CleanedPartition]) -> None:
        for each in partitions:
            change = self.of(each.partition_path)
            change.cleaned.update(each.deleted)
            change.unclear |= bool(each.failed) or each.is_gone


def has_files_of(files: Files, times: Collection[str]) -> bool:
    """Whether one of the files was written by one of these instants, or is a log of a slice that it began."""
    for name in files:
        base, log = parse_base_file(name), parse_log_file(name)
        if (base is not None and base.instant in times) or (log is not None and log.base_instant in times):
            return True
    return False


def counted_files(
    partition_path: str, infos: Iterable[FileInfo], timeline: Timeline, committed: CommittedFiles
) -> dict[str, int]:
    """Of a listing what can be followed: files that count, and logs that may.

    What is left out counts nowhere: a base file of an instant that is not completed comes by that one's metadata, and one that its
    commit does not name is taken away without a word on the timeline, and before its commit is archived.
    """
    result = {}
    for info in infos:
        name = name_of(info.path)
        base, log = parse_base_file(name), parse_log_file(name)
        if info.is_folder:
            continue
        if base is not None:
            file = BaseFile(partition_path, base.file_id, base.instant, name, info.size_bytes)
            counts = timeline.sees(base.instant) and committed.base_size(file) != -1
        elif log is not None:
            counts = not log.suffix and timeline.layout.may_count(log.base_instant, timeline.sees)
        else:
            counts = name.startswith(PARTITION_METADATA)
        if counts:
            result[name] = info.size_bytes
    return result
