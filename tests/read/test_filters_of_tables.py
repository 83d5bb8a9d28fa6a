"""Filters at the doors of a table: the forms that they take, floats in every place, and what is refused in one sentence."""

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import OptionError
from hoodie.options.parse import parse_write_options
from hoodie.read.where import parse_filter
from hoodie.table import HoodieTable
from hoodie.write.create import create_at
from tests.memory_tables import FakeClock, new_storage, opened

TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "x": [0.0, -0.0, math.nan, 1.5],
        "n": [2**24 + 1, 2**53 + 1, 3, None],
        "price": pa.array([Decimal("1.10"), Decimal("0.10"), None, Decimal("-3.00")], pa.decimal128(10, 2)),
        "day": [date(2024, 1, 1), date(2024, 1, 2), None, date(1969, 12, 31)],
        "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None, None, datetime(2024, 1, 2)], pa.timestamp("us", "UTC")),
        "flag": [True, False, None, True],
    }
)


def named(value):
    """The same name in every process, whatever the address of the value."""
    return re.sub(r" at 0x\w+", "", str(value))


def table_of(table_type: str = "COPY_ON_WRITE", partition: str = "") -> HoodieTable:
    clock = FakeClock()
    storage = new_storage(clock)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        **({"hoodie.datasource.write.partitionpath.field": partition} if partition else {}),
    }
    create_at(storage, parse_write_options(options).to_create(), schema=ROWS.schema)
    table = opened(storage, clock)
    table.upsert(ROWS.slice(0, 2))
    table.upsert(ROWS)
    return table


def found(table: HoodieTable, where: object) -> list[str]:
    return sorted(table.scan(["id"], where).to_arrow().column("id").to_pylist())


@TYPES
@pytest.mark.parametrize("partition", ["", "x"])
@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("x = 0", "ab"),
        ("x in (0.0)", "ab"),
        ("x not in (0.0)", "cd"),
        ("x >= 0", "abd"),
        ("x > -0.0", "d"),
        ("x <> 0", "cd"),
        ("x > 1", "d"),
        ("not x > 1", "abc"),
        ("x is null", ""),
        (pc.field("x").is_null(nan_is_null=True), "c"),
        (pc.field("x").is_nan(), "c"),
        (pc.field("x") == 0, "ab"),
    ],
    ids=named,
)
def test_both_zeros_are_one_number_and_nan_is_none(table_type, partition, where, rows):
    assert found(table_of(table_type, partition), where) == list(rows)


@TYPES
@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("x not in (0.0)", "ab"),
        ("n < 9007199254740992.5", "bd"),
        ("n = 9007199254740993", "acd"),
        ("not price > 1.099", "ac"),
    ],
)
def test_a_delete_takes_the_rows_that_a_scan_finds(table_type, where, left):
    table = table_of(table_type)
    table.delete(where=where)
    assert found(table, "true") == list(left)


def test_changes_take_the_same_filters():
    table = table_of()
    assert sorted(table.changes("000", None, ["id"], "n > 3.5 or x = 0").to_arrow()["id"].to_pylist()) == ["a", "b"]
    feed = table.changes("000", where="x > 1.25", images="before_after").to_arrow().to_pylist()
    assert [row["after"]["id"] for row in feed] == ["d"]


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ([("x", "=", 0)], "ab"),
        ([("x", "==", 0.0), ("n", ">", 2**24 + 1.5)], "b"),
        ([[("x", "=", 0.0), ("n", "<=", 2**24 + 1)], [("id", "=", "d")]], "ad"),
        ([("x", "in", [0, 1.5])], "abd"),
        ([("x", "not in", {0, 1.5})], "c"),
        ([("x", "!=", math.nan)], "abcd"),
        ([("x", "in", [math.nan])], ""),
        ([("x", "<", math.inf)], "abd"),
        ([("n", "in", [])], ""),
        ([("n", "not in", ())], "abcd"),
        ([("n", "in", np.array([3, 5]))], "c"),
        ([("n", "in", pa.array([3, 5]))], "c"),
        ([("N", "=", "3")], "c"),
        ([("n", ">", np.float64(3.5))], "ab"),
        ([("price", ">", 1.1)], ""),
        ([("price", ">=", 1.1)], "a"),
        ([("price", "=", Decimal("-3"))], "d"),
        ([("day", ">", date(2024, 1, 1))], "b"),
        ([("day", ">", datetime(2023, 12, 31, 12))], "ab"),
        ([("day", "=", "2024-01-01")], "a"),
        ([("at", "=", datetime(2024, 1, 1, tzinfo=UTC))], "a"),
        ([("at", ">", datetime(2024, 1, 1))], "d"),
        ([("at", ">=", date(2024, 1, 1))], "ad"),
        ([("at", ">=", np.datetime64("2024-01-02"))], "d"),
        ([("flag", "=", True)], "ad"),
    ],
    ids=named,
)
def test_a_list_of_conditions(where, rows):
    assert found(table_of(), where) == list(rows)


class Foreign:
    """Stands for an expression of another library."""


FOREIGN = {
    room: type("Expr", (Foreign,), {"__module__": f"{room}.expr"})() for room in ("polars", "pyspark", "something")
}


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("", "it is empty"),
        (5, "this is int: 5"),
        (b"n = 1", "this is bytes"),
        ({"n": 1}, "this is dict"),
        (FOREIGN["polars"], r"to_polars_lazy\(\).filter"),
        (FOREIGN["pyspark"], r".where\(…\) of the DataFrame"),
        (FOREIGN["something"], "this is Expr"),
        ([], "a list holds tuples"),
        ([[]], "a list holds tuples"),
        (["n"], "a list holds tuples"),
        (("n", "=", 1), "a list holds tuples"),
        ([["n", "=", 1]], "a list holds tuples"),
        ([("n", "=")], "a list holds tuples"),
        ([("n", "~", 1)], "'~' is none of"),
        ([("n", "=", None)], "n IS NULL"),
        ([("n", "in", [1, None])], "n IS NULL"),
        ([("n", "in", "12")], "in takes a list of values"),
        ([("m", "=", 1)], "there is no column 'm'"),
        ([(5, "=", 1)], "5 is not a name of a column"),
        ([("n", "=", "x")], "'x' is not a value of it"),
        ([("n", "=", [1])], "is not a value of it"),
        ([("at", "=", np.datetime64("NaT"))], "at IS NULL"),
        ([("at", "=", 5)], "is not a value of it"),
        (pc.field(5) == 1, "by its position"),
        (pc.field(0) == "a", "by its position"),
        ((pc.field("n") > 1) & (pc.field(1, 0) == 1), "by its position"),
        ("1 < n < 4", "character 7, '< 4': comparisons do not chain"),
        ("n = 1 oder x = 2", "character 7, 'oder x = 2': AND, OR or the end is expected, not 'oder'"),
        ("n = 1 -- x", "comments"),
        ("n = --1", "comments"),
        ("n <=> 1", "'<=>' has no meaning here: write"),
        ('id = "a"', "there is no column 'a'; .* texts stand in single quotes"),
        ("id = 'a", "what ' opens is not closed"),
        ("id rlike 'a'", "regular expressions"),
        ("id = 1", "column 'id' is string, and 1 is not a value of it: write the value in single quotes"),
        ("day = '2024-01-01 12:00:00'", "write it as 'YYYY-MM-DD'"),
        ("price = x", "cannot be compared exactly"),
        ("n in ()", "a column or a value is expected, not '\\)'"),
    ],
    ids=named,
)
def test_what_is_no_filter_is_told_in_one_sentence(where, told):
    table = table_of()
    for ask in (lambda: table.scan(where=where).count(), lambda: table.delete(where=where)):
        with pytest.raises(OptionError, match=told) as error:
            ask()
        assert len(str(error.value).splitlines()) == 1


@TYPES
def test_an_expression_that_arrow_cannot_evaluate_is_an_error_of_the_filter(table_type):
    table = table_of(table_type)
    for scan in (table.scan, table.changes):
        with pytest.raises(
            OptionError, match=r"Arrow cannot evaluate the filter \(n > 1.5\).* give the filter as text"
        ):
            scan(where=pc.field("n") > 1.5).to_arrow()
    with pytest.raises(OptionError, match="Arrow cannot evaluate"):
        table.changes(where=pc.field("n") > 1.5, images="before_after").to_arrow()


def test_a_name_that_two_columns_share_but_for_case_is_written_as_it_is():
    schema = pa.schema([("Qty", pa.int64()), ("qty", pa.int64())])  # as other writers may have made it
    found = parse_filter("Qty = 1 and qty = 2", schema)
    assert found is not None
    assert found.columns == ("Qty", "qty")
    with pytest.raises(OptionError, match="'QTY' may be any of the columns Qty, qty"):
        parse_filter("QTY = 1", schema)
