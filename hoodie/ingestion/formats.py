"""Rows of files: JSON lines, CSV, Parquet and Avro, as Arrow. What cannot be a row is set apart, and the rest is read all the same."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from hoodie.errors import OptionError
from hoodie.format.avro_schema import arrow_from_avro
from hoodie.ingestion.source import BadRecord

_LONGEST_BLOCK = 2**31 - 1
_LONGEST_CONTENT = 10_000
_SMALLEST_BLOCK = 1 << 20
_NO_FINITE_NUMBERS = (b'"NaN"', b'"Infinity"', b'"-Infinity"')
_MAY_BE_NUMBERS = pa.array(["NaN", "Infinity", "-Infinity"])


class DecodedRows(NamedTuple):
    rows: pa.Table
    bad: tuple[BadRecord, ...] = ()


Decode = Callable[[str, bytes, pa.Schema | None], DecodedRows]
"""The rows of a file of this name and content; columns of the schema get its types."""


def decode_json(name: str, content: bytes, schema: pa.Schema | None) -> DecodedRows:
    """Lines of JSON objects. Columns outside the schema get the types of their values; a text stays a text."""
    bad: list[BadRecord] = []
    types = inferred_types(content, schema)
    tables = list(_json_rows(name, content, types, schema, bad))
    return DecodedRows(_together(tables), tuple(bad))


def inferred_types(content: bytes, schema: pa.Schema | None) -> pa.Schema | None:
    """The columns of `schema`, and those that the lines add. If a column has several types, that of most lines counts."""
    types = json_types(schema)
    return of_most_lines(types_of_lines(content, types), types)


def json_types(schema: pa.Schema | None) -> pa.Schema | None:
    """By which values of these columns are read from JSON."""
    return None if schema is None else pa.schema([pa.field(each.name, _json_type(each.type)) for each in schema])


def of_most_lines(schemas_of_lines: Iterable[tuple[int, pa.Schema]], types: pa.Schema | None) -> pa.Schema | None:
    """The columns of all, those of `types` first."""
    for _, each in sorted(schemas_of_lines, key=lambda part: -part[0]):
        types = each if types is None else wider(types, each)
    return types


def types_of_lines(content: bytes, types: pa.Schema | None) -> Iterator[tuple[int, pa.Schema]]:
    """How many lines have which columns: of the whole, or of the parts of it that can be read.

    A column that has no text but those that may be numbers is one of texts for no line: what it is, others say.
    """
    try:
        rows = read_json(content, types)
    except pa.ArrowInvalid:
        for part in _halves(content):
            yield from types_of_lines(part, types)
        return
    every = pa.schema([pa.field(each.name, _as_text(each.type)) for each in rows.schema])
    if any(each in content for each in _NO_FINITE_NUMBERS):
        yield rows.num_rows, pa.schema([pa.field(name, _sure_type(rows.column(name))) for name in rows.schema.names])
        yield 0, every
    else:
        yield rows.num_rows, every


def _sure_type(column: pa.ChunkedArray) -> pa.DataType:
    kind = column.type
    if pa.types.is_string(kind):
        return pa.null() if pc.all(pc.is_in(column.drop_null(), value_set=_MAY_BE_NUMBERS)).as_py() else kind
    if pa.types.is_list(kind):
        return pa.list_(_sure_type(pc.list_flatten(column)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _sure_type(pc.struct_field(column, each.name))) for each in kind])
    return _as_text(kind)


def wider(first: pa.Schema, second: pa.Schema) -> pa.Schema:
    """The columns of both. A type that holds the values of both, or that of the first."""
    fields = {each.name: each for each in first}
    for each in second:
        fields[each.name] = _wider_field(fields.get(each.name, each), each)
    return pa.schema(list(fields.values()))


def _wider_field(first: pa.Field[Any], second: pa.Field[Any]) -> pa.Field[Any]:
    try:
        return pa.unify_schemas([pa.schema([first]), pa.schema([second])], promote_options="permissive").field(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if not (pa.types.is_struct(first.type) and pa.types.is_struct(second.type)):
            return first
    return first.with_type(pa.struct(list(wider(pa.schema(list(first.type)), pa.schema(list(second.type))))))


def _json_rows(
    name: str, content: bytes, types: pa.Schema | None, schema: pa.Schema | None, bad: list[BadRecord]
) -> Iterator[pa.Table]:
    """The whole, or where it cannot be read the parts of it that can: halved until what is wrong stands alone."""
    if not content.strip():
        return
    try:
        yield with_types(read_json(content, types), schema)
    except pa.ArrowInvalid as exc:
        parts = _halves(content)
        if not parts:
            bad.append(BadRecord(name, str(exc).partition(" in row ")[0], shown(content.strip())))
        for part in parts:
            yield from _json_rows(name, part, types, schema, bad)


def _halves(content: bytes) -> list[bytes]:
    """Half of the lines each; nothing where there is one."""
    lines = [line for line in content.splitlines(keepends=True) if line.strip()]
    middle = len(lines) // 2
    return [b"".join(lines[:middle]), b"".join(lines[middle:])] if middle else []


def read_json(content: bytes, types: pa.Schema | None) -> pa.Table:
    """Raises ArrowInvalid: a line is no object, or a value is not of its type; which one is not said."""
    try:
        return _read_json(content, types)
    except pa.ArrowInvalid:
        line = content.strip()
        if types is None or b"\n" in line or not any(each in line for each in _NO_FINITE_NUMBERS):
            raise
        return _read_json(_with_bare_numbers(line, types), types)


def _with_bare_numbers(line: bytes, types: pa.Schema) -> bytes:
    try:
        return json.dumps(_with_numbers(json.loads(line), pa.struct(list(types)))).encode()
    except ValueError:
        return line


def _with_numbers(value: Any, kind: pa.DataType) -> Any:
    """JSON has no NaN: writers of JSON, Debezium and Spark among them, give a text. Only a column of numbers has one."""
    if isinstance(value, dict) and pa.types.is_struct(kind):
        types = {each.name: each.type for each in kind}
        return {name: _with_numbers(each, types.get(name, pa.null())) for name, each in value.items()}
    if isinstance(value, list) and pa.types.is_list(kind):
        return [_with_numbers(each, kind.value_type) for each in value]
    is_number = pa.types.is_floating(kind) and isinstance(value, str)
    return float(value) if is_number and f'"{value}"'.encode() in _NO_FINITE_NUMBERS else value


def _read_json(content: bytes, types: pa.Schema | None) -> pa.Table:
    # One block: types are inferred of all rows, and not of the first megabyte.
    size = min(max(len(content) + 1, _SMALLEST_BLOCK), _LONGEST_BLOCK)
    return pyarrow.json.read_json(
        io.BytesIO(content),
        read_options=pyarrow.json.ReadOptions(block_size=size, use_threads=False),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=types, unexpected_field_behavior="infer"),
    )


def _json_type(kind: pa.DataType) -> pa.DataType:
    """By which a value of the type is read from JSON: as a text, where Arrow reads no such thing."""
    return kind if pa.types.is_nested(kind) or is_read_from_json(kind) else pa.string()


def is_read_from_json(kind: pa.DataType) -> bool:
    """Arrow reads values of the type from JSON as they are: numbers, texts, and what is made of them."""
    if pa.types.is_list(kind):
        return is_read_from_json(kind.value_type)
    if pa.types.is_struct(kind):
        return all(is_read_from_json(each.type) for each in kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return is_number or pa.types.is_boolean(kind) or pa.types.is_string(kind)


def _as_text(kind: pa.DataType) -> pa.DataType:
    """The same, where a text that looks like a moment is a text: the next one may not look so."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _as_text(each.type)) for each in kind])
    return kind


def with_types(rows: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """The columns in the types of the schema. Raises ArrowInvalid: a value does not fit."""
    for number, field in enumerate(rows.schema):
        position = -1 if schema is None else schema.get_field_index(field.name)
        if position >= 0 and schema is not None and schema.field(position).type != field.type:
            kind = _with_new_fields(schema.field(position).type, field.type)
            rows = rows.set_column(number, field.name, pc.cast(rows.column(number), kind))
    return rows


def _with_new_fields(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type with the fields of structs that only `other` has: a cast to the type would leave them out."""
    if pa.types.is_list(kind) and pa.types.is_list(other):
        return pa.list_(kind.value_field.with_type(_with_new_fields(kind.value_type, other.value_type)))
    if not (pa.types.is_struct(kind) and pa.types.is_struct(other)):
        return kind
    others = {each.name: each for each in other}
    same = [
        each.with_type(_with_new_fields(each.type, others[each.name].type)) if each.name in others else each
        for each in kind
    ]
    names = {each.name for each in kind}
    return pa.struct([*same, *(each for each in other if each.name not in names)])


def decode_csv(name: str, content: bytes, schema: pa.Schema | None) -> DecodedRows:
    """The first line has the names. An empty field is null."""
    bad: list[BadRecord] = []
    if not content.strip():
        return DecodedRows(pa.table({}))
    types = {each.name: each.type for each in schema or () if not pa.types.is_nested(each.type)}
    try:
        return DecodedRows(_read_csv(name, content, types, bad), tuple(bad))
    except pa.ArrowInvalid:
        bad.clear()
    rows = _read_csv(name, content, dict.fromkeys(types, pa.string()), bad)
    fits = fitting(rows, types)
    for row in rows.filter(pc.invert(fits)).to_pylist():  # the bad ones only
        bad.append(BadRecord(name, "a value is not of its column's type", shown(row)))
    return DecodedRows(with_types(rows.filter(fits), schema), tuple(bad))


def _read_csv(name: str, content: bytes, types: Mapping[str, pa.DataType], bad: list[BadRecord]) -> pa.Table:
    def skip(row: Any) -> Literal["skip"]:
        bad.append(BadRecord(name, f"{row.actual_columns} fields, not {row.expected_columns}", shown(row.text)))
        return "skip"

    return pyarrow.csv.read_csv(
        io.BytesIO(content),
        read_options=pyarrow.csv.ReadOptions(block_size=max(len(content) + 1, _SMALLEST_BLOCK), use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict(types), null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def fitting(rows: pa.Table, types: Mapping[str, pa.DataType]) -> pa.ChunkedArray | pa.Array:
    """Which rows have in each column a value of its type."""
    fits = pa.array([True] * rows.num_rows, pa.bool_())
    for name, kind in types.items():
        if name in rows.schema.names:
            flags = [flag for array in rows.column(name).chunks for flag in _castable(array, kind)]
            fits = pc.and_(fits, pa.array(flags, pa.bool_()))
    return fits


def _castable(array: pa.Array, kind: pa.DataType) -> list[bool]:
    """Halved until what is wrong stands alone."""
    try:
        pc.cast(array, kind)
    except pa.ArrowException:
        if len(array) == 1:
            return [False]
        middle = len(array) // 2
        return _castable(array[:middle], kind) + _castable(array[middle:], kind)
    return [True] * len(array)


def decode_parquet(name: str, content: bytes, schema: pa.Schema | None) -> DecodedRows:
    try:
        return DecodedRows(pq.ParquetFile(pa.BufferReader(content)).read())
    except (pa.ArrowException, OSError) as exc:
        return _all_bad(name, exc)


def decode_avro(name: str, content: bytes, table_schema: pa.Schema | None) -> DecodedRows:
    """An Avro file of objects; a part of it that is damaged makes all of it bad."""
    try:
        reader = fastavro.reader(io.BytesIO(content))
        schema = arrow_from_avro(reader.writer_schema)  # type: ignore[arg-type]
        return DecodedRows(pa.Table.from_pylist(list(reader), schema))  # type: ignore[arg-type]
    except (ValueError, EOFError, OSError, pa.ArrowException) as exc:
        return _all_bad(name, exc)


def _all_bad(name: str, error: Exception) -> DecodedRows:
    return DecodedRows(pa.table({}), (BadRecord(name, f"the file cannot be read: {error}", ""),))


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """As Python has them. It has no days and moments before the year 1 and after 9999: then they are numbers."""
    try:
        return rows.to_pylist()
    except (ValueError, OverflowError):
        for number, field in enumerate(rows.schema):
            if pa.types.is_temporal(field.type):
                kind = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
                rows = rows.set_column(number, field.name, rows.column(number).cast(kind))
        return rows.to_pylist()


def shown(content: object) -> str:
    text = content.decode(errors="replace") if isinstance(content, bytes) else str(content)
    return text.rstrip("\r\n")[:_LONGEST_CONTENT]


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


FORMATS: Mapping[str, tuple[Decode, tuple[str, ...]]] = {
    "json": (decode_json, (".json", ".jsonl", ".ndjson")),
    "csv": (decode_csv, (".csv",)),
    "parquet": (decode_parquet, (".parquet",)),
    "avro": (decode_avro, (".avro",)),
}
"""Name -> how its files are read, and how their names end."""


def format_of(name: str) -> str | None:
    """By the end of a file's name."""
    return next((each for each, (_, ends) in FORMATS.items() if name.lower().endswith(ends)), None)


def decoder(kind: str) -> Decode:
    if kind not in FORMATS:
        raise OptionError(f"format={kind!r} is not one of {', '.join(FORMATS)}, hudi")
    return FORMATS[kind][0]
