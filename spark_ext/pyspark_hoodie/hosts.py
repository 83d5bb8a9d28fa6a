"""Tasks beside their data: on HDFS the hosts of a file's blocks become preferred locations of the task that reads it.

Spark takes preferred locations of an RDD that the JVM makes, and hands them down to what is computed of it without a shuffle. So the
numbers of tasks come from such an RDD. A Connect session has no way to say it; tables elsewhere have no hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from hoodie.model.files import BaseFile
from hoodie.storage.base import Storage
from hoodie.storage.hdfs import HdfsStorage
from pyspark_hoodie.file_systems import sparks_root

LEAST_BYTES = 8 << 20
"""A smaller file is read from anywhere in less time than it takes to ask where it lies and to wait for a place there."""
MOST_TASKS = 10_000
"""Beyond so many the driver would spend more on their places than is won."""
_MOST_HOSTS = 3
_NUMBER = StructType([StructField("number", IntegerType(), nullable=False)])

Hosts = tuple[str, ...]


def hosts_of(spark: SparkSession, storage: Storage | None, tasks: Sequence[object]) -> list[Hosts] | None:
    """For each task the hosts that have most of the largest file that it reads; None where nobody says, or it does not matter."""
    session: Any = spark
    if not isinstance(storage, HdfsStorage) or not hasattr(session, "_jsparkSession") or len(tasks) > MOST_TASKS:
        return None
    files = [_largest(task) for task in tasks]
    if not any(files):
        return None
    root = sparks_root(spark, storage).uri
    if root is None:
        return None
    hosts: dict[str, Hosts] = {}
    try:
        path_of = session._jvm.org.apache.hadoop.fs.Path
        system = path_of(root).getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
        for file in files:
            if file is not None and file.path not in hosts:
                blocks = system.getFileBlockLocations(path_of(f"{root.rstrip('/')}/{file.path}"), 0, file.size_bytes)
                hosts[file.path] = _most_of(blocks)
    except Py4JError:  # the task itself says what is wrong with its file
        return None
    return [() if file is None else hosts[file.path] for file in files]


def _largest(task: object) -> BaseFile | None:
    base = getattr(task, "base", None) or getattr(getattr(task, "slice", None), "base", None)
    return base if isinstance(base, BaseFile) and base.size_bytes >= LEAST_BYTES else None


def _most_of(blocks: Any) -> Hosts:
    size: Counter[str] = Counter()
    for block in blocks:
        for host in block.getHosts():
            size[host] += block.getLength()
    return tuple(host for host, _ in size.most_common(_MOST_HOSTS))


def placed_numbers(spark: SparkSession, hosts: Sequence[Hosts]) -> DataFrame:
    """Rows 0, 1, ..., each in a partition of its own that would rather be computed on these hosts."""
    session: Any = spark
    jvm, context = session._jvm, session.sparkContext._jsc.sc()
    rows = [
        jvm.scala.Tuple2(jvm.org.apache.spark.sql.RowFactory.create(_array(session, number)), _seq(jvm, places))
        for number, places in enumerate(hosts)
    ]
    tag = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").AnyRef()
    numbers = context.makeRDD(_seq(jvm, rows), tag).toJavaRDD()
    schema = session._jsparkSession.parseDataType(_NUMBER.json())
    return DataFrame(session._jsparkSession.createDataFrame(numbers, schema), spark)


def _seq(jvm: Any, values: Sequence[Any]) -> Any:
    java_list = jvm.java.util.ArrayList()
    for value in values:
        java_list.add(value)
    return jvm.PythonUtils.toSeq(java_list)


def _array(session: Any, number: int) -> Any:
    result = session.sparkContext._gateway.new_array(session._jvm.java.lang.Object, 1)
    result[0] = number
    return result
