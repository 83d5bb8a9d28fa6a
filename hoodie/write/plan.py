"""Tagged rows -> write tasks. Pure: which file of which file group takes which rows.

Updates go to the file group that holds the key: as a log file on merge-on-read tables, as a new base file on
copy-on-write ones. New rows fill small files up to the target size, then start new file groups.

On merge-on-read tables new rows go to base files too (`hoodie.python.mor.inserts=base_file`): keys that live only in
logs would be invisible to Apache Hudi's bloom index, and its next upsert would duplicate them. A small file takes more
rows only while that costs a small multiple of them, so a round of inserts never rewrites much of the table.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from hoodie.model.enums import TableType
from hoodie.model.files import FileGroupId, FileSlice, LogFile
from hoodie.model.instant import InstantTime
from hoodie.model.late import once
from hoodie.model.names import new_file_id
from hoodie.model.plans import (
    COLUMNAR_SHRINK,
    AppendTask,
    ChunkPiece,
    CreateTask,
    Inserts,
    LookupResult,
    Matches,
    MergeTask,
    RowsTask,
    WriteTask,
)
from hoodie.model.tuning import TUNING

MAX_GROWTH = 4
"""Merge-on-read: a base file is rewritten for inserts only while it is at most this many times as large as they are."""
SPARING_GROWTH = 1.5
"""The same beside Parquet log blocks, which are chosen for few bytes: rewriting is then the greater part of what a round of inserts
writes. Inserts of equal size are written 1.5 times instead of 3, and leave files of 2 of them instead of 5."""


@dataclass(frozen=True)
class Sizing:
    """Target sizes of base files, bytes."""

    max_file_bytes: int
    small_file_bytes: int
    max_growth: float = MAX_GROWTH
    cheap_bytes: int = 0
    """Merge-on-read: what is smaller is rewritten for however few inserts."""
    append_bytes: int = TUNING.append_bytes


@dataclass(frozen=True)
class TaggedBatch:
    """What the look-up found out about a batch."""

    pieces: Mapping[str, Sequence[ChunkPiece]]
    """By partition path, in arrival order."""
    lookups: Sequence[LookupResult] = ()
    inserts: bool = True
    """Rows whose key is not stored are inserted (not so for deletes)."""
    updates: bool = True
    """Rows whose key is stored go to the file group that has it (not so for inserts that drop them)."""
    concat: bool = False
    """Rows that come into an existing base file leave the rows there that have the same key."""
    ranged: bool = False
    """Chunks are sorted by partition path and key: each new file takes a range of keys (see `Inserts` for the other way)."""
    in_whole_table: bool = False
    """Keys were looked up in all partitions, so that a key which was not found is absent in the whole table."""
    aside: Mapping[str, Sequence[Matches]] = field(default_factory=dict)
    """By partition path: rows of the batch that are not written; other rows stand for them."""
    read: frozenset[FileGroupId] = frozenset()
    """File groups whose rows decided where rows of the batch go."""
    origins: frozenset[FileGroupId] = frozenset()
    """File groups that rows leave for other partitions. On merge-on-read tables too they get a new base file where they can: the
    read-optimized view would have such a row in both places until a compaction."""

    @once
    def lookups_in(self) -> Mapping[str, Sequence[LookupResult]]:
        """By partition path; a plan asks for them once a partition."""
        by_path: dict[str, list[LookupResult]] = {}
        for result in self.lookups:
            by_path.setdefault(result.base.partition_path, []).append(result)
        return by_path


@dataclass(frozen=True)
class WritePlan:
    tasks: tuple[WriteTask, ...]
    based_on: Mapping[FileGroupId, InstantTime]
    """Existing file groups that the tasks change -> base instant of the slice."""
    absent_in: frozenset[str] | None
    """Partitions in which keys were found to be absent, for rows to be inserted or for a delete to leave out, or all of whose rows
    are replaced: they stand in the way of others' inserts. None: the whole table."""
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By partition path: ids of the file groups that the write replaces; in `based_on` too."""
    origins: frozenset[FileGroupId] = frozenset()
    """As `TaggedBatch` has it: what is written elsewhere depends on their rows."""
    starts: frozenset[FileGroupId] = frozenset()
    """File groups that begin with a log: other non-blocking writers may begin them, too."""


@dataclass(frozen=True)
class Target:
    """What rows may be written to."""

    slices: Sequence[FileSlice]
    """The newest ones of the batch's partitions, merged over pending compactions; none where the write replaces them."""
    table_type: TableType
    sizing: Sizing
    busy: frozenset[FileGroupId] = frozenset()
    """File groups in a pending compaction or clustering; they get no new base file for rows that may go elsewhere."""
    log_versions: Mapping[FileGroupId, int] = field(default_factory=dict)
    """The highest that other writes, which are under way, are going to use."""
    own_logs: bool = False
    """As in `WriteContext`."""
    deletes: Mapping[FileGroupId, tuple[LogFile, ...]] = field(default_factory=dict)
    """The logs with deletes that a stored row may outlive."""
    packs: bool = True
    """New rows may fill small files (not so for bulk_insert)."""
    table: str = ""
    """Where it lies, for errors."""
    starts_logs: bool = False
    """New buckets begin with a log, in a file group whose id all writers know beforehand: never with a base file."""
    replaced: Collection[FileGroupId] = frozenset()
    """File groups whose ids are spent."""


def plan_write(tagged: TaggedBatch, target: Target) -> WritePlan:
    """Tasks for a tagged batch."""
    by_partition: dict[str, list[FileSlice]] = {}
    for file_slice in target.slices:
        by_partition.setdefault(file_slice.group.partition_path, []).append(file_slice)
    results_of: dict[FileGroupId, list[LookupResult]] = {}
    for result in tagged.lookups if tagged.updates else ():
        if result.matched:
            results_of.setdefault(FileGroupId(result.base.partition_path, result.base.file_id), []).append(result)
    tasks: list[WriteTask] = []
    based_on: dict[FileGroupId, InstantTime] = {}
    for partition_path, pieces in tagged.pieces.items():
        inserts = _insert_shares(tagged, partition_path, by_partition.get(partition_path, []), target)
        for file_slice in by_partition.get(partition_path, []):
            matches = tuple(m for r in results_of.get(file_slice.group, ()) for m in r.matches)
            share = inserts.pop(file_slice.group.file_id, None)
            if not matches and share is None:
                continue
            leaves = file_slice.group in tagged.origins and file_slice.group not in target.busy
            merge = target.table_type is TableType.COPY_ON_WRITE or share is not None or leaves
            based_on[file_slice.group] = file_slice.base_instant
            common = RowsTask(
                number=len(tasks),
                partition_path=partition_path,
                file_id=file_slice.group.file_id,
                pieces=tuple(pieces),
                updates=matches,
                inserts=share,
            )
            tasks += (
                [merge_of(common, file_slice, concat=tagged.concat)] if merge else append_of(common, file_slice, target)
            )
        first = len(tasks)  # before the list grows: task numbers make sequence numbers, no two may be alike
        tasks.extend(
            CreateTask(number=first + i, partition_path=partition_path, file_id=file_id, inserts=share)
            for i, (file_id, share) in enumerate(inserts.items())
        )
    absent = frozenset(t.partition_path for t in tasks if t.inserts is not None)
    if tagged.updates and not tagged.inserts:
        matches_of = {path: _matches_in(tagged, path, by_partition.get(path, ())) for path in tagged.pieces}
        absent |= {path for path in tagged.pieces if _fresh(tagged, path, matches_of[path])}
    for file_slice in target.slices:
        if file_slice.group in tagged.read:
            based_on[file_slice.group] = file_slice.base_instant
    everywhere = tagged.in_whole_table and bool(absent)
    return WritePlan(tuple(tasks), based_on, None if everywhere else absent, origins=tagged.origins)


def append_of(rows: RowsTask, file_slice: FileSlice, target: Target) -> list[AppendTask]:
    """The rows in a log file; where they are many in several, by tasks with numbers and log versions that follow each other."""
    version = 1
    if not target.own_logs:
        version = max(next_log_version(file_slice), 1 + target.log_versions.get(file_slice.group, 0))
    task = AppendTask(
        **vars(rows),
        slice=file_slice,
        log_version=version,
        deletes=target.deletes.get(file_slice.group, ()),
        busy=file_slice.group in target.busy,
    )
    of = max(1, -(-task.size_bytes // target.sizing.append_bytes))
    return [
        replace(task, number=task.number + share, log_version=task.log_version + share, share=share, of=of)
        for share in range(of)
    ]


def rewriting(plan: WritePlan, groups: Collection[FileGroupId]) -> WritePlan:
    """The plan with a new base file of these file groups in place of logs."""
    tasks: list[WriteTask] = []
    for task in plan.tasks:
        if not isinstance(task, AppendTask) or task.busy or task.slice.group not in groups:
            tasks.append(task)
        elif task.share == 0:
            common = {each.name: getattr(task, each.name) for each in fields(RowsTask)}
            tasks.append(merge_of(RowsTask(**common), task.slice))
    return replace(plan, tasks=tuple(tasks))


def merge_of(rows: RowsTask, file_slice: FileSlice, *, concat: bool = False) -> MergeTask:
    return MergeTask(**vars(rows), slice=file_slice, concat=concat)


def next_log_version(file_slice: FileSlice) -> int:
    """One above every log file of the slice that storage lists, uncommitted ones included."""
    return 1 + max((log.version for log in file_slice.logs if log.base_instant == file_slice.base_instant), default=0)


def _insert_shares(
    tagged: TaggedBatch, partition_path: str, slices: Sequence[FileSlice], target: Target
) -> dict[str, Inserts]:
    """File id -> its share of the partition's new rows; ids that are not in the slices are new file groups."""
    pieces = tuple(tagged.pieces[partition_path])
    matches = _matches_in(tagged, partition_path, slices)
    fresh = _fresh(tagged, partition_path, matches)
    if not tagged.inserts or fresh <= 0:
        return {}
    row_bytes = _row_bytes(tagged, pieces, partition_path)
    room: list[tuple[str, int]] = []
    remaining = fresh
    if target.packs:
        capacities = [(file_slice, _capacity(file_slice, fresh, row_bytes, target)) for file_slice in slices]
        with_room = [(file_slice, capacity) for file_slice, capacity in capacities if capacity > 0]
        for file_slice, capacity in sorted(with_room, key=lambda each: each[0].size_bytes):
            if remaining > 0:
                room.append((file_slice.group.file_id, min(capacity, remaining)))
                remaining -= min(capacity, remaining)
    per_file = max(1, int(target.sizing.max_file_bytes / row_bytes))
    files = math.ceil(remaining / per_file) if remaining > 0 else 0
    if tagged.ranged:
        return {new_file_id(): share for share in _key_ranges(pieces, math.ceil(fresh / files))}
    room += [(new_file_id(), math.ceil(remaining / files)) for _ in range(files)]
    total = sum(rows for _, rows in room)
    shares: dict[str, Inserts] = {}
    low = 0
    for file_id, rows in room:
        # A single file takes all without hashing; else rows of one key meet in one file, whatever chunk they are in.
        single = len(room) == 1
        shares[file_id] = Inserts(
            pieces, matches, 0 if single else low, 1 if single else low + rows, 1 if single else total, rows
        )
        low += rows
    return shares


def _matches_in(tagged: TaggedBatch, partition_path: str, slices: Sequence[FileSlice]) -> tuple[Matches, ...]:
    """The rows whose keys are in these slices of the partition, and the rows that others stand for."""
    file_ids = {s.group.file_id for s in slices}
    lookups = tagged.lookups_in.get(partition_path, ())
    stored = [m for r in lookups if r.base.file_id in file_ids for m in r.matches]
    return (*stored, *tagged.aside.get(partition_path, ()))


def _fresh(tagged: TaggedBatch, partition_path: str, stored_matches: Sequence[Matches]) -> int:
    """How many rows of a partition have other keys than these."""
    rows = sum(piece.span.length for piece in tagged.pieces[partition_path])
    return max(0, rows - sum(matches.count for matches in stored_matches))


def _key_ranges(pieces: Sequence[ChunkPiece], rows: int) -> list[Inserts]:
    """The pieces, sorted in themselves, in the order of their keys, cut into shares of so many rows."""
    shares: list[list[ChunkPiece]] = [[]]
    room = rows
    for piece in sorted(pieces, key=lambda p: (p.span.min_key, p.span.max_key, p.number)):
        start, remaining = piece.span.start, piece.span.length
        while remaining > 0:
            if room == 0:
                shares.append([])
                room = rows
            length = min(room, remaining)
            shares[-1].append(replace(piece, span=replace(piece.span, start=start, length=length)))
            start, remaining, room = start + length, remaining - length, room - length
    return [Inserts(tuple(share), (), rows=sum(p.span.length for p in share)) for share in shares]


def _capacity(file_slice: FileSlice, fresh: int, row_bytes: float, target: Target) -> int:
    """Rows that a small file takes; 0 for files that are full, in a pending compaction, or too dear to rewrite."""
    sizing = target.sizing
    if (
        file_slice.base is None
        or file_slice.logs
        or file_slice.group in target.busy
        or file_slice.base.rows_bytes >= sizing.small_file_bytes
    ):
        return 0
    worth = max(sizing.max_growth * fresh * row_bytes, sizing.cheap_bytes)
    if target.table_type is TableType.MERGE_ON_READ and file_slice.base.rows_bytes > worth:
        return 0
    return int((sizing.max_file_bytes - file_slice.base.rows_bytes) / row_bytes)


def _row_bytes(tagged: TaggedBatch, pieces: Sequence[ChunkPiece], partition_path: str) -> float:
    """Stored size of a row: as the files of the partition show, else guessed from the batch."""
    files = [r for r in tagged.lookups_in.get(partition_path, ()) if r.record_count]
    if files:
        return max(1.0, sum(r.base.rows_bytes for r in files) / sum(r.record_count for r in files))
    chunks: dict[int, tuple[int, int]] = {p.number: (p.chunk.size_bytes, p.chunk.rows) for p in pieces}
    size, rows = sum(s for s, _ in chunks.values()), sum(n for _, n in chunks.values())
    return max(1.0, size / max(rows, 1) / COLUMNAR_SHRINK)
