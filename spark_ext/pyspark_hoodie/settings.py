"""A setting of the session that is another one for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from pyspark.sql import SparkSession

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
