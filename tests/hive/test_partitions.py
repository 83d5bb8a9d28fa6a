"""Partition paths as Hive's partition values."""

import pytest

from hoodie.errors import OptionError
from hoodie.hive.partitions import PartitionValues, partition_name
from hoodie.options.values import Extractor

ONE, TWO = ("day",), ("region", "day")


@pytest.mark.parametrize(
    ("extractor", "fields", "path", "values"),
    [
        (Extractor.MULTI_PART, TWO, "eu/2026-01-02", ("eu", "2026-01-02")),
        (Extractor.MULTI_PART, TWO, "region=eu/day=2026-01-02", ("eu", "2026-01-02")),
        (Extractor.HIVE_STYLE, ONE, "day=2026-01-02", ("2026-01-02",)),
        (Extractor.SINGLE_PART, ONE, "2026/01/02", ("2026-01-02",)),
        (Extractor.SINGLE_PART, ONE, "rome", ("rome",)),
        (Extractor.SLASH_DAY, ONE, "2026/01/02", ("2026-01-02",)),
        (Extractor.SLASH_DAY, ONE, "year=2026/month=1/day=2", ("2026-01-02",)),
        (Extractor.SLASH_HOUR, ONE, "2026/01/02/3", ("2026-01-02-03",)),
    ],
)
def test_values_of_paths(extractor: Extractor, fields: tuple[str, ...], path: str, values: tuple[str, ...]) -> None:
    assert PartitionValues(fields, extractor).of_path(path) == values


@pytest.mark.parametrize(
    ("extractor", "fields", "path"),
    [
        (Extractor.MULTI_PART, TWO, "eu"),
        (Extractor.MULTI_PART, ONE, "day=a=b"),
        (Extractor.HIVE_STYLE, ONE, "rome"),
        (Extractor.SLASH_DAY, ONE, "2026/13/02"),
        (Extractor.SLASH_DAY, ONE, "2026/01"),
        (Extractor.SLASH_HOUR, ONE, "2026/01/02/x"),
    ],
)
def test_paths_of_another_form_are_refused(extractor: Extractor, fields: tuple[str, ...], path: str) -> None:
    with pytest.raises(OptionError, match="partition_extractor_class"):
        PartitionValues(fields, extractor).of_path(path)


def test_names_are_escaped_as_hive_does() -> None:
    assert partition_name(("Day", "x"), ("12:30 [a]", "")) == "day=12%3A30 %5Ba%5D/x=__HIVE_DEFAULT_PARTITION__"
