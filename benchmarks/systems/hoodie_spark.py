"""`format("hoodie")`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

import pyspark_hoodie
from benchmarks.rides import BASE, CODEC, KEY, LAST, ORDERING, PARTITION
from benchmarks.systems.base import PLAIN, READ_OPTIMIZED, SNAPSHOT, VERSION_9
from benchmarks.systems.spark import SparkSystem, total_of

_QUERIES = {SNAPSHOT: "snapshot", READ_OPTIMIZED: "read_optimized"}


def _settings(_: Path) -> Mapping[str, str]:
    return {"spark.python.daemon.module": "pyspark_hoodie.daemon"}


class MergeOnRead(SparkSystem):
    """Logs beside base files. Its workers are forked from its daemon, as docs/SPARK.md recommends."""

    settings = staticmethod(_settings)
    views = (PLAIN, SNAPSHOT, READ_OPTIMIZED)
    table_type = "MERGE_ON_READ"
    made_with: Mapping[str, str] = MappingProxyType({})
    """More options of the table."""
    more: Mapping[str, str] = MappingProxyType({})
    """Options of every write."""

    def __init__(self, folder: Path, root: Path, spark: SparkSession) -> None:
        super().__init__(folder, root, spark)
        pyspark_hoodie.enable(spark)

    def load(self) -> None:
        options = {
            "hoodie.datasource.write.recordkey.field": KEY,
            "hoodie.datasource.write.partitionpath.field": PARTITION,
            "hoodie.datasource.write.precombine.field": ORDERING,
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.operation": "bulk_insert",
            **self.made_with,
        }
        self._write(BASE, options)

    def prepare(self, name: str) -> None:
        if name == LAST:
            self.since = pyspark_hoodie.last_commit(self.path).position or ""

    def upsert(self, name: str) -> None:
        self._write(name, {})

    def outcome(self) -> str:
        done = pyspark_hoodie.last_commit(self.path)
        return f"{done.inserted} new, {done.updated} updated"

    def pull(self) -> str:
        return total_of(self._read("incremental", {"hoodie.datasource.read.begin.instanttime": self.since}))

    def compact(self) -> None:
        pyspark_hoodie.HoodieTable.for_path(self.spark, self.path).compact()

    def frame(self, view: str) -> DataFrame:
        return self._read(_QUERIES[view], {})

    def _write(self, name: str, options: dict[str, str]) -> None:
        said = {"hoodie.parquet.compression.codec": CODEC, **options, **self.more}
        self.source(name).write.format("hoodie").options(**said).mode("append").save(self.path)

    def _read(self, query: str, options: dict[str, str]) -> DataFrame:
        said = {"hoodie.datasource.query.type": query, **options}
        return self.spark.read.format("hoodie").options(**said).load(self.path)


class MergeOnReadDistributed(MergeOnRead):
    """No batch is brought to the driver, however small."""

    more = MappingProxyType({"hoodie.python.driver.max.bytes": "0"})


class CopyOnWrite(MergeOnRead):
    """Base files that are written anew."""

    views = (PLAIN, SNAPSHOT)
    table_type = "COPY_ON_WRITE"


class MergeOnRead9(MergeOnRead):
    """A table of version 9."""

    made_with = VERSION_9


class CopyOnWrite9(CopyOnWrite):
    """A table of version 9."""

    made_with = VERSION_9
