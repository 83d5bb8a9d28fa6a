"""Frames that outlive their snapshot: the static side of a stream, and what `spark.catalog` is told to refresh.

A DataFrame keeps the snapshot of the moment when it was made. In a stream that would be the first one for ever, until its files
are cleaned. So the plan of a query of the newest rows carries a mark that says what it reads. Where a stream is started on
such a plan, a relation stands in place of the marked part that reads the table anew for each batch (`live_frames.java`).
Connect's clients do not see plans, so their frames stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyspark_hoodie import dataframe, hook, query_errors
from pyspark_hoodie.frame_marks import has_marks, is_classic, marked_frames
from pyspark_hoodie.java_code import compiled
from pyspark_hoodie.reach import reached

_JAVA = "live_frames.java"


def enable(spark: SparkSession) -> None:
    """After `hook.enable`, whose `disable` undoes it."""
    catalog = type(spark.catalog)
    hook.replace_method(catalog, "refreshByPath", _and_frames)
    hook.replace_method(catalog, "refreshTable", _and_views)
    if is_classic(spark):
        hook.replace_function("pyspark.errors.exceptions.captured", "convert_exception", query_errors.converted)
    else:
        hook.replace_function("pyspark.sql.connect.client.core", "convert_exception", query_errors.received)


def with_live_sides(df: DataFrame) -> DataFrame:
    """A streaming DataFrame whose marked parts read the newest commit of each batch; others as they are."""
    spark: Any = df.sparkSession
    if not has_marks() or not is_classic(spark) or not df.isStreaming:
        return df
    replacements = {}
    for text, columns in _marks_within(df).items():
        path, options = json.loads(text)
        import_module("pyspark.java_gateway").ensure_callback_server_started(spark.sparkContext._gateway)
        rows = _Rows(spark, path, options, StructType.fromJson(json.loads(columns)))
        size = dataframe.bytes_of(spark, path, options)
        relation = compiled(spark._jvm, _JAVA).liveRelation(spark._jsparkSession, columns, size, rows)
        replacements[text] = DataFrame(spark._jsparkSession.baseRelationToDataFrame(relation), spark)
    return _replaced(df, replacements)


class _Rows:
    """What a relation asks for its rows whenever a batch is planned: a function of Java's."""

    def __init__(self, spark: Any, path: str, options: Mapping[str, str], schema: StructType) -> None:
        self._spark, self._path, self._options, self._schema = spark, path, options, schema

    def apply(self, columns: str) -> Any:
        fields = [self._schema[name] for name in columns.split("\0") if name]
        rows = dataframe.read(self._spark, self._path, self._options)
        # The table may have got members of structs and wider numbers since.
        rows = rows.to(StructType(fields)) if fields else rows.select()
        return rows._jdf.queryExecution().toRdd()

    class Java:
        implements = ("java.util.function.Function",)


def _and_frames(refresh: Callable[..., None]) -> Callable[..., None]:
    """Frames of a table that users hold read its newest rows; those that were made of them before stay as they are."""

    @wraps(refresh)
    def call(self: Any, path: str) -> None:
        refresh(self, path)
        spark = self._sparkSession
        for frame, text in list(marked_frames.items()):
            stored_path, _ = json.loads(text)
            if frame.sparkSession is spark and _uri(spark, stored_path) == _uri(spark, path):
                frame._jdf = _refreshed(frame)._jdf

    return call


def _and_views(refresh: Callable[..., None]) -> Callable[..., None]:
    """The same for a temporary view."""

    @wraps(refresh)
    def call(self: Any, tableName: str) -> None:
        refresh(self, tableName)
        spark = self._sparkSession
        if not has_marks() or not is_classic(spark):
            return
        try:
            view = spark.table(tableName) if self.getTable(tableName).isTemporary else None
        except PySparkException:
            return
        if view is not None and _marks_within(view):
            _refreshed(view).createOrReplaceTempView(tableName)

    return call


def _refreshed(frame: DataFrame) -> DataFrame:
    """The frame on the newest rows of its tables, with the columns that it had."""
    replacements = {}
    for text, columns in _marks_within(frame).items():
        path, options = json.loads(text)
        now = dataframe.read(frame.sparkSession, path, options)
        replacements[text] = now.to(StructType.fromJson(json.loads(columns)))
    return _replaced(frame, replacements)


def _marks_within(frame: Any) -> dict[str, str]:
    """What the marked parts of its plan read, with their columns as JSON."""
    result = compiled(frame.sparkSession._jvm, _JAVA).marksWithin(frame._jdf.queryExecution().analyzed())
    return dict(result)


def _replaced(frame: Any, replacements: Mapping[str, Any]) -> DataFrame:
    """The frame with others in place of its marked parts."""
    if not replacements:
        return frame  # type: ignore[no-any-return]
    spark = frame.sparkSession
    plans = spark._jvm.java.util.HashMap()
    for text, other in replacements.items():
        plans.put(text, other._jdf.queryExecution().analyzed())
    plan = compiled(spark._jvm, _JAVA).replaced(frame._jdf.queryExecution().analyzed(), plans)
    package = spark._jvm.org.apache.spark.sql
    datasets = package.Dataset if spark.version.startswith("3.") else package.classic.Dataset
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)


def _uri(spark: Any, path: str) -> str:
    return reached(path, {}, spark)[0].uri.rstrip("/")
