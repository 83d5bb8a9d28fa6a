"""Bounds of columns: out of rows and footers, through the text of a commit, and into wider types."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.format.column_stats import (
    MAX_BYTES,
    MAX_CHARACTERS,
    MAX_COLUMNS,
    converted,
    decode_column_stats,
    encode_column_stats,
    range_of,
    ranges_of_footer,
    ranges_of_parts,
    ranges_of_rows,
    stated_columns,
)
from hoodie.model.statistics import UNKNOWN, ValueRange, union

ROWS = pa.table(
    {
        "_hoodie_commit_time": ["20240101000000000", "20240101000000001"],
        "_hoodie_record_key": ["a", "b"],
        "i": pa.array([-5, None], pa.int32()),
        "f": pa.array([0.25, -0.5], pa.float32()),
        "nan": [1.0, float("nan")],
        "inf": [1.0, float("inf")],
        "b": [True, False],
        "d": pa.array([date(1969, 12, 31), date(2024, 2, 29)]),
        "t": pa.array([datetime(1960, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        "n": pa.array([Decimal("-12345678901234567890.12"), Decimal("0.01")], pa.decimal128(30, 2)),
        "small": pa.array([Decimal("-1.12"), None], pa.decimal128(5, 2)),
        "none": pa.array([None, None], pa.int64()),
        "list": pa.array([[1], None]),
    }
)
KNOWN = {
    "_hoodie_record_key": ValueRange("a", "b", 0),
    "_hoodie_commit_time": ValueRange("20240101000000000", "20240101000000001", 0),
    "i": ValueRange(-5, -5, 1),
    "f": ValueRange(-0.5, 0.25, 0),
    "nan": ValueRange(1.0, 1.0, 0),
    "inf": ValueRange(nulls=0),
    "b": ValueRange(False, True, 0),
    "d": ValueRange(-1, 19782, 0),
    "t": ValueRange(-315619200000000, -315619200000000, 1),
    "n": ValueRange(Decimal("-12345678901234567890.12"), Decimal("0.01"), 0),
    "small": ValueRange(Decimal("-1.12"), Decimal("-1.12"), 1),
    "none": ValueRange(nulls=2, values=False),
}


def footer_of(rows: pa.Table, **options: object) -> tuple[pq.FileMetaData, pa.Schema]:
    out = io.BytesIO()
    pq.write_table(rows, out, store_schema=False, **options)
    file = pq.ParquetFile(pa.BufferReader(out.getvalue()))
    return file.metadata, file.schema_arrow


@pytest.mark.parametrize("times", [1, 200], ids=["few", "many"])
def test_rows_and_footers_give_the_same_bounds(times):
    rows = pa.concat_tables([ROWS] * times)
    expected = {name: each._replace(nulls=each.nulls * times) for name, each in KNOWN.items()}
    assert ranges_of_rows(rows) == expected
    metadata, schema = footer_of(rows, row_group_size=4)
    assert ranges_of_footer(metadata, stated_columns(schema)) == expected


@pytest.mark.parametrize("times", [1, 200], ids=["few", "many"])
def test_parts_of_rows_have_the_bounds_of_each_part(times):
    rows = pa.concat_tables([ROWS] * times)
    bounds = [0, 0, 1, *([300] if times > 1 else []), rows.num_rows]
    parts = [rows.slice(start, end - start) for start, end in pairwise(bounds)]
    assert ranges_of_parts(rows, bounds) == [ranges_of_rows(part) for part in parts]
    same = ranges_of_parts(rows, bounds, commit_time="t")
    assert [each["_hoodie_commit_time"] for each in same[1:]] == [ValueRange("t", "t", 0)] * (len(parts) - 1)


def test_all_stated_bounds_come_back_out_of_the_text_of_a_commit():
    text = encode_column_stats({"one": ranges_of_rows(ROWS), "two": {}})
    assert text is not None
    stated = decode_column_stats(text)
    schema = ROWS.schema
    for name, known in KNOWN.items():
        assert range_of(stated["one"][name], schema.field(name).type) == (UNKNOWN if not known.bounded else known)
        assert range_of(stated["two"][name], schema.field(name).type) == UNKNOWN


@given(st.text(max_size=80), st.text(max_size=80))
def test_bounds_of_a_text_column_hold_whatever_was_cut(one, other):
    low, high, *_ = ranges_of_rows(pa.table({"_hoodie_record_key": [one, other]}))["_hoodie_record_key"]
    if low is None:
        assert max(one, other).startswith("\U0010ffff" * MAX_CHARACTERS)
        return
    assert max(len(low), len(high)) <= MAX_CHARACTERS
    assert low.encode() <= one.encode() <= high.encode()
    assert low.encode() <= other.encode() <= high.encode()


def test_a_log_states_no_texts_but_the_key():
    rows = pa.table({"_hoodie_record_key": ["k"], "s": ["x"], "n": [1]})
    assert list(ranges_of_rows(rows)) == ["_hoodie_record_key", "n"]


def test_the_first_columns_are_stated():
    schema = pa.schema([("_hoodie_record_key", pa.string()), *((f"c{n}", pa.int64()) for n in range(MAX_COLUMNS + 8))])
    assert [field.name for field in stated_columns(schema)] == [
        "_hoodie_record_key",
        *(f"c{n}" for n in range(MAX_COLUMNS)),
    ]


def test_the_text_is_bounded_by_leaving_out_columns_at_the_end():
    ranges = {f"c{n}": ValueRange(n, 10**18, 0) for n in range(32)}
    text = encode_column_stats({f"file-{n}": ranges for n in range(1000)})
    assert text is not None
    assert MAX_BYTES // 2 < len(text) <= MAX_BYTES + 9
    kept = list(decode_column_stats(text)["file-999"])
    assert kept == [f"c{n}" for n in range(len(kept))]
    assert encode_column_stats({f"file-{n:0300}": ranges for n in range(1000)}) is None
    assert encode_column_stats({}) is None


@pytest.mark.parametrize("at", range(0, 60, 7))
def test_a_damaged_text_says_nothing(at):
    text = encode_column_stats({"one": KNOWN}) or ""
    damaged = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
    assert decode_column_stats(damaged) == {}
    assert decode_column_stats(text[: len(text) - at - 1]) == {}


@pytest.mark.parametrize(
    "entry", [None, [], "x", [1, 2], [0, "a", "b"], [0, 5, 4], ["0", 1, 2], [0, True, True], [0, 1.5, 2.5]]
)
def test_an_entry_that_is_none_of_its_type_says_nothing_of_values(entry):
    assert not range_of(entry, pa.int64()).bounded


@pytest.mark.parametrize(
    ("stored", "now", "known", "expected"),
    [
        (pa.int32(), pa.int64(), (-1, 5), (-1, 5)),
        (pa.int64(), pa.float64(), (-1, 5), (-1.0, 5.0)),
        (pa.float32(), pa.float64(), (0.10000000149011612, 7.5), (0.1, 7.5)),
        (pa.int32(), pa.decimal128(12, 2), (-1, 5), (Decimal(-1), Decimal(5))),
        (
            pa.decimal128(10, 1),
            pa.decimal128(12, 2),
            (Decimal("0.1"), Decimal("0.5")),
            (Decimal("0.1"), Decimal("0.5")),
        ),
        (pa.int64(), pa.string(), (9, 100), None),
        (pa.decimal128(10, 2), pa.decimal128(10, 1), (Decimal("0.11"), Decimal("0.55")), None),
        (pa.date32(), pa.string(), (9, 100), None),
        (pa.timestamp("ms"), pa.timestamp("us"), (9, 100), None),
    ],
    ids=str,
)
def test_bounds_in_another_type_are_kept_where_order_is(stored, now, known, expected):
    found = converted(ValueRange(*known, 3), stored, now)
    assert found == (ValueRange(nulls=3) if expected is None else ValueRange(*expected, 3))


def test_a_union_holds_all_and_knows_only_what_each_knows():
    assert union([ValueRange(1, 2, 0), ValueRange(5, 9, 1)]) == ValueRange(1, 9, 1)
    assert union([ValueRange(1, 2, 0), ValueRange(nulls=2, values=False)]) == ValueRange(1, 2, 2)
    assert not union([ValueRange(1, 2, 0), UNKNOWN]).bounded
    assert union([]) == UNKNOWN
