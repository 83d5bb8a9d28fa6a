"""A user's job: the steps of a JSON file on whatever cluster it is submitted to; it prints what each step gave as a line of JSON.

Submitted by itself: of this repository it may import only what was shipped with it.
"""

import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

Step = dict[str, Any]
SAID = "STEP "
"""Begins each line that is an answer."""


def main(file: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    for step in json.loads(Path(file).read_text(encoding="utf-8")):
        print(SAID + json.dumps(STEPS[step["do"]](spark, step)), flush=True)  # noqa: T201
    spark.stop()


def enable(spark: SparkSession, step: Step) -> Any:
    import pyspark_hoodie  # noqa: PLC0415  a job without this step does not import it: Spark finds the source by itself

    pyspark_hoodie.enable(spark)
    return pyspark_hoodie.__file__


def register(spark: SparkSession, step: Step) -> Any:
    """For --py-files: Spark does not look into them when it looks for sources."""
    import pyspark_hoodie  # noqa: PLC0415

    spark.dataSource.register(pyspark_hoodie.DefaultSource)
    return None


def write(spark: SparkSession, step: Step) -> Any:
    """Rows of Parquet files by format("hoodie")."""
    df = rows(spark, step)
    df.write.format("hoodie").options(**step["options"]).mode(step.get("mode", "append")).save(step["path"])
    if not step.get("enabled", True):
        return None
    import pyspark_hoodie  # noqa: PLC0415

    result = pyspark_hoodie.last_commit(step["path"])
    return [result.engine, result.inserted, result.updated, result.deleted]


def compact(spark: SparkSession, step: Step) -> Any:
    import pyspark_hoodie  # noqa: PLC0415

    return [result.instant for result in pyspark_hoodie.HoodieTable.for_path(spark, step["path"]).compact()]


def read(spark: SparkSession, step: Step) -> Any:
    """What a query gives goes into Parquet files. `@n` in an option is the time of commit n."""
    import hoodie  # noqa: PLC0415

    commits = hoodie.open_table(step["path"], storage_options=step.get("storage_options")).timeline.commits
    named = {name: commits[int(text[1:])].time if text[0] == "@" else text for name, text in step["options"].items()}
    found = spark.read.format("hoodie").options(**named).load(step["path"])
    found.write.parquet(step["to"])
    return None


def stream(spark: SparkSession, step: Step) -> Any:
    """Each file of a folder is a batch that is upserted."""
    schema = spark.read.parquet(step["rows"]).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(step["rows"])

    def upsert(batch: DataFrame, number: int) -> None:
        held = hold(batch, step) if number == step["batch"] else batch
        held.write.format("hoodie").options(**step["options"]).mode("append").save(step["path"])

    query = source.writeStream.foreachBatch(upsert).option("checkpointLocation", step["checkpoint"])
    query.trigger(availableNow=True).start().awaitTermination()
    return None


def memory(spark: SparkSession, step: Step) -> Any:
    """The most that this process has had resident, in kB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def where(spark: SparkSession, step: Step) -> Any:
    """From where the workers' Python takes hoodie, and which Python that is."""

    def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import hoodie  # noqa: PLC0415
        import pyspark_hoodie  # noqa: PLC0415

        for _ in batches:
            told = [hoodie.__file__, pyspark_hoodie.__file__, sys.prefix]
            yield pa.RecordBatch.from_pydict({"text": told})

    return sorted({row.text for row in spark.range(0, 2, 1, 2).mapInArrow(found, "text string").collect()})


STEPS: dict[str, Callable[[SparkSession, Step], Any]] = {
    each.__name__: each for each in (enable, register, write, compact, read, stream, memory, where)
}


def rows(spark: SparkSession, step: Step) -> DataFrame:
    """The rows of a step: `count` rows that are made here, or those of the Parquet files `rows`."""
    if "count" in step:
        made = "id", "concat('p', id % 8) as part", "id as ts", "concat('value of ', id) as text"
        df = spark.range(0, step["count"], step.get("every", 1), step["partitions"]).selectExpr(*made)
    else:
        df = spark.read.parquet(step["rows"])
        df = df.repartition(step["partitions"], "id") if "partitions" in step else df
    return hold(df, step) if "gate" in step else df


def hold(df: DataFrame, step: Step) -> DataFrame:
    """The same rows, with a column `fresh` that is another one each time it is evaluated; a task waits at the gate.

    The first attempt of partition `holds` says in folder `gate` that it has come, with its process id, and goes on when there is a
    file `go`. Later attempts do not wait.
    """
    gate, holds = Path(step["gate"]), step.get("holds", 0)

    def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        for batch in batches:
            fresh = pa.array([uuid.uuid4().hex for _ in range(batch.num_rows)])
            yield pa.RecordBatch.from_arrays([*batch.columns, fresh], names=[*batch.schema.names, "fresh"])
        arrived = gate / f"arrived-{task.partitionId()}-{task.attemptNumber()}"
        arrived.with_suffix(".part").write_text(str(os.getpid()), encoding="ascii")
        arrived.with_suffix(".part").rename(arrived)
        if (task.partitionId(), task.attemptNumber()) == (holds, 0):
            while not (gate / "go").exists():
                time.sleep(0.01)

    return df.mapInArrow(held, StructType([*df.schema.fields, StructField("fresh", StringType())]))


if __name__ == "__main__":
    main(sys.argv[1])
