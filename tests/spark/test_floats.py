"""Filters on floating columns find in Spark what Spark finds in the rows themselves: NaN is the greatest number, -0.0 is 0.0."""

import json
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hoodie
from hoodie.format.parquet_footer import SOUND_FLOATS
from tests.effort import long_but

pytestmark = pytest.mark.spark

NAN = float("nan")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("s", pa.struct([("f", pa.float64()), ("n", pa.int64())])),
        ("n", pa.int64()),
    ]
)
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
VALUES = {
    "nan": [NAN, 0.5, 1.0, None],
    "minus zero": [-0.0] * 4,
    "zero": [0.0] * 4,
    "zeros": [0.0, -0.0, None, 0.0],
    "numbers": [2.0, 3.0, 2.0, 4.0],
    "all nan": [NAN] * 4,
}
TIMES = 50
"""Each of them comes so often: a file of few rows has no dictionaries, by which Spark passes over values, too."""
CONDITIONS = [
    *[f"{column} {how}" for column in ("f", "g", "s.f") for how in ("> 1", "= 0.0D", ">= 0.0D", "<= -0.0D", "= -0.0D")],
    "f in (0.0D, 1.0D)",
    "f <= 0.0",
    "f != 2",
    "not f <= 1",
    "f > 1 and n = 1",
    "f = double('NaN')",
    "f is null",
]


def rows(values, first=0):
    found = [{"id": f"k{first + i}", "f": v, "g": v, "s": {"f": v, "n": i}, "n": i} for i, v in enumerate(values)]
    return pa.Table.from_pylist(found, schema=SCHEMA)


def load(spark, path, **options):
    return spark.read.format("hoodie").options(**options).load(str(path))


def assert_filters_agree(frame):
    """All conditions in one query, each with a scan of its own, against what they are in the rows."""
    found = reduce(DataFrame.union, [frame.where(condition).select("id", F.lit(condition)) for condition in CONDITIONS])
    expected = frame.localCheckpoint().select("id", *[F.expr(condition).alias(condition) for condition in CONDITIONS])
    wanted = {(row["id"], condition) for row in expected.collect() for condition in CONDITIONS if row[condition]}
    assert {tuple(row) for row in found.collect()} == wanted


def as_arrow_writes(path):
    """The table's base files written anew by Arrow alone, and commits that do not say how they were written."""
    sizes = {}
    for file in path.glob("*.parquet"):
        table = pq.read_table(file)
        entries = {key: value for key, value in pq.read_metadata(file).metadata.items() if key != b"ARROW:schema"}
        pq.write_table(table.replace_schema_metadata(entries), file, store_schema=False)
        sizes[file.name] = file.stat().st_size
    for file in path.glob(".hoodie/*.commit"):
        commit = json.loads(file.read_text())
        assert commit["extraMetadata"].pop(SOUND_FLOATS) == "true"
        for stat in (stat for stats in commit["partitionToWriteStats"].values() for stat in stats):
            stat["fileSizeInBytes"] = sizes.get(stat["path"], stat["fileSizeInBytes"])
        file.write_text(json.dumps(commit))


@pytest.mark.parametrize("name", long_but(["zeros"], VALUES))
@pytest.mark.parametrize("written", ["now", "by arrow"])
def test_a_filter_finds_what_it_finds_in_the_rows(enabled, tmp_path, name, written):
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id")
    table.insert(rows(VALUES[name] * TIMES))
    if written == "by arrow":
        as_arrow_writes(path)
    frame = load(enabled, path)
    assert frame.count() == 4 * TIMES
    assert_filters_agree(frame)
    pushed = frame.where("f > 1")._jdf.queryExecution().executedPlan().toString().partition("PushedFilters: [")[2]
    assert ("GreaterThan(f,1.0)" in pushed.partition("]")[0]) == (written == "now")
    for where in ("f = 0.0", "f >= 0.0"):
        assert load(enabled, path, where=where).count() == hoodie.open_table(path).scan(where=where).to_arrow().num_rows


@pytest.mark.long
@pytest.mark.parametrize("table_type", TYPES)
def test_every_query_of_a_table_with_changes_finds_them(enabled, tmp_path, table_type):
    """Base files and row copies: realtime, read-optimized, incremental, and after a compaction."""
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id", table_type=table_type)
    first = table.insert(rows([0.5, 1.0, 0.0, 1.0] * TIMES))
    table.upsert(rows([NAN, -0.0], first=1))
    table.upsert(rows([-0.0]))
    assert_filters_agree(load(enabled, path))
    assert_filters_agree(load(enabled, path, **{"hoodie.datasource.query.type": "read_optimized"}))
    begin = {"hoodie.datasource.read.begin.instanttime": first.instant}
    pull = load(enabled, path, **{"hoodie.datasource.query.type": "incremental"}, **begin)
    assert pull.count() == 3
    assert_filters_agree(pull)
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert_filters_agree(load(enabled, path))


def test_a_file_of_several_row_groups_is_passed_over_only_where_it_has_none(enabled, tmp_path):
    """The first row groups have no NaN, the last one has: those without keep their bounds."""
    count = 3_000_000
    values = pa.array([1.0] * count).to_numpy().copy()
    values[-1] = NAN
    table = hoodie.create_table(tmp_path / "t", record_key="n")
    table.bulk_insert(pa.table({"n": pa.array(range(count), pa.int64()), "f": values}))
    frame = load(enabled, tmp_path / "t").where("f > 1").select("n")
    assert [row["n"] for row in frame.collect()] == [count - 1]
    (file,) = (tmp_path / "t").glob("*.parquet")
    metadata = pq.read_metadata(file)
    column = metadata.schema.names.index("f")
    bounds = [
        metadata.row_group(group).column(column).statistics.has_min_max for group in range(metadata.num_row_groups)
    ]
    assert len(bounds) > 1
    assert bounds == [True] * (len(bounds) - 1) + [False]
