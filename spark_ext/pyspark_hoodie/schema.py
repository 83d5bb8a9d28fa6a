"""Schemas between Spark and Arrow. Timestamps travel as UTC whatever the time zone of the session is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyspark.sql.types
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DecimalType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from hoodie.errors import SchemaError
from hoodie.format.variants import VARIANT, schema_with
from hoodie.format.vectors import as_lists
from hoodie.model.nested import nullable_within


@lru_cache(maxsize=1)
def _zone_argument() -> dict[str, Any]:
    """Spark 3.5 always takes UTC, later ones want to be told."""
    return {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def arrow_schema(spark: StructType) -> pa.Schema:
    """The schema of the Arrow batches that hold rows of this Spark schema."""
    return to_arrow_schema(spark, **_zone_argument()).remove_metadata()


HAS_VARIANTS = hasattr(pyspark.sql.types, "VariantType")
"""Before Spark 4 variants are texts of JSON."""
_VARIANT_OF_SPARK = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, metadata={"variant": "true"})]
)


def declared_schema(spark: StructType) -> pa.Schema:
    """The columns that a table gets for this Spark schema: texts of a limited length are texts."""
    columns = arrow_schema(
        _mapped(spark, lambda kind: StringType() if isinstance(kind, CharType | VarcharType) else kind)
    )
    return pa.schema([field.with_type(_with_variants(field.type)) for field in columns])


def _mapped(kind: Any, change: Callable[[DataType], DataType]) -> Any:
    """The type with the types of its leaves changed."""
    if isinstance(kind, StructType):
        fields = kind.fields
        return StructType([StructField(f.name, _mapped(f.dataType, change), f.nullable, f.metadata) for f in fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_mapped(kind.elementType, change), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(_mapped(kind.keyType, change), _mapped(kind.valueType, change), kind.valueContainsNull)
    return change(kind)


def _with_variants(kind: Any) -> Any:
    """The type with a table's variants in place of Spark's, at any depth."""
    types = pa.types
    if types.is_struct(kind):
        if any((field.metadata or {}).get(b"variant") == b"true" for field in kind):
            return VARIANT
        return pa.struct([field.with_type(_with_variants(field.type)) for field in kind])
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_variants(kind.value_type)))
    if types.is_map(kind):
        make_map: Any = pa.map_  # the stubs do not know that fields may stand for keys and values
        return make_map(kind.key_field, kind.item_field.with_type(_with_variants(kind.item_type)))
    return kind


def given_schema(spark: StructType) -> pa.Schema:
    """The schema of rows that are to be written, nullable inside of columns: `if(c, null, named_struct(…))` is no rare thing.

    `array()`, `map()` and nulls stay without a type, and take the table's.

    Raises:
        SchemaError: a column has a type of Spark's that a table cannot store.
    """
    for field in spark.fields:
        _require_storable(field.dataType, field.name)
    columns = [StructField(field.name, _nullable(field.dataType), field.nullable) for field in spark.fields]
    return nullable_within(declared_schema(StructType(columns)))


def _require_storable(kind: DataType, path: str) -> None:
    """Raises for types that Arrow has no word for, or would make structs of that nobody reads back as what they were."""
    name = kind.typeName()
    if name in _REFUSED:
        raise SchemaError(
            f"column {path!r} has Spark's type {kind.simpleString()}, which a table cannot store: {_REFUSED[name]}"
        )
    if isinstance(kind, StructType):
        for field in kind.fields:
            _require_storable(field.dataType, f"{path}.{field.name}")
    elif isinstance(kind, ArrayType):
        _require_storable(kind.elementType, f"{path}.element")
    elif isinstance(kind, MapType):
        _require_storable(kind.keyType, f"{path}.key")
        _require_storable(kind.valueType, f"{path}.value")


_INTERVAL = "cast it to string, or to a number of months, days or seconds"
_REFUSED = {
    "geometry": "make it binary by st_asbinary",
    "geography": "make it binary by st_asbinary",
    "interval": _INTERVAL,
    "yearmonthinterval": _INTERVAL,
    "daytimeinterval": _INTERVAL,
    "calendarinterval": _INTERVAL,
}
"""By names: some of the types came with later versions of Spark."""


_WIDER = {
    ("integer", "long"),
    ("float", "double"),
    ("integer", "float"),
    ("integer", "double"),
    ("long", "double"),
    ("long", "float"),
}
"""Numbers whose columns become those of wider types: the first two at any write, the others where an option says so."""


def spark_schema(arrow: pa.Schema) -> StructType:
    """The Spark schema of a read: every column nullable, as Spark has it for files."""
    readable = schema_with(as_lists(arrow), _VARIANT_OF_SPARK if HAS_VARIANTS else pa.string())
    nullable = _nullable(from_arrow_schema(readable.remove_metadata(), prefer_timestamp_ntz=True))
    return StructType(nullable.fields)  # type: ignore[attr-defined]


def _nullable(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _nullable(f.dataType), True) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        # Keys of `map()` have no type, and Arrow has no map without one.
        key = StringType() if isinstance(kind.keyType, NullType) else _nullable(kind.keyType)
        return MapType(key, _nullable(kind.valueType), True)
    return kind


def selected_schema(table: StructType, selection: StructType, *, path: str, earlier: bool = False) -> StructType:
    """The columns of a user's read schema: by name, in its order, in the table's types.

    Args:
        earlier: the schema may be what the table had before it grew: a struct has got more members, a number a wider type.

    Raises:
        SchemaError: the table has no such column, or has it in another type.
    """
    by_name = {field.name: field for field in table.fields}
    wrong = []
    for field in selection.fields:
        own_field = by_name.get(field.name)
        if own_field is None:
            wrong.append(f"  {field.name}: not in the table")
        elif _nullable(field.dataType) != own_field.dataType and not (
            earlier and _grew(field.dataType, own_field.dataType)
        ):
            wrong.append(
                f"  {field.name}: {own_field.dataType.simpleString()} in the table, {field.dataType.simpleString()} in the schema"
            )
    if wrong:
        more = [f"  and {len(wrong) - 5} more"] if len(wrong) > 5 else []
        raise SchemaError(
            "\n".join(
                [
                    f"the schema of this read does not fit table {path}:",
                    *wrong[:5],
                    *more,
                    "  fix: leave the schema out, or name columns of the table in their types and cast afterwards",
                ]
            )
        )
    return StructType([by_name[field.name] for field in selection.fields])


def _grew(old: DataType, new: DataType) -> bool:
    """Whether a column of type `old` can have become one of type `new`, as the commits of a table change it."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        now = {field.name: field.dataType for field in new.fields}
        return all(field.name in now and _grew(field.dataType, now[field.name]) for field in old.fields)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return _grew(old.elementType, new.elementType)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return old.keyType == new.keyType and _grew(old.valueType, new.valueType)
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old.scale == new.scale and old.precision <= new.precision
    return old == new or (old.typeName(), new.typeName()) in _WIDER
