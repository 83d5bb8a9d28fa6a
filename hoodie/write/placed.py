"""Rows that a statement makes of stored ones: each says where the stored row is, or that there is none."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError
from hoodie.keygen.generator import KeyGenerator
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED


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
