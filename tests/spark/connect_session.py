"""What test_connect asks of a Spark Connect session, in a process of its own: a classic session may stand in the other.

Prints one line of JSON: for each question what came out, or the error's class and text.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import pyspark_hoodie
from tests.spark.conftest import options_of

DDL = "id string, part string, qty int, ts long"


def ask(folder: Path, table_type: str) -> dict[str, Any]:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    pyspark_hoodie.enable(spark, aliases=("hudi",))
    path = str(folder / table_type)
    told: dict[str, Any] = {"session": type(spark).__module__}

    def rows(*given: tuple[Any, ...]) -> Any:
        return spark.createDataFrame(list(given), DDL)

    def read(**options: str) -> dict[str, int]:
        named = {name.replace("_", "."): text for name, text in options.items()}
        frame = spark.read.format("hudi").options(**named).load(path)
        return {row["id"]: row["qty"] for row in frame.collect()}

    def step(name: str, what: Callable[[], Any]) -> None:
        try:
            told[name] = what()
        except Exception as error:  # noqa: BLE001  (the test judges it)
            told[name] = [type(error).__name__, str(error)]

    def save(frame: Any, mode: str | None = None, **options: str) -> None:
        frame.write.format("hoodie").options(**options).mode(mode).save(path)

    first = rows(*[(f"k{n}", "ab"[n % 2], n, 1) for n in range(6)])
    made = options_of(hoodie_datasource_write_table_type=table_type)
    step("first", lambda: save(first, **made))
    first_instant = pyspark_hoodie.last_commit(path).instant
    step("append", lambda: save(rows(("k1", "b", 100, 2), ("k9", "a", 9, 1)), "append"))
    step("ignore", lambda: save(rows(("k0", "a", -1, 9)), "ignore"))
    step("errorifexists", lambda: save(rows(("k0", "a", -1, 9))))
    step("null key", lambda: save(rows((None, "a", -1, 9)), "append"))
    step("snapshot", read)
    step("read optimized", lambda: read(hoodie_datasource_query_type="read_optimized"))
    step("where", lambda: read(where="qty > 4"))
    step("as of", lambda: read(as_of_instant=str(first_instant)))
    pull = {"hoodie_datasource_read_begin_instanttime": str(first_instant)}
    step("incremental", lambda: read(hoodie_datasource_query_type="incremental", **pull))
    step("read schema", lambda: spark.read.format("hoodie").schema("qty int, id string").load(path).columns)
    step("to arrow", lambda: spark.read.format("hoodie").load(path).toArrow().num_rows)

    def verbs() -> Any:
        table = pyspark_hoodie.HoodieTable.for_path(spark, path)
        upserted = table.upsert(rows(("k2", "a", 102, 5)))
        deleted = table.delete(rows(("k3", "b", 0, 9)))
        compacted = len(table.compact())
        found = {row["id"]: row["qty"] for row in table.read(["id", "qty"]).collect()}
        return [upserted.updated, deleted.deleted, compacted, found, table.changes(images="before_after").count()]

    step("verbs", verbs)

    def view() -> Any:
        spark.sql(f"create or replace temporary view v using hudi options (path '{path}')")
        return spark.sql("select sum(qty) from v").collect()[0][0]

    step("view", view)
    step("create table", lambda: spark.sql("create table t using hudi as select 1 as id"))
    step("saveAsTable", lambda: first.write.format("hoodie").saveAsTable("t"))
    step("overwrite", lambda: save(rows(("k7", "a", 7, 1)), "overwrite"))
    step("overwritten", read)
    step("parquet", lambda: first.write.format("parquet").save(path + "_plain"))
    step("parquet read", lambda: spark.read.parquet(path + "_plain").count())
    pyspark_hoodie.disable()
    step("without enable", lambda: spark.read.format("hoodie").load(path).count())
    spark.stop()
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask(Path(sys.argv[1]), sys.argv[2])) + "\n")
