"""Joda-Time's patterns, as Apache Hudi's key generator writes and reads them; integration/ asks it about thousands of values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.keygen.calendar import zone_named
from hoodie.keygen.patterns import reader_of, writer_of

BERLIN = zone_named("Europe/Berlin")
LEAP_DAY = 1_709_164_800_000  # 2024-02-29


@pytest.mark.parametrize(
    ("pattern", "millis", "text"),
    [
        ("yyyy/MM/dd", LEAP_DAY, "2024/02/29"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", LEAP_DAY + 1, "2024-02-29T01:00:00.001+0100"),
        ("D DDD x xx ww e Y YY yy CC C G", LEAP_DAY, "60 060 2024 24 09 4 2024 24 24 20 20 AD"),
        ("y yyyy Y x w G C e", -62_200_000_000_000, "-2 -0002 3 -2 51 BC 0 4"),
        ("M MM MMM MMMM E EEEE", LEAP_DAY, "2 02 Feb February Thu Thursday"),
        ("H k K h a", LEAP_DAY, "1 1 1 1 AM"),
        ("H k K h a", LEAP_DAY - 3_600_000, "0 24 0 12 AM"),
        ("H k K h a", LEAP_DAY + 11 * 3_600_000, "12 12 0 12 PM"),
        ("S SS SSSS SSSSSS", 678, "6 67 6780 678000"),
        ("Z ZZ ZZZ", LEAP_DAY, "+0100 +01:00 Europe/Berlin"),
        ("'o''clock' '' ''yyyy''", LEAP_DAY, "o'clock ' '2024'"),
        ("yyyy", 2**63 - 1, "292278994"),
    ],
)
def test_an_instant_is_written_as_joda_time_does(pattern, millis, text):
    assert writer_of(pattern).write(millis, BERLIN) == text


@pytest.mark.parametrize(
    ("pattern", "why"), [("", "is empty"), ("bbb", "stands for nothing"), ("yyyy z", "names of zones")]
)
def test_what_cannot_be_written_is_refused(pattern, why):
    with pytest.raises(ValueError, match=why):
        writer_of(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "written"),
    [
        ("yyyy-MM-dd", "24-1-2", "0024-01-02 00:00:00.000 +0053"),
        ("yyyy-MM-dd", "-5-01-01", "-0005-01-01 00:00:00.000 +0053"),
        ("M/d", "2/29", "2000-02-29 00:00:00.000 +0100"),
        ("HH", "12", "1970-01-01 12:00:00.000 +0100"),
        ("hh a", "12 am", "1970-01-01 00:00:00.000 +0100"),
        ("K a", "11 PM", "1970-01-01 23:00:00.000 +0100"),
        ("k", "24", "1970-01-01 00:00:00.000 +0100"),
        ("yyyyMMddHHmmssSSS", "20240102030405678", "2024-01-02 03:04:05.678 +0100"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "2024-01-02 03:04:05.6789", "2024-01-02 03:04:05.678 +0100"),
        ("yyyy-DDD", "2024-060", "2024-02-29 00:00:00.000 +0100"),
        ("E yyyy-MM-dd", "sunday 2024-01-02", "2024-01-07 00:00:00.000 +0100"),
        ("d MMM yyyy", "1 JANUARY 2024", "2024-01-01 00:00:00.000 +0100"),
        ("yyyy-MM-dd'T'HHZ", "2024-01-02T03z", "2024-01-02 04:00:00.000 +0100"),
        ("yyyy-MM-dd'T'HHZ", "2024-01-02T03-03:30", "2024-01-02 07:30:00.000 +0100"),
    ],
)
def test_a_text_is_read_as_joda_time_does(pattern, text, written):
    said = reader_of(pattern).read(text, BERLIN)
    assert writer_of("yyyy-MM-dd HH:mm:ss.SSS Z").write(said.millis, BERLIN) == written


@pytest.mark.parametrize(
    "text", ["", " 2024-01-02", "2024-01-02 ", "2024-01", "２０２４-01-02", "2024-01-02x", "2024--01-02"]
)
def test_a_text_of_another_form_is_left_to_the_next_pattern(text):
    assert reader_of("yyyy-MM-dd").read(text, None) is None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("yyyy-MM-dd", "2023-02-29"), ("yyyy-MM-dd", "2024-13-01"), ("yyyy-D", "2023-366"), ("HH", "24"), ("k", "0"), ("h", "13"),
     ("yyyy", "292278995"), ("YYYY", "0")],
)  # fmt: skip
def test_there_are_no_such_dates(pattern, text):
    with pytest.raises(ValueError, match=r"has no day|is allowed"):
        reader_of(pattern).read(text, None)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("yy-MM", "year of two digits"),
        ("yyyy z", "does not read"),
        ("ww", "does not read"),
        ("dd d", "twice"),
        ("'x'", "no letters"),
    ],
)
def test_what_cannot_be_read_is_refused(pattern, why):
    with pytest.raises(ValueError, match=why):
        reader_of(pattern)


def test_a_text_says_its_zone_unless_another_is_asked_for():
    reader = reader_of("yyyy-MM-dd'T'HHZ")
    assert reader.read("2024-01-02T03+05:00", None).zone.name == "+05:00"
    assert reader.read("2024-01-02T03+05:00", BERLIN).zone is BERLIN
    assert reader_of("yyyy").read("2024", None).zone.name == "UTC"


@given(st.integers(-(2**52), 2**52), st.sampled_from(["UTC", "GMT-3:30", "Europe/Berlin", "America/St_Johns"]))
def test_what_is_written_with_its_offset_is_read_again(millis, name):
    zone = zone_named(name)
    if zone.offset_s(millis // 1000) % 60:
        return  # offsets are written in minutes, and some were off by seconds once
    pattern = "yyyy-MM-dd HH:mm:ss.SSSZ"
    assert reader_of(pattern).read(writer_of(pattern).write(millis, zone), None).millis == millis


@given(st.sampled_from(["yyyy", "yyyy/MM/dd", "HH", "mm Z", "ss", "SSS", "e w"]), st.integers(-(2**50), 2**50))
def test_instants_of_one_step_are_written_the_same(pattern, millis):
    writer, zone = writer_of(pattern), zone_named("UTC")
    first = millis // writer.step_ms * writer.step_ms
    assert writer.write(first, zone) == writer.write(millis, zone) == writer.write(first + writer.step_ms - 1, zone)
