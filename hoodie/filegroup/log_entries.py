"""The entries of logs that may be larger than memory.

They are collected as ever while they take a quarter of the memory. When they take more they go to disk, parted by the hash of their
keys, and come back part by part; see `rewrite.py`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from hoodie.filegroup.log_scan import CollectedEntries, LogRecords, is_partial
from hoodie.filegroup.merge import fills_by_event_time, latest_of_each, unconditional
from hoodie.filegroup.picks import rows_at
from hoodie.filegroup.spill import MOST_PARTS, KeySet, SpilledRows
from hoodie.format.log_block import LogBlock
from hoodie.hashes.of_keys import key_hash
from hoodie.model.columns import ColumnHistory
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import MergeRule, Room, UnstoredColumns

_DELETED, _FROM_BLOCK, _ORDERING = "*deleted", "*block", "*ordering"
_HELD = 4
"""The part of the memory that entries may take before they go to disk."""
_AT_ONCE = 8
"""The part that is held of them on their way there, and that one part is to take when it comes back."""
_SAFETY = 1.25


class BoundedEntries(CollectedEntries):
    """The entries of logs, in memory or on disk; a context manager."""

    def __init__(
        self,
        schema: pa.Schema,
        rule: MergeRule,
        room: Room,
        *,
        expected: int,
        history: ColumnHistory | None = None,
        unstored: UnstoredColumns | None = None,
    ) -> None:
        super().__init__(pa.schema([field.with_nullable(True) for field in schema]), rule, history, unstored)
        self._room = room
        self._expected = expected
        """Entries, as far as commits say it."""
        self._plain = rule.fill is None and rule.merger is None and not fills_by_event_time(rule)
        """Each merged row is one of those that were written, so that entries that lost may be forgotten at any time."""
        self._held_bytes = 0
        self._may_spill = True
        self._spilled: SpilledRows | None = None
        self.keys_there: KeySet | None = None
        kinds = [] if self.kind is None else [pa.field(_ORDERING, self.kind)]
        self._stored = pa.schema(
            [*self.schema, pa.field(_DELETED, pa.bool_()), pa.field(_FROM_BLOCK, pa.bool_()), *kinds]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spilled is not None:
            self._spilled.__exit__(kind, error, trace)

    @property
    def parts(self) -> int:
        """How many parts there are on disk; 0 while all is in memory."""
        return 0 if self._spilled is None else self._spilled.parts

    def add_data(self, block: LogBlock, path: str, piece_bytes: int | None = None) -> None:
        if is_partial(block):
            self._may_spill = (
                False  # which columns a row has is known by its number; tables of version 6 have no such blocks
            )
        super().add_data(block, path, piece_bytes)

    def _add_rows(self, table: pa.Table, flags: np.ndarray) -> None:
        super()._add_rows(table, flags)
        self._count(table.nbytes)

    def _add_keys(self, keys: pa.ChunkedArray, ordering: pa.Array | None) -> None:
        # Here each entry has a row, so that all can be told apart by their numbers: of a delete it holds the key only.
        columns = [keys if f.name == RECORD_KEY else pa.nulls(len(keys), f.type) for f in self.schema]
        self.tables.append(pa.table(columns, schema=self.schema))
        self.offset += len(keys)
        super()._add_keys(keys, ordering)
        self._count(keys.nbytes)

    def _count(self, size_bytes: int) -> None:
        self._held_bytes += size_bytes
        most = self._room.memory_bytes // (_HELD if self._spilled is None else _AT_ONCE)
        if self._may_spill and self._held_bytes > most:
            self._spill()

    def _spill(self) -> None:
        if self._spilled is None:
            self._spilled = SpilledRows(self._stored, self._parts_needed(), folder=self._room.folder)
            self.keys_there = KeySet(self._room.memory_bytes // 16)
        rows = self._entries()
        hashes = key_hash(rows.column(RECORD_KEY))
        if self.keys_there is not None:
            self.keys_there.add(hashes)
        self._spilled.add(rows, hashes)
        self.forget()

    def _parts_needed(self) -> int:
        decoded = self._held_bytes / max(1, self.offset) * max(self._expected, 2 * self.offset)
        part = max(1, self._room.memory_bytes // _AT_ONCE)
        return int(min(MOST_PARTS, max(2, -(-decoded * _SAFETY // part))))

    def _entries(self) -> pa.Table:
        """All that is held, a row for each entry, in merge order."""
        rows = pa.concat_tables(self.tables)
        columns = [*rows.columns, pa.array(np.concatenate(self.deleted)), pa.array(np.concatenate(self.from_block))]
        if self.kind is not None:
            columns.append(pa.concat_arrays(self.orderings))
        return pa.Table.from_arrays(columns, schema=self._stored)

    def forget(self) -> None:
        """What is in memory."""
        self.tables, self.keys, self.orderings, self.deleted, self.from_block, self.rows = [], [], [], [], [], []
        self.offset = self._held_bytes = 0

    def finished(self) -> None:
        """All blocks were handed over."""
        if self._spilled is not None and self.tables:
            self._spill()

    def of_part(self, part: int) -> LogRecords:
        """The entries of one part on disk, reduced to one a key."""
        if self._spilled is None:
            return CollectedEntries(self.schema, self.rule).reduced()
        batches: list[pa.RecordBatch] = []
        size = 0
        most = self._room.memory_bytes // _HELD
        for batch in self._spilled.read(part):
            batches.append(batch)
            size += batch.nbytes
            if self._plain and size > most:  # a key that was written very often
                batches = latest(pa.Table.from_batches(batches), self.rule).combine_chunks().to_batches()
                size = sum(each.nbytes for each in batches)
                most = max(most, 2 * size)
        return _collected(batches, self.schema, self.rule).reduced()


def _collected(batches: list[pa.RecordBatch], schema: pa.Schema, rule: MergeRule) -> CollectedEntries:
    """The entries that were read back from disk, collected as those of logs are."""
    result = CollectedEntries(schema, rule)
    if batches:
        entries = pa.Table.from_batches(batches)
        deleted = entries.column(_DELETED).combine_chunks().to_numpy(zero_copy_only=False)
        result.tables = [entries.select(schema.names)]
        result.keys = entries.column(RECORD_KEY).chunks
        result.orderings = entries.column(_ORDERING).chunks if _ORDERING in entries.column_names else []
        result.deleted = [deleted]
        result.from_block = [entries.column(_FROM_BLOCK).combine_chunks().to_numpy(zero_copy_only=False)]
        result.rows = [np.where(deleted, -1, np.arange(len(deleted)))]
        result.offset = result.entries = len(deleted)
    return result


def latest(entries: pa.Table, rule: MergeRule) -> pa.Table:
    """Of a key's first entries, in merge order, the one that counts; what comes later decides over it as it would over all of them.

    Not of entries from the middle: a delete that counts in any case cuts off what came before it, even if it was replaced since.
    """
    deleted = entries.column(_DELETED).combine_chunks().to_numpy(zero_copy_only=False)
    ordering = None
    if _ORDERING in entries.column_names:
        ordering = entries.column(_ORDERING).combine_chunks()
    from_block = entries.column(_FROM_BLOCK).combine_chunks().to_numpy(zero_copy_only=False)
    always = unconditional(deleted, ordering, rule)
    winners = latest_of_each(entries.column(RECORD_KEY), ordering, always, rule, block_deletes=from_block)
    return entries if len(winners) == entries.num_rows else rows_at(entries, winners)
