"""Arrow data of the driver as a DataFrame: a local relation, so that neither a job nor a Python worker is needed to read it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyspark_hoodie.schema import spark_schema


def arrow_frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows of the table. Spark 3.5 has no public way; there it is that of its frames from pandas, without pandas."""
    if hasattr(DataFrame, "toArrow"):  # both came with Spark 4
        create: Any = spark.createDataFrame
        made: DataFrame = create(table, spark_schema(table.schema))
        return made
    return _before_4(spark, table)


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
