"""The source that a user's arguments name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias

from hoodie.errors import OptionError
from hoodie.migration.delta_source import open_delta_source
from hoodie.migration.iceberg_source import open_iceberg_source
from hoodie.migration.parquet_source import open_parquet_source
from hoodie.migration.source import MigrationSource
from hoodie.storage.base import Storage
from hoodie.storage.uri import open_storage

FORMATS = ("parquet", "delta", "iceberg")
OpenSource: TypeAlias = Callable[[str | None], MigrationSource]
"""Opens a version of the source; None: as it is now."""


def opener_of(
    origin: Any, kind: str | None, partition_by: Sequence[str] | None, reached_by: Mapping[str, str] | None
) -> OpenSource:
    """How to open what a user says: a path, or a table of pyiceberg.

    Raises:
        OptionError: there is no such format, or it is a Hudi table.
    """
    if kind is not None and kind not in FORMATS:
        raise OptionError(f"format={kind!r} is not one of {', '.join(FORMATS)}")
    if not isinstance(origin, str | PathLike):
        if not hasattr(origin, "plan_files") and hasattr(origin, "current_snapshot"):
            return lambda version: open_iceberg_source(origin, version, reached_by)
        raise OptionError(
            f"source={origin!r:.80} is neither a path nor a table of pyiceberg: give the folder of the Parquet files or of the table"
        )
    storage = open_storage(origin, reached_by)
    match kind or kind_of(storage):
        case "delta":
            return lambda version: open_delta_source(storage, version, reached_by)
        case "iceberg":
            return lambda version: open_iceberg_source(storage, version, reached_by)
        case _:
            return lambda _: open_parquet_source(storage, partition_by)


def kind_of(storage: Storage) -> str:
    """The format of what is in a folder."""
    if storage.exists(".hoodie"):
        raise OptionError(
            f"{storage.uri} is a Hudi table already: open it, or write its rows into another table by hoodie.ingest"
        )
    if storage.exists("_delta_log"):
        return "delta"
    return "iceberg" if any(name.endswith(".metadata.json") for name in storage.names("metadata")) else "parquet"
