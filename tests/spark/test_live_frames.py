"""Frames that outlive their snapshot: a stream's static side reads the newest commit of each batch, others say what to do."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.errors import MissingFileError
from tests.effort import long_but

pytestmark = pytest.mark.spark

KINDS = pytest.mark.parametrize("kind", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
CLEANED = {"hoodie.clean.commits.retained": "1"}


@pytest.fixture
def facts(enabled, tmp_path):
    """A stream of rows with a key, and a function that adds one."""
    folder = str(tmp_path / "facts")
    add = lambda key: enabled.createDataFrame([(key,)], "k long").coalesce(1).write.mode("append").parquet(folder)  # noqa: E731
    add(1)
    return enabled.readStream.schema("k long").parquet(folder), add


@pytest.fixture
def dim(tmp_path):
    return lambda kind="MERGE_ON_READ": hoodie.create_table(
        tmp_path / "dim", pa.schema([("id", "int64"), ("v", "int32")]), record_key="id", table_type=kind
    )


def put(table, value, **more):
    table.upsert(pa.table({"id": [1, 2], "v": [value, value], **more}), options=CLEANED)


class Joined:
    """Values that the batches of a running stream had, a list for each."""

    def __init__(self, frame, tmp_path):
        self.batches = []
        writer = frame.writeStream.foreachBatch(lambda rows, n: self.batches.append([row.v for row in rows.collect()]))
        self.query = writer.option("checkpointLocation", str(tmp_path / "cp")).start()

    def next(self):
        self.query.processAllAvailable()
        return self.batches[-1]


@KINDS
@pytest.mark.parametrize(
    "way", long_but(["frame", "view"], ["frame", "view", "changed", "options", "subquery", "table", "cached"])
)
def test_the_static_side_of_a_stream_reads_the_newest_commit_of_its_batch(enabled, facts, dim, tmp_path, kind, way):
    stream, add = facts
    table = dim(kind)
    put(table, 0)
    side = enabled.read.format("hoodie").option("where", "ID = 1" if way == "options" else "id > 0").load(table.uri)
    match way:
        case "view":
            side.createOrReplaceTempView("dim")
            stream.createOrReplaceTempView("facts")
            joined = enabled.sql("select v from facts left join dim on k = id")
        case "changed":
            joined = stream.join(
                side.where("v >= 0").withColumn("w", F.col("v") + 1).select("id", (F.col("w") - 1).alias("v")),
                F.expr("k = id"),
            )
        case "subquery":
            side.createOrReplaceTempView("dim")
            stream.createOrReplaceTempView("facts")
            joined = enabled.sql("select d.v from facts join (select id, v from dim where v >= 0) d on k = d.id")
        case "cached":
            assert side.cache().count() == 2
            joined = stream.join(side.select("id", "v"), F.expr("k = id"))
        case "table":
            side = pyspark_hoodie.HoodieTable.for_path(enabled, table.uri).read(["id", "v"], "id > 0")
            joined = stream.join(side, F.expr("k = id"))
        case _:
            joined = stream.join(side, F.expr("k = id"))
    found = Joined(joined, tmp_path)
    try:
        assert found.next() == [0]
        for value in range(1, 5):  # the files of the first commit are cleaned meanwhile
            put(table, value)
        add(1)
        assert found.next() == [4]
        put(table, 5, extra=[1.5, 2.5])
        table.upsert(pa.table({"id": [2], "v": pa.array([2**40]), "extra": [0.0]}))
        add(1)
        assert found.next() == [5]
        assert found.query.isActive
    finally:
        found.query.stop()


def test_a_static_side_as_of_an_instant_stays(enabled, facts, dim, tmp_path):
    stream, add = facts
    table = dim("COPY_ON_WRITE")
    put(table, 0)
    side = enabled.read.format("hoodie").option("as.of.instant", table.history()[0].instant).load(table.uri)
    found = Joined(stream.join(side, F.expr("k = id")), tmp_path)
    try:
        assert found.next() == [0]
        table.upsert(pa.table({"id": [1], "v": [1]}))
        add(1)
        assert found.next() == [0]
    finally:
        found.query.stop()


@KINDS
@pytest.mark.parametrize("refresh", ["refreshByPath", "refreshTable"])
def test_a_frame_that_outlives_its_files_says_so_and_can_be_refreshed(enabled, dim, kind, refresh):
    table = dim(kind)
    put(table, 0)
    frame = enabled.read.format("hoodie").load(table.uri)
    frame.select("id", "v").createOrReplaceTempView("dim")
    for value in range(1, 4):
        put(table, value)
        if kind == "MERGE_ON_READ":
            table.compact()
    with pytest.raises(
        MissingFileError, match=r"deleted by (the clean of instant|a clean,) .*Query the table again.*refreshByPath"
    ) as error:
        frame.collect()
    assert "REFRESH TABLE" not in str(error.value)
    if refresh == "refreshByPath":
        enabled.catalog.refreshByPath(table.uri)
        assert [row.v for row in frame.where(frame.id == 1).collect()] == [3]
        assert frame.count() == 2
        put(table, 4)
        enabled.catalog.refreshByPath(table.uri)
        assert frame.agg(F.max("v")).collect()[0][0] == 4
    else:
        enabled.catalog.refreshTable("dim")
        assert enabled.sql("select max(v) from dim").collect()[0][0] == 3
        put(table, 4)
        enabled.catalog.refreshTable("dim")
        assert enabled.table("dim").columns == ["id", "v"]
        assert enabled.sql("select max(v) from dim").collect()[0][0] == 4


@KINDS
def test_every_read_that_outlives_its_files_says_so(enabled, dim, kind):
    table = dim(kind)
    put(table, 0)
    put(table, 1)
    first, second = (commit.instant for commit in table.history())
    handle = pyspark_hoodie.HoodieTable.for_path(enabled, table.uri)
    frames = [
        enabled.read.format("hoodie").option("as.of.instant", second).load(table.uri),
        handle.read(query="read_optimized"),
        handle.changes(since=first),
        handle.changes(since=first, images="before_after"),
    ]
    for value in range(2, 5):
        put(table, value)
        if kind == "MERGE_ON_READ":
            table.compact()
    for frame in frames:
        with pytest.raises(
            MissingFileError, match=r"^\S+ of table \S+ was deleted by (the clean of|a clean,) .*Query the table again"
        ) as error:
            frame.collect()
        assert "\n" not in str(error.value)


def test_refreshing_others_is_sparks_own(enabled, tmp_path):
    enabled.range(2).write.parquet(str(tmp_path / "plain"))
    enabled.read.parquet(str(tmp_path / "plain")).createOrReplaceTempView("plain")
    enabled.catalog.refreshByPath(str(tmp_path / "plain"))
    enabled.catalog.refreshTable("plain")
    assert enabled.table("plain").count() == 2
    with pytest.raises(Exception, match=r"TABLE_OR_VIEW_NOT_FOUND|not found"):
        enabled.catalog.refreshTable("nowhere")
