"""Writes by name that bring columns which the table lacks: `INSERT WITH SCHEMA EVOLUTION`, and the option `mergeSchema` of writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from hoodie.errors import OptionError
from pyspark_hoodie import sql_catalog
from pyspark_hoodie.sql_added import adding
from pyspark_hoodie.sql_evolution import Sql, lacking
from pyspark_hoodie.sql_words import Words, quoted_name
from pyspark_hoodie.where import quoted

MERGE_SCHEMA = "mergeSchema"
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


def insert(spark: Any, words: Words, run: Sql) -> DataFrame | None:
    """What the statement gives; None for every other one, and for tables of others.

    Columns are given by their places as far as the table has some, and by the names of the query behind them. Columns of the table
    that the query lacks are null.

    Args:
        words: stand at INSERT, behind WITH and its queries.
    """
    before = words.slice(0, words.at)
    if not words.take("INSERT", "WITH", "SCHEMA", "EVOLUTION"):
        return None
    verb = "OVERWRITE" if words.take("OVERWRITE") else "INTO"
    if verb == "INTO":
        words.expect("INTO")
    words.take("TABLE")
    name = quoted_name(words.name("the name of the table"))
    if sql_catalog.is_of_others(spark, name):
        return None
    start, fixed = words.at, set[str]()
    if words.take("PARTITION"):
        fixed = {part[0].name.lower() for part in words.parts() if len(part) > 1}
    partition = words.slice(start, words.at)
    by_name, listed = words.take("BY", "NAME"), list[str]()
    if words.sees("(") and not words.tokens[words.at + 1].says(*_QUERIES):
        listed = [part[-1].name for part in words.parts()]
    rows = run(f"{before} {words.slice(words.at, len(words.tokens))}")
    table = sql_catalog.table_of(spark, name)
    columns = {field.name: field for field in spark.table(name).schema.fields if field.name.lower() not in fixed}
    names = rows.columns if by_name else listed or [*columns, *rows.columns[len(columns) :]]
    if not by_name and len(names) != len(rows.columns):
        raise OptionError(
            f"INSERT into table {name} gives {len(rows.columns)} columns, and {len(names)} are wanted: {', '.join(names)}"
        )
    given = {each.lower() for each in names}
    fields = [StructField(new, field.dataType) for new, field in zip(names, rows.schema.fields, strict=True)]
    empty = [
        F.lit(None).cast(field.dataType).alias(each) for each, field in columns.items() if each.lower() not in given
    ]
    added = lacking(table, [field for field in fields if field.name.lower() not in fixed])
    view = f"hoodie_source_{uuid4().hex}"
    whole = rows.toDF(*names)
    whole.select(*[F.col(quoted(each)) for each in names], *empty).createTempView(view)
    try:
        with adding(spark, table.uri, added):
            return run(f"INSERT {verb} {name} {partition} BY NAME SELECT * FROM {view}")
    finally:
        spark.catalog.dropTempView(view)


@contextmanager
def widened(frame: DataFrame, name: str, options: Mapping[str, str]) -> Iterator[None]:
    """While it is entered, a table of ours that is there has the columns of rows that are written to it with `mergeSchema`."""
    spark = frame.sparkSession
    is_wanted = any(key.lower() == MERGE_SCHEMA.lower() and text.lower() == "true" for key, text in options.items())
    if not is_wanted or not sql_catalog.is_of_ours(spark, name):
        yield
        return
    table = sql_catalog.table_of(spark, name)
    with adding(spark, table.uri, lacking(table, frame.schema.fields)):
        yield
