"""Spark sessions of others that know the format from their beginning."""

import functools
from typing import Any

from pyspark.sql import SparkSession

import pyspark_hoodie

_MARK = "_knows_hoodie"


def enable_new_ones() -> None:
    """Each session that is made or taken by `SparkSession.builder.getOrCreate` from now on is enabled."""
    create = SparkSession.Builder.getOrCreate
    if hasattr(create, _MARK):
        return

    @functools.wraps(create)
    def create_enabled(builder: Any) -> Any:
        session = create(builder)
        pyspark_hoodie.enable(session)
        return session

    setattr(create_enabled, _MARK, True)
    SparkSession.Builder.getOrCreate = create_enabled  # type: ignore[assignment]
