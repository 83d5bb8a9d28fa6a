"""How many bytes rows take once their values are written out, and cuts by that.

An Arrow array holds at most 2 GiB of texts, because its offsets have 32 bits. A dictionary array of a few kilobytes can stand for
more. So whoever decodes, joins or sorts rows that somebody else gave cuts them first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.model.plain_types import is_list_view

Tabular = TypeVar("Tabular", pa.RecordBatch, pa.Table)
Array = Any

MOST_BYTES = 1 << 30
"""Of one array of texts: half of what Arrow's short offsets reach."""


def rows_bytes(data: pa.RecordBatch | pa.Table) -> int:
    """Bytes of the rows with dictionaries and runs decoded; views count what these rows show of their buffers."""
    if not any(map(_stands_for_more, data.schema.types)):
        return data.nbytes
    return sum(map(array_bytes, data.columns))


def array_bytes(column: Array) -> int:
    """`rows_bytes` for one column, nested or not."""
    if isinstance(column, pa.ChunkedArray):
        return sum(map(array_bytes, column.chunks))
    kind = column.type
    if not _stands_for_more(kind):
        return int(column.nbytes)
    if isinstance(column, pa.ExtensionArray):
        return array_bytes(column.storage)
    if pa.types.is_dictionary(kind):
        values = column.dictionary
        return int(column.indices.nbytes) + int(pc.sum(pa.array(_lengths(values)).take(column.indices)).as_py() or 0)
    if pa.types.is_run_end_encoded(kind):
        values, lengths = column.values, _lengths(column.values)
        runs = np.diff(
            np.clip(column.run_ends.to_numpy(), column.offset, column.offset + len(column)), prepend=column.offset
        )
        other_bytes = (array_bytes(values) - int(lengths.sum())) / max(1, len(values))
        return int(lengths @ runs) + int(other_bytes * len(column))
    if _is_view(kind):
        return 16 * len(column) + int(_lengths(column).sum())
    if is_list_view(kind):
        return 8 * len(column) + array_bytes(column.flatten())
    if pa.types.is_map(kind):
        first, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
        return sum(array_bytes(each.slice(first, end - first)) for each in (column.keys, column.items))
    parts = column.flatten()
    return sum(map(array_bytes, parts if isinstance(parts, list) else [parts]))


def pieces_of(rows: Tabular, most_bytes: int = MOST_BYTES) -> Iterator[Tabular]:
    """The rows in slices of about `most_bytes`, none of which takes more than twice of it; a row is never cut."""
    for start, length in _cut(rows, rows.num_rows, rows_bytes, most_bytes):
        yield rows.slice(start, length)


def array_pieces(column: Array, most_bytes: int = MOST_BYTES) -> Iterator[Array]:
    """`pieces_of` for one array."""
    for start, length in _cut(column, len(column), array_bytes, most_bytes):
        yield column.slice(start, length)


def _cut(rows: Any, count: int, room: Any, most_bytes: int) -> Iterator[tuple[int, int]]:
    step = max(1, int(count * most_bytes / max(most_bytes, room(rows)))) if count > 1 else count
    for start in range(0, count, max(1, step)):
        length = min(step, count - start)
        if step == count or length == 1:
            yield start, length
            continue
        part = rows.slice(start, length)  # rows are not all alike: this one may be larger than most
        if room(part) <= 2 * most_bytes:
            yield start, length
        else:
            yield from ((start + at, size) for at, size in _cut(part, length, room, most_bytes))


def in_one_chunk(rows: pa.Table) -> pa.Table:
    """The rows with one array for each column: texts that short offsets do not reach get long ones."""
    fields = [
        field.with_type(wide_type(field.type)) if array_bytes(column) > MOST_BYTES else field
        for field, column in zip(rows.schema, rows.columns, strict=True)
    ]
    return rows.cast(pa.schema(fields)).combine_chunks()


def wide_type(kind: Any) -> Any:
    """The type with long offsets in all of its texts."""
    types = pa.types
    if types.is_string(kind):
        return pa.large_string()
    if types.is_binary(kind):
        return pa.large_binary()
    if types.is_struct(kind):
        return pa.struct([kind.field(i).with_type(wide_type(kind.field(i).type)) for i in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(
            kind.key_field.with_type(wide_type(kind.key_type)), kind.item_field.with_type(wide_type(kind.item_type))
        )
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(wide_type(kind.value_type)))
    return kind


def _lengths(values: Array) -> npt.NDArray[np.int64]:
    """Bytes of each text; 0 for what is none."""
    kind = values.type
    if _is_view(kind):  # Arrow 26 does not tell them; a view begins with its length
        views = np.frombuffer(values.buffers()[1] or b"", np.int32).reshape(-1, 4)
        lengths = views[values.offset : values.offset + len(values), 0].astype(np.int64)
        return np.where(values.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    texts = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    if not any(is_one(kind) for is_one in texts):
        return np.zeros(len(values), np.int64)
    result: npt.NDArray[np.int64] = pc.fill_null(pc.binary_length(values).cast(pa.int64()), 0).to_numpy()
    return result


def _is_view(kind: Any) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _stands_for_more(kind: Any) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _stands_for_more(kind.storage_type)
    if is_list_view(kind):  # whose lists may share their values
        return True
    if pa.types.is_nested(kind):
        return any(_stands_for_more(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind) or _is_view(kind))
