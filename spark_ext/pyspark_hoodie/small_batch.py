"""Small batches: their rows come to the driver as Arrow, in one job without Python workers, and this process writes them.

Whether a batch is small is asked of Spark's optimizer, before any row is made; plans whose rows may be more than those of
their sources, or whose size it does not know, are not small. Where it was wrong, `spark.driver.maxResultSize` ends the job, nothing
is kept of it, and the rows are staged by executors as those of every larger batch.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from hoodie.engine.base import StageBatches
from hoodie.engine.local import LocalEngine
from pyspark_hoodie.engine import SparkEngine, conformed
from pyspark_hoodie.schema import given_schema

ARROW_GROWTH = 4
"""How many times larger than Spark's estimate, which is that of compressed files, rows may be as Arrow."""
_MOST_NODES = 32
"""Of a plan that is looked at: each is a question to the JVM."""
_NEVER_MORE_ROWS = {
    "Aggregate",
    "ArrowEvalPython",
    "BatchEvalPython",
    "DataSourceV2ScanRelation",
    "Filter",
    "GlobalLimit",
    "InMemoryRelation",
    "LocalLimit",
    "LocalRelation",
    "LogicalRelation",
    "OneRowRelation",
    "Project",
    "Range",
    "RebalancePartitions",
    "Repartition",
    "RepartitionByExpression",
    "Sort",
    "Union",
    "Window",
}
"""Nodes of optimized plans that give at most the rows of their children, or are sources."""


class TooLargeError(Exception):
    """The rows are more than Spark lets a driver have; none of them was kept."""


class DriverEngine(LocalEngine):
    """The embedded engine, for a DataFrame whose rows it brings to this process."""

    def __init__(self, engine: SparkEngine) -> None:
        super().__init__()
        self._engine = engine
        self.zone = engine.zone

    def stage(self, records: DataFrame, fn: StageBatches[Any], *, label: str) -> list[Any]:
        """As the seam says.

        Raises:
            TooLargeError: the job was ended for its size.
        """
        with self._engine.described(label):
            batches = _collected(records)
        return list(fn(0, conformed(iter(batches), given_schema(records.schema))))


def is_small(df: DataFrame, most_bytes: int) -> bool:
    """Whether the rows are expected to be at most so many bytes of Arrow; not known in a session of Connect."""
    frame: Any = getattr(df, "_jdf", None)
    if frame is None or most_bytes == 0:
        return False
    plan = frame.queryExecution().optimizedPlan()
    if int(str(plan.stats().sizeInBytes())) > most_bytes // ARROW_GROWTH:
        return False
    count, waiting = 0, [plan]
    while waiting:
        node = waiting.pop()
        count += 1
        if count > _MOST_NODES or node.getClass().getSimpleName() not in _NEVER_MORE_ROWS:
            return False
        children = node.children()
        waiting += [children.apply(at) for at in range(children.size())]
    return True


def collected(df: DataFrame) -> pa.Table:
    """The rows, in this process.

    Raises:
        TooLargeError: the job was ended for its size.
    """
    schema = given_schema(df.schema)
    return pa.Table.from_batches(conformed(iter(_collected(df)), schema), schema)


def _collected(df: Any) -> list[pa.RecordBatch]:
    try:
        # As they come: `toArrow` casts them to the schema, and cannot where a struct with a field that is "not null" is null.
        if hasattr(type(df), "_collect_as_arrow"):  # a frame of Connect has a column of any name
            result: list[pa.RecordBatch] = df._collect_as_arrow()
            return result
        table: pa.Table = df.toArrow()
        return table.to_batches()
    except Exception as error:
        if "spark.driver.maxResultSize" in str(error):
            raise TooLargeError from error
        raise
