"""How a table is registered in a Hive metastore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hoodie.errors import OptionError
from hoodie.options import keys
from hoodie.options.values import Extractor, HiveViews

PORT = 9083
Servers: TypeAlias = tuple[tuple[str, int], ...]
"""Of one metastore, by host and port; the first that can be reached is asked."""


def _is_host(name: str) -> bool:
    try:
        return "\0" not in name and bool(name.encode("idna"))
    except UnicodeError:
        return False


def servers_of(uris: str, *, option: str) -> Servers:
    """The servers in a comma list of `thrift://host:port`.

    Raises:
        OptionError: one of them is none. An address with a user in it is not shown: it may name a password as well.
    """
    found = []
    for uri in uris.split(","):
        host, _, port = uri.strip().removeprefix("thrift://").rstrip("/").rpartition(":")
        if not port.isdecimal():
            host, port = port, str(PORT)
        if not host or "/" in host or "@" in host or not _is_host(host):
            shown = "" if "@" in uris else f"={uris!r}"
            raise OptionError(
                f"{option}{shown} names no server: write thrift://host:{PORT}, several with commas between"
            )
        found.append((host, int(port)))
    return tuple(found)


@dataclass(frozen=True)
class HiveSyncOptions:
    enabled: bool = keys.HIVE_SYNC_ENABLE.default
    """Whether to register after each commit."""
    servers: Servers = (("localhost", PORT),)
    database: str | None = keys.HIVE_SYNC_DATABASE.default
    table: str | None = keys.HIVE_SYNC_TABLE.default
    creates_database: bool = keys.HIVE_SYNC_AUTO_DATABASE.default
    partition_fields: tuple[str, ...] | None = keys.HIVE_SYNC_PARTITION_FIELDS.default
    extractor: Extractor | None = keys.HIVE_SYNC_EXTRACTOR.default
    skips_ro_suffix: bool = keys.HIVE_SYNC_SKIP_RO.default
    views: HiveViews = keys.HIVE_SYNC_STRATEGY.default
    snapshot_by_name: bool = keys.META_SYNC_SNAPSHOT_NAME.default
    """The realtime view has the name without a suffix, too."""
    timestamps: bool = keys.HIVE_SYNC_TIMESTAMP.default
    comments: bool = keys.HIVE_SYNC_COMMENT.default
    for_spark: bool = keys.HIVE_SYNC_DATASOURCE.default
    """With the parameters by which Spark takes it for a table of the format hudi."""
    spark_version: str | None = keys.META_SYNC_SPARK_VERSION.default
    schema_length: int = keys.HIVE_SYNC_SCHEMA_LENGTH.default
    meta_columns: bool = not keys.HIVE_SYNC_NO_META.default
    table_properties: Mapping[str, str] = field(default_factory=dict)
    serde_properties: Mapping[str, str] = field(default_factory=dict)
    managed: bool = keys.HIVE_SYNC_MANAGED.default
    at_once: int = keys.HIVE_SYNC_BATCH.default
    recreates: bool = keys.HIVE_SYNC_RECREATE.default
    incremental: bool = keys.META_SYNC_INCREMENTAL.default
    with_partitions: bool = not keys.META_SYNC_NO_PARTITIONS.default
    touches: bool = keys.META_SYNC_TOUCH.default
    only_changes: bool = keys.META_SYNC_CONDITIONAL.default
    """Do not note the last commit where nothing else changed."""
    path: str | None = keys.META_SYNC_PATH.default
    """The table's, as others reach it."""
    timeout_s: float = keys.HIVE_SYNC_TIMEOUT.default
