"""Rows of a batch whose keys are stored in other partitions: what becomes of them where a key is unique in the whole table.

A look-up says which file groups hold a key. Where one of them is in another partition than the row, where several hold the key, or
where the batch has it in several partitions, the stored rows are read: only they say which copy lives and which record counts. The
outcome is one more chunk, of rows that stand for those of the batch: a delete where the key leaves a file group, and one record
where it stays or goes to. The plan and the tasks that write treat it as any other chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.chunks import load_chunk, load_places, load_rows, make_chunk, make_matches
from hoodie.filegroup.deleted_rows import without_lost
from hoodie.filegroup.merge import beats_stored, key_codes, positions_in
from hoodie.filegroup.ordering import ordering_of, ranks_of, whole
from hoodie.filegroup.partial import filled, kept_columns, stored_rows
from hoodie.filegroup.run import combined, deletes_of
from hoodie.filegroup.stored_merge import Newer, merged_rows
from hoodie.hashes.of_keys import key_hash
from hoodie.keygen.generator import KeyGenerator
from hoodie.model.enums import MergeMode
from hoodie.model.files import FileSlice
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import ARRIVAL, DELETED, Chunk, Matches, WriteContext
from hoodie.storage.base import Storage

_NOWHERE = -1


@dataclass(frozen=True)
class MoveTask:
    """Decide where the rows of a batch go whose keys may be stored elsewhere."""

    number: int
    """Of the chunk that it makes."""
    chunks: tuple[Chunk, ...]
    """The batch, in arrival order."""
    holders: tuple[tuple[FileSlice, tuple[Matches, ...]], ...]
    """The file groups that hold keys of the batch, and the rows that have these keys."""
    keygen: KeyGenerator
    moves: bool
    """A row goes to the partition that it says; if not, it stays in that where its key is stored."""
    updates: bool
    """Rows of stored keys are written; if not, they are left out."""
    share: int = 0
    """It decides on the keys of this share"""
    of: int = 1
    """of so many."""
    stage_to: str | None = None
    """Folder for what it makes; None keeps it in memory."""

    @property
    def size_bytes(self) -> int:
        return sum(chunk.size_bytes for chunk in self.chunks) // self.of


@dataclass(frozen=True)
class MoveResult:
    """What a task decided."""

    targets: tuple[tuple[int, tuple[Matches, ...]], ...]
    """Number of a file group in the task -> the rows that go there."""
    chunk: Chunk | None = None
    aside: tuple[tuple[str, Matches], ...] = ()
    """By partition path: rows of the batch that rows of the new chunk stand for."""
    origins: frozenset[int] = field(default_factory=frozenset)
    """Numbers of file groups that rows leave."""
    read: frozenset[int] = field(default_factory=frozenset)
    """Numbers of file groups whose rows decided."""


def run_moves(storage: Storage, context: WriteContext, task: MoveTask) -> MoveResult:
    """Decide on the rows of one share of the keys."""
    batch = _Batch(storage, task)
    hits = batch.hits(storage, task)
    unclear = batch.unclear(hits, [file_slice.group.partition_path for file_slice, _ in task.holders])
    clear = tuple(_by_slice(hits.only(~unclear[hits.rows]), batch, storage, task.stage_to))
    if not unclear.any():
        return MoveResult(clear)
    rows = combined(list(batch.take(storage, task.chunks, unclear)), context)
    if rows is None:
        raise ValueError("there are unclear rows, and none")
    aside = tuple(_by_partition(unclear, batch, storage, task.stage_to))
    unclear_hits = hits.only(unclear[hits.rows])
    keys = whole(rows.column(RECORD_KEY))
    pairs = np.unique(
        positions_in(batch.keys.take(pa.array(unclear_hits.rows)), keys).astype(np.int64) * len(task.holders)
        + unclear_hits.slices
    )
    of_row, of_slice = np.divmod(pairs, max(1, len(task.holders)))
    if task.updates:
        decided = _Decision(storage, context, task, rows, of_row, of_slice).decision()
    else:
        new = np.flatnonzero(np.bincount(of_row, minlength=len(keys)) == 0)
        decided = _Outcome(rows.take(pa.array(new)), np.full(len(new), _NOWHERE), frozenset())
    order = _grouped(decided.rows)
    chunk = make_chunk(decided.rows.take(pa.array(order)), storage=storage, stage_to=task.stage_to)
    targets = decided.slices[order]
    updates = tuple(
        (int(n), (make_matches(task.number, np.flatnonzero(targets == n), storage=storage, stage_to=task.stage_to),))
        for n in np.unique(targets[targets >= 0])
    )
    return MoveResult(clear + updates, chunk, aside, decided.origins, frozenset(of_slice.tolist()))


def found_twice(matches: Sequence[Matches]) -> bool:
    """Whether rows may be among them twice: an index and the file itself say that a key is there."""
    return len({each.number for each in matches}) < len(matches)


class _Matches(NamedTuple):
    """Pairs of a row of the batch and a file group that holds its key."""

    rows: np.ndarray
    slices: np.ndarray
    places: np.ndarray

    def only(self, mask: np.ndarray) -> _Matches:
        return _Matches(self.rows[mask], self.slices[mask], self.places[mask])


class _Batch:
    """The rows of a share: their keys, and where in the chunks they stand."""

    def __init__(self, storage: Storage, task: MoveTask) -> None:
        self.paths = sorted({span.partition_path for chunk in task.chunks for span in chunk.ranges})
        code = {path: n for n, path in enumerate(self.paths)}
        sizes = [chunk.rows for chunk in task.chunks]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        spans = [span for chunk in task.chunks for span in chunk.ranges]
        keys = [whole(load_chunk(storage, chunk).column(RECORD_KEY)) for chunk in task.chunks]
        self.keys = pa.concat_arrays(keys)
        self.parts = np.repeat([code[span.partition_path] for span in spans], [span.length for span in spans])
        self.numbers = np.repeat(np.arange(len(sizes)), sizes)
        self.at = np.arange(len(self.keys)) - self._starts[self.numbers]
        self._place = np.arange(len(self.keys))
        if task.of > 1:
            mine = key_hash(self.keys) % np.uint64(task.of) == task.share
            self._place = np.where(mine, np.cumsum(mine) - 1, _NOWHERE)
            self.keys = self.keys.filter(pa.array(mine))
            self.parts, self.numbers, self.at = self.parts[mine], self.numbers[mine], self.at[mine]
        self._codes, self._count = key_codes(self.keys)

    def hits(self, storage: Storage, task: MoveTask) -> _Matches:
        parts = [_Matches(*(np.empty(0, np.int64) for _ in _Matches._fields))]
        for n, (_, matches) in enumerate(task.holders):
            for each in matches:
                rows = self._place[self._starts[each.number] + load_rows(storage, each)]
                parts.append(_Matches(rows, np.full(len(rows), n), load_places(storage, each)))
        result = _Matches(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        result = result.only(result.rows >= 0)
        if any(found_twice(matches) for _, matches in task.holders):
            order = np.lexsort((-result.places, result.rows, result.slices))
            result = result.only(order)
            again = (np.diff(result.rows) == 0) & (np.diff(result.slices) == 0)
            result = result.only(np.append(True, ~again)[: len(order)])
        return result

    def unclear(self, hits: _Matches, paths: Sequence[str]) -> np.ndarray:
        """Bool for each row: its key is in several partitions of the batch, in several file groups, or in another partition."""
        lowest, highest = np.full(self._count, len(self.paths)), np.full(self._count, -1)
        np.minimum.at(lowest, self._codes, self.parts)
        np.maximum.at(highest, self._codes, self.parts)
        unclear = lowest != highest
        code = {path: n for n, path in enumerate(self.paths)}
        stored_in = np.array([code.get(path, _NOWHERE) for path in paths], dtype=np.int64)
        unclear[self._codes[hits.rows[stored_in[hits.slices] != self.parts[hits.rows]]]] = True
        pairs = np.unique(self._codes[hits.rows].astype(np.int64) * len(paths) + hits.slices)
        unclear |= np.bincount(pairs // max(1, len(paths)), minlength=self._count) > 1
        rows: np.ndarray = unclear[self._codes]
        return rows

    def take(self, storage: Storage, chunks: Sequence[Chunk], which: np.ndarray) -> Iterator[pa.Table]:
        """The chosen rows, a table for each chunk, in arrival order."""
        rows = np.flatnonzero(which)
        for part in _runs(self.numbers[rows], self.numbers[rows]):
            chosen = rows[part]
            yield load_chunk(storage, chunks[self.numbers[chosen[0]]]).take(pa.array(self.at[chosen])).sort_by(ARRIVAL)


class _Outcome(NamedTuple):
    rows: pa.Table
    slices: np.ndarray
    """For each row the number of the file group that it goes to; -1: it is new."""
    origins: frozenset[int]


class _Decision:
    """One record of each unclear key, and the stored rows that it meets."""

    def __init__(
        self,
        storage: Storage,
        context: WriteContext,
        task: MoveTask,
        rows: pa.Table,
        of_row: np.ndarray,
        of_slice: np.ndarray,
    ) -> None:
        self._storage, self._context, self._task = storage, context, task
        self._slices = [file_slice for file_slice, _ in task.holders]
        self._rows = rows
        self._keys = whole(rows.column(RECORD_KEY))
        stored_in = pa.array([each.group.partition_path for each in self._slices], pa.string())
        self._names = pc.unique(pa.concat_arrays([stored_in, whole(rows.column(PARTITION_PATH))]))
        """Partition paths; below, numbers among them."""
        self._paths = positions_in(rows.column(PARTITION_PATH), self._names)
        self._slice_paths = positions_in(stored_in, self._names)
        self._merges_values = context.rule.fill is not None or context.rule.merger is not None
        self._stored, self._copy_row, self._copy_slice, lives = self._copies(of_row, of_slice)
        at_home = self._slice_paths[of_slice] == self._paths[of_row]
        self._dead_home = np.full(len(rows), _NOWHERE)
        dead = np.flatnonzero(at_home & ~lives)[::-1]
        self._dead_home[of_row[dead]] = of_slice[
            dead
        ]  # of repeated indices numpy keeps the last assignment: the first group

    def _copies(self, of_row: np.ndarray, of_slice: np.ndarray) -> tuple[pa.Table, np.ndarray, np.ndarray, np.ndarray]:
        """Stored rows with, for each, its record and its file group; and for each pair whether a row lives there."""
        context, full = self._context, self._context.full_schema
        names = [name for name in context.rule.ordering_columns if name in full.names]
        if self._merges_values or context.set_columns is not None:
            names = list(context.schema.names)
        stored, copy_row, copy_slice, lives = [], [], [], np.zeros(len(of_row), dtype=bool)
        for n in np.unique(of_slice):
            here = np.flatnonzero(of_slice == n)
            keys = self._keys.take(pa.array(of_row[here]))
            rows = stored_rows(self._storage, context, self._slices[n], keys, names)
            at = positions_in(keys, whole(rows.column(RECORD_KEY)))
            live = at >= 0
            lives[here] = live
            stored.append(rows.take(pa.array(at[live])))
            copy_row.append(of_row[here[live]])
            copy_slice.append(np.full(int(live.sum()), n))
        empty = pa.schema([full.field(RECORD_KEY), *(full.field(name) for name in names)]).empty_table()
        nothing = np.empty(0, np.int64)
        return (
            pa.concat_tables([empty, *stored]),
            np.concatenate([nothing, *copy_row]),
            np.concatenate([nothing, *copy_slice]),
            lives,
        )

    def decision(self) -> _Outcome:
        best = self._best_copies()
        there = np.flatnonzero(best >= 0)
        older = self._stored.take(pa.array(best[there]))
        rows = self._completed(self._rows, older, there)
        ordering, is_delete, always = deletes_of(rows, self._context)
        wins = best >= 0
        stored = ordering_of(older, self._context.rule)
        if ordering is not None and stored is not None:
            mine = ordering.take(pa.array(there))
            wins[there] = beats_stored(mine, always[there], stored, self._context.rule)
        stored_at = np.full(len(best), _NOWHERE)
        stored_at[there] = self._copy_slice[best[there]]
        stored_in = self._paths.copy()
        stored_in[there] = self._slice_paths[stored_at[there]]
        paths = np.where(wins, self._paths, stored_in)
        live = np.flatnonzero((best >= 0) & ~is_delete)
        merged = rows
        if self._merges_values and len(live):
            newer = Newer(self._keys, rows.select(self._context.schema.names), ordering, is_delete, None)
            merged, paths = self._merged(newer, older.take(pa.array(np.searchsorted(there, live))), live, wins, paths)
        moves = (best >= 0) & ~is_delete & (paths != stored_in) & self._task.moves
        # What stays meets the stored row when it is written. A merger gives other values when it is asked twice, filling does not.
        both = pa.concat_tables([rows, merged.select(rows.column_names)])
        filled = moves if self._context.rule.merger is not None else best >= 0
        rows = both.take(pa.array(np.where(filled, len(best), 0) + np.arange(len(best))))
        target = np.where(best >= 0, stored_at, self._dead_home)
        target[moves] = self._target_of(rows, paths, moves)[moves]
        written = self._with_paths(rows, np.where(moves, paths, stored_in))
        # A row that would move and is older than the stored one is not written: a pull would show it where it is not.
        late = (best >= 0) & ~is_delete & ~wins & (self._paths != stored_in) & self._task.moves
        if self._merges_values:
            late[:] = False
        return self._with_deletes(rows, written, target, is_delete, late)

    def _best_copies(self) -> np.ndarray:
        """For each record the stored row that it meets: the newest one, of equal ones that in its own partition; -1: there is none."""
        best = np.full(self._rows.num_rows, _NOWHERE)
        ordering = ordering_of(self._stored, self._context.rule)
        by_event_time = self._context.rule.mode is MergeMode.EVENT_TIME_ORDERING
        count = len(self._copy_row)
        ranks = ranks_of(ordering) if by_event_time and ordering is not None else np.zeros(count)
        at_home = np.zeros(count, dtype=bool)
        if count:
            at_home = self._slice_paths[self._copy_slice] == self._paths[self._copy_row]
        order = np.lexsort((-self._copy_slice, at_home, ranks, self._copy_row))
        best[self._copy_row[order]] = order  # of repeated indices numpy keeps the last assignment
        return best

    def _completed(self, rows: pa.Table, older: pa.Table, there: np.ndarray) -> pa.Table:
        """The records with the stored values of columns that the batch does not set."""
        source = np.full(rows.num_rows, _NOWHERE)
        source[there] = np.arange(len(there))
        return filled(rows, older, source, kept_columns(self._context))

    def _merged(
        self, newer: Newer, older: pa.Table, entries: np.ndarray, wins: np.ndarray, paths: np.ndarray
    ) -> tuple[pa.Table, np.ndarray]:
        """The records with the fields of stored rows where these count, and the partitions that they then say."""
        fields = newer.rows.schema
        merged = merged_rows(older.select(fields.names).cast(fields), newer, entries, wins[entries], self._context.rule)
        merged_paths = whole(self._task.keygen.partitions(merged))
        self._names = pc.unique(
            pa.concat_arrays([self._names, merged_paths])
        )  # those that were there keep their numbers
        paths = paths.copy()
        paths[entries] = positions_in(merged_paths, self._names)
        source = np.arange(self._rows.num_rows)
        source[entries] = len(source) + np.arange(len(entries))
        both = pa.concat_tables([newer.rows, merged.cast(fields)]).take(pa.array(source))
        rows = self._rows
        for name in fields.names:
            rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), both.column(name))
        return rows, paths

    def _target_of(self, rows: pa.Table, paths: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """For each record that moves the file group of its new partition that holds its key; -1 where none does, or where it would
        be lost there: against a delete in the logs.
        """
        target = np.full(rows.num_rows, _NOWHERE)
        if len(self._copy_row):
            home = np.flatnonzero(
                moves[self._copy_row] & (self._slice_paths[self._copy_slice] == paths[self._copy_row])
            )
            target[self._copy_row[home[::-1]]] = self._copy_slice[home[::-1]]
        dead = moves & (paths == self._paths) & (target < 0) & (self._dead_home >= 0)
        for n in np.unique(self._dead_home[dead]):
            here = np.flatnonzero(dead & (self._dead_home == n))
            mine = rows.take(pa.array(here))
            counts = without_lost(self._storage, self._context, self._slices[n], mine)
            stays = positions_in(mine.column(RECORD_KEY), whole(counts.column(RECORD_KEY))) >= 0
            target[here[stays]] = n
        return target

    def _with_deletes(
        self, rows: pa.Table, written: pa.Table, target: np.ndarray, is_delete: np.ndarray, late: np.ndarray
    ) -> _Outcome:
        """The records, and a delete of every stored row that is not the one which its record goes to."""
        others = np.flatnonzero(self._copy_slice != target[self._copy_row])
        of_row, of_slice = self._copy_row[others], self._copy_slice[others]
        deletes = rows.take(pa.array(of_row))
        leaves = ~is_delete[of_row]
        for name in self._context.rule.ordering_columns:
            if name in deletes.column_names:  # without a value it wins whatever it meets
                column = deletes.column(name)
                at = deletes.column_names.index(name)
                ordering = pc.if_else(pa.array(leaves), pa.scalar(None, column.type), column)
                deletes = deletes.set_column(at, deletes.schema.field(name), ordering)
        if len(others):
            deletes = self._with_paths(deletes, self._slice_paths[of_slice])
        written = _marked(written, is_delete).filter(pa.array(~late))
        both = pa.concat_tables([written, _marked(deletes, np.ones(len(others), dtype=bool))])
        return _Outcome(both, np.concatenate([target[~late], of_slice]), frozenset(of_slice[leaves].tolist()))

    def _with_paths(self, rows: pa.Table, paths: np.ndarray) -> pa.Table:
        at = rows.column_names.index(PARTITION_PATH)
        return rows.set_column(at, rows.schema.field(PARTITION_PATH), self._names.take(pa.array(paths)))


def _marked(rows: pa.Table, deleted: np.ndarray) -> pa.Table:
    names = [name for name in rows.column_names if name != DELETED]
    return rows.select(names).append_column(pa.field(DELETED, pa.bool_()), pa.array(deleted))


def _grouped(rows: pa.Table) -> np.ndarray:
    """The order in which the rows of a partition stand together, and stay so in a chunk."""
    codes, _ = key_codes(rows.column(PARTITION_PATH))
    order: np.ndarray = np.argsort(codes, kind="stable")
    return order


def _by_slice(
    pairs: _Matches, batch: _Batch, storage: Storage, stage_to: str | None
) -> Iterator[tuple[int, tuple[Matches, ...]]]:
    """The pairs as matches, which stand in the order of file groups and chunks."""
    for part in _runs(pairs.slices, batch.numbers[pairs.rows]):
        number, rows = int(batch.numbers[pairs.rows[part[0]]]), batch.at[pairs.rows[part]]
        matches = make_matches(number, rows, pairs.places[part], storage=storage, stage_to=stage_to)
        yield int(pairs.slices[part[0]]), (matches,)


def _by_partition(
    which: np.ndarray, batch: _Batch, storage: Storage, stage_to: str | None
) -> Iterator[tuple[str, Matches]]:
    """The chosen rows by partition path."""
    rows = np.flatnonzero(which)
    for part in _runs(batch.numbers[rows], batch.parts[rows]):
        chosen = rows[part]
        matches = make_matches(int(batch.numbers[chosen[0]]), batch.at[chosen], storage=storage, stage_to=stage_to)
        yield batch.paths[batch.parts[chosen[0]]], matches


def _runs(first: np.ndarray, second: np.ndarray) -> list[np.ndarray]:
    """Numbers of neighbours that are equal in both."""
    if not len(first):
        return []
    ends = np.flatnonzero((np.diff(first) != 0) | (np.diff(second) != 0)) + 1
    return np.split(np.arange(len(first)), ends)
