"""Which storages Spark's own readers reach: what it has no file system for is read by the engine's tasks."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from hoodie.storage.base import Storage


def reads_files_of(spark: SparkSession, storage: Storage) -> bool:
    """Whether Spark has a file system for the storage's scheme: of its own, or since the job brought one (S3A).

    A Connect session cannot be asked; of one only local disks are taken for reachable.
    """
    if storage.local_path("") is not None:
        return True
    asked: Any = spark
    if not hasattr(asked, "_jsparkSession"):
        return False
    scheme = storage.uri.partition("://")[0]
    hadoop = asked._jsparkSession.sessionState().newHadoopConf()
    try:
        asked._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, hadoop)
    except Py4JJavaError:
        return False
    return True
