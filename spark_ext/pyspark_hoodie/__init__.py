"""pyspark_hoodie: `format("hoodie")` for Spark DataFrames.

Spark imports every module named pyspark_* in its planner workers when it looks for data sources, so nothing is imported
here until a name is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_hoodie.datasource import DefaultSource
    from pyspark_hoodie.ingestion import ingest
    from pyspark_hoodie.stream_sink import stream_writer
    from pyspark_hoodie.table import HoodieTable, last_commit

__all__ = ["DefaultSource", "HoodieTable", "disable", "enable", "ingest", "last_commit", "stream_writer"]

_HOMES = {
    "DefaultSource": "pyspark_hoodie.datasource",
    "HoodieTable": "pyspark_hoodie.table",
    "ingest": "pyspark_hoodie.ingestion",
    "last_commit": "pyspark_hoodie.table",
    "stream_writer": "pyspark_hoodie.stream_sink",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as exc:
        # Spark 3.5 has no Python data sources: there the module has no DefaultSource.
        if exc.name != "pyspark.sql.datasource":
            raise
        raise AttributeError(
            f"module {__name__!r} has no {name!r} with this Spark: call pyspark_hoodie.enable"
        ) from exc


def enable(spark: SparkSession, aliases: Iterable[str] = ()) -> None:
    """Make `format("hoodie")` of DataFrame readers and writers ordinary distributed plans in this process.

    Other formats are untouched. Calling it again adds aliases; `disable` undoes it.

    Args:
        spark: the session, classic or Connect.
        aliases: more format names to answer to, such as "hudi".

    Example:
        >>> pyspark_hoodie.enable(spark)
        >>> spark.read.format("hoodie").load("/data/trips").show()
    """
    import_module("pyspark_hoodie.hook").enable(spark, aliases)
    import_module("pyspark_hoodie.stream_hook").enable(spark)
    import_module("pyspark_hoodie.sql_hook").enable(spark, aliases)
    import_module("pyspark_hoodie.live_frames").enable(spark)


def disable() -> None:
    """Undo `enable`: readers and writers made from now on are Spark's own again."""
    import_module("pyspark_hoodie.sql_catalog").remove()
    import_module("pyspark_hoodie.hook").disable()


def __dir__() -> list[str]:
    """The public names: what completion shows."""
    return __all__
