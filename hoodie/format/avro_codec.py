"""Avro binary records -> rows of Arrow columns; the way there is in `avro_encode`.

Where no array or map is in the schema a vector with one read position per row advances column by column. Records with
arrays or maps are decoded by fastavro, which accepts some byte strings that are no record (a negative union branch,
say); so what it gave is encoded again and must give the same bytes.

Decoding is strict: apart from the length of a `bytes` decimal it accepts only what encoding gives, so a damaged record
that is accepted is another whole record, never half of one.

Measured on 50,000 rows of 15 nullable columns (strings, longs, doubles, 10 % nulls), framing included, million rows per
CPU second: encode 1.1, decode 1.2; fastavro through lists of dicts 0.09 and 0.1. The Rust extension pyruhvro 0.4.0 does
7 to 9 and 5.5 without framing, and is not used: it cannot do bytes, decimals and naive timestamps (decoding them raises
a panic that is no `Exception`), ignores bytes behind a record, and does not check that strings are UTF-8.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import fastavro
import numpy as np
import pyarrow as pa

import hoodie.format
from hoodie.errors import CorruptFileError
from hoodie.format.avro_encode import encode_records, pieces_of, width_of
from hoodie.format.avro_record import read_record
from hoodie.format.avro_schema import AvroType, present
from hoodie.format.avro_wire import (
    Bytes,
    Column,
    Ints,
    Mask,
    decimals_from,
    from_bytes,
    join,
    offsets_of,
    padded,
    read_varints,
    sign_extended,
    slices,
    spread,
    windows,
)
from hoodie.format.variants import VARIANT_NAME
from hoodie.format.vectors import vectors_from

if TYPE_CHECKING:
    import hoodie.format.variant_shredding

__all__ = ["decode_field", "decode_records", "encode_records", "positions_behind"]

_ROWS = 8_192
"""Rows that go through the columns together, so that their bytes stay in the processor's cache."""
_FALLBACK_ROWS = 1_024  # Python objects in flight
_SPAN_BYTES = 1 << 30
_CELLS = 1 << 27
"""Values that a block may always stand for; beyond it, 8 times as many as it has bytes."""


class _Rows(NamedTuple):
    """Where the reading of a set of rows stands."""

    buffer: Bytes
    ends: Ints


def decode_records(
    content: memoryview | bytes, starts: Ints, ends: Ints, record: AvroType, columns: Collection[str] | None = None
) -> pa.Table:
    """The records `content[starts[i]:ends[i]]` as a table, columns and types as `arrow_from_avro` says.

    The slices must lie in `content`, in order and without overlap. Of `columns` only those are made that the record
    has (None: all); the others are stepped over, and only their lengths are checked.

    Raises:
        CorruptFileError: a slice is no record of this type, to its last byte.
        UnsupportedTableError: no column can have one of the types.
    """
    is_decoded = [columns is None or name in columns for name, _ in record.fields]
    if is_decoded and not any(is_decoded):
        is_decoded[0] = True  # a table without columns would not know its number of rows
    schema = pa.schema([field for field, keep in zip(record.arrow_fields, is_decoded) if keep])
    if len(starts) * record.nodes > max(_CELLS, 8 * len(content)):
        raise CorruptFileError(
            f"{len(starts)} Avro records in {len(content)} bytes claim to hold {len(starts) * record.nodes} values"
        )
    decode = _decode_by_fastavro if record.repeats else _decode_columns
    most = _FALLBACK_ROWS if record.repeats else _ROWS
    parts = _in_chunks(
        content, starts, ends, most, lambda part, begin, end: decode(part, begin, end, record, is_decoded)
    )
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, schema=schema) for columns in parts], schema)


def decode_field(content: memoryview | bytes, starts: Ints, ends: Ints, record: AvroType, name: str) -> pa.ChunkedArray:
    """One field of the records; what stands behind it is not looked at, unless arrays or maps stand in front of it.

    Raises:
        CorruptFileError, UnsupportedTableError: as `decode_records`, of what is looked at.
    """
    at = [each for each, _ in record.fields].index(name)
    head, is_decoded = replace(record, fields=record.fields[: at + 1]), [False] * at + [True]
    if head.repeats:
        return decode_records(content, starts, ends, record, (name,)).column(0)

    def decode(part: memoryview | bytes, starts: Ints, ends: Ints) -> list[Column]:
        return _decode_record(head, _Rows(padded(part), ends), starts, is_decoded)[0]

    parts = [columns[0] for columns in _in_chunks(content, starts, ends, _ROWS, decode)]
    return pa.chunked_array(parts, record.arrow_fields[at].type)


def _in_chunks(
    content: memoryview | bytes,
    starts: Ints,
    ends: Ints,
    rows: int,
    decode: Callable[[memoryview | bytes, Ints, Ints], list[Column]],
) -> Iterator[list[Column]]:
    for first, last in _chunks(starts, ends, rows):
        base = int(starts[first])
        part = content[base : int(ends[last - 1])]
        try:
            yield decode(part, starts[first:last] - base, ends[first:last] - base)
        except pa.ArrowInvalid as exc:
            raise CorruptFileError(f"Avro records {first} to {last - 1} hold invalid values: {exc}") from exc


def positions_behind(content: memoryview | bytes, starts: Ints, ends: Ints, record: AvroType) -> Ints:
    """Where each of the records goes on that begin with the fields of this one. They are stepped over, and may not repeat.

    Raises:
        CorruptFileError: a field does not fit its record.
    """
    return _decode_record(record, _Rows(padded(content), ends), starts, [False] * len(record.fields))[1]


def _chunks(starts: Ints, ends: Ints, rows: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows, few enough for the cache and never 2 GiB of bytes (Arrow's short offsets)."""
    first = 0
    while first < len(starts):
        last = min(first + rows, len(starts))
        if ends[last - 1] - starts[first] > _SPAN_BYTES:
            last = max(first + 1, int(np.searchsorted(ends, starts[first] + _SPAN_BYTES, side="right")))
        yield first, last
        first = last


def _decode_columns(
    part: memoryview | bytes, starts: Ints, ends: Ints, record: AvroType, is_decoded: Sequence[bool]
) -> list[Column]:
    columns, positions = _decode_record(record, _Rows(padded(part), ends), starts, is_decoded)
    if (positions != ends).any():
        row = int(np.flatnonzero(positions != ends)[0])
        raise CorruptFileError(
            f"an Avro record of {ends[row] - starts[row]} bytes ends {ends[row] - positions[row]} early"
        )
    return columns


def _decode_record(
    node: AvroType, rows: _Rows, positions: Ints, is_decoded: Sequence[bool] | None = None
) -> tuple[list[Column], Ints]:
    columns = []
    for at, (_, inner) in enumerate(node.fields):
        if is_decoded is not None and not is_decoded[at]:
            positions = _step_over(inner, rows, positions)
            continue
        column, positions = _decode(inner, rows, positions)
        columns.append(column)
    return columns, positions


def _step_over(node: AvroType, rows: _Rows, positions: Ints) -> Ints:
    """The positions behind a column that nobody asked for."""
    value, valid, positions = _branches(node, rows, positions)
    if value.kind == "record" or (value.kind == "bytes" and value.logical == "decimal"):
        return _decode_dense(value, rows, positions, valid)[1]
    if value.kind in ("string", "bytes"):
        return _decode_lengths(value, rows, positions, valid)[1]
    if value.kind in ("int", "long", "enum"):
        after = read_varints(rows.buffer, positions)[1]
        return _within(value, after if valid is None else np.where(valid, after, positions), rows.ends)
    width = width_of(value)
    return _within(value, positions + (width if valid is None else np.where(valid, width, 0)), rows.ends)


def _decode(node: AvroType, rows: _Rows, positions: Ints) -> tuple[Column, Ints]:
    """The column at `positions`, and the positions behind it."""
    value, valid, positions = _branches(node, rows, positions)
    if value.kind == "record" or (value.kind == "bytes" and value.logical == "decimal"):
        return _decode_dense(value, rows, positions, valid)
    return _decode_scalar(value, rows, positions, valid)


def _branches(node: AvroType, rows: _Rows, positions: Ints) -> tuple[AvroType, Mask | None, Ints]:
    """The type of the values, which rows have one (None: all), and the positions behind the union's branch numbers."""
    value, valid = node, None
    if node.kind == "union":
        value = node.value
        branch = rows.buffer[positions]
        null, some = (2, 0) if node.null_branch else (0, 2)
        positions = _within(node, positions + 1, rows.ends)
        valid = branch == some
        if valid.all():
            valid = None
        elif not (valid | (branch == null)).all():
            raise _bad(node, "a wrong union branch")
    return value, valid, positions


def _within(node: AvroType, positions: Ints, ends: Ints) -> Ints:
    if (positions > ends).any():
        raise _bad(node, "a value that runs past the record's end")
    return positions


def _bad(node: AvroType, what: str) -> CorruptFileError:
    return CorruptFileError(f"column {node.path!r} of an Avro record has {what}")


def _decode_dense(node: AvroType, rows: _Rows, positions: Ints, valid: Mask | None) -> tuple[Column, Ints]:
    """Types whose nulls are left out while they are decoded, and put back afterwards."""
    if valid is not None:
        at = np.flatnonzero(valid)
        column, after = _decode_dense(node, _Rows(rows.buffer, rows.ends[at]), positions[at], None)
        positions[at] = after
        return spread(column, valid), positions
    if node.kind == "record":
        columns, positions = _decode_record(node, rows, positions)
        return _records(node, columns), positions
    starts, ends = _decode_lengths(node, rows, positions, None)
    return _short_decimals(node, rows.buffer, starts, ends), ends


def _records(node: AvroType, columns: list[Column]) -> Column:
    if node.logical == VARIANT_NAME:
        return hoodie.format.variant_shredding.variants_of([name for name, _ in node.fields], columns)
    return pa.StructArray.from_arrays(columns, fields=list(node.arrow_fields))


def _decode_lengths(node: AvroType, rows: _Rows, positions: Ints, valid: Mask | None) -> tuple[Ints, Ints]:
    """Start and end of each byte string; both the position itself where there is none."""
    lengths, starts = read_varints(rows.buffer, positions)
    if valid is not None:
        lengths[~valid] = 0
        starts = np.where(valid, starts, positions)
    _within(node, starts, rows.ends)
    if ((lengths < 0) | (lengths > rows.ends - starts)).any():
        raise _bad(node, "a length that is negative or longer than the record")
    return starts, starts + lengths


def _decode_scalar(node: AvroType, rows: _Rows, positions: Ints, valid: Mask | None) -> tuple[Column, Ints]:
    """Types that are decoded for all rows; what is read where there is no value does not count."""
    kind = node.arrow
    if node.kind in ("string", "bytes"):
        starts, ends = _decode_lengths(node, rows, positions, valid)
        column = slices(rows.buffer, starts, ends, valid)
        return (column if node.kind == "bytes" else column.cast(pa.string())), ends
    if node.kind in ("int", "long", "enum"):
        values, after = read_varints(rows.buffer, positions)
        if valid is not None:
            values[~valid] = 0
            after = np.where(valid, after, positions)
        return _from_integers(node, values, valid), _within(node, after, rows.ends)
    width = width_of(node)
    after = _within(node, positions + (width if valid is None else np.where(valid, width, 0)), rows.ends)
    matrix = windows(rows.buffer, positions, width)
    if valid is not None:
        matrix[~valid] = 0
    return _from_fixed(node, matrix, kind, valid), after


def _from_fixed(node: AvroType, matrix: Bytes, kind: pa.DataType, valid: Mask | None) -> Column:
    if node.kind == "boolean":
        if (matrix > 1).any():
            raise _bad(node, "a boolean that is neither 0 nor 1")
        return from_bytes(kind, len(matrix), np.packbits(matrix[:, 0], bitorder="little"), valid=valid)
    if node.logical == "decimal":
        return decimals_from(matrix, kind, valid)
    plain = kind if node.vector is None else pa.binary(node.size)
    column = from_bytes(plain, len(matrix), np.ascontiguousarray(matrix), valid=valid)
    return column if node.vector is None else vectors_from(column, kind)


def _from_integers(node: AvroType, values: Ints, valid: Mask | None) -> Column:
    if node.kind == "enum":
        if ((values < 0) | (values >= len(node.symbols))).any():
            raise _bad(node, "a symbol out of range")
        codes: Column = pa.array(values, mask=None if valid is None else ~valid)
        return pa.array(node.symbols, pa.string()).take(codes)
    if node.kind == "int":
        short = values.astype(np.int32)
        if (short != values).any():
            raise _bad(node, "an int of more than 32 bits")
        column = from_bytes(node.arrow, len(values), short, valid=valid)
    else:
        column = from_bytes(node.arrow, len(values), values, valid=valid)
    if node.logical.startswith("time-"):
        column.validate(full=True)  # ArrowInvalid outside of a day
    return column


def _short_decimals(node: AvroType, buffer: Bytes, starts: Ints, ends: Ints) -> Column:
    """Decimals of the bytes type: as many bytes as each needs."""
    lengths = ends - starts
    if ((lengths < 1) | (lengths > 16)).any():
        raise _bad(node, "a decimal of 0 or of more than 16 bytes")
    return decimals_from(sign_extended(buffer, starts, ends), node.arrow)


# --- decode records with arrays or maps ------------------------------------------------------------------------


def _decode_by_fastavro(
    part: memoryview | bytes, starts: Ints, ends: Ints, record: AvroType, is_decoded: Sequence[bool]
) -> list[Column]:
    schema = fastavro.parse_schema(_wire_schema(record, "r"))
    stream = io.BytesIO(part)
    rows: list[Any] = []
    # A row loop: this is the fallback, and fastavro reads one record at a time.
    for start, end in zip(starts.tolist(), ends.tolist()):
        stream.seek(start)
        try:
            rows.append(read_record(stream, schema))
        except (EOFError, IndexError, ValueError, OverflowError, MemoryError, KeyError) as exc:
            raise CorruptFileError(f"an Avro record of {end - start} bytes does not decode: {exc!r}") from exc
        if stream.tell() != end:
            raise CorruptFileError(f"an Avro record of {end - start} bytes ends {end - stream.tell()} early")
    budget = _Budget(max(_CELLS, 8 * len(part)))
    try:
        columns = [_build(inner, [row[f"f{i}"] for row in rows], budget) for i, (_, inner) in enumerate(record.fields)]
    except OverflowError as exc:
        raise CorruptFileError("an Avro record holds a number of more than 64 bits") from exc
    again = join([piece for (_, inner), column in zip(record.fields, columns) for piece in pieces_of(inner, column)])
    originals = slices(padded(part), starts, ends)
    if not again.equals(originals.cast(pa.large_binary())):
        raise CorruptFileError(
            "an Avro record with arrays or maps is damaged, or not in the form that Hudi's writers give (a wrong union "
            "branch, an overlong number, one array in several blocks)"
        )
    return [column for column, keep in zip(columns, is_decoded) if keep]


def _wire_schema(node: AvroType, name: str) -> Any:
    """The schema for fastavro: only physical types, floats as raw bytes (their bits survive), all names unique."""
    if node.kind == "union":
        return [branch.kind if branch.kind == "null" else _wire_schema(branch, name) for branch in node.branches]
    if node.kind == "record":
        fields = [{"name": f"f{i}", "type": _wire_schema(f, f"{name}_{i}")} for i, (_, f) in enumerate(node.fields)]
        return {"type": "record", "name": name, "fields": fields}
    if node.kind in ("float", "double", "fixed"):
        return {"type": "fixed", "name": name, "size": width_of(node)}
    if node.items is not None:
        inner = _wire_schema(node.items, f"{name}_i")
        return {"type": "array", "items": inner} if node.kind == "array" else {"type": "map", "values": inner}
    return {"string": "bytes", "enum": "int"}.get(node.kind, node.kind)


class _Budget:
    """How many values the records of one read may still stand for: nulls of wide structs take one byte each."""

    def __init__(self, cells: int) -> None:
        self.remaining = cells

    def spend(self, cells: int) -> None:
        self.remaining -= cells
        if self.remaining < 0:
            raise CorruptFileError("Avro records claim to hold far more values than they have bytes")


def _build(node: AvroType, values: list[Any], budget: _Budget) -> Column:
    """The column of what fastavro gave."""
    budget.spend(len(values) * (node.nodes if not node.repeats else 1))
    if node.kind != "union":
        return _build_value(node, values, budget)
    dense = [value for value in values if value is not None]
    column = _build_value(node.value, dense, budget)
    if len(dense) == len(values):
        return column
    return spread(column, np.array([value is not None for value in values], dtype=np.bool_))


def _build_value(node: AvroType, values: list[Any], budget: _Budget) -> Column:
    kind = node.arrow
    if node.kind == "record":
        columns = [_build(inner, [v[f"f{i}"] for v in values], budget) for i, (_, inner) in enumerate(node.fields)]
        return _records(node, columns)
    if node.kind in ("array", "map"):
        offsets = pa.array(offsets_of(np.array([len(value) for value in values], dtype=np.int64)), pa.int32())
        if node.kind == "array":
            items = _build(present(node), list(chain.from_iterable(values)), budget)
            return pa.ListArray.from_arrays(offsets, items, type=kind)
        keys = pa.array(chain.from_iterable(values), pa.string())
        items = _build(present(node), list(chain.from_iterable(value.values() for value in values)), budget)
        make_map: Any = pa.MapArray.from_arrays
        return make_map(offsets, keys, items, type=kind)
    if node.kind in ("int", "long", "enum"):
        return _from_integers(node, np.array(values, dtype=np.int64), None)
    if node.kind == "boolean":
        return pa.array(values, kind)
    data = b"".join(values)
    if node.kind in ("string", "bytes"):
        if node.logical != "decimal":
            return pa.array(values, pa.binary()).cast(kind)
        bounds = offsets_of(np.array([len(value) for value in values], dtype=np.int64))
        return _short_decimals(node, padded(data), bounds[:-1], bounds[1:])
    return _from_fixed(node, np.frombuffer(data, dtype=np.uint8).reshape(len(values), width_of(node)), kind, None)
