"""Batches of an older schema in the one that is asked for."""

from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.errors import SchemaError
from hoodie.filegroup.conform import conform, with_plain_types

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


VIEWS = pa.array(["a", "longer than an inlined text", None, "c"]).cast(pa.string_view())
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4], pa.int16()), VIEWS.slice(1))
NOT_PLAIN = [
    VIEWS,
    VIEWS.cast(pa.binary_view()),
    pa.array([[1, 2], None, [], [3]], pa.list_view(pa.int64())),
    pa.array([["x"], None, [], [None]], pa.large_list_view(pa.string())),
    pa.ListViewArray.from_arrays(pa.array([1, 0, 3, 2], pa.int32()), pa.array([2, 1, 0, 2], pa.int32()), VIEWS),
    pa.LargeListArray.from_arrays(pa.array([0, 1, 3, 3, 4]), VIEWS),
    pa.FixedSizeListArray.from_arrays(VIEWS, 1),
    RUNS,
    pa.RunEndEncodedArray.from_arrays(pa.array([1, 4], pa.int64()), pa.StructArray.from_arrays([VIEWS[:2]], ["x"])),
    pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), VIEWS),
    pa.StructArray.from_arrays([VIEWS, RUNS], ["x", "y"], mask=pa.array([False, True, False, False])),
    pa.MapArray.from_arrays(
        pa.array([0, 1, 1, 3, 4], pa.int32()), pa.array(list("abcd")).cast(pa.string_view()), VIEWS
    ),
    pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), pa.array(["1", None, "{}", "3"]).cast(pa.string_view())),
]


@pytest.mark.parametrize("array", NOT_PLAIN, ids=lambda array: str(array.type))
@pytest.mark.parametrize("part", [slice(None), slice(1, 3), slice(2, None), slice(0, 0)])
def test_views_and_runs_become_types_that_arrow_filters_and_keep_their_values(array, part):
    given = pa.table({"c": pa.chunked_array([array[part], array]), "n": range(len(array[part]) + len(array))})
    rows = with_plain_types(given)
    rows.validate(full=True)
    assert rows.to_pylist() == given.to_pylist()
    kept = pa.array([number % 2 == 0 for number in range(rows.num_rows)])
    assert rows.filter(kept).column("c").to_pylist() == given.column("c").to_pylist()[::2]


def test_rows_of_plain_types_are_not_touched():
    given = pa.table({"c": pa.array(["a"]).dictionary_encode(), "l": pa.array([["x"]], pa.large_list(pa.string()))})
    assert with_plain_types(given) is given
