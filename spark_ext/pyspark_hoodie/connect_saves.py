"""DataFrames that are saved into tables by name. For those of Connect the client commits, as for SQL statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame

from hoodie.errors import OptionError, SchemaError, TableExistsError
from pyspark_hoodie import dataframe, hook
from pyspark_hoodie.sql_connect import filled
from pyspark_hoodie.sql_create import has_commits
from pyspark_hoodie.sql_entries import entry_of
from pyspark_hoodie.sql_reads import Parts
from pyspark_hoodie.sql_table import CatalogTable
from pyspark_hoodie.sql_words import Words, quoted_name
from pyspark_hoodie.where import literal_text, quoted

APPEND, OVERWRITE, OVERWRITE_PARTITIONS = "append", "overwrite", "overwrite partitions"


def write(
    frame: DataFrame, name: str, mode: str, options: Mapping[str, str] | None = None, *, by_name: bool = True
) -> bool:
    """Write the rows into a table of ours; False for every other name."""
    table = _table(frame, name)
    if table is None:
        return False
    table.write(
        mode, _by_name(table, frame) if by_name else filled(table, frame, table.schema.names, {}), options or {}
    )
    return True


def overwrite(frame: DataFrame, name: str, condition: Column, options: Mapping[str, str]) -> bool:
    """Write the rows in place of those of the partitions that the condition names; False for every other name."""
    table = _table(frame, name)
    if table is None:
        return False
    rows = _by_name(table, frame)
    table.write("overwrite paths", rows, options, table.paths_where(condition, "overwrite(condition)"))
    return True


def _table(frame: DataFrame, name: str) -> CatalogTable | None:
    entry = entry_of(frame.sparkSession, Words(name).name("a table"))
    return None if entry is None else Parts(frame.sparkSession).table(entry)


def _by_name(table: CatalogTable, frame: DataFrame) -> DataFrame:
    lacking = sorted({each.lower() for each in table.schema.names} - {each.lower() for each in frame.columns})
    if lacking:
        raise SchemaError(f"the rows for table {table.name} lack its column {lacking[0]}")
    return filled(table, frame, frame.columns, {})


def name_the_table_at(spark: Any, name: str, path: str | None) -> None:
    """Give the table at the path, if there is one, this name, if it is free: the catalog of a new session knows no names."""
    quoted_table = quoted_name(Words(name).name("a table"))
    if path is not None and not spark.catalog.tableExists(quoted_table) and has_commits(spark, path):
        spark.sql(f"CREATE TABLE {quoted_table} USING {hook.FORMAT} LOCATION {literal_text(path)}")


def save_as_table(
    frame: DataFrame, name: str, mode: str, options: Mapping[str, str], partition_by: Sequence[str]
) -> None:
    """`saveAsTable` of format hoodie over Connect.

    Raises:
        TableExistsError: a table has this name, and the mode is that for new ones.
    """
    spark: Any = frame.sparkSession
    quoted_table = quoted_name(Words(name).name("a table"))
    options = dict(options)
    path = options.pop("path", None)
    if mode in (dataframe.APPEND, dataframe.OVERWRITE):
        name_the_table_at(spark, name, path)
    if spark.catalog.tableExists(quoted_table):
        if mode == dataframe.IGNORE:
            return
        if mode not in (dataframe.APPEND, dataframe.OVERWRITE):
            raise TableExistsError(f'there is a table {name} already: use mode("append"), or another name')
        if not write(frame, name, APPEND if mode == dataframe.APPEND else OVERWRITE, options):
            raise OptionError(f"{name} is no table of format {hook.FORMAT!r}: drop it, or use another name")
        return
    view = f"hoodie_rows_{uuid4().hex}"
    by = f"PARTITIONED BY ({', '.join(map(quoted, partition_by))})" if partition_by else ""
    stated = ", ".join(f"{literal_text(key)} = {literal_text(value)}" for key, value in options.items())
    frame.createTempView(view)
    try:
        spark.sql(
            f"CREATE TABLE {quoted_table} USING {hook.FORMAT} {by} {f'TBLPROPERTIES ({stated})' if stated else ''} "
            f"{f'LOCATION {literal_text(path)}' if path else ''} AS SELECT * FROM {view}"
        )
    finally:
        spark.catalog.dropTempView(view)
