"""The picture of README.md shows the figures of the results page."""

import re

import pytest

from benchmarks.picture import PICTURE, RESULTS, bars, picture
from tests.pages import ROOT

PAGE = (ROOT / RESULTS).read_text(encoding="utf-8")


def test_the_picture_is_that_of_the_results():
    assert (ROOT / PICTURE).read_text(encoding="utf-8") == picture(PAGE)


def test_a_bar_is_as_long_as_its_figure():
    widths = [float(width) for width in re.findall(r'width="([\d.]+)" height="17"', picture(PAGE))]
    shown = [bar for case in ("upsert", "full scan, snapshot, before compaction") for bar in bars(PAGE, case)]
    assert len(shown) == len(widths) == 12
    first = shown[:6]
    longest = max(bar.cpu_s for bar in first)
    assert [bar.cpu_s / longest for bar in first] == pytest.approx([width / 300 for width in widths[:6]], abs=0.001)


def test_names_and_figures_come_from_their_own_rows():
    assert [bar.name for bar in bars(PAGE, "upsert")][:4] == ["plain Spark, append", "hoodie", "Iceberg", "Delta"]
    row = next(line for line in PAGE.split("## Spark 4\n")[1].splitlines() if line.startswith("| upsert |"))
    assert [f"/ {bar.cpu_s:.2f}" in row for bar in bars(PAGE, "upsert")[:4]] == [True] * 4
