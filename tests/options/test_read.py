"""Instants as users write them."""

from datetime import timedelta, timezone

import pytest

from hoodie.errors import OptionError
from hoodie.options.read import parse_begin_option, parse_instant_option


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
    tokyo = timezone(timedelta(hours=9))
    assert parse_instant_option("2026-01-01T00:00:00Z", name="x", zone=tokyo) == "20260101090000000"
    assert parse_instant_option("2026-01-01 00:00:00", name="x", zone=tokyo) == "20260101000000000"


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026", "20260101", "2026010109300012", "202601010930001234", "20261301000000000", "2026-02-30",
     "2026-01-01 25:00:00", "2026-W01-1", "20260101T093000", "٢٠٢٦٠١٠١٠٩٣٠٠٠", "000", "earliest",
     "9999-12-31T23:59:59-10:00"],
)  # fmt: skip
def test_anything_else_is_told_with_the_forms(text):
    with pytest.raises(OptionError, match=r"option as\.of\.instant=.* is no instant, expected 17 or 14 digits"):
        parse_instant_option(text, name="as.of.instant")


@pytest.mark.parametrize("text", ["0", "000", "earliest", "Earliest", "00000000000000"])
def test_the_beginning_has_its_words(text):
    assert parse_begin_option(text, name="x") == "000"


def test_a_beginning_may_be_any_instant():
    assert parse_begin_option("2026-01-01", name="x") == "20260101000000000"
    with pytest.raises(OptionError):
        parse_begin_option("", name="x")
