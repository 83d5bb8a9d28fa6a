"""Where Spark has no file index of ours, as in Connect, folders of hive-style tables prune if their values are certain."""

import datetime

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from pyspark_hoodie import native

pytestmark = pytest.mark.spark

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
DAY = datetime.date(2024, 2, 29)
ROWS = pa.table(
    {
        "city": ["sf", "a b", "l/a%", "sf", "sf"],
        "id": ["a", "b", "c", "d", "e"],
        "day": pa.array([DAY, DAY, DAY, datetime.date(1969, 12, 31), DAY], pa.date32()),
        "number": pa.array([7, -7, 7, 7, None], pa.int32()),
        "n": [1, 2, 3, 4, 5],
    }
)
NAMES = ["city", "id", "day", "number", "n"]


@pytest.fixture(autouse=True)
def as_in_connect(monkeypatch):
    monkeypatch.setattr(native, "_is_classic", lambda spark: False)


def made(path, partitions, options, rows=ROWS):
    table = hoodie.create_table(path, record_key="id", partition_by=partitions, options=options)
    table.insert(rows)
    return table


def plan_of(frame: DataFrame) -> str:
    return frame._jdf.queryExecution().executedPlan().toString()


def part(plan: str, name: str) -> str:
    return plan.partition(f"{name}: [")[2].partition("]")[0]


def rows_of(frame: DataFrame) -> list[tuple]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.mark.parametrize(
    ("partitions", "condition", "told"),
    [
        (["city"], "TRUE", ""),
        (["city"], "city = 'sf'", "(city#"),
        (["city"], "city = 'a b'", "(city#"),
        (["city"], "city = 'l/a%'", "(city#"),
        (["day"], "day = DATE'2024-02-29'", "(day#"),
        (["number"], "number = -7", "(number#"),
        (["number"], "number IS NULL", "isnull(number#"),
        (["city", "day", "number"], "day < DATE'2000-01-01' AND number = 7", "(day#"),
    ],
    ids=str,
)
def test_a_later_filter_prunes_by_folders(spark, tmp_path, partitions, condition, told):
    made(tmp_path / "t", partitions, HIVE | ENCODED)
    pyspark_hoodie.enable(spark)
    try:
        frame = spark.read.format("hoodie").load(str(tmp_path / "t"))
        flat = made(tmp_path / "flat", [], {})
        expected = spark.createDataFrame(flat.scan().to_arrow().to_pylist(), frame.select(NAMES).schema)
        assert [field for field in frame.schema if field.name in NAMES] == list(expected.schema)
        found = frame.where(condition).select(NAMES)
        assert rows_of(found) == rows_of(expected.where(condition))
        assert told in part(plan_of(found), "PartitionFilters")
        assert part(plan_of(found), "PartitionFilters") or not told
    finally:
        pyspark_hoodie.disable()


def test_columns_keep_their_order_and_types(spark, tmp_path):
    made(tmp_path / "t", ["city", "number"], HIVE | ENCODED)
    table = pyspark_hoodie.HoodieTable.for_path(spark, str(tmp_path / "t"))
    frame = table.read()
    assert frame.columns == NAMES
    assert dict(frame.dtypes)["number"] == "int"
    assert table.read(columns=["n", "city", "number"]).columns == ["n", "city", "number"]
    one = table.read(columns=["n", "city"])  # of two partition columns
    assert "PartitionFilters: []" in plan_of(one.where("city = 'sf'"))
    assert rows_of(table.read(columns=["city"]).where("city = 'sf'")) == [("sf",)] * 3
    assert rows_of(table.read(where="city = 'sf'")) == rows_of(frame.where("city = 'sf'"))


@pytest.mark.parametrize(
    ("city", "options"),
    [
        ("a%20b", HIVE),
        ("", HIVE | ENCODED),
        ("__HIVE_DEFAULT_PARTITION__", HIVE | ENCODED),
        ("sf", ENCODED),
        ("x" * 40, HIVE),
    ],
    ids=["percent", "empty", "default", "not hive", "long"],
)
def test_values_come_from_the_files_where_a_folder_does_not_tell_them(spark, tmp_path, city, options):
    rows = ROWS.slice(0, 1).set_column(0, "city", pa.array([city]))
    made(tmp_path / "t", ["city"], options, rows)
    found = pyspark_hoodie.HoodieTable.for_path(spark, str(tmp_path / "t")).read().where(F.col("city") == city)
    assert rows_of(found.select("city", "id")) == [(city, "a")]
    assert part(plan_of(found), "PartitionFilters") == ""
