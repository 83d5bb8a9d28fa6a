"""Arrow data of the driver as a DataFrame: a local relation, so that neither a job nor a Python worker is needed to read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyspark_hoodie.schema import spark_schema


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of the table. Spark 3.5 has no public way; there it is that of its frames from pandas, without pandas.

    Empty batches stay behind: Spark 4 in a classic session takes the first one after a row for the end of the data.
    """
    table = pa.Table.from_batches([batch for batch in table.to_batches() if batch.num_rows], table.schema)
    if hasattr(DataFrame, "toArrow"):  # both came with Spark 4
        create: Any = spark.createDataFrame
        frame: DataFrame
        rows = spark.conf.get(_BATCH_ROWS, None)
        if rows is None or int(rows) > 0:
            frame = create(table, spark_schema(table.schema))
        else:  # "no limit" for all of Spark but this
            with changed_setting(spark, _BATCH_ROWS, str(max(table.num_rows, 1))):
                frame = create(table, spark_schema(table.schema))
        return frame
    return _before_4(spark, table)


_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"


def _before_4(spark: Any, table: pa.Table) -> DataFrame:
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer  # noqa: PLC0415 - moves between versions

    jvm = spark._jvm
    rows = spark.sparkContext._serialize_to_jvm(
        table.combine_chunks().to_batches(),
        ArrowStreamSerializer(),
        jvm.PythonSQLUtils.readArrowStreamFromFile,
        jvm.ArrowIteratorServer,
    )
    frame = jvm.PythonSQLUtils.toDataFrame(rows, spark_schema(table.schema).json(), spark._jsparkSession)
    return DataFrame(frame, spark)


# -- A setting of the session that is another one for a moment.

_CHANGING = RLock()


@contextmanager
def changed_setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """The setting has this value inside the block; put back in the order in which it was changed, whoever else changes some."""
    with _CHANGING:
        before = spark.conf.get(name, None)
        spark.conf.set(name, value)
        try:
            yield
        finally:
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)
