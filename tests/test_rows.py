import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.rows import rows_of, without

UTC_MICROS = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("value", "kind", "encoded"),
    [
        (None, pa.int32(), None),
        (True, pa.bool_(), True),
        (2**62, pa.int64(), 2**62),
        (1.5, pa.float32(), 1.5),
        (float("nan"), pa.float64(), {"$float": "nan"}),
        (float("-inf"), pa.float64(), {"$float": "-inf"}),
        ("größe", pa.large_string(), "größe"),
        (Decimal("1.20"), pa.decimal128(5, 2), {"$decimal": "1.20"}),
        (Decimal("0"), pa.decimal128(20, 9), {"$decimal": "0.000000000"}),
        (b"\x00\xff", pa.binary(), {"$binary": "AP8="}),
        (b"ab", pa.binary(2), {"$binary": "YWI="}),
        (dt.date(1969, 12, 31), pa.date32(), {"$date": "1969-12-31"}),
        (-1, UTC_MICROS, {"$timestamp": "1969-12-31T23:59:59.999999Z"}),
        (0, pa.timestamp("ms", tz="Asia/Kolkata"), {"$timestamp": "1970-01-01T00:00:00.000000Z"}),
        (0, pa.timestamp("us"), {"$timestamp": "1970-01-01T00:00:00.000000"}),
        ([("b", None), ("a", 1)], pa.map_(pa.string(), pa.int32()), {"$map": [["b", None], ["a", 1]]}),
        ([b"\x00", None], pa.list_(pa.binary()), [{"$binary": "AA=="}, None]),
        ({"x": Decimal("1.0")}, pa.struct([("x", pa.decimal128(3, 1))]), {"x": {"$decimal": "1.0"}}),
    ],
)
def test_a_value_is_encoded_by_its_type(value, kind, encoded):
    table = pa.table({"v": pa.array([value], kind)})
    assert rows_of(table) == [{"v": encoded}]


def test_dictionary_columns_compare_equal_to_plain_ones():
    plain = pa.table({"v": ["a", None, "a"]})
    assert rows_of(pa.table({"v": plain["v"].dictionary_encode()})) == rows_of(plain)


def test_rows_are_sorted_by_partition_then_key_whatever_the_order_of_columns():
    table = pa.table({"v": [1, 2, 3], "_hoodie_record_key": ["b", "a", "a"], "_hoodie_partition_path": ["p", "q", "p"]})
    assert [row["v"] for row in rows_of(table)] == [3, 1, 2]


def test_rows_without_meta_columns_are_sorted_by_content():
    table = pa.table({"v": [3, 1, 2]})
    assert rows_of(table) == [{"v": 1}, {"v": 2}, {"v": 3}]


def test_duplicates_are_kept():
    table = pa.table({"v": [1, 1]})
    assert len(rows_of(table)) == 2


def test_columns_can_be_left_out_of_a_comparison():
    table = pa.table({"a": [2, 1], "b": ["x", "y"]})
    assert without(rows_of(table), "b") == [{"a": 1}, {"a": 2}]


def test_a_type_without_encoding_is_refused():
    with pytest.raises(TypeError, match=r"duration\[us\]"):
        rows_of(pa.table({"v": pa.array([1], pa.duration("us"))}))
