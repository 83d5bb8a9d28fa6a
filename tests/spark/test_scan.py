"""Spark's own Parquet scan under a plan: it reads what the embedded engine reads, whatever the folders are called."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hoodie
from hoodie.errors import InstantNotFoundError, SchemaError
from hoodie.model.instant import InstantRange, InstantTime
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.write.schema import storable
from pyspark_hoodie import HoodieTable, dataframe, native
from pyspark_hoodie.arrow_frame import changed_setting
from pyspark_hoodie.schema import arrow_schema
from tests.effort import long_but
from tests.rows import rows_of
from tests.spark.conftest import arrow_of, options_of

pytestmark = pytest.mark.spark

DDL = "id string, part string, qty int, ts long"
ODD = [
    "a b",
    "50%",
    "a%20b",
    "[x]",
    "{y,z}",
    "st*r",
    "wh?t",
    "ünï",
    "_under",
    ".dot",
    "1",
    "01",
    "2024-01-01",
    "back\\slash",
]


def same(frame, scan):
    assert rows_of(arrow_of(frame)) == rows_of(scan.to_arrow())


@pytest.mark.parametrize("style", ["plain", "hive_style", "url_encoded"])
def test_folder_names_neither_hide_files_nor_make_columns(door, load, tmp_path, style):
    path = tmp_path / "t"
    parts = [*ODD, "k:v", "a=b", "x#y"] if style == "url_encoded" else ODD
    df = door.createDataFrame([(str(n), part, n, 1) for n, part in enumerate(parts)], DDL)
    df.write.format("hoodie").options(
        **options_of(),
        **{
            "hoodie.datasource.write.hive_style_partitioning": style == "hive_style",
            "hoodie.datasource.write.partitionpath.urlencode": style == "url_encoded",
        },
    ).mode("append").save(str(path))
    frame = load(path)
    assert frame.columns == [*META_COLUMNS, "id", "part", "qty", "ts"]
    assert sorted(row["part"] for row in frame.collect()) == sorted(parts)


def test_a_number_as_partition_keeps_its_type(enabled, tmp_path):
    path = str(tmp_path / "t")
    df = enabled.createDataFrame([("k", 7, 1)], "id string, part long, ts long")
    df.write.format("hoodie").options(**options_of()).option(
        "hoodie.datasource.write.hive_style_partitioning", "true"
    ).save(path)
    frame = enabled.read.format("hoodie").load(path)
    assert dict(frame.dtypes)["part"] == "bigint"
    assert frame.where("part = 7").count() == 1


def test_slices_with_and_without_logs_meet_in_one_frame(door, load, tmp_path):
    path = tmp_path / "t"
    options = options_of(hoodie_datasource_write_table_type="MERGE_ON_READ")
    for ids, parts in ((range(20), "abc"), (range(5), "a")):
        rows = [(str(n), part, n * len(parts), len(parts) % 3 + 1) for n in ids for part in parts]
        df = door.createDataFrame(rows, DDL)
        df.write.format("hoodie").options(**options).mode("append").save(str(path))
    table = hoodie.open_table(path)
    assert {bool(file_slice.logs) for file_slice in table.files()} == {True, False}
    same(load(path), table.scan(meta_columns=True))
    since = table.timeline.commits[0].time
    pulled = load(
        path,
        **{"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": since},
    )
    same(pulled, table.changes(since=since, meta_columns=True))
    assert pulled.count() == 5


def test_base_files_alone_are_sparks_own_scan(enabled, tmp_path):
    path = str(tmp_path / "t")
    df = enabled.range(0, 50).select(
        F.col("id").cast("string"), F.lit("a").alias("part"), F.lit(1).alias("ts"), F.col("id").alias("qty")
    )
    df.write.format("hoodie").options(**options_of()).save(path)
    frame = enabled.read.format("hoodie").option("where", "qty >= 40").load(path).select("id")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "FileScan parquet" in plan
    assert "MapInArrow" not in plan
    assert "PushedFilters: [IsNotNull(qty), GreaterThanOrEqual(qty,40)]" in plan
    assert "ReadSchema: struct<id:string,qty:bigint>" in plan
    assert frame.count() == 10


FILTERS = [
    "qty > 3",
    "qty > 3 and not part = 'b'",
    "qty in (1, 3, 5)",
    "qty not in (1, 3, 5)",
    "note is null",
    "note is not null or qty = 2",
    "note = 'it''s'",
    'qty between 2 and 4 and "odd_name" <> 7',
    "QTY < -1 or x > 1.5",
    "x > 0",
    "not x > 0",
    "x <> 1",
    "x <= 2.5",
    "1 < x",
    "at in ('2009-02-13 23:31:31', '2009-02-14 00:31:32+01:00')",
    "at >= '2009-02-13 23:31:31'",
    "day = '1970-01-03'",
    "wall < '2024-05-06 07:08:10'",
    "flag",
    "flag = true and note <> 'n'",
    "ts = ts",
    "true",
    "null",
    "qty > 1.5",
    "qty in (1.0, 2.5, null)",
    "qty not in (1.5, 3)",
    "qty = 99999999999999999999",
    "qty < 3000000000",
    "big > 9007199254740992.5",
    "big = 9007199254740993",
    "big >= x or x is null",
    "big > x",
    "x < big",
    "x <> big",
    "qty < x",
    "zero = 0",
    "zero >= 0",
    "zero <= -0.0",
    "zero in (0.0, 7)",
    "zero not in (0.0, 7)",
    "zero <> 0",
    "x < 1e400",
    "x = 'nan'",
    "x <> 'nan'",
    "x > 1 is null",
    "x > 1 is not true",
    "note like 'it''%'",
    "note not like '%n%'",
    "note ilike 'IT_S'",
    "note like 'i!%' escape '!'",
    "price > 1.005",
    "price in (1.25, '2.5', 1.001)",
    "price > qty",
    "price not between 0.5 and 1",
    "day = at",
    "day < at",
    "wall > day",
    "wall in ('2024-05-06 07:08:09')",
    "raw = 'a'",
    "raw in ('a', 'b')",
    "(qty > 2 or note is null) is not null and not flag",
]


@pytest.fixture(scope="module")
def many(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "t"
    df = spark.sql(
        """select cast(id as string) id, substr('abc', 1 + id % 3, 1) part, 1L ts, cast(id - 2 as int) qty,
        case id % 4 when 0 then null when 1 then 'it''s' else 'n' end note, id odd_name,
        case id % 5 when 0 then double('NaN') when 1 then null else id / 4 end x,
        timestamp_micros(1234567890000000 + id * 1000000) at, date_add(date'1970-01-01', cast(id % 4 as int)) day,
        timestamp_ntz'2024-05-06 07:08:00' + make_dt_interval(0, 0, 0, id) wall, id % 2 = 0 flag,
        9007199254740992 + id % 3 - 1 big, -0.0d zero, cast(id / 4 as decimal(10, 2)) price,
        cast(substr('abc', 1 + id % 3, 1) as binary) raw
        from range(20)"""
    )
    dataframe.write(df, str(path), options_of())
    return path


@pytest.mark.parametrize("where", long_but(FILTERS[::4], FILTERS))
def test_a_filter_means_in_spark_what_it_means_embedded(enabled, many, where):
    zone = enabled.conf.get("spark.sql.session.timeZone")
    enabled.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = enabled.read.format("hoodie").options(where=where, columns="id").load(str(many))
        found = sorted(row["id"] for row in frame.collect())
    finally:
        enabled.conf.set("spark.sql.session.timeZone", zone)
    expected = sorted(hoodie.open_table(many).scan(columns=["id"], where=where).to_arrow().column("id").to_pylist())
    assert found == expected


def test_a_list_of_conditions_means_in_spark_what_it_means_embedded(enabled, many):
    where = [[("qty", ">", 1.5), ("note", "in", ["n"])], [("x", "=", 0)]]
    frame = HoodieTable.for_path(enabled, str(many)).read(columns=["id"], where=where)
    assert "FileScan parquet" in frame._jdf.queryExecution().executedPlan().toString()
    same(frame, hoodie.open_table(many).scan(columns=["id"], where=where))


@pytest.mark.parametrize("begin", [None, "20260101000001", "20260101000001500", "000"])
@pytest.mark.parametrize("end", [None, "20260101000003", "20260101000003500"])
def test_times_of_seconds_and_of_milliseconds_are_in_the_same_range_as_embedded(spark, begin, end):
    times = [f"2026010100000{s}{ms}" for s in range(5) for ms in ("", "000", "500", "999")]
    frame = spark.createDataFrame([(time,) for time in times], "_hoodie_commit_time string")
    span = InstantRange(begin and InstantTime(begin), end and InstantTime(end))
    found = {row[0] for row in frame.where(native._committed_in(span)).collect()}
    assert found == {time for time in times if span.contains(time)}


def test_a_moment_counted_back_from_now(enabled, load, tmp_path):
    path = str(tmp_path / "t")
    table = hoodie.create_table(path, record_key="id")
    done = table.insert(pa.table({"id": ["a"]}))
    assert (
        load(
            path,
            **{
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": "2 hours ago",
            },
        ).count()
        == 1
    )
    with pytest.raises(InstantNotFoundError, match="before the first commit"):
        load(path, **{"as.of.instant": "2 hours ago"})
    opened = HoodieTable.for_path(enabled, path)
    assert opened.read(as_of=done).count() == 1
    assert opened.changes(since=datetime.now(UTC) - timedelta(hours=1)).count() == 1
    assert opened.changes(since=done).count() == 0


def test_a_table_is_created_with_the_schema_of_a_frame_of_spark(enabled, tmp_path):
    ddl = "id string not null, b byte, d decimal(9,3), t timestamp, n timestamp_ntz, a array<struct<x: int>>, m map<string, date>"
    frame = enabled.createDataFrame([], ddl)
    for number, given in enumerate((frame, frame.schema)):
        table = hoodie.create_table(tmp_path / str(number), given, record_key="id")
        expected = storable(arrow_schema(frame.schema))
        assert table.schema.equals(expected)


def test_is_table_and_how_a_table_shows_itself(spark, tmp_path):
    path = str(tmp_path / "t")
    assert not HoodieTable.is_table(spark, path)
    hoodie.create_table(path, record_key="id")
    assert HoodieTable.is_table(spark, path)
    table = HoodieTable.for_path(spark, path)
    assert repr(table) == f"<HoodieTable {path}: COPY_ON_WRITE, version 6>"
    assert "hoodie table t" in table._repr_html_()
    assert table.history() == []
    for rows in (pa.table({"id": ["a"]}), [{"id": "a"}]):
        with pytest.raises(SchemaError, match="give a DataFrame of Spark"):
            table.upsert(rows)


OLD = ["0001-01-01", "1582-10-04", "1582-10-05", "1582-10-10", "1582-10-14", "1582-10-15", "1883-11-18", "9999-12-30"]


@pytest.fixture(scope="module")
def old_days(tmp_path_factory):
    """A file for each day, two of them with a log: no file has a day beside the one that Spark takes it for."""
    days = pa.array(OLD).cast(pa.timestamp("us"))
    data = {"id": range(len(OLD)), "d": days.cast(pa.date32()), "t": days.cast(pa.timestamp("us", "UTC")), "n": days}
    rows = pa.table({**data, "part": pa.array([str(at) for at in range(len(OLD))])})
    table = hoodie.create_table(
        tmp_path_factory.mktemp("old") / "t", record_key="id", partition_by="part", table_type="MERGE_ON_READ"
    )
    table.bulk_insert(rows)
    table.upsert(rows.slice(2, 2))
    return table


@pytest.mark.parametrize("column", ["d", "t", "n"])
def test_days_that_the_julian_calendar_lacks_are_found(enabled, old_days, column):
    operators = ["= '{}'", "< '{}'", ">= '{}'", "!= '{}'", "in ('{}', '0001-01-01')"]
    asked = [each.format("1582-10-10") for each in operators] + ["= '1582-10-05'", "> '1582-10-14'"]
    for where in (f"{column} {each}" for each in asked):
        frame = enabled.read.format("hoodie").option("where", where).load(old_days.uri)
        found = [row["id"] for row in frame.select("id").collect()]
        assert sorted(found) == sorted(old_days.scan(["id"], where).to_arrow()["id"].to_pylist()), where


FILTERS = ("= '1582-10-10'", ">= '1582-10-10'", "< '1582-10-10'", "in ('1582-10-05', '0001-01-01')")


@pytest.mark.parametrize("column", ["d", "t"])
def test_sparks_own_filter_finds_them_by_its_newer_dates(enabled, old_days, column):
    frame = enabled.read.format("hoodie").load(old_days.uri)
    with changed_setting(enabled, "spark.sql.datetime.java8API.enabled", "true"):
        found = {
            text: [row["id"] for row in frame.where(f"{column} {text}").select("id").collect()] for text in FILTERS
        }
    assert {text: sorted(ids) for text, ids in found.items()} == {
        text: sorted(old_days.scan(["id"], f"{column} {text}").to_arrow()["id"].to_pylist()) for text in FILTERS
    }
