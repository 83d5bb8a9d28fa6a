"""Up to where a column was read: the same value as text, as SQL and as Arrow have it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import OptionError
from hoodie.ingestion.border_values import Border, border_of, parse_border

UTC_NS = pa.timestamp("ns", "UTC")


@pytest.mark.parametrize(
    ("values", "kind", "by", "text", "before", "again"),
    [
        ([1, 2, 3], pa.int64(), 1, "3", "2", [2, 3]),
        ([2**62, 2**62 + 1], pa.int64(), 1, str(2**62 + 1), str(2**62), [2**62, 2**62 + 1]),
        ([0.1, 0.3], pa.float64(), 0.1, "0.3", "0.2", [0.3]),
        ([Decimal("1.50"), Decimal("2.50")], pa.decimal128(10, 2), 1, "2.5", "1.5", [Decimal("1.50"), Decimal("2.50")]),
        ([date(2024, 1, 1), date(2024, 1, 2)], pa.date32(), 1, "2024-01-02", "2024-01-01", None),
        ([0, 1_500_000], pa.timestamp("us"), 1, "1970-01-01 00:00:01.5", "1970-01-01 00:00:00.500000", [1_500_000]),
        ([0, 1_000], pa.timestamp("ms", "UTC"), 1, "1970-01-01 00:00:01+00:00", "1970-01-01 00:00:00+00:00", None),
        ([0, 7], UTC_NS, 0, "1970-01-01 00:00:00.000000007+00:00", "1970-01-01 00:00:00.000000007+00:00", None),
        (["a", "b"], pa.string(), 0, "b", "b", ["b"]),
    ],
)
def test_a_value_goes_back_and_finds_the_rows_that_are_not_before_it(
    values: list[Any], kind: pa.DataType, by: float, text: str, before: str, again: list[Any] | None
) -> None:
    column = pa.chunked_array([pa.array(values, kind)])
    border = border_of(column[-1], "column at")
    assert border.text == text
    assert parse_border(border.text, border.kind) == border
    assert border.back(by).text == before
    if kind != UTC_NS:
        found = column.filter(border.back(by).not_before(column))
        assert found.equals(column if again is None else pa.chunked_array([pa.array(again, kind)]))


@pytest.mark.parametrize(
    ("text", "kind", "parsed"),
    [
        ("2024-01-01 12:00:00", "time with zone", "2024-01-01 12:00:00+00:00"),
        ("2024-01-01 12:00:00+02", "time with zone", "2024-01-01 12:00:00+02"),
        ("2024-01-01", "time", "2024-01-01"),
        (" 1E+3", "number", "1000"),
        ("any 'text'", "text", "any 'text'"),
    ],
)
def test_checkpoints_of_hudi_are_taken_and_times_without_a_zone_are_utc(text: str, kind: str, parsed: str) -> None:
    assert parse_border(text, kind) == Border(parsed, kind)


@pytest.mark.parametrize(("text", "kind"), [("1; DROP", "number"), ("2024-01-01' OR 1=1", "time"), ("7", "time")])
def test_a_text_that_is_no_such_value_never_gets_into_sql(text: str, kind: str) -> None:
    with pytest.raises(OptionError, match="another source, or another column"):
        parse_border(text, kind)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, b"raw", [1]])
def test_what_has_no_order_that_grows_is_no_border(value: object) -> None:
    with pytest.raises(OptionError, match=r"column at has .* an incremental column has finite numbers, times or texts"):
        border_of(pa.scalar(value), "column at")
