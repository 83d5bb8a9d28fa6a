"""Instant times: their order, their moments, ranges of them, and which of them a task sees."""

import json
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.model.enums import Action, State
from hoodie.model.instant import (
    Instant,
    InstantRange,
    InstantTime,
    VisibleInstants,
    format_instant,
    is_instant_time,
    next_instant,
    parse_instant,
)

T = "20261121075818449"
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31))


@pytest.mark.parametrize(
    ("latest", "following"),
    [
        ("20261121075818449", "20261121075818450"),
        ("20261121075818999", "20261121075819000"),
        ("20261121075859999", "20261121075900000"),
        ("20261121235959999", "20261122000000000"),
        ("20261130235959999", "20261201000000000"),
        ("20261231235959999", "20270101000000000"),
        ("20240228235959999", "20240229000000000"),
        ("20260228235959999", "20260301000000000"),
        ("20261121075818", "20261121075819000"),  # the last millisecond of its second
        ("20261121235959", "20261122000000000"),
        ("20261121075818449001", "20261121075818450"),  # of a metadata table
    ],
)
def test_when_the_clock_is_not_past_the_latest_the_next_millisecond_is_taken(latest, following):
    assert next_instant(datetime(2020, 1, 1), latest) == following
    assert following > InstantTime(latest)


def test_else_the_time_is_taken():
    now = datetime(2026, 11, 21, 7, 58, 18, 450_999)
    assert next_instant(now, None) == "20261121075818450"
    assert next_instant(now, "20261121075818449") == "20261121075818450"
    assert next_instant(now, "20261121075818450") == "20261121075818451"
    assert next_instant(now, "20261121075818") == "20261121075819000"
    assert next_instant(now, "20261121075817") == "20261121075818450"


@given(MOMENTS, MOMENTS)
def test_instants_increase_whatever_the_clock_says(now, latest):
    before = format_instant(latest)
    after = next_instant(now, before)
    assert after > before
    assert is_instant_time(after)
    assert len(after) == 17


@given(MOMENTS)
def test_an_instant_comes_back_to_the_millisecond(moment):
    text = format_instant(moment)
    found = parse_instant(text)
    assert found.tzinfo is UTC
    assert timedelta(0) <= moment - found.replace(tzinfo=None) < timedelta(milliseconds=1)
    assert format_instant(found) == text


def test_moments_of_short_and_long_times():
    zone = timezone(timedelta(hours=2))
    assert parse_instant("20261121075818", zone) == datetime(2026, 11, 21, 7, 58, 18, 999_000, tzinfo=zone)
    assert parse_instant(T + "001") == datetime(2026, 11, 21, 7, 58, 18, 449_000, tzinfo=UTC)


def test_short_times_sort_as_the_last_millisecond_of_their_second():
    ordered = ["20261121075817999", "20261121075818998", "20261121075818", "20261121075819000", "20261121075819"]
    assert sorted(map(InstantTime, [*ordered[3:], *ordered[:3]])) == ordered


SHORT, WITHIN, AFTER = "20261121075818", "20261121075818500", "20261121075819000"


@pytest.mark.parametrize(("one", "other"), [(InstantTime, InstantTime), (InstantTime, str), (str, InstantTime)])
def test_times_of_both_lengths_are_earlier_or_later_also_beside_a_text(one, other):
    def compared(left, right):
        return left < right, left <= right, left > right, left >= right

    for earlier, later in ((WITHIN, SHORT), (SHORT, AFTER), (WITHIN, AFTER)):
        assert compared(one(earlier), other(later)) == (True, True, False, False)
        assert compared(one(later), other(earlier)) == (False, False, True, True)
    assert compared(one(SHORT), other(SHORT + "999")) == (False, True, False, True)
    assert one(SHORT) != other(SHORT + "999")
    assert max(one(WITHIN), other(SHORT)) == SHORT
    assert min(other(AFTER), one(SHORT)) == SHORT


def test_a_time_is_its_text_to_all_others():
    time = InstantTime(SHORT)
    assert {SHORT: 1}[time] == 1
    assert json.loads(json.dumps({time: time})) == {SHORT: SHORT}
    assert pa.array([time]).to_pylist() == [pa.scalar(time).as_py()] == [SHORT]
    assert f"{time}.commit {time!r}" == f"{SHORT}.commit {SHORT!r}"
    assert type(pickle.loads(pickle.dumps(time))) is InstantTime


@pytest.mark.parametrize(
    "text", ["", "2026112107581", "2026112107581x", "2026-11-21 07:58", "²0261121075818", "٢" * 17]
)
def test_what_has_not_the_form_of_an_instant(text):
    assert not is_instant_time(text)


@pytest.mark.parametrize("text", ["20261121075818", T, T + "001", "00000000000000"])
def test_what_has_the_form_of_an_instant(text):
    assert is_instant_time(text)


def test_an_instant_prints_as_its_file():
    assert str(Instant(T, Action.COMMIT, State.COMPLETED)) == f"{T}.commit"
    assert str(Instant(T, Action.CLEAN, State.INFLIGHT)) == f"{T}.clean.inflight"
    assert not Instant(T, Action.CLEAN, State.INFLIGHT).is_completed


@pytest.mark.parametrize(
    ("begin", "end", "inside", "outside"),
    [
        (None, None, ["00000000000000", T], []),
        ("20261121075818449", None, ["20261121075818450", "20261121075818"], ["20261121075818449", "20261121075817"]),
        (None, "20261121075818449", ["20261121075818449", "20261121075817"], ["20261121075818450", "20261121075818"]),
        ("20261121075818449", "20261121075818451", ["20261121075818450", "20261121075818451"], ["20261121075818449"]),
        ("20261121075818", None, ["20261121075819000"], ["20261121075818", "20261121075818999", "20261121075818000"]),
        (None, "20261121075818", ["20261121075818", "20261121075818999"], ["20261121075819000"]),
        (T, T, [], [T, "20261121075818448", "20261121075818450"]),
    ],
)
def test_a_range_is_open_at_its_begin_and_closed_at_its_end(begin, end, inside, outside):
    span = InstantRange(*(None if each is None else InstantTime(each) for each in (begin, end)))
    assert [time for time in (*inside, *outside) if span.contains(time)] == inside


def visible(completed=(), pending=(), start="20260000000000100", **ends):
    ends = {name: None if time is None else InstantTime(time) for name, time in {"start": start, **ends}.items()}
    return VisibleInstants(frozenset(completed), frozenset(pending), **ends)


def at(number):
    return f"20260000000000{number}"


def test_completed_instants_and_archived_ones_are_seen_others_not():
    seen = visible([at(100), at(120)], [at(110)])
    assert [n for n in (90, 100, 105, 110, 120, 130) if seen.sees(at(f"{n:03d}"))] == [90, 100, 120]


def test_a_pending_instant_below_the_start_is_not_seen():
    assert not visible([], [at("090")]).sees(at("090"))


def test_without_an_active_timeline_nothing_is_seen():
    assert not visible(start=None).sees(at("090"))


def test_what_comes_after_until_is_not_seen_though_completed():
    seen = visible([at(100), at(120)], until=at(110))
    assert [n for n in ("090", "100", "110", "120") if seen.sees(at(n))] == ["090", "100"]
    assert visible([at(100)], until=at(100)).sees(at(100))


def test_since_is_open():
    seen = visible([at(100), at(120)], since=at(100))
    assert [n for n in ("090", "100", "120") if seen.sees(at(n))] == ["120"]


def test_ends_of_14_digits_hold_their_whole_second():
    inside, after = "20261121075818500", "20261121075819000"
    assert visible([inside, after], until="20261121075818").sees(inside)
    assert not visible([inside, after], until="20261121075818").sees(after)
    assert not visible([inside, after], since="20261121075818").sees(inside)
    assert visible([inside, after], since="20261121075818").sees(after)
    assert not visible([], start="20261121075818000").sees("20261121075818")


def test_tasks_carry_it():
    seen = visible([T], until=T)
    assert pickle.loads(pickle.dumps(seen)) == seen
