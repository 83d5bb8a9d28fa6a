"""Keeps a metadata table of version 6 up: its partition `files`, by a delta commit for each instant of the table.

Delta commit T of the metadata table is completed before instant T of the table is, under the table's lock. Until then it does not
count: readers leave out what the table's timeline has not completed. If T is never completed, `withdraw` takes the delta commit
back, as part of the rollback of T: first its completed file, so that nobody counts its log any more.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from hoodie.errors import UnsupportedTableError
from hoodie.format.commit_json import encode_commit
from hoodie.format.log_block import encode_block
from hoodie.format.plan_avro import encode_compaction_plan
from hoodie.metadata.keys import FILES
from hoodie.metadata.records import Entries, encode_entries, entries_of
from hoodie.metadata.services import COMPACTED_AFTER, archive, clean, end_compactions
from hoodie.metadata.table import MetadataTable, OpenedMetadata
from hoodie.metadata.visible import is_write
from hoodie.model.change import Change
from hoodie.model.enums import Action, BlockKind, HeaderKey, State, WriteOperation
from hoodie.model.files import FileSlice
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import BaseFileName, LogFileName, format_base_file, format_log_file, join, parse_log_file
from hoodie.model.payloads import CommitMetadata, CompactionOperation, CompactionPlan, WriteStat
from hoodie.options.table import TableConfig
from hoodie.storage.cache import Kind
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")

_TOKEN = "0-0-0"
_SCHEMA: Kind[str] = Kind("schemas of metadata tables")
_MOST_INSTANTS = 300
"""On the timeline of the metadata table, where an instant of the table that stays pending keeps it from being compacted."""


class ListingNeededError(UnsupportedTableError):
    """What an instant took back is not known from its metadata alone: the metadata table has to be built anew."""


def keep_up(
    context: TableContext, config: TableConfig, timeline: Timeline, change: Change, *, is_new: bool = False
) -> None:
    """Write what an instant of the table changes, before that is completed. The caller holds the table's lock.

    `config` and `timeline`: of the table, as they are now. `is_new`: the metadata table was built for this instant.

    Raises:
        ListingNeededError: the instant is a restore, and the metadata table was not built since.
        CorruptFileError, MissingFileError, UnsupportedTableError, FileNotFoundError: it cannot be kept up.
    """
    if change.instant.action is Action.RESTORE and not is_new:
        # Who carries one on does not know which files are gone already.
        raise ListingNeededError("a restore has taken instants back")
    undone = [time for time, _ in change.undone]
    writer = MetadataWriter.open(context, config, timeline, undone)
    if end_compactions(writer.opened):
        writer = MetadataWriter.open(context, config, timeline, undone)
    if not undone and writer.is_due(timeline):
        clean(writer.opened, writer.piece.base_instant, writer.latest_write())
        writer.compact()
        writer = MetadataWriter.open(context, config, timeline, undone)
        archive(writer.opened, timeline, context.clock)
    writer.apply(change)


@dataclass(frozen=True)
class MetadataWriter:
    """For one instant of the table. The caller holds the table's lock."""

    table: MetadataTable
    opened: OpenedMetadata
    piece: FileSlice
    """The file slice of `files`."""
    schema: str

    @classmethod
    def open(
        cls, context: TableContext, config: TableConfig, timeline: Timeline, undone: Collection[InstantTime]
    ) -> MetadataWriter:
        """The metadata table of a table with this timeline; `config` as the properties are now.

        Raises:
            CorruptFileError, MissingFileError, UnsupportedTableError, FileNotFoundError: it cannot be kept up.
        """
        table = MetadataTable.open(context.storage, config, timeline, context.cache, undone=undone)
        piece, opened = table.one_slice(FILES), table.opened
        if len(opened.own.instants) > _MOST_INSTANTS:
            pending = next((f": {each} is pending since" for each in timeline if not each.is_completed), "")
            raise UnsupportedTableError(
                f"its timeline has {len(opened.own.instants)} instants, none of which can be archived{pending}"
            )
        schema = context.cache.find(_SCHEMA, context.storage.identity)
        if schema is None:  # of later writes of a process none reads a record
            schema = table.schema_of(FILES)
            context.cache.put(_SCHEMA, context.storage.identity, schema, len(schema))
        return cls(table, opened, piece, schema)

    def apply(self, change: Change) -> None:
        """Complete the delta commit of an instant, after those of dead writers, and of instants that it took back, are withdrawn.

        Files that an instant took back are in its change as removed, so that it does not matter whether they were compacted.
        """
        instant = change.instant
        gone = {time for time, _ in change.undone}
        for each in self.opened.own:
            is_dead = not each.is_completed and each.action is Action.DELTACOMMIT
            if each.action is Action.DELTACOMMIT and (is_dead or each.time in gone or each.time == instant.time):
                self.withdraw(each.time)
        self._delta_commit(instant.time, change)

    def withdraw(self, time: InstantTime) -> None:
        """Take a delta commit back, with the log file that it wrote. What another process has taken back is no error.

        One of several partitions leaves its log: without its completed file no block of it counts.
        """
        active, storage = self.opened.active, self.opened.storage
        completed = Instant(time, Action.DELTACOMMIT, State.COMPLETED)
        written: list[str] = []
        if active.exists(completed):
            written = [stat.path for stat in active.read_commit(completed).stats() if stat.path]
            active.remove(completed)
        if len(written) == 1:
            storage.delete(written[0])
        for state in (State.INFLIGHT, State.REQUESTED):
            active.remove(Instant(time, Action.DELTACOMMIT, state))

    def is_due(self, timeline: Timeline) -> bool:
        """Whether to compact, by Apache Hudi's rule: so many delta commits since the last time, and no older instant of the table
        is pending, for what is merged counts in any case.
        """
        latest, own = self.latest_write(), self.opened.own
        since = [each for each in own.commits if each.time > self.piece.base_instant]
        settled = all(each.is_completed or each.time > latest for each in timeline)
        is_free = settled and not own.pending(Action.LOGCOMPACTION)
        return bool(latest) and len(since) >= COMPACTED_AFTER and is_free

    def compact(self) -> None:
        """Merge all logs into a base file: instant T001 after delta commit T."""
        active, storage, group = self.opened.active, self.opened.storage, self.piece.group
        time = InstantTime(f"{self.latest_write()}001")
        base = None if self.piece.base is None else self.piece.base.name
        logs = tuple(each.name for each in self.piece.logs)
        operation = CompactionOperation(FILES, group.file_id, self.piece.base_instant, base, logs)
        plan = encode_compaction_plan(CompactionPlan((operation,)))
        active.create(Instant(time, Action.COMPACTION, State.REQUESTED), plan)
        active.create(Instant(time, Action.COMPACTION, State.INFLIGHT))
        records: dict[str, Entries] = {
            key: {name: (size, False) for name, size in sizes.items()}
            for key, sizes in self.table.all_entries().items()
        }
        data = encode_entries(records, self.schema, is_base=True)
        name = format_base_file(BaseFileName(group.file_id, _TOKEN, time), ".hfile")
        storage.create_new(join(FILES, name), data)
        stat = WriteStat(
            group.file_id,
            FILES,
            join(FILES, name),
            self.piece.base_instant,
            num_writes=len(records),
            num_updates=len(records),
            total_bytes=len(data),
            file_size_bytes=len(data),
            prev_base_file=base,
            total_log_files_compacted=len(logs),
        )
        metadata = CommitMetadata(WriteOperation.COMPACT, {FILES: (stat,)}, self.schema, compacted=True)
        active.create(Instant(time, Action.COMPACTION, State.COMPLETED), encode_commit(metadata))

    def latest_write(self) -> InstantTime:
        """The last delta commit of an instant of the table; empty where there is none."""
        times = (each.time for each in self.opened.own.commits if is_write(each))
        return max(times, default=InstantTime(""))

    def _delta_commit(self, time: InstantTime, change: Change) -> None:
        active, storage, group = self.opened.active, self.opened.storage, self.piece.group
        records = entries_of(change)
        active.create(Instant(time, Action.DELTACOMMIT, State.REQUESTED))
        planned = WriteStat(group.file_id, FILES, "", self.piece.base_instant, num_updates=len(records))
        plan = CommitMetadata(WriteOperation.UPSERT, {FILES: (planned,)} if records else {})
        active.create(Instant(time, Action.DELTACOMMIT, State.INFLIGHT), encode_commit(plan))
        stats: dict[str, tuple[WriteStat, ...]] = {}
        if records:
            header = {HeaderKey.INSTANT_TIME: str(time), HeaderKey.SCHEMA: self.schema}
            block = encode_block(BlockKind.HFILE_DATA, header, encode_entries(records, self.schema))
            version = self._next_version()
            name = format_log_file(LogFileName(group.file_id, self.piece.base_instant, version, _TOKEN))
            storage.create_new(join(FILES, name), block)
            stats[FILES] = (
                WriteStat(
                    group.file_id,
                    FILES,
                    join(FILES, name),
                    self.piece.base_instant,
                    num_writes=len(records),
                    num_updates=len(records),
                    total_bytes=len(block),
                    file_size_bytes=len(block),
                    log_version=version,
                    base_file="" if self.piece.base is None else self.piece.base.name,
                    log_files=(*(each.name for each in self.piece.logs), name),
                ),
            )
        metadata = CommitMetadata(WriteOperation.UPSERT, stats, self.schema)
        active.create(Instant(time, Action.DELTACOMMIT, State.COMPLETED), encode_commit(metadata))

    def _next_version(self) -> int:
        """Greater than that of any log of the slice: also of those that a dead writer left, which no view shows."""
        found = (parse_log_file(name) for name in self.opened.storage.names(FILES))
        group = self.piece.group
        mine = (
            each.version
            for each in found
            if each is not None and (each.file_id, each.base_instant) == (group.file_id, self.piece.base_instant)
        )
        return max(mine, default=0) + 1
