"""A Parquet scan in which Spark's own file index leaves out files by what is known of their columns, in classic sessions.

Spark asks its file index for files once it has the filter of a query. Ours (`bounded_files.java`) is Spark's own but for this
answer: it leaves files out, and may give each a mark. Only classes of Spark that are public in its jars take part; where one of them
is another in some Spark, or the index does not have exactly the files that it was given, there is no such scan, and the caller reads
the files in the ordinary way.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from pyspark_hoodie.folders import PartitionValues
from pyspark_hoodie.java_code import compiled
from pyspark_hoodie.schema import spark_schema

_log = logging.getLogger(__name__)
_BETWEEN = "\0"
"""In no name of a file, and in no value that is handed over."""
_NULL = "-"
_GIVEN = "+"
MARK = "_tmp_hoodie_mark"
"""A column of a marked scan: the number that was given for the row's file, null where none was."""
_LETTERS = {pa.string(): "s", pa.int32(): "i", pa.int64(): "l", pa.date32(): "i", pa.bool_(): "b"}
"""How the JVM makes a value of a partition column from text."""


def bounded_scan(
    spark: Any,
    names: Sequence[str],
    bounds: str,
    schema: pa.Schema,
    partitions: PartitionValues,
    options: Mapping[str, str],
    marks: Sequence[int | None],
) -> DataFrame | None:
    """The scan of these files, partition columns last; None where this Spark does not make one.

    Args:
        names: as Hadoop has them, without escapes.
        bounds: what is known of them (`bounds.py`).
        partitions: columns of `schema` that are partition columns to Spark, with folders as Hadoop has them.
        marks: for each file, what `MARK` is in its rows; none: the scan has no such column.
    """
    failed = import_module("py4j.protocol").Py4JError  # clients of Connect may lack it
    try:
        jvm, session = spark._jvm, spark._jsparkSession
        java_list = jvm.java.util.ArrayList()
        scala_options = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap(dict(options)))
        data = pa.schema([field for field in schema if field.name not in partitions.columns])
        parted = pa.schema([schema.field(name) for name in partitions.columns])
        texts = [_text(value) for values in partitions.folders.values() for value in values]
        for each in (
            session,
            _BETWEEN.join(names),
            bounds,
            spark_schema(data).json(),
            scala_options,
            spark_schema(parted).json(),
            _BETWEEN.join(partitions.folders),
            _BETWEEN.join(texts),
            "".join(_LETTERS[field.type] for field in parted),
            _BETWEEN.join("" if mark is None else str(mark) for mark in marks),
            MARK,
        ):
            java_list.add(each)
        relation = compiled(jvm, "bounded_files.java").generate(java_list.toArray())
        return None if relation is None else DataFrame(session.baseRelationToDataFrame(relation), spark)
    except (failed, PySparkException, TypeError, AttributeError) as error:
        _log.debug("no scan with bounds in this Spark: %s", error)
        return None


def _text(value: object) -> str:
    if value is None:
        return _NULL
    return _GIVEN + (str(value).lower() if isinstance(value, bool) else str(value))
