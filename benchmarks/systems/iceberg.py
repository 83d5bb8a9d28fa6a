"""Apache Iceberg on Spark, merge-on-read with deletion vectors (format version 3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from benchmarks.rides import BASE, CODEC, KEY, PARTITION
from benchmarks.systems.base import PLAIN, SNAPSHOT
from benchmarks.systems.spark import SparkSystem, jars

_PROPERTIES = {
    "format-version": "3",
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    "write.parquet.compression-codec": CODEC,
}


def _settings(folder: Path) -> Mapping[str, str]:
    return {
        "spark.jars": jars("iceberg-spark-runtime-*.jar"),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder),
    }


class Iceberg(SparkSystem):
    """MERGE by key; it is told the partition as well. Its incremental read fails where a commit is not only an append."""

    settings = staticmethod(_settings)
    keeps_loaded_files = True
    views = (PLAIN, SNAPSHOT)
    pulls = False

    @property
    def name(self) -> str:
        return f"lake.`{self.root.name}`.rides_{self.attempt}"

    def load(self) -> None:
        writer = self.source(BASE).writeTo(self.name).partitionedBy(col(PARTITION))
        for key, value in _PROPERTIES.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def upsert(self, name: str) -> None:
        self.source(name).createOrReplaceTempView("s")
        self.spark.sql(
            f"MERGE INTO {self.name} t USING s ON t.{PARTITION} = s.{PARTITION} AND t.{KEY} = s.{KEY} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def compact(self) -> None:
        """Files that have deletes are written without them; those that are small are put together."""
        self.spark.sql(
            f"CALL lake.system.rewrite_data_files(table => '{self.name}', "
            "options => map('delete-file-threshold', '1', 'min-input-files', '2'))"
        ).collect()

    def frame(self, view: str) -> DataFrame:
        return self.spark.read.table(self.name)

    def list_base_files(self) -> list[str]:
        return [row[0] for row in self.spark.sql(f"SELECT file_path FROM {self.name}.data_files").collect()]
