"""A later filter prunes in Spark's own file index, whatever folders are called, where commits state the values for certain."""

import datetime

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from pyspark_hoodie import file_index
from pyspark_hoodie.settings import changed_setting
from tests.effort import long_but

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
    assert "(city#" in part(plan_of(one.where("city = 'sf'")), "PartitionFilters")
    assert rows_of(table.read(columns=["city"]).where("city = 'sf'")) == [("sf",)] * 3
    assert table.read(columns=["city"]).where("city <> 'sf'").count() == 2
    assert rows_of(table.read(where="city = 'sf'")) == rows_of(frame.where("city = 'sf'"))


@pytest.mark.parametrize(
    ("city", "options", "prunes"),
    [
        ("a%20b", HIVE, True),
        ("", HIVE | ENCODED, True),
        ("__HIVE_DEFAULT_PARTITION__", HIVE | ENCODED, True),
        ("sf", ENCODED, True),
        ("x" * 40, HIVE, False),
        ("a\0b", ENCODED, False),
    ],
    ids=["percent", "empty", "default", "not hive", "long", "nul"],
)
def test_values_are_those_that_commits_state(spark, tmp_path, city, options, prunes):
    rows = ROWS.slice(0, 1).set_column(0, "city", pa.array([city]))
    made(tmp_path / "t", ["city"], options, rows)
    found = pyspark_hoodie.HoodieTable.for_path(spark, str(tmp_path / "t")).read().where(F.col("city") == city)
    assert rows_of(found.select("city", "id")) == [(city, "a")]
    assert bool(part(plan_of(found), "PartitionFilters")) == prunes


CITIES = [
    "sf",
    "SF",
    "a b",
    "x+y",
    "50%",
    "é",
    "[a]*",
    "",
    None,
    "01",
    "1",
    "a=b",
    "__HIVE_DEFAULT_PARTITION__",
    "null",
]
LAYOUTS = [{}, ENCODED, HIVE, HIVE | ENCODED]
CONDITIONS = {
    "city": [
        "city = 'sf'",
        "city = 'x+y'",
        "city = '50%'",
        "city IS NULL",
        "city IN ('', 'null', '01')",
        "city LIKE 'a%'",
    ],
    "day": ["day = DATE'2024-02-29'", "day < DATE'1970-01-01'", "day IS NULL"],
    "number": ["number = -7", "number >= 7", "number IS NULL", "number <=> NULL"],
    "big": ["big = 9007199254740993", "big = 1", "big IS NULL"],
    "flag": ["flag", "NOT flag", "flag IS NULL"],
}


def many():
    count = len(CITIES)
    return pa.table(
        {
            "id": [str(i) for i in range(count)],
            "city": CITIES,
            "day": pa.array([(DAY, datetime.date(1969, 12, 31), None)[i % 3] for i in range(count)], pa.date32()),
            "number": pa.array([(7, -7, None)[i % 3] for i in range(count)], pa.int32()),
            "big": pa.array([(9007199254740993, 1, None)[i % 3] for i in range(count)], pa.int64()),
            "flag": [(True, False, None)[i % 3] for i in range(count)],
            "n": list(range(count)),
        }
    )


def files_read(frame: DataFrame) -> int:
    with changed_setting(frame.sparkSession, "spark.sql.adaptive.enabled", "false"):  # else leaves are stages
        again = frame.select("*")
        again.collect()
        leaves = again._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(at).metrics() for at in range(leaves.size())]
    return sum(each.apply("numFiles").value() for each in metrics if each.contains("numFiles"))


def _with_row_copies_answers_are_the_same(spark, table, path, conditions):
    """They would be a second scan, which costs more than pruning saves: everything is one scan, and nothing is pruned."""
    frame = pyspark_hoodie.HoodieTable.for_path(spark, str(path)).read()
    plain = spark.createDataFrame(table.scan().to_arrow().to_pylist(), frame.schema)
    for condition in conditions:
        found = frame.where(condition)
        assert rows_of(found) == rows_of(plain.where(condition)), condition
        assert part(plan_of(found), "PartitionFilters") == ""


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    "options", long_but([{}, HIVE | ENCODED], LAYOUTS), ids=["plain", "encoded", "hive", "hive encoded"]
)
def test_every_layout_prunes_and_answers_as_without(spark, tmp_path, kind, options):
    for column, conditions in CONDITIONS.items():
        rows = many()
        if column == "city" and ENCODED.items() - options.items():
            rows = rows.filter(pa.array([city not in ("", "a=b") for city in CITIES]))
        table = hoodie.create_table(
            tmp_path / column, record_key="id", partition_by=[column], table_type=kind, options=options
        )
        table.insert(rows)
        first = table.history()[0].instant
        changed = rows.slice(0, 3).set_column(rows.schema.get_field_index("n"), "n", pa.array([100, 101, 102]))
        table.upsert(changed)
        if kind == "MERGE_ON_READ" and not HIVE.items() <= options.items():
            _with_row_copies_answers_are_the_same(spark, table, tmp_path / column, conditions)
            table.compact()
        door = pyspark_hoodie.HoodieTable.for_path(spark, str(tmp_path / column))
        for frame, answer in (
            (door.read(), table.scan().to_arrow()),
            (door.read(as_of=first), table.scan(as_of=first).to_arrow()),
        ):
            plain = spark.createDataFrame(answer.to_pylist(), frame.schema)
            everything = files_read(frame)
            for condition in conditions:
                found = frame.where(condition)
                assert rows_of(found) == rows_of(plain.where(condition)), condition
                assert f"{column}#" in part(plan_of(found), "PartitionFilters"), condition
                assert files_read(found) < everything, condition


def test_several_columns_and_timestamps(spark, tmp_path):
    rows = many().filter(pa.array([city not in ("", "a=b") for city in CITIES]))
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=["city", "day"])
    table.insert(rows)
    frame = pyspark_hoodie.HoodieTable.for_path(spark, str(tmp_path / "t")).read()
    plain = spark.createDataFrame(table.scan().to_arrow().to_pylist(), frame.schema)
    for condition in ("city = 'sf'", "day = DATE'2024-02-29'", "city > 'a' AND day IS NULL", "city = 'sf' OR n = 3"):
        assert rows_of(frame.where(condition)) == rows_of(plain.where(condition)), condition
    assert files_read(frame.where("city = 'sf'")) == 1
    assert "day#" in part(plan_of(frame.where("day IS NULL")), "PartitionFilters")


def test_without_that_index_the_answer_is_the_same(spark, tmp_path, monkeypatch):
    made(tmp_path / "t", ["city"], {}, ROWS.filter(pa.array([True, True, False, True, True])))
    door = pyspark_hoodie.HoodieTable.for_path(spark, str(tmp_path / "t"))
    expected = rows_of(door.read().where("city = 'sf'"))
    assert len(expected) == 3
    for broken in ("public Object generate(", "files().size()"):
        other = "not java" if broken.startswith("public") else "files().size() + 1"
        java = file_index._JAVA.replace(broken, other)
        assert java != file_index._JAVA
        with monkeypatch.context() as patch:
            patch.setattr(file_index, "_JAVA", java)
            found = door.read().where("city = 'sf'")
            assert part(plan_of(found), "PartitionFilters") == ""
            assert rows_of(found) == expected
