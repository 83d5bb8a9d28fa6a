"""Apache Hudi behind a pipe: one Spark session that answers requests, one JSON object a line.

Runs under the interpreter of the integration environment (pyspark 3.5), started by `hudi_client.HudiPeer`. Tables cross
as files (Arrow IPC out, Parquet in), so that nothing is lost on the way to text and no row is touched here.

Request: `{"call": "read" | "read_many" | "write" | "sql", ...its arguments}`. Answer: `{"ok": <its result>}` or `{"error": <text>}`.
The first line out, `{"ok": {"spark": <version>}}`, says that the session is up. End of input ends the process.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import to_arrow_schema

from integration.view_peer import ViewPeer
from tests.servers.java import SHORT_LIVED

# Defaults of every write. A peer must not upgrade the table under test, and one test's tables are small.
WRITE_DEFAULTS = {
    "hoodie.write.auto.upgrade": "false",
    "hoodie.write.table.version": os.environ.get("HOODIE_TABLE_VERSION", "6"),
    "hoodie.metadata.enable": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.bloom.index.parallelism": "2",
}


def start_session(bundle_jar: str) -> SparkSession:
    """The one session: UTC everywhere, loopback only, no UI."""
    settings = {
        "spark.jars": bundle_jar,
        # Short work on few cores: generated code never earns its cost back.
        "spark.driver.extraJavaOptions": " ".join(("-Duser.timezone=UTC", *SHORT_LIVED)),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.warehouse.dir": os.environ.get("HOODIE_PEER_WAREHOUSE", "build/spark-warehouse"),
    }
    more: dict[str, str] = json.loads(os.environ.get("HOODIE_PEER_SETTINGS", "{}"))
    builder = SparkSession.builder.master("local[2]").appName("hudi-peer")
    for key, value in {**settings, **more}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def waiting_for(gate: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow`: the same rows, once the file is gone."""

    def held(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while os.path.exists(gate):
            time.sleep(0.05)
        yield from batches

    return held


def save(frame: DataFrame, out: str) -> int:
    """Write the rows of `frame` as an Arrow IPC file; their number."""
    schema = to_arrow_schema(frame.schema)
    batches = frame._collect_as_arrow()  # 3.5 has no public toArrow
    with pa.OSFile(out, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
    return sum(batch.num_rows for batch in batches)


def save_many(frames: dict[int, DataFrame], outs: list[str]) -> None:
    """Collect frames of one schema in one job, and write each to the file that has its number."""
    tag = "which_question"
    numbered = [frame.withColumn(tag, lit(number)) for number, frame in frames.items()]
    union = reduce(DataFrame.unionAll, numbered)
    answers = pa.Table.from_batches(union._collect_as_arrow(), to_arrow_schema(union.schema))
    for number in frames:
        answer = answers.filter(pc.equal(answers[tag], number)).drop_columns([tag])
        with pa.OSFile(outs[number], "wb") as sink, pa.ipc.new_file(sink, answer.schema) as writer:
            writer.write_table(answer)


def message_of(error: Exception) -> str:
    """Py4J puts the JVM's message first and the trace after it; the causes further down are what matters."""
    lines = str(error).splitlines()
    return "\n".join([type(error).__name__, *lines[:3], *(line for line in lines if "Caused by" in line)])


class Peer:
    """What can be asked of Apache Hudi."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def read(self, *, path: str, out: str, options: dict[str, str]) -> dict[str, object]:
        """Read a table with Hudi's read options into the Arrow file `out`."""
        frame = self._load(path, options)
        return {"rows": save(frame, out), "schema": json.loads(frame.schema.json())}

    def read_many(self, *, path: str, outs: list[str], questions: list[dict[str, str]]) -> dict[str, object]:
        """Read a table once for each set of options, into an Arrow file each; what went wrong, by the number of the question.

        Answers of one schema are collected by one job, which costs little more than the first of them alone.
        """
        errors: dict[int, str] = {}
        by_schema: dict[str, dict[int, DataFrame]] = {}
        for number, options in enumerate(questions):
            try:
                frame = self._load(path, options)
            except Exception as error:  # noqa: BLE001 - whatever Hudi throws is the answer
                errors[number] = message_of(error)
            else:
                by_schema.setdefault(frame.schema.json(), {})[number] = frame
        for frames in by_schema.values():
            try:
                save_many(frames, outs)
            except Exception:  # noqa: BLE001 - then each by itself
                for number, frame in frames.items():
                    try:
                        save(frame, outs[number])
                    except Exception as error:  # noqa: BLE001 - whatever Hudi throws is the answer
                        errors[number] = message_of(error)
        return {"errors": errors}

    def _load(self, path: str, options: dict[str, str]) -> DataFrame:
        return self.spark.read.format("hudi").options(**{"hoodie.metadata.enable": "false", **options}).load(path)

    def write(
        self, *, path: str, parquet: str, options: dict[str, str], mode: str, gate: str | None
    ) -> dict[str, object]:
        """Write the rows of a Parquet file to the table at `path`; they come when there is no file `gate`."""
        frame = self.spark.read.parquet(parquet)
        if gate is not None:
            frame = frame.mapInArrow(waiting_for(gate), frame.schema)
        frame.write.format("hudi").options(**{**WRITE_DEFAULTS, **options}).mode(mode).save(path)
        return {}

    def stream(self, *, path: str, folder: str, checkpoint: str, options: dict[str, str]) -> dict[str, object]:
        """Stream the Parquet files of a folder into a table, a batch each, until there are no more; gives the query's id."""
        schema = self.spark.read.parquet(folder).schema
        frame = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").parquet(folder)
        writer = frame.writeStream.format("hudi").options(**{**WRITE_DEFAULTS, **options})
        writer = writer.option("checkpointLocation", checkpoint).outputMode("append").trigger(availableNow=True)
        query = writer.start(path)
        query.awaitTermination()
        return {"id": query.id}

    def keys(self, *, parquet: str, options: dict[str, str], out: str) -> dict[str, object]:
        """What a key generator makes of each row of a Parquet file, in the rows' order: of Avro records, as upserts do it."""
        frame = self.spark.read.parquet(parquet)
        java = self.spark._jvm
        properties = java.org.apache.hudi.common.config.TypedProperties()
        for key, value in options.items():
            properties.setProperty(key, value)
        generator = java.org.apache.hudi.keygen.factory.HoodieSparkKeyGeneratorFactory.createKeyGenerator(properties)
        nothing = java.scala.Option.empty()
        records = java.org.apache.hudi.HoodieSparkUtils.createRdd(frame._jdf, "row", "space", nothing).collect()
        made = []
        for record in records:
            row = []
            for make in (generator.getRecordKey, generator.getPartitionPath):
                try:
                    row.append((make(record), None))
                except Exception as error:  # noqa: BLE001 - what the generator refuses is part of the answer
                    row.append((None, str(error).splitlines()[1]))
            made.append(row)
        cells = zip(*[[cell for part in row for cell in part] for row in made])
        names = ("key", "key_error", "path", "path_error")
        table = pa.table({name: pa.array(texts, pa.string()) for name, texts in zip(names, cells)})
        with pa.OSFile(out, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return {"schema": {}}

    def expired(self, *, path: str, options: dict[str, str]) -> dict[str, object]:
        """The partitions that have expired. Its commit is begun and not completed, as inline: so it is asked on a copy."""
        client, meta = self._client(path, options)
        try:
            found = client.managePartitionTTL(client.startDeletePartitionCommit(meta))
            return {"partitions": sorted(found.getPartitionToReplaceFileIds().keySet())}
        finally:
            client.close()

    def client(self, *, path: str, act: str, argument: str | None, options: dict[str, str]) -> dict[str, object]:
        """What only the write client offers, or what its other doors do not bring to an end."""
        client, meta = self._client(path, options)
        java = self.spark._jvm
        nothing = java.org.apache.hudi.common.util.Option.empty()
        try:
            if act == "schedule_clean":
                client.scheduleTableService(nothing, java.org.apache.hudi.common.model.TableServiceType.CLEAN)
            elif act == "archive":
                client.archive()
            elif act == "rollback":
                client.rollback(argument)
            elif act == "restore":
                client.restoreToSavepoint(argument)
            elif act == "expire":
                instant = client.startDeletePartitionCommit(meta)
                found = client.managePartitionTTL(instant)
                replaced = found.getPartitionToReplaceFileIds()
                client.commit(instant, found.getWriteStatuses(), nothing, "replacecommit", replaced, nothing)
            else:
                raise ValueError(act)
        finally:
            client.close()
        return {}

    def _client(self, path: str, options: dict[str, str]) -> tuple[JavaObject, JavaObject]:
        java = self.spark._jvm
        conf = java.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self.spark._jsc.hadoopConfiguration())
        meta = java.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(path).build()
        given = java.PythonUtils.toScalaMap({**WRITE_DEFAULTS, **options})
        make = java.org.apache.hudi.HoodieCLIUtils.createHoodieWriteClient
        return make(self.spark._jsparkSession, path, given, java.scala.Option.empty()), meta

    def timeline_hashes(self, *, path: str) -> dict[str, object]:
        """What Apache Hudi makes of the active timeline, of all of it and of the part that its views take."""
        java = self.spark._jvm
        conf = java.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self.spark._jsc.hadoopConfiguration())
        meta = java.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(path).build()
        timeline = meta.getActiveTimeline()
        views = timeline.filterCompletedAndCompactionInstants()
        return {"all": timeline.getTimelineHash(), "views": views.getTimelineHash()}

    def sql(self, *, query: str, out: str) -> dict[str, object]:
        """Run a statement; its result goes into the Arrow file `out`."""
        frame = self.spark.sql(query)
        return {"rows": save(frame, out), "schema": json.loads(frame.schema.json())}


def serve(bundle_jar: str) -> None:
    """Answer requests until the input ends."""
    # What the JVM and its libraries print goes to standard error; only answers go to the pipe.
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    spark = start_session(bundle_jar)
    peer = Peer(spark)
    calls = {"read": peer.read, "keys": peer.keys, "read_many": peer.read_many, "write": peer.write, "sql": peer.sql}
    calls["stream"] = peer.stream
    calls["expired"] = peer.expired
    calls["client"] = peer.client
    calls["timeline_hashes"] = peer.timeline_hashes
    views = ViewPeer(spark)
    calls |= {"view_answers": views.answers, "start_timeline_server": views.start, "stop_timeline_server": views.stop}
    print(json.dumps({"ok": {"spark": spark.version}}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer: dict[str, object] = {"ok": calls[request.pop("call")](**request)}
        except Exception as error:  # noqa: BLE001 - whatever Hudi throws is the answer
            answer = {"error": message_of(error)}
        print(json.dumps(answer), file=answers)
    spark.stop()


if __name__ == "__main__":
    serve(str(Path(sys.argv[1]).resolve()))
