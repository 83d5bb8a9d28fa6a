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
