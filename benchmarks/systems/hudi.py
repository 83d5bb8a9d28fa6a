"""Apache Hudi on Spark, merge-on-read, by bloom index or buckets: its defaults but for the codec, and compaction is apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import DataFrame

from benchmarks.rides import BASE, CODEC, KEY, LAST, ORDERING, PARTITION
from benchmarks.systems.base import PLAIN, READ_OPTIMIZED, SNAPSHOT
from benchmarks.systems.spark import SparkSystem, jars, total_of

_QUERIES = {SNAPSHOT: "snapshot", READ_OPTIMIZED: "read_optimized"}


def _settings(folder: Path) -> Mapping[str, str]:
    return {
        "spark.jars": jars("hudi-spark3.5-bundle_*.jar"),
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    }


class HudiBloom(SparkSystem):
    """The bloom index."""

    settings = staticmethod(_settings)
    views = (PLAIN, SNAPSHOT, READ_OPTIMIZED)
    index: Mapping[str, str] = MappingProxyType({"hoodie.index.type": "BLOOM"})

    def load(self) -> None:
        self._write(BASE, "bulk_insert")

    def prepare(self, name: str) -> None:
        if name == LAST:
            self.since = self._last_completion()

    def upsert(self, name: str) -> None:
        self._write(name, "upsert")

    def pull(self) -> str:
        return total_of(self._read("incremental", {"hoodie.datasource.read.begin.instanttime": self.since}))

    def compact(self) -> None:
        done = self.spark.sql(
            f"CALL run_compaction(op => 'scheduleandexecute', path => '{self.path}', "
            "options => 'hoodie.compact.inline.max.delta.commits=1')"
        ).collect()
        if not done:
            raise RuntimeError(f"Hudi found nothing to compact in {self.path}")

    def frame(self, view: str) -> DataFrame:
        return self._read(_QUERIES[view], {})

    def _write(self, name: str, operation: str) -> None:
        options = {
            "hoodie.table.name": "rides",
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.partitionpath.field": PARTITION,
            "hoodie.datasource.write.precombine.field": ORDERING,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.operation": operation,
            "hoodie.parquet.compression.codec": CODEC,
            "hoodie.compact.inline": "false",  # else every fifth upsert does it
            **self.index,
        }
        self.source(name).write.format("hudi").options(**options).mode("append").save(self.path)

    def _read(self, query: str, options: Mapping[str, str]) -> DataFrame:
        said = {"hoodie.datasource.query.type": query, **options}
        return self.spark.read.format("hudi").options(**said).load(self.path)

    def _last_completion(self) -> str:
        """When the newest commit was completed: what an incremental query of a table of this version begins behind."""
        names = (Path(self.path) / ".hoodie" / "timeline").glob("*_*.deltacommit")
        return max(path.stem.partition("_")[2] for path in names)


class HudiBucket(HudiBloom):
    """One bucket for each partition: about as many file groups as the others have."""

    index = MappingProxyType({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
