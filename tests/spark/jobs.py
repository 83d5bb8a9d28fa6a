"""A small DataFrame, and the jobs that Spark runs for some work."""

import uuid

from pyspark.sql import functions as F


def described(spark, work):
    """What Spark's UI calls the jobs that `work` runs, in their order, and what it returns."""
    context = spark.sparkContext
    group = uuid.uuid4().hex
    context.setJobGroup(group, "a test's")
    try:
        done = work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        context.setLocalProperty("spark.job.description", None)
    store = context._jsc.sc().statusStore()
    return [store.job(n).description().get() for n in sorted(context.statusTracker().getJobIdsForGroup(group))], done


def few(spark, count=40, *, ts=1):
    return spark.range(0, count, 1, 4).select(
        F.concat(F.lit("k"), "id").alias("id"),
        F.when(F.col("id") % 2 == 0, "a").otherwise("b").alias("part"),
        F.lit("x").alias("note"),
        F.lit(ts).cast("long").alias("ts"),
    )
