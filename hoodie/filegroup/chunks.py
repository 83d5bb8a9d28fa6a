"""Rows of a batch on their way to their files: chunks in memory or staged as Arrow IPC files, and picks from them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.hashes.of_keys import key_hash
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.names import join
from hoodie.model.plans import PLACE, Chunk, ChunkPiece, ChunkRange, Inserts, Matches
from hoodie.publish.publishers import publisher_of
from hoodie.storage.base import Storage

_new_ipc_file: Any = pa.ipc.new_file
"""Takes any binary file object; its stubs know Python's own classes only."""


def make_chunk(
    table: pa.Table,
    *,
    storage: Storage | None = None,
    stage_to: str | None = None,
    sort_by_key: bool = False,
) -> Chunk:
    """A chunk of prepared rows, sorted by partition path here; staged when a folder is given, else kept in memory.

    The folder is there, and is not made again: a task that outlives its write leaves nothing.
    `sort_by_key`: the rows of a partition in the order of their record keys, not in that of arrival.
    """
    table = table.combine_chunks()
    if sort_by_key:
        table = table.take(pc.sort_indices(table.column(RECORD_KEY))).combine_chunks()
    ranges, table = _by_partition(table)
    if storage is None or stage_to is None:
        return Chunk(ranges, table.num_rows, table.nbytes, table=table)
    path = join(stage_to, f"{uuid.uuid4().hex}.arrow")
    staged = publisher_of(storage).open_staged(path, within=stage_to, durable=False)
    with staged as sink, _new_ipc_file(sink, table.schema) as writer:
        writer.write_table(table)
    return Chunk(ranges, table.num_rows, table.nbytes, path=path)


def sorted_chunks(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Chunks in memory as others of about the same size, whose ranges of (partition path, record key) do not overlap.

    Where some are in files all stay as they are, each sorted in itself: what does not fit into memory is not sorted as a whole.
    """
    tables = [chunk.table for chunk in chunks if chunk.table is not None and not chunk.mapped]
    if len(tables) < max(2, len(chunks)):
        return list(chunks)
    both = pa.concat_tables([table.select([PARTITION_PATH, RECORD_KEY]) for table in tables])
    order = pc.sort_indices(both, sort_keys=[(PARTITION_PATH, "ascending"), (RECORD_KEY, "ascending")])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    share = rank // -(-len(order) // len(tables))
    ends = np.cumsum([table.num_rows for table in tables])[:-1]
    shares = np.split(share, ends)
    return [
        make_chunk(
            pa.concat_tables([t.filter(pa.array(s == number)) for t, s in zip(tables, shares, strict=True)]),
            sort_by_key=True,
        )
        for number in range(len(tables))
    ]


def _by_partition(table: pa.Table) -> tuple[tuple[ChunkRange, ...], pa.Table]:
    if not table.num_rows:
        return (), table
    encoded = pc.dictionary_encode(table.column(PARTITION_PATH).combine_chunks())
    names = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    if (codes[1:] < codes[:-1]).any():  # codes go by first appearance: ascending means that partitions stand together
        order = np.argsort(codes, kind="stable")  # arrival order stays within a partition: ties go to the later row
        table = table.take(pa.array(order)).combine_chunks()
        codes = codes[order]
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    ends = np.append(starts[1:], len(codes))
    ranges = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        keys = table.column(RECORD_KEY).slice(start, end - start)
        bounds = pc.min_max(keys)
        ranges.append(
            ChunkRange(
                partition_path=names[codes[start]],
                start=start,
                length=end - start,
                min_key=bounds["min"].as_py(),
                max_key=bounds["max"].as_py(),
            )
        )
    return tuple(ranges), table


def load_chunk(storage: Storage, chunk: Chunk) -> pa.Table:
    """The rows of a chunk; a staged one is mapped, so that only the columns and rows in use are really read."""
    if chunk.table is not None:
        return chunk.table
    with storage.open_input(str(chunk.path)) as source:
        return pa.ipc.open_file(source).read_all()


def load_rows(storage: Storage, matches: Matches) -> np.ndarray:
    if matches.rows is not None:
        return matches.rows
    with storage.open_input(str(matches.path)) as source:
        column = pa.ipc.open_file(source).read_all().column(0).slice(matches.start, matches.count).combine_chunks()
    rows: np.ndarray = column.to_numpy(zero_copy_only=False)
    return rows


def load_places(storage: Storage, matches: Matches) -> np.ndarray:
    """For each matched row the row number in the base file, int32; -1 where it is not known."""
    if matches.rows is None:
        with storage.open_input(str(matches.path)) as source:
            table = pa.ipc.open_file(source).read_all().slice(matches.start, matches.count)
        if table.num_columns > 1:
            places: np.ndarray = table.column(1).combine_chunks().to_numpy(zero_copy_only=False)
            return places
    return np.full(matches.count, -1, np.int32) if matches.places is None else matches.places


def make_matches(
    number: int,
    rows: np.ndarray,
    places: np.ndarray | None = None,
    *,
    storage: Storage | None = None,
    stage_to: str | None = None,
) -> Matches:
    """Row numbers inside chunk `number`, with the numbers of the stored rows in the base file; staged when a folder is given."""
    rows = rows.astype(np.int32)
    if storage is None or stage_to is None:
        return Matches(number, rows=rows, count=len(rows), places=places)
    return Matches(number, path=stage_rows(storage, stage_to, rows, places), count=len(rows))


def stage_rows(storage: Storage, folder: str, rows: np.ndarray, places: np.ndarray | None = None) -> str:
    """A file with row numbers, for the `path` of one `Matches` or more."""
    table = pa.table({"row": rows} if places is None else {"row": rows, "place": places.astype(np.int32)})
    path = join(folder, f"{uuid.uuid4().hex}.rows")
    staged = publisher_of(storage).open_staged(path, within=folder, durable=False)
    with staged as sink, _new_ipc_file(sink, table.schema) as writer:
        writer.write_table(table)
    return path


def piece_keys(storage: Storage, piece: ChunkPiece) -> pa.Array:
    """Record keys of a piece, in row order."""
    column: Any = load_chunk(storage, piece.chunk).column(RECORD_KEY).slice(piece.span.start, piece.span.length)
    keys: pa.Array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return keys


def matched_rows(
    storage: Storage,
    pieces: Sequence[ChunkPiece],
    updates: Sequence[Matches],
    *,
    places: bool = False,
    by_place: bool = False,
    share: int = 0,
    of: int = 1,
) -> list[pa.Table]:
    """The matched rows, a table for each chunk, in arrival order.

    `places`: with the column `PLACE`; `by_place`: each table in its order, rows of one place in arrival order. `share`, `of`: only
    rows whose keys are in this share of all.
    """
    chunks = {piece.number: piece.chunk for piece in pieces}
    tables = []
    for number, group in groupby(sorted(updates, key=lambda m: m.number), lambda m: m.number):
        of_chunk = [matches for matches in group if matches.count]
        if not of_chunk:
            continue
        chunk = load_chunk(storage, chunks[number])
        rows = np.concatenate([load_rows(storage, matches) for matches in of_chunk])
        mine = np.ones(len(rows), dtype=bool)
        if of > 1:
            mine = key_hash(chunk.column(RECORD_KEY).take(pa.array(rows))) % np.uint64(of) == share
        if not mine.any():
            continue
        rows = rows[mine]
        if not places:
            tables.append(chunk.take(pa.array(rows)))
            continue
        row_places = np.concatenate([load_places(storage, matches) for matches in of_chunk])[mine]
        if by_place:
            order = np.argsort(row_places, kind="stable")
            rows, row_places = rows[order], row_places[order]
        tables.append(chunk.take(pa.array(rows)).append_column(PLACE, pa.array(row_places, pa.int32())))
    return tables


def new_rows(storage: Storage, inserts: Inserts, *, key_prefix: str | None = None) -> list[pa.Table]:
    """This file's share of a partition's rows that are stored nowhere yet, a table for each chunk, in arrival order.

    `key_prefix`: what the keys of the rows have to begin with, before the number of the chunk and their own.
    """
    tables = []
    for piece in sorted(inserts.pieces, key=lambda p: p.number):
        span = piece.span
        fresh = np.ones(span.length, dtype=bool)
        for matches in inserts.matches:
            if matches.number == piece.number:
                fresh[load_rows(storage, matches) - span.start] = False
        table = load_chunk(storage, piece.chunk).slice(span.start, span.length)
        if inserts.of > 1:
            share = key_hash(table.column(RECORD_KEY)) % np.uint64(inserts.of)
            fresh &= (share >= inserts.low) & (share < inserts.high)
        if not fresh.all():
            table = table.filter(pa.array(fresh))
        if table.num_rows:
            tables.append(table if key_prefix is None else _prefixed(table, f"{key_prefix}_{piece.number}"))
    return tables


def _prefixed(table: pa.Table, prefix: str) -> pa.Table:
    at = table.schema.get_field_index(RECORD_KEY)
    join_texts: Any = pc.binary_join_element_wise  # its stubs know no mix of texts and columns
    return table.set_column(at, RECORD_KEY, join_texts(prefix, table.column(RECORD_KEY), "_"))
