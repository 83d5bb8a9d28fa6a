"""A Parquet scan whose partition columns come from what commits state, so that a later filter prunes in Spark's own file index.

Spark finds partition columns in the names of folders only. A classic session lets its file index be told the values of each
folder instead, whatever the folder is called. Only classes of Spark that are public in its jars take part; where one of them
is another in some Spark, or the index does not have exactly the files that it was given, there is no such scan, and the caller
reads the files in the ordinary way.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyspark_hoodie.schema import spark_schema

_log = logging.getLogger(__name__)
_BETWEEN = "\0"
"""In no name of a file, and in no value that is handed over."""
_NULL = "-"
_GIVEN = "+"
_LETTERS = {pa.string(): "s", pa.int32(): "i", pa.int64(): "l", pa.date32(): "i", pa.bool_(): "b"}
"""How the JVM makes a value of a column's type from text."""

_JAVA = """
public Object generate(Object[] given) {
  if (given.length == 1) return count((org.apache.spark.sql.execution.datasources.FileIndex) given[0]);
  String[] names = ((String) given[0]).split("\\0", -1);
  java.util.ArrayList files = new java.util.ArrayList();
  for (int i = 0; i < names.length; i++) files.add(new org.apache.hadoop.fs.Path(names[i]));
  String[] folders = ((String) given[1]).split("\\0", -1);
  String[] texts = ((String) given[2]).split("\\0", -1);
  String kinds = (String) given[3];
  int width = kinds.length();
  java.util.ArrayList paths = new java.util.ArrayList();
  for (int i = 0; i < folders.length; i++) {
    Object[] row = new Object[width];
    for (int j = 0; j < width; j++) row[j] = value(kinds.charAt(j), texts[i * width + j]);
    paths.add(new org.apache.spark.sql.execution.datasources.PartitionPath(
      new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(row), new org.apache.hadoop.fs.Path(folders[i])));
  }
  return new Object[] {
    org.apache.spark.api.python.PythonUtils.toSeq(files), org.apache.spark.api.python.PythonUtils.toSeq(paths)
  };
}

private Object value(char kind, String text) {
  if (text.charAt(0) == '-') return null;
  String rest = text.substring(1);
  if (kind == 's') return UTF8String.fromString(rest);
  if (kind == 'i') return Integer.valueOf(rest);
  if (kind == 'l') return Long.valueOf(rest);
  return Boolean.valueOf(rest);
}

private Object count(org.apache.spark.sql.execution.datasources.FileIndex index) {
  scala.collection.immutable.Nil$ all = scala.collection.immutable.Nil$.MODULE$;
  scala.collection.Iterator folders = index.listFiles(all, all).iterator();
  int files = 0;
  while (folders.hasNext())
    files += ((org.apache.spark.sql.execution.datasources.PartitionDirectory) folders.next()).files().size();
  return Integer.valueOf(files);
}
"""
"""Two calls in one: files and folders with their values as Spark has them, and how many files an index lists.

One call for each folder from Python would take half a second for a thousand of them. Spark compiles this as it compiles its
queries, once a session.
"""


def can_hold(kind: pa.DataType) -> bool:
    """Types whose bounds, when they are equal, are the one value: not floats, where NaN is outside of any bounds."""
    return kind in _LETTERS


def can_tell(value: object) -> bool:
    """Whether a value can be handed over."""
    return not (isinstance(value, str) and _BETWEEN in value)


def scan_with_values(
    spark: SparkSession,
    files: Sequence[str],
    folders: Mapping[str, Sequence[object]],
    partition_schema: pa.Schema,
    data_schema: pa.Schema,
    options: Mapping[str, str],
) -> DataFrame | None:
    """The scan of these files, partition columns last; None where this Spark does not make one.

    Args:
        files: their names as Hadoop has them, each in one of the folders; without escapes.
        folders: the folder's name -> the values of `partition_schema` in each row of its files.
    """
    failed = import_module("py4j.protocol").Py4JError  # clients of Connect may lack it
    try:
        return _scan(spark, files, folders, partition_schema, data_schema, options)
    except (failed, PySparkException, TypeError, AttributeError) as error:
        _log.debug("no scan with partition values in this Spark: %s", error)
        return None


def _scan(
    spark: Any,
    files: Sequence[str],
    folders: Mapping[str, Sequence[object]],
    partition_schema: pa.Schema,
    data_schema: pa.Schema,
    options: Mapping[str, str],
) -> DataFrame | None:
    jvm, session = spark._jvm, spark._jsparkSession
    sql = jvm.org.apache.spark.sql
    sources, none = sql.execution.datasources, jvm.scala.Option.empty()
    texts = [_text(value) for values in folders.values() for value in values]
    kinds = "".join(_LETTERS[field.type] for field in partition_schema)
    helper = _helper(jvm)
    names, paths = helper(*(_BETWEEN.join(each) for each in (files, folders, texts)), kinds)
    partitioned = _java_schema(jvm, partition_schema)
    scala_options = jvm.PythonUtils.toScalaMap(_java_map(jvm, options))
    index = sources.InMemoryFileIndex(
        session,
        names,
        scala_options,
        none,
        getattr(getattr(sources, "NoopCache$"), "MODULE$"),
        jvm.scala.Option.apply(sources.PartitionSpec(partitioned, paths)),
        none,
    )
    if helper(index) != len(files):
        return None
    relation = sources.HadoopFsRelation(
        index,
        partitioned,
        _java_schema(jvm, data_schema),
        none,
        sources.parquet.ParquetFileFormat(),
        scala_options,
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def _helper(jvm: Any) -> Any:
    """The Java above as a function."""
    generated = jvm.org.apache.spark.sql.catalyst.expressions.codegen
    nothing = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    made = generated.CodeGenerator.compile(generated.CodeAndComment(_JAVA, nothing))._1()

    def call(*given: Any) -> Any:
        return made.generate(_object_array(jvm, given))

    return call


def _object_array(jvm: Any, given: Sequence[Any]) -> Any:
    objects = jvm.java.util.ArrayList()
    for each in given:
        objects.add(each)
    return objects.toArray()


def _java_map(jvm: Any, options: Mapping[str, str]) -> Any:
    found = jvm.java.util.HashMap()
    for key, value in options.items():
        found.put(key, value)
    return found


def _java_schema(jvm: Any, schema: pa.Schema) -> Any:
    found = jvm.org.apache.spark.sql.types.DataType.fromJson(spark_schema(schema).json())
    return found.asNullable()


def _text(value: object) -> str:
    if value is None:
        return _NULL
    return _GIVEN + (str(value).lower() if isinstance(value, bool) else str(value))
