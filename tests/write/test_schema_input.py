"""What counts as a schema when a table is created."""

import json
from datetime import date, datetime

import pandas as pd
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaError
from hoodie.format.spark_types import arrow_from_spark
from hoodie.write.schema_input import parse_schema_like, type_named

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


class Exported:
    def __arrow_c_schema__(self):
        return SCHEMA.__arrow_c_schema__()


class Streamed:
    def __arrow_c_stream__(self, requested_schema=None):
        return SCHEMA.empty_table().to_reader().__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "given",
    [
        SCHEMA,
        SCHEMA.with_metadata({"a": "b"}),
        Exported(),
        Streamed(),
        pa.struct(list(SCHEMA)),
        SCHEMA.empty_table(),
        SCHEMA.empty_table().to_reader(),
        pd.DataFrame({"id": ["a"], "n": [1]}),
        {"id": pa.string(), "n": pa.int64()},
        {"id": "string", "n": "int64"},
        [("id", pa.string()), ("n", "int64")],
        list(SCHEMA),
    ],
    ids=lambda given: type(given).__name__,
)
def test_forms_of_a_schema(given, tmp_path):
    assert parse_schema_like(given) == SCHEMA
    assert hoodie.create_table(tmp_path / "t", given, record_key="id").schema.equals(SCHEMA)


LOCAL, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, pa.int64()) for name in ("int", "INTEGER", "long", "bigint", int)),
        *((name, pa.int32()) for name in ("tinyint", "smallint", "int32", "short")),
        *((name, pa.string()) for name in ("str", "text", "VARCHAR", "varchar(20)", "char(3)", str)),
        *((name, pa.float64()) for name in ("double", "float64", "double  precision", float)),
        *((name, pa.float32()) for name in ("float", "real", "float32")),
        *((name, pa.bool_()) for name in ("bool", "boolean", bool)),
        *((name, pa.binary()) for name in ("bytes", "binary", "blob", bytes)),
        *((name, pa.date32()) for name in ("date", "date32", "date32[day]", date)),
        *((name, LOCAL) for name in ("timestamp", "datetime", "timestamp_ntz", "timestamp[us]", "datetime64[us]", datetime)),
        *((name, UTC) for name in ("timestamptz", "timestamp with time zone", "timestamp[us, tz=UTC]", "datetime64[us, UTC]")),
        *((name, pa.decimal128(10, 2)) for name in ("decimal(10,2)", "NUMERIC(10, 2)", "decimal128(10, 2)")),
        ("decimal(9)", pa.decimal128(9, 0)),
        *((name, pa.list_(pa.string())) for name in ("array<string>", "list<item: string>", "ARRAY<VARCHAR(3)>")),
        *((name, pa.map_(pa.string(), pa.int64())) for name in ("map<string,bigint>", "map<string, int64>")),
        ("struct<a:int,b:decimal(5,2)>", pa.struct([("a", pa.int64()), ("b", pa.decimal128(5, 2))])),
        ("array<struct<aB: array<double>, `c`: date>>", pa.list_(pa.struct([("aB", pa.list_(pa.float64())), ("c", pa.date32())]))),
        *((name, None) for name in ("decimal", "", "array<>", "array<a,b>", "map<string>", "struct<a>", "array<string", 5, complex)),
    ],
)  # fmt: skip
def test_names_of_types(name, kind):
    assert type_named(name) == kind


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int32(), pa.float64(), pa.string(), pa.decimal128(9, 3), LOCAL, UTC, pa.date32(), pa.list_(pa.int64())),
        *(pa.map_(pa.string(), pa.list_(pa.bool_())), pa.struct([("x", pa.list_(pa.struct([("y", pa.binary())])))])),
    ],
    ids=str,
)
def test_types_are_named_as_they_are_shown(kind):
    assert type_named(str(kind)) == kind


def test_a_table_with_types_by_everyday_names(tmp_path):
    named = {"id": int, "at": "timestamp", "tags": "array<string>", "price": "decimal(10,2)"}
    table = hoodie.create_table(tmp_path / "t", named, record_key="id")
    row = {"id": 1, "at": datetime(2026, 1, 2, 3), "tags": ["a"], "price": 1}
    assert table.upsert([row]).inserted == 1
    assert table.to_arrow().to_pylist() == [row]


def test_schemas_and_frames_of_polars(tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"id": ["a"], "n": [1]})
    for number, given in enumerate((frame, frame.lazy(), frame.schema)):
        assert hoodie.create_table(tmp_path / f"{number}", given, record_key="id").schema.equals(SCHEMA)


class StructType:
    """As Spark's, for those who have no Spark."""

    __module__ = "pyspark.sql.types"

    def __init__(self, *fields):
        self._fields = fields

    def json(self):
        found = [
            {"name": f"c{at}", "type": kind, "nullable": True, "metadata": {}} for at, kind in enumerate(self._fields)
        ]
        return json.dumps({"type": "struct", "fields": found})


class DataFrame:
    __module__ = "pyspark.sql.classic.dataframe"

    schema = StructType("string", "long")


def test_spark_schemas_without_spark(tmp_path):
    inner = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": False, "metadata": {}}]}
    given = StructType(
        "string", "byte", "decimal(10,2)", "varchar(5)", "timestamp", "timestamp_ntz", "date", inner,
        {"type": "array", "elementType": inner, "containsNull": True},
        {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True},
    )  # fmt: skip
    struct = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    assert parse_schema_like(given).types == [
        pa.string(), pa.int8(), pa.decimal128(10, 2), pa.string(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32(),
        struct, pa.list_(pa.field("element", struct)), pa.map_(pa.string(), pa.float64()),
    ]  # fmt: skip
    assert hoodie.create_table(tmp_path / "t", given, record_key="c0").schema.names == parse_schema_like(given).names
    assert parse_schema_like(DataFrame()).types == [pa.string(), pa.int64()]


@pytest.mark.parametrize("kind", ["interval year to month", "variant", "void", {"type": "udt", "class": "x"}])
def test_spark_types_that_no_table_has(kind):
    with pytest.raises(SchemaError, match=r"column 'c0' has Spark's type .* cast it first"):
        arrow_from_spark(StructType(kind).json())
