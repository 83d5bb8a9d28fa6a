"""Streams out of a table: every commit once, from the checkpoint on, in bounded batches; and on into a second table."""

import pyarrow as pa
import pytest

import hoodie
import pyspark_hoodie
from hoodie.errors import OptionError
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from tests.effort import long_but
from tests.memory_tables import Input, batch, new_table, opened
from tests.spark.conftest import SPARK, options_of

pytestmark = [pytest.mark.spark, pytest.mark.skipif(SPARK < (4, 0), reason="Spark 3.5 has no Python data sources")]

if SPARK >= (4, 0):
    from pyspark_hoodie.stream_source import bounded_end, format_offset, parse_offset, stream_query

KINDS = pytest.mark.parametrize("kind", long_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))


class Collected:
    """Batches of a stream as they came: keys and quantities, sorted, by batch."""

    def __init__(self, spark, path, checkpoint, **options):
        self.spark, self.path, self.checkpoint, self.options = spark, path, checkpoint, options
        self.batches = []

    def run(self):
        """All there is, then stop; gives the batches of this run."""
        self.batches = []
        df = self.spark.readStream.format("hoodie").options(**self.options).load(str(self.path))
        writer = df.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [each for each in self.batches if each]

    def _take(self, df, number):
        self.batches.append(sorted((row["id"], row["val"]) for row in df.select("id", "val").collect()))


def table_at(path, kind="MERGE_ON_READ"):
    return hoodie.create_table(
        str(path), batch([]).schema, record_key="id", partition_by="part", ordering="ts", table_type=kind
    )


def upsert(table, *rows):
    return table.upsert(batch([Input(key, "p", value, value) for key, value in rows]))


@KINDS
def test_begins_with_all_rows_and_goes_on_from_the_checkpoint(door, tmp_path, kind):
    table = table_at(tmp_path / "t", kind)
    upsert(table, ("a", 1), ("b", 1))
    upsert(table, ("b", 2))
    stream = Collected(door, tmp_path / "t", tmp_path / "cp")
    assert stream.run() == [[("a", 1), ("b", 2)]]
    assert stream.run() == []
    upsert(table, ("b", 3), ("c", 3))
    table.delete(batch([Input("a", "p")]))
    if kind == "MERGE_ON_READ":
        table.compact()
    assert stream.run() == [[("b", 3), ("c", 3)]]
    assert stream.run() == []


def test_rows_have_the_meta_columns_and_the_schema_of_a_batch_read(door, tmp_path):
    table = table_at(tmp_path / "t")
    upsert(table, ("a", 1))
    stream = door.readStream.format("hoodie").load(str(tmp_path / "t"))
    assert stream.schema == door.read.format("hoodie").load(str(tmp_path / "t")).schema
    assert stream.isStreaming


@pytest.mark.skipif(SPARK < (4, 2), reason="before Spark 4.2 available-now is one batch")
def test_a_batch_takes_so_many_commits(door, tmp_path):
    table = table_at(tmp_path / "t")
    for number in range(5):
        upsert(table, (f"k{number}", number))
    stream = Collected(door, tmp_path / "t", tmp_path / "cp", maxCommitsPerTrigger=2)
    assert stream.run() == [[("k0", 0), ("k1", 1)], [("k2", 2), ("k3", 3)], [("k4", 4)]]
    for number in range(5, 8):
        upsert(table, (f"k{number}", number))
    assert stream.run() == [[("k5", 5), ("k6", 6)], [("k7", 7)]]


@pytest.mark.long
@pytest.mark.parametrize("start", ["latest", "instant"])
def test_begins_where_the_option_says(door, tmp_path, start):
    table = table_at(tmp_path / "t")
    first = upsert(table, ("a", 1)).instant
    offset = start if start == "latest" else first
    stream = Collected(door, tmp_path / "t", tmp_path / "cp", **{"hoodie.datasource.streaming.startOffset": offset})
    assert stream.run() == []
    upsert(table, ("b", 2))
    assert stream.run() == [[("b", 2)]]


def test_a_write_in_progress_is_not_passed_by(door, tmp_path):
    table = table_at(tmp_path / "t")
    upsert(table, ("a", 1))
    active, clock = table._context.active, table._context.clock
    first = table.timeline.latest_time
    pending = Instant(clock.allot(first), Action.DELTACOMMIT, State.REQUESTED)
    while clock.allot(first) == pending.time:  # a fast machine begins the next write in the same millisecond
        clock.pause(0.001)
    upsert(table, ("b", 2))
    stream = Collected(door, tmp_path / "t", tmp_path / "cp")
    active.create(pending)
    assert stream.run() == [[("a", 1)]]
    active.remove(pending)
    assert stream.run() == [[("b", 2)]]


@pytest.mark.long
def test_the_change_feed_as_a_stream_tells_deletes(door, tmp_path):
    table = table_at(tmp_path / "t")
    upsert(table, ("a", 1), ("b", 1))
    feed = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "before_after",
    }
    seen = []

    def take(df, number):
        rows = df.select("op", "before.id", "after.val").collect()
        seen.append(sorted(((row["op"], row["id"], row["val"]) for row in rows), key=repr))

    def run():
        seen.clear()
        df = door.readStream.format("hoodie").options(**feed).load(str(tmp_path / "t"))
        writer = df.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "cp"))
        writer.trigger(availableNow=True).start().awaitTermination()
        return [each for each in seen if each]

    assert run() == [[("i", None, 1), ("i", None, 1)]]
    upsert(table, ("b", 2))
    table.delete(batch([Input("a", "p")]))
    assert run() == [[("d", "a", None), ("u", "b", 2)]]


def test_continuous_triggers_go_on(door, tmp_path):
    table = table_at(tmp_path / "t")
    upsert(table, ("a", 1))
    df = door.readStream.format("hoodie").load(str(tmp_path / "t"))
    query = df.writeStream.format("memory").queryName("went_on").start()
    try:
        query.processAllAvailable()
        upsert(table, ("b", 2))
        query.processAllAvailable()
        assert sorted(row["id"] for row in door.table("went_on").collect()) == ["a", "b"]
    finally:
        query.stop()


@pytest.mark.long
def test_from_one_table_into_another(sink_door, tmp_path):
    table = table_at(tmp_path / "one")
    path, checkpoint = str(tmp_path / "two"), str(tmp_path / "cp")

    def run():
        df = sink_door.readStream.format("hoodie").load(str(tmp_path / "one")).drop("_hoodie_is_deleted")
        writer = df.writeStream.format("hoodie").options(**options_of()).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(path).awaitTermination()
        rows = hoodie.open_table(path).scan(columns=["id", "val"]).to_arrow().to_pylist()
        return sorted((row["id"], row["val"]) for row in rows)

    upsert(table, ("a", 1), ("b", 1))
    assert run() == [("a", 1), ("b", 1)]
    upsert(table, ("b", 2), ("c", 2))
    assert run() == [("a", 1), ("b", 2), ("c", 2)]
    assert run() == [("a", 1), ("b", 2), ("c", 2)]


def test_an_alias_reads_streams_too(spark, tmp_path):
    upsert(table_at(tmp_path / "t"), ("a", 1))
    pyspark_hoodie.enable(spark, aliases=("hudi",))
    try:
        assert spark.readStream.format("hudi").load(str(tmp_path / "t")).isStreaming
    finally:
        pyspark_hoodie.disable()


# -- offsets, without a session ----------------------------------------------------------------------------------------


def test_offsets_have_a_version_and_read_back():
    assert format_offset("20260101000000000") == {"version": 1, "instant": "20260101000000000"}
    assert parse_offset(format_offset("000"), path="t") == "000"
    for other in ({"version": 2, "instant": "000"}, {"commitTime": "000"}, {"version": 1, "instant": 7}):
        with pytest.raises(OptionError, match="does not know"):
            parse_offset(other, path="t")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.datasource.read.begin.instanttime": "000"}, "startOffset"),
        ({"as.of.instant": "20260101000000"}, "startOffset"),
        ({"hoodie.datasource.query.type": "read_optimized"}, "read_optimized does not go"),
        ({"hoodie.datasource.query.incremental.format": "cdc"}, "incremental only"),
        ({"maxCommitsPerTrigger": "0"}, "maxCommitsPerTrigger"),
    ],
)
def test_options_that_do_not_go_with_a_stream_are_refused(options, message):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    with pytest.raises(OptionError, match=message):
        stream_query(opened(storage, clock)._context, options)


def test_bounds_count_commits_that_bring_rows():
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    context = table._context
    times = [upsert(table, ("a", 1)).instant, upsert(table, ("a", 2)).instant]
    compacted = table.compact()[0].instant
    times.append(upsert(table, ("a", 3)).instant)
    sizes = [each.bytes_written for each in table.history() if each.instant != compacted]

    def ends(start, **bounds):
        query = stream_query(context, {key: str(value) for key, value in bounds.items()})
        return bounded_end(context.snapshot(), start, times[-1], query.stream)

    assert ends("000") == times[2]
    assert [ends("000", maxCommitsPerTrigger=n) for n in (1, 2, 3, 9)] == [times[0], compacted, times[2], times[2]]
    assert ends(times[0], maxCommitsPerTrigger=1) == compacted
    assert ends(compacted, maxCommitsPerTrigger=1) == times[2]
    assert ends("000", maxBytesPerTrigger=1) == times[0]
    assert ends("000", maxBytesPerTrigger=sum(sizes[:2])) == compacted
    assert ends("000", maxBytesPerTrigger=sum(sizes)) == times[2]


@pytest.mark.parametrize("form", long_but(["before_after"], ["latest_state", "before_after", "cdc"]))
def test_a_stream_goes_on_over_columns_that_came_before_it_started(enabled, tmp_path, form):
    """Loaded and started at different moments, as a job does that starts a writing query between the two."""
    table = hoodie.create_table(
        tmp_path / "t",
        pa.schema([("id", "int64"), ("n", "int32"), ("s", pa.struct([("x", "int32")]))]),
        record_key="id",
    )
    table.upsert({"id": [1], "n": [1], "s": [{"x": 1}]})
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": form}
    df = enabled.readStream.format("hoodie").options(**(options if form != "latest_state" else {})).load(table.uri)
    batches = []

    def start():
        writer = df.writeStream.foreachBatch(lambda rows, number: batches.append(rows.collect()))
        query = writer.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True).start()
        query.awaitTermination()

    grown = pa.table({
        "id": pa.array([2]), "n": pa.array([2], "int64"),
        "s": pa.array([{"x": 2, "y": [{"z": 1}]}], pa.struct([("x", "int64"), ("y", pa.list_(pa.struct([("z", "int64")])))])),
        "extra": pa.array([1.5]),
    })  # fmt: skip
    table.upsert(grown)
    start()
    table.upsert(grown.set_column(0, "id", pa.array([3])))
    start()
    rows = [row.after if form == "before_after" else row for each in batches for row in each]
    if form == "cdc":
        assert '"extra":1.5' in rows[-1].after
    else:
        assert [(row.id, row.n, row.s.asDict()) for row in rows] == [
            (1, 1, {"x": 1}),
            (2, 2, {"x": 2}),
            (3, 2, {"x": 2}),
        ]


def test_a_frame_goes_on_over_columns_that_came_since(load, tmp_path):
    table = hoodie.create_table(
        tmp_path / "t", pa.schema([("id", "int64"), ("s", pa.struct([("x", "int32")]))]), record_key="id"
    )
    table.upsert({"id": [1], "s": [{"x": 1}]})
    frame = load(table.uri)
    table.upsert(pa.table({"id": [1], "s": pa.array([{"x": 1, "y": 2}]), "extra": [1]}))
    assert [row.s.asDict() for row in frame.collect()] == [{"x": 1}]
