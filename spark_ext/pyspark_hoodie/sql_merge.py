"""A MERGE by record key on Spark that an upsert of its source does as well: the table is not joined (`sql_merging.java`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.write.keys import key_columns
from hoodie.write.placement import is_global
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.small_batch import TooLargeError, collected, is_small


def upserted(
    query: DataFrame, columns: Sequence[int], names: Sequence[str], config: TableConfig, write: WriteOptions
) -> pa.Table | None:
    """Rows whose upsert does what the query of a MERGE does. None: no such, more than the driver may hold, or two of one key.

    Args:
        columns: where in a row of the query the values of the table's columns `names` are.
    """
    if config.generates_keys:
        return None
    spark: Any = query.sparkSession
    merging = spark._jvm.hoodie_spark.Merging.of(query._jdf.queryExecution().analyzed())
    keys = key_columns(config)
    needed = list(config.record_key_fields) if is_global(config, write) else keys
    plan = None if merging is None else merging.upsert(list(columns), list(names), needed, keys)
    if plan is None:
        return None
    source = DataFrame(spark._jvm.hoodie_spark.Planning.frame(spark._jsparkSession, plan), spark)
    if not is_small(source, write.driver_max_bytes):
        return None
    try:
        with SparkEngine(spark).described(f"merge {config.name}: read the source"):
            rows = collected(source)
    except TooLargeError:
        return None
    return rows if rows.group_by(keys).aggregate([]).num_rows == rows.num_rows else None
