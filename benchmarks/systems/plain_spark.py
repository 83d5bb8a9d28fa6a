"""Plain Parquet through Spark: the floors. Nothing is looked up, nothing is committed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.meter import Meter
from benchmarks.rides import (
    BASE,
    BATCHES,
    KEY,
    LAST,
    ORDERING,
    PARTITION,
    batches,
    count_of_small,
    moment_of,
    random_batches,
    small,
)
from benchmarks.systems.base import LOAD, NOTHING, PULL, RANDOM, SMALL_COMMITS, UPSERT, Effort, Measured
from benchmarks.systems.spark import digest_of, source, total_of


class PlainSpark:
    """`append` writes a batch beside the table; `naive rewrite` writes the whole table without the batch's keys, and the batch."""

    settings = staticmethod(lambda folder: {})

    def __init__(self, folder: Path, root: Path, spark: SparkSession) -> None:
        self.folder = folder
        self.root = root
        self.spark = spark
        self.table = str(root / "rides")

    def run(self, steps: Sequence[str], effort: Effort) -> Iterator[Measured]:
        if LOAD in steps:
            yield from self._loads(effort)
        delta = str(self.root / "delta")
        for name in batches() if UPSERT in steps else ():
            with Meter(self.root) as meter:
                self._source(name).write.mode("append").parquet(delta)
            yield Measured("append", meter.cost)
            if name in {batches()[0], batches()[1], LAST}:
                yield self._rewrite("naive rewrite", name)
        if PULL in steps:
            for _ in range(effort.pulls):
                with Meter() as meter:
                    both = self.spark.read.parquet(self.table, delta)
                    since = f"{moment_of(BATCHES - 1).as_py():%Y-%m-%d %H:%M:%S}"
                    check = total_of(both.where(f"{ORDERING} >= TIMESTAMP '{since}'"))
                yield Measured("incremental, last commit", meter.cost, check)
        for called, name in random_batches() if RANDOM in steps else ():
            with Meter(self.root) as meter:
                self._source(name).write.mode("append").parquet(delta)
            yield Measured(f"append, {called}", meter.cost)
            yield self._rewrite(f"naive rewrite, {called}", name)
        if {UPSERT, RANDOM} <= set(steps):
            yield Measured("rows after the upserts", NOTHING, self._digest())
        for number in range(count_of_small(self.folder)) if SMALL_COMMITS in steps else ():
            with Meter(self.root) as meter:
                self._source(small(number)).write.mode("append").parquet(str(self.root / "small"))
            yield Measured("small append", meter.cost)

    def _loads(self, effort: Effort) -> Iterator[Measured]:
        for _ in range(effort.loads):
            shutil.rmtree(self.root, ignore_errors=True)
            self.root.mkdir(parents=True)
            with Meter(self.root) as meter:
                self._source(BASE).write.parquet(self.table)
            yield Measured("copy", meter.cost)
            with Meter(self.root) as meter:
                self._source(BASE).write.partitionBy(PARTITION).parquet(f"{self.table}-by-day")
            yield Measured("copy into partitions", meter.cost)

    def _rewrite(self, case: str, name: str) -> Measured:
        target = self.root / "rewritten"
        shutil.rmtree(target, ignore_errors=True)
        with Meter(self.root) as meter:
            self._merged(self.spark.read.parquet(self.table), name).write.parquet(str(target))
        return Measured(case, meter.cost)

    def _merged(self, old: DataFrame, name: str) -> DataFrame:
        batch = self._source(name)
        return old.join(batch.select(KEY), KEY, "left_anti").select(*batch.columns).unionByName(batch)

    def _digest(self) -> str:
        rows = self.spark.read.parquet(self.table)
        for name in (*batches(), *(name for _, name in random_batches())):
            rows = self._merged(rows, name)
        return digest_of(rows, self.folder / f"digest-{self.root.name}")

    def _source(self, name: str) -> DataFrame:
        return source(self.spark, self.folder, name)
