"""Delta Lake on Spark, with deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame

from benchmarks.rides import BASE, KEY, PARTITION
from benchmarks.systems.base import PLAIN, SNAPSHOT
from benchmarks.systems.spark import SparkSystem, jars


def _settings(folder: Path) -> Mapping[str, str]:
    return {
        "spark.jars": jars("delta/*.jar"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


class Delta(SparkSystem):
    """MERGE by key; it is told the partition as well, so that it may prune. Pulls would take a change feed, which slows its writes."""

    settings = staticmethod(_settings)
    keeps_loaded_files = True
    views = (PLAIN, SNAPSHOT)
    pulls = False

    def load(self) -> None:
        writer = self.source(BASE).write.format("delta").partitionBy(PARTITION)
        writer.option("delta.enableDeletionVectors", "true").save(self.path)

    def upsert(self, name: str) -> None:
        merge = DeltaTable.forPath(self.spark, self.path).alias("t").merge(self.source(name).alias("s"), _SAME)
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def compact(self) -> None:
        """Files that have deletion vectors are written without them; those that are small are put together."""
        self.spark.sql(f"REORG TABLE delta.`{self.path}` APPLY (PURGE)")

    def frame(self, view: str) -> DataFrame:
        return self.spark.read.format("delta").load(self.path)


_SAME = f"t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY}"
