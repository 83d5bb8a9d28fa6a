"""Instants as users write them."""

import time
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from hoodie.errors import OptionError
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.instant import Instant
from hoodie.model.results import CommitResult
from hoodie.options.moments import parse_begin_option, parse_instant_option, parse_position_option

TOKYO = timezone(timedelta(hours=9))
NOW = datetime(2026, 3, 5, 1, 30, 15, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("20260101093000123", "20260101093000123"),
        (" 20260101093000 ", "20260101093000"),
        ("2026-01-01", "20260101000000000"),
        ("2026-01-01 09:30:00", "20260101093000000"),
        ("2026-01-01 09:30", "20260101093000000"),
        ("2026-01-01 09:30:00.5", "20260101093000500"),
        ("2026-01-01T09:30:00.123", "20260101093000123"),
        ("2026-01-01T09:30:00.123999999", "20260101093000123"),
        ("2026-01-01T09:30:00Z", "20260101093000000"),
        ("2026-01-01T09:30:00+02:00", "20260101073000000"),
        ("2026-01-01T00:30:00+0200", "20251231223000000"),
    ],
)
def test_forms_of_an_instant(text, instant):
    assert parse_instant_option(text, name="as.of.instant") == instant


def test_only_a_time_with_an_offset_is_moved_to_the_tables_zone():
    assert parse_instant_option("2026-01-01T00:00:00Z", name="x", zone=TOKYO) == "20260101090000000"
    assert parse_instant_option("2026-01-01 00:00:00", name="x", zone=TOKYO) == "20260101000000000"


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "two hours ago", "ago", "2 months ago", "-1 hours ago",
     "2 hours", "2026", "20260101", "2026010109300012", "202601010930001234", "20261301000000000", "2026-02-30",
     "2026-01-01 25:00:00", "2026-W01-1", "20260101T093000", "٢٠٢٦٠١٠١٠٩٣٠٠٠", "000", "earliest",
     "9999-12-31T23:59:59-10:00"],
)  # fmt: skip
def test_anything_else_is_told_with_the_forms(text):
    with pytest.raises(OptionError, match=r"option as\.of\.instant=.* is not an instant, expected 17 or 14 digits"):
        parse_instant_option(text, name="as.of.instant")


@pytest.mark.parametrize("text", ["0", "000", "earliest", "Earliest", "00000000000000"])
def test_the_beginning_has_its_words(text):
    assert parse_begin_option(text, name="x") == "000"


def test_a_beginning_may_be_any_instant():
    assert parse_begin_option("2026-01-01", name="x") == "20260101000000000"
    with pytest.raises(OptionError):
        parse_begin_option("", name="x")


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        (date(2026, 1, 1), "20260101000000000"),
        (datetime(2026, 1, 1, 9, 30), "20260101093000000"),
        (datetime(2026, 1, 1, 9, 30, 0, 123_999), "20260101093000123"),
        (datetime(2026, 1, 1, 9, 30, tzinfo=UTC), "20260101183000000"),
        (datetime(2026, 7, 1, 9, 30, tzinfo=ZoneInfo("Europe/Berlin")), "20260701163000000"),
        (pd.Timestamp("2026-01-01 09:30:00.123456789"), "20260101093000123"),
        (pd.Timestamp("2026-01-01 09:30", tz="America/New_York"), "20260101233000000"),
        (np.datetime64("2026-01-01T09:30"), "20260101093000000"),
        (np.datetime64("2026-01-01"), "20260101000000000"),
        (datetime(1, 1, 1), "00010101000000000"),
    ],
)
def test_moments_that_are_no_text_and_naive_ones_are_of_the_tables_zone(value, instant):
    assert parse_instant_option(value, name="as_of", zone=TOKYO) == instant
    assert parse_begin_option(value, name="since", zone=TOKYO) == instant


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("now", "20260305103015250"),
        ("today", "20260305000000000"),
        ("Yesterday", "20260304000000000"),
        ("2 hours ago", "20260305083015250"),
        ("an hour ago", "20260305093015250"),
        ("90s ago", "20260305102845250"),
        ("1 hour 30 minutes ago", "20260305090015250"),
        ("1h 30m ago", "20260305090015250"),
        ("a week ago", "20260226103015250"),
        (" 3 Days  ago ", "20260302103015250"),
    ],
)
def test_moments_that_count_back_from_now(text, instant):
    assert parse_instant_option(text, name="as_of", zone=TOKYO, now=NOW) == instant


@pytest.fixture
def berlin(monkeypatch):
    """The process's own time zone, which has summer time."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_a_timeline_in_local_time_has_summer_time_where_the_moment_has_it():
    assert parse_instant_option("2026-07-01T12:00:00Z", name="x", zone=None) == "20260701140000000"
    assert parse_instant_option("2026-01-01T12:00:00Z", name="x", zone=None) == "20260101130000000"
    assert parse_instant_option(datetime(2026, 7, 1, 12, tzinfo=UTC), name="x", zone=None) == "20260701140000000"
    after_the_change = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)  # 03:30; an hour before it was 01:30
    assert parse_instant_option("1 hour ago", name="x", zone=None, now=after_the_change) == "20260329013000000"


def test_a_commit_stands_for_its_instant_and_where_a_range_ends_for_its_position():
    done = CommitResult("20260101000000000", WriteOperation.UPSERT, completed="20260101000007000")
    listed = Instant("20260101000000000", Action.COMMIT, State.COMPLETED, "20260101000007000")
    for commit in (done, listed):
        assert parse_instant_option(commit, name="as_of") == "20260101000000000"
        assert parse_begin_option(commit, name="since") == "20260101000007000"
        assert parse_position_option(commit, name="until") == "20260101000007000"
    old = CommitResult("20260101000000000", WriteOperation.UPSERT)
    assert parse_begin_option(old, name="since") == "20260101000000000"
    with pytest.raises(OptionError, match="as_of is the result of a write that had nothing to do"):
        parse_instant_option(CommitResult(None, WriteOperation.UPSERT), name="as_of")


@pytest.mark.parametrize(
    "value", [20260101000000000, 1.5, True, timedelta(hours=1), pd.NaT, np.datetime64("NaT"), b"x", []]
)
def test_what_is_no_moment_is_told(value):
    with pytest.raises(OptionError, match=r"since=.* is (a|not a) "):
        parse_begin_option(value, name="since")
