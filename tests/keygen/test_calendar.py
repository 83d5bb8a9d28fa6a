"""Dates of any year, the Julian calendar of java.sql, and time zones as Joda-Time has them."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.keygen.calendar import (
    UTC_ZONE,
    civil_from_days,
    days_from_civil,
    days_in_month,
    fixed_zone,
    iso_week,
    sql_timestamp,
    weekday,
    zone_named,
)

EPOCH = dt.date(1970, 1, 1)


@given(st.dates())
def test_dates_that_python_has_are_python_s(date):
    days = (date - EPOCH).days
    assert civil_from_days(days) == (date.year, date.month, date.day)
    assert days_from_civil(date.year, date.month, date.day) == days
    assert (*iso_week(days), weekday(days)) == date.isocalendar()


@given(st.integers(-(10**14), 10**14))
def test_every_day_is_its_date_and_back(days):
    year, month, day = civil_from_days(days)
    assert days_from_civil(year, month, day) == days
    assert 1 <= day <= days_in_month(year, month) <= 31


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (1_704_164_645_678_000, "2024-01-02 03:04:05.678"), (0, "1970-01-01 00:00:00.0"), (-1000, "1969-12-31 23:59:59.999"),
        (1_704_067_200_120_000, "2024-01-01 00:00:00.12"), (253_402_300_799_999_000, "9999-12-31 23:59:59.999"),
        (-12_219_292_800_000_000, "1582-10-15 00:00:00.0"), (-12_219_292_801_000_000, "1582-10-04 23:59:59.0"),
        (-62_135_596_800_000_000, "0001-01-03 00:00:00.0"), (-62_170_156_800_000_000, "0002-11-30 00:00:00.0"),
        (760_206_902_400_000_000, "26059-12-31 00:00:00.0"),
    ],
)  # fmt: skip
def test_java_s_text_of_a_timestamp(micros, text):
    assert sql_timestamp(micros // 1000) == text


@pytest.mark.parametrize(
    ("name", "shown", "offset"),
    [("UTC", "UTC", 0), ("GMT", "UTC", 0), ("GMT+8", "+08:00", 28_800), ("GMT-03:30", "-03:30", -12_600),
     ("GMT+0530", "+05:30", 19_800), ("Asia/Tokyo", "Asia/Tokyo", 32_400)],
)  # fmt: skip
def test_zones_have_java_s_names(name, shown, offset):
    zone = zone_named(name)
    assert (zone.name, zone.offset_s(0)) == (shown, offset)


@pytest.mark.parametrize(
    "name", ["", "Mars/Olympus", "UTC+8", "GMT+24", "../../etc/passwd", "/etc/localtime", "Europe"]
)
def test_what_is_no_zone_is_refused_and_not_taken_for_utc(name):
    with pytest.raises(ValueError, match="is not a time zone"):
        zone_named(name)


def test_clocks_that_change():
    berlin = zone_named("Europe/Berlin")
    gap, twice = 1_711_850_400 + 1800, 1_729_994_400 + 1800  # 2024-03-31 02:30 and 2024-10-27 02:30 on the wall
    with pytest.raises(ValueError, match="no clock in Europe/Berlin ever showed it"):
        berlin.offset_of_local_s(gap)
    assert berlin.offset_of_local_s(twice) == 7200  # of the earlier of both instants
    assert berlin.offset_s(days_from_civil(202_024, 7, 1) * 86_400) == 7200
    assert berlin.offset_s(days_from_civil(-5000, 7, 1) * 86_400) == 3208


def test_fixed_zones():
    assert fixed_zone(0) is UTC_ZONE
    assert fixed_zone(-19_800).name == "-05:30"
