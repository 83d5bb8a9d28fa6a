"""Deep checks: the rows of the newest state against footers, folders, file groups and commits, and their keys against each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import HoodieError
from hoodie.filegroup.log_scan import rows_elsewhere
from hoodie.filegroup.row_copies import read_row_copy, row_copies_of
from hoodie.filegroup.skeleton import HAS_COLUMNS
from hoodie.filegroup.slice_reader import in_memory, needed_columns, read_slice
from hoodie.format.base_file import BaseFileFooter, key_range, read_footer
from hoodie.format.key_map import KeyMap, key_map_of
from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.hashes.of_keys import key_hash, map_hash
from hoodie.keygen.generator import KeyGenerator
from hoodie.model.findings import RepairKind
from hoodie.model.instant import InstantTime
from hoodie.model.meta_fields import COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from hoodie.model.names import parse_base_file
from hoodie.model.payloads import CommitMetadata
from hoodie.model.plans import ReadContext, ReadTask
from hoodie.model.results import format_count
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_read
from hoodie.repair.inspection import Hit, Inspection
from hoodie.repair.stray_files import Evidence, lost_instants
from hoodie.storage.base import Storage
from hoodie.view.context import Snapshot
from hoodie.write.agreement import count_strange_keys, generator_of_stored_keys

_PART_BYTES = 256 * 1024 * 1024
"""Keys of so many bytes of files are compared at once."""
_SHOWN = 3
_BATCH_ROWS = 1 << 16


# -- base files --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CommitStat:
    """What a commit says of a base file."""

    rows: int
    writes_rows: bool
    """Whether rows of its own are in it: it is no mere rewrite."""


@dataclass(frozen=True)
class _FileCheck:
    """Read one base file, and compare it with its footer and with its commit."""

    partition_path: str
    path: str
    instant: InstantTime
    counts: _CommitStat | None
    """None: its commit is archived."""
    says_meta: bool
    """Its rows store the columns of `_hoodie_`."""
    keys: KeyGenerator | None = None
    """Makes the keys of its rows, where that is known."""


class _FileFindings(NamedTuple):
    rows: int = 0
    strange: int = 0
    """Rows whose columns make another key than they have."""
    sentences: Sequence[str] = ()


def base_files(look: Inspection) -> Iterator[Hit]:
    """Base files whose rows do not fit their footer, folder or commit."""
    context = look.context
    strays = {each.path for each in look.repairs.of(RepairKind.STRAY_FILES)}  # which go
    keys = generator_of_stored_keys(context.config)
    every_check = _file_checks(look.snapshot, keys, says_meta=context.config.populate_meta_fields)
    checks = [each for each in every_check if each.path not in strays]
    label = f"validate {context.config.name}"
    results = context.engine.run(partial(_run_file_check, context.storage), checks, label=label)
    # Where no row fits, it is the properties, or what a writer had of its own.
    has_fitting = any(found.strange < found.rows for found in results)
    for check, found in zip(checks, results, strict=True):
        yield from (Hit(what, check.path) for what in found.sentences)
        if found.strange and has_fitting:
            rows_text = format_count(found.strange, "row")
            yield Hit(
                f"{check.path} holds {rows_text} whose columns make another record key than theirs",
                check.path,
            )


def _file_checks(snapshot: Snapshot, keys: KeyGenerator | None, *, says_meta: bool) -> Iterator[_FileCheck]:
    counts: dict[str, _CommitStat] = {}
    for commit in snapshot.timeline.commits:
        for stat in snapshot.active.read_commit(commit).stats():
            if stat.log_version is None:
                counts[stat.path] = _CommitStat(stat.num_writes, stat.num_inserts + stat.num_updates > 0)
    for each in snapshot.view.latest_slices():
        if each.base is not None:
            base = each.base
            count = counts.get(base.path)
            yield _FileCheck(each.group.partition_path, base.path, base.instant, count, says_meta, keys)


def _run_file_check(storage: Storage, check: _FileCheck) -> _FileFindings:
    """What is wrong with a base file."""
    path = check.path
    try:
        with storage.open_input(path) as source, open_parquet(source, path=path) as file:
            footer = read_footer(file.metadata, path=path)
            data = in_memory(source)
            wrong = _Wrong(check, footer, None if data is None else key_map_of(data))
            for batch in read_batches(file, file.schema_arrow.names, batch_rows=_BATCH_ROWS, path=path):
                wrong.look(batch)
            return wrong.findings()
    except HoodieError as exc:
        return _FileFindings(sentences=[str(exc)])


class _Wrong:
    """What the rows of a file say against its footer, its folder and its commit."""

    def __init__(self, check: _FileCheck, footer: BaseFileFooter, key_map: KeyMap | None) -> None:
        self._check = check
        self._key_map = key_map
        self._unmapped = 0
        self._footer = footer
        self._bloom = footer.bloom()
        self._rows = self._missed = self._keyless = self._elsewhere = self._late = self._timeless = self._strange = 0
        self._bounds: list[str] = []
        self._names: set[str] = set()

    def look(self, batch: pa.RecordBatch) -> None:
        first, self._rows = self._rows, self._rows + batch.num_rows
        names = batch.schema.names
        if RECORD_KEY in names and batch.num_rows and self._key_map is not None:
            self._unmapped += self._key_map.missing(map_hash(batch.column(RECORD_KEY)), first)
        if RECORD_KEY in names and batch.num_rows:
            keys = batch.column(RECORD_KEY).drop_null()
            self._keyless += batch.num_rows - len(keys) if self._check.says_meta else 0
            if self._bloom is not None:
                self._missed += int(len(keys) - np.count_nonzero(self._bloom.might_contain(keys)))
            self._bounds += key_range(keys) or ()
        if not self._check.says_meta:
            return
        if PARTITION_PATH in names:
            self._elsewhere += rows_elsewhere(batch.column(PARTITION_PATH), self._check.partition_path)
        if COMMIT_TIME in names:
            times = {time: n for time, n in _counted(batch.column(COMMIT_TIME)) if time}
            self._timeless += batch.num_rows - sum(times.values())
            self._late += sum(count for time, count in times.items() if time > self._check.instant)
        if FILE_NAME in names:
            self._names.update(name for name, _ in _counted(batch.column(FILE_NAME)) if name)
        if self._check.keys is not None and RECORD_KEY in names:
            self._strange += count_strange_keys(self._check.keys, pa.Table.from_batches([batch]))

    def findings(self) -> _FileFindings:
        footer, path, counts = self._footer, self._check.path, self._check.counts
        result = []
        if counts is not None and self._rows != counts.rows:
            result.append(f"{path} holds {self._rows:,} rows, and its commit says {counts.rows:,}")
        if self._keyless:
            result.append(f"{path} holds {format_count(self._keyless, 'row')} without a record key")
        if self._missed:
            result.append(f"the bloom filter of {path} denies {self._missed:,} of its keys: look-ups would miss them")
        if self._unmapped:
            result.append(f"the key map of {path} denies {self._unmapped:,} of its keys: look-ups would miss them")
        bounds = key_range(pa.array(self._bounds)) if self._bounds else None
        # Wider ones are no damage: they had been right before rows were deleted.
        if bounds is not None and not footer.may_hold(pa.array(bounds)).all():
            result.append(
                f"the footer of {path} says that its keys are from {footer.min_key!r} to {footer.max_key!r}, and they are from "
                f"{bounds[0]!r} to {bounds[1]!r}"
            )
        if self._elsewhere:
            result.append(f"{path} holds {self._elsewhere:,} rows of another partition than its folder")
        if self._late:
            result.append(f"{path} holds {self._late:,} rows of commits after its own")
        if counts is not None and counts.writes_rows and self._names and _all_older(self._names, self._check):
            result.append(f"{path} holds no row of its own, but those of {min(self._names)}")
        if self._timeless:
            result.append(f"{path} holds {format_count(self._timeless, 'row')} without a commit time")
        return _FileFindings(self._rows, self._strange, result)


def _all_older(names: Iterable[str], check: _FileCheck) -> bool:
    """Whether all rows say that they are of older files: then the file is a copy of one of these."""
    parsed = [parse_base_file(name) for name in names]
    return all(each is not None and each.instant < check.instant for each in parsed)


def _counted(column: pa.Array) -> Iterator[tuple[str | None, int]]:
    for each in pc.value_counts(column).to_pylist():
        yield each["values"], each["counts"]


# -- rows and keys -----------------------------------------------------------------------------------------------------


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
    foreign: tuple[str, ...] = ()
    """Sentences on rows of other file groups."""


class Rows(NamedTuple):
    """What reading all rows gave."""

    checks: Sequence[_KeyCheck]
    keys: Sequence[_Keys | str]
    """Of each check; a text where rows cannot be read."""

    @property
    def total(self) -> int:
        pairs = zip(self.checks, self.keys, strict=True)
        return sum(keys.rows for check, keys in pairs if isinstance(keys, _Keys) and check.share == 0)


def all_rows(look: Inspection) -> Rows:
    """Read all rows of the newest state, logs among them, once for a look."""
    if look.rows is None:
        context = look.context
        plan = plan_read(context, ReadOptions(), meta_columns=True)
        checks = list(_key_checks([task for task in plan.tasks if isinstance(task, ReadTask)]))
        run = partial(_run_key_check, context.storage, plan.context)
        look.keep_rows(Rows(checks, context.engine.run(run, checks, label=f"validate keys of {context.config.name}")))
    result = look.rows
    assert isinstance(result, Rows)
    return result


def rows(look: Inspection) -> Iterator[Hit]:
    """Rows that cannot be read, or are of another file group than the file that they lie in."""
    for keys in all_rows(look).keys:
        if isinstance(keys, str):
            if HAS_COLUMNS not in keys:  # else `check_sources` says it
                yield Hit(keys)
        else:
            yield from map(Hit, keys.foreign)


def duplicate_keys(look: Inspection) -> Iterator[Hit]:
    """Record keys that stand more than once in a partition."""
    read_rows = all_rows(look)
    for check, keys in zip(read_rows.checks, read_rows.keys, strict=True):
        if isinstance(keys, _Keys) and keys.duplicates:
            yield Hit(
                f"{format_count(keys.duplicates, 'record key')} {'stands' if keys.duplicates == 1 else 'stand'} more than once in "
                f"partition {check.partition_path!r}, such as "
                f"{', '.join(map(repr, keys.examples))}",
                check.partition_path,
            )


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
    rows, parts, foreign = 0, [], []
    try:
        for task in check.tasks:
            strangers: set[str] = set()
            columns = needed_columns(context, task.columns, None)
            for batch in read_slice(storage, context, task.slice, columns):  # with keys that are not stored, too
                rows += batch.num_rows
                keys = batch.column(RECORD_KEY).drop_null()
                if check.shares > 1:
                    mine = key_hash(keys) % np.uint64(check.shares) == np.uint64(check.share)
                    keys = keys.filter(pa.array(mine))
                parts.append(keys)
                if FILE_NAME in batch.schema.names:
                    names = (name for name, _ in _counted(batch.column(FILE_NAME)) if name)
                    strangers.update(name for name in names if not name.startswith(task.slice.group.file_id))
            if strangers:
                base, logs = task.slice.base, task.slice.logs
                paths = [file.path for file in (base, *logs) if file is not None]
                foreign.append(
                    f"{', '.join(paths[:_SHOWN])}: rows say that they are of {min(strangers)!r}, another file group"
                )
    except HoodieError as exc:
        return str(exc)
    counts = pa.table({"key": pa.chunked_array(parts, pa.string())}).group_by("key").aggregate([("key", "count")])
    twice = counts.filter(pc.greater(counts.column("key_count"), 1)).column("key")
    return _Keys(rows, len(twice), tuple(map(str, twice.slice(0, _SHOWN).to_pylist())), tuple(foreign))


# -- what beside them holds rows ---------------------------------------------------------------------------------------


def row_copies(look: Inspection) -> Iterator[Hit]:
    """Copies of rows that are damaged: readers take the logs, which is slower."""
    for paths in row_copies_of(look.context.storage).values():
        for path in paths:
            if read_row_copy(look.context.storage, path, 0) is None:
                yield Hit(f"{path} is damaged: readers take the logs in its place", path)


def archived_files(look: Inspection) -> Iterator[Hit]:
    """File groups of archived commits of whose newest file nothing is left, and that nothing has replaced."""
    snapshot = look.snapshot
    archived = snapshot.archived.read_commits(snapshot.archived.commits)
    newest: dict[tuple[str, str], tuple[InstantTime, str]] = {}
    replaced = set(snapshot.view.committed.replaced)
    archived_replacements = _replaced_by(archived.values())
    for time in sorted(archived):
        for stat in archived[time].stats():
            if stat.log_version is None and stat.path and stat.num_writes:
                newest[stat.partition_path, stat.file_id] = (time, stat.path)
    there = {group.id: group for path in snapshot.view.every_partition() for group in snapshot.view.file_groups(path)}
    for key, (time, path) in newest.items():
        if key in archived_replacements or key in replaced:
            continue
        group = there.get(key)  # type: ignore[call-overload]
        instants = [each.base_instant for each in group.slices if each.base is not None] if group is not None else []
        if not any(each >= time for each in instants) and not _went(snapshot, key[0]):
            yield Hit(f"{path} is gone: archived commit {time} wrote it, and nothing since has taken its place", path)


def lost_rows(look: Inspection) -> Iterator[Hit]:
    """Rows in logs of the newest state whose instant is neither on the timeline nor undone, though later commits name the log."""
    evidence = Evidence(look.context, look.snapshot)
    for each in look.snapshot.view.latest_slices():
        committed = look.snapshot.view.committed.of(each.group.partition_path)
        for log in each.logs:
            if committed.log_size(log.path) is None:
                continue  # no commit builds on it: a stray
            times = lost_instants(evidence, evidence.log(log.path).times, [other.path for other in each.logs])
            if times:
                yield Hit(
                    f"{log.path} has rows of instant {times[0]}, which is on no timeline: they do not count", log.path
                )


def _replaced_by(commits: Iterable[CommitMetadata]) -> set[tuple[str, str]]:
    return {
        (folder, file_id)
        for metadata in commits
        for folder, file_ids in metadata.replaced_file_ids.items()
        for file_id in file_ids
    }


def _went(snapshot: Snapshot, partition_path: str) -> bool:
    """Whether files of the partition were taken by something that archived metadata do not tell: a restore."""
    return any(instant.action == "restore" for instant in snapshot.timeline)
