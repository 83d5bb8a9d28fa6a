"""Which storages Spark's own readers reach: what it has no file system for is read by the engine's tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from hoodie.storage.base import Storage
from hoodie.storage.hdfs import HdfsStorage
from hoodie.storage.object_store import ObjectStorage
from pyspark_hoodie.reach import session_options, settings_of

_ALSO_BY = {"s3": "s3a", "s3n": "s3a"}
"""Most jobs have Hadoop's S3A for S3, and nothing under the other names."""
_SPARK_NEEDS_NOT = ("region", "allow_http")
"""Ends of the names of options without which Spark's file systems reach the same files."""


class SparksRoot(NamedTuple):
    """The table's folder as Spark's own readers name it; None: they are not asked, and why."""

    uri: str | None
    why_not: str = ""


def sparks_root(spark: SparkSession, storage: Storage) -> SparksRoot:
    """Whether Spark has a file system for the storage, of its own or since the job brought one, and opens it as we did.

    A Connect session cannot be asked; of one only local disks are taken for reachable.
    """
    local = storage.can.local_root
    if local is not None:
        return SparksRoot(f"file:{local}")
    session: Any = spark
    if not hasattr(session, "_jsparkSession"):
        return SparksRoot(None, "a Connect session does not tell which file systems its server has")
    scheme, _, rest = storage.uri.partition("://")
    hadoop = session._jsparkSession.sessionState().newHadoopConf()
    for name in dict.fromkeys((scheme, _ALSO_BY.get(scheme, scheme))):
        try:
            session._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(name, hadoop)
        except Py4JJavaError:
            continue
        if _is_told_the_same(spark, storage):
            return SparksRoot(f"{name}://{rest}")
        return SparksRoot(None, f"the session's Hadoop settings do not say how this read reaches {scheme}://")
    return SparksRoot(None, f"Spark has no file system for {scheme}://")


def _is_told_the_same(spark: SparkSession, storage: Storage) -> bool:
    """Whether the session's Hadoop settings say all that the storage was reached by: Spark's readers see no options."""
    if isinstance(storage, HdfsStorage):
        settings = settings_of(spark)
        return all(settings(name) == value for name, value in storage.settings.items())
    if isinstance(storage, ObjectStorage):
        return _deciding(storage.how) == _deciding(session_options(spark, storage.uri))
    return True


def _deciding(how: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in how.items() if not name.endswith(_SPARK_NEEDS_NOT)}
