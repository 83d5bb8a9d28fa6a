"""Jobs with the operation `bootstrap`: files become a table, and the DataFrame is ignored."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

import hoodie.migration.bootstrap
from hoodie.model.results import CommitResult
from hoodie.options.defaults_file import load_defaults
from hoodie.storage.uri import scheme_of
from pyspark_hoodie.reach import session_options, split_options


def run(spark: SparkSession, path: str, options: Mapping[str, str]) -> CommitResult:
    """Make the table at `path`, by the options of a write."""
    how, others = split_options(scheme_of(path), options)

    def reach(address: str) -> Mapping[str, str] | None:
        return {**session_options(spark, address), **how} or None

    return hoodie.migration.bootstrap.bootstrap(path, others, reach, defaults=load_defaults())
