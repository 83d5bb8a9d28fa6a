"""Rows of a batch on their way to their files: chunks in memory or staged as Arrow IPC files, and picks from them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.hashing import key_hash
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.names import join
from hoodie.model.plans import Chunk, ChunkPiece, ChunkRange, Inserts, Matches
from hoodie.storage.base import Storage

_new_ipc_file: Any = pa.ipc.new_file
"""Takes any binary file object; its stubs know Python's own classes only."""


def make_chunk(table: pa.Table, *, storage: Storage | None = None, stage_to: str | None = None) -> Chunk:
    """A chunk of prepared rows, sorted by partition path here; staged when a folder is given, else kept in memory."""
    table = table.combine_chunks()
    ranges, table = _by_partition(table)
    if storage is None or stage_to is None:
        return Chunk(ranges, table.num_rows, table.nbytes, table=table)
    path = join(stage_to, f"{uuid.uuid4().hex}.arrow")
    with storage.open_output(path, durable=False) as sink, _new_ipc_file(sink, table.schema) as writer:
        writer.write_table(table)
    return Chunk(ranges, table.num_rows, table.nbytes, path=path)


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
        column = pa.ipc.open_file(source).read_all().column(0).combine_chunks()
    rows: np.ndarray = column.to_numpy(zero_copy_only=False)
    return rows


def make_matches(
    number: int, rows: np.ndarray, *, storage: Storage | None = None, stage_to: str | None = None
) -> Matches:
    """Row numbers inside chunk `number`; staged when a folder is given."""
    rows = rows.astype(np.int32)
    if storage is None or stage_to is None:
        return Matches(number, rows=rows, count=len(rows))
    table = pa.table({"row": pa.array(rows)})
    path = join(stage_to, f"{uuid.uuid4().hex}.rows")
    with storage.open_output(path, durable=False) as sink, _new_ipc_file(sink, table.schema) as writer:
        writer.write_table(table)
    return Matches(number, path=path, count=len(rows))


def piece_keys(storage: Storage, piece: ChunkPiece) -> pa.Array:
    """Record keys of a piece, in row order."""
    keys = load_chunk(storage, piece.chunk).column(RECORD_KEY).slice(piece.span.start, piece.span.length)
    return keys.combine_chunks()


def matched_rows(storage: Storage, pieces: Sequence[ChunkPiece], updates: Sequence[Matches]) -> list[pa.Table]:
    """The matched rows, a table for each chunk, in arrival order."""
    chunks = {piece.number: piece.chunk for piece in pieces}
    tables = []
    for matches in sorted(updates, key=lambda m: m.number):
        rows = load_rows(storage, matches)
        if len(rows):
            tables.append(load_chunk(storage, chunks[matches.number]).take(pa.array(rows)))
    return tables


def new_rows(storage: Storage, inserts: Inserts) -> list[pa.Table]:
    """This file's share of a partition's rows that are stored nowhere yet, a table for each chunk, in arrival order."""
    tables = []
    for piece in sorted(inserts.pieces, key=lambda p: p.number):
        span = piece.span
        fresh = np.ones(span.length, dtype=bool)
        for matches in inserts.known:
            if matches.number == piece.number:
                fresh[load_rows(storage, matches) - span.start] = False
        table = load_chunk(storage, piece.chunk).slice(span.start, span.length)
        if inserts.of > 1:
            share = key_hash(table.column(RECORD_KEY)) % np.uint64(inserts.of)
            fresh &= (share >= inserts.low) & (share < inserts.high)
        if fresh.all():
            tables.append(table)
        elif fresh.any():
            tables.append(table.filter(pa.array(fresh)))
    return tables
