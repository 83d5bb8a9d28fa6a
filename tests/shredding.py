"""Shreds values as Parquet's specification of shredding says, one by one, into columns that are asked for."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.format.log_block import LogBlock, encode_block, scan_blocks
from hoodie.format.variant_values import _value, metadata_of
from hoodie.model.enums import BlockKind

Kind = Any
"""A type of Arrow, which takes values of its Python type; a list of the kind of elements; a dict of the kinds of fields; None: not
shredded."""
NULL = object()
"""A row without a value."""
_PYTHON = {
    pa.int64(): int,
    pa.string(): str,
    pa.float64(): float,
    pa.bool_(): bool,
    pa.timestamp("us", "UTC"): datetime,
}


def group(kind: Kind, *, metadata: bool = False) -> Any:
    """The columns of a group that is shredded so."""
    fields = [pa.field("metadata", pa.binary(), False)] if metadata else []
    fields.append(pa.field("value", pa.binary()))
    if isinstance(kind, list):
        fields.append(pa.field("typed_value", pa.list_(pa.field("element", group(kind[0]), False))))
    elif isinstance(kind, dict):
        parts = [pa.field(name, group(each), False) for name, each in kind.items()]
        fields.append(pa.field("typed_value", pa.struct(parts)))
    elif kind is not None:
        fields.append(pa.field("typed_value", kind))
    return pa.struct(fields)


def shredded(values: list[Any], kind: Kind) -> Any:
    """A column of these values."""
    return pa.array([None if value is NULL else _row(value, kind) for value in values], group(kind, metadata=True))


def _row(value: Any, kind: Kind) -> dict[str, Any]:
    names: dict[str, int] = {}
    _value(value, names)
    return {"metadata": metadata_of(names), **parts_of(value, kind, names)}


def parts_of(value: Any, kind: Kind, names: dict[str, int]) -> dict[str, Any]:
    if isinstance(kind, list) and isinstance(value, list):
        return {"typed_value": [parts_of(each, kind[0], names) for each in value]}
    if isinstance(kind, dict) and isinstance(value, dict):
        rest = {name: each for name, each in value.items() if name not in kind}
        typed = {
            name: parts_of(value[name], each, names) if name in value else {"value": None}
            for name, each in kind.items()
        }
        return {"value": _value(rest, names) if rest else None, "typed_value": typed}
    if isinstance(kind, pa.DataType) and value is not None and type(value) is _PYTHON[kind]:
        return {"typed_value": value}
    return {"value": _value(value, names)}


def shred_files(table: Any, values: dict[int, Any], kind: Kind) -> int:
    """Write the column `v` of all files of a table of `id` and `v` anew, shredded, logs of Parquet blocks as well; how many."""
    paths = [path for path in Path(table.uri).rglob("*") if path.suffix == ".parquet" or ".log." in path.name]
    for path in paths:
        content = path.read_bytes()
        if path.suffix == ".parquet":
            path.write_bytes(_shredded_file(content, values, kind))
            continue
        blocks = []
        for block in scan_blocks(content):
            assert isinstance(block, LogBlock)
            is_data = block.kind is BlockKind.PARQUET_DATA
            inner = _shredded_file(bytes(block.content), values, kind) if is_data else block.content
            blocks.append(encode_block(block.kind, block.header, inner))
        path.write_bytes(b"".join(blocks))
    return len(paths)


def _shredded_file(content: bytes, values: dict[int, Any], kind: Kind) -> bytes:
    rows = pq.read_table(pa.BufferReader(content))
    at = rows.schema.get_field_index("v")
    column = shredded([values[each] for each in rows.column("id").to_pylist()], kind)
    rows = rows.set_column(at, pa.field("v", column.type), column)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(rows.schema.metadata)
        writer.add_key_value_metadata({"padding": "-" * len(content)})  # a file shorter than its commit says is damaged
    return sink.getvalue().to_pybytes()
