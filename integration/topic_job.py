"""Ingestion of a topic by Spark as a program of its own, which a test kills.

python -m integration.topic_job ADDRESS TABLE ROWS-OF-A-ROUND [CONNECT-SERVER]
"""

import sys

from pyspark.sql import SparkSession

import pyspark_hoodie


def main(address: str, table: str, max_rows: str, server: str | None = None) -> None:
    builder: SparkSession.Builder = SparkSession.builder
    builder = (
        builder.master("local[2]").config("spark.ui.enabled", "false") if server is None else builder.remote(server)
    )
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    pyspark_hoodie.ingest(spark, address, table, operation="insert", max_rows=int(max_rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
