"""Rows of Arrow columns -> Avro binary records, column by column and for every type; no row is a Python object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaError
from hoodie.format.avro_schema import AvroType, present, resolve_record
from hoodie.format.avro_wire import (
    Bytes,
    Column,
    Ints,
    Mask,
    big_endian,
    data_of,
    join,
    lengths_of,
    minimal_lengths,
    offsets_in,
    offsets_of,
    pieces_from_offsets,
    ragged,
    tagged,
    tails,
    valid_in,
    values_of,
    varints,
)
from hoodie.format.vectors import bytes_of_vectors

_ROWS = 16_384
"""Rows that go through the columns together, so that their bytes stay in the processor's cache."""

# Pairs of tests: an Arrow type of the schema, and the types that may be cast to it.
_SAME_SCALARS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bool]], ...] = (
    (pa.types.is_int32, pa.types.is_integer),
    (pa.types.is_int64, lambda other: pa.types.is_integer(other) and other != pa.uint64()),
    (pa.types.is_float32, pa.types.is_float16),
    (pa.types.is_float64, pa.types.is_floating),
    (pa.types.is_string, lambda other: pa.types.is_large_string(other) or pa.types.is_string_view(other)),
    (pa.types.is_binary, lambda other: pa.types.is_large_binary(other) or pa.types.is_binary_view(other)),
    (pa.types.is_decimal, pa.types.is_decimal),
    (pa.types.is_date, pa.types.is_date),
    (pa.types.is_time, pa.types.is_time),
)

_INTEGERS = {"int": "<i4", "long": "<i8"}


def encode_records(table: pa.Table, avro: Mapping[str, Any]) -> pa.LargeBinaryArray:
    """One Avro binary per row.

    Columns are found by name. Arrow types that mean the same are cast (int8, large_string, dictionary, timestamps of
    another unit); a cast that would lose something is an error.

    Raises:
        SchemaError: columns and schema do not match: a name, a type, a value that does not fit, or a null where the
            schema has none.
    """
    record = resolve_record(avro)
    records: Any = pa.chunked_array(list(encode_batches(table, record)), pa.large_binary()).combine_chunks()
    return records  # type: ignore[no-any-return]


def encode_batches(table: pa.Table, record: AvroType, *, framed: bool = False) -> Iterator[Column]:
    """`encode_records` a few thousand rows at a time; framed: each with its length in front, i32 big-endian."""
    schema = pa.schema(record.arrow_fields)
    missing, extra = set(schema.names) - set(table.column_names), set(table.column_names) - set(schema.names)
    if missing or extra or len(table.column_names) != len(schema):
        raise SchemaError(
            f"the columns do not match the table's schema: missing {sorted(missing)}, unknown {sorted(extra)}; "
            "select or add columns so that they are the same"
        )
    for batch in table.select(schema.names).to_batches(max_chunksize=_ROWS):
        pieces: list[Column] = []
        for (_, inner), column in zip(record.fields, batch.columns):
            pieces += pieces_of(inner, _as_stored(inner, column))
        yield join([frame_heads(pieces), *pieces] if framed else pieces)


def frame_heads(pieces: list[Column]) -> Column:
    lengths: Ints = np.sum([lengths_of(piece) for piece in pieces], axis=0)
    if len(lengths) and lengths.max() >= 1 << 31:
        raise SchemaError(f"a record takes {lengths.max()} bytes as Avro; a log block holds records below 2 GiB")
    return pieces_from_offsets(np.arange(0, 4 * len(lengths) + 1, 4), lengths.astype(">i4").view(np.uint8))


def _as_stored(node: AvroType, column: Column) -> Column:
    kind = node.arrow
    if column.type == kind:
        return column
    if not _means_the_same(column.type, kind):
        raise SchemaError(f"column {node.path!r} is {column.type}, the table's schema has {kind}: cast it first")
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as exc:
        raise SchemaError(f"column {node.path!r} is {column.type} and does not fit the table's {kind}: {exc}") from exc


def _means_the_same(kind: Any, target: Any) -> bool:
    """Whether a (checked) cast keeps the meaning: only the width, the unit or the layout differs."""
    if pa.types.is_dictionary(kind):
        return _means_the_same(kind.value_type, target)
    if pa.types.is_struct(target):
        # Arrow casts children by position, so structs in another order would swap their fields.
        return (
            pa.types.is_struct(kind)
            and [item.name for item in kind] == [item.name for item in target]
            and all(_means_the_same(a.type, b.type) for a, b in zip(kind, target))
        )
    if pa.types.is_map(target):
        return (
            pa.types.is_map(kind)
            and _means_the_same(kind.key_type, target.key_type)
            and _means_the_same(kind.item_type, target.item_type)
        )
    if pa.types.is_list(target):
        lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
        return bool(lists) and _means_the_same(kind.value_type, target.value_type)
    if pa.types.is_timestamp(target):
        return pa.types.is_timestamp(kind) and bool(kind.tz) == bool(target.tz)
    return kind == target or any(is_kind(target) and same(kind) for is_kind, same in _SAME_SCALARS)


def pieces_of(node: AvroType, column: Column) -> list[Column]:
    """What stands for each row, in pieces to be joined; `column` has the node's Arrow type."""
    valid: Mask | None = None
    tags: tuple[int, int] | None = None
    if node.kind == "union":
        tags = (2, 0) if node.null_branch else (0, 2)
        node = node.value
        if column.null_count:
            valid = valid_in(column)
    elif column.null_count:
        raise SchemaError(f"column {node.path!r} has {column.null_count} nulls; the table's schema does not allow them")
    if node.kind in ("record", "array", "map"):
        return _nested(node, column, tags, valid)
    rows = len(column)
    if node.kind in ("string", "bytes", "enum") and node.logical != "decimal":
        return _text(node, column, tags, valid)
    if node.logical == "decimal" and node.kind == "bytes":
        matrix = big_endian(column)
        lengths = minimal_lengths(matrix)
        if valid is not None:
            lengths[~valid] = 0
        return [tagged(*varints(lengths), tags, valid), tails(matrix, lengths)]
    if node.kind in ("int", "long"):
        values = values_of(column, _INTEGERS[node.kind])
        # Under a null stands anything; a long one would only widen the matrix.
        return [tagged(*varints(values if valid is None else np.where(valid, values, 0)), tags, valid)]
    return [tagged(_fixed(node, column), np.full(rows, width_of(node), dtype=np.int64), tags, valid)]


def _fixed(node: AvroType, column: Column) -> Bytes:
    """The stored bytes of a type whose values all have the same width."""
    if node.kind == "boolean":
        return np.asarray(column.cast(pa.uint8()).fill_null(0).to_numpy(zero_copy_only=False)).reshape(-1, 1)
    if node.logical == "decimal":
        matrix = big_endian(column)
        spare = 16 - node.size
        # The type says that the digits fit; data made without checks may say otherwise.
        if spare and column.null_count < len(column):
            sign = np.where(matrix[:, spare] >= 0x80, np.uint8(0xFF), np.uint8(0))
            wrong = (matrix[:, :spare] != sign[:, None]).any(axis=1) & valid_in(column)
            if wrong.any():
                raise SchemaError(f"column {node.path!r} holds a decimal with more digits than {column.type} has")
        return matrix[:, spare:]
    if node.vector is not None:
        try:
            column = bytes_of_vectors(column)
        except ValueError as exc:
            raise SchemaError(f"column {node.path!r}: {exc}") from exc
    return values_of(column, "u1", width_of(node))


def width_of(node: AvroType) -> int:
    return node.size or {"boolean": 1, "float": 4, "double": 8}[node.kind]


def _text(node: AvroType, column: Column, tags: tuple[int, int] | None, valid: Mask | None) -> list[Column]:
    if node.kind == "enum":
        codes: Column = pc.index_in(column, pa.array(node.symbols, pa.string()))
        if codes.null_count > column.null_count:
            raise SchemaError(f"column {node.path!r} has values other than its schema's symbols {node.symbols}")
        return [tagged(*varints(codes.fill_null(0).to_numpy()), tags, valid)]
    data = column.cast(pa.large_binary())
    return [tagged(*varints(lengths_of(data)), tags, valid), data]


def _nested(node: AvroType, column: Column, tags: tuple[int, int] | None, valid: Mask | None) -> list[Column]:
    rows = len(column)
    pieces: list[Column] = []
    if tags is not None:
        heads = np.full((rows, 1), tags[1], dtype=np.uint8)
        if valid is not None:
            heads[~valid] = tags[0]
        pieces.append(ragged(heads, np.ones(rows, dtype=np.int64)))
    if valid is None:
        return pieces + (_record(node, column) if node.kind == "record" else _repeated(node, column))
    # Children of a null are not written, so they are encoded without them and then spread out.
    dense = column.drop_null()
    inner = join(_record(node, dense) if node.kind == "record" else _repeated(node, dense))
    lengths = np.zeros(rows, dtype=np.int64)
    lengths[valid] = np.diff(offsets_in(inner))
    start = offsets_in(inner)[0]
    return [*pieces, pieces_from_offsets(start + offsets_of(lengths), data_of(inner))]


def _record(node: AvroType, column: Any) -> list[Column]:
    pieces: list[Column] = []
    parts = {column.type.field(i).name: part for i, part in enumerate(column.flatten())}
    for name, inner in node.fields:
        pieces += pieces_of(inner, parts[name])
    return pieces


def _repeated(node: AvroType, column: Any) -> list[Column]:
    """Arrays and maps: one block of all items, `count items 0`; an empty one is just the 0."""
    inner = present(node)
    offsets = column.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    counts = np.diff(offsets).astype(np.int64)
    pieces: list[Column] = []
    if node.kind == "map":
        pieces += pieces_of(AvroType("string", node.path), column.keys[first:last])
    children = column.items if node.kind == "map" else column.values
    items = join(pieces + pieces_of(inner, children[first:last]))
    bounds = offsets_in(items)[offsets_of(counts)]
    matrix, lengths = varints(counts)
    lengths[counts == 0] = 0
    end = ragged(np.zeros((len(counts), 1), dtype=np.uint8), np.ones(len(counts), dtype=np.int64))
    return [ragged(matrix, lengths), pieces_from_offsets(bounds, data_of(items)), end]
