"""VECTOR columns of Apache Hudi 1.x: so many floats, doubles or bytes in each row, stored as that many bytes, little-endian.

Avro says it with the logical type `vector` of a fixed (`dimension`, `elementType`, `storageBacking`), and the footer of a base file
with `hoodie.vector.columns`. In Arrow a vector is a list of a fixed size; no other column of a table is one. (Hudi: HoodieSchema)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

VECTOR = "vector"
"""The logical type."""
FOOTER_KEY = "hoodie.vector.columns"
_ELEMENTS: dict[str, pa.DataType] = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
_NAMES = {kind: name for name, kind in _ELEMENTS.items()}
_BACKING = "FIXED_BYTES"

Tabular = TypeVar("Tabular", pa.Table, pa.RecordBatch)


def vector_of(avro: Mapping[str, Any]) -> pa.DataType | None:
    """The Arrow type of a fixed with the logical type; None where its properties are none of a vector."""
    element, dimension, size = avro.get("elementType"), avro.get("dimension"), avro.get("size")
    kind = _ELEMENTS.get(str(element).upper())
    has_plain_bytes = avro.get("storageBacking", _BACKING) == _BACKING
    if kind is None or not has_plain_bytes or not isinstance(dimension, int) or dimension * kind.bit_width // 8 != size:
        return None
    return pa.list_(kind, dimension)


def is_vector(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_list(kind) and kind.value_type in _NAMES)


def avro_of_vector(kind: Any) -> dict[str, Any]:
    """The Avro type; named after what it holds, as Apache Hudi names it."""
    element = _NAMES[kind.value_type]
    return {
        "type": "fixed",
        "name": f"vector_{element.lower()}_{kind.list_size}",
        "size": width_of_vector(kind),
        "logicalType": VECTOR,
        "dimension": kind.list_size,
        "elementType": element,
        "storageBacking": _BACKING,
    }


def width_of_vector(kind: Any) -> int:
    """Bytes of a row."""
    return int(kind.list_size * kind.value_type.bit_width // 8)


def vectors_from(column: Any, kind: Any) -> Any:
    """A fixed size binary array as vectors."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([vectors_from(chunk, kind) for chunk in column.chunks], kind)
    width = width_of_vector(kind)
    start, size = column.offset * width, len(column) * width
    data = (column.buffers()[1] or pa.py_buffer(bytes(size))).slice(start, size)
    values = pa.Array.from_buffers(kind.value_type, len(column) * kind.list_size, [None, data])
    mask = column.is_null() if column.null_count else None
    return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=mask)


def bytes_of_vectors(column: Any) -> Any:
    """Vectors as a fixed size binary array; what stands under a null is zeros.

    Raises:
        ValueError: a vector lacks one of its values.
    """
    if isinstance(column, pa.ChunkedArray):
        kind: Any = pa.binary(width_of_vector(column.type))
        return pa.chunked_array([bytes_of_vectors(chunk) for chunk in column.chunks], kind)
    kind = column.type
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    values = column.values.slice(column.offset * kind.list_size, len(column) * kind.list_size)
    there = values.is_valid().to_numpy(zero_copy_only=False).reshape(-1, kind.list_size)
    if not there[valid].all():
        raise ValueError("a vector has a null among its values")
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False).reshape(-1, kind.list_size).copy()
    numbers[~valid] = 0
    data = np.ascontiguousarray(numbers.astype(numbers.dtype.newbyteorder("<"), copy=False))
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.binary(width_of_vector(kind)), len(column), [bitmap, pa.py_buffer(data.tobytes())])


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The columns as a Parquet file has them."""
    if not any(is_vector(field.type) for field in schema):
        return schema
    kinds = [pa.binary(width_of_vector(f.type)) if is_vector(f.type) else f.type for f in schema]
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, kinds, strict=True)])


def stored(data: Tabular) -> Tabular:
    """The rows as a Parquet file has them."""
    schema = stored_schema(data.schema)
    if schema is data.schema:
        return data
    columns = [bytes_of_vectors(each) if is_vector(each.type) else each for each in data.columns]
    return type(data).from_arrays(columns, schema=schema)


def footer_entry(schema: pa.Schema) -> dict[str, str]:
    """What the footer of a base file says of its vectors."""
    entries = []
    for field in schema:
        if is_vector(field.type):
            kind: Any = field.type
            element = _NAMES[kind.value_type]
            more = "" if element == "FLOAT" else f", {element}"
            entries.append(f"{field.name}:VECTOR({kind.list_size}{more})")
    return {FOOTER_KEY: ",".join(entries)} if entries else {}


def as_lists(schema: pa.Schema) -> pa.Schema:
    """The columns with lists in place of vectors: for engines that know no lists of a fixed size."""
    kinds = [pa.list_(f.type.value_field) if is_vector(f.type) else f.type for f in schema]
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, kinds, strict=True)])
