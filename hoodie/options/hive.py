"""How a table is registered in a catalog: a Hive metastore, or AWS Glue (`glue.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import not_
from typing import Any, ClassVar, TypeAlias

from hoodie.errors import OptionError
from hoodie.options.aws import GlueOptions
from hoodie.options.option import Key, Keys, combined, fixed, group, key, option, shared
from hoodie.options.values import (
    CatalogKind,
    Extractor,
    HiveViews,
    boolean,
    choice,
    fields,
    named_class,
    one_of,
    pairs,
    text,
    whole,
)

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
    result = []
    for uri in uris.split(","):
        host, _, port = uri.strip().removeprefix("thrift://").rstrip("/").rpartition(":")
        if not port.isdecimal():
            host, port = port, str(PORT)
        if not host or "/" in host or "@" in host or not _is_host(host):
            value = "" if "@" in uris else f"={uris!r}"
            raise OptionError(
                f"{option}{value} names no server: write thrift://host:{PORT}, several with commas between"
            )
        result.append((host, int(port)))
    return tuple(result)


_HIVE_SYNC = "hoodie.datasource.hive_sync."
_HIVE_SYNC_TOOL = "org.apache.hudi.hive.HiveSyncTool"
BIGQUERY_TOOL = "org.apache.hudi.gcp.bigquery.BigQuerySyncTool"
_GLUE = "glue"
_TOOL_CATALOGS: Mapping[str, CatalogKind] = {
    _HIVE_SYNC_TOOL: CatalogKind.HIVE,
    "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool": CatalogKind.GLUE,
    "org.apache.hudi.aws.sync.AWSGlueCatalogSyncTool": CatalogKind.GLUE,
}
"""The second name of Glue's is that of Hudi 0.11."""
_ENABLE = key(f"{_HIVE_SYNC}enable", boolean(), False)
"""Register the table in a Hive metastore after each commit (docs/HIVE.md). A failure is a warning; the next
registration catches up."""
ENABLE_ALL = key("hoodie.datasource.meta.sync.enable", boolean(), False)
"""Register the table after each commit in the catalogs of `hoodie.meta.sync.client.tool.class`."""
TOOLS = key("hoodie.meta.sync.client.tool.class", fields("Apache Hudi's classes"), _HIVE_SYNC_TOOL)
"""Where tables are registered: `…hive.HiveSyncTool`, `…aws.sync.AwsGlueCatalogSyncTool`, `…gcp.bigquery.BigQuerySyncTool`. Any
other class is a warning at each write: the table is not registered there."""
MODE = key(f"{_HIVE_SYNC}mode", one_of(("hms", "jdbc", "hiveql", _GLUE)), "hms")
"""The way to a Hive metastore. The first three mean the same: the metastore's own interface, where Apache Hudi's default goes
through a HiveServer. glue: AWS Glue instead."""
_ENABLING = (_ENABLE, ENABLE_ALL, TOOLS, MODE)


def _enabled(enable: bool, enable_all: bool, tools: tuple[str, ...]) -> bool:
    return enable or (enable_all and any(tool in _TOOL_CATALOGS for tool in tools))


def _catalogs(enable: bool, enable_all: bool, tools: tuple[str, ...], mode: str) -> tuple[CatalogKind, ...]:
    """As Apache Hudi has it: the switch for Hive adds its tool to the listed ones."""
    all_tools = [*tools, _HIVE_SYNC_TOOL] if enable or not any(tool in _TOOL_CATALOGS for tool in tools) else tools
    kinds = [_TOOL_CATALOGS[tool] for tool in all_tools if tool in _TOOL_CATALOGS]
    return tuple(
        dict.fromkeys(CatalogKind.GLUE if kind is CatalogKind.HIVE and mode == _GLUE else kind for kind in kinds)
    )


def not_registered(get: Callable[[Key[Any]], Any]) -> list[str]:
    """Registrations that the options ask for and that are not done, a sentence each."""
    enable, enable_all, tools, _ = map(get, _ENABLING)
    others = [tool for tool in tools if tool not in (*_TOOL_CATALOGS, BIGQUERY_TOOL)] if enable or enable_all else []
    return [f"the table is not registered by {tool} ({TOOLS.name})" for tool in others]


RECREATES = key(f"{_HIVE_SYNC}recreate_table_on_error", boolean(), False)
"""Replace a registration that cannot be changed: another path, or columns of other types."""
BASE_PATH = key("hoodie.datasource.meta.sync.base.path", text("a path"), None)
"""The table's path as others reach it, such as `s3a://…`. Unset: as the writer has it."""
TIMEOUT = key("hoodie.python.hive_sync.timeout", whole(1), 60)
"""Seconds that a registration waits for a catalog in all; then it fails, and the commit stands."""
_URIS = key(f"{_HIVE_SYNC}metastore.uris", text("thrift://host:port[,…]"), f"thrift://localhost:{PORT}")
"""Servers of one metastore; the first that can be reached is asked."""


@dataclass(frozen=True)
class HiveSyncOptions:
    enabled: bool = combined(_enabled, _ENABLE, ENABLE_ALL, TOOLS)
    """Whether to register after each commit."""
    catalogs: tuple[CatalogKind, ...] = combined(_catalogs, *_ENABLING)
    """Where to register, also where no commit asks for it."""
    servers: Servers = combined(
        partial(servers_of, option=f"{_HIVE_SYNC}metastore.uris"),
        _URIS,
    )
    database: str | None = option(f"{_HIVE_SYNC}database", text("a name"), None)
    """Database to register in. Unset: `hoodie.database.name` of the table, else `default`."""
    table: str | None = option(f"{_HIVE_SYNC}table", text("a name"), None)
    """Name to register by. Unset: that of the table."""
    creates_database: bool = option(f"{_HIVE_SYNC}auto_create_database", boolean(), True)
    """Create the database if it does not exist."""
    partition_fields: tuple[str, ...] | None = option(f"{_HIVE_SYNC}partition_fields", fields(), None)
    """Hive's partition columns. Unset: the table's."""
    extractor: Extractor | None = option(
        f"{_HIVE_SYNC}partition_extractor_class",
        named_class(choice({f"org.apache.hudi.hive.{each.value}": each for each in Extractor})),
        None,
    )
    """How values are read from partition paths, by the name of Apache Hudi's class. Unset: what the table's properties say."""
    skips_ro_suffix: bool = option(f"{_HIVE_SYNC}skip_ro_suffix", boolean(), False)
    """Merge-on-read: the read-optimized view has the name itself, without `_ro`; then nothing else has that name."""
    views: HiveViews = option(f"{_HIVE_SYNC}table.strategy", one_of(HiveViews), "ALL")
    """Merge-on-read: register both views with their suffixes, or only the realtime or the read-optimized one, by the name
    itself."""
    snapshot_by_name: bool = option("hoodie.meta.sync.sync_snapshot_with_table_name", boolean(), True)
    """Merge-on-read: register the realtime view by the name itself, too."""
    timestamps: bool = option(f"{_HIVE_SYNC}support_timestamp", boolean(), False)
    """Hive's type for timestamps is `timestamp`, else `bigint`. Spark has its own note of the columns, and its own types."""
    comments: bool = option(f"{_HIVE_SYNC}sync_comment", boolean(), False)
    """Register the docs of the columns in the table's schema as comments."""
    for_spark: bool = option(f"{_HIVE_SYNC}sync_as_datasource", boolean(), True)
    """Register for Spark as a table of the format `hudi`, too."""
    spark_version: str | None = option("hoodie.meta_sync.spark.version", text("a version"), None)
    """Version of Spark that the registration names as its maker. Unset: that of the session that writes, else none."""
    schema_length: int = option(f"{_HIVE_SYNC}schema_string_length_thresh", whole(1), 4000)
    """Characters of one table parameter, by which Spark's note of the columns is cut."""
    meta_columns: bool = option(f"{_HIVE_SYNC}omit_metadata_fields", boolean().then(not_), False)
    """Register the table without its `_hoodie_` columns."""
    table_properties: Mapping[str, str] = option(f"{_HIVE_SYNC}table_properties", pairs(), "")
    """More parameters of the registered table."""
    serde_properties: Mapping[str, str] = option(f"{_HIVE_SYNC}serde_properties", pairs(), "")
    """More parameters of its SerDe."""
    managed: bool = option(f"{_HIVE_SYNC}create_managed_table", boolean(), False)
    """Register without the parameter EXTERNAL: whoever drops the table in Hive may delete its files."""
    at_once: int = option(f"{_HIVE_SYNC}batch_num", whole(1), 1000)
    """Partitions that are registered by one request."""
    recreates: bool = shared(RECREATES)
    incremental: bool = option("hoodie.meta.sync.incremental", boolean(), True)
    """Look only at the commits since the last registration. false: compare all partitions each time."""
    with_partitions: bool = option("hoodie.meta.sync.no_partition_metadata", boolean().then(not_), False)
    """Register no partitions, only tables."""
    touches: bool = option("hoodie.meta.sync.touch.partitions.enabled", boolean(), False)
    """Register partitions with new rows again, so that listeners of the metastore get an event."""
    only_changes: bool = option("hoodie.datasource.meta_sync.condition.sync", boolean(), False)
    """Note the last commit only where columns, parameters or partitions changed."""
    path: str | None = shared(BASE_PATH)
    timeout_s: float = shared(TIMEOUT)

    glue: GlueOptions = group(GlueOptions)

    def in_glue(self) -> HiveSyncOptions:
        """The same for a registration in AWS Glue, which has names of its own for some of them."""
        glue = self.glue
        return replace(
            self,
            database=glue.database or self.database,
            table=glue.table or self.table,
            recreates=glue.recreates or self.recreates,
        )

    OTHERS: ClassVar[Keys] = (
        key(
            f"{_HIVE_SYNC}filter_pushdown_enabled",
            boolean(),
            False,
            "Accepted, without effect: hoodie always asks the metastore only for the partitions that it needs.",
        ),
        fixed(f"{_HIVE_SYNC}base_file_format", "PARQUET", "base files are Parquet", "Format of the base files."),
    )
