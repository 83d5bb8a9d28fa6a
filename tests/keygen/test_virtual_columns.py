"""Values of partition columns from the names of folders, and rows whose values would not come back from there."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError, KeyFieldError
from hoodie.keygen.generator import KeyGenerator
from hoodie.keygen.virtual_columns import FolderValues
from hoodie.options.values import KeyGeneratorType

HIVE_DEFAULT = "__HIVE_DEFAULT_PARTITION__"


def folders(*kinds, hive_style=False, url_encode=False, slash_dates=False):
    fields = tuple(pa.field(f"c{number}", kind) for number, kind in enumerate(kinds))
    return FolderValues(fields, hive_style, url_encode, slash_dates)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "rome"),
        (pa.string(), "a b=c%"),
        (pa.int32(), -7),
        (pa.int64(), 2**62),
        (pa.bool_(), True),
        (pa.date32(), date(1582, 10, 4)),
        (pa.decimal128(10, 3), Decimal("1.500")),
        (pa.float64(), 1e10),
        (pa.float32(), 0.1),
        (pa.timestamp("us"), datetime(2024, 1, 2, 3, 4, 5, 678)),
        (pa.timestamp("ms", "UTC"), datetime(2024, 1, 2, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize("hive_style", [False, True])
@pytest.mark.parametrize("url_encode", [False, True])
def test_the_value_comes_back_from_the_path_that_it_made(kind, value, hive_style, url_encode):
    rows = pa.table({"c0": pa.array([value, None], kind)})
    keygen = KeyGenerator(KeyGeneratorType.SIMPLE, ("id",), ("c0",), hive_style, url_encode)
    paths = keygen.partitions(rows)
    found = folders(kind, hive_style=hive_style, url_encode=url_encode)
    assert [found.of(path)["c0"] for path in paths.to_pylist()] == [rows["c0"][0], pa.scalar(None, kind)]
    found.require_said(rows, paths, table="t")


def test_a_single_column_is_the_whole_path_and_several_have_a_part_each():
    assert folders(pa.string()).of("2024/01/02")["c0"].as_py() == "2024/01/02"
    assert folders(pa.date32(), slash_dates=True).of("2024/01/02")["c0"].as_py() == date(2024, 1, 2)
    both = folders(pa.string(), pa.int32(), hive_style=True).of("c0=a/c1=3")
    assert {name: value.as_py() for name, value in both.items()} == {"c0": "a", "c1": 3}


@pytest.mark.parametrize(
    ("kinds", "path"), [([pa.int32()], "rome"), ([pa.string(), pa.string()], "a"), ([pa.date32()], "")]
)
def test_a_folder_that_is_no_value_is_an_error(kinds, path):
    with pytest.raises(CorruptFileError, match=r"no name of values of c0 .*drop\.partition\.columns=true"):
        folders(*kinds).of(path)


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.string(), ""), (pa.string(), HIVE_DEFAULT), (pa.float64(), float("nan"))]
)
def test_a_value_that_would_come_back_as_another_is_refused(kind, value):
    rows = pa.table({"c0": pa.array([None, value], kind)})
    paths = KeyGenerator(KeyGeneratorType.SIMPLE, ("id",), ("c0",)).partitions(rows)
    with pytest.raises(KeyFieldError, match=r"'c0' holds .* in row 1 .*would come back as"):
        folders(kind).require_said(rows, paths, table="t")


def test_binary_values_are_refused():
    rows = pa.table({"c0": pa.array([b"\xff"], pa.binary())})
    paths = KeyGenerator(KeyGeneratorType.SIMPLE, ("id",), ("c0",)).partitions(rows)
    with pytest.raises(KeyFieldError, match="c0"):
        folders(pa.binary()).require_said(rows, paths, table="t")
