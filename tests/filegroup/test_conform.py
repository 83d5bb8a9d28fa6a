"""Batches of an older schema in the one that is asked for."""

from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.errors import SchemaError
from hoodie.filegroup.conform import conform

NOW = pa.schema([("a", pa.int64()), ("b", pa.string()), pa.field("c", pa.float64(), nullable=False)])


def test_data_of_the_schema_is_not_touched():
    data = pa.table({"a": [1], "b": ["x"], "c": [1.0]}, schema=NOW)
    assert conform(data, NOW, path="f") is data


@pytest.mark.parametrize("make", [pa.table, pa.record_batch])
def test_columns_get_order_and_types_missing_ones_are_null_and_others_go(make):
    data = make({"z": [0, 0], "b": pa.array(["x", None]), "a": pa.array([1, 2], pa.int32())})
    found = conform(data, NOW, path="f")
    assert type(found) is type(data)
    assert found.schema == NOW
    assert found.to_pydict() == {"a": [1, 2], "b": ["x", None], "c": [None, None]}


def test_the_order_alone_is_reason_enough():
    schema = pa.schema([("b", pa.string()), ("a", pa.int64())])
    assert conform(pa.table({"a": [1], "b": ["x"]}), schema, path="f").column_names == ["b", "a"]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (pa.int32(), pa.int64(), 1),
        (pa.int32(), pa.float64(), 1.0),
        (pa.int64(), pa.float64(), 1.0),
        (pa.float32(), pa.float64(), 0.5),
        (pa.decimal128(5, 2), pa.decimal128(9, 2), Decimal("1.25")),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), None),
        (pa.null(), pa.string(), None),
        (pa.large_string(), pa.string(), "x"),
    ],
)
def test_narrower_types_widen(old, new, value):
    found = conform(pa.table({"a": pa.array([value], old)}), pa.schema([("a", new)]), path="f")
    assert found["a"].to_pylist() == [value]
    assert found["a"].type == new


@pytest.mark.parametrize(
    ("values", "new"),
    [
        (pa.array(["x"]), pa.int64()),
        (pa.array([2**40]), pa.int32()),
        (pa.array([1.5]), pa.int64()),
        (pa.array([[1]]), pa.int64()),
    ],
)
def test_what_does_not_fit_is_told_with_column_and_file(values, new):
    with pytest.raises(SchemaError) as told:
        conform(pa.table({"col": values}), pa.schema([("col", new)]), path="p/f.parquet")
    assert f"column 'col' of p/f.parquet is {values.type}, which cannot be read as the table's {new}" in str(told.value)


def test_without_rows_too():
    found = conform(pa.table({"z": pa.array([], pa.int64())}), NOW, path="f")
    assert (found.schema, found.num_rows) == (NOW, 0)
