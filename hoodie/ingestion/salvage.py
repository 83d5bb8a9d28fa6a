"""Reads the good ones of many records if some are faulty: halves them until each faulty one is alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError

Read = Callable[[Sequence[bytes]], pa.Table]
"""A row for each record. Raises ArrowException or CorruptFileError: one of them, whichever, cannot be read."""


class GoodRecords(NamedTuple):
    rows: pa.Table
    positions: np.ndarray
    """The positions of the records that are rows, in order."""
    bad: tuple[tuple[int, str], ...] = ()
    """Positions of the others, with what is wrong."""


class _Piece(NamedTuple):
    first: int
    rows: pa.Table


def salvage(records: Sequence[bytes], read: Read) -> GoodRecords:
    """Rows of all records that can be read and fit together. Where their types differ, that of most records counts."""
    bad: list[tuple[int, str]] = []
    pieces = list(_pieces(records, 0, read, bad)) if records else []
    fitting = sorted(_fitting(pieces, bad))
    rows = pa.concat_tables([each.rows for each in fitting], promote_options="permissive") if fitting else pa.table({})
    positions = [np.arange(each.first, each.first + each.rows.num_rows) for each in fitting]
    return GoodRecords(rows, np.concatenate(positions) if positions else np.empty(0, np.int64), tuple(sorted(bad)))


def _pieces(records: Sequence[bytes], first: int, read: Read, bad: list[tuple[int, str]]) -> Iterator[_Piece]:
    try:
        rows = read(records)
        if rows.num_rows != len(records):
            raise pa.ArrowInvalid("it is not one object")
        yield _Piece(first, rows)
    except (pa.ArrowException, CorruptFileError) as exc:
        middle = len(records) // 2
        if not middle:
            bad.append((first, str(exc).partition(" in row ")[0]))
            return
        yield from _pieces(records[:middle], first, read, bad)
        yield from _pieces(records[middle:], first + middle, read, bad)


def _fitting(pieces: Sequence[_Piece], bad: list[tuple[int, str]]) -> Iterator[_Piece]:
    schema = pa.schema([])
    for piece in sorted(pieces, key=lambda each: -each.rows.num_rows):
        try:
            schema = pa.unify_schemas([schema, piece.rows.schema], promote_options="permissive")
        except pa.ArrowException as exc:
            bad += [(piece.first + number, str(exc)) for number in range(piece.rows.num_rows)]
        else:
            yield piece


def with_columns_of(rows: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """The rows with the columns of the schema that they lack, full of null. One of another case is there, which the write refuses."""
    names = {name.lower() for name in rows.schema.names}
    for each in schema if schema is not None and rows.num_rows else ():
        if each.name.lower() not in names:
            rows = rows.append_column(each.name, pa.nulls(rows.num_rows, each.type))
    return rows


def with_known_types(rows: pa.Table) -> pa.Table:
    """The rows without columns and fields that hold only nulls: a column is added with its first value."""
    fields: list[pa.Field[Any]] = [
        pa.field(each.name, kind) for each in rows.schema if (kind := _without_nulls(each.type)) is not None
    ]
    rows = rows.select([each.name for each in fields])
    return rows if rows.schema.types == [each.type for each in fields] else rows.cast(pa.schema(fields))


def _without_nulls(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_null(kind):
        return None
    if pa.types.is_list(kind):
        item = _without_nulls(kind.value_type)
        return None if item is None else kind if item == kind.value_type else pa.list_(item)
    if pa.types.is_struct(kind):
        fields = [(each, _without_nulls(each.type)) for each in kind]
        complete = [pa.field(each.name, inner) for each, inner in fields if inner is not None]
        return pa.struct(complete) if complete else None
    return kind
