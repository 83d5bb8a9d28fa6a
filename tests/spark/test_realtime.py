"""Realtime views of slices with logs are native Parquet scans, and their rows are those of the embedded engine."""

import random
import re
import shutil
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hoodie
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.names import ROW_COPIES, name_of
from hoodie.read.deletion_vectors import ScanFile
from pyspark_hoodie import HoodieTable, deletion_filter, native
from pyspark_hoodie.arrow_frame import arrow_frame, changed_setting
from pyspark_hoodie.deletion_filter import scans_of, without_deleted_rows
from tests.effort import long_but
from tests.rows import rows_of
from tests.spark.conftest import arrow_of

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("qty", pa.int64()), ("ts", pa.int64())])
OPTIONS = {"hoodie.parquet.small.file.limit": "0"}


def rows(*values):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, each, strict=True)) for each in values], schema=SCHEMA)


def new_table(path, more=None):
    return hoodie.create_table(
        path, record_key="id", partition_by="part", ordering="ts", table_type="MERGE_ON_READ", options=more or {}
    )


@pytest.fixture
def changed(tmp_path):
    """Two partitions; updates, a late row, deletes and new rows over three rounds."""
    table = new_table(tmp_path / "t")
    table.upsert(rows(*[(f"k{n:02}", "ab"[n % 2], n, 5) for n in range(40)]))
    table.upsert(rows(("k00", "a", 100, 6), ("k01", "b", 101, 6), ("k02", "a", -2, 4)))
    table.delete(rows(("k03", "b", 0, None), ("k04", "a", 0, None)))
    table.upsert(rows(("k00", "a", 200, 7), ("k04", "a", 204, 7), ("k06", "a", 206, 5), ("n1", "a", 1, 1)), OPTIONS)
    return tmp_path / "t"


def load(spark, path, **options):
    return spark.read.format("hoodie").options(**options).load(str(path))


def plan_of(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def same(frame, scan):
    assert "MapInArrow" not in plan_of(frame)
    assert frame.columns == scan.schema.names
    assert rows_of(arrow_of(frame)) == rows_of(scan.to_arrow())


def incremental(spark, path, since, until):
    return load(
        spark,
        path,
        **{
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": since,
            "hoodie.datasource.read.end.instanttime": until,
        },
    )


def test_every_view_is_native_and_gives_the_embedded_rows(enabled, changed):
    table = hoodie.open_table(changed)
    same(load(enabled, changed), table.scan(meta_columns=True))
    times = [instant.time for instant in table.timeline.commits]
    for number, time in enumerate(times):
        same(load(enabled, changed, **{"as.of.instant": time}), table.scan(as_of=time, meta_columns=True))
        if number:
            since = times[number - 1]
            same(incremental(enabled, changed, since, time), table.changes(since, time, meta_columns=True))
    same(incremental(enabled, changed, times[0], times[-1]), table.changes(times[0], times[-1], meta_columns=True))


@pytest.mark.smoke
def test_columns_are_pruned_and_filters_pushed(enabled, changed):
    frame = load(enabled, changed).where("qty >= 100").select("id")
    plan = plan_of(frame)
    sizes = [file.stat().st_size for file in changed.rglob("*.parquet")]
    alike = len(sizes) - len(set(sizes))  # by chance; such a file may need a scan of its own
    assert 1 <= plan.count("FileScan parquet") <= 1 + alike
    assert "PushedFilters: [IsNotNull(qty), GreaterThanOrEqual(qty,100)]" in plan
    assert "ReadSchema: struct<id:string,qty:bigint,_tmp_metadata_row_index:bigint>" in plan
    assert "_tmp_hoodie_mark" in plan  # which file a row is of costs nothing
    assert "file_size" not in plan
    assert "Exchange" not in plan
    assert "Join" not in plan
    assert sorted(row["id"] for row in frame.collect()) == ["k00", "k01", "k04", "k06"]


FILTERS = ["qty = 0", "qty = 1", "qty < 4", "id in ('k02', 'k03')", "qty = 100", "ts = 6"]


@pytest.mark.parametrize("where", long_but(FILTERS[::2], FILTERS))
def test_no_filter_brings_a_replaced_row_back(enabled, changed, where):
    expected = hoodie.open_table(changed).scan(where=where, meta_columns=True)
    same(load(enabled, changed).where(where), expected)
    same(load(enabled, changed, where=where), expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.sources.useV1SourceList", ""),
        ("spark.sql.execution.arrow.maxRecordsPerBatch", "0"),
        ("spark.sql.execution.arrow.maxRecordsPerBatch", "-1"),
    ],
)
def test_settings_of_the_session_change_no_answer(enabled, changed, name, value):
    before = enabled.conf.get(name)
    enabled.conf.set(name, value)
    try:
        same(load(enabled, changed), hoodie.open_table(changed).scan(meta_columns=True))
        assert enabled.conf.get(name) == value
    finally:
        enabled.conf.set(name, before)


@pytest.mark.parametrize(
    "name", ["_metadata", "_tmp_metadata_row_index", "_TMP_metadata_row_index", "_tmp_hoodie_mark"]
)
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_columns_may_be_named_as_spark_names_its_own(enabled, tmp_path, name, kind):
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type="MERGE_ON_READ")
    named = pa.table({"id": ["a", "b", "c"], name: pa.array([7, 8, 9]).cast(kind)})
    table.upsert(named)
    table.upsert(named.slice(1, 1))
    frame = load(enabled, tmp_path / "t").where(F.col(name) != 9)
    assert sorted((row["id"], row[name]) for row in frame.select("id", name).collect()) == [
        (each["id"], each[name]) for each in named.slice(0, 2).to_pylist()
    ]


@pytest.mark.parametrize("which", ["empty first", "empty between", "empty last", "all empty"])
def test_slices_whose_logs_add_no_row_end_no_others(enabled, tmp_path, which):
    """Logs that are decoded on the driver; Spark 4.3 took an empty batch for the end of the rows."""
    table = new_table(tmp_path / "t", {"hoodie.python.mor.row.copies": "false"})
    table.upsert(rows(*[(f"k{part}{n}", part, n, 5) for part in "abcd" for n in range(5)]))
    empty = {"empty first": "a", "empty between": "bc", "empty last": "d", "all empty": "abcd"}[which]
    table.delete(rows(*[(f"k{part}{n}", part, 0, None) for part in empty for n in range(2)]))
    if changed := [(f"k{part}4", part, 100, 6) for part in "abcd" if part not in empty]:
        table.upsert(rows(*changed), OPTIONS)
    assert rows_of(arrow_of(load(enabled, tmp_path / "t").select(*SCHEMA.names))) == rows_of(table.scan().to_arrow())


@pytest.mark.parametrize("lengths", [(0, 1, 2), (1, 0, 2), (1, 0, 0, 2), (1, 2, 0), (0, 0), ()])
def test_a_frame_of_arrow_data_has_the_rows_of_all_batches(spark, lengths):
    batches = [rows(*[(f"k{at}{n}", "a", n, 5) for n in range(length)]) for at, length in enumerate(lengths)]
    table = pa.concat_tables(batches) if batches else SCHEMA.empty_table()
    assert arrow_of(arrow_frame(spark, table)).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("how", ["missing", "cut", "foreign"])
def test_a_lost_copy_costs_speed_only(enabled, changed, how):
    for path in (changed / ROW_COPIES).iterdir():
        if how == "missing":
            path.unlink()
        else:
            path.write_bytes(b"nothing" if how == "foreign" else path.read_bytes()[:-20])
    frame = load(enabled, changed)
    assert rows_of(arrow_of(frame)) == rows_of(hoodie.open_table(changed).scan(meta_columns=True).to_arrow())


def test_files_of_older_columns_are_scans_of_their_own(enabled, tmp_path):
    table = new_table(tmp_path / "t")
    narrow = SCHEMA.set(2, pa.field("qty", pa.int32()))
    table.upsert(rows(*[(f"k{n}", "a", n, 5) for n in range(9)]).cast(narrow))
    table.upsert(rows(("k1", "a", 11, 6)).cast(narrow))
    wide = rows(("k2", "a", 2**40, 7), ("k1", "a", 12, 4)).append_column("more", pa.array(["x", None]))
    hoodie.open_table(tmp_path / "t").upsert(wide)
    same(load(enabled, tmp_path / "t"), hoodie.open_table(tmp_path / "t").scan(meta_columns=True))


def test_rows_of_decoded_logs_keep_their_values_in_any_time_zone(enabled, tmp_path):
    """Without copies, small logs are handed over as Arrow data."""
    nested = pa.struct([("n", pa.int32()), ("tags", pa.list_(pa.string()))])
    columns = {
        "id": pa.array(["k1", "k2"]),
        "part": pa.array(["a", "a"]),
        "ts": pa.array([1, 1]),
        "at": pa.array([1_700_000_000_000_001, None], pa.timestamp("us", "UTC")),
        "wall": pa.array([1, 2], pa.timestamp("us")),
        "day": pa.array([1, None], pa.date32()),
        "price": pa.array([Decimal("1.20"), None], pa.decimal128(10, 2)),
        "raw": pa.array([b"x", None]),
        "inner": pa.array([{"n": 1, "tags": ["a", None]}, None], nested),
        "pairs": pa.array([[("a", 1.5)], None], pa.map_(pa.string(), pa.float64())),
    }
    off = {"hoodie.python.mor.row.copies": "false"}
    table = new_table(tmp_path / "t")
    for number in range(2):
        table.upsert(pa.table({**columns, "ts": pa.array([1 + number, 1 - number])}), off)
    zone = enabled.conf.get("spark.sql.session.timeZone")
    enabled.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = load(enabled, tmp_path / "t")
        assert "MapInArrow" not in plan_of(frame)
        found = rows_of(arrow_of(frame))
    finally:
        enabled.conf.set("spark.sql.session.timeZone", zone)
    expected = table.scan(meta_columns=True).to_arrow()
    kinds = arrow_of(frame).schema
    assert found == rows_of(expected.cast(kinds))
    assert expected.num_rows == 2


@pytest.mark.parametrize("seed", long_but([0], range(3)))
def test_random_histories_read_as_embedded(enabled, tmp_path, seed):
    chance = random.Random(seed)
    table = new_table(tmp_path / "t")
    for number in range(6):
        some = [
            (f"k{chance.randrange(60)}", chance.choice("abc"), number * 100 + n, chance.choice([None, *range(9)]))
            for n in range(chance.randrange(1, 50))
        ]
        if number and chance.random() < 0.3:
            table.delete(rows(*some).select(["id", "part"]))
        else:
            table.upsert(rows(*some), OPTIONS)
        if chance.random() < 0.2:
            table.schedule_compaction() if chance.random() < 0.5 else table.compact()
    times = [instant.time for instant in table.timeline.commits]
    same(load(enabled, tmp_path / "t"), table.scan(meta_columns=True))
    time = chance.choice(times)
    same(load(enabled, tmp_path / "t", **{"as.of.instant": time}), table.scan(as_of=time, meta_columns=True))
    pulled = arrow_of(incremental(enabled, tmp_path / "t", time, times[-1]))
    assert rows_of(pulled) == rows_of(table.changes(time, times[-1], meta_columns=True).to_arrow())


def test_row_numbers_are_those_of_the_file_where_row_groups_and_pages_are_skipped(spark, tmp_path):
    path = tmp_path / "f.parquet"
    table = pa.table({"n": np.arange(1000)})
    pq.write_table(table, path, row_group_size=300, data_page_size=64, write_batch_size=10, write_page_index=True)
    dead = np.array([0, 7, 299, 300, 555, 556, 999])
    file = ScanFile(str(path), path.stat().st_size, "1", 1000, dead)
    frame = without_deleted_rows(spark, spark.read.parquet(f"file:{path}"), [file])
    for where in ("n > 550 and n < 560", "n >= 299 and n <= 301", "n in (7, 8, 999)", "n >= 0"):
        expected = sorted(row[0] for row in spark.range(1000).toDF("n").where(where).collect() if row[0] not in dead)
        assert sorted(row["n"] for row in frame.where(where).collect()) == expected


@pytest.mark.parametrize(("name", "scans"), [("{}.parquet", 1), ("ø{}.parquet", 4)])
def test_files_of_one_size_are_told_apart(spark, tmp_path, name, scans):
    files = []
    for number in range(5):
        path = tmp_path / name.format(number)
        rows = pa.table({"n": np.arange(10) + 10 * number})
        pq.write_table(rows, path, compression="none", use_dictionary=False, write_statistics=False)
        dead = np.array([number, number + 1]) if number < 3 else None
        files.append(ScanFile(str(path), path.stat().st_size, "1", 10 if number < 3 else 0, dead))
    assert len({file.size_bytes for file in files}) == 1
    found = []
    assert len(list(scans_of(files))) == scans
    for together in scans_of(files):
        frame = spark.read.parquet(*[f"file:{file.path}" for file in together])
        found += [row["n"] for row in without_deleted_rows(spark, frame, together).collect()]
    assert sorted(found) == sorted(set(range(50)) - {0, 1, 11, 12, 22, 23})


def test_partitions_of_one_size_are_one_scan(enabled, tmp_path, monkeypatch):
    """Whether Spark's file index is ours, or only has the names of the files."""
    table = new_table(tmp_path / "t", {"hoodie.python.mor.row.copies": "false"})
    table.upsert(rows(*[(f"k{part}{n}", part, n, 5) for part in "abcdef" for n in range(3)]))
    table.upsert(rows(*[(f"k{part}1", part, 100, 6) for part in "abcdef"]))
    expected = rows_of(table.scan().to_arrow())
    for bounded in (native._bounded, lambda *given: None):
        monkeypatch.setattr(native, "_bounded", bounded)
        frame = load(enabled, tmp_path / "t").select(*SCHEMA.names)
        assert rows_of(arrow_of(frame)) == expected
        assert rows_of(arrow_of(frame.where("part = 'c'"))) == [row for row in expected if row["part"] == "c"]
        assert plan_of(load(enabled, tmp_path / "t")).count("FileScan") == 1


def test_a_file_without_dead_rows_keeps_all_of_them_beside_one_that_has_some(spark, tmp_path):
    files = []
    for rows_, dead in ((300, np.arange(0, 300, 3)), (1000, None)):
        path = tmp_path / f"{rows_}.parquet"
        pq.write_table(pa.table({"n": np.arange(rows_)}), path)
        files.append(ScanFile(str(path), path.stat().st_size, "1", rows_ if dead is not None else 0, dead))
    frame = without_deleted_rows(spark, spark.read.parquet(*[f"file:{file.path}" for file in files]), files)
    found = sorted(row["n"] for row in frame.collect())
    assert found == sorted([*range(1000), *(n for n in range(300) if n % 3)])


def test_frames_of_one_snapshot_and_of_the_next_meet_in_one_query(enabled, changed):
    one, again = load(enabled, changed), load(enabled, changed)
    hoodie.open_table(changed).upsert(rows(("k05", "b", 900, 9), ("k08", "a", 901, 9)), OPTIONS)
    after = load(enabled, changed)
    assert one.join(again, "id").where(one.qty == again.qty).count() == one.count() == 40
    moved = one.join(after, "id").where(one.qty != after.qty).select("id", after.qty).collect()
    assert sorted(tuple(row) for row in moved) == [("k05", 900), ("k08", 901)]
    assert one.union(after).count() == 80
    assert one.where("id = 'k05'").exceptAll(again.where("id = 'k05'")).count() == 0


@pytest.fixture
def two_files(tmp_path):
    """A base file in each of two partitions, two rows in each, and a savepoint."""
    table = new_table(tmp_path / "t")
    table.upsert(rows(("a0", "a", 0, 5), ("a1", "a", 1, 5), ("b0", "b", 2, 5), ("b1", "b", 3, 5)))
    table.savepoint(table.timeline.commits[0].time)
    return table


def ids(frame):
    return sorted(row["id"] for row in frame.collect())


def test_a_kept_frame_is_not_taken_for_one_of_the_same_files_in_which_other_rows_are_dead(enabled, two_files, tmp_path):
    table = two_files
    table.delete(rows(("a0", "a", 0, None)))
    kept = load(enabled, tmp_path / "t").cache()
    try:
        assert ids(kept) == ["a1", "b0", "b1"]
        table.restore(table.savepoints()[0].instant)
        hoodie.open_table(tmp_path / "t").delete(rows(("b0", "b", 0, None)))
        assert ids(load(enabled, tmp_path / "t")) == ["a0", "a1", "b1"]
        assert ids(kept) == ["a1", "b0", "b1"]
    finally:
        kept.unpersist()


def test_two_moments_of_the_same_files_in_one_query(enabled, two_files, tmp_path):
    two_files.delete(rows(("a0", "a", 0, None)))
    load(enabled, tmp_path / "t").createOrReplaceTempView("earlier")
    two_files.delete(rows(("b0", "b", 0, None)))
    load(enabled, tmp_path / "t").createOrReplaceTempView("later")
    for one, other, counts in (("earlier", "later", (3, 2)), ("later", "earlier", (2, 3))):
        query = f"SELECT (SELECT count(*) FROM {one}), (SELECT count(*) FROM {other})"
        assert tuple(enabled.sql(query).collect()[0]) == counts
    assert ids(enabled.sql("SELECT id FROM earlier EXCEPT SELECT id FROM later")) == ["b0"]
    assert ids(enabled.sql("SELECT id FROM earlier JOIN later USING (id)")) == ["a1", "b1"]


def test_partition_columns_of_files_with_dead_rows(enabled, two_files, tmp_path):
    two_files.delete(rows(("a0", "a", 0, None)))
    frame = load(enabled, tmp_path / "t")
    assert ids(frame.where("part = 'a'")) == ["a1"]
    assert ids(frame.where("part <> 'a'")) == ["b0", "b1"]
    assert ids(frame.where("part = 'a' OR qty = 3")) == ["a1", "b1"]
    few = enabled.createDataFrame([("a",)], "part string")
    assert ids(frame.join(F.broadcast(few), "part")) == ["a1"]
    assert ids(frame.where("qty > 1000")) == ids(frame.where("part = 'c'")) == []
    assert frame.groupBy("part").count().sort("part").collect() == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.parquet.enableVectorizedReader", "false"),
        ("spark.sql.files.maxPartitionBytes", "500"),
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.optimizer.nestedSchemaPruning.enabled", "false"),
    ],
)
def test_dead_rows_stay_so_however_spark_reads_the_files(enabled, changed, name, value):
    with changed_setting(enabled, name, value):
        same(load(enabled, changed), hoodie.open_table(changed).scan(meta_columns=True))


def test_what_spark_says_of_files_can_be_asked_for(enabled, changed):
    frame = load(enabled, changed)
    found = frame.select("id", "_metadata.row_index", "_metadata.file_name").collect()
    assert len(found) == 40
    assert len({tuple(row)[1:] for row in found}) == 40
    assert {row["file_name"] for row in found} == {name_of(name) for name in frame.inputFiles()}


def test_explain_says_how_spark_merges_with_row_copies_and_without(enabled, changed):
    table = HoodieTable.for_path(enabled, str(changed))

    def said():
        told = table.explain()
        assert "merging:" not in told  # as this process would without Spark
        return told.partition("read by: ")[2]

    found = re.fullmatch(r"Spark's own Parquet scan of (\d+) files \((\d+) row copies; (\d+) rows left out\)", said())
    files, copies, left_out = map(int, found.groups())
    assert (files > copies > 0, left_out > 0) == (True, True)
    shutil.rmtree(changed / ROW_COPIES)
    found = re.fullmatch(
        r"Spark's own Parquet scan of \d+ files \(0 row copies; (\d+) rows left out\); the driver: (\d+) rows of small logs",
        said(),
    )
    assert min(map(int, found.groups())) > 0


def test_dead_rows_are_handed_over_once_for_a_snapshot(enabled, changed, monkeypatch):
    handed = []
    monkeypatch.setattr(deletion_filter, "arrow_frame", lambda *args: handed.append(args) or arrow_frame(*args))
    load(enabled, changed).collect()
    once = len(handed)  # for each scan: one for most tables, two where by chance two files have the same size
    assert 1 <= once <= 2
    load(enabled, changed).where("qty > 3").collect()
    lasting = hasattr(DataFrame, "scalar")  # Spark 4
    assert len(handed) == (once if lasting else 2 * once)
    handed.clear()
    hoodie.open_table(changed).upsert(rows(("k07", "b", 1, 9)), OPTIONS)
    same(load(enabled, changed), hoodie.open_table(changed).scan(meta_columns=True))
    assert handed


def test_the_next_snapshot_is_the_same_code_to_spark(enabled, changed):
    """So that what a session has compiled for one query serves those after the next upsert, too."""

    def conditions():
        plan = load(enabled, changed).select("qty")._jdf.queryExecution().optimizedPlan().toString()
        assert "getbit" in plan
        return set(
            re.findall("Filter .*getbit.*", re.sub(r"#\d+L?", "", plan))
        )  # the same in each scan, should there be two

    before = conditions()
    hoodie.open_table(changed).upsert(rows(*((f"k{n:02}", "b", 5, 9) for n in range(20))), OPTIONS)
    assert conditions() == before


def test_the_frame_has_no_columns_of_its_own(enabled, changed):
    frame = load(enabled, changed)
    assert frame.columns == [*META_COLUMNS, *SCHEMA.names]
    assert frame.select(F.sum("qty"), F.count("*")).collect()[0][1] == frame.count()
