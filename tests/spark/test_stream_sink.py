"""Streams into a table: each batch once, after restarts and crashes, beside other streams, with and without `enable`."""

import json
from pathlib import Path
from threading import Event, Timer

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.errors import CommitConflictError, KeyFieldError, LockError, OptionError, SchemaError
from hoodie.model.streams import STREAM_KEY
from hoodie.options.parse import parse_write_options
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.stream_sink import StreamSink, query_id_of, retried
from tests.spark.conftest import SPARK, options_of

pytestmark = pytest.mark.spark

DDL = "id string, part string, qty int, ts long"


class Input:
    """A folder of files that a stream reads, one file a batch."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.count = spark, folder, 0
        folder.mkdir()

    def add(self, *rows):
        """Rows (id, part, qty, ts)."""
        names = ("id", "part", "qty", "ts")
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
        self.count += 1
        (self.folder / f"{self.count:04}.json").write_text(text)

    def stream(self):
        return self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).json(str(self.folder))


@pytest.fixture
def source(spark, tmp_path):
    return Input(spark, tmp_path / "in")


def started(df, path, checkpoint, mode="append", **options):
    return (
        df.writeStream.format("hoodie")
        .options(**{**options_of(), **options})
        .option("checkpointLocation", str(checkpoint))
        .outputMode(mode)
        .trigger(availableNow=True)
        .start(str(path))
    )


def run(df, path, checkpoint, mode="append", **options):
    """All there is, then stop."""
    query = started(df, path, checkpoint, mode, **options)
    query.awaitTermination()
    return query


def forget_the_last_commit(checkpoint):
    """What Spark knows after a crash between our commit and its own: it repeats the batch."""
    folder = Path(checkpoint) / "commits"
    last = max((p for p in folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    last.unlink()
    (folder / f".{last.name}.crc").unlink(missing_ok=True)
    return int(last.name)


def rows_of(path):
    table = hoodie.open_table(str(path)).scan(columns=["id", "part", "qty", "ts"]).to_arrow()
    return sorted(tuple(row.values()) for row in table.to_pylist())


def commits_of(path):
    return [i.time for i in hoodie.open_table(str(path)).timeline.commits]


def test_restarts_and_repeated_batches_write_each_row_once(sink_door, source, tmp_path):
    path, checkpoint = tmp_path / "t", tmp_path / "cp"
    insert = {"hoodie.datasource.write.operation": "insert"}
    source.add(("a", "p", 1, 1), ("b", "q", 1, 1))
    source.add(("c", "p", 2, 2))
    first = run(source.stream(), path, checkpoint, **insert)
    assert rows_of(path) == [("a", "p", 1, 1), ("b", "q", 1, 1), ("c", "p", 2, 2)]
    before = commits_of(path)
    assert len(before) == 2
    assert forget_the_last_commit(checkpoint) == 1
    again = run(source.stream(), path, checkpoint, **insert)
    assert again.id == first.id
    assert commits_of(path) == before
    source.add(("d", "p", 3, 3))
    run(source.stream(), path, checkpoint, **insert)
    assert len(rows_of(path)) == 4
    table = hoodie.open_table(str(path))
    extra = table._context.active.read_commit(table.timeline.latest_commit).extra
    assert json.loads(extra[STREAM_KEY]) == {first.id: 2}


@pytest.mark.skipif(
    SPARK != (4, 0), reason="later Sparks say which batch of which query it is, earlier ones have no sources"
)
def test_before_spark_4_1_a_stream_without_enable_is_refused_and_leaves_nothing(spark, source, tmp_path):
    pyspark_hoodie.disable()
    source.add(("a", "p", 1, 1))
    with pytest.raises(StreamingQueryException, match=r"needs pyspark_hoodie.enable\(spark\), or stream_writer"):
        run(source.stream(), tmp_path / "t", tmp_path / "cp")
    assert not (tmp_path / "t").exists()


def test_a_batch_whose_write_failed_is_written_when_the_query_runs_again(enabled, source, tmp_path, monkeypatch):
    path, checkpoint = tmp_path / "t", tmp_path / "cp"
    source.add(("a", "p", 1, 1))
    run(source.stream(), path, checkpoint)
    source.add(("b", "p", 1, 1))

    def fails(*args, **kwargs):
        raise RuntimeError("the driver stumbles")

    with monkeypatch.context() as broken:
        broken.setattr("hoodie.write.attempt.publish_files", fails)
        with pytest.raises(StreamingQueryException, match="stumbles"):
            run(source.stream(), path, checkpoint)
    assert rows_of(path) == [("a", "p", 1, 1)]
    run(source.stream(), path, checkpoint)
    assert rows_of(path) == [("a", "p", 1, 1), ("b", "p", 1, 1)]


@pytest.mark.parametrize("step", ["read", "write", "committed"])
def test_a_batch_that_is_stopped_again_and_again_is_written_once(enabled, source, tmp_path, monkeypatch, step):
    """Each start rolls back what the one before left, without waiting until a sign of life grows old."""
    path, checkpoint = tmp_path / "t", tmp_path / "cp"
    source.add(("a", "p", 1, 1), ("b", "q", 1, 1))
    options = {"hoodie.datasource.write.operation": "insert", "hoodie.python.driver.max.bytes": "0"}
    options["hoodie.client.heartbeat.interval_in_ms"] = "3600000"  # no heartbeat expires while this test runs
    owner, name = {
        "read": (SparkEngine, "stage"),
        "write": (SparkEngine, "run"),
        "committed": (StreamSink, "_write"),
    }[step]
    was, reached, stopping = getattr(owner, name), Event(), Event()

    def held(self, *args, **more):
        done = was(self, *args, **more) if step == "committed" else None
        reached.set()
        stopping.wait(300)
        return done if step == "committed" else was(self, *args, **more)

    for _ in range(3):
        reached.clear()
        stopping.clear()
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, held)
            query = started(source.stream(), path, checkpoint, **options)
            while query.isActive and not reached.wait(0.2):
                pass
            # Stopped late in a batch that had committed, Spark may have noted it: then there is none to begin anew.
            assert reached.is_set() or step == "committed"
            Timer(0.3, stopping.set).start()  # the JVM has then interrupted the thread, and waits for it
            query.stop()
        assert not query.isActive
        assert len(commits_of(path)) == (step == "committed")
    run(source.stream(), path, checkpoint, **options)
    assert rows_of(path) == [("a", "p", 1, 1), ("b", "q", 1, 1)]
    assert len(commits_of(path)) == 1
    private = path / ".hoodie" / ".hoodie_py"
    assert [each.name for folder in ("staging", "live") for each in (private / folder).glob("*")] == []


def test_two_queries_into_one_table_do_not_swallow_each_other(sink_door, spark, tmp_path):
    """At the same time, batches numbered alike, and both repeat their last one."""
    path = tmp_path / "t"
    inputs = [Input(spark, tmp_path / "in1"), Input(spark, tmp_path / "in2")]
    options = {"hoodie.datasource.write.operation": "insert"}
    for number, each in enumerate(inputs):
        for file in range(3):
            each.add((f"k{number}-{file}", f"p{number}", file, file))
    pyspark_hoodie.enable(spark)
    spark.createDataFrame([], DDL).write.format("hoodie").options(**options_of()).save(str(path))
    for _ in range(2):
        queries = [started(each.stream(), path, tmp_path / f"cp{n}", **options) for n, each in enumerate(inputs)]
        for query in queries:
            query.awaitTermination()
        assert len(rows_of(path)) == len(commits_of(path)) == 6
        for number in (0, 1):
            assert forget_the_last_commit(tmp_path / f"cp{number}") == 2


def sums_by_part(source):
    """A running total of each part, over two batches."""
    counts = source.stream().groupBy(F.col("part").alias("id")).agg(F.sum("qty").alias("qty"), F.max("ts").alias("ts"))
    source.add(("a", "x", 1, 1), ("b", "y", 5, 1))
    source.add(("c", "x", 2, 2))
    return counts.withColumn("part", F.lit("all")).select("id", "part", "qty", "ts")


TOTALS = [("x", "all", 3, 2), ("y", "all", 5, 1)]


def test_output_mode_complete_replaces_the_rows(sink_door, source, tmp_path):
    run(sums_by_part(source), tmp_path / "t", tmp_path / "cp", "complete")
    assert rows_of(tmp_path / "t") == TOTALS
    history = hoodie.open_table(str(tmp_path / "t")).history()
    assert [each.operation.value.lower() for each in history][1:] == ["insert_overwrite_table"]


def test_output_mode_update_upserts_the_rows(sink_door, source, tmp_path, request):
    sums = sums_by_part(source)
    if request.node.callspec.params["door"] != "enabled":
        # Spark gives no source written in Python this mode.
        with pytest.raises(StreamingQueryException, match="does not support Update mode"):
            run(sums, tmp_path / "t", tmp_path / "cp", "update")
        return
    run(sums, tmp_path / "t", tmp_path / "cp", "update")
    assert rows_of(tmp_path / "t") == TOTALS
    history = hoodie.open_table(str(tmp_path / "t")).history()
    assert [each.operation.value.lower() for each in history] == ["upsert", "upsert"]


def test_deletes_of_a_stream(sink_door, source, spark, tmp_path):
    path = tmp_path / "t"
    with_rows = [("a", "p", 1, 1), ("b", "p", 1, 1), ("c", "q", 1, 1)]
    pyspark_hoodie.enable(spark)
    spark.createDataFrame(with_rows, DDL).write.format("hoodie").options(**options_of()).save(str(path))
    source.add(("a", "p", 0, 0))
    keys = source.stream().select("id", "part")
    run(keys, path, tmp_path / "cp", **{"hoodie.datasource.write.operation": "delete"})
    assert [row[0] for row in rows_of(path)] == ["b", "c"]


def test_batches_without_rows_leave_no_commit(sink_door, source, tmp_path):
    path, checkpoint = tmp_path / "t", tmp_path / "cp"
    source.add(("a", "p", 1, 1))
    source.add(("b", "p", -1, 1))
    source.add(("c", "p", 1, 1))
    run(source.stream().where("qty > 0"), path, checkpoint)
    assert [row[0] for row in rows_of(path)] == ["a", "c"]
    assert len(commits_of(path)) == 2


def test_stream_writer_is_a_foreach_batch_of_the_same_kind(spark, source, tmp_path):
    """Without `enable`, and as Spark 3.5 has it."""
    path, checkpoint = tmp_path / "t", tmp_path / "cp"
    insert = {**options_of(), "hoodie.datasource.write.operation": "insert"}
    source.add(("a", "p", 1, 1))

    def once(writer):
        stream = source.stream().writeStream.foreachBatch(writer).option("checkpointLocation", str(checkpoint))
        query = stream.trigger(availableNow=True).start()
        query.awaitTermination()

    once(pyspark_hoodie.stream_writer(str(path), insert))
    forget_the_last_commit(checkpoint)
    once(pyspark_hoodie.stream_writer(str(path), insert))
    assert rows_of(path) == [("a", "p", 1, 1)]
    forget_the_last_commit(checkpoint)
    table = pyspark_hoodie.HoodieTable.for_path(spark, str(path))
    once(table.foreach_batch({"hoodie.datasource.write.operation": "insert"}))
    assert rows_of(path) == [("a", "p", 1, 1)]
    once(table.foreach_batch({"hoodie.python.stream.id": "another"}))
    assert len(commits_of(path)) == 1  # nothing new to write


def test_trigger_partition_by_query_name_and_format_of_start_are_honoured(enabled, source, tmp_path):
    path = tmp_path / "t"
    source.add(("a", "p", 1, 1))
    options = {k: v for k, v in options_of().items() if "partitionpath" not in k}
    writer = source.stream().writeStream.options(**options).option("path", str(path)).partitionBy("part")
    query = writer.start(
        format="HOODIE", queryName="named", outputMode="append", checkpointLocation=str(tmp_path / "cp")
    )
    try:
        assert query.name == "named"
        query.processAllAvailable()
        source.add(("b", "q", 1, 1))
        query.processAllAvailable()
    finally:
        query.stop()
    assert hoodie.open_table(str(path)).partitions() == ("p", "q")


def test_other_formats_and_functions_of_a_stream_are_sparks_own(enabled, source, spark, tmp_path):
    source.add(("a", "p", 1, 1))
    writer = source.stream().writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "cp1"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    assert spark.read.parquet(str(tmp_path / "out")).count() == 1
    seen = []
    writer = source.stream().writeStream.format("hoodie").option("checkpointLocation", str(tmp_path / "cp2"))
    mine = writer.foreachBatch(lambda df, number: seen.append((number, df.count()))).trigger(availableNow=True)
    mine.start().awaitTermination()
    assert seen == [(0, 1)]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "operation", "message"),
    [
        ("append", "insert_overwrite", "each batch would replace what the ones before it wrote"),
        ("append", "insert_overwrite_table", "each batch would replace"),
        ("update", "delete_partition", "each batch would replace"),
        ("complete", "delete", "does not go with output mode complete"),
    ],
)
def test_operations_that_lose_rows_are_refused_before_the_query_starts(
    enabled, source, tmp_path, mode, operation, message
):
    with pytest.raises(OptionError, match=message):
        started(
            source.stream(), tmp_path / "t", tmp_path / "cp", mode, **{"hoodie.datasource.write.operation": operation}
        )
    assert not (tmp_path / "t").exists()


def test_mistakes_are_told_when_the_query_starts(enabled, source, tmp_path):
    writer = source.stream().writeStream.format("hoodie").options(**options_of())
    for wrong, message in (
        ({"hoodie.datasource.write.recordkey.feild": "id"}, "unknown option"),
        ({"hoodie.datasource.write.streaming.ignore.failed.batch": "true"}, "its rows would be lost"),
        ({"hoodie.datasource.write.recordkey.field": "absent"}, "'absent'"),
    ):
        with pytest.raises((OptionError, KeyFieldError), match=message):
            source.stream().writeStream.format("hoodie").options(**{**options_of(), **wrong}).start(str(tmp_path / "t"))
    with pytest.raises(OptionError, match="needs the path"):
        writer.start()
    with pytest.raises(OptionError, match="start the stream with a path"):
        writer.toTable("t")
    with pytest.raises(OptionError, match="none of append, update, complete"):
        pyspark_hoodie.stream_writer(str(tmp_path / "t"), options_of(), output_mode="overwrite")


def test_without_a_session_that_knows_it_the_query_is_found_in_its_checkpoint(tmp_path):
    (tmp_path / "cp").mkdir()
    (tmp_path / "cp" / "metadata").write_text('{"id":"0b1c"}')
    assert query_id_of(str(tmp_path / "cp")) == "0b1c"
    with pytest.raises(OptionError, match="is not in checkpoint"):
        query_id_of(str(tmp_path / "nothing"))
    with pytest.raises(OptionError, match="set option 'checkpointLocation'"):
        query_id_of(None)


def test_a_batch_is_tried_as_often_as_the_options_say():
    request = parse_write_options(
        {
            "hoodie.datasource.write.streaming.retry.count": "3",
            "hoodie.datasource.write.streaming.retry.interval.ms": "100",
        }
    )
    waits, calls = [], []

    def write(error):
        calls.append(error)
        raise error

    for error in (CommitConflictError("lost"), LockError("held"), OSError("disk")):
        with pytest.raises(type(error)):
            retried(lambda error=error: write(error), request, sleep=waits.append)
    assert len(calls) == 9
    assert waits == [0.1, 0.2] * 3
    with pytest.raises(SchemaError):
        retried(lambda: write(SchemaError("never fits")), request, sleep=waits.append)
    assert len(calls) == 10
