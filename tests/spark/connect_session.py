"""What test_connect asks of a Spark Connect session, in a process of its own: a classic session may stand in the other.

Prints one line of JSON: for each table type and question what came out, or the error's class and text.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from _pytest.outcomes import Failed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
import pyspark_hoodie
from hoodie.errors import HoodieError
from tests.effort import SOAK
from tests.spark.changes_by_methods import REFUSED as CHANGES_REFUSED
from tests.spark.changes_by_methods import play, refusals, rows_of, two_levels
from tests.spark.conftest import options_of
from tests.spark.random_statements import first_difference
from tests.spark.statement_files import FILES, run, statements_of

DDL = "id string, part string, qty int, ts long"
Told = dict[str, Any]


class Asker:
    """Asks about a table of one type, and keeps what came out."""

    def __init__(self, spark: SparkSession, folder: Path, table_type: str) -> None:
        self.spark = spark
        self.path = str(folder / table_type)
        self.table_type = table_type
        self.told: Told = {"session": type(spark).__module__}

    def step(self, name: str, what: Callable[[], Any]) -> Any:
        """The answer too, for steps that build on it; None after an error."""
        try:
            self.told[name] = what()
        except Exception as error:  # noqa: BLE001  (the test judges it)
            self.told[name] = [type(error).__name__, str(error)]
            return None
        return self.told[name]

    def rows(self, *given: tuple[Any, ...]) -> DataFrame:
        return self.spark.createDataFrame(list(given), DDL)

    def save(self, frame: DataFrame, mode: str | None = None, **options: str) -> None:
        frame.write.format("hoodie").options(**options).mode(mode).save(self.path)

    def read(self, **options: str) -> dict[str, int]:
        named = {name.replace("_", "."): text for name, text in options.items()}
        return quantities(self.spark.read.format("hudi").options(**named).load(self.path))

    def counted(self) -> int:
        return self.spark.read.format("hoodie").load(self.path).count()


def quantities(frame: DataFrame) -> dict[str, int]:
    return {row["id"]: row["qty"] for row in frame.collect()}


def saves_and_reads(at: Asker) -> None:
    first = at.rows(*[(f"k{n}", "ab"[n % 2], n, 1) for n in range(6)])
    made = options_of(hoodie_datasource_write_table_type=at.table_type)
    at.step("first", lambda: at.save(first, **made))
    first_instant = at.step("first instant", lambda: str(pyspark_hoodie.last_commit(at.path).instant))
    at.step("append", lambda: at.save(at.rows(("k1", "b", 100, 2), ("k9", "a", 9, 1)), "append"))
    at.step("ignore", lambda: at.save(at.rows(("k0", "a", -1, 9)), "ignore"))
    at.step("errorifexists", lambda: at.save(at.rows(("k0", "a", -1, 9))))
    at.step("null key", lambda: at.save(at.rows((None, "a", -1, 9)), "append"))
    at.step("snapshot", at.read)
    at.step("read optimized", lambda: at.read(hoodie_datasource_query_type="read_optimized"))
    at.step("where", lambda: at.read(where="qty > 4"))
    at.step("as of", lambda: at.read(as_of_instant=first_instant))
    pull = {"hoodie_datasource_read_begin_instanttime": first_instant}
    at.step("incremental", lambda: at.read(hoodie_datasource_query_type="incremental", **pull))
    reader = at.spark.read.format("hoodie")
    at.step("read schema", lambda: reader.schema("qty int, id string").load(at.path).columns)
    at.step("to arrow", lambda: at.spark.read.format("hoodie").load(at.path).toArrow().num_rows)


def verbs(at: Asker) -> None:
    """Each of them through one object, in this order."""
    table = pyspark_hoodie.HoodieTable.for_path(at.spark, at.path)
    at.step("upsert", lambda: table.upsert(at.rows(("k2", "a", 102, 5))).updated)
    partial = at.spark.createDataFrame([("k4", "a", 9)], "id string, part string, ts long")
    at.step("partial upsert", lambda: table.upsert(partial, partial=True).updated)
    at.step("delete", lambda: table.delete(at.rows(("k3", "b", 0, 9))).deleted)
    at.step("delete where", lambda: table.delete(where="qty = 9").deleted)
    at.step("pending", lambda: [table.schedule_compaction() is not None, len(table.pending_compactions())])
    at.step("compact", lambda: len(table.compact()))
    at.step("found", lambda: quantities(table.read(["id", "qty"])))
    at.step("changes", lambda: table.changes(images="before_after").count())
    at.step("latest changes", lambda: quantities(table.changes(since=at.told["first instant"])))
    at.step("explain", lambda: table.explain(where="part = 'a'"))
    at.step("history", lambda: [result.operation.value for result in table.history()])
    at.step("files", lambda: [len(table.files()), table.partitions()])
    at.step("rollback", table.rollback)
    at.step("services", lambda: served(table))
    at.step("insert", lambda: table.insert(at.rows(("k20", "c", 20, 1))).inserted)
    at.step("bulk insert", lambda: table.bulk_insert(at.rows(("k21", "c", 21, 1))).inserted)
    at.step("insert overwrite", lambda: table.insert_overwrite(at.rows(("k22", "c", 22, 1))).inserted)
    at.step("overwritten partition", lambda: quantities(table.read(where="part = 'c'")))
    at.step("delete partitions", lambda: table.delete_partitions(["c"]).operation.value)
    at.step("deleted partition", lambda: table.read(where="part = 'c'").count())


def streams(at: Asker) -> None:
    """Out of the table, and into another one from there. Spark starts Python after Python for it."""
    target = at.path + "_stream"
    checkpoint = {"checkpointLocation": at.path + "_checkpoint"}

    def run() -> None:
        frame = at.spark.readStream.format("hudi").load(at.path)
        writer = frame.writeStream.format("hoodie").options(**checkpoint, **options_of())
        writer.trigger(availableNow=True).start(target).awaitTermination()

    at.step("stream", run)
    at.step("streamed", lambda: quantities(at.spark.read.format("hoodie").load(target)))


def merging(at: Asker) -> None:
    """A MERGE and an UPDATE by methods, without a catalog, and rows by their keys."""
    path = at.path + "_merging"
    hoodie.create_table(path, record_key="id", partition_by="part", ordering="ts", table_type=at.table_type)
    table = pyspark_hoodie.HoodieTable.for_path(at.spark, path)
    table.upsert(at.rows(("k1", "a", 1, 1), ("k2", "b", 2, 1)))
    source = at.rows(("k1", "a", 10, 2), ("k3", "b", 3, 2))
    merge = table.merge(source, on="t.id = s.id").when_matched_update({"qty": "t.qty + s.qty", "ts": "s.ts"})
    whole = merge.when_not_matched_insert_all()
    at.step("merge plan", lambda: [whole.explain().updated, whole.explain().inserted])
    at.step("merge", lambda: [whole.execute().inserted, table.update({"qty": "qty * 2"}, where="id = 'k3'").updated])
    at.step("looked up", lambda: quantities(table.lookup(["k1", "k3"])))
    at.step(
        "merged away", lambda: table.merge(source, on="t.id = s.id").when_matched_delete("s.qty = 3").execute().deleted
    )
    at.step("nonsense", lambda: table.update({"qty": "no_such(qty)"}))
    at.step("merged", lambda: quantities(table.head()))


def ingestion(at: Asker) -> None:
    """Of files with a row whose key is null."""
    landing, target = Path(at.path + "_landing"), at.path + "_ingested"
    landing.mkdir()
    (landing / "rows.json").write_text('{"id": "f1", "qty": 1}\n{"qty": 2}\n{"id": "f3", "qty": 3}\n')
    how: Any = {"record_key": "id", "table_type": at.table_type}
    at.step(
        "ingest",
        lambda: [(each.rows, each.bad) for each in pyspark_hoodie.ingest(at.spark, landing, target, **how).rounds],
    )
    at.step("ingested", lambda: quantities(at.spark.read.format("hoodie").load(target)))


def sql_and_other_formats(at: Asker) -> None:
    def view() -> Any:
        at.spark.sql(f"create or replace temporary view v using hudi options (path '{at.path}')")
        return at.spark.sql("select sum(qty) from v").collect()[0][0]

    at.step("view", view)
    frame = at.rows(("k7", "a", 7, 1))
    at.step("by name", lambda: by_name(at, f"default.by_name_{at.table_type.lower()}"))
    at.step("overwrite", lambda: at.save(frame, "overwrite"))
    at.step("overwritten", at.read)
    at.step("parquet", lambda: frame.write.format("parquet").save(at.path + "_plain"))
    at.step("parquet read", lambda: at.spark.read.parquet(at.path + "_plain").count())


def by_name(at: Asker, name: str) -> list[Any]:
    """Writes of DataFrames into a table by its name, and how often each says what to do instead."""
    one = at.rows(("n1", "a", 1, 1))
    writer = one.write.format("hoodie").partitionBy("part").options(primaryKey="id", preCombineField="ts")
    writer.saveAsTable(name)
    refused = []
    for fails in (
        lambda: one.write.format("hoodie").saveAsTable(name),
        lambda: one.drop("qty").writeTo(name).append(),
    ):
        try:
            fails()
        except HoodieError as error:
            refused.append(str(error))
    at.rows(("n2", "b", 2, 1)).write.mode("append").format("hoodie").saveAsTable(name)
    at.rows(("n1", "a", 11, 2)).select("ts", "qty", "part", "id").writeTo(name).append()
    table = at.spark.table(name)
    at.rows(("n3", "c", 3, 1)).select(*table.columns).toDF(*"wxyz").write.insertInto(name)
    found = [quantities(at.spark.table(name))]
    at.rows(("n4", "a", 4, 1)).writeTo(name).overwritePartitions()
    found.append(quantities(at.spark.table(name)))
    at.rows(("n5", "a", 5, 1)).select(*table.columns).write.insertInto(name, overwrite=True)
    found.append(quantities(at.spark.table(name)))
    read = at.spark.read.format("hoodie").load(at.path)  # with the meta columns of another table
    read.writeTo(name).append()
    read.write.mode("append").format("hoodie").saveAsTable(name)
    read.select(*read.columns[:5], *table.columns).createOrReplaceTempView("with_meta")
    at.spark.sql(f"insert into {name} select * from with_meta")
    at.spark.table("with_meta").write.insertInto(name)
    found.append(quantities(at.spark.table(name)) == quantities(at.spark.table(name)) | quantities(read))
    place, again = f"{at.path}_again", f"{name}_again"
    for row in (one, at.rows(("n2", "b", 2, 1))):  # with a location; the second time the name is forgotten
        at.spark.sql(f"drop table if exists {again}")
        row.write.format("hoodie").options(primaryKey="id").option("path", place).mode("append").saveAsTable(again)
    found.append(quantities(at.spark.read.format("hoodie").load(place)))
    return [*found, refused]


def by_methods(at: Asker) -> None:
    """Changes by MERGE's methods and by overwrites, and those of tables of other formats."""
    database = f"methods_{at.table_type.lower()}"
    kind = ("cow", "6") if at.table_type == "COPY_ON_WRITE" else ("mor", "9")
    at.step("by methods", lambda: play(at.spark, database, *kind))
    at.step("two levels", lambda: two_levels(at.spark, database))
    at.step("refusals", lambda: refusals(at.spark, database, *CHANGES_REFUSED))
    twice = at.rows(*[("k4", "z", 1, 99)] * 2)
    at.step(
        "two rows",
        lambda: (
            twice.mergeInto(f"{database}.t", twice["id"] == F.col("t.id"))
            .whenMatched()
            .update({"qty": F.lit(1)})
            .merge()
        ),
    )
    at.step("after two rows", lambda: rows_of(at.spark, f"{database}.t"))
    at.spark.sql(f"create table {database}.plain using parquet as select 'k4' as id, 1 as qty")
    at.step("merge of others", lambda: type(twice.mergeInto(f"{database}.plain", F.lit(True))).__module__)
    at.step("overwrite of others", lambda: twice.writeTo(f"{database}.plain").overwrite(F.lit(True)))


def statements(at: Asker) -> None:
    """Of sql/connect.test on one table type, random ones on the other."""
    database = f"db_{at.table_type.lower()}"
    at.spark.sql(f"create database {database}")
    at.spark.sql(f"use {database}")
    if at.table_type == "COPY_ON_WRITE":
        at.step("random statements", lambda: first_difference(at.spark, "cow", 1))
    else:
        at.step("statements", lambda: run_all(at.spark, database))
        at.step("table", lambda: at.spark.table(f"{database}.t").columns)
        at.step("describe", lambda: [row["col_name"] for row in at.spark.sql("describe t").collect()])
        for name, text in REFUSED.items():
            at.step(name, lambda text=text: at.spark.sql(text))
    at.spark.sql("use default")


def run_all(spark: SparkSession, database: str) -> None:
    for statement in statements_of(FILES["connect"].read_text()):
        try:
            run(spark, statement, database, "mor", "6")
        except (Exception, Failed) as error:
            raise AssertionError(f"line {statement.line}: {error}") from error


REFUSED = {
    "alter": "alter table t add columns (more int)",
    "partitions": "show partitions t",
    "field": "update t set v.x = 1",
    "replace": "create or replace table t (id int) using hoodie",
    "default": "create table t2 (id int default 1) using hoodie",
}


def outlived(at: Asker) -> None:
    """DataFrames whose files a clean has taken."""
    path = at.path + "_outlived"
    table = hoodie.create_table(path, record_key="id", table_type=at.table_type)
    for value in range(2):
        table.upsert({"id": [1, 2], "v": [value] * 2})
    handle = pyspark_hoodie.HoodieTable.for_path(at.spark, path)
    changes = handle.changes(since=table.history()[0].instant, images="before_after")
    frames = {"snapshot": handle.read(), "read optimized": handle.read(query="read_optimized"), "changes": changes}
    for value in range(2, 5):
        table.upsert({"id": [1, 2], "v": [value] * 2}, {"hoodie.clean.commits.retained": "1"})
        if at.table_type == "MERGE_ON_READ":
            table.compact()
    for name, frame in frames.items():
        at.step(f"outlived {name}", frame.collect)


def served(table: pyspark_hoodie.HoodieTable) -> list[int]:
    """Rounds of a job in a thread of its own, and errors of them."""
    with table.services(every_s=1000, options={"hoodie.clean.commits.retained": "3"}) as job:
        while job.last is None:
            job.join(0.01)
    return [len(job.last.did), len(job.last.errors)]


def ask(url: str, folder: Path, table_types: Sequence[str]) -> Mapping[str, Told]:
    spark = SparkSession.builder.remote(url).getOrCreate()
    askers = [Asker(spark, folder, name) for name in table_types]
    pyspark_hoodie.enable(spark, aliases=("hudi",))
    for at in askers:
        saves_and_reads(at)
        verbs(at)
        merging(at)
        ingestion(at)
        sql_and_other_formats(at)
        by_methods(at)
        statements(at)
        outlived(at)
    if SOAK:
        streams(askers[-1])
    pyspark_hoodie.disable()
    for at in askers:
        at.step("without enable", at.counted)
    spark.stop()
    return {at.table_type: at.told for at in askers}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])) + "\n")
