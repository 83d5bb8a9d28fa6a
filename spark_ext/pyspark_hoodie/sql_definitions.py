"""Statements about tables and their catalog entries that Spark has for its own tables only, on hoodie tables.

`CREATE TABLE … LIKE` becomes a CREATE TABLE with all that it says, `ALTER TABLE … SET SERDEPROPERTIES` a SET TBLPROPERTIES.
`MSCK REPAIR TABLE` and `ANALYZE TABLE` have nothing to do: partitions and statistics are those of the table's files.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

from hoodie.options.option import key_of
from hoodie.options.table_options import MERGE_MODE, PAYLOAD_CLASS, TableOptions
from pyspark_hoodie import hook, sql_catalog
from pyspark_hoodie.sql_create import table_options
from pyspark_hoodie.sql_words import Words, quoted_name
from pyspark_hoodie.table import HoodieTable
from pyspark_hoodie.where import literal_text, quoted

_NAME = r"(?:`[^`]*`|[\w.])+"
BEGIN = re.compile(
    rf"\s*(create\s+table\s+(if\s+not\s+exists\s+)?{_NAME}\s+like\s|alter\s+table\s+{_NAME}\s+set\s+serdeproperties"
    r"|(msck\s+)?repair\s+table|analyze\s+table)",
    re.IGNORECASE,
)
"""How they begin."""


def answer(spark: Any, query: str) -> DataFrame | None:
    """What one of these statements gives; None for tables of others."""
    words = Words(query)
    if words.take("CREATE", "TABLE"):
        return _create_like(spark, words)
    if words.take("ALTER", "TABLE"):
        name = quoted_name(words.name("the name of a table"))
        words.expect("SET", "SERDEPROPERTIES")
        if sql_catalog.is_of_others(spark, name):
            return None
        properties = words.slice(words.at, len(words.tokens))
        result: DataFrame = spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES {properties}")
        return result
    words.at = words.find("TABLE") + 1
    name = quoted_name(words.name("the name of a table"))
    if sql_catalog.is_of_others(spark, name):
        return None
    sql_catalog.table_of(spark, name)
    nothing: DataFrame = spark.range(0).select()
    return nothing


def instead_of(spark: Any, query: str, error: Exception) -> DataFrame | None:
    """What a statement gives that Spark has refused: a table without partition columns shows no partitions."""
    if "PARTITION_SCHEMA_IS_EMPTY" not in str(error):
        return None
    words = Words(query)
    if not words.take("SHOW", "PARTITIONS") or sql_catalog.is_of_others(spark, quoted_name(words.name("a table"))):
        return None
    nothing: DataFrame = spark.range(0).selectExpr("'' AS partition")
    return nothing


def _create_like(spark: Any, words: Words) -> DataFrame | None:
    may_exist = words.take("IF", "NOT", "EXISTS")
    name = quoted_name(words.name("the name of the table"))
    words.expect("LIKE")
    source = quoted_name(words.name("the table that it is like"))
    table = None if sql_catalog.is_of_others(spark, source) else sql_catalog.table_of(spark, source)
    provider = "" if table is None else hook.FORMAT
    properties, location = {}, ""
    while not words.is_over:
        if words.take("USING"):
            provider = ".".join(words.name("a format"))
        elif words.take("TBLPROPERTIES"):
            properties = words.options()
        else:
            words.expect("LOCATION")
            location = f"LOCATION {words.slice(words.at, words.at + 1)}"
            words.at += 1
    if not sql_catalog.is_ours(provider):
        return None
    if table is None:
        by = [column.name for column in spark.catalog.listColumns(source) if column.isPartition]
    else:
        by = list(table.config.partition_fields)
        properties = sql_catalog.properties_of(spark, source) | properties
        table_keys = table_options(properties)
        properties |= {key: text for key, text in _options(table).items() if key not in table_keys}
    fields = spark.table(source).schema.fields
    columns = ", ".join(
        f"{quoted(field.name)} {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
        f"{_comment(field.metadata.get('comment'))}"
        for field in fields
    )
    parts = [
        f"CREATE TABLE {'IF NOT EXISTS ' if may_exist else ''}{name} ({columns}) USING {provider}",
        f"PARTITIONED BY ({', '.join(map(quoted, by))})" if by else "",
        location,
        f"TBLPROPERTIES ({', '.join(f'{literal_text(key)} = {literal_text(value)}' for key, value in properties.items())})"
        if properties
        else "",
    ]
    frame: DataFrame = spark.sql(" ".join(parts))
    return frame


def _options(table: HoodieTable) -> dict[str, str]:
    """With which a table with the same keys is made."""
    config = table.config
    texts = {
        "table_type": str(config.table_type),
        "record_key_fields": ",".join(config.record_key_fields),
        "ordering_fields": ",".join(config.ordering_fields),
        "version": str(int(config.version)),
        "hive_style": str(config.hive_style).lower(),
    }
    return {key_of(TableOptions, name).name: text for name, text in texts.items() if text} | {
        (PAYLOAD_CLASS if config.payload else MERGE_MODE).name: str(config.payload or config.merge_mode)
    }


def _comment(text: str | None) -> str:
    return "" if text is None else f" COMMENT {literal_text(text)}"
