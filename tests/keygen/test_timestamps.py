"""Partition paths of timestamps: types, units, nulls, and errors; every value is Apache Hudi's own in integration/."""

import datetime as dt
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import KeyFieldError, OptionError
from hoodie.keygen.calendar import zone_named
from hoodie.keygen.generator import KeyGenerator
from hoodie.keygen.patterns import writer_of
from hoodie.keygen.timestamps import paths_of
from hoodie.options.keygen import PREFIX, PartitionKind, timestamp_settings
from hoodie.options.values import KeyGeneratorType

ALL = "yyyy-MM-dd HHmmss.SSS"


def settings(**options):
    return timestamp_settings({PREFIX + name.replace("_", "."): value for name, value in options.items()}, table="t")


def paths(values, *, as_text=False, hive=False, encode=False, **options):
    options = {"timestamp_type": "EPOCHMILLISECONDS", "output_dateformat": ALL, **options}
    generator = KeyGenerator(
        KeyGeneratorType.TIMESTAMP,
        ("id",),
        ("t",),
        hive,
        encode,
        timestamps=settings(**options),
        timestamps_as_text=as_text,
    )
    assert pickle.loads(pickle.dumps(generator)) == generator
    return generator.partitions(pa.table({"t": values})).to_pylist()


@pytest.mark.parametrize(
    ("values", "options", "made"),
    [
        (pa.array([0, -1, -1500, None]), {},
         ["1970-01-01 000000.000", "1969-12-31 235959.999", "1969-12-31 235958.500", "1970-01-01 000000.001"]),
        (pa.array([1, -1, -1500]), {"timestamp_type": "EPOCHMICROSECONDS"},
         ["1970-01-01 000000.000", "1970-01-01 000000.000", "1969-12-31 235959.999"]),
        (pa.array([1.9, -1.9, float("nan"), 1e30, float("-inf"), None]), {"timestamp_type": "UNIX_TIMESTAMP"},
         ["1970-01-01 000001.000", "1969-12-31 235959.000", "1970-01-01 000000.000", "292278994-08-17 071255.807",
          "-292275055-05-16 164704.192", "1970-01-01 000001.000"]),
        (pa.array([Decimal("1.50"), Decimal("-1.50"), None], pa.decimal128(10, 2)), {"timestamp_type": "UNIX_TIMESTAMP"},
         ["1970-01-01 000001.000", "1969-12-31 235959.000", "1970-01-01 000001.000"]),
        (pa.array([Decimal(2**64 + 5)], pa.decimal128(38, 0)), {"timestamp_type": "UNIX_TIMESTAMP"}, ["1970-01-01 000005.000"]),
        (pa.array([dt.date(2024, 2, 3), None]), {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "days"},
         ["2024-02-03 000000.000", "1970-01-02 000000.000"]),
        (pa.array([2**62, -(2**62)]), {"timestamp_type": "SCALAR", "timestamp_scalar_time_unit": "HOURS"},
         ["292278994-08-17 071255.807", "-292275055-05-16 164704.192"]),
        (pa.array([1_700_000_000_123_456], pa.timestamp("us", "UTC")), {"timestamp_type": "EPOCHMICROSECONDS"},
         ["2023-11-14 221320.123"]),
        (pa.nulls(1), {}, ["1970-01-01 000000.001"]),
        (pa.array([7, 7]).dictionary_encode(), {}, ["1970-01-01 000000.007"] * 2),
    ],
)  # fmt: skip
def test_numbers_and_dates_in_their_unit(values, options, made):
    assert paths(values, **options) == made


def test_timestamps_as_text_are_times_whatever_the_unit():
    values = pa.array([1_700_000_000_123_456, None], pa.timestamp("us", "UTC"))
    assert paths(values, as_text=True, timestamp_type="UNIX_TIMESTAMP") == [
        "2023-11-14 221320.123",
        "1970-01-01 000001.000",
    ]


def test_texts_are_read_by_the_first_form_that_fits():
    values = pa.array(["2024-01-02", "20240305", None, "2024-01-02"])
    options = {
        "timestamp_type": "DATE_STRING",
        "input_dateformat": "yyyy-MM-dd, yyyyMMdd",
        "output_dateformat": "yyyy/MM",
    }
    assert paths(values, **options) == ["2024/01", "2024/03", "1970/01", "2024/01"]


def test_zones_of_texts_and_paths():
    options = {
        "timestamp_type": "DATE_STRING",
        "input_dateformat": "yyyy-MM-dd'T'HHZ,yyyy-MM-dd'T'HH",
        "output_dateformat": "dd HH",
    }
    values = pa.array(["2024-01-02T23+05:00", "2024-01-02T23"])
    assert paths(values, **options) == ["02 23", "02 23"]
    assert paths(values, **options, output_timezone="GMT+1") == ["02 19", "03 00"]
    assert paths(values, **options, input_timezone="GMT-3") == ["02 15", "02 23"]
    assert paths(values, **options, timezone="GMT+1", input_timezone="UTC") == ["02 19", "02 23"]


def test_hive_style_and_encoding():
    values = pa.array([0])
    assert paths(values, output_dateformat="yyyy/MM") == ["1970/01"]
    assert paths(values, output_dateformat="yyyy/MM", hive=True) == ["t=1970/01"]
    assert paths(values, output_dateformat="yyyy/MM", hive=True, encode=True) == ["t=1970%2F01"]


def test_a_custom_generator_makes_each_part_in_its_way():
    kinds = (PartitionKind.SIMPLE, PartitionKind.TIMESTAMP)
    generator = KeyGenerator(
        KeyGeneratorType.CUSTOM, ("k",), ("c", "t"), partition_kinds=kinds,
        timestamps=settings(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyy/MM"),
    )  # fmt: skip
    rows = pa.table({"k": ["a", "b"], "c": ["x", None], "t": pa.array([0, None], pa.int64())})
    assert generator.partitions(rows).to_pylist() == ["x/1970/01", "__HIVE_DEFAULT_PARTITION__/1970/01"]
    assert generator.keys(rows).to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "options", "told"),
    [
        (pa.array(["2024"]), {}, "texts need DATE_STRING"),
        (pa.array([1]), {"timestamp_type": "MIXED", "input_dateformat": "yyyy"}, "read texts only"),
        (pa.array([True]), {}, "neither a number nor a date"),
        (pa.array([b"2024"]), {}, "neither a number nor a date"),
        (
            pa.array(["2024", "x", ""]),
            {"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy"},
            "'x' in row 1 .*none of the forms",
        ),
        (
            pa.array(["2024-02-30"]),
            {"timestamp_type": "DATE_STRING", "input_dateformat": "yyyy-MM-dd"},
            "has no day 30",
        ),
        (pa.array([0]), {"output_dateformat": "'..'/yyyy"}, "makes '../1970' in row 0 .*another folder"),
        (pa.array([0]), {"output_dateformat": "/yyyy"}, "empty part"),
        (pa.array([0]), {"output_dateformat": "HH:mm"}, "scheme of a URI"),
        (pa.array([0]), {"output_dateformat": "'.hoodie'/yyyy"}, "the table's own"),
    ],
)
def test_what_makes_no_path_is_told_with_column_and_row(values, options, told):
    with pytest.raises(KeyFieldError, match=rf"(?s)partition column 't' .*{told}"):
        paths(values, **options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"output_dateformat": "bbb"}, "output.dateformat='bbb': has the letter 'b'"),
        ({"output_timezone": "Mars"}, "output.timezone='Mars': 'Mars' is not a time zone"),
        (
            {"timestamp_type": "DATE_STRING", "input_dateformat": "yy"},
            "input.dateformat='yy': has a year of two digits",
        ),
    ],
)
def test_bad_settings_are_told_with_their_option(options, told):
    with pytest.raises(OptionError, match=told):
        paths_of(settings(**{"timestamp_type": "EPOCHMILLISECONDS", "output_dateformat": "yyyy", **options}))


ZONES = st.sampled_from(["UTC", "GMT-3:30", "Europe/Berlin", "Asia/Kathmandu", "Africa/Monrovia"])


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**42), 2**42), max_size=9),
    ZONES,
    st.sampled_from(["yyyy/MM/dd", "HH Z", "ss"]),
)
def test_paths_of_many_are_those_of_each(values, zone, pattern):
    made = paths(pa.array(values, pa.int64()), output_dateformat=pattern, output_timezone=zone)
    assert made == [writer_of(pattern).write(value, zone_named(zone)) for value in values]


def test_many_instants_of_few_days_are_written_once_each(monkeypatch):
    written = []
    generator = paths_of(
        settings(timestamp_type="EPOCHMILLISECONDS", output_dateformat="yyyyMMdd", output_timezone="Asia/Tokyo")
    )
    plain = type(generator.writer).write
    monkeypatch.setattr(type(generator.writer), "write", lambda self, *args: written.append(args) or plain(self, *args))
    values = pa.array(np.arange(100_000) * 100 + 1_700_000_000_000)
    assert len(set(generator.texts(values, field="t", start=0, timestamps_as_text=False).to_pylist())) == 1
    assert len(written) <= 10_000_000 // 60_000 + 2
