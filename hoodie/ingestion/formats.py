"""Rows of files: JSON lines, CSV, Parquet and Avro, as Arrow. What cannot be a row is set apart, and the rest is read all the same."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.filegroup.conform import as_type, with_plain_types
from hoodie.format.avro_schema import arrow_from_avro
from hoodie.ingestion.csv_settings import PLAIN_CSV, CsvSettings
from hoodie.ingestion.json_reader import NO_FINITE_NUMBERS, json_types, read_json
from hoodie.ingestion.source import BadRecord

_LONGEST_CONTENT = 10_000
_SMALLEST_BLOCK = 1 << 20
_AVRO_HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
        ],
    }
)
_AVRO_SCHEMA = "avro.schema"
_AVRO_PARTS = ("type", "fields", "items", "values")
_NUMBERED = re.compile("_c[0-9]+")
_IS_NO_NUMBER = r"^\s*([+-]?0[0-9xX][0-9a-fA-F]*|\+[0-9]+)\s*$"
"""What Arrow takes for whole numbers of CSV."""
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
    if any(each in content for each in NO_FINITE_NUMBERS):
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
            is_array = content.lstrip().startswith(b"[")
            reason = "it is an array: each line has to be one object" if is_array else str(exc).partition(" in row ")[0]
            bad.append(BadRecord(name, reason, shown(content.strip())))
        for part in parts:
            yield from _json_rows(name, part, types, schema, bad)


def _halves(content: bytes) -> list[bytes]:
    """Half of the lines each; nothing where there is one."""
    lines = [line for line in content.splitlines(keepends=True) if line.strip()]
    middle = len(lines) // 2
    return [b"".join(lines[:middle]), b"".join(lines[middle:])] if middle else []


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
            rows = rows.set_column(number, field.name, _cast(rows.column(number), kind))
    return rows


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    cast: pa.ChunkedArray = pc.cast(column, kind)
    if pa.types.is_floating(kind) and pa.types.is_floating(column.type):
        overflows = pc.and_(pc.is_inf(cast), pc.invert(pc.is_inf(column)))
        if pc.any(overflows).as_py():
            raise pa.ArrowInvalid(f"a number is too large for {kind}")
    return cast


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


def decode_csv(name: str, content: bytes, schema: pa.Schema | None, how: CsvSettings = PLAIN_CSV) -> DecodedRows:
    """An empty field is null. Numbers of a new column are texts, if they would lose digits."""
    names: list[str] | None = None
    if not how.has_names:
        is_numbered = all(_NUMBERED.fullmatch(each) for each in schema.names) if schema is not None else True
        names = [] if is_numbered or schema is None else schema.names
    separator = how.separator or ("\t" if name.lower().removesuffix(_compression_of(name)).endswith(".tsv") else ",")
    layout = _Layout(replace(how, separator=separator), names)
    bad: list[BadRecord] = []
    if not content.strip():
        return DecodedRows(pa.table({}))
    try:
        if how.encoding != PLAIN_CSV.encoding:
            content = content.decode(how.encoding).encode()
        pa.array([content], pa.large_binary()).cast(pa.large_string())
    except (pa.ArrowInvalid, UnicodeError):
        return all_bad(name, f"it is not {how.encoding.upper()} text")
    content += b"" if content.endswith((b"\n", b"\r")) else b"\n"  # a header alone needs it
    types = {each.name: _csv_type(each.type) for each in schema or () if not pa.types.is_nested(each.type)}
    try:
        rows = _read_csv(name, content, types, bad, layout)
        if not any(_is_infinite(rows.column(each)) for each in types if each in rows.schema.names):
            new = [each.name for each in rows.schema if each.name not in types and _may_change(each.type)]
            texts = _read_csv(name, content, dict.fromkeys(new, pa.string()), [], layout) if new else rows
            for each in new:
                if _changes(texts.column(each), rows.column(each)):
                    rows = rows.set_column(rows.schema.get_field_index(each), each, texts.column(each))
            return DecodedRows(_without_open_end(name, content, rows, bad, layout), tuple(bad))
    except pa.ArrowInvalid:
        pass
    bad.clear()
    try:
        rows = _read_csv(name, content, dict.fromkeys(types, pa.string()), bad, layout)
        rows = _without_open_end(name, content, rows, bad, layout)
    except pa.ArrowInvalid as exc:
        return all_bad(name, exc)
    fits = fitting(rows, types)
    for row in rows.filter(pc.invert(fits)).to_pylist():  # the bad ones only
        bad.append(BadRecord(name, "a value is not of its column's type", shown(row)))
    return DecodedRows(with_types(rows.filter(fits), schema), tuple(bad))


class _Layout(NamedTuple):
    how: CsvSettings
    names: list[str] | None
    """Of the columns; None: the first line has them, and if there are none, they are numbered as Spark does it."""


def _csv_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if isinstance(kind, pa.JsonType) else kind


def _may_change(kind: pa.DataType) -> bool:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return is_number or pa.types.is_time(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns")


def _is_infinite(column: pa.ChunkedArray) -> bool:
    """Arrow reads infinity where a number is too large."""
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_inf(column)).as_py())


def _changes(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> bool:
    """Whether a table would not keep them as they are: times of day, moments of nanoseconds, numbers that lose digits."""
    if not pa.types.is_timestamp(values.type):
        return pa.types.is_time(values.type) or _loses_digits(texts, values)
    try:
        values.cast(pa.timestamp("us", values.type.tz))
    except pa.ArrowInvalid:
        return True
    return False


def _loses_digits(texts: pa.ChunkedArray, numbers: pa.ChunkedArray) -> bool:
    """Zeros in front, as of postal codes, a plus, as of telephone numbers, hexadecimal ones, or more digits than the type holds."""
    if pc.any(pc.match_substring_regex(texts, _IS_NO_NUMBER)).as_py():
        return True
    if not pa.types.is_floating(numbers.type):
        return False
    large = pc.and_(pc.greater(pc.abs(numbers), 2.0**53), pc.match_substring_regex(texts, "^[+-]?[0-9]+$"))
    infinite = pc.and_(pc.is_inf(numbers), pc.match_substring(texts, "e", ignore_case=True))
    if pc.any(infinite).as_py():
        return True
    try:
        exact, rounded = (each.filter(large).cast(pa.string()).cast(pa.decimal128(38, 0)) for each in (texts, numbers))
    except pa.ArrowInvalid:
        return True
    return bool(pc.any(pc.not_equal(exact, rounded)).as_py())


def _without_open_end(name: str, content: bytes, rows: pa.Table, bad: list[BadRecord], layout: _Layout) -> pa.Table:
    """The rows without the last one, if a quote in it does not end: Arrow reads all lines up to the end as its field."""
    how = layout.how
    is_even = not how.quote or (not how.escape and content.count(how.quote.encode()) % 2 == 0)
    if is_even or not rows.num_rows:
        return rows
    names = rows.schema.names
    one_more = "\nx" + how.separator * (len(names) - 1)
    more = _read_csv(name, content + one_more.encode() + b"\n", dict.fromkeys(names, pa.string()), [], layout)
    last = more.slice(more.num_rows - 1).to_pylist()[0]
    if not any((value or "").rstrip("\n").endswith(one_more) for value in last.values()):
        return rows
    lost = rows.slice(rows.num_rows - 1).to_pylist()[0]
    bad.append(BadRecord(name, "a quote does not end: the lines after it are part of its field", shown(lost)))
    return rows.slice(0, rows.num_rows - 1)


def _read_csv(
    name: str, content: bytes, types: Mapping[str, pa.DataType], bad: list[BadRecord], layout: _Layout
) -> pa.Table:
    def skip(row: Any) -> Literal["skip"]:
        bad.append(BadRecord(name, f"{row.actual_columns} fields, not {row.expected_columns}", shown(row.text)))
        return "skip"

    how, is_numbered = layout.how, layout.names == []
    if is_numbered:  # Arrow says f0 for Spark's _c0
        types = {each.replace("_c", "f"): kind for each, kind in types.items()}
    rows = pyarrow.csv.read_csv(
        io.BytesIO(content),
        read_options=pyarrow.csv.ReadOptions(
            block_size=max(len(content) + 1, _SMALLEST_BLOCK),
            use_threads=False,
            column_names=layout.names or None,
            autogenerate_column_names=is_numbered,
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=how.separator,
            quote_char=how.quote or False,
            escape_char=how.escape or False,
            newlines_in_values=True,
            invalid_row_handler=skip,
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict(types),
            null_values=["", how.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    if is_numbered:
        rows = rows.rename_columns([each.replace("f", "_c") for each in rows.schema.names])
    twice = {each for each in rows.schema.names if rows.schema.names.count(each) > 1}
    if twice:
        raise pa.ArrowInvalid(f"more than one column is named {', '.join(sorted(twice))}")
    return rows


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
        cast = pc.cast(array, kind)
        if pa.types.is_floating(kind) and pa.types.is_string(array.type):
            overflows = pc.and_(pc.is_inf(cast), pc.match_substring_regex(array, "[0-9]"))
            if pc.any(overflows).as_py():
                raise pa.ArrowInvalid(f"a number is too large for {kind}")
    except pa.ArrowException:
        if len(array) == 1:
            return [False]
        middle = len(array) // 2
        return _castable(array[:middle], kind) + _castable(array[middle:], kind)
    return [True] * len(array)


def decode_parquet(name: str, content: bytes, schema: pa.Schema | None) -> DecodedRows:
    try:
        rows = pq.ParquetFile(pa.BufferReader(content)).read()
        rows.validate(full=True)  # a text may be none
        return DecodedRows(with_plain_types(rows))
    except (pa.ArrowException, OSError) as exc:
        return all_bad(name, exc)


def decode_avro(name: str, content: bytes, table_schema: pa.Schema | None) -> DecodedRows:
    """An Avro file of objects; a part of it that is damaged makes all of it bad."""
    try:
        reader = fastavro.reader(io.BytesIO(_with_plain_numbers(content)))
        schema = arrow_from_avro(fastavro.reader(io.BytesIO(content)).writer_schema)  # type: ignore[arg-type]
        return DecodedRows(pa.Table.from_pylist(list(reader), schema))  # type: ignore[arg-type]
    except UnsupportedTableError as exc:
        raise UnsupportedTableError(f"{name}: {exc}") from exc
    except Exception as exc:  # noqa: BLE001 - fastavro raises what it runs into
        return all_bad(name, f"{type(exc).__name__}: {exc}")


def _with_plain_numbers(content: bytes) -> bytes:
    """The Avro file, whose header does not say that numbers are times and texts are UUIDs.

    Arrow takes such values as they are, while Python has no days before the year 1 and after 9999.
    """
    file = io.BytesIO(content)
    header: Any = fastavro.schemaless_reader(file, _AVRO_HEADER, None)
    header["meta"][_AVRO_SCHEMA] = json.dumps(_without_logical_types(json.loads(header["meta"][_AVRO_SCHEMA]))).encode()
    fastavro.schemaless_writer(result := io.BytesIO(), _AVRO_HEADER, header)
    return result.getvalue() + content[file.tell() :]


def _without_logical_types(schema: Any) -> Any:
    """The same but for decimals, of any JSON."""
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = schema if schema.get("logicalType") == "decimal" else {k: v for k, v in schema.items() if k != "logicalType"}
    return {k: _without_logical_types(v) if k in _AVRO_PARTS else v for k, v in kept.items()}


def all_bad(name: str, error: Exception | str) -> DecodedRows:
    """Nothing of a file can be read."""
    return DecodedRows(pa.table({}), (BadRecord(name, f"the file cannot be read: {error}", ""),))


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """As Python has them. It has no days and moments before the year 1 and after 9999, and not all zones: then they are numbers."""
    try:
        return rows.to_pylist()
    except (ValueError, OverflowError, KeyError):
        columns = [as_type(column, _in_numbers(column.type)) for column in rows.columns]
        return pa.table(columns, rows.schema.names).to_pylist()


def _in_numbers(kind: Any) -> Any:
    """The type with numbers in place of days and times, at any depth."""
    types = pa.types
    if types.is_dictionary(kind):
        return _in_numbers(kind.value_type)
    if types.is_struct(kind):
        return pa.struct([each.with_type(_in_numbers(each.type)) for each in kind])
    if types.is_map(kind):
        return pa.map_(kind.key_type, _in_numbers(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(_in_numbers(kind.value_type))
    if types.is_temporal(kind) and not types.is_interval(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def shown(content: object) -> str:
    text = content.decode(errors="replace") if isinstance(content, bytes) else str(content)
    return text.rstrip("\r\n")[:_LONGEST_CONTENT]


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


FORMATS: Mapping[str, tuple[Decode, tuple[str, ...]]] = {
    "json": (decode_json, (".json", ".jsonl", ".ndjson")),
    "csv": (decode_csv, (".csv", ".tsv")),
    "parquet": (decode_parquet, (".parquet",)),
    "avro": (decode_avro, (".avro",)),
}
"""Name -> how its files are read, and how their names end."""


_COMPRESSIONS: Mapping[str, Literal["gzip", "bz2", "zstd"]] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def format_of(name: str) -> str | None:
    """By the end of a file's name, behind which may be that of a compression."""
    name = name.lower().removesuffix(_compression_of(name))
    return next((each for each, (_, ends) in FORMATS.items() if name.endswith(ends)), None)


def _compression_of(name: str) -> str:
    """The end of the name, empty if it says none."""
    return next((end for end in _COMPRESSIONS if name.lower().endswith(end)), "")


def uncompressed(name: str, content: bytes) -> bytes:
    """Raises OSError: it is damaged."""
    end = _compression_of(name)
    return pa.CompressedInputStream(pa.BufferReader(content), _COMPRESSIONS[end]).read() if end else content


def decoder(kind: str) -> Decode:
    if kind not in FORMATS:
        raise OptionError(f"format={kind!r} is not one of {', '.join(FORMATS)}, hudi")
    return FORMATS[kind][0]
