"""What public programs of PySpark share (`public_programs.py`): their session, and what one sees.

Nothing of hoodie is imported, so that they run with Apache Hudi's bundle as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

Seen = dict[str, list[list[Any]]]
PROGRAMS: dict[str, Callable[[SparkSession, str], Seen]] = {}
BUILDER = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.hive.convertMetastoreParquet": "false",
    "spark.sql.legacy.pathOptionBehavior.enabled": "true",
    "className": "org.apache.hudi",
}
"""What most of them give to `getOrCreate`."""


def program(source: str) -> Callable[[Callable[[SparkSession, str], Seen]], Callable[[SparkSession, str], Seen]]:
    def add(function: Callable[[SparkSession, str], Seen]) -> Callable[[SparkSession, str], Seen]:
        PROGRAMS[function.__name__] = function
        function.__doc__ = f"After {source}."
        return function

    return add


def session() -> SparkSession:
    builder = SparkSession.builder.appName("public program")
    for name, value in BUILDER.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def seen(frame: DataFrame, *columns: str) -> list[list[Any]]:
    """Rows in an order, as JSON keeps them."""
    names = columns or tuple(name for name in frame.columns if not name.startswith("_hoodie_"))
    rows = [[_plain(value) for value in row] for row in frame.select(*names).collect()]
    return sorted(rows, key=json.dumps)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | bool | str | None) else str(value)


def commits_of(spark: SparkSession, path: str) -> list[str]:
    spark.read.format("hudi").load(path).createOrReplaceTempView("snapshot_of_commits")
    query = "select distinct(_hoodie_commit_time) as commitTime from snapshot_of_commits order by commitTime"
    return [row[0] for row in spark.sql(query).limit(50).collect()]


def run(name: str, spark: SparkSession, root: str) -> Seen:
    """What a program saw, as JSON gives it back."""
    session()
    found: Seen = json.loads(json.dumps(PROGRAMS[name](spark, root)))
    return found
