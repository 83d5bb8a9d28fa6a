"""Tasks over an index that is kept outside of the table: they look up rows of a batch, and put entries for written rows.

An entry counts if the commit that put it does. The rest is up to who plans: the file group of an entry may be gone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import HoodieError, KeyIndexError
from hoodie.filegroup.chunks import load_chunk, matched_rows, new_rows, stage_rows
from hoodie.filegroup.ordering import whole
from hoodie.filegroup.run import deletes_of
from hoodie.filegroup.slice_reader import needed_columns, read_slice
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import VisibleInstants
from hoodie.model.key_index import FILE_ID, INSTANT_TIME, PARTITION_PATH, PLACES, KeyIndex
from hoodie.model.meta_fields import COMMIT_TIME, RECORD_KEY
from hoodie.model.plans import DELETED, Chunk, Matches, ReadContext, RowsTask, WriteContext
from hoodie.storage.base import Storage

_KEYS_AT_ONCE = 16 * 1024
"""That an index is asked about, or told of, in one call."""


@dataclass(frozen=True)
class HintTask:
    """Ask the index where the keys of a chunk stand."""

    number: int
    chunk: Chunk
    stage_to: str | None = None

    @property
    def size_bytes(self) -> int:
        return self.chunk.size_bytes


@dataclass(frozen=True)
class Hints:
    """What an index says of the rows of a chunk."""

    number: int
    by_group: tuple[tuple[FileGroupId, Matches], ...]
    """The rows by the file group of their entries, of those that count."""
    absent: int
    """Rows without an entry."""
    doubtful: int
    """Rows with an entry that does not count."""


@dataclass(frozen=True)
class PutTask:
    """Tell the index where the rows stand that a task of a write has written."""

    rows: RowsTask
    moved_from: int
    """Rows of chunks from this number on may have stood elsewhere."""
    renews: bool
    """Of rows whose keys were stored the entries are put again, too."""
    removes: bool
    """Entries of rows that are gone are deleted."""

    @property
    def size_bytes(self) -> int:
        return self.rows.size_bytes


@dataclass(frozen=True)
class RebuildTask:
    """Tell the index of all rows of a file slice."""

    slice: FileSlice

    @property
    def size_bytes(self) -> int:
        return self.slice.size_bytes


def run_hints(storage: Storage, index: KeyIndex, visible: VisibleInstants, task: HintTask) -> Hints:
    encoded = whole(load_chunk(storage, task.chunk).column(RECORD_KEY)).dictionary_encode()
    places = _places_of(index, encoded.dictionary)
    rows = encoded.indices.to_numpy(zero_copy_only=False)
    has_entry = pc.is_valid(places.column(INSTANT_TIME)).to_numpy()
    instants = pc.unique(places.column(INSTANT_TIME)).to_pylist()
    counted = pa.array([each for each in instants if each is not None and visible.sees(each)], pa.string())
    counts = pc.is_in(places.column(INSTANT_TIME), value_set=counted).to_numpy()
    paths, ids = (places.column(name).combine_chunks().dictionary_encode() for name in (PARTITION_PATH, FILE_ID))
    if counts.any() and (paths.null_count or ids.null_count):
        counts &= (pc.is_valid(paths).to_numpy(zero_copy_only=False)) & pc.is_valid(ids).to_numpy(zero_copy_only=False)
    group_of = np.where(counts, _codes(paths) * max(1, len(ids.dictionary)) + _codes(ids), -1)
    hints = []
    for code, matches in _by_code(storage, task, group_of[rows]):
        path, file_id = divmod(code, max(1, len(ids.dictionary)))
        hints.append((FileGroupId(paths.dictionary[path].as_py(), ids.dictionary[file_id].as_py()), matches))
    return Hints(task.number, tuple(hints), int((~has_entry[rows]).sum()), int((has_entry & ~counts)[rows].sum()))


def _places_of(index: KeyIndex, keys: pa.Array) -> pa.Table:
    tables = [PLACES.empty_table()]
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys.slice(start, _KEYS_AT_ONCE)
        with _failures_of(index):
            places: object = index.look_up(some)
        if (
            not isinstance(places, pa.Table)
            or places.num_rows != len(some)
            or set(PLACES.names) - set(places.column_names)
        ):
            raise KeyIndexError(
                f"index {type(index).__name__} was asked about {len(some)} keys and did not give a table of as many rows with the "
                f"columns {', '.join(PLACES.names)}"
            )
        tables.append(places.select(PLACES.names).cast(PLACES))
    return pa.concat_tables(tables).combine_chunks()


def _codes(encoded: pa.DictionaryArray) -> np.ndarray:
    codes: np.ndarray = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _by_code(storage: Storage, task: HintTask, codes: np.ndarray) -> Iterator[tuple[int, Matches]]:
    """The rows of each code but -1."""
    order = np.argsort(codes, kind="stable").astype(np.int32)
    order = order[np.searchsorted(codes[order], 0) :]
    ordered = codes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(order) else order
    ends = np.append(starts[1:], len(order))
    path = None if task.stage_to is None or not len(order) else stage_rows(storage, task.stage_to, order)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=False):
        rows = order[start:end] if path is None else None
        yield int(ordered[start]), Matches(task.number, rows=rows, path=path, count=end - start, start=start)


def run_removals(storage: Storage, index: KeyIndex, context: WriteContext, task: PutTask) -> None:
    """Delete the entries of deleted rows. A delete that may lose against the stored row leaves its entry.

    So does one that may stand for a row that moves: its entry is put as well, and HBase takes what is put in the millisecond of a
    delete for older.
    """
    deleted_keys: list[pa.Array] = []
    lives: list[pa.Array] = [pa.array([], pa.string())]
    for rows in _written(storage, context, task.rows, range(task.moved_from)):
        _, is_delete, always = deletes_of(rows, context)
        keys = whole(rows.column(RECORD_KEY))
        deleted_keys.append(keys.filter(pa.array(is_delete & always)))
        lives.append(keys.filter(pa.array(~is_delete)))
    if deleted_keys:
        keys = pc.unique(pa.concat_arrays(deleted_keys))
        keys = keys.filter(pc.invert(pc.is_in(keys, value_set=pa.concat_arrays(lives))))
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            with _failures_of(index):
                index.delete(keys.slice(start, _KEYS_AT_ONCE))


def run_puts(storage: Storage, index: KeyIndex, context: WriteContext, task: PutTask) -> None:
    """Put the entries of rows that are new in their file group."""
    keys: list[pa.Array] = [pa.array([], pa.string())]
    from_number = 0 if task.renews else task.moved_from
    for rows in _written(storage, context, task.rows, range(from_number, sys.maxsize)):
        lives = rows.filter(pc.invert(rows.column(DELETED))) if DELETED in rows.column_names else rows
        keys.append(whole(lives.column(RECORD_KEY)))
    _put(index, pc.unique(pa.concat_arrays(keys)), context.instant, task.rows.partition_path, task.rows.file_id)


def _written(storage: Storage, context: WriteContext, task: RowsTask, chunks: range) -> Iterator[pa.Table]:
    """The rows of a task; of those whose keys were stored only those in these chunks."""
    updates = [matches for matches in task.updates if matches.number in chunks]
    yield from matched_rows(storage, task.pieces, updates)
    if task.inserts is not None:
        yield from new_rows(storage, task.inserts, key_prefix=context.instant if context.generates_keys else None)


def run_rebuild(storage: Storage, index: KeyIndex, context: ReadContext, task: RebuildTask) -> int:
    """Put the entries of all rows of a slice; gives their number."""
    group, count = task.slice.group, 0
    for batch in read_slice(storage, context, task.slice, needed_columns(context, (RECORD_KEY, COMMIT_TIME), None)):
        times = pc.fill_null(batch.column(COMMIT_TIME), task.slice.base_instant)  # null in rows without meta columns
        _put(index, batch.column(RECORD_KEY), times, group.partition_path, group.file_id)
        count += batch.num_rows
    return count


def _put(index: KeyIndex, keys: pa.Array, times: pa.Array | str, partition_path: str, file_id: str) -> None:
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        some = keys.slice(start, _KEYS_AT_ONCE)
        time = (
            pa.repeat(pa.scalar(times, pa.string()), len(some))
            if isinstance(times, str)
            else times.slice(start, len(some))
        )
        columns = (time, *(pa.repeat(pa.scalar(each, pa.string()), len(some)) for each in (partition_path, file_id)))
        with _failures_of(index):
            index.put(some, pa.table(list(columns), schema=PLACES))


@contextmanager
def _failures_of(index: KeyIndex) -> Iterator[None]:
    """An error of the index is none of the table's storage."""
    try:
        yield
    except HoodieError:
        raise
    except Exception as exc:
        raise KeyIndexError(
            f"index {type(index).__name__} failed: {type(exc).__name__}: {exc}. Nothing of the write is visible; run it again "
            "when the index works"
        ) from exc
