"""How a table is registered in BigQuery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hoodie.options.hive import BASE_PATH, BIGQUERY_TOOL, ENABLE_ALL, RECREATES, TIMEOUT, TOOLS
from hoodie.options.option import Keys, combined, key, option, shared
from hoodie.options.values import boolean, text

_BIGQUERY = "hoodie.gcp.bigquery.sync."


@dataclass(frozen=True)
class BigQueryOptions:
    enabled: bool = combined(lambda enabled, tools: enabled and BIGQUERY_TOOL in tools, ENABLE_ALL, TOOLS)
    """Whether to register after each commit."""
    project: str | None = option(f"{_BIGQUERY}project_id", text("a name"), None)
    """BigQuery: the project of the dataset. It has to be named."""
    billing_project: str | None = option(f"{_BIGQUERY}billing.project.id", text("a name"), None)
    """BigQuery: the project that pays for statements. Unset: that of the dataset."""
    dataset: str | None = option(f"{_BIGQUERY}dataset_name", text("a name"), None)
    """BigQuery: dataset to register in, which has to exist. Unset: `hoodie.database.name` of the table."""
    location: str | None = option(f"{_BIGQUERY}dataset_location", text("a region"), None)
    """BigQuery: the region of the dataset. Unset: as BigQuery finds it."""
    table: str | None = option(f"{_BIGQUERY}table_name", text("a name"), None)
    """BigQuery: name to register by. Unset: that of the table."""
    prefix: str | None = option(f"{_BIGQUERY}source_uri_prefix", text("an address"), None)
    """BigQuery: take partition columns from the names of folders below this address, for files that leave them out; folders are
    then named in Hive's way. Unset: the table's own path where its files leave them out, else columns are read from the files."""
    requires_filter: bool = option(f"{_BIGQUERY}require_partition_filter", boolean(), False)
    """BigQuery: refuse queries without a filter on columns that folders say."""
    connection: str | None = option(f"{_BIGQUERY}big_lake_connection_id", text("an id"), None)
    """BigQuery: the connection of a BigLake table."""
    recreates: bool = shared(RECREATES)
    path: str | None = shared(BASE_PATH)
    timeout_s: float = shared(TIMEOUT)

    OTHERS: ClassVar[Keys] = (
        key(
            f"{_BIGQUERY}use_bq_manifest_file",
            boolean(),
            False,
            "Accepted, without effect: one external table over a manifest is made, as Apache Hudi does with true.",
        ),
    )
