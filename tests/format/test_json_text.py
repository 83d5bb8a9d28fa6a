"""JSON of whole columns, beside what Python's json says of each value."""

import base64
import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.format.json_text import json_text

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
ROW = pa.struct(
    [
        ("n", pa.int64()),
        ('a "name"', pa.string()),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.list_(pa.int32()))),
        ("s", pa.struct([("f", pa.float64()), ("b", pa.bool_())])),
    ]
)
ROWS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {
            "n": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
            'a "name"': st.one_of(st.none(), TEXTS),
            "l": st.one_of(st.none(), st.lists(st.one_of(st.none(), TEXTS), max_size=3)),
            "m": st.one_of(st.none(), st.dictionaries(TEXTS, st.lists(st.integers(0, 9), max_size=2), max_size=3)),
            "s": st.one_of(
                st.none(),
                st.fixed_dictionaries({"f": st.floats(allow_nan=False, allow_infinity=False), "b": st.booleans()}),
            ),
        }
    ),
)


@given(st.lists(ROWS, max_size=6), st.integers(0, 3))
def test_any_row_reads_back_as_it_was(rows, skip):
    column = pa.array([_arrow(row) for row in rows], ROW).slice(skip)
    texts = json_text(column)
    assert texts.type == pa.string()
    assert [json.loads(text) for text in texts.to_pylist()] == rows[skip:]


def _arrow(row):
    return row and {**row, "m": None if row["m"] is None else list(row["m"].items())}


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([True, None], pa.bool_(), ["true", "null"]),
        ([1.5, float("nan"), float("-inf"), 2.0, -3.0], pa.float64(), ["1.5", '"nan"', '"-inf"', "2.0", "-3.0"]),
        ([Decimal("12.50"), None], pa.decimal128(9, 2), ['"12.50"', "null"]),
        ([dt.date(2024, 1, 2)], pa.date32(), ["19724"]),
        ([dt.datetime(2024, 1, 2, 3, 4, 5, 678901)], pa.timestamp("us", "UTC"), ["1704164645678901"]),
        ([b"\x00\xff", None, b""], pa.binary(), [json.dumps(base64.b64encode(b"\x00\xff").decode()), "null", '""']),
        (['\x00\x1f\n"\\é\u2028'], pa.string(), ['"\\u0000\\u001f\\n\\"\\\\é\u2028"']),
        ([None, None], pa.null(), ["null", "null"]),
        ([], pa.list_(pa.int32()), []),
        ([{}, None], pa.struct([]), ["{}", "null"]),
    ],
    ids=str,
)
def test_values_of_each_type(values, kind, texts):
    assert json_text(pa.array(values, kind)).to_pylist() == texts
