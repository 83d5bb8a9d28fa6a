"""The names of a table in a metastore, and the rows that each of them shows."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hoodie.format.hive_types import HiveColumn, hive_columns, spark_schema_json
from hoodie.hive.partitions import PartitionValues
from hoodie.model.enums import TableType
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.table import TableConfig
from hoodie.options.values import HiveViews

REALTIME_SUFFIX, OPTIMIZED_SUFFIX = "_rt", "_ro"
READS_OPTIMIZED = "hoodie.query.as.ro.table"
"""Of the SerDe: whether Spark reads base files only."""
PATH = "path"
SCHEMA_PART, SCHEMA_PARTS = "spark.sql.sources.schema.part.", "spark.sql.sources.schema.numParts"
_INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
_REALTIME_INPUT = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
_OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


class View(NamedTuple):
    """One name of the table, and whether a query by it merges logs."""

    name: str
    realtime: bool = False
    read_optimized: bool = False


def views_of(table_type: TableType, name: str, options: HiveSyncOptions) -> tuple[View, ...]:
    """The names that Apache Hudi registers, in its order."""
    if table_type is TableType.COPY_ON_WRITE:
        return (View(name),)
    if options.views is HiveViews.RO:
        return (View(name, read_optimized=True),)
    if options.views is HiveViews.RT:
        return (View(name, realtime=True),)
    optimized = View(name if options.skips_ro_suffix else name + OPTIMIZED_SUFFIX, read_optimized=True)
    realtime = View(name + REALTIME_SUFFIX, realtime=True)
    # Apache Hudi makes the last one of them also where the name is taken by the first, which then shows something else.
    plain = options.snapshot_by_name and not options.skips_ro_suffix
    return (optimized, realtime, *((View(name, realtime=True),) if plain else ()))


@dataclass(frozen=True)
class Description:
    """All that the metastore is to say of one name, but for partitions."""

    database: str
    view: View
    location: str
    owner: str
    columns: tuple[HiveColumn, ...]
    """Without partition columns."""
    partition_columns: tuple[tuple[str, str], ...]
    """Name and Hive's type."""
    input_format: str
    output_format: str
    serde: str
    serde_properties: Mapping[str, str]
    properties: Mapping[str, str]

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.view.name}"


def describe(
    config: TableConfig,
    schema_json: str,
    options: HiveSyncOptions,
    view: View,
    *,
    database: str,
    location: str,
    values: PartitionValues,
) -> Description:
    """What is to be registered by this name.

    Raises:
        UnsupportedTableError: a column has a type that Hive has not.
    """
    columns = hive_columns(
        schema_json, timestamps=options.timestamps, meta_columns=options.meta_columns and config.populate_meta_fields
    )
    by_name = {column.name: column for column in columns}
    types = tuple((name, by_name[name].hive_type if name in by_name else "string") for name in values.fields)
    properties = dict(options.table_properties)
    serde_properties = {**options.serde_properties, "serialization.format": "1"}
    if options.for_spark:
        properties |= _for_spark(columns, values.fields, options)
        serde_properties |= {PATH: location, READS_OPTIMIZED: "true" if view.read_optimized else "false"}
    if not options.managed:
        properties["EXTERNAL"] = "TRUE"
    return Description(
        database=database,
        view=view,
        location=location,
        owner=getpass.getuser(),
        columns=tuple(
            column if options.comments else column._replace(comment="")
            for column in columns
            if column.name not in values.fields
        ),
        partition_columns=types,
        input_format=_REALTIME_INPUT if view.realtime else _INPUT,
        output_format=_OUTPUT,
        serde=_SERDE,
        serde_properties=serde_properties,
        properties=properties,
    )


def _for_spark(
    columns: tuple[HiveColumn, ...], partition_fields: tuple[str, ...], options: HiveSyncOptions
) -> dict[str, str]:
    """Parameters in which Spark keeps the format and the columns of its own tables, partition columns last."""
    by_name = {column.name: column for column in columns}
    unknown = HiveColumn("", "string", '"string"', nullable=False, comment="")
    last = [by_name.get(name, unknown._replace(name=name)) for name in partition_fields]
    text = spark_schema_json([*(column for column in columns if column.name not in partition_fields), *last])
    parts = [text[start : start + options.schema_length] for start in range(0, len(text), options.schema_length)]
    properties = {"spark.sql.sources.provider": "hudi", SCHEMA_PARTS: str(len(parts))}
    properties |= {f"{SCHEMA_PART}{number}": part for number, part in enumerate(parts)}
    if options.spark_version:
        properties["spark.sql.create.version"] = options.spark_version
    if partition_fields:
        properties["spark.sql.sources.schema.numPartCols"] = str(len(partition_fields))
        properties |= {f"spark.sql.sources.schema.partCol.{n}": name for n, name in enumerate(partition_fields)}
    return properties
