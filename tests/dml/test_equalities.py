"""What the condition of a MERGE says about the table's columns, and what it does not say."""

import datetime as dt

import pyarrow as pa
import pytest

from hoodie.dml.equalities import Equalities, partners_within


@pytest.mark.parametrize(
    ("condition", "pairs", "are_all"),
    [
        ("t.id = s.id", [("id", "id")], True),
        ('s.b == t."a" AND t.id=s.id', [("a", "b"), ("id", "id")], True),
        ("t.id = s.id and t.city in ('x and y', 'z')", [("id", "id")], False),
        ("t.id = s.id AND (t.a = s.a OR s.b)", [("id", "id")], False),
        ("t.id = s.id AND t.a = s.a OR s.b", [], False),
        ("(s.b OR x AND t.id = s.id AND y)", [], False),
        ("t.a BETWEEN 1 AND t.id = s.id", [], False),
        ("CASE WHEN a AND t.id = s.id AND b THEN c END", [], False),
        ("NOT t.id = s.id", [], False),
        ("t.id = s.id IS NULL", [], False),
        ("t.id = t.a AND s.id = s.a", [], False),
        ("t.id + 0 = s.id", [], False),
        ("t.a.id = s.id", [], False),
        ("s.c = 'AND t.id = s.id AND'", [], False),
    ],
)
def test_equalities_of_a_condition(condition, pairs, are_all):
    assert Equalities.of(condition, target="t", source="s") == (tuple(pairs), are_all)


@pytest.mark.parametrize(
    ("kind", "values", "partners", "others"),
    [
        (pa.int32(), [3, None, 5], [3, 5], [4, 9, None]),
        (pa.string(), ["b", "d"], ["b", "d"], ["c", "", "é", None]),
        (pa.date32(), [dt.date(2026, 1, 2)], [dt.date(2026, 1, 2)], [dt.date(2026, 1, 3)]),
        (pa.int64(), list(range(10, 3000)), [10, 1500, 2999], [9, 3000, None]),
    ],
)
def test_partners_are_within_the_bounds(kind, values, partners, others):
    schema, source = pa.schema([("id", kind)]), pa.table({"id": pa.array(values, kind)})
    bounds = partners_within(Equalities((("id", "id"),), True), schema, source)
    stored = pa.table({"id": pa.array([*partners, *others], kind)})
    assert stored.filter(bounds).column("id").to_pylist() == partners


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float64(), pa.array([1.5, float("nan")])),
        (pa.int8(), pa.array([1000])),
        (pa.int64(), pa.array(["5"])),
        (pa.timestamp("us"), pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us", "UTC"))),
        (pa.string(), pa.array([None, None], pa.string())),
    ],
)
def test_nothing_is_said_where_sql_may_compare_otherwise(kind, values):
    schema, source = pa.schema([("id", kind)]), pa.table({"id": values})
    assert partners_within(Equalities((("id", "id"),), True), schema, source) is None
