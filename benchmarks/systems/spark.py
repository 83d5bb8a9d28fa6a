"""What the systems on Spark have in common: one local session of two cores, and queries over a DataFrame of a view."""

from __future__ import annotations

import os
import shutil
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col

from benchmarks.rides import CODEC, KEY, ORDERING, SUMMED, digest
from benchmarks.systems.base import AFTER, PLAIN, READ_OPTIMIZED, SCAN, SNAPSHOT, WIDE_AGGREGATE, TableSystem
from benchmarks.systems.embedded import SHOWN

CONF = Path(__file__).resolve().parent.parent.parent / "conf"
SUMS = ("count(*) AS n", "sum(cast(round(fare * 100) AS bigint)) AS cents", "sum(passengers) AS passengers")
_WIDE = (
    *SUMS,
    f"unix_micros(max({ORDERING})) AS latest",
    "max(distance_km) AS longest",
    "min(duration_min) AS shortest",
    "sum(zone) AS zones",
)
_EVERY_SESSION = {
    "spark.master": "local[2]",
    "spark.sql.parquet.compression.codec": CODEC,
    # A job that lists folders would be part of what plain scans cost.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
}


def start(name: str, folder: Path, settings: Mapping[str, str]) -> SparkSession:
    """A session that has run one job, so that the JVM's own start is nobody's cost; the same heap for every system."""
    os.environ.setdefault("SPARK_CONF_DIR", str(CONF))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 3g pyspark-shell"
    places = {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "spill")}
    builder = SparkSession.builder.appName(f"bench {name}")
    for key, value in {**_EVERY_SESSION, **places, **settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(100_000).selectExpr("sum(id)").collect()
    return spark


def jars(*patterns: str) -> str:
    """The jar files of a peer, as `spark.jars` takes them, from the folder that HOODIE_BENCH_JARS names."""
    folder = Path(os.environ["HOODIE_BENCH_JARS"])
    found = sorted(path for pattern in patterns for path in folder.glob(pattern))
    if not found:
        raise FileNotFoundError(
            f"no {', '.join(patterns)} in {folder}: run `make bench`, which fetches the peers' jars"
        )
    return ",".join(map(str, found))


def source(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """The rows of a batch; reading their files is part of what is measured."""
    return spark.read.parquet(str(folder / "source" / name))


def total_of(frame: DataFrame) -> str:
    """Number of rows and the sums of two columns in units that add exactly."""
    found = frame.selectExpr(*SUMS).collect()[0]
    return f"{found['n']} rows, {found['cents']} cents, {found['passengers']} passengers"


def digest_of(frame: DataFrame, scratch: Path) -> str:
    """`rides.digest` of the frame's rows, by way of a Parquet file."""
    frame.select(KEY, ORDERING, *SUMMED).write.mode("overwrite").parquet(str(scratch))
    found = digest(pq.read_table(scratch))
    shutil.rmtree(scratch)
    return found


class SparkSystem(TableSystem):
    """A table behind a session. Each load makes a table with a path of its own: what a session remembers of a path is never stale."""

    settings: Callable[[Path], Mapping[str, str]] = staticmethod(lambda folder: {})
    """The session's settings; `folder` is where the tables will be."""
    keeps_loaded_files = False
    """Whether upserts leave the files of the load where they are and put deletes beside them; then these are its base files."""
    attempt = 0

    def __init__(self, folder: Path, root: Path, spark: SparkSession) -> None:
        super().__init__(folder, root)
        self.spark = spark
        self.base_files: list[str] = []
        self.columns: list[str] = []

    @abstractmethod
    def frame(self, view: str) -> DataFrame:
        """The rows of a view of the table; opening it is part of every query."""

    @property
    def path(self) -> str:
        return str(self.root / f"rides_{self.attempt}")

    def clear(self) -> None:
        super().clear()
        self.attempt += 1

    def source(self, name: str) -> DataFrame:
        return source(self.spark, self.folder, name)

    def prepare_upserts(self) -> None:
        if self.keeps_loaded_files:
            self.base_files = self.list_base_files()

    def prepare_reads(self, state: str) -> None:
        """The files that plain scans read: the base files of the table as it is now."""
        if state == AFTER or not self.keeps_loaded_files:
            self.base_files = self.list_base_files()
        columns = self.spark.read.parquet(*self.base_files).columns
        self.columns = [name for name in self.frame(SNAPSHOT).columns if name in columns]

    def list_base_files(self) -> list[str]:
        """The table's data files, logs and deletes left out."""
        return self.frame(READ_OPTIMIZED if READ_OPTIMIZED in self.views else SNAPSHOT).inputFiles()

    def aggregate(self, view: str) -> str:
        return total_of(self._view(view))

    def scan(self, view: str) -> None:
        # Not by a sink that does nothing: with deletion vectors Delta refuses plans of a write.
        self._view(view)._jdf.queryExecution().toRdd().count()

    def first_queries(self) -> Sequence[tuple[str, Callable[[], str | None]]]:
        return [(WIDE_AGGREGATE, self._wide_aggregate), (SCAN, lambda: self.scan(SNAPSHOT))]

    def _wide_aggregate(self) -> str:
        found = self._view(SNAPSHOT).selectExpr(*_WIDE).collect()[0]
        return ", ".join(f"{value} {name}" for name, value in found.asDict().items())

    def lookup(self, view: str) -> str:
        return _answer_of(self._view(view).where(col(KEY) == self.key).select(*SHOWN).collect())

    def digest(self) -> str:
        return digest_of(self.frame(SNAPSHOT), self.folder / f"digest-{self.root.name}")

    def _view(self, view: str) -> DataFrame:
        if view == PLAIN:
            return self.spark.read.parquet(*self.base_files).select(*self.columns)
        return self.frame(view)


def _answer_of(rows: list[Row]) -> str:
    return "; ".join(", ".join(str(row[name]) for name in SHOWN) for row in rows)
