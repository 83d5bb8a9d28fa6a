"""What counts as a schema when a table is created: that of any library which has one, and the names of types in each."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from hoodie.errors import SchemaError
from hoodie.format.spark_types import arrow_from_spark
from hoodie.write.inputs import ArrowStreamExportable, LazyFrame, PandasFrame


@runtime_checkable
class ArrowSchemaExportable(Protocol):
    """The columns of any library that speaks Arrow: schemas of pyarrow, polars, nanoarrow, deltalake, …"""

    def __arrow_c_schema__(self) -> Any: ...


class SparkStruct(Protocol):
    """Spark's `StructType`."""

    def json(self) -> str: ...


class SparkFrame(Protocol):
    """What has a schema: a `DataFrame` of Spark, a dataset of pyarrow."""

    @property
    def schema(self) -> Any: ...


SchemaLike: TypeAlias = (
    ArrowSchemaExportable
    | ArrowStreamExportable
    | SparkStruct
    | SparkFrame
    | PandasFrame
    | LazyFrame
    | Mapping[str, pa.DataType | str | type]
    | Sequence[tuple[str, pa.DataType | str | type]]
)
"""What `create_table` takes as `schema`: a schema, or a frame that has one; types by column name, such as `pa.int64()` or the
names `"string"`, `"timestamp"`, `"decimal(10, 2)"` and `"array<string>"`."""


def parse_schema_like(schema: SchemaLike) -> pa.Schema:
    """The Arrow schema of whatever says which columns there are.

    Raises:
        SchemaError: nothing here tells columns.
    """
    try:
        arrow_schema = _arrow_schema(schema)
    except SchemaError:
        raise
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise SchemaError(f"{_kind(schema)} is not a schema of columns: {exc}") from exc
    if arrow_schema is None:
        raise SchemaError(
            f"schema is a {_kind(schema)}; give a pyarrow.Schema, a schema or frame of polars, pandas or Spark, anything with "
            '__arrow_c_schema__, or a dict such as {"id": pa.string(), "n": "int64"}'
        )
    return arrow_schema.remove_metadata()


def _arrow_schema(source: Any) -> pa.Schema | None:
    """The Arrow schema, None if the source has none. Other libraries are recognized without an import."""
    home = type(source).__module__
    if isinstance(source, pa.Schema):
        return source
    if home.startswith("pyspark."):
        kind = source if hasattr(source, "json") else getattr(source, "schema", None)
        return arrow_from_spark(kind.json()) if kind is not None else None
    if home.startswith("polars.") and hasattr(source, "collect_schema"):  # frames, lazy ones too
        source = source.collect_schema()
    if hasattr(source, "iloc") and hasattr(source, "columns"):
        return pa.Schema.from_pandas(source, preserve_index=False)
    if hasattr(source, "__arrow_c_schema__"):
        return pa.schema(source)
    if isinstance(getattr(source, "schema", None), pa.Schema):  # tables, batches, readers, datasets
        schema: pa.Schema = source.schema
        return schema
    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source).schema
    if isinstance(source, Mapping):
        return pa.schema([(name, parse_type(name, kind)) for name, kind in source.items()])
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        pairs = [isinstance(each, tuple) and len(each) == 2 for each in source]
        return pa.schema(
            [(each[0], parse_type(*each)) if pair else each for pair, each in zip(pairs, source, strict=True)]
        )
    return None


def parse_type(name: str, kind: Any) -> pa.DataType:
    """The type that is given for a column.

    Raises:
        SchemaError: it is none.
    """
    result = kind if isinstance(kind, pa.DataType) else type_named(kind)
    if result is not None:
        return result
    near = near_name(kind)
    fix = (
        f"did you mean {near!r}?"
        if near
        else "write a name such as 'int64' or 'timestamp', or a type such as pa.int64()"
    )
    raise SchemaError(f"column {name!r}: {getattr(kind, '__name__', kind)!r} is not a type; {fix}")


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


_LOCAL, _UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
_NAMES: dict[str, pa.DataType] = {
    **dict.fromkeys(("byte", "tinyint", "short", "smallint"), pa.int32()),
    **dict.fromkeys(("int", "integer", "long", "bigint"), pa.int64()),
    "real": pa.float32(),
    "double precision": pa.float64(),
    **dict.fromkeys(("text", "varchar", "char", "character varying"), pa.string()),
    "boolean": pa.bool_(),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), pa.binary()),
    "date": pa.date32(),
    **dict.fromkeys(("timestamp", "datetime", "timestamp_ntz", "timestamp without time zone"), _LOCAL),
    **dict.fromkeys(("timestamptz", "timestamp_ltz", "timestamp with time zone"), _UTC),
    "timestamp with local time zone": _UTC,
    "variant": pa.json_(),
}
_CLASSES: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    bool: pa.bool_(),
    date: pa.date32(),
    datetime: _LOCAL,
}
_DECIMAL = re.compile(r"(?:decimal(?:128)?|numeric|dec)\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_TEXT = re.compile(r"(?:var)?char\(\s*\d+\s*\)")
_ZONED = re.compile(
    r"timestamp\[(s|ms|us|ns), *(?:tz=)?([^\]]+)\]|datetime64\[(s|ms|us|ns)(?:, *([^\]]+))?\]", re.IGNORECASE
)
_PARTS = re.compile(r"(array|list|map|struct)<(.*)>", re.IGNORECASE | re.DOTALL)
_LABEL = re.compile(r"^\s*(?:item|element|key|value)\s*:")
"""Arrow writes list<item: int64>."""
_FIELD = re.compile(r"\s*`?([^:`]+?)`?\s*:(.*)", re.DOTALL)


def type_named(name: Any) -> pa.DataType | None:
    """The type of a name, or of a class of Python's; None for what is none."""
    if not isinstance(name, str):
        return _CLASSES.get(name) if isinstance(name, type) else None
    name = name.strip()
    nested = _PARTS.fullmatch(name)
    if nested is not None:
        return _nested(nested[1].lower(), _split(nested[2]))
    zoned = _ZONED.fullmatch(name)
    if zoned is not None:
        unit: Any = (zoned[1] or zoned[3]).lower()
        return pa.timestamp(unit, zoned[2] or zoned[4])
    name = re.sub(r"\s+", " ", name.lower())
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2] or 0))
    if _TEXT.fullmatch(name):
        return pa.string()
    return _NAMES.get(name) or _of_arrow(name)


def near_name(name: Any) -> str | None:
    """A name that might be meant."""
    if str(name).lower().startswith(("decimal", "numeric")):
        return "decimal(10, 2)"
    names = [*_NAMES, "string", "int32", "int64", "float32", "float64", "double", "bool", "binary", "date32"]
    return next(iter(difflib.get_close_matches(str(name).lower(), names, n=1)), None)


def _of_arrow(name: str) -> pa.DataType | None:
    alias: Any = pa.type_for_alias  # its stubs know texts that are written out only
    try:
        result: pa.DataType = alias(name)
    except ValueError:
        return None
    return result


def _nested(name: str, parts: list[str]) -> pa.DataType | None:
    if name == "struct":
        fields = [(match[1], type_named(match[2])) for part in parts if (match := _FIELD.fullmatch(part))]
        columns = [pa.field(field, kind) for field, kind in fields if kind is not None]
        return pa.struct(columns) if len(columns) == len(parts) else None
    kinds = [kind for part in parts if (kind := type_named(_LABEL.sub("", part)))]
    if len(kinds) != len(parts) or len(kinds) != (2 if name == "map" else 1):
        return None
    return pa.map_(*kinds) if name == "map" else pa.list_(*kinds)


def _split(text: str) -> list[str]:
    """What stands between the commas that are within no brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
