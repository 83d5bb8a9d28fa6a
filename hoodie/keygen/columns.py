"""Columns of a batch by the names that options give them, and pieces of rows that stay small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import KeyFieldError
from hoodie.options.values import did_you_mean

Array: TypeAlias = Any
"""A pyarrow Array. The stubs of its compute functions tell kinds of arrays apart, which cannot be said here."""
pc: Any = pyarrow.compute
_BATCH_ROWS = 256 * 1024
"""Keys are made in pieces that stay in the cache and far below the 2 GiB of one string array."""
_SHOWN_COLUMNS = 20
_KEY_OPTION = "hoodie.datasource.write.recordkey.field"
_PARTITION_OPTION = "hoodie.datasource.write.partitionpath.field"


def column(table: pa.Table, field: str, *, role: str, option: str | None = None) -> pa.ChunkedArray[Any]:
    """A column by name, nested ones by dots (`addr.zip`); null where a struct on the way is.

    `role` says in messages what the column is for, `option` by which option it is named.

    Raises:
        KeyFieldError: there is none, or more than one of that name.
    """
    names, *inner = [field] if field in table.column_names else field.split(".")
    _check_name(names, table.column_names, field=field, role=role, option=option)
    values = table.column(names)
    for name in inner:
        among = [child.name for child in values.type] if pa.types.is_struct(values.type) else []
        _check_name(name, among, field=field, role=role, option=option)
        values = pc.struct_field(values, name)
    return values


def _check_name(name: str, among: Sequence[str], *, field: str, role: str, option: str | None) -> None:
    count = list(among).count(name)
    if count == 1:
        return
    if count:
        raise KeyFieldError(f"{role} column {field!r} is ambiguous: {count} columns of the data are named {name!r}")
    columns = ", ".join(among[:_SHOWN_COLUMNS]) + (
        f" and {len(among) - _SHOWN_COLUMNS} more" if len(among) > _SHOWN_COLUMNS else ""
    )
    hint = did_you_mean(name, among)
    lines = [f"{role} column {field!r} is not in the data.", f"  columns: {columns or 'none'}"]
    if hint:
        lines[1] += f"        {hint}"
    if option:
        lines.append(f"  set by:  {option}, or remembered by the table from its creation")
    lines.append("  fix:     name a column of the data, or rename the data's column")
    raise KeyFieldError("\n".join(lines))


def pieces(table: pa.Table, fields: Sequence[str], *, role: str) -> Iterator[list[Array]]:
    """The columns of the fields, in pieces of some rows that all of them share."""
    option = _KEY_OPTION if role == "record key" else _PARTITION_OPTION
    columns = [column(table, field, role=role, option=option) for field in fields]
    aligned = pa.table(columns, names=[str(number) for number in range(len(columns))])
    no_rows = pa.RecordBatch.from_pylist([], schema=aligned.schema)  # whose types are looked at all the same
    for batch in aligned.to_batches(max_chunksize=_BATCH_ROWS) or [no_rows]:
        yield batch.columns
