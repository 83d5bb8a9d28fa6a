"""Which record keys came to which file groups by an instant, and which are gone: for the record index.

As Apache Hudi has it: of a new base file the keys that the file slice before it lacks, and those that it had and the file lacks; of
a log with deletes the keys whose rows it took away, or brought back; of replaced file groups all keys. Compactions change nothing,
and a clustering only places keys. A file that has neither new keys nor deletes, by its commit's counts, is not opened.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.filegroup.log_scan import LogRecords
from hoodie.filegroup.slice_reader import log_records, merge_columns, read_slice
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.metadata.record_index import AddedKeys, KeyChanges, RemovedKeys
from hoodie.model.change import Change
from hoodie.model.columns import ColumnHistory
from hoodie.model.enums import MergeMode, WriteOperation
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import InstantTime, VisibleInstants
from hoodie.model.late import once
from hoodie.model.meta_fields import RECORD_KEY, with_meta_fields
from hoodie.model.names import name_of, parse_base_file, parse_log_file
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.model.plans import ReadContext
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import stated_schema

pc: Any = pyarrow.compute
_KEY = pa.schema([pa.field(RECORD_KEY, pa.string())])
_SAME_ROWS = (WriteOperation.COMPACT, WriteOperation.LOG_COMPACT)


def stored_keys(context: TableContext, snapshot: Snapshot, cache: MutableMapping[Hashable, Any]) -> KeyChanges:
    """All keys of a snapshot, for a record index that is made. `cache`: those of file slices that were read already."""
    if snapshot.schema is None:
        return KeyChanges()
    slices = snapshot.view.latest_slices()
    fresh = [each for each in slices if each not in cache]
    cache.update(zip(fresh, keys_of_slices(context, snapshot, fresh), strict=True))
    return KeyChanges(
        [AddedKeys(each.group.partition_path, each.group.file_id, each.base_instant, cache[each]) for each in slices]
    )


def keys_of_slices(context: TableContext, snapshot: Snapshot, slices: Sequence[FileSlice]) -> Sequence[Any]:
    """The keys of the rows that live in each of these file slices."""
    schema = pa.schema([]) if snapshot.schema is None else snapshot.schema
    reader = SliceReader(context, schema, snapshot.timeline.visible())
    return context.storage.each(reader.keys_of, slices)


def key_changes(context: TableContext, change: Change) -> KeyChanges:
    """What a write changes that comes to be completed; its files are there.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedTableError: a file cannot be read.
    """
    commit = change.commit
    if commit is None or changes_no_keys(commit):
        return KeyChanges()
    work = _Work(context, change)
    parts_of_groups = context.storage.each(lambda each: work.of_group(*each), list(groups_of(commit).items()))
    placed = [each for parts, _ in parts_of_groups for each in parts]
    removed = [each for _, parts in parts_of_groups for each in parts]
    if change.replaced and commit.operation is not WriteOperation.CLUSTER:
        removed += work.replaced()
    return KeyChanges(placed, removed)


def changes_no_keys(commit: CommitMetadata) -> bool:
    """Whether file groups have the same rows as before."""
    return commit.operation in _SAME_ROWS or commit.compacted


def groups_of(commit: CommitMetadata) -> Mapping[FileGroupId, Sequence[WriteStat]]:
    """What it wrote, by file group."""
    result: dict[FileGroupId, list[WriteStat]] = {}
    for stat in commit.stats():
        if stat.path:
            result.setdefault(FileGroupId(stat.partition_path, stat.file_id), []).append(stat)
    return result


def after_change(
    group: FileGroupId, stats: Sequence[WriteStat], time: InstantTime, before: FileSlice | None
) -> FileSlice:
    """The newest slice of a file group once this instant is completed, which wrote these files."""
    bases = [stat for stat in stats if stat.log_version is None]
    if bases:
        base = _base_of(group, bases[-1], time)
        return FileSlice(group, base.instant, base, ())
    logs = tuple(_log_of(group, stat) for stat in stats)
    return FileSlice(group, logs[0].base_instant, None, logs) if before is None else _with_logs(before, logs)


Parts = tuple[Sequence[AddedKeys], Sequence[RemovedKeys]]


class _Work:
    """Of one instant. The snapshot, before it, is only taken where something has to be looked up in it."""

    def __init__(self, context: TableContext, change: Change) -> None:
        self._context = context
        self._change = change
        self._time = change.instant.time

    def of_group(self, group: FileGroupId, stats: Sequence[WriteStat]) -> Parts:
        logs = [stat for stat in stats if stat.log_version is not None]
        bases = [stat for stat in stats if stat.log_version is None]
        if bases:
            return self._of_base(group, bases[-1])
        return self._of_logs(group, logs)

    def replaced(self) -> list[RemovedKeys]:
        view = self._snapshot.view
        groups = [FileGroupId(path, file_id) for path, ids in self._change.replaced.items() for file_id in ids]
        slices = [each for group in groups if (each := view.slice_of(group)) is not None]
        keys_of_slices_ = self._context.storage.each(self._reader.keys_of, slices)
        return [
            RemovedKeys(each.group.partition_path, keys) for each, keys in zip(slices, keys_of_slices_, strict=True)
        ]

    def _of_base(self, group: FileGroupId, stat: WriteStat) -> Parts:
        is_new = stat.prev_commit is None
        if not is_new and not stat.num_inserts and not stat.num_deletes:
            return (), ()
        base = _base_of(group, stat, self._time)
        keys = self._reader.keys_of(FileSlice(group, base.instant, base, ()))
        if is_new:
            return [self._placed(group, keys)], ()
        before = self._snapshot.view.slice_of(group)
        if before is None:
            return [self._placed(group, keys)], ()
        stored = self._reader.keys_of(before)
        removed_keys = _without(stored, keys) if stat.num_deletes else stored.slice(0, 0)
        return [self._placed(group, _without(keys, stored))], [RemovedKeys(group.partition_path, removed_keys)]

    def _of_logs(self, group: FileGroupId, stats: Sequence[WriteStat]) -> Parts:
        """Keys that the logs delete, or bring back. Where the order of commits does not decide it, the whole file slice says which."""
        before = self._snapshot.view.slice_of(group)
        has_deletes = before is not None and self._may_have_deletes(before)
        if not any(stat.num_deletes for stat in stats) and not has_deletes:
            return (), ()
        logs = tuple(_log_of(group, stat) for stat in stats)
        mine = FileSlice(group, logs[0].base_instant, None, logs)
        entries = self._reader.logged(mine)
        written, deleted = entries.keys.slice(0, entries.live), entries.keys.slice(entries.live)
        by_commit = self._context.rule.mode is MergeMode.COMMIT_TIME_ORDERING
        is_gone = np.full(len(deleted), by_commit) | entries.commit_time_deletes[entries.live :]
        removed_keys = deleted.filter(pa.array(is_gone))
        unclear = [deleted.filter(pa.array(~is_gone))]
        back = written.slice(0, 0)
        if before is not None and has_deletes:
            earlier = self._reader.logged(before._replace(base=None))
            back = written.filter(pc.is_in(written, value_set=earlier.keys.slice(earlier.live)))
            if not by_commit:
                unclear.append(back)
        candidates = pc.unique(pa.concat_arrays(unclear))
        if not len(candidates):
            return [self._placed(group, back)], [RemovedKeys(group.partition_path, removed_keys)]
        whole = mine if before is None else _with_logs(before, logs)
        lives = pc.is_in(candidates, value_set=self._reader.keys_of(whole))
        removals = [removed_keys, candidates.filter(pc.invert(lives))]
        return [self._placed(group, candidates.filter(lives))], [
            RemovedKeys(group.partition_path, each) for each in removals
        ]

    def _may_have_deletes(self, file_slice: FileSlice) -> bool:
        """By what commits state; archived ones state nothing any more."""
        deletes = self._snapshot.view.committed.of(file_slice.group.partition_path).deletes
        return any(log.path in deletes or not log.committed_entries for log in file_slice.logs)

    def _placed(self, group: FileGroupId, keys: Any) -> AddedKeys:
        return AddedKeys(group.partition_path, group.file_id, self._time, keys)

    @once
    def _snapshot(self) -> Snapshot:
        return self._context.on_storage().snapshot()

    @once
    def _reader(self) -> SliceReader:
        commit = self._change.commit
        schema = None if commit is None else stated_schema(self._change.instant, commit)
        schema = self._snapshot.schema if schema is None else schema
        return SliceReader(
            self._context, pa.schema([]) if schema is None else schema, visible_with(self._context, self._time)
        )


class SliceReader:
    """Rows of file slices."""

    def __init__(
        self,
        context: TableContext,
        schema: pa.Schema,
        visible: VisibleInstants,
        history: ColumnHistory | None = None,
    ) -> None:
        self._storage = context.storage
        unstored = unstored_of(context.config, schema)
        self._reading = ReadContext(
            context.config.name, with_meta_fields(schema), context.rule, visible, history=history, unstored=unstored
        )

    def rows_of(self, file_slice: FileSlice, columns: pa.Schema) -> pa.Table:
        """Of the rows that live."""
        batches = list(read_slice(self._storage, self._reading, file_slice, columns))
        return pa.table(
            {each.name: pa.chunked_array([batch[each.name] for batch in batches], each.type) for each in columns}
        )

    def keys_of(self, file_slice: FileSlice) -> Any:
        """Of the rows that live."""
        return self.rows_of(file_slice, _KEY).column(0).combine_chunks()

    def logged(self, file_slice: FileSlice) -> LogRecords:
        """What its logs say, one entry a key."""
        return log_records(
            self._storage, self._reading, file_slice, merge_columns(_KEY, self._reading.rule, self._reading.schema)
        )


def visible_with(context: TableContext, time: InstantTime) -> VisibleInstants:
    """What a reader sees when this instant is completed."""
    visible = context.active.load().visible()
    return replace(visible, completed=visible.completed | {time}, pending=visible.pending - {time})


def _without(keys: Any, others: Any) -> Any:
    if len(keys) == len(others) and keys.equals(others):
        return keys.slice(0, 0)
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))


def _base_of(group: FileGroupId, stat: WriteStat, time: InstantTime) -> BaseFile:
    parsed = parse_base_file(name_of(stat.path))
    instant = time if parsed is None else parsed.instant
    return BaseFile(group.partition_path, group.file_id, instant, name_of(stat.path), stat.file_size_bytes)


def _with_logs(before: FileSlice, logs: Sequence[LogFile]) -> FileSlice:
    return before._replace(logs=(*before.logs, *logs))


def _log_of(group: FileGroupId, stat: WriteStat) -> LogFile:
    name = name_of(stat.path)
    parsed = parse_log_file(name)
    version, base_instant = (0, InstantTime("")) if parsed is None else (parsed.version, parsed.base_instant)
    size = stat.file_size_bytes
    return LogFile(group.partition_path, group.file_id, base_instant, version, name, size, size)
