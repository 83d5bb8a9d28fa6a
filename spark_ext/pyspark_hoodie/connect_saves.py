"""What DataFrames of Connect's clients write into tables by name: the client commits, as it does for statements of SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame

from hoodie.errors import OptionError, SchemaError, TableExistsError
from pyspark_hoodie import dataframe, hook
from pyspark_hoodie.sql_connect import filled
from pyspark_hoodie.sql_entries import entry_of
from pyspark_hoodie.sql_reads import Parts
from pyspark_hoodie.sql_words import Words, quoted_name
from pyspark_hoodie.where import literal_text, quoted

APPEND, OVERWRITE, OVERWRITE_PARTITIONS = "append", "overwrite", "overwrite partitions"


def write(
    frame: DataFrame, name: str, mode: str, options: Mapping[str, str] | None = None, *, by_name: bool = True
) -> bool:
    """Write the rows into a table of ours; False for every other name."""
    entry = entry_of(frame.sparkSession, Words(name).name("a table"))
    if entry is None:
        return False
    table = Parts(frame.sparkSession).table(entry)
    names = table.schema.names
    if by_name:
        lacking = sorted({each.lower() for each in names} - {each.lower() for each in frame.columns})
        if lacking:
            raise SchemaError(f"the rows for table {name} lack its column {lacking[0]}")
        names = frame.columns
    table.write(mode, filled(table, frame, names, {}), options or {})
    return True


def save_as_table(
    frame: DataFrame, name: str, mode: str, options: Mapping[str, str], partition_by: Sequence[str]
) -> None:
    """`saveAsTable` of format hoodie.

    Raises:
        TableExistsError: a table has this name, and the mode is that for new ones.
    """
    spark: Any = frame.sparkSession
    quoted_table = quoted_name(Words(name).name("a table"))
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
            f"AS SELECT * FROM {view}"
        )
    finally:
        spark.catalog.dropTempView(view)


def refuse(spark: Any, name: str, what: str, instead: str) -> None:
    """Raises OptionError where the name is that of a table of ours."""
    if entry_of(spark, Words(name).name("a table")) is not None:
        raise OptionError(f"{what} does not work on Connect for tables of format {hook.FORMAT!r}: {instead}")
