"""What counts as a schema when a table is created."""

import json

import pandas as pd
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaError
from hoodie.format.spark_types import arrow_from_spark
from hoodie.write.given_schema import parse_schema_like

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
