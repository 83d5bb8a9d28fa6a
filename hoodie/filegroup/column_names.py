"""Columns of files that were written under older names -> the names of today, by the ids of columns.

A column that was dropped, and one of the same name that came later, are two columns: files of the first have none of the
second. Types stay as they are in the file; `conform` changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import UnsupportedTableError
from hoodie.filegroup.conform import Tabular, entries_of, offsets_of
from hoodie.model.columns import Column, ColumnHistory

Array = Any


@dataclass(frozen=True)
class Renames:
    """How the columns of one file come by the names of today."""

    written: tuple[Column, ...]
    now: tuple[Column, ...]

    def sources(self, names: Sequence[str]) -> list[str]:
        """The file's columns that are needed for columns of today; those that it lacks are left out."""
        by_id = {column.id: column.name for column in self.written}
        ids = {column.name: column.id for column in self.now}
        return [by_id[ids[name]] for name in names if ids.get(name) in by_id]

    def targets(self, names: Sequence[str]) -> list[str]:
        """The columns of today that columns of the file are."""
        present = {column.id for column in self.written if column.name in names}
        return [column.name for column in self.now if column.id in present]

    def apply(self, data: Tabular) -> Tabular:
        """The columns of today that the data has, under their names of today."""
        by_id = {column.id: column for column in self.written}
        fields: list[pa.Field] = []
        columns = []
        for column in self.now:
            source = by_id.get(column.id)
            if source is not None and source.name in data.schema.names:
                renamed = _renamed(data.column(source.name), source, column)
                columns.append(renamed)
                fields.append(pa.field(column.name, renamed.type))
        if not fields:
            return data.select([])
        return type(data).from_arrays(columns, schema=pa.schema(fields))


def renames_for(history: ColumnHistory, instant: str, *, path: str) -> Renames:
    """How the columns that an instant wrote are named today.

    Raises:
        UnsupportedTableError: the history of the columns does not reach back to that instant.
    """
    written = history.at(instant)
    if written is None:
        raise UnsupportedTableError(
            f"{path} of table {history.table} was written at {instant}, before the history of the table's columns begins, which "
            "were changed since (hoodie.schema.on.read.enable); restore .hoodie/.schema, or compact or cluster with Apache Hudi"
        )
    return Renames(written.columns, history.now)


def _renamed(column: Any, written: Column, now: Column) -> Any:
    if written == now or not now.parts or now.parts[0].id < 0:  # a VARIANT's parts stay what they are
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [_renamed(chunk, written, now) for chunk in column.chunks]
        return pa.chunked_array(chunks) if chunks else _renamed(pa.array([], column.type), written, now)
    types = pa.types
    mask = pc.is_null(column) if column.null_count else None
    if types.is_struct(column.type):
        parts = _parts(column, written, now)
        if not parts:  # nothing of it is left: a struct of nulls, to be filled up
            return pa.nulls(len(column), pa.struct([]))
        return pa.StructArray.from_arrays(
            [part for _, part in parts], fields=[pa.field(name, part.type) for name, part in parts], mask=mask
        )
    if types.is_list(column.type) and len(written.parts) == len(now.parts) == 1:
        values = _renamed(column.flatten(), written.parts[0], now.parts[0])
        return pa.ListArray.from_arrays(offsets_of(column), values, mask=mask)
    if types.is_map(column.type) and len(written.parts) == len(now.parts) == 2:
        entries = entries_of(column)
        keys, items = entries.flatten().flatten()
        return pa.MapArray.from_arrays(
            offsets_of(entries), keys, _renamed(items, written.parts[1], now.parts[1]), mask=mask
        )
    return column


def _parts(column: Array, written: Column, now: Column) -> list[tuple[str, Array]]:
    by_id = {part.id: part for part in written.parts}
    flat = dict(zip((column.type.field(i).name for i in range(column.type.num_fields)), column.flatten(), strict=True))
    result = []
    for part in now.parts:
        source = by_id.get(part.id)
        if source is not None and source.name in flat:
            result.append((part.name, _renamed(flat[source.name], source, part)))
    return result
