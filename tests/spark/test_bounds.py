"""Spark's own `where` leaves out files in its file index, and answers as on rows that stand in no table."""

import datetime
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.model.tuning import Tuning
from hoodie.storage.uri import open_storage
from hoodie.table import open_at
from pyspark_hoodie import java_code, native
from pyspark_hoodie.arrow_frame import changed_setting
from tests.effort import SOAK, long_but, soak_but
from tests.golden_tables import copy_golden

pytestmark = pytest.mark.spark

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
DAY = datetime.date(2024, 2, 29)
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


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(str(tuple(row)) for row in frame.collect())


def scans_of(frame: DataFrame) -> list[int]:
    """How many files each Parquet scan really read."""
    with changed_setting(frame.sparkSession, "spark.sql.adaptive.enabled", "false"):  # else leaves are stages
        again = frame.select("*")
        again.collect()
        leaves = again._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(at).metrics() for at in range(leaves.size())]
    return [each.apply("numFiles").value() for each in metrics if each.contains("numFiles")]


def files_read(frame: DataFrame) -> int:
    return sum(scans_of(frame))


def read(spark, path, **how) -> DataFrame:
    return pyspark_hoodie.HoodieTable.for_path(spark, str(path)).read(**how)


def plain(spark, table, frame: DataFrame) -> DataFrame:
    """The rows that the embedded engine reads, in no file."""
    return spark.createDataFrame(table.scan().to_arrow().to_pylist(), frame.schema)


@pytest.mark.long
@pytest.mark.parametrize("kind", soak_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
@pytest.mark.parametrize("options", LAYOUTS, ids=["plain", "encoded", "hive", "hive encoded"])
def test_every_layout_prunes_and_answers_as_without(spark, tmp_path, kind, options):
    for column, conditions in CONDITIONS.items():
        if column != "city" and len(options) == 1:
            continue
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
        door = pyspark_hoodie.HoodieTable.for_path(spark, str(tmp_path / column))
        for frame, answer in (
            (door.read(), table.scan().to_arrow()),
            (door.read(as_of=first), table.scan(as_of=first).to_arrow()),
        ):
            reference = spark.createDataFrame(answer.to_pylist(), frame.schema)
            everything = files_read(frame)
            for condition in conditions:
                found = frame.where(condition)
                assert rows_of(found) == rows_of(reference.where(condition)), condition
                assert files_read(found) < everything, condition


def in_four_partitions(path, kind="COPY_ON_WRITE", **more):
    """Each partition has ten numbers: from 0, 10, 20 and 30; a second commit changes those of the second to 100 and more."""
    table = hoodie.create_table(path, record_key="id", partition_by=["part"], table_type=kind, **more)
    pad = ["".join(random.Random(n).choices("abcdef", k=n * n % 70)) for n in range(40)]  # no two files of one size
    rows = pa.table(
        {"id": [f"{n:03}" for n in range(40)], "part": [str(n // 10) for n in range(40)], "n": range(40), "pad": pad}
    )
    table.insert(rows)
    table.upsert(rows.slice(10, 5).set_column(2, "n", pa.array(range(100, 105))))
    return table


FILES_OF_FILTERS = [
    ("TRUE", 5),
    ("part = '2'", 1),
    ("part = '1'", 2),
    ("n = 25", 1),
    ("n >= 100", 1),
    ("n > 38 AND n < 100", 1),
    ("15 > n AND n >= 10", 1),
    ("n IN (5, 35, 50)", 2),
    ("n NOT IN (5, 35)", 5),
    ("id < '002'", 1),
    ("id LIKE '03%'", 1),
    ("n = 5 OR part = '3'", 2),
    ("n IS NULL", 0),
    ("n = 1 AND part = '2'", 0),
    ("NOT (n <= 30 OR part = '9')", 2),
    ("n IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)", 2),
]


@pytest.mark.parametrize("case", long_but(FILES_OF_FILTERS[::3], FILES_OF_FILTERS), ids=lambda case: case[0])
def test_files_of_a_realtime_read_are_left_out_in_one_scan(spark, tmp_path_factory, case):
    condition, files = case
    table, path = realtime_table(tmp_path_factory)
    frame = read(spark, path)
    found = frame.where(condition)
    assert scans_of(found) == [files]
    assert rows_of(found) == rows_of(plain(spark, table, frame).where(condition))


_made = []


def realtime_table(tmp_path_factory):
    if not _made:
        path = tmp_path_factory.mktemp("realtime") / "t"
        _made.append((in_four_partitions(path, "MERGE_ON_READ"), path))
    return _made[0]


def test_several_columns(spark, tmp_path):
    rows = many().filter(pa.array([city not in ("", "a=b") for city in CITIES]))
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=["city", "day"])
    table.insert(rows)
    frame = read(spark, tmp_path / "t")
    everything = files_read(frame)
    for condition in ("city = 'sf'", "day = DATE'2024-02-29'", "city > 'a' AND day IS NULL", "n = 3"):
        assert rows_of(frame.where(condition)) == rows_of(plain(spark, table, frame).where(condition)), condition
        assert files_read(frame.where(condition)) < everything
    either = "city = 'sf' OR n = 3"  # Spark hands its file index no condition that needs the folder and the file
    assert rows_of(frame.where(either)) == rows_of(plain(spark, table, frame).where(either))
    assert files_read(frame.where("city = 'sf'")) == 1


def test_folders_of_a_timestamp_key_generator(spark, tmp_path):
    options = {
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
    }
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=["ms"], options=options)
    year = 366 * 24 * 3600 * 1000
    table.insert(pa.table({"id": [str(i) for i in range(8)], "ms": [i // 2 * year + i for i in range(8)]}))
    frame = read(spark, tmp_path / "t")
    assert [files_read(frame.where(text)) for text in ("TRUE", f"ms = {year + 2}", f"ms > {year + 3}")] == [4, 1, 2]


def test_a_table_of_apache_hudi_prunes_by_its_paths(spark, tmp_path):
    for name in ("v6_cow_simple", "v9_cow"):
        table = copy_golden(name, tmp_path / name)
        frame = read(spark, table.path)
        everything = files_read(frame)
        found = frame.where("part = 'a'")
        assert 1 <= files_read(found) < everything
        expected = hoodie.open_table(table.path).scan(where="part = 'a'").to_arrow()
        assert rows_of(found) == rows_of(spark.createDataFrame(expected.to_pylist(), frame.schema))
        assert files_read(frame.where("part = 'nowhere'")) == 0


ZONE = datetime.UTC
VALUES = {
    "b": ("BOOLEAN", pa.bool_(), [True, False]),
    "i": ("INT", pa.int32(), [-(2**31), -1, 0, 1, 7, 2**31 - 1]),
    "l": ("BIGINT", pa.int64(), [-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1]),
    "f": ("FLOAT", pa.float32(), [float("nan"), -0.0, 0.0, 1.5, -1.5, float("inf"), float("-inf"), 0.1]),
    "d": ("DOUBLE", pa.float64(), [float("nan"), -0.0, 0.0, 0.1, -1e300, float("inf"), float("-inf")]),
    "s": ("STRING", pa.string(), ["", "a", "A", "ab", "é", "\uffee", "😀", "😀a", "z" * 40, "\U0010ffff" * 40]),
    "c": (
        "DECIMAL(20,3)",
        pa.decimal128(20, 3),
        [Decimal(x) for x in ("-12345678901234567.891", "0.000", "0.001", "7")],
    ),
    "y": ("DATE", pa.date32(), [datetime.date(*d) for d in ((1, 1, 1), (1582, 10, 4), (1969, 12, 31), (2024, 2, 29))]),
    "t": (
        "TIMESTAMP",
        pa.timestamp("us", "UTC"),
        [datetime.datetime(*d, tzinfo=ZONE) for d in ((1900, 1, 1), (1969, 12, 31, 23, 59), (2024, 2, 29, 0, 0, 0, 1))],
    ),
    "u": (
        "TIMESTAMP_NTZ",
        pa.timestamp("us"),
        [datetime.datetime(*d) for d in ((1900, 1, 1), (1969, 12, 31, 23, 59), (2024, 2, 29, 0, 0, 0, 1))],
    ),
}


def literal(column, value):
    kind = VALUES[column][0]
    if value is None:
        return f"CAST(NULL AS {kind})"
    if isinstance(value, datetime.datetime):
        value = value.strftime("%Y-%m-%d %H:%M:%S.%f") + ("Z" if value.tzinfo else "")
        value = value.rjust(27 if value.endswith("Z") else 26, "0")
    if isinstance(value, datetime.date):
        value = value.isoformat()
    return f"CAST('{value}' AS {kind})"


def condition_of(choose, depth=2):
    if depth and choose.random() < 0.5:
        parts = [condition_of(choose, depth - 1) for _ in range(2)]
        joined = f" {choose.choice(['AND', 'OR'])} ".join(f"({part})" for part in parts)
        return f"NOT ({joined})" if choose.random() < 0.3 else joined
    column = choose.choice(list(VALUES))
    values = [literal(column, value) for value in [*VALUES[column][2], None]]
    shape = choose.choice(
        ["compared"] * 4 + ["turned", "in", "not in", "null", "not null", "like", "between", "eq true"]
    )
    operator = choose.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
    if shape == "compared":
        return f"{column} {operator} {choose.choice(values)}"
    if shape == "turned":
        return f"{choose.choice(values)} {operator} {column}"
    if shape in ("in", "not in"):
        count = choose.choice([1, 2, 3, 12])
        return f"{column} {shape} ({', '.join(choose.choices(values, k=count))})"
    if shape == "between":
        return f"{column} BETWEEN {choose.choice(values)} AND {choose.choice(values)}"
    if shape == "like":
        return f"s LIKE '{choose.choice(['a%', '😀%', 'é', '%a', 'z%', chr(0x10FFFF) + '%'])}'"
    if shape == "eq true":
        return choose.choice(["b", "NOT b", "b = true", "b IS NULL", "b IS NOT TRUE"])
    return f"{column} IS {shape.upper()}"


@pytest.mark.parametrize("filters", long_but([4], [4, 400 if SOAK else 40]))
@pytest.mark.parametrize("kind", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_random_filters_answer_as_on_rows_that_stand_nowhere(spark, tmp_path, kind, filters):
    choose = random.Random(7)
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=["part"], table_type=kind)

    def batch(ids):
        found = {"id": [str(i) for i in ids], "part": [str(i % 12) for i in ids]}
        for column, (_, arrow, values) in VALUES.items():
            # Few values in a partition, so that bounds leave out many.
            few = [choose.sample([*values, None], 2) for _ in range(12)]
            found[column] = pa.array([choose.choice(few[i % 12]) for i in ids], arrow)
        return pa.table(found)

    table.insert(batch(range(36)))
    table.upsert(batch(range(0, 36, 5)))
    table.upsert(batch([1, 2]))
    frame = read(spark, tmp_path / "t")
    reference = plain(spark, table, frame)
    with changed_setting(spark, "spark.sql.session.timeZone", "America/New_York"):
        everything = files_read(frame)
        fewer = 0
        for _ in range(filters):
            condition = condition_of(choose)
            found = frame.where(condition).select("id")
            assert rows_of(found) == rows_of(reference.where(condition).select("id")), condition
            fewer += files_read(found) < everything
    assert fewer > filters // 4


def test_frames_are_cached_joined_and_explained_as_any(spark, tmp_path):
    in_four_partitions(tmp_path / "t", "MERGE_ON_READ")
    one, other = (read(spark, tmp_path / "t") for _ in range(2))
    one.cache()
    try:
        assert one.count() == 40
        assert "InMemoryTableScan" in other.where("n = 5")._jdf.queryExecution().executedPlan().toString()
    finally:
        one.unpersist()
    joined = one.where("part = '2'").alias("a").join(other.where("n < 25").alias("b"), "id")
    assert joined.count() == 5
    assert one.where("n = 5").union(other.where("n = 25")).count() == 2
    one.createOrReplaceTempView("bounded")
    assert spark.sql("SELECT * FROM bounded WHERE n = (SELECT max(n) FROM bounded WHERE part = '3')").count() == 1
    assert spark.sql("SELECT * FROM bounded WHERE part IN (SELECT part FROM bounded WHERE n >= 100)").count() == 10
    assert files_read(spark.sql("SELECT n + 1 FROM (SELECT * FROM bounded) WHERE N = 25")) == 1
    assert "BoundedFileIndex" in one._jdf.queryExecution().executedPlan().toString()
    assert one.where("n = 5").inputFiles()
    spark.catalog.dropTempView("bounded")


@pytest.mark.smoke
@pytest.mark.parametrize("options", [{}, HIVE], ids=["plain", "hive"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_join_prunes_by_the_partitions_that_it_finds_as_it_runs(spark, tmp_path, kind, options):
    table = in_four_partitions(tmp_path / "t", kind, options=options)
    if kind == "MERGE_ON_READ":
        table.compact()
    names = spark.range(4).selectExpr("CAST(id AS STRING) AS part", "id AS number").where("number = 2")
    joined = read(spark, tmp_path / "t").join(F.broadcast(names), "part")
    assert files_read(joined) == 1
    assert sorted(row.id for row in joined.collect()) == [f"{n:03}" for n in range(20, 30)]


def test_a_filter_on_what_spark_says_of_files_is_not_one_on_a_column(spark, tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=["part"])
    table.insert(pa.table({"id": ["a", "b"], "part": ["1", "2"], "file_size": [1, 2]}))
    frame = read(spark, tmp_path / "t")
    assert frame.where("_metadata.file_size > 100").count() == 2
    assert frame.where("_metadata.file_size > 100 AND file_size = 2").count() == 1


def test_older_and_missing_columns(spark, tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=["part"])
    table.insert(pa.table({"id": ["a", "b"], "part": ["1", "2"], "n": pa.array([1, 2], pa.int32())}))
    table.insert(
        pa.table({"id": ["c", "d"], "part": ["3", "4"], "n": pa.array([2**40, 4], pa.int64()), "more": ["x", None]})
    )
    frame = read(spark, tmp_path / "t")
    for condition, files in (("more IS NOT NULL", 1), ("n = 2", 1), (f"n = {2**40}", 1), ("more IS NULL", 3)):
        found = frame.where(condition)
        assert rows_of(found) == rows_of(plain(spark, table, frame).where(condition)), condition
        assert files_read(found) == files, condition


def test_without_that_index_the_answer_is_the_same(spark, tmp_path, monkeypatch):
    in_four_partitions(tmp_path / "t")
    expected = rows_of(read(spark, tmp_path / "t").where("part = '1'"))
    assert len(expected) == 10
    given = java_code._java
    java = given("bounded_files.java", old_scala=spark.version < "4")
    for right, wrong in (
        ("public Object generate(", "not java"),
        ("each.hasNext(); found++", "each.hasNext(); found += 2"),
    ):
        assert right in java
        with monkeypatch.context() as patch:
            patch.setattr(
                java_code, "_java", lambda name, old=right, new=wrong, **to: given(name, **to).replace(old, new)
            )
            found = read(spark, tmp_path / "t").where("part = '1'")
            assert "BoundedFileIndex" not in found._jdf.queryExecution().executedPlan().toString()
            assert rows_of(found) == expected


def test_what_is_handed_over_is_bounded(spark, tmp_path, monkeypatch):
    in_four_partitions(tmp_path / "t")
    table = open_at(open_storage(tmp_path / "t"), tuning=Tuning(bounds_characters=10))
    frame = native.plan_frame(spark, table._context, table.scan().plan, where=None)
    assert files_read(frame.where("n = 5")) == 4  # nothing that commits state
    assert files_read(frame.where("part = '2'")) == 1
    monkeypatch.setattr(native, "text_of_bounds", lambda *_: "no json")
    frame = read(spark, tmp_path / "t")
    assert files_read(frame.where(F.col("n") == 5)) == 4
