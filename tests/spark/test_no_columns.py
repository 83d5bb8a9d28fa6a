"""Rows that are wanted without columns are counted all the same."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.enums import TableType
from pyspark_hoodie import HoodieTable

pytestmark = pytest.mark.spark


@pytest.fixture(params=list(TableType))
def table(tmp_path, request):
    made = hoodie.create_table(tmp_path / "t", record_key="id", ordering="n", table_type=request.param)
    made.upsert(pa.table({"id": ["a", "b", "c"], "n": [1, 2, 3]}))
    made.upsert(pa.table({"id": ["c", "d"], "n": [30, 40]}))
    return made


def test_no_columns_by_an_option(door, load, table):
    frame = load(table.uri.removeprefix("file://"), columns="")
    assert (frame.columns, frame.count()) == ([], 4)


def test_no_columns_by_an_argument(spark, table):
    opened = HoodieTable.for_path(spark, table.uri)
    first = table.timeline.commits[0].time
    assert opened.read(columns=[]).count() == 4
    assert opened.read(columns=[], where="n > 2").count() == 2
    assert opened.changes(since=first, columns=[]).count() == 2
    feed = opened.changes(since=first, columns=[], images="before_after")
    assert sorted(row["op"] for row in feed.collect()) == ["i", "u"]
