"""What a MERGE by key costs on Spark beside the upsert of the same rows, and beside the MERGE of Delta Lake and Iceberg.

`python -m benchmarks.merge FOLDER [--systems hoodie-cow hoodie-mor delta iceberg] [--rounds 5]`, with the interpreter of the Spark
that is measured. Delta and Iceberg need `HOODIE_BENCH_JARS`, the folder of their jars (`build/jars/lakes` for Spark 3.5).

A table of 2 million rides; each statement gets 50,000 of its rows with new values, in a table of its own, whose files are links to
those of the table that was loaded. The statements of a system take turns in one session, after a round that does not count. CPU
time is that of all processes: JVM, driver and workers.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.functions import col

import pyspark_hoodie
from benchmarks.meter import Meter
from benchmarks.rides import BASE, KEY, ORDERING, PARTITION, load, make_rides
from benchmarks.systems.spark import jars, start

UPSERT = "upsert"
_MATCHED = "WHEN MATCHED THEN UPDATE SET"
STATEMENTS = {
    "update all, insert all": f"{_MATCHED} * WHEN NOT MATCHED THEN INSERT *",
    "update all": f"{_MATCHED} *",
    "SET fare = s.fare": f"{_MATCHED} t.fare = s.fare, t.{ORDERING} = s.{ORDERING}",
    "the same, with a condition": "WHEN MATCHED AND s.passengers < 5 THEN UPDATE SET"
    f" t.fare = s.fare, t.{ORDERING} = s.{ORDERING}",
    "a condition on the table": f"WHEN MATCHED AND s.{ORDERING} > t.{ORDERING} THEN UPDATE SET *",
    "SET fare = t.fare + s.fare": f"{_MATCHED} t.fare = t.fare + s.fare, t.{ORDERING} = s.{ORDERING}",
    "the same, and inserts": f"{_MATCHED} t.fare = t.fare + s.fare, t.{ORDERING} = s.{ORDERING}"
    " WHEN NOT MATCHED THEN INSERT *",
    "a condition, and a delete": "WHEN MATCHED AND s.passengers = 4 THEN DELETE"
    f" WHEN MATCHED THEN UPDATE SET t.fare = s.fare, t.{ORDERING} = s.{ORDERING}",
}
_HOODIE = {"hoodie-cow": "COPY_ON_WRITE", "hoodie-mor": "MERGE_ON_READ"}
_TABLE, _BATCH = "loaded", "changes"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the data is, or is made")
    parser.add_argument("--systems", nargs="*", default=[*_HOODIE], choices=[*_HOODIE, "delta", "iceberg"])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--changed", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[*STATEMENTS], choices=[*STATEMENTS], help="these statements")
    parser.add_argument("--partitioned", action="store_true", help="by day; the condition equates the day, too")
    parser.add_argument("--options", nargs="*", default=[], help="of hoodie's table, NAME=VALUE")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        return _run(given)
    source = given.folder / "source"
    if not source.exists():
        _make(given.folder, given.rows, given.changed)
    for system in given.systems:
        subprocess.run([sys.executable, "-m", "benchmarks.merge", *sys.argv[1:], "--here", system], check=True)
    return 0


def _make(folder: Path, rows: int, changed: int) -> None:
    made = folder / "arrow"
    make_rides(made, rows=rows, batch_rows=1000, small_count=0)
    table = load(made, BASE)
    rng = np.random.default_rng(7)
    for number in range(2):  # the second half takes turns with the first
        chosen = table.take(pa.array(np.sort(rng.choice(rows, changed, replace=False))))
        later = pc.add(chosen.column(ORDERING), pa.scalar((number + 1) * 86_400_000_000, pa.duration("us")))
        chosen = chosen.set_column(chosen.column_names.index(ORDERING), ORDERING, later)
        target = folder / "source" / f"{_BATCH}-{number}"
        target.mkdir(parents=True)
        pq.write_table(chosen, target / "0.parquet", compression="zstd")
    target = folder / "source" / BASE
    target.mkdir(parents=True)
    for at in range(4):
        pq.write_table(table.slice(at * (rows // 4), rows // 4), target / f"{at}.parquet", compression="zstd")
    shutil.rmtree(made)


# -- One system, in this process.


def _run(given: Any) -> int:
    name, folder = given.here, given.folder
    here = folder / f"{name}{'-partitioned' if given.partitioned else ''}"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    session = start(name, here, _settings(name, here))
    system = _System(session, name, here, given)
    costs: dict[str, list[float]] = {}
    statements = {UPSERT: None} if name in _HOODIE else {}
    for number in range(given.rounds + 1):
        for label, clauses in (statements | {each: STATEMENTS[each] for each in given.only}).items():
            path = system.fresh()
            batch = session.read.parquet(str(folder / "source" / f"{_BATCH}-{number % 2}"))
            with Meter() as meter:
                system.apply(clauses, batch, path)
            if number:
                costs.setdefault(label, []).append(meter.cost.cpu_s)
            system.drop(path)
    print(f"{name}, CPU seconds in {given.rounds} rounds: median, all; and the median of the ratios to the upsert")
    for label, found in costs.items():
        ratios = [one / other for one, other in zip(found, costs.get(UPSERT, found), strict=True)]
        all_found = " ".join(f"{one:.2f}" for one in found)
        print(
            f"  {label:28s} {statistics.median(found):6.2f}  {statistics.median(ratios):5.2f}  ({all_found})",
            flush=True,
        )
    session.stop()
    shutil.rmtree(here)
    return 0


def _settings(name: str, here: Path) -> Mapping[str, str]:
    match name:
        case "delta":
            return {
                "spark.jars": jars("delta*.jar"),
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            }
        case "iceberg":
            return {
                "spark.jars": jars("iceberg-spark-runtime-*.jar"),
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.lake.type": "hadoop",
                "spark.sql.catalog.lake.warehouse": str(here),
            }
        case _:
            return {"spark.python.daemon.module": "pyspark_hoodie.daemon"}


class _System:
    """Makes a table for each statement, and runs the statement."""

    def __init__(self, spark: Any, name: str, here: Path, given: Any) -> None:
        self.spark, self.name, self.here = spark, name, here
        self.partitioned = given.partitioned
        self.count = 0
        self.loaded = here / _TABLE
        rows = spark.read.parquet(str(given.folder / "source" / BASE))
        if name in _HOODIE:
            pyspark_hoodie.enable(spark)
            options = {
                "hoodie.datasource.write.recordkey.field": KEY,
                "hoodie.datasource.write.precombine.field": ORDERING,
                "hoodie.datasource.write.table.type": _HOODIE[name],
                "hoodie.datasource.write.operation": "bulk_insert",
                **({"hoodie.datasource.write.partitionpath.field": PARTITION} if self.partitioned else {}),
                **dict(each.split("=", 1) for each in given.options),
            }
            rows.write.format("hoodie").options(**options).mode("append").save(str(self.loaded))
        self.rows = rows

    def fresh(self) -> str:
        self.count += 1
        if self.name in _HOODIE:
            path = str(self.here / f"table-{self.count}")
            shutil.copytree(self.loaded, path, copy_function=os.link)
            return path
        by = (PARTITION,) if self.partitioned else ()
        if self.name == "delta":
            path = str(self.here / f"table-{self.count}")
            if self.loaded.exists():
                shutil.copytree(self.loaded, path, copy_function=os.link)
                return path
            self.rows.write.format("delta").partitionBy(*by).option("delta.enableDeletionVectors", "true").save(
                str(self.loaded)
            )
            return self.fresh()
        path = f"lake.db.table_{self.count}"  # Iceberg's files have paths in them
        writer = self.rows.writeTo(path)
        for key, value in _ICEBERG.items():
            writer = writer.tableProperty(key, value)
        if by:
            writer = writer.partitionedBy(col(PARTITION))
        writer.create()
        return path

    def apply(self, clauses: str | None, batch: Any, path: str) -> None:
        if clauses is None:
            batch.write.format("hoodie").mode("append").save(path)
            return
        batch.createOrReplaceTempView("s")
        table = path if self.name == "iceberg" else f"{'delta' if self.name == 'delta' else 'hoodie'}.`{path}`"
        condition = f"t.{KEY} = s.{KEY}" + (f" AND t.{PARTITION} = s.{PARTITION}" if self.partitioned else "")
        self.spark.sql(f"MERGE INTO {table} t USING s ON {condition} {clauses}")

    def drop(self, path: str) -> None:
        if self.name == "iceberg":
            self.spark.sql(f"DROP TABLE {path} PURGE")
        else:
            shutil.rmtree(path)


_ICEBERG = {
    "format-version": "2",
    "write.merge.mode": "merge-on-read",
    "write.parquet.compression-codec": "zstd",
}


if __name__ == "__main__":
    sys.exit(main())
