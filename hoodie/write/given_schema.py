"""What counts as a schema when a table is created: that of any library which has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from hoodie.errors import SchemaError
from hoodie.format.spark_types import arrow_from_spark
from hoodie.write.inputs import ArrowStreamExportable, LazyFrame, PandasFrame
from hoodie.write.type_names import near_name, type_named


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
