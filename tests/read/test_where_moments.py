"""Texts compared with timestamps: a moment without a zone offset is UTC, as the table stores it."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from hoodie.errors import OptionError
from hoodie.read.where import parse_filter

SCHEMA = pa.schema([("at", pa.timestamp("us", "UTC")), ("wall", pa.timestamp("us"))])
MOMENT = datetime(2009, 2, 13, 23, 31, 30, tzinfo=UTC)
ROWS = pa.table({"at": [MOMENT, None], "wall": [MOMENT.replace(tzinfo=None), None]}, schema=SCHEMA)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("at = '2009-02-13 23:31:30'", 1),
        ("at = '2009-02-14 00:31:30+01:00'", 1),
        ("at > '2009-02-13 23:31:30'", 0),
        ("at between '2009-02-13' and '2009-02-14'", 1),
        ("at in ('2009-02-13 23:31:30', '2009-02-13 23:31:31')", 1),
        ("wall = '2009-02-13 23:31:30'", 1),
        ("wall in ('2009-02-13 23:31:30')", 1),
    ],
)
def test_a_moment_as_text(where, count):
    assert ROWS.filter(parse_filter(where, SCHEMA).expression).num_rows == count


def test_what_is_no_moment_is_refused():
    with pytest.raises(OptionError, match="is not understood"):
        parse_filter("at = 'yesterday'", SCHEMA)


OF_UNITS = pa.schema(
    [(unit, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")] + [("zoned", pa.timestamp("ms", "Asia/Tokyo"))]
)
_MS = pa.array([1_500, None], pa.timestamp("ms"))
MOMENTS = pa.table([_MS.cast(field.type, safe=False) for field in OF_UNITS], schema=OF_UNITS)


@pytest.mark.parametrize("unit", ["ms", "us", "ns", "zoned"])
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("= '1970-01-01 00:00:01.5'", 1),
        ("= '1970-01-01 00:00:01.500001'", 0),
        ("< '1970-01-01 00:00:01.500001'", 1),
        (">= '1970-01-01 00:00:01.500001'", 0),
        (">= '1970-01-01 00:00:01.499999'", 1),
        ("> '1970-01-01'", 1),
        ("in ('1970-01-01 00:00:01.5', '1970-01-01 00:00:01.500001', null)", 1),
        ("< '9999-12-31'", 1),
        ("> '0001-01-01'", 1),
    ],
)
def test_moments_finer_than_the_column_compare_exactly(unit, condition, count):
    assert MOMENTS.filter(parse_filter(f"{unit} {condition}", OF_UNITS).expression).num_rows == count


@pytest.mark.parametrize("other", ["s", "ms", "us", "ns"])
def test_columns_of_different_units_compare_exactly(other):
    for unit in ("ms", "us", "ns"):
        assert MOMENTS.filter(parse_filter(f"{unit} >= {other}", OF_UNITS).expression).num_rows == 1
        assert MOMENTS.filter(parse_filter(f"{other} = {unit}", OF_UNITS).expression).num_rows == (other != "s")
    with pytest.raises(OptionError, match="cannot be compared exactly"):
        parse_filter(f"zoned = {other}", OF_UNITS)
