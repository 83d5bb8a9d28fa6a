"""Which record of a key counts, against a model that walks the rows one by one."""

import math
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.filegroup.merge import beats_stored, latest_of_each, positions_in
from hoodie.model.enums import MergeMode
from hoodie.model.plans import MergeRule

EVENT = MergeRule(MergeMode.EVENT_TIME_ORDERING, ("ts",))
COMMIT = MergeRule(MergeMode.COMMIT_TIME_ORDERING, ("ts",))
NAN = math.nan

VALUES = {
    "int": (pa.int64(), st.none() | st.integers(-2, 2)),
    "int32": (pa.int32(), st.none() | st.sampled_from([-(2**31), -1, 0, 1, 2**31 - 1])),
    "float": (pa.float64(), st.none() | st.sampled_from([-math.inf, -1.5, 0.0, 1.5, math.inf, NAN])),
    "string": (pa.string(), st.none() | st.sampled_from(["", "a", "b", "ab", "ä"])),
    "date": (pa.date32(), st.none() | st.sampled_from([date(1969, 1, 1), date(1970, 1, 1), date(2026, 1, 1)])),
    "timestamp": (pa.timestamp("us", "UTC"), st.none() | st.sampled_from([-1, 0, 1])),
    "decimal": (pa.decimal128(5, 2), st.none() | st.sampled_from([Decimal("-1.00"), Decimal("0.00"), Decimal("1.50")])),
    "bool": (pa.bool_(), st.none() | st.booleans()),
}
KINDS = pytest.mark.parametrize("kind", VALUES)


def rank(kind, value):
    """A missing int of Java counts as 0, any other missing value is the lowest; NaN is the greatest."""
    if value is None:
        return (1, 0) if kind == "int32" else (0, 0)
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    return (1, value)


def model_latest(kind, entries, rule):
    """Entries are (key, value, is a delete without a value); they are walked in order, as Hudi's scanner does."""
    winners = {}
    for at, (key, value, deletes) in enumerate(entries):
        held = winners.get(key)
        by_value = held is not None and rule is EVENT and not deletes and not entries[held][2]
        if not by_value or rank(kind, value) >= rank(kind, entries[held][1]):
            winners[key] = at
    return sorted(winners.values())


@KINDS
@settings(max_examples=40)
@given(data=st.data())
def test_the_latest_of_each_key_is_that_of_the_row_by_row_model(kind, data):
    arrow, values = VALUES[kind]
    entry = st.tuples(st.sampled_from("abc"), values, st.integers(0, 4).map(lambda n: n == 0))
    entries = [(k, None if d else v, d) for k, v, d in data.draw(st.lists(entry, max_size=12))]
    keys = pa.array([k for k, _, _ in entries], pa.string())
    ordering = pa.array([v for _, v, _ in entries], arrow)
    deletes = np.array([d for _, _, d in entries], dtype=bool)
    for rule in (EVENT, COMMIT):
        assert latest_of_each(keys, ordering, deletes, rule).tolist() == model_latest(kind, entries, rule)
    if not deletes.any():
        assert latest_of_each(keys, ordering, None, EVENT).tolist() == model_latest(kind, entries, EVENT)


@KINDS
@settings(max_examples=40)
@given(data=st.data())
def test_whether_a_record_beats_the_stored_row_is_that_of_the_model(kind, data):
    arrow, values = VALUES[kind]
    pairs = data.draw(st.lists(st.tuples(values, values, st.booleans()), max_size=8))
    newer = pa.array([a for a, _, _ in pairs], arrow)
    stored = pa.array([b for _, b, _ in pairs], arrow)
    deletes = np.array([d for _, _, d in pairs], dtype=bool)
    expected = [rank(kind, a) >= rank(kind, b) for a, b, _ in pairs]
    assert beats_stored(newer, None, stored, EVENT).tolist() == expected
    always = [won or deleted for won, (_, _, deleted) in zip(expected, pairs)]
    assert beats_stored(newer, deletes, stored, EVENT).tolist() == always
    assert beats_stored(newer, deletes, stored, COMMIT).tolist() == [True] * len(pairs)


@KINDS
@settings(max_examples=40)
@given(data=st.data())
def test_log_records_reduced_first_or_met_one_by_one_agree_without_deletes(kind, data):
    # The winner among all of them is the winner of meeting the stored row in turn: the two stages share one order.
    arrow, values = VALUES[kind]
    found = data.draw(st.lists(values, min_size=2, max_size=6))
    (winner,) = latest_of_each(pa.array(["k"] * len(found)), pa.array(found, arrow), None, EVENT).tolist()
    held = 0
    for at in range(1, len(found)):
        if beats_stored(pa.array([found[at]], arrow), None, pa.array([found[held]], arrow), EVENT)[0]:
            held = at
    assert winner == held


def latest(keys, ordering, deletes=None, rule=EVENT):
    marks = None if deletes is None else np.array(deletes, dtype=bool)
    return latest_of_each(pa.array(list(keys)), ordering, marks, rule).tolist()


def test_the_greatest_value_wins_and_ties_go_to_the_later_entry():
    assert latest("aab", pa.array([2, 1, 0])) == [0, 2]
    assert latest("aab", pa.array([2, 2, 0])) == [1, 2]
    assert latest("aab", pa.array([2, 1, 0]), rule=COMMIT) == [1, 2]


def test_without_an_ordering_field_the_last_entry_wins():
    assert latest("aba", None) == [1, 2]


def test_a_missing_int_is_zero():
    assert latest("aa", pa.array([None, -1], pa.int32())) == [0]
    assert latest("aa", pa.array([None, 0], pa.int32())) == [1]
    assert latest("aa", pa.array([None, 1], pa.int32())) == [1]
    assert latest("aa", pa.array([0, None], pa.int32())) == [1]
    assert latest("aa", pa.array([0, None])) == [0]


def test_a_missing_text_is_less_than_the_empty_one():
    assert latest("aa", pa.array(["", None])) == [0]
    assert latest("aa", pa.array([None, None], pa.string())) == [1]


def test_nan_is_greater_than_every_number_in_both_stages():
    assert latest("aa", pa.array([NAN, math.inf])) == [0]
    newer, stored = pa.array([NAN, math.inf, NAN, None, NAN]), pa.array([math.inf, NAN, NAN, NAN, None])
    assert beats_stored(newer, None, stored, EVENT).tolist() == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("ordering", "deletes", "winner"),
    [
        ([9, None, 1], [0, 1, 0], 2),  # what comes after a delete replaces it, however low
        ([9, None], [0, 1], 1),
        ([None, 9], [1, 0], 1),
        ([None, -9], [1, 0], 1),
        ([5, None, 2, 3, 1], [0, 1, 0, 0, 0], 3),
        ([5, None, 2, None], [0, 1, 0, 1], 3),
        ([None, None], [1, 1], 1),
        ([5, None, None, -7], [0, 1, 1, 0], 3),
    ],
)
def test_a_delete_without_a_value_wins_over_what_came_before_and_yields_to_what_comes_after(ordering, deletes, winner):
    keys = "a" * len(ordering)
    assert latest(keys, pa.array(ordering, pa.int64()), deletes) == [winner]
    # Another key beside it is not touched by the first one's deletes.
    assert latest("b" + keys, pa.array([1, *ordering], pa.int64()), [0, *deletes]) == [0, winner + 1]


def test_nothing_to_reduce():
    assert latest("", pa.array([], pa.int64())) == []
    assert latest("abc", pa.array([3, 2, 1])) == [0, 1, 2]


def test_chunks_and_slices_count_as_one_column():
    keys = pa.chunked_array([["x", "a"], ["b"], [], ["a", "b"]]).slice(1)
    ordering = pa.chunked_array([[9, 2], [1], [1, 1]], pa.int64()).slice(1)
    assert latest_of_each(keys, ordering, None, EVENT).tolist() == [0, 3]
    assert beats_stored(ordering, None, ordering, EVENT).tolist() == [True] * 4
    assert positions_in(keys, pa.array(["b", "c", "a"])).tolist() == [2, 0, 2, 0]


def test_positions_of_keys():
    assert positions_in(pa.array(["a", "z", "b"]), pa.array(["b", "a"])).tolist() == [1, -1, 0]
    assert positions_in(pa.array(["a"]), pa.array([], pa.string())).tolist() == [-1]


def test_without_values_on_one_side_the_newer_record_wins():
    assert beats_stored(None, None, pa.array([1, 2]), EVENT).tolist() == [True, True]
    assert beats_stored(pa.array([1]), None, None, EVENT).tolist() == [True]
    assert beats_stored(None, None, None, EVENT).tolist() == []
