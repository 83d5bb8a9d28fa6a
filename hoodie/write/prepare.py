"""A batch as it comes -> chunks of prepared rows: in the table's schema, with record key and partition path.

This runs where the rows are. It is the only place where the input is evaluated; everything later works on the chunks.
"""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.gather import GATHERED_BYTES, gathered
from hoodie.errors import KeyFieldError, OptionError, SchemaError
from hoodie.filegroup.chunks import make_chunk
from hoodie.filegroup.deletes import marked
from hoodie.keygen.generator import KeyGenerator
from hoodie.keygen.virtual_columns import FolderValues
from hoodie.model.arrow_bytes import pieces_of, rows_bytes
from hoodie.model.meta_fields import IS_DELETED, PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import ARRIVAL, DELETED, Chunk, DeleteMarker
from hoodie.model.tuning import TUNING
from hoodie.storage.base import Storage
from hoodie.write.casting import fit
from hoodie.write.row_memory import RowMemory


@dataclass(frozen=True)
class Preparation:
    """How to prepare rows; picklable."""

    schema: pa.Schema
    """The table's columns after this write."""
    keygen: KeyGenerator
    delete_all: bool
    """The operation deletes: every row is a delete that always wins."""
    table_name: str
    ordering_columns: tuple[str, ...] = ()
    set_columns: tuple[str, ...] | None = None
    """Columns of the batch, where absent ones keep their stored values; None: absent ones are null."""
    sort_by_key: bool = False
    marker: DeleteMarker | None = None
    keys_given: bool = False
    """The batch's meta columns say keys and paths: deletes from a table that has no key columns."""
    moves: bool = False
    """The rows are what a statement makes of stored ones (`write/prepare.py`); keys are unique in a partition only."""
    chunk_bytes: int = TUNING.chunk_bytes
    keeps_order: bool = False
    """Rows of one key may be in several partitions of the batch, and the later one counts."""
    folders: FolderValues | None = None
    """Where only the names of folders say the values of partition columns."""


def prepare_part(
    preparation: Preparation,
    storage: Storage | None,
    stage_to: str | None,
    memory: RowMemory | None,
    _number: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[Chunk]:
    """`run_prepare` as engines call it, with the number of a part of the records."""
    return run_prepare(preparation, storage, stage_to, batches, memory=memory)


def run_prepare(
    preparation: Preparation,
    storage: Storage | None,
    stage_to: str | None,
    batches: Iterable[pa.RecordBatch],
    *,
    memory: RowMemory | None = None,
) -> Iterator[Chunk]:
    """Chunks of the batches; staged in the folder when one is given, else in this process, as `memory` holds them."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    most = preparation.chunk_bytes if memory is None else min(preparation.chunk_bytes, memory.chunk_bytes)
    for batch in gathered(batches, most_bytes=min(GATHERED_BYTES, most // 8)):
        for piece in pieces_of(batch, most):  # a whole table may come as one batch
            waiting.append(piece)
            size += rows_bytes(piece)
            if size >= most:
                yield _chunk(waiting, preparation, storage, stage_to, memory)
                waiting, size = [], 0
    if waiting:
        yield _chunk(waiting, preparation, storage, stage_to, memory)


def _chunk(
    batches: list[pa.RecordBatch],
    preparation: Preparation,
    storage: Storage | None,
    stage_to: str | None,
    memory: RowMemory | None,
) -> Chunk:
    rows = prepare_rows(pa.Table.from_batches(batches), preparation)
    if preparation.keeps_order:
        rows = rows.append_column(ARRIVAL, pa.array(np.arange(rows.num_rows, dtype=np.int32)))
    chunk = make_chunk(rows, storage=storage, stage_to=stage_to, sort_by_key=preparation.sort_by_key)
    return chunk if memory is None else memory.keep(chunk)


def prepare_rows(rows: pa.Table, preparation: Preparation) -> pa.Table:
    """Columns: record key, partition path, the table's columns, and `__deleted` where rows are to be deleted.

    Raises:
        KeyFieldError: a key column is missing, or null where it must not be.
        SchemaError: a column that must not be null holds nulls, or a value does not fit its type.
    """
    table = preparation.table_name
    # Keys are made of the table's types: a decimal of another scale, say, would be written differently.
    conformed = fit(_key_rows(rows, preparation) if preparation.delete_all else rows, preparation.schema, table=table)
    if preparation.keys_given and DELETED in rows.column_names and not preparation.delete_all:
        rows, conformed = placed_rows(rows, conformed, preparation.keygen, moves=preparation.moves, table=table)
        keys, partitions = rows.column(RECORD_KEY), rows.column(PARTITION_PATH)
    elif preparation.keys_given:
        keys, partitions = _given_keys(rows, conformed, preparation)
    else:
        keys = preparation.keygen.keys(conformed)
        partitions = preparation.keygen.partitions(conformed)
    if preparation.folders is not None and not preparation.delete_all:
        preparation.folders.require_said(conformed, partitions, table=table)
    is_delete = _deletes_of_write(rows, preparation)
    columns: dict[str, pa.ChunkedArray | pa.Array] = {RECORD_KEY: keys, PARTITION_PATH: partitions}
    for field in preparation.schema:
        column = conformed.column(field.name)
        completed = preparation.set_columns is not None and field.name not in preparation.set_columns
        if not field.nullable and not completed and (empty := _nulls(column, is_delete)):
            raise SchemaError(
                f"column {field.name!r} of table {table!r} is not nullable, and {empty} of {rows.num_rows} rows "
                "have null in it; fill them or leave the rows out"
            )
        if is_delete is not None and field.name in preparation.ordering_columns:
            # Such a delete wins whatever its row says.
            column = pc.if_else(is_delete, pa.scalar(None, field.type), column)
        columns[field.name] = column
    fields: list[pa.Field] = [pa.field(RECORD_KEY, pa.string()), pa.field(PARTITION_PATH, pa.string())]
    # While rows travel every column may be null: deletes carry keys only.
    fields += [field.with_nullable(True) for field in preparation.schema]
    deleted = _deleted(conformed, preparation, is_delete)
    if deleted is not None:
        columns[DELETED] = deleted
        fields.append(pa.field(DELETED, pa.bool_()))
    return pa.table([columns[field.name] for field in fields], schema=pa.schema(fields))


def _key_rows(rows: pa.Table, preparation: Preparation) -> pa.Table:
    """What a delete takes of its rows; the other columns are null in its records."""
    fields = (*preparation.keygen.record_key_fields, *preparation.keygen.partition_fields)
    names = {name.split(".")[0] for name in fields} & set(rows.column_names)
    if names:
        return rows.select(sorted(names))
    return rows.select([RECORD_KEY])  # a table without any: rows need a column to be counted


def _given_keys(
    rows: pa.Table, conformed: pa.Table, preparation: Preparation
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """The keys that the table generated for these rows when it stored them."""
    keys, partitions = rows.column(RECORD_KEY).cast(pa.string()), rows.column(PARTITION_PATH).cast(pa.string())
    if keys.null_count or partitions.null_count:
        raise KeyFieldError(
            f"{RECORD_KEY} or {PARTITION_PATH} is null in rows for table {preparation.table_name!r}, which generates its keys\n"
            "  fix:     write new rows without meta columns, apart from the rows that you read from the table"
        )
    if not preparation.delete_all:
        moved = pc.not_equal(partitions, preparation.keygen.partitions(conformed))
        if pc.any(moved).as_py():
            at = pc.index(moved, True).as_py()
            raise KeyFieldError(
                f"row {keys[at].as_py()!r} of table {preparation.table_name!r} is stored in partition {partitions[at].as_py()!r}, "
                "and its columns say another one\n"
                "  fix:     delete the row where it is, and insert it without its meta columns"
            )
    return keys, partitions


def _deletes_of_write(rows: pa.Table, preparation: Preparation) -> pa.ChunkedArray | pa.Array | None:
    """Which rows the write itself makes deletes, regardless of the values in their columns."""
    if preparation.delete_all:
        return pa.repeat(pa.scalar(True), rows.num_rows)
    return rows.column(DELETED) if DELETED in rows.column_names else None


def _nulls(column: pa.ChunkedArray, is_delete: pa.ChunkedArray | pa.Array | None) -> int:
    """How many nulls the rows have that are no deletes."""
    return int(column.null_count if is_delete is None else column.filter(pc.invert(is_delete)).null_count)


def _deleted(
    rows: pa.Table, preparation: Preparation, is_delete: pa.ChunkedArray | pa.Array | None
) -> pa.ChunkedArray | pa.Array | None:
    if preparation.delete_all:
        return is_delete
    at = rows.schema.get_field_index(IS_DELETED)
    marks = at >= 0 and pa.types.is_boolean(rows.schema.field(at).type)  # else no mark to Apache Hudi either
    flags = [] if is_delete is None else [is_delete]
    flags += [pc.fill_null(rows.column(at), False)] if marks else []
    if preparation.marker is not None and preparation.marker.field in rows.column_names:
        flags.append(pa.array(marked(rows.column(preparation.marker.field), preparation.marker)))
    return reduce(pc.or_, flags) if flags else None


ADD_IT = "add the column to the data"


def require_columns(
    names: Iterable[str],
    required: Iterable[str],
    *,
    what: str,
    table: str,
    fix: str = ADD_IT,
    says: str = "the table has",
) -> None:
    """Fail before any work starts when a column that the write needs is not in the data.

    Args:
        says: who says the name, with a verb.
    """

    present = list(names)
    for name in required:
        top = name.split(".")[0]
        if top not in present:
            near = difflib.get_close_matches(top, present, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            cased = next((each for each in present if each.lower() == top.lower()), None)
            if cased is not None:
                hint, fix = (
                    f"\n  CASE      {cased}  {says} it as {top!r}",
                    "write both alike: case matters in names of columns",
                )
            raise KeyFieldError(
                f"{what} column {name!r} is not in the data for table {table!r}{hint}\n"
                f"  columns: {', '.join(present)}\n"
                f"  fix:     {fix}"
            )


def placed_rows(
    rows: pa.Table, conformed: pa.Table, keygen: KeyGenerator, *, moves: bool, table: str
) -> tuple[pa.Table, pa.Table]:
    """The rows with the keys and paths that they are written with: (key, path and flag of deletes; the table's columns).

    A row that goes keeps the place that it says, and its columns are not looked at. Of every other row the columns say the place. With
    `moves`, a row whose stored place is another one is a delete there, too.

    Args:
        rows: with the record key and the partition path of the stored row, null for a new one, and the flag of deletes.
        conformed: the same rows in the table's columns.

    Raises:
        OptionError: the record key of a stored row would change.
    """
    is_delete = pc.fill_null(rows.column(DELETED), False)
    stays = pc.invert(is_delete)
    before, after = rows.filter(stays), conformed.filter(stays)
    keys, paths = _keys(before, after, keygen, table=table), keygen.partitions(after)
    leaving = [rows.filter(is_delete).select([RECORD_KEY, PARTITION_PATH])]
    old_rows = [conformed.filter(is_delete)]
    if moves:
        moved = pc.fill_null(pc.not_equal(before.column(PARTITION_PATH), paths), False)
        leaving.append(before.filter(moved).select([RECORD_KEY, PARTITION_PATH]))
        old_rows.append(after.filter(moved))
    places = pa.concat_tables([each.cast(_PLACES) for each in leaving])
    places = places.append_column(DELETED, pa.repeat(pa.scalar(True), places.num_rows))
    arriving = pa.table([keys, paths, pa.repeat(pa.scalar(False), len(keys))], schema=places.schema)
    return pa.concat_tables([places, arriving]), pa.concat_tables([*old_rows, after])


_PLACES = pa.schema([(RECORD_KEY, pa.string()), (PARTITION_PATH, pa.string())])


def _keys(before: pa.Table, after: pa.Table, keygen: KeyGenerator, *, table: str) -> pa.ChunkedArray:
    stored = before.column(RECORD_KEY).cast(pa.string())
    if not keygen.record_key_fields:
        completed: pa.ChunkedArray = pc.if_else(pc.is_null(stored), _new_keys(len(stored)), stored)
        return completed
    keys = keygen.keys(after)
    other = pc.fill_null(pc.not_equal(stored, keys), False)
    if pc.any(other).as_py():
        at = pc.index(other, True).as_py()
        raise OptionError(
            f"the record key of a row of table {table!r} would become {keys[at].as_py()!r} and is {stored[at].as_py()!r}: a record "
            "key does not change; delete the row and insert another one"
        )
    return keys


def _new_keys(count: int) -> pa.Array:
    """Keys for rows of a table that generates them, beside stored ones: theirs are no numbers that the commit completes."""
    keys: pa.Array = pc.binary_join_element_wise(
        uuid.uuid4().hex, pc.cast(pa.array(np.arange(count)), pa.string()), "_"
    )
    return keys
