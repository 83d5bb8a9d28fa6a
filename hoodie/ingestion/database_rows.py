"""Rows as a driver gives them -> columns that a table can have, without those that were given before.

A source that looks at some rows again knows those that it has given by a hash of each, in the checkpoint. A row that has changed has
another hash, and is given again.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError
from hoodie.hashes.of_values import mixed, value_hashes

ANY_DECIMAL = pa.decimal128(38, 18)
"""Of a number of any precision, as Spark has it."""


def is_number(kind: pa.DataType) -> bool:
    """Whether it is a decimal number that the driver gives as text."""
    return isinstance(kind, pa.OpaqueType) and kind.type_name == "numeric" and pa.types.is_string(kind.storage_type)


def is_readable(kind: pa.DataType) -> bool:
    """Whether a table can have the column, after `with_table_types`. Otherwise the database has to give it as text."""
    if is_number(kind) or (isinstance(kind, pa.JsonType) and pa.types.is_string(kind.storage_type)):
        return True
    if pa.types.is_list(kind):
        return not isinstance(kind.value_type, pa.BaseExtensionType) and is_readable(kind.value_type)
    other = pa.types.is_time(kind) or pa.types.is_interval(kind) or pa.types.is_duration(kind)
    return not other and not isinstance(kind, pa.BaseExtensionType)


def with_table_types(
    rows: pa.Table, schema: pa.Schema | None, decimals: Mapping[str, pa.DataType], *, origin: str
) -> pa.Table:
    """Columns by the types that the table has, as far as they fit; numbers of the database as decimals.

    Raises:
        OptionError: a number does not fit, or a column has a type that is of the database alone.
    """
    for at, field in enumerate(rows.schema):
        place = -1 if schema is None else schema.get_field_index(field.name)
        target = schema.field(place).type if schema is not None and place >= 0 else None
        kind = field.type
        if not is_readable(kind):
            raise OptionError(
                f"column {field.name!r} of {origin} is of type {kind}, which no table has: give a query that casts it, to text for one"
            )
        column = rows.column(at)
        if isinstance(kind, pa.BaseExtensionType):
            chunks: Any = column.chunks
            column = pa.chunked_array([chunk.storage for chunk in chunks], pa.string())
        if is_number(kind):
            target = target or decimals.get(field.name, ANY_DECIMAL)
            column = _as_number(column, target, f"column {field.name!r} of {origin}")
        elif target is not None and target != column.type:
            column = _fitted(column, target)
        rows = rows.set_column(at, field.name, column)
    return rows


def without_guessed_types(rows: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """The same without columns of nothing but null where the table does not know them: SQLite cannot tell their types."""
    names = set(schema.names if schema is not None else ())
    for name in rows.schema.names if rows.num_rows else ():
        at = rows.schema.get_field_index(name)
        if rows.column(at).null_count == rows.num_rows:
            rows = rows.set_column(at, name, pa.nulls(rows.num_rows)) if name in names else rows.remove_column(at)
    return rows


def _as_number(column: pa.ChunkedArray, kind: pa.DataType, origin: str) -> Any:
    try:
        return pc.cast(column, kind)
    except pa.ArrowException as exc:
        raise OptionError(
            f"{origin} has a number that is not {kind}: {exc}; cast it in a query, or make the table with a type that holds it"
        ) from exc


def _fitted(column: pa.ChunkedArray, kind: pa.DataType) -> Any:
    """The column in the table's type; unchanged where values do not fit, so that the write widens the table or refuses them."""
    try:
        return pc.cast(column, kind)
    except pa.ArrowException:
        return column


_Hashes = npt.NDArray[np.uint64]
_MOST = 4096
"""So many hashes are kept in a commit, 44 kB. Of more rows only their sum is kept, which tells whether there is a new one."""


class Unseen(NamedTuple):
    """Of rows that are looked at again, those that are given."""

    rows: pa.Table
    repeats: bool = False
    """Some of them may have been given before."""


def note_rows(rows: pa.Table) -> Mapping[str, object]:
    """What is kept of these rows, as JSON has it."""
    hashes = np.unique(row_hashes(rows))
    if len(hashes) <= _MOST:
        return {"rows": base64.b64encode(hashes.astype("<u8").tobytes()).decode()}
    return {"count": len(hashes), "sum": _sum(hashes)}


def without_noted(rows: pa.Table, noted: object) -> Unseen:
    """The rows without those that `note_rows` was given."""
    note: Mapping[str, Any] = noted if isinstance(noted, dict) else {}
    if not rows.num_rows or not note:
        return Unseen(rows)
    hashes = row_hashes(rows)
    if "rows" in note:
        old_hashes = np.frombuffer(base64.b64decode(note["rows"]), "<u8")
        return Unseen(rows.filter(pa.array(~np.isin(hashes, old_hashes))))
    distinct = np.unique(hashes)
    if len(distinct) == note.get("count") and _sum(distinct) == note.get("sum"):
        return Unseen(rows.slice(0, 0))
    return Unseen(rows, repeats=True)


def row_hashes(rows: pa.Table) -> _Hashes:
    """64 bits of each row. The order of columns does not count, nor do columns in which a row has null: a new column of nulls
    changes no hash.
    """
    total = np.zeros(rows.num_rows, np.uint64)
    for name in rows.schema.names:
        column = rows.column(name)
        of_name = np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))
        hashes = mixed(value_hashes(column) ^ of_name)
        total += np.where(pc.is_valid(column).to_numpy(), hashes, np.uint64(0))
    return total


def _sum(hashes: _Hashes) -> str:
    return str(int(hashes.sum(dtype=np.uint64)))
