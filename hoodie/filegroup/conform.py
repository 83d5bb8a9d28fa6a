"""Bring batches of an older schema to a requested one: missing columns become null, narrower types widen.

Fields of structs are found by name, at any depth, as columns are; `filegroup/column_names.py` has put the names right before.
Values change their types as in Apache Hudi: floats become doubles, texts and decimals by way of their shortest decimal
digits, integers beyond a float's precision the nearest one (integration/test_schema_changes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import hoodie.format
from hoodie.errors import SchemaError
from hoodie.format.timestamp_labels import is_mislabelled
from hoodie.format.variant_json import variant_json
from hoodie.format.variant_values import variants_of_values
from hoodie.format.variants import METADATA, VALUE, is_raw, is_variant
from hoodie.format.vectors import is_vector, vectors_from, width_of_vector
from hoodie.keygen.text import text_of
from hoodie.model.arrow_bytes import array_pieces
from hoodie.model.plain_types import is_list_view, plain_type

if TYPE_CHECKING:
    import hoodie.format.variant_shredding

Tabular = TypeVar("Tabular", pa.Table, pa.RecordBatch)
Array = Any
Leaf = Callable[[Any, pa.DataType], Any]
"""Gives an array, in which nothing is nested, in another type."""

_DECIMAL_DIGITS = 38
_FINE_DECIMAL = pa.decimal128(_DECIMAL_DIGITS, 18)


def conform(data: Tabular, schema: pa.Schema, *, path: str, leaf: Leaf | None = None) -> Tabular:
    """The data with exactly the schema's columns, in its order and types; `leaf` casts what is not nested (`as_stored`).

    Raises:
        SchemaError: a column cannot be read as the type that the table gives it now.
    """
    if data.schema.equals(schema):
        return data
    if not len(schema):
        return data.select([])  # keeps the number of rows, which arrays would tell otherwise
    positions = {name: i for i, name in enumerate(data.schema.names)}
    columns = []
    for field in schema:
        at = positions.get(field.name)
        if at is None:
            columns.append(pa.nulls(data.num_rows, field.type))
            continue
        column = data.column(at)
        if column.type != field.type:
            try:
                column = as_type(column, field.type, leaf or as_stored)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as exc:
                raise SchemaError(
                    f"column {field.name!r} of {path} is {column.type}, which cannot be read as the table's "
                    f"{field.type}: {exc}"
                ) from exc
        columns.append(column)
    # Nullability is a promise of the table, not of every file; files written before a column came have nulls in it.
    return type(data).from_arrays(columns, schema=schema)


def as_type(column: Any, kind: Any, leaf: Leaf | None = None) -> Any:
    """The column in another type; nested ones part by part, for Arrow casts structs by position.

    `leaf` casts what is not nested (`as_given`).
    """
    leaf = leaf or as_given
    if isinstance(column, pa.ChunkedArray):
        pieces = (piece for chunk in column.chunks for piece in array_pieces(chunk))
        return pa.chunked_array([as_type(piece, kind, leaf) for piece in pieces], type=kind)
    types = pa.types
    if types.is_run_end_encoded(column.type):
        column = runs_decoded(column)
    if is_vector(kind):
        return _vectors(column, kind)
    if is_variant(kind):
        return column if column.type == kind else _variants(column)
    if isinstance(column.type, pa.JsonType) and is_raw(kind):
        column = _variants(column)
    if is_variant(column.type) and is_raw(kind):  # whose parts may be said to be not null
        parts = {METADATA: column.field(METADATA), VALUE: column.field(VALUE)}
        filled = [pc.fill_null(parts[field.name], b"").cast(field.type) for field in kind]
        return pa.StructArray.from_arrays(filled, fields=list(kind), mask=pc.is_null(column))
    if is_variant(column.type) and not types.is_struct(kind):
        return variant_json(column).cast(kind)
    if types.is_struct(kind) and types.is_struct(column.type):
        return _struct(column, kind, leaf)
    if types.is_list(kind) and (types.is_large_list(column.type) or types.is_fixed_size_list(column.type)):
        column = column.cast(pa.list_(column.type.value_field))
    if types.is_list(kind) and (types.is_list(column.type) or is_list_view(column.type)):
        values = as_type(column.flatten(), kind.value_type, leaf)
        return pa.ListArray.from_arrays(offsets_of(column), values, type=kind, mask=null_mask(column))
    if types.is_map(kind) and types.is_map(column.type):
        return _map(column, kind, leaf)
    if types.is_dictionary(kind) and types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, as_type(column.dictionary, kind.value_type, leaf))
    if isinstance(kind, pa.JsonType) and isinstance(column.type, pa.JsonType):
        return pa.ExtensionArray.from_storage(kind, column.storage.cast(kind.storage_type))
    return column if column.type == kind else leaf(column, kind)


def _vectors(column: Array, kind: Any) -> Array:
    """Vectors of lists of as many numbers, or of the bytes that files hold."""
    if pa.types.is_dictionary(column.type):
        column = decoded(column)
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_binary(column.type):
        return vectors_from(column.cast(pa.binary(width_of_vector(kind))), kind)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        lengths = pc.list_value_length(column)
        if not pc.all(pc.equal(lengths, kind.list_size), min_count=0).as_py():
            raise pa.ArrowInvalid(f"a vector has {kind.list_size} values, and a row has another number of them")
        if column.flatten().null_count:
            raise pa.ArrowInvalid("a vector has a null among its values")
        if column.null_count:
            full = column.drop_null().flatten().cast(kind.value_type)
            places = np.full(len(column), -1)
            places[column.is_valid().to_numpy(zero_copy_only=False)] = np.arange(len(full) // kind.list_size)
            at = (places[:, None] * kind.list_size + np.arange(kind.list_size)).reshape(-1)
            flat = full.take(pa.array(at, mask=at < 0))
            return pa.FixedSizeListArray.from_arrays(flat, type=kind, mask=pc.is_null(column))
        return pa.FixedSizeListArray.from_arrays(column.flatten().cast(kind.value_type), type=kind)
    return column.cast(kind)


def _variants(column: Array) -> Array:
    """Variants of their encoding, or of values: texts are JSON."""
    if pa.types.is_dictionary(column.type):
        column = decoded(column)
    if is_raw(column.type):
        names = [field.name for field in column.type]
        return hoodie.format.variant_shredding.variants_of(names, column.flatten(), null_mask(column))
    try:
        return variants_of_values(column.to_pylist())
    except ValueError as exc:
        raise pa.ArrowInvalid(str(exc)) from exc


def decoded(column: Array) -> Array:
    """The values of a dictionary array."""
    values = column.dictionary
    plain = {"string_view": pa.string(), "binary_view": pa.binary()}.get(
        str(values.type)
    )  # Arrow does not decode views
    if plain is not None:
        column = pa.DictionaryArray.from_arrays(column.indices, values.cast(plain))
    return column.dictionary_decode()


def runs_decoded(column: Array) -> Array:
    """The values of a run-end encoded array, one for each row; Arrow decodes few types of them."""
    rows = np.arange(column.offset, column.offset + len(column))
    values = as_type(column.values, plain_type(column.values.type))
    return values.take(pa.array(np.searchsorted(column.run_ends.to_numpy(), rows, side="right")))


def with_plain_types(rows: pa.Table) -> pa.Table:
    """The rows without views and runs (`plain_type`)."""
    for at, field in enumerate(rows.schema):
        if (kind := plain_type(field.type)) != field.type:
            rows = rows.set_column(at, field.with_type(kind), as_type(rows.column(at), kind))
    return rows


def as_given(column: Array, kind: pa.DataType) -> Array:
    """Values as they are in another type; nothing is nested in them."""
    types = pa.types
    if types.is_dictionary(column.type):
        return as_type(decoded(column), kind)
    old = column.type
    if types.is_integer(old) and types.is_floating(kind):
        return column.cast(kind, safe=False)
    if types.is_floating(old) and (types.is_string(kind) or types.is_decimal(kind)):
        column = text_of(column, field="", role="stored")
    elif types.is_float32(old) and types.is_float64(kind):
        column = column.cast(pa.string())  # 0.1 stays 0.1, as in Apache Hudi
    if types.is_decimal(kind):
        if types.is_string(column.type):
            column = pc.round(column.cast(_FINE_DECIMAL), kind.scale, "half_towards_infinity")
        elif types.is_integer(old):
            column = column.cast(pa.decimal128(_DECIMAL_DIGITS, 0))  # Arrow wants room for every integer first
    if types.is_large_string(old) or types.is_large_binary(old):
        column = _from_its_start(column)
    return column.cast(kind)


def _from_its_start(column: Array) -> Array:
    """Texts with long offsets, copied where these lie beyond the short ones: Arrow judges a slice by where it begins."""
    ends = np.frombuffer(column.buffers()[1] or bytes(8), np.int64)
    is_far = len(column) and ends[column.offset + len(column)] > np.iinfo(np.int32).max
    return pa.concat_arrays([column]) if is_far else column


def as_stored(column: Array, kind: pa.DataType) -> Array:
    """Values of a file in the type that the table gives them now; nothing is nested in them."""
    return column.cast(pa.int64()).cast(kind) if is_mislabelled(column.type, kind) else as_given(column, kind)


def _struct(column: Array, kind: pa.StructType, leaf: Leaf) -> Array:
    parts = column.flatten()
    positions = {column.type.field(i).name: i for i in range(column.type.num_fields)}
    members = [kind.field(i) for i in range(kind.num_fields)]
    fields = [
        as_type(parts[positions[field.name]], field.type, leaf)
        if field.name in positions
        else pa.nulls(len(column), field.type)
        for field in members
    ]
    if not fields:
        return column.cast(kind)
    return pa.StructArray.from_arrays(fields, fields=members, mask=pc.is_null(column))


def _map(column: Array, kind: pa.MapType, leaf: Leaf) -> Array:
    entries = entries_of(column)
    keys, items = entries.flatten().flatten()
    result: Array = pa.MapArray.from_arrays(
        offsets_of(entries),
        as_type(keys, kind.key_type, leaf),
        as_type(items, kind.item_type, leaf),
        mask=null_mask(column),
    )
    return result if result.type == kind else result.cast(kind)


def entries_of(column: Array) -> Array:
    """A map array as a list array of structs of key and value."""
    kind = column.type
    fields = [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
    try:
        return column.cast(pa.list_(pa.struct(fields)))
    except pa.ArrowInvalid:
        # Null structs of fields that are "not null", as Spark makes them: Arrow does not cast those, not even to the same type.
        entries = pa.StructArray.from_arrays([column.keys, column.items], fields=fields)
        offsets = pa.array(column.offsets.to_numpy(), pa.int32())
        return pa.ListArray.from_arrays(offsets, entries, mask=null_mask(column))


def offsets_of(column: Array) -> Array:
    """Offsets of a list array over its own rows, from 0; null rows are empty (as `flatten` has it)."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def null_mask(column: Array) -> Array:
    """Which rows are null, as makers of arrays take it."""
    return pc.is_null(column) if column.null_count else None
