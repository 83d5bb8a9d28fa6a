"""Whether the newest state of a table is whole: its files against what its commits say, and with `deep` its rows, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, HoodieError
from hoodie.filegroup.hashing import key_hash
from hoodie.filegroup.slice_reader import needed_columns, read_slice
from hoodie.format.base_file import BaseFileFooter, key_range, read_footer
from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.model.files import FileGroupId
from hoodie.model.findings import Finding, Level, ValidationResult
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.payloads import CommitMetadata
from hoodie.model.plans import ReadContext, ReadTask
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_read
from hoodie.storage.base import Storage
from hoodie.view.context import Snapshot, TableContext

_PART_BYTES = 256 * 1024 * 1024
"""Keys of so many bytes of files are compared at once."""
_SHOWN = 3
_BATCH_ROWS = 1 << 16


def validate(context: TableContext, *, deep: bool) -> ValidationResult:
    """Look at the newest state of the table. Nothing is changed."""
    context = context.on_storage()
    snapshot = context.snapshot()
    errors = list(problems(context, snapshot))
    found = [Finding("files", Level.DAMAGE, _shortened(context, error)) for error in errors]
    if errors:
        return ValidationResult(tuple(found), commits=len(snapshot.timeline.commits))
    slices = snapshot.view.latest_slices()
    rows = None
    if deep:
        more, rows = _look_into(context, snapshot)
        found += more
    return ValidationResult(
        tuple(found),
        commits=len(snapshot.timeline.commits),
        partitions=len({each.group.partition_path for each in slices}),
        file_groups=len(slices),
        size_bytes=sum(each.size_bytes for each in slices),
        rows=rows,
    )


def problems(context: TableContext, snapshot: Snapshot) -> Iterator[HoodieError]:
    """What keeps the newest state from being read, by partition: files that are gone or cut, metadata that do not decode."""
    commits = {}
    unreadable = False
    for instant in snapshot.timeline.commits:
        try:
            commits[instant.time] = context.active.read_commit(instant)
        except HoodieError as exc:
            unreadable = True
            yield exc
    if unreadable:
        return  # nothing can be told of files
    view = snapshot.view
    said: set[str] = set()
    for partition_path in (None, *_partitions(snapshot), ...):
        try:
            if partition_path is None:
                view.partitions()
            elif isinstance(partition_path, str):
                view.latest_slices([partition_path])
            elif not said:
                view.latest_slices()  # which also asks whether the folders are partitions
        except HoodieError as exc:
            if str(exc) not in said:
                said.add(str(exc))
                yield exc
    late = _changed_times(context, snapshot, commits)
    if late is not None:
        yield late


def _partitions(snapshot: Snapshot) -> Sequence[str]:
    try:
        return snapshot.view.every_partition()
    except HoodieError:
        return snapshot.view.committed.partitions


def _shortened(context: TableContext, error: HoodieError) -> str:
    return str(error).replace(f" of table {context.storage.uri}", "").removeprefix(f"{context.storage.uri}/")


def _changed_times(
    context: TableContext, snapshot: Snapshot, commits: Mapping[str, CommitMetadata]
) -> CorruptFileError | None:
    """Whether a commit looks as if it was completed after a compaction of what it wrote was planned.

    Apache Hudi 1.x takes the modification time for the time of completion, and would read such logs after the compaction.
    """
    timeline = snapshot.timeline
    if timeline.by_completion:
        return None
    compacted: dict[FileGroupId, list[str]] = {}
    for time in timeline.compactions & commits.keys():
        for group in _groups(commits[time]):
            compacted.setdefault(group, []).append(time)
    for instant in timeline.commits:
        older_than = [
            t for group in _groups(commits[instant.time]) for t in compacted.get(group, ()) if t > instant.time
        ]
        path = context.active.path(instant)
        if older_than and not context.clock.ahead_of(context.storage.stat(path).mtime_s, min(older_than)):
            return CorruptFileError(
                f"{path} of table {context.storage.uri} was modified after the compaction {min(older_than)} of what it wrote was "
                "planned: it is a copy that did not keep modification times, by which Apache Hudi 1.x orders log files; hoodie "
                "reads it all the same, for Apache Hudi copy it again, such as with `rsync -t`"
            )
    return None


def _groups(metadata: CommitMetadata) -> set[FileGroupId]:
    return {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats()}


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FileCheck:
    """Read one base file, and compare it with its footer and with its commit."""

    partition_path: str
    path: str
    rows: int | None
    """As its commit says; None: that is archived."""
    says_partition: bool
    """Its rows do, in `_hoodie_partition_path`."""


@dataclass(frozen=True)
class _KeyCheck:
    """Compare the keys of one partition, or of a share of them."""

    partition_path: str
    tasks: tuple[ReadTask, ...]
    share: int
    shares: int


@dataclass(frozen=True)
class _Keys:
    rows: int
    duplicates: int
    examples: tuple[str, ...]


def _look_into(context: TableContext, snapshot: Snapshot) -> tuple[list[Finding], int]:
    """What is wrong with the rows, and how many were read."""
    storage, engine, name = context.storage, context.engine, context.config.name
    checks = list(_file_checks(snapshot, says_partition=context.config.populate_meta_fields))
    found = [
        Finding("rows", Level.DAMAGE, what, check.path)
        for check, wrong in zip(
            checks, engine.run(partial(_run_file_check, storage), checks, label=f"validate {name}"), strict=True
        )
        for what in wrong
    ]
    plan = plan_read(context, ReadOptions(), meta_columns=True)
    key_checks = list(_key_checks([task for task in plan.tasks if isinstance(task, ReadTask)]))
    run = partial(_run_key_check, storage, plan.context)
    counted = engine.run(run, key_checks, label=f"validate keys of {name}")
    rows = 0
    for each, keys in zip(key_checks, counted, strict=True):
        if isinstance(keys, str):
            found.append(Finding("rows", Level.DAMAGE, keys))
            continue
        rows += keys.rows if each.share == 0 else 0
        if keys.duplicates:
            found.append(
                Finding(
                    "keys",
                    Level.DAMAGE,
                    f"{keys.duplicates:,} record keys stand more than once in partition {each.partition_path!r}, such as "
                    f"{', '.join(map(repr, keys.examples))}",
                    each.partition_path,
                    "An insert without look-up does that; to keep one row of each key, read the partition, drop the others, and "
                    "write it with insert_overwrite",
                )
            )
    return found, rows


def _file_checks(snapshot: Snapshot, *, says_partition: bool) -> Iterator[_FileCheck]:
    stated: dict[str, int] = {}
    for commit in snapshot.timeline.commits:
        for stat in snapshot.active.read_commit(commit).stats():
            if stat.log_version is None:
                stated[stat.path] = stat.num_writes
    for each in snapshot.view.latest_slices():
        if each.base is not None:
            path = each.base.path
            yield _FileCheck(each.group.partition_path, path, stated.get(path), says_partition)


def _run_file_check(storage: Storage, check: _FileCheck) -> list[str]:
    """What is wrong with a base file, in sentences."""
    path = check.path
    try:
        with storage.open_input(path) as source, open_parquet(source, path=path) as file:
            footer = read_footer(file.metadata, path=path)
            wrong = _Wrong(check, footer)
            for batch in read_batches(file, file.schema_arrow.names, batch_rows=_BATCH_ROWS, path=path):
                wrong.look(batch)
            return wrong.told()
    except HoodieError as exc:
        return [str(exc)]


class _Wrong:
    """What the rows of a file say against its footer and its commit."""

    def __init__(self, check: _FileCheck, footer: BaseFileFooter) -> None:
        self._check = check
        self._footer = footer
        self._bloom = footer.bloom()
        self._rows = self._missed = self._elsewhere = 0
        self._bounds: list[str] = []

    def look(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        if RECORD_KEY in batch.schema.names and batch.num_rows:
            keys = batch.column(RECORD_KEY).drop_null()
            if self._bloom is not None:
                self._missed += int(len(keys) - np.count_nonzero(self._bloom.might_contain(keys)))
            self._bounds += key_range(keys) or ()
        if self._check.says_partition and PARTITION_PATH in batch.schema.names:
            inside = pc.fill_null(pc.equal(batch.column(PARTITION_PATH), self._check.partition_path), fill_value=True)
            self._elsewhere += batch.num_rows - (pc.sum(inside).as_py() or 0)

    def told(self) -> list[str]:
        footer, path = self._footer, self._check.path
        found = []
        if self._check.rows is not None and self._rows != self._check.rows:
            found.append(f"{path} holds {self._rows:,} rows, and its commit says {self._check.rows:,}")
        if self._missed:
            found.append(f"the bloom filter of {path} denies {self._missed:,} of its keys: look-ups would miss them")
        bounds = key_range(pa.array(self._bounds)) if self._bounds else None
        # Wider ones are no damage: they had been right before rows were deleted.
        if bounds is not None and not footer.may_hold(pa.array(bounds)).all():
            found.append(
                f"the footer of {path} says that its keys are from {footer.min_key!r} to {footer.max_key!r}, and they are from "
                f"{bounds[0]!r} to {bounds[1]!r}"
            )
        if self._elsewhere:
            found.append(f"{path} holds {self._elsewhere:,} rows of another partition than its folder")
        return found


def _key_checks(tasks: Sequence[ReadTask]) -> Iterator[_KeyCheck]:
    def partition_of(task: ReadTask) -> str:
        return task.slice.group.partition_path

    for partition_path, group in groupby(sorted(tasks, key=partition_of), key=partition_of):
        whole = tuple(group)
        shares = 1 + sum(task.slice.size_bytes for task in whole) // _PART_BYTES
        narrow = tuple(replace(task, columns=tuple(n for n in task.columns if n == RECORD_KEY)) for task in whole)
        for share in range(shares):
            # All columns are read once, to see whether they decode.
            yield _KeyCheck(partition_path, narrow if share else whole, share, shares)


def _run_key_check(storage: Storage, context: ReadContext, check: _KeyCheck) -> _Keys | str:
    """How many keys of the share stand more than once; a text where rows cannot be read."""
    rows, parts = 0, []
    try:
        for task in check.tasks:
            columns = needed_columns(context, task.columns, None)
            for batch in read_slice(storage, context, task.slice, columns):  # with keys that are not stored, too
                rows += batch.num_rows
                keys = batch.column(RECORD_KEY).drop_null()
                if check.shares > 1:
                    mine = key_hash(keys) % np.uint64(check.shares) == np.uint64(check.share)
                    keys = keys.filter(pa.array(mine))
                parts.append(keys)
    except HoodieError as exc:
        return str(exc)
    counts = pa.table({"key": pa.chunked_array(parts, pa.string())}).group_by("key").aggregate([("key", "count")])
    twice = counts.filter(pc.greater(counts.column("key_count"), 1)).column("key")
    return _Keys(rows, len(twice), tuple(map(str, twice.slice(0, _SHOWN).to_pylist())))
