"""Values without a type of their own: each is stored as it is, or the write says which one is not."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import SchemaError
from hoodie.write.casting import fit
from hoodie.write.inputs import reader_of
from hoodie.write.python_values import array_of
from hoodie.write.schema import reconcile, storable

i32, i64, f32, f64, text = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()
NOON = datetime(2026, 1, 2, 12)
GIVEN = [
    *(True, 1, 2**24 + 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**70),
    *(1.0, 1.5, 0.1, 16777217.1, 1e300, 5e-324, float(2**60), math.inf, math.nan),
    *(Decimal("1.5"), Decimal("1.50"), Decimal("1.234"), Decimal("123456.78"), Decimal("1E+2"), Decimal("0.1")),
    *("a", "1", b"a", "", date(2026, 1, 2), NOON, NOON.replace(tzinfo=UTC), pd.Timestamp("2026-01-02"), [1], {"a": 1}),
    NOON.replace(tzinfo=timezone(timedelta(hours=5))),
    pd.Timestamp("2026-01-02 00:00:00.000000001"),
    *(
        np.int64(5),
        np.float32(0.1),
        np.float64(0.1),
        np.datetime64("2026-01-02T00:00:00.000000001", "ns"),
        np.bool_(True),
    ),
    *([0.1], [1e300], [2**40], {"a": 0.1}, {"a": 2**53 + 1}, [True], ["a"], [b"a"], [NOON], [Decimal("1.234")]),
]
COLUMNS = {
    "int32": i32,
    "int64": i64,
    "float32": f32,
    "float64": f64,
    "decimal": pa.decimal128(5, 2),
    "string": text,
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "utc": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "floats": pa.list_(f32),
    "integers": pa.list_(i32),
    "struct": pa.struct([("a", f32)]),
    "map": pa.map_(text, i32),
}
FORMS = {
    "list of dicts": lambda v: [{"id": 1, "c": v}],
    "dict of lists": lambda v: {"id": [1], "c": [v]},
    "tuple": lambda v: {"id": (1,), "c": (v,)},
    "objects": lambda v: {"id": [1], "c": np.array([v, None], object)[:1]},
    "pandas": lambda v: pd.DataFrame({"id": [1], "c": [v]}),
    "pandas objects": lambda v: pd.DataFrame({"id": [1], "c": pd.Series([v], dtype=object)}),
    "arrow": lambda v: pa.table({"id": [1], "c": pa.array([v])}) if not isinstance(v, pd.Timestamp) else None,
    "frames": lambda v: (pd.DataFrame({"id": [n], "c": [v]}) for n in (1, 1)),
}


def same(stored, given):
    if isinstance(given, list):
        return len(stored) == len(given) and all(map(same, stored, given))
    if isinstance(given, dict):
        return same(
            [pair for item in dict(stored).items() for pair in item], [pair for item in given.items() for pair in item]
        )
    if isinstance(given, np.float32):  # 0.1 stays 0.1 when a column is double
        return str(given) == str(np.float32(stored))
    if isinstance(given, np.generic):
        given = given.item()
    if isinstance(given, float) and math.isnan(given):
        return stored is None or math.isnan(stored)
    kinds = (bool, str, bytes, datetime, date)
    return stored == given and next((k for k in kinds if isinstance(stored, k)), 0) == next(
        (k for k in kinds if isinstance(given, k)), 0
    )


def written(schema, data):
    """What a table of this schema holds of the values of `c` after a write; None where they are refused."""
    try:
        rows = reader_of(data, lambda: schema).read_all()
        after = reconcile(schema, storable(rows.schema), table_name="t")
        return fit(rows, after, table="t")["c"].to_pylist()
    except SchemaError:
        return None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_value_is_stored_as_it_is_or_refused(column, form):
    taken = 0
    schema = pa.schema([("id", i64), ("c", COLUMNS[column])])
    for given in GIVEN:
        try:
            data = FORMS[form](given)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            continue  # the library that makes the frame
        stored = written(schema, data)
        assert stored is None or same(stored[0], given), (given, stored)
        taken += stored is not None
    assert taken


@pytest.mark.parametrize(
    "values",
    [
        [date(2026, 1, 2), NOON],
        [NOON, date(2026, 1, 2)],
        [NOON, NOON.replace(tzinfo=UTC)],
        [NOON.replace(tzinfo=UTC), NOON],
        ["a", b"a"],
        [b"a", "a"],
        [1, True],
        [True, 1],
        [1, "a"],
        [0.5, Decimal("0.5")],
        [0.5, 2**53 + 1],
        [[1], 1],
        [{"a": 1}, [1]],
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "nest", [lambda v: v, lambda v: [v], lambda v: [{"x": each} for each in v]], ids=["", "list", "struct"]
)
def test_values_of_no_common_type_are_refused_at_any_depth(values, nest):
    with pytest.raises(SchemaError, match=r"'c[a-z.]*' have no common type: "):
        array_of(nest(values), None, path="c")


def test_a_number_takes_the_width_of_its_column_or_widens_it():
    assert array_of([1, None, 2**31 - 1], i32, path="c").type == i32
    assert array_of([1, 2**31], i32, path="c").type == i64
    assert array_of([0.5, None, math.inf, math.nan], f32, path="c").type == f32
    assert array_of([0.5, 0.1], f32, path="c").type == f64
    assert array_of([{"x": [1, None]}, None, {"x": []}], pa.struct([("x", pa.list_(i32))]), path="c").type == pa.struct(
        [("x", pa.list_(i32))]
    )


def test_integers_of_more_than_64_bits_are_decimals_or_refused():
    assert array_of([2**70, None, 1], pa.decimal128(38, 2), path="c").to_pylist() == [2**70, None, 1]
    for kind in (None, i64, f64, text):
        with pytest.raises(SchemaError, match=f"column 'c' holds {2**70}, an integer of more than 64 bits"):
            array_of([1, 2**70], kind, path="c")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([{1: "a"}], "column 'c' is a map, and has the key 1 .int.: keys are texts"),
        ([[("a", 1, 2)]], "column 'c' is a map, and .* is not a pair of key and value"),
        ([["a"]], "column 'c' is a map, and 'a' is not a pair"),
        ([{None: 1}], "has the key None"),
    ],
)
def test_what_is_no_map_is_told(values, told):
    with pytest.raises(SchemaError, match=told):
        array_of(values, pa.map_(text, i64), path="c")


MAPS = pa.schema([("id", i64), ("c", pa.map_(text, i64))])
ENTRIES = {
    "dict": {"a": 1, "b": 2},
    "pairs": [("a", 1), ["b", 2]],
    "entries": [{"key": "a", "value": 1}, {"key": "b", "value": 2}],
}


@pytest.mark.parametrize("entries", ENTRIES)
def test_maps_of_dicts_pairs_and_entries(entries):
    given = [ENTRIES[entries], None, type(ENTRIES[entries])()]
    expected = [[("a", 1), ("b", 2)], None, []]
    for data in ([{"id": 1, "c": each} for each in given], pd.DataFrame({"id": [1, 2, 3], "c": given})):
        assert written(MAPS, data) == expected


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.list_(pa.struct([("key", text), ("value", i64)])), [[("a", 1)], None, []], [[("a", 1)], None, []]),
        (pa.list_(pa.struct([("value", i32), ("key", text)])), [[(1, "a")], None], [[("a", 1)], None]),
        (pa.large_list(pa.struct([("key", pa.large_string()), ("value", i64)])), [[("a", 1)]], [[("a", 1)]]),
        (pa.struct([("a", i64), ("b", i32)]), [{"a": 1, "b": 2}, None], [[("a", 1), ("b", 2)], None]),
        (pa.struct([]), [{}, None], [[], None]),
        (pa.list_(pa.null()), [[], None], [[], None]),
        (pa.list_(pa.null()), [[None]], None),
        (pa.struct([("a", i64), ("b", i64)]), [{"a": 1, "b": None}], None),
        (pa.list_(pa.list_(text)), [[["a", "b"]]], None),
        (pa.list_(pa.struct([("key", text), ("value", i64)])), [[(None, 1)]], None),
        (pa.list_(pa.struct([("key", text), ("value", i64)])), [[None]], None),
    ],
    ids=str,
)
def test_what_frames_have_in_place_of_maps(kind, values, expected):
    assert written(MAPS, pa.table({"id": range(len(values)), "c": pa.array(values, kind)})) == expected


def test_lists_of_pairs_of_texts_are_maps():
    schema = pa.schema([("id", i64), ("c", pa.map_(text, text))])
    rows = pa.table({"id": [1, 2, 3], "c": pa.array([[["a", "b"], ["c", None]], None, []], pa.list_(pa.list_(text)))})
    assert written(schema, rows) == [[("a", "b"), ("c", None)], None, []]
    assert written(schema, rows.slice(1)) == [None, []]
    assert written(schema, pa.table({"id": [1], "c": pa.array([[["a"]]], pa.list_(pa.list_(text)))})) is None


@pytest.mark.parametrize("kind", COLUMNS.values(), ids=str)
def test_a_column_of_nothing_but_nan_is_null_of_any_type(kind):
    frame = pd.DataFrame({"id": [1, 2], "c": [np.nan, np.nan]})
    assert written(pa.schema([("id", i64), ("c", kind)]), frame) == [None, None]


def test_a_nan_of_pandas_among_objects_is_null():
    frame = pd.DataFrame({"id": [1, 2, 3, 4], "c": [{"a": 1}, np.nan, None, {}]})
    assert written(MAPS, frame) == [[("a", 1)], None, None, []]
    assert array_of(["a", math.nan, pd.NA, pd.NaT], text, path="c", nan_is_null=True).to_pylist() == [
        "a",
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    "empty", [pd.DataFrame(), pd.DataFrame(columns=["id", "n"]), pd.DataFrame({"id": [], "n": []}), pa.table({})]
)
def test_an_empty_frame_writes_nothing(empty, tmp_path):
    table = hoodie.create_table(tmp_path / "t", {"id": "int64", "n": "string"}, record_key="id")
    table.upsert({"id": [1], "n": ["a"]})
    assert table.upsert(empty).instant is None
    assert table.delete(empty).instant is None
    assert table.to_arrow().to_pylist() == [{"id": 1, "n": "a"}]


def test_vectors_of_numpy_keep_their_type():
    vectors = [np.array([0.1, 2], np.float32), None, np.array([], np.float32)]
    found = array_of(vectors, pa.list_(f32), path="c")
    assert found.type == pa.list_(f32)
    assert found[0].as_py() == [float(np.float32(0.1)), 2.0]
    assert found.to_pylist()[1:] == [None, []]


def test_a_first_piece_of_nulls_does_not_say_the_types_of_the_others():
    schema = pa.schema([("id", i64), ("c", text), ("l", pa.list_(text))])
    pieces = (
        pd.DataFrame({"id": [1], "c": [np.nan], "l": [[]]}),
        pa.table({"id": [2], "c": pa.nulls(1), "l": [["a"]]}),
        pd.DataFrame({"id": [3], "c": ["x"], "l": [None]}),
    )
    assert written(schema, pieces) == [None, None, "x"]


def test_pieces_are_not_rounded_to_the_types_of_the_first():
    schema = pa.schema([("id", i64), ("c", f32)])
    first = pa.table({"id": [1], "c": pa.array([0.5], f32)})
    for later in (pa.array([1e300]), pa.array(["1"]), pa.array([True]), pa.array([2**24 + 1])):
        assert written(schema, [first, pa.table({"id": [2], "c": later})]) is None
    assert written(schema, [first, pa.table({"id": [2], "c": [3]})]) == [0.5, 3.0]


def test_objects_that_polars_holds_are_refused(tmp_path):
    table = hoodie.create_table(tmp_path / "t", {"id": pa.int64(), "v": pa.binary()}, record_key="id")
    with pytest.raises(SchemaError, match="'v'"):
        table.upsert(pl.DataFrame({"id": [1], "v": [bytearray(b"q")]}))
    assert table.scan().count() == 0
