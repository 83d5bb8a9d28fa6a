"""Random filters over random small tables, judged by an evaluator of SQL's logic in plain Python.

The same rows have to come out of a pruned scan, of the filter on all rows, and of the evaluator, which compares values of
Python exactly; and a delete takes those rows and no others. Tables have several files, with and without logs.
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie.options.parse import parse_write_options
from hoodie.read.where import parse_filter
from hoodie.table import HoodieTable
from hoodie.write.create import create_at
from tests.memory_tables import FakeClock, new_storage, opened

Row = dict[str, Any]
Holds = Callable[[Row], bool | None]
Judged = tuple[str, Holds]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("n", pa.decimal128(10, 2)),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("w", pa.timestamp("us")),
    ]
)
MOMENTS = [
    datetime(1, 1, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime(2024, 2, 29),
    datetime(2024, 2, 29, 12),
    datetime(9999, 12, 31),
]
VALUES: dict[str, list[Any]] = {
    "i": [-(2**31), -1, 0, 1, 16_777_217, 2**31 - 1],
    "l": [-(2**63), -(2**53) - 1, -1, 0, 1, 2**24 + 1, 2**53, 2**53 + 1, 2**63 - 1],
    "f": [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, -1.5, 1.0, 2.0**53, 2.0**63, -(2.0**63), 1e300],
    "g": [math.nan, math.inf, -0.0, 0.0, float(np.float32(0.1)), 1.0, -1.5, 2.0**24, 2.0**63],
    "n": [
        Decimal("-99999999.99"),
        Decimal("-0.01"),
        Decimal("0.00"),
        Decimal("0.10"),
        Decimal("1.00"),
        Decimal("99999999.99"),
    ],
    "b": [True, False],
    "s": ["", "a", "ab", "A_", "b%", "it's", "a\nb", "Äß", "z" * 40, "\U0001f600", "\\"],
    "d": [moment.date() for moment in MOMENTS],
    "t": [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    "w": MOMENTS,
}
NUMBERS = ["i", "l", "f", "g", "n"]
LITERALS = [
    *("0", "-1", "1", "0.1", "-0.0", "1.0", "1.5", "-.5", "1e0", "0.005", "2147483647", "2147483648", "-2147483649"),
    *(
        "16777217",
        "9007199254740993",
        "9007199254740992.5",
        "9223372036854775807",
        "9223372036854775808",
        "99999999.995",
    ),
    *("-9223372036854775809", "1e300", "1e400", "-1e400", "123456789012345678901234567890123456789012", "'1'", "'0.1'"),
]
OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def inverse(a: bool | None) -> bool | None:
    return None if a is None else not a


def either(a: bool | None, b: bool | None) -> bool | None:
    return inverse(both(inverse(a), inverse(b)))


def compared(op: str, a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    if isinstance(a, date) and isinstance(b, date):
        a, b = at_midnight(a, b), at_midnight(b, a)
    return OPS[op](a, b)


def at_midnight(day: date, beside: date) -> date:
    """A date as the moment that it begins, where the other one is a moment."""
    if isinstance(day, datetime) or not isinstance(beside, datetime):
        return day
    return datetime.combine(day, time(), beside.tzinfo)


def among(value: Any, items: list[Any]) -> bool | None:
    found: bool | None = False
    for item in items:
        found = either(found, compared("=", value, item))
    return found


def matches(text: str | None, pattern: str, escape: str, *, ignore_case: bool) -> bool | None:
    if text is None:
        return None
    out, characters = "", iter(pattern)
    for each in characters:
        if each == escape:
            out += re.escape(next(characters))
        else:
            out += {"%": ".*", "_": "."}.get(each, re.escape(each))
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return re.fullmatch(out, text, flags) is not None


def number(column: str, text: str) -> Any:
    """What a literal is beside a column: floats take a point or an exponent as the nearest double."""
    text = text.strip("'")
    if text.lstrip("+-").isdigit():
        return int(text)
    if column not in "fg":
        return Decimal(text)
    # Beyond all doubles, but finite.
    return float(text) if math.isfinite(float(text)) else int(Decimal(text))


def shown(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case datetime():
            return f"'{value.isoformat(' ')}'"
        case date():
            return f"'{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
    return str(value)


@st.composite
def literals(draw: st.DrawFn, column: str) -> tuple[str, Any]:
    if draw(st.integers(0, 9)) == 0:
        return "NULL", None
    if column in NUMBERS:
        text = draw(st.sampled_from(LITERALS))
        return text, number(column, text)
    value = draw(st.sampled_from(VALUES[column]))
    return shown(value), value


@st.composite
def leaves(draw: st.DrawFn) -> Judged:
    column = draw(st.sampled_from(list(VALUES)))
    op = draw(st.sampled_from(list(OPS)))
    match draw(st.sampled_from(["value", "value", "flipped", "in", "between", "null", "columns", "like", "truth"])):
        case "value":
            text, value = draw(literals(column))
            return f"{column} {op} {text}", lambda row: compared(op, row[column], value)
        case "flipped":
            text, value = draw(literals(column))
            return f"{text} {op} {column}", lambda row: compared(FLIPPED.get(op, op), row[column], value)
        case "in":
            items = draw(st.lists(literals(column), min_size=1, max_size=3))
            inverted = draw(st.booleans())
            words = f"{column} {'NOT IN' if inverted else 'in'} ({', '.join(text for text, _ in items)})"
            values = [value for _, value in items]
            return words, lambda row: (inverse if inverted else bool_of)(among(row[column], values))
        case "between":
            (low, least), (high, most) = draw(literals(column)), draw(literals(column))
            return f"{column} BETWEEN {low} AND {high}", lambda row: both(
                compared(">=", row[column], least), compared("<=", row[column], most)
            )
        case "null":
            inverted = draw(st.booleans())
            words = f"{column} is {'not ' if inverted else ''}null"
            return words, lambda row: (row[column] is None) != inverted
        case "columns":
            one, other = draw(st.sampled_from(PAIRS))
            return f"{one} {op} {other}", lambda row: compared(op, row[one], row[other])
        case "like":
            word = draw(st.sampled_from(["LIKE", "ilike", "not like"]))
            escape = draw(st.sampled_from(["\\", "!"]))
            parts = draw(
                st.lists(st.sampled_from(["%", "_", "a", "A", "b", "ä", "z", "{%", "{_", "{{", "\n"]), max_size=4)
            )
            pattern = "".join(parts).replace("{", escape)
            words = f"s {word} {shown(pattern)}" + ("" if escape == "\\" else f" ESCAPE '{escape}'")
            return words, lambda row: (inverse if word == "not like" else bool_of)(
                matches(row["s"], pattern, escape, ignore_case=word == "ilike")
            )
    word, value = draw(
        st.sampled_from([("b", None), ("TRUE", True), ("false", False), ("NULL", None), ("1 < 2", True)])
    )
    return word, lambda row: row["b"] if word == "b" else value


PAIRS = [
    *(("i", "l"), ("l", "f"), ("f", "l"), ("g", "l"), ("i", "f"), ("i", "g"), ("f", "g"), ("n", "l"), ("n", "i")),
    *(("d", "w"), ("t", "d"), ("s", "s"), ("b", "b"), ("n", "n")),
]


def bool_of(a: bool | None) -> bool | None:
    return a


def joined(inner: st.SearchStrategy[Judged]) -> st.SearchStrategy[Judged]:
    return st.one_of(
        st.builds(lambda a, b: (f"({a[0]}) AND ({b[0]})", lambda row: both(a[1](row), b[1](row))), inner, inner),
        st.builds(lambda a, b: (f"(({a[0]}) or ({b[0]}))", lambda row: either(a[1](row), b[1](row))), inner, inner),
        st.builds(lambda a: (f"NOT ({a[0]})", lambda row: inverse(a[1](row))), inner),
        st.builds(lambda a: (f"({a[0]}) IS NULL", lambda row: a[1](row) is None), inner),
        st.builds(lambda a: (f"({a[0]}) is not true", lambda row: a[1](row) is not True), inner),
        st.builds(lambda a: (f"({a[0]}) is false", lambda row: a[1](row) is False), inner),
    )


FILTERS = st.recursive(leaves(), joined, max_leaves=5)
ROWS = st.fixed_dictionaries({name: st.none() | st.sampled_from(values) for name, values in VALUES.items()})
FILES = st.lists(st.lists(ROWS, min_size=1, max_size=4), min_size=1, max_size=3)


def table_of(files: list[list[Row]], table_type: str) -> tuple[HoodieTable, list[Row]]:
    """A file for each list; of a merge-on-read table the first one's rows come to it in a log."""
    numbers = iter(range(100))
    rows = [[{"id": next(numbers), **row} for row in file] for file in files]
    clock = FakeClock()
    storage = new_storage(clock)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
    }
    create_at(storage, parse_write_options(options).to_create(), schema=SCHEMA)
    table = opened(storage, clock)
    first = [{"id": row["id"]} for row in rows[0]]
    for file in [first, *rows[1:]]:
        table.bulk_insert(pa.Table.from_pylist(file, SCHEMA))
    table.upsert(pa.Table.from_pylist(rows[0], SCHEMA))
    return table, [row for file in rows for row in file]


def ids(rows: pa.Table) -> list[int]:
    return sorted(rows.column("id").to_pylist())


def found_what_a_judge_finds(
    table_type: str, files: list[list[Row]], filters: Sequence[Judged], *, narrow: bool
) -> None:
    table, rows = table_of(files, table_type)
    everything = table.scan().to_arrow()
    for where, holds in filters:
        expected = [row["id"] for row in rows if holds(row) is True]
        assert ids(everything.filter(parse_filter(where, SCHEMA).expression)) == expected, where
        assert ids(table.scan(["id"] if narrow else None, where).to_arrow()) == expected, where
    where, holds = filters[0]
    table.delete(where=where)
    assert ids(table.scan().to_arrow()) == [row["id"] for row in rows if holds(row) is not True], where


FILTERED = given(FILES, st.lists(FILTERS, min_size=4, max_size=4), st.booleans())
UNCHECKED = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=24, suppress_health_check=UNCHECKED)
@FILTERED
def test_a_filter_finds_what_a_judge_finds(files, filters, narrow):
    found_what_a_judge_finds("MERGE_ON_READ", files, filters, narrow=narrow)


@pytest.mark.long
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@settings(max_examples=50, suppress_health_check=UNCHECKED)
@FILTERED
def test_more_filters_find_what_a_judge_finds(table_type, files, filters, narrow):
    found_what_a_judge_finds(table_type, files, filters, narrow=narrow)
