"""Maintains a metadata table: a delta commit for each instant of the table, with the records of each partition.

Delta commit T of the metadata table is completed before instant T of the table is, under the table's lock. Until then it does not
count: readers leave out what the table's timeline has not completed. If T is never completed, `withdraw` takes the delta commit
back, as part of the rollback of T: first its completed file, so that nobody counts its logs any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from hoodie.errors import UnsupportedTableError
from hoodie.format.log_block import encode_block
from hoodie.format.log_content import encode_deletes
from hoodie.format.plan_avro import encode_compaction_plan
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.instants import COMPACTION, OwnInstants
from hoodie.metadata.keys import FILES
from hoodie.metadata.partition import ListingNeededError, MetadataPartition, Scope, Shard, naming
from hoodie.metadata.payload import encode_hfile
from hoodie.metadata.services import COMPACTED_AFTER, archive, clean, end_compactions
from hoodie.metadata.table import MetadataTable, OpenedMetadata
from hoodie.metadata.visibility import is_write
from hoodie.model.change import Change
from hoodie.model.enums import Action, BlockKind, HeaderKey, State, WriteOperation
from hoodie.model.files import FileGroup, FileGroupId, FileSlice
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import (
    BaseFileName,
    LogFileName,
    format_base_file,
    format_log_file,
    join,
    name_of,
    parse_log_file,
)
from hoodie.model.payloads import CommitMetadata, CompactionOperation, CompactionPlan, WriteStat
from hoodie.options.table import TableConfig
from hoodie.storage.base import Storage
from hoodie.storage.cache import Kind
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext

TOKEN = "0-0-0"
_SCHEMA: Kind[str] = Kind("schemas of metadata tables")
_MOST_INSTANTS = 300
"""On the timeline of the metadata table, where an instant of the table that stays pending keeps it from being compacted."""


def keep_up(
    context: TableContext,
    config: TableConfig,
    timeline: Timeline,
    change: Change,
    partitions: Sequence[MetadataPartition],
    *,
    is_new: bool = False,
) -> None:
    """Write what an instant of the table changes, before that is completed. The caller holds the table's lock.

    `config` and `timeline`: of the table, as they are now. `partitions`: those that the metadata table has. `is_new`: it was built for
    this instant.

    Raises:
        ListingNeededError: the metadata table was not built since, and the instant is a restore, or a partition asks for it.
        CorruptFileError, MissingFileError, UnsupportedTableError, FileNotFoundError: it cannot be kept up.
    """
    if change.instant.action is Action.RESTORE and not is_new:
        # Who carries one on does not know which files are gone already.
        raise ListingNeededError("a restore has taken instants back")
    undone = [time for time, _ in change.undone]
    open_writer = partial(MetadataWriter.open, context, config, timeline, partitions, undone, is_new=is_new)
    writer = open_writer()
    if end_compactions(writer.opened, writer.names):
        writer = open_writer()
    if not undone and writer.is_due(timeline):
        clean(writer.opened, writer.groups, writer.instants, writer.latest_write())
        writer.compact()
        writer = open_writer()
        archive(writer.opened, timeline, context.clock)
    writer.apply(change)


def withdraw(
    context: TableContext, config: TableConfig, partitions: Sequence[MetadataPartition], time: InstantTime
) -> None:
    """Take back what was written for an instant of the table that is pending; nothing may be there. The caller holds the table's lock.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedTableError, FileNotFoundError: the metadata table cannot be read.
    """
    writer = MetadataWriter.open(context, config, context.active.load(), partitions, ())
    for each in writer.opened.own:
        if each.time == time and each.action is Action.DELTACOMMIT:
            writer.withdraw(each)


class _Log(NamedTuple):
    """A log file that comes."""

    partition: str
    piece: FileSlice
    """On which it lies, or which it begins where it is named with its own instant."""
    version: int
    name: str
    shard: Shard


@dataclass(frozen=True)
class MetadataWriter:
    """For one instant of the table. The caller holds the table's lock."""

    scope: Scope
    table: MetadataTable
    partitions: Sequence[MetadataPartition]
    pieces: Mapping[str, Sequence[FileSlice]]
    """Partition -> the file slice of each of its file groups."""
    pending: frozenset[InstantTime]
    """Instants of the table that are at work. In versions 8 and 9 their writers may be at work here, too."""
    instants: OwnInstants

    @classmethod
    def open(
        cls,
        context: TableContext,
        config: TableConfig,
        timeline: Timeline,
        partitions: Sequence[MetadataPartition],
        undone: Collection[InstantTime],
        *,
        is_new: bool = False,
        has_lock: bool = True,
    ) -> MetadataWriter:
        """The metadata table of a table with this timeline; `config` as the properties are now. `has_lock`: the caller holds the
        table's lock, so that nobody drops a partition meanwhile.

        Raises:
            CorruptFileError, MissingFileError, UnsupportedTableError, FileNotFoundError: it cannot be kept up.
        """
        names = [each.name for each in partitions if has_lock]
        table = MetadataTable.open(context.storage, config, timeline, context.cache, undone=undone, held=names)
        pieces = {}
        for each in partitions:
            with naming(each):
                pieces[each.name] = table.slices_of(each.name)
        if len(table.opened.own.instants) > _MOST_INSTANTS:
            pending = next((f": {each} is pending since" for each in timeline.at_work), "")
            raise UnsupportedTableError(
                f"its timeline has {len(table.opened.own.instants)} instants, none of which can be archived{pending}"
            )
        schema = context.cache.find(_SCHEMA, context.storage.identity)
        if schema is None:  # of later writes of a process none reads a record
            schema = table.schema_of(FILES)
            context.cache.put(_SCHEMA, context.storage.identity, schema, len(schema))
        at_work = frozenset(each.time for each in timeline.at_work)
        instants = OwnInstants(table.opened.own, timeline, context.clock)
        return cls(Scope(context, config.raw, schema, is_new), table, partitions, pieces, at_work, instants)

    @property
    def opened(self) -> OpenedMetadata:
        return self.table.opened

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """Partition -> names of all files in it."""
        return {each.name: self.table.names_in(each.name) for each in self.partitions}

    @property
    def groups(self) -> Mapping[str, Sequence[FileGroup]]:
        """Partition -> everything of its file groups that is there."""
        return {each.name: self.table.groups_in(each.name) for each in self.partitions}

    def apply(self, change: Change) -> None:
        """Complete the delta commit of an instant, after those of dead writers, and of instants that it took back, are withdrawn.

        Files that an instant took back are in its change as removed, so that it does not matter whether they were compacted.
        """
        logs = list(self._logs_of(change.instant.time, change))  # may find that all has to be built anew
        taken_back = {change.instant.time, *(time for time, _ in change.undone)}
        for each in self.opened.own:
            if each.action is Action.DELTACOMMIT and (each.time in taken_back or self._is_dead(each)):
                self.withdraw(each)
        self._delta_commit(change.instant.time, logs)

    def _is_dead(self, write: Instant) -> bool:
        """Whether the writer of a pending delta commit is. Apache Hudi's begin one before they hold the lock, in versions 8 and 9."""
        return not write.is_completed and not (self._own_logs and write.time in self.pending)

    @property
    def _own_logs(self) -> bool:
        """Whether a log file is named with the instant of its delta commit."""
        return self.opened.own.by_completion

    def withdraw(self, write: Instant) -> None:
        """Take a delta commit back, with the log files that it wrote. What another process has taken back is no error."""
        active, storage = self.opened.active, self.opened.storage
        # Ours has named its logs before it wrote them; that of Apache Hudi has no names.
        planned = active.read_inflight(write._replace(state=State.INFLIGHT, completion=None))
        written = set() if planned is None else {stat.path for stat in planned.stats()}
        if write.is_completed:
            written.update(stat.path for stat in active.read_commit(write).stats())
            active.remove(write)
        if self._own_logs:
            written.update(join(each.name, name) for each in self.partitions for name in self._logs_named(each, write))
        storage.each(storage.delete, sorted(path for path in written if path and parse_log_file(name_of(path))))
        for state in (State.INFLIGHT, State.REQUESTED):
            active.remove(Instant(write.time, Action.DELTACOMMIT, state))

    def _logs_named(self, partition: MetadataPartition, write: Instant) -> Iterator[str]:
        for name in self.table.names_in(partition.name):
            log = parse_log_file(name)
            if log is not None and log.base_instant == write.time:
                yield name

    def is_due(self, timeline: Timeline) -> bool:
        """Whether to compact, by Apache Hudi's rule: so many delta commits since the last time, and none that is merged is of an
        instant that the table may take back, for what is merged counts in any case.
        """
        latest, own = self.latest_write(), self.opened.own
        begin = self.pieces[FILES][0].base_instant
        since = [each for each in own.commits if each.action is Action.DELTACOMMIT and each.position > begin]
        if self._own_logs:
            settled = not (own.completed_times & self.pending)
        else:
            older = (each for each in timeline if each.time <= latest and each.action is not Action.INDEXING)
            settled = all(each.is_completed for each in older)
        is_free = settled and not own.pending(Action.LOGCOMPACTION)
        return bool(latest) and len(since) >= COMPACTED_AFTER and is_free

    def compact(self) -> None:
        """Merge logs into base files, of all file groups that have some."""
        active = self.opened.active
        time = self.instants.after(self.latest_write(), COMPACTION)
        work = [(each, piece) for each in self.partitions for piece in self.pieces[each.name] if _is_written(piece)]
        operations = [
            CompactionOperation(
                each.name,
                piece.group.file_id,
                piece.base_instant,
                None if piece.base is None else piece.base.name,
                tuple(log.name for log in piece.logs),
            )
            for each, piece in work
        ]
        plan = encode_compaction_plan(CompactionPlan(tuple(operations)))
        active.create(Instant(time, Action.COMPACTION, State.REQUESTED), plan)
        active.create(Instant(time, Action.COMPACTION, State.INFLIGHT))
        stats = _by_partition(self._merge(each, piece, time) for each, piece in work)
        metadata = CommitMetadata(WriteOperation.COMPACT, stats, self.scope.schema, compacted=True)
        completed = self.instants.completing(Instant(time, Action.COMPACTION, State.COMPLETED))
        active.create(completed, active.encode_commit(completed, metadata))

    def latest_write(self) -> InstantTime:
        """The last delta commit of an instant of the table; empty where there is none."""
        times = (each.time for each in self.opened.own.commits if is_write(each))
        return max(times, default=InstantTime(""))

    def _merge(self, partition: MetadataPartition, piece: FileSlice, time: InstantTime) -> WriteStat:
        with naming(partition):
            shard = partition.merged(self.scope, self.table, self.pieces[partition.name].index(piece))
        stat = write_base(self.opened.storage, partition.name, piece.group.file_id, time, shard, self.scope.schema)
        return replace(
            stat,
            prev_commit=piece.base_instant,
            num_inserts=0,
            num_updates=stat.num_writes,
            prev_base_file=None if piece.base is None else piece.base.name,
            total_log_files_compacted=len(piece.logs),
        )

    def _delta_commit(self, time: InstantTime, logs: Sequence[_Log]) -> None:
        active, storage, schema = self.opened.active, self.opened.storage, self.scope.schema
        # Nothing depends on these two after a loss of power: they are durable with the completed file, at the latest.
        requested, inflight, completed = (Instant(time, Action.DELTACOMMIT, state) for state in State)
        new_groups = [each for each in logs if each.shard.begins]
        logs = [each for each in logs if len(each.shard.keys) or len(each.shard.removed)]
        planned = CommitMetadata(WriteOperation.UPSERT, _by_partition(_stat(each, 0) for each in logs))
        active.create(requested, durable=False)
        active.create(inflight, active.encode_commit(inflight, planned), durable=False)
        for each in new_groups:  # Apache Hudi finds a file group without records by this log
            empty = delete_block(each.partition, time, pa.array([], BINARY))
            storage.create_new(join(each.partition, _log_name(each.piece, each.version - 1)), empty)

        def write(log: _Log) -> WriteStat:
            data = _blocks(log, time, schema)
            storage.create_new(join(log.partition, log.name), data)
            return _stat(log, len(data))

        metadata = CommitMetadata(WriteOperation.UPSERT, _by_partition(storage.each(write, logs)), schema)
        completed = self.instants.completing(completed)
        active.create(completed, active.encode_commit(completed, metadata))
        active.remember(completed, metadata)

    def _logs_of(self, time: InstantTime, change: Change) -> Iterator[_Log]:
        for each in self.partitions:
            with naming(each):
                shards = list(each.changed(self.scope, self.table, change))
            for shard in shards:
                if shard.begins:
                    piece = FileSlice(FileGroupId(each.name, shard.begins), time, None, ())
                else:
                    piece = self.pieces[each.name][shard.number]
                if self._own_logs:
                    piece = FileSlice(piece.group, time, None, ())
                version = self._next_version(each.name, piece) + bool(shard.begins)
                yield _Log(each.name, piece, version, _log_name(piece, version), shard)

    def _next_version(self, partition: str, piece: FileSlice) -> int:
        """Greater than that of any log of the slice: also of those that a dead writer left, which no view shows."""
        log_names = (parse_log_file(name) for name in self.table.names_in(partition))
        mine = (
            each.version
            for each in log_names
            if each is not None and (each.file_id, each.base_instant) == (piece.group.file_id, piece.base_instant)
        )
        return max(mine, default=0) + 1


def _log_name(piece: FileSlice, version: int) -> str:
    return format_log_file(LogFileName(piece.group.file_id, piece.base_instant, version, TOKEN))


def _is_written(piece: FileSlice) -> bool:
    """Whether a file group has logs since it began or was merged. One without a base file begins with an empty log."""
    return len(piece.logs) > (piece.base is None)


def write_base(
    storage: Storage, partition: str, file_id: str, time: InstantTime, shard: Shard, schema: str
) -> WriteStat:
    """Write the base file of a file group, which it is the first one of."""
    data = encode_hfile(shard.keys, shard.values, schema, is_base=True)
    path = join(partition, format_base_file(BaseFileName(file_id, TOKEN, time), ".hfile"))
    storage.create_new(path, data)
    count, size_bytes = len(shard.keys), len(data)
    return WriteStat(
        file_id,
        partition,
        path,
        num_writes=count,
        num_inserts=count,
        total_bytes=size_bytes,
        file_size_bytes=size_bytes,
    )


def _blocks(log: _Log, time: InstantTime, schema: str) -> bytes:
    keys, removed, data = log.shard.keys, log.shard.removed, b""
    if len(keys):
        header = {HeaderKey.INSTANT_TIME: str(time), HeaderKey.SCHEMA: schema}
        data = encode_block(BlockKind.HFILE_DATA, header, encode_hfile(keys, log.shard.values, schema))
    return data + delete_block(log.partition, time, removed, schema) if len(removed) else data


def delete_block(partition: str, time: InstantTime, keys: Any, schema: str = "") -> bytes:
    """A log block that takes these keys away, which are binary. `schema`: of records, where Apache Hudi states it."""
    header = {HeaderKey.INSTANT_TIME: str(time)} | ({HeaderKey.SCHEMA: schema} if schema else {})
    texts = keys.cast(pa.binary()).cast(pa.string())
    paths = pa.array([partition] * len(texts), pa.string())
    return encode_block(BlockKind.DELETE, header, encode_deletes(texts, paths, None))


def _stat(log: _Log, size_bytes: int) -> WriteStat:
    piece, count = log.piece, len(log.shard.keys)
    return WriteStat(
        piece.group.file_id,
        log.partition,
        join(log.partition, log.name),
        piece.base_instant,
        num_writes=count,
        num_updates=count,
        num_deletes=len(log.shard.removed),
        total_bytes=size_bytes,
        file_size_bytes=size_bytes,
        log_version=log.version,
        base_file="" if piece.base is None else piece.base.name,
        log_files=(*(each.name for each in piece.logs), log.name),
    )


def _by_partition(stats: Iterable[WriteStat]) -> dict[str, tuple[WriteStat, ...]]:
    stats_of: dict[str, list[WriteStat]] = {}
    for stat in stats:
        stats_of.setdefault(stat.partition_path, []).append(stat)
    return {name: tuple(each) for name, each in stats_of.items()}
