"""Whether a write may still be published on the timeline as it is now. Pure: values in, a reason or nothing out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.payloads import CommitMetadata

BasedOn = Mapping[FileGroupId, InstantTime]
"""Existing file group -> base instant of the slice that the write was planned on."""
Partitions = frozenset[str] | None
"""Partition paths; None: all of the table, also those that others are making."""


@dataclass(frozen=True)
class WriteBasis:
    """What a write rests on. It may be published only while this is so."""

    based_on: BasedOn = field(default_factory=dict)
    """The groups that it changes or replaces."""
    absent_in: Partitions = frozenset()
    """Where it found keys to be absent (it inserts them, or need not delete them), or replaces all rows."""
    appended: Mapping[FileGroupId, int] = field(default_factory=dict)
    """Those of the groups that it only adds logs to, with nothing in them of what is stored -> the lowest version of these logs."""
    heeds_deletes: bool = False
    """What it adds to logs may bring a row back that a log before it deletes."""
    non_blocking: bool = False
    """It only appends, and so do others in the same manner: it rests on nothing that a log or a compaction changes."""
    starts: frozenset[FileGroupId] = frozenset()
    """File groups that it begins with a log, as others may."""
    heeds_others: bool = True
    """What others write to the groups matters. If not, the slices must be the same, and no more."""


class Conflict(NamedTuple):
    reason: str
    mends: bool
    """The write may keep its instant, which is greater than those of the others: what they changed is looked up and written again."""


ABSENT_IN = "hoodie.python.absent.in"
"""Key in a commit's extra metadata: a JSON list of the partitions in which a delete found keys to be absent; null: in all."""


def format_absent_in(partitions: Partitions) -> dict[str, str]:
    """The entry of a delete's metadata."""
    if partitions is None:
        return {ABSENT_IN: "null"}
    return {ABSENT_IN: json.dumps(sorted(partitions))} if partitions else {}


def find_missed_delete(
    instant: InstantTime, ours: CommitMetadata, absent_in: Partitions, others: Iterable[tuple[Instant, CommitMetadata]]
) -> str | None:
    """The reason why a write must not be published whose rows a later instant's delete did not find; None without one.

    In the order of the timeline that delete comes after these rows, and they would be there all the same. The other way round
    `find_conflict` sees it.

    Args:
        instant: of the write. absent_in: as `find_conflict` takes it. others: writes that were completed since it started.
    """
    inserted = {path for path, stats in ours.write_stats.items() if any(stat.num_inserts for stat in stats)}
    exposed = {path for path in inserted if _among(path, absent_in)}
    for other, metadata in others:
        theirs = _absent_in(metadata)
        missed = sorted(path for path in exposed if _among(path, theirs)) if other.time > instant else ()
        if missed:
            return (
                f"{other} found keys that it deletes absent from partition {missed[0]!r}, into which this write inserts"
            )
    return None


def _absent_in(metadata: CommitMetadata) -> Partitions:
    """Nothing where the entry is damaged: it is no more than a hint for writers of this moment."""
    try:
        paths = json.loads(metadata.extra.get(ABSENT_IN, "[]"))
    except ValueError:
        return frozenset()
    if paths is None:
        return None
    return frozenset(path for path in paths if isinstance(path, str)) if isinstance(paths, list) else frozenset()


def find_conflict(
    instant: InstantTime,
    footing: WriteBasis,
    *,
    current: Mapping[FileGroupId, FileSlice | None],
    others: Iterable[tuple[Instant, CommitMetadata]],
    logs_move: bool = False,
) -> Conflict | None:
    """Why a write must not be published as it is, or None. Of several conflicts one that cannot be mended.

    Logs of two writes in one slice are no conflict when the later instant has the higher version: readers merge them in the order
    of versions, and so in that of the timeline (as in Hudi's RFC-66, non-blocking concurrency control). Deletes are one where the
    later log may be in vain behind them (`filegroup/deleted_rows.py`).

    Args:
        instant: of the write.
        current: the slices of its groups now; None when a group was replaced or is gone.
        others: writes that were completed since this one started, compactions among them.
        logs_move: a log belongs to the base file that began before the log was completed (versions 8 and 9, merge-on-read). So one
            that was completed since would be merged once more, onto a base file of this instant that has it merged already:
            nothing can be mended.
    """
    first = None
    heeded = others if footing.heeds_others else ()
    conflicts_of = _of_non_blocking if footing.non_blocking else _conflicts
    for conflict in conflicts_of(instant, footing, current, heeded):
        if logs_move:
            conflict = conflict._replace(mends=False)
        if not conflict.mends:
            return conflict
        first = first or conflict
    return first


def _conflicts(
    instant: InstantTime,
    footing: WriteBasis,
    current: Mapping[FileGroupId, FileSlice | None],
    others: Iterable[tuple[Instant, CommitMetadata]],
) -> Iterator[Conflict]:
    for group, base_instant in footing.based_on.items():
        now = current.get(group)
        where = f"file group {group.file_id} in partition {group.partition_path!r}"
        if now is None:
            yield Conflict(f"{where} was replaced by another write", mends=False)
        elif now.base_instant != base_instant:
            reason = f"{where} moved from slice {base_instant} to {now.base_instant} in the meantime"
            yield Conflict(reason, mends=now.base_instant < instant)
    for other, metadata in others:
        if metadata.operation is WriteOperation.LOG_COMPACT:
            continue  # what it wrote stands before everything that is newer than its plan, in whatever order they are completed
        earlier = other.time < instant
        for stat in metadata.stats():
            group = FileGroupId(stat.partition_path, stat.file_id)
            if group in footing.based_on:
                version = footing.appended.get(group)
                before = version is not None and stat.log_version is not None and stat.log_version < version
                if earlier and before and not (footing.heeds_deletes and stat.num_deletes):
                    continue
                # A compaction too: it may have dropped a deleted key that this write's log brings back. Such a key would be
                # in no base file, and a look-up made between the two commits would take it for new.
                reason = f"{other} changed file group {group.file_id} in partition {group.partition_path!r} too"
                yield Conflict(reason, mends=earlier)
            elif not _only_moves(metadata) and stat.num_inserts and _among(stat.partition_path, footing.absent_in):
                # Both may have inserted the same key, each into a file that the other could not see; or the other one a key
                # that this write would have deleted. Rows that come into a partition while it is overwritten are in neither
                # state of it.
                yield Conflict(f"{other} inserted into partition {stat.partition_path!r} too", mends=earlier)
        if metadata.operation in _OVERWRITES:
            emptied = next((p for p in metadata.replaced_file_ids if _among(p, footing.absent_in)), None)
            if emptied is not None:
                yield Conflict(f"{other} overwrote partition {emptied!r}", mends=False)


def _of_non_blocking(
    instant: InstantTime,
    footing: WriteBasis,
    current: Mapping[FileGroupId, FileSlice | None],
    others: Iterable[tuple[Instant, CommitMetadata]],
) -> Iterator[Conflict]:
    """Logs of a replaced file group do not count, and a bucket must not begin in two file groups."""
    for group, now in current.items():
        if now is None:
            reason = f"file group {group.file_id} in partition {group.partition_path!r} was replaced by another write"
            yield Conflict(reason, mends=False)
    for other, metadata in others:
        for path, file_ids in metadata.replaced_file_ids.items():
            replaced_ids = [each for each in file_ids if FileGroupId(path, each) in footing.starts]
            if replaced_ids or _among(path, footing.absent_in):
                yield Conflict(f"{other} replaced file groups of partition {path!r}", mends=False)
        new_groups = [stat for stat in metadata.stats() if stat.log_version is None and stat.num_inserts]
        for stat in () if _only_moves(metadata) else new_groups:
            if _among(stat.partition_path, footing.absent_in):
                yield Conflict(f"{other} inserted into partition {stat.partition_path!r} too", mends=False)


def _only_moves(metadata: CommitMetadata) -> bool:
    """Whether a commit brings no rows. Those that a clustering writes to new files count as inserts in its metadata."""
    return metadata.compacted or metadata.operation is WriteOperation.CLUSTER


_OVERWRITES = (
    WriteOperation.INSERT_OVERWRITE,
    WriteOperation.INSERT_OVERWRITE_TABLE,
    WriteOperation.DELETE_PARTITION,
)
"""Not clustering: that replaces file groups, and no row by it."""


def _among(partition_path: str, partitions: Partitions) -> bool:
    return partitions is None or partition_path in partitions


def find_schema_conflict(
    instant: InstantTime,
    *,
    before: pa.Schema | None,
    ours: pa.Schema | None,
    others: Iterable[tuple[Instant, pa.Schema | None]],
) -> str | None:
    """The reason why a write would undo a change of the table's columns, or why its own would be undone; None without one.

    The table's columns are those of its newest commit. Of two writes at once that have different columns only the
    greater instant's would stay, whichever is published first.

    Args:
        before: the table's columns when the write started; None: nothing stated them yet.
        ours: those that this write states. others: of each write completed since it started, those that it states.
    """
    for other, theirs in others:
        if theirs is None or ours is None or theirs == ours:
            continue
        losing = theirs if other.time < instant else ours
        if losing != before:
            return f"{other} has other columns, or other types of them, and only those of the newest commit would stay"
    return None
