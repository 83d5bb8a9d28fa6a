"""Verdicts over bounds against the filter itself: a file of which some row fulfils it is never left out."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.format.column_stats import decode_column_stats, encode_column_stats, range_of, ranges_of_rows
from hoodie.model.statistics import UNKNOWN, ValueRange
from hoodie.read.bounds import MAX_COMPARISONS, may_match
from hoodie.read.where import parse_filter
from tests.effort import SOAK

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("n", pa.decimal128(12, 2)),
    ]
)
EXAMPLES = 1000 if SOAK else 60
INTS = [-(2**31), -7, -1, 0, 1, 2, 7, 2**31 - 1]
LONGS = [-(2**63), -(2**53) - 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1]
FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 0.1, 0.5, -2.5, 7.0]
TEXTS = [
    "",
    "a",
    "ab",
    "b",
    "é",
    "z" * 40,
    "z" * 40 + "a",
    "\U0010ffff" * 33,
    "\uffff",
    "\U00010000",
    "\ud7ff" * 33,
    "x'y",
]
DAYS = [datetime.date(1582, 10, 4), datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)]
TIMES = [
    datetime.datetime(1960, 1, 1, 0, 0, 0, 1, datetime.UTC),
    datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
]
AMOUNTS = [Decimal("-1234567890.12"), Decimal("-0.01"), Decimal("0.00"), Decimal("1.00"), Decimal("7.50")]
VALUES = {
    "i": INTS,
    "l": LONGS,
    "f": FLOATS,
    "g": FLOATS,
    "b": [True, False],
    "s": TEXTS,
    "d": DAYS,
    "t": TIMES,
    "n": AMOUNTS,
}


@st.composite
def tables(draw):
    count = draw(st.integers(0, 4))
    columns = [
        draw(st.lists(st.none() | st.sampled_from(VALUES[f.name]), min_size=count, max_size=count)) for f in SCHEMA
    ]
    return pa.table([pa.array(v, f.type) for v, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime() | datetime.date():
            return f"'{value.isoformat().replace('+00:00', 'Z')}'"
        case _:
            return str(value)


def writable(name: str) -> list[object]:
    return [v for v in VALUES[name] if not isinstance(v, float) or np.isfinite(v)]


@st.composite
def atoms(draw):
    name = draw(st.sampled_from(SCHEMA.names))
    values = writable(name)
    value = literal(draw(st.sampled_from(values)))
    if name in "il" and draw(st.booleans()):
        value = draw(st.sampled_from(["0.5", "-1.5", "7.0"]))
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    some = ", ".join(literal(v) for v in draw(st.lists(st.none() | st.sampled_from(values), min_size=1, max_size=3)))
    other = draw(st.sampled_from(values))
    return draw(
        st.sampled_from(
            [
                f"{name} {operator} {value}",
                f"{value} {operator} {name}",
                f"{name} IN ({some})",
                f"{name} NOT IN ({some})",
                f"{name} IS NULL",
                f"{name} IS NOT NULL",
                f"{name} BETWEEN {value} AND {literal(other)}",
                f"{name} = NULL",
                "b",
                "i < l",
                "TRUE",
                "FALSE",
            ]
        )
    )


def joined(inner):
    return st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]}) AND ({two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}) OR ({two[1]})"),
        inner.map(lambda one: f"NOT ({one})"),
    )


FILTERS = st.recursive(atoms(), joined, max_leaves=5)


def bounds_of(files: list[pa.Table]) -> dict[str, list[list[ValueRange]]]:
    """As they come out of a commit's metadata."""
    text = encode_column_stats({str(at): ranges_of_rows(file) for at, file in enumerate(files)})
    stated = decode_column_stats(text or "")
    return {
        field.name: [[range_of(stated[str(at)].get(field.name), field.type)] for at in range(len(files))]
        for field in SCHEMA
    }


def rows_that_fit(files: list[pa.Table], expression: pc.Expression) -> list[int]:
    return [at for at, file in enumerate(files) if file.filter(expression).num_rows]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(tables(), min_size=1, max_size=4), FILTERS)
def test_no_file_with_a_row_that_fits_is_left_out(files, where):
    row_filter = parse_filter(where, SCHEMA)
    needed = rows_that_fit(files, row_filter.expression)
    found = may_match(where, SCHEMA, bounds_of(files), len(files))
    assert all(found[at] for at in needed), where


FIELDS = {name: pc.field(name) for name in SCHEMA.names}


@st.composite
def expressions(draw):
    name = draw(st.sampled_from(SCHEMA.names))
    field, kind = FIELDS[name], SCHEMA.field(name).type
    value = pa.scalar(draw(st.sampled_from(VALUES[name])), kind)
    some = pa.array(draw(st.lists(st.none() | st.sampled_from(VALUES[name]), max_size=3)), kind)
    return draw(
        st.sampled_from(
            [
                field == value,
                field != value,
                field < value,
                field >= value,
                value < field if isinstance(value < field, pc.Expression) else field > value,
                field.isin(some),
                field.is_null(),
                field.is_valid(),
                pc.if_else(field.is_valid(), field.isin(some), pa.scalar(None, pa.bool_())),
                pc.field("f").is_null(nan_is_null=True),
                pc.field("f").is_nan(),
                pc.field("i").cast("string") == "7",
                pc.field("i") + 1 > 2,
                pc.starts_with(pc.field("s"), "a"),
                pc.match_like(pc.field("s"), "%b"),
                pc.field("i") > pc.field("l"),
                pc.field("l") > 0.5,
                pc.coalesce(pc.field("i"), pa.scalar(7, pa.int32())) == 7,
            ]
        )
    )


EXPRESSIONS = st.recursive(
    expressions(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=4,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(tables(), min_size=1, max_size=4), EXPRESSIONS)
def test_no_file_with_a_row_that_fits_an_expression_is_left_out(files, expression):
    try:
        needed = rows_that_fit(files, expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return
    found = may_match(expression, SCHEMA, bounds_of(files), len(files))
    assert all(found[at] for at in needed), expression


RANGES = {
    "i": [ValueRange(0, 9, 0), ValueRange(10, 19, 3), ValueRange(nulls=5, values=False), UNKNOWN, ValueRange(7, 7, 0)],
    "s": [
        ValueRange("a", "c", 0),
        ValueRange("d", "f", 1),
        ValueRange(nulls=5, values=False),
        UNKNOWN,
        ValueRange("x", "x", 0),
    ],
    "f": [
        ValueRange(0.0, 0.5, 0),
        ValueRange(1.0, 1.5, 1),
        ValueRange(nulls=5, values=False),
        UNKNOWN,
        ValueRange(2.0, 2.0, 0),
    ],
}
SINGLE = {name: [[each] for each in ranges] for name, ranges in RANGES.items()}
"""Five slices of one file: a range, a range with nulls, only nulls, one of which nothing is known, one value."""


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data(), st.lists(tables(), min_size=1, max_size=3), FILTERS)
def test_no_slice_is_left_out_whose_files_together_make_a_row_that_fits(data, files, where):
    stored = {name: [v for file in files for v in file.column(name).to_pylist()] or [None] for name in SCHEMA.names}
    columns = [
        pa.array(data.draw(st.lists(st.sampled_from(stored[f.name]), min_size=4, max_size=4)), f.type) for f in SCHEMA
    ]
    fits = pa.table(columns, schema=SCHEMA).filter(parse_filter(where, SCHEMA).expression).num_rows
    ranges = {name: [[known for each in found for known in each]] for name, found in bounds_of(files).items()}
    assert may_match(where, SCHEMA, ranges, 1)[0] or not fits or not any(file.num_rows for file in files)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("i = 12", [1, 3]),
        ("12 = i", [1, 3]),
        ("i < 7", [0, 3]),
        ("7 <= i", [0, 1, 3, 4]),
        ("i <> 7", [0, 1, 3]),
        ("NOT i = 7", [0, 1, 3]),
        ("NOT (i >= 7 AND i <= 7)", [0, 1, 3]),
        ("i NOT IN (7, 8)", [0, 1, 3]),
        ("i NOT IN (7, NULL)", []),
        ("i IN (7, NULL)", [0, 3, 4]),
        ("i IN (100, 12, -5)", [1, 3]),
        ("i IS NULL", [1, 2, 3]),
        ("i IS NOT NULL", [0, 1, 3, 4]),
        ("i = NULL", []),
        ("NOT i = NULL", []),
        ("i BETWEEN 15 AND 30", [1, 3]),
        ("NOT i BETWEEN 7 AND 7", [0, 1, 3]),
        ("i < 5 OR s = 'e'", [0, 1, 3]),
        ("i < 5 AND s = 'e'", [3]),
        ("i = 12 OR i IS NULL", [1, 2, 3]),
        ("i > 8.5", [0, 1, 3]),
        ("i = 12.5", []),
        ("i <> 12.5", [0, 1, 3, 4]),
        ("i < 99999999999", [0, 1, 3, 4]),
        ("i > 99999999999", []),
        ("NOT i > 99999999999", [0, 1, 3, 4]),
        ("s >= 'e'", [1, 3, 4]),
        ("f > 1.2", [1, 3, 4]),
        ("NOT f > 1.2", [0, 1, 3, 4]),
        ("f <> 2.0", [0, 1, 3, 4]),
        ("f IN (0.25, 2.0)", [0, 3, 4]),
        ("f NOT IN (2.0)", [0, 1, 3, 4]),
        ("FALSE", []),
        ("TRUE", [0, 1, 2, 3, 4]),
        ("0 < i AND i < 5", [0, 3]),
        ("i > 5 IS TRUE", [0, 1, 3, 4]),
        ("NULL", []),
        ("s LIKE 'a%'", [0, 3]),
        ("s LIKE 'b_%'", [0, 3]),
        ("s LIKE 'ea%'", [1, 3]),
        ("s LIKE 'x'", [3, 4]),
        ("s NOT LIKE 'a%'", [0, 1, 3, 4]),
        ("s ILIKE 'A%'", [0, 1, 3, 4]),
        ("s LIKE '%a'", [0, 1, 3, 4]),
    ],
)
def test_a_file_is_left_out_where_its_bounds_cannot_fit(where, kept):
    parse_filter(where, SCHEMA)
    assert np.flatnonzero(may_match(where, SCHEMA, SINGLE, 5)).tolist() == kept


def test_not_over_a_float_keeps_files_that_may_hold_nan():
    nan = {"f": [[ValueRange(0.0, 1.0, 0)]]}
    assert may_match("NOT f <= 5", SCHEMA, nan, 1).tolist() == [True]
    assert may_match(~(pc.field("f") <= 5), SCHEMA, nan, 1).tolist() == [True]


def test_bounds_of_floats_do_not_tell_whether_a_row_is_nan():
    bounds = {"f": [[ValueRange(0.0, 1.0, 0)]]}
    for expression in (FIELDS["f"].is_null(nan_is_null=True), FIELDS["f"].is_nan(), ~FIELDS["f"].is_valid()):
        assert may_match(expression, SCHEMA, bounds, 1).tolist() == [True]


@pytest.mark.parametrize("where", ["f IN (0)", "f IN (0.0, 5)", "f = 0", "f IN (-0.0)", "NOT f NOT IN (0)"])
@pytest.mark.parametrize("bounds", [(0.0, 0.0), (-0.0, -0.0), (0.0, -0.0), (-0.0, 0.0)])
def test_both_zeros_are_one_number(where, bounds):
    assert may_match(where, SCHEMA, {"f": [[ValueRange(*bounds, 0)]]}, 1).tolist() == [True]


def test_comparisons_beyond_the_bound_leave_nothing_out():
    within = " OR ".join(f"i = {1000 + n}" for n in range(MAX_COMPARISONS))
    assert may_match(within, SCHEMA, SINGLE, 5).tolist() == [False, False, False, True, False]
    assert may_match(f"{within} OR i = 5000", SCHEMA, SINGLE, 5).all()


def test_an_expression_prunes_as_text_does():
    i = pc.field("i")
    cases = [
        (i == 12, [1, 3]),
        (i.isin([100, 12]), [1, 3]),
        (i.is_valid(), [0, 1, 3, 4]),
        ((i < 5) & (pc.field("s") == "e"), [3]),
    ]
    for expression, kept in cases:
        assert np.flatnonzero(may_match(expression, SCHEMA, SINGLE, 5)).tolist() == kept
